"""genesis.nn.functional: layers, norms, activations, dropout and attention beside PyTorch.

layer_results.json has what PyTorch gave: record_layers.py. Gradients are also checked by
differences: tests/ops/gradient_samples_nn_layers.py.
"""

import json
from pathlib import Path

import layer_cases
import pytest
from conftest import simulate_script

import genesis

F = genesis.nn.functional
RESULTS = json.loads(Path(__file__).with_name("layer_results.json").read_text())
RUNS = {f"{case.name} {kind}": (case, kind) for case in layer_cases.cases() for kind in case.kinds}


def is_near(one, wanted, kind):
    if one != one or wanted != wanted:
        return one != one and wanted != wanted
    if abs(wanted) == float("inf"):
        return one == wanted
    share, least = (2e-5, 1e-5) if kind == "float32" else (1.6e-2, 8e-3)
    return abs(one - wanted) <= share * abs(wanted) + least


def test_all_calls_are_recorded():
    assert {*RUNS} == {*RESULTS}


@pytest.mark.parametrize("name", RUNS)
def test_results_and_gradients_are_those_of_pytorch(name):
    case, kind = RUNS[name]
    found, wanted = layer_cases.run(genesis, case, kind), RESULTS[name]
    assert found.keys() == wanted.keys()
    for what, values in wanted.items():
        assert len(found[what]) == len(values), what
        pairs = zip(found[what], map(float, values), strict=True)
        apart = [(one, other) for one, other in pairs if not is_near(one, other, kind)]
        assert not apart, (what, apart[:4])


# ---- dropout ----


def drop(name, *arguments, **words):
    return getattr(F, name)(*arguments, **words)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_dropout_keeps_the_mean(p, dtype):
    genesis.manual_seed(5)
    x = genesis.ones(101, 203, dtype=getattr(genesis, dtype))
    made = F.dropout(x, p)
    assert made.dtype == x.dtype and made.shape == x.shape
    kept = made != 0
    assert abs(kept.float().mean().item() - (1 - p)) < 0.02
    scale = made.float().max().item()
    assert abs(scale - 1 / (1 - p)) < 0.02 * scale
    assert (made == kept * made.max()).all().item()


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout", "feature_alpha_dropout"])
def test_what_is_dropped_is_told_by_the_seed(name):
    x = genesis.rand(7, 5, 3)
    found = []
    for _ in range(2):
        genesis.manual_seed(11)
        found.append([drop(name, x, 0.5, True).tolist() for _ in range(2)])
    assert found[0] == found[1]
    assert found[0][0] != found[0][1]
    generator = genesis.Generator().manual_seed(11)
    assert drop(name, x, 0.5, True, generator=generator).tolist() == found[0][0]


DROPS = {
    "dropout": (3, 4),
    "dropout1d": (3, 4, 5),
    "dropout2d": (3, 4, 2, 5),
    "dropout3d": (3, 4, 2, 1, 5),
    "alpha_dropout": (3, 4),
    "feature_alpha_dropout": (3, 4, 5),
}


@pytest.mark.parametrize("name", DROPS)
def test_dropout_that_does_nothing_is_the_input_and_takes_no_numbers(name):
    x = genesis.rand(*DROPS[name])
    genesis.manual_seed(2)
    wanted = genesis.rand(3).tolist()
    genesis.manual_seed(2)
    assert drop(name, x, 0.5, False) is x
    assert drop(name, x, 0.0, True) is x
    assert drop(name, x, 1.0, True).abs().sum().item() == 0
    assert genesis.rand(3).tolist() == wanted


@pytest.mark.parametrize("name", DROPS)
def test_dropout_in_place(name):
    x = genesis.rand(*DROPS[name]) + 1
    genesis.manual_seed(2)
    wanted = drop(name, x, 0.5, True).tolist()
    genesis.manual_seed(2)
    assert drop(name, x, 0.5, True, inplace=True) is x
    assert x.tolist() == wanted
    leaf = genesis.ones(*DROPS[name], requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        drop(name, leaf, 0.5, True, inplace=True)


@pytest.mark.parametrize(
    ("name", "shape", "whole"),
    [
        ("dropout1d", (50, 4, 6), 2),
        ("dropout1d", (80, 6), 1),
        ("dropout2d", (50, 4, 3, 2), 2),
        ("dropout2d", (50, 4, 6), 2),
        ("dropout3d", (50, 4, 1, 3, 2), 2),
        ("dropout3d", (80, 3, 2, 1), 1),
        ("feature_alpha_dropout", (50, 4, 6), 2),
    ],
)
def test_whole_channels_are_dropped(name, shape, whole):
    genesis.manual_seed(4)
    made = drop(name, genesis.ones(*shape), 0.3, True).flatten(whole)
    assert (made == made[..., :1]).all().item()
    share = (made[..., 0] == made.max()).float().mean().item()
    assert 0.5 < share < 0.9


def test_alpha_dropout_keeps_mean_and_variance():
    genesis.manual_seed(6)
    made = F.alpha_dropout(genesis.randn(400, 500), 0.3, True)
    assert abs(made.mean().item()) < 0.01 and abs(made.std().item() - 1) < 0.01


def test_of_a_dropout_the_graph_keeps_a_byte_for_each_element(fresh):
    """In a process of its own: what others have left behind there may go meanwhile."""
    printed = fresh(
        """
import genesis

x = genesis.rand(512, 512, requires_grad=True)
genesis.flush()
before = genesis.memory_stats("cpu").allocated_bytes
loss = genesis.nn.functional.dropout(x, 0.5).square().sum()
genesis.flush()
print(genesis.memory_stats("cpu").allocated_bytes - before)
"""
    ).stdout
    assert int(printed) <= 512 * 512 + 8192


def test_random_slopes_lie_between_both_ends():
    genesis.manual_seed(8)
    x = genesis.full((1000,), -1.0, requires_grad=True)
    made = F.rrelu(x, 0.25, 0.5, training=True)
    assert -0.5 <= made.min().item() < -0.48 and -0.27 < made.max().item() <= -0.25
    made.sum().backward()
    assert x.grad.tolist() == (-made).tolist()
    genesis.manual_seed(8)
    y = x.detach().clone()
    assert F.rrelu_(y, 0.25, 0.5, True) is y and y.tolist() == made.tolist()


def test_gumbel_softmax_draws_as_often_as_logits_say():
    genesis.manual_seed(9)
    chances = genesis.tensor([0.1, 0.6, 0.3])
    logits = chances.log().expand(20000, 3)
    hard = F.gumbel_softmax(logits, 0.7, hard=True)
    assert (hard.sum(-1) - 1).abs().max().item() < 1e-6
    assert (hard.mean(0) - chances).abs().max().item() < 0.02
    soft = F.gumbel_softmax(logits[:5], tau=0.5)
    assert (soft.sum(-1) - 1).abs().max().item() < 1e-6
    x = genesis.zeros(4, 3, dtype=genesis.bfloat16, requires_grad=True)
    made = F.gumbel_softmax(x, hard=True, dim=0)
    assert made.dtype == genesis.bfloat16
    (made * genesis.arange(3)).sum().backward()
    assert x.grad.abs().sum().item() < 0.05  # each column sums up to 1, whatever x is


# ---- attention ----


def test_causal_attention_is_attention_with_a_mask():
    q, k, v = (genesis.randn(2, 3, 9, 5) for _ in range(3))
    mask = genesis.ones(9, 9).tril().bool()
    found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert (found - F.scaled_dot_product_attention(q, k, v, mask)).abs().max().item() < 1e-6
    assert (found[:, :, 0] - v[:, :, 0]).abs().max().item() < 1e-6


@pytest.mark.parametrize(
    ("heads", "queries", "keys"), [((2, 2), 515, 515), ((1, 1), 259, 700), ((4, 2), 700, 300)]
)
def test_causal_attention_by_blocks(heads, queries, keys):
    """Of many queries each block has the keys that it sees."""
    genesis.manual_seed(1)
    q = genesis.randn(2, heads[0], queries, 6, requires_grad=True)
    k = genesis.randn(2, heads[1], keys, 6, requires_grad=True)
    v = genesis.randn(2, heads[1], keys, 5, requires_grad=True)
    mask = genesis.ones(queries, keys).tril().bool()
    found = []
    for words in ({"is_causal": True}, {"attn_mask": mask}):
        made = F.scaled_dot_product_attention(q, k, v, enable_gqa=True, **words)
        found.append([made, *genesis.autograd.grad(made.sin().sum(), (q, k, v))])
    for one, other in zip(*found, strict=True):
        assert (one - other).abs().max().item() < 5e-5


def test_a_query_that_sees_nothing_gives_0_and_gets_0():
    q, k, v = (genesis.randn(2, 3, 4, requires_grad=True) for _ in range(3))
    mask = genesis.tensor([[True, False, True], [False] * 3, [True] * 3])
    made = F.scaled_dot_product_attention(q, k, v, mask)
    made.square().sum().backward()
    assert made[:, 1].abs().sum().item() == 0
    assert q.grad[:, 1].abs().sum().item() == 0
    assert all(one.grad.isfinite().all().item() for one in (q, k, v))


def test_attention_without_keys_is_0():
    q, none = genesis.ones(2, 3, 4), genesis.ones(2, 0, 4)
    assert F.scaled_dot_product_attention(q, none, none).tolist() == genesis.zeros(2, 3, 4).tolist()


def test_dropout_of_attention_weights():
    genesis.manual_seed(3)
    q, v = genesis.zeros(1, 64, 4), genesis.ones(1, 256, 4)
    made = F.scaled_dot_product_attention(q, genesis.zeros(1, 256, 4), v, dropout_p=0.25)
    assert abs(made.mean().item() - 1) < 0.02 and made.std().item() > 0.01
    genesis.manual_seed(3)
    again = F.scaled_dot_product_attention(q, genesis.zeros(1, 256, 4), v, dropout_p=0.25)
    assert again.tolist() == made.tolist()


def test_large_halves_do_not_overflow():
    q = genesis.full((1, 2, 64), 60.0, dtype=genesis.float16)
    made = F.scaled_dot_product_attention(q, q, q)
    assert (made == 60).all().item()


# ---- what a table keeps ----


def test_max_norm_changes_the_rows_that_are_named():
    weight = genesis.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]], requires_grad=True)
    made = F.embedding(genesis.tensor([0, 1, 0]), weight, max_norm=1.0)
    assert abs(made[0].norm().item() - 1) < 1e-5
    assert weight.detach()[2].tolist() == [6, 8] and made[1].tolist() == weight[1].tolist()
    made.sum().backward()
    assert weight.grad.tolist() == [[2, 2], [1, 1], [0, 0]]


def test_running_statistics_have_no_gradient_and_stay_in_evaluation():
    x, mean, var = genesis.rand(5, 2, requires_grad=True), genesis.zeros(2), genesis.ones(2)
    F.batch_norm(x, mean, var, training=True).square().sum().backward()
    assert not mean.requires_grad and not var.requires_grad
    kept = [mean.tolist(), var.tolist()]
    F.batch_norm(x, mean, var)
    assert kept == [mean.tolist(), var.tolist()]
    F.batch_norm(genesis.ones(0, 2), mean, var, training=True)
    assert kept == [mean.tolist(), var.tolist()]


@pytest.mark.parametrize("name", ["relu", "silu", "elu", "hardsigmoid", "threshold", "rrelu"])
def test_in_place_on_a_leaf_is_an_error(name):
    leaf = genesis.ones(3, requires_grad=True)
    rest = (0.5, 1.0) if name == "threshold" else ()
    with pytest.raises(RuntimeError, match="leaf"):
        getattr(F, name)(leaf, *rest, inplace=True)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_a_dimension_that_is_not_given_is_chosen_with_a_warning(name):
    for shape, dim in ((5,), 0), ((2, 3), 1), ((2, 3, 4), 0), ((2, 3, 4, 2), 1):
        x = genesis.rand(*shape)
        with pytest.warns(UserWarning, match=f"Implicit dimension choice for {name}"):
            made = getattr(F, name)(x)
        assert made.tolist() == getattr(F, name)(x, dim).tolist()


# ---- wrong arguments ----

X, W = genesis.ones(2, 4), genesis.ones(3, 4)
INDEX = genesis.tensor([0, 2])
WRONG = {
    "linear of other widths": (lambda: F.linear(X, genesis.ones(3, 5)), "last dimensions"),
    "linear of other types": (lambda: F.linear(X, W.double()), "one type"),
    "linear with a bias of another type": (lambda: F.linear(X, W, X[0, :3].half()), "one type"),
    "linear with a long bias": (lambda: F.linear(X, W, genesis.ones(4)), "3 elements"),
    "linear with a weight of 3 dimensions": (lambda: F.linear(X, W[None]), "one or two"),
    "bilinear": (lambda: F.bilinear(X, X, W), r"\(results, a, b\)"),
    "normalize": (lambda: F.normalize(INDEX), "floating"),
    "pairwise_distance": (lambda: F.pairwise_distance(X[0, 0], X[0, 0]), "one dimension"),
    "pdist": (lambda: F.pdist(X[0]), "two dimensions"),
    "pdist below 0": (lambda: F.pdist(X, -1.0), "not negative"),
    "embedding by floats": (lambda: F.embedding(X, W), "int64 or int32"),
    "embedding beyond": (lambda: F.embedding(INDEX + 1, W), "index|out of range"),
    "embedding padding": (lambda: F.embedding(INDEX, W, 3), "padding_idx is 3"),
    "embedding sparse": (lambda: F.embedding(INDEX, W, sparse=True), "sparse is False"),
    "embedding of a vector": (lambda: F.embedding(INDEX, W[0]), "two dimensions"),
    "embedding_bag mode": (lambda: F.embedding_bag(INDEX[None], W, mode="min"), "'max'"),
    "embedding_bag offsets": (lambda: F.embedding_bag(INDEX, W), "needs offsets"),
    "embedding_bag rows": (lambda: F.embedding_bag(INDEX[None], W, INDEX), "a row is a bag"),
    "embedding_bag start": (lambda: F.embedding_bag(INDEX, W, INDEX + 1), "offset is 0"),
    "embedding_bag weights": (
        lambda: F.embedding_bag(INDEX[None], W, per_sample_weights=X),
        "mode='sum'",
    ),
    "layer_norm": (lambda: F.layer_norm(X, (5,)), "ends otherwise"),
    "layer_norm of nothing": (lambda: F.layer_norm(X, ()), "at least one"),
    "layer_norm weight": (lambda: F.layer_norm(X, (4,), W), "weight has shape"),
    "rms_norm of integers": (lambda: F.rms_norm(INDEX, (2,)), "floating"),
    "batch_norm of one": (lambda: F.batch_norm(X[:1], None, None, training=True), "one value"),
    "batch_norm statistics": (lambda: F.batch_norm(X, None, None), "running_mean"),
    "batch_norm channels": (lambda: F.batch_norm(X, X[0, :3], X[0]), "4 elements"),
    "batch_norm eps": (lambda: F.batch_norm(X, None, None, training=True, eps=0.0), "eps"),
    "instance_norm": (lambda: F.instance_norm(X[..., None]), "one value"),
    "group_norm": (lambda: F.group_norm(X, 3), "3 groups"),
    "group_norm of one": (lambda: F.group_norm(X[:1], 4), "one value"),
    "local_response_norm": (lambda: F.local_response_norm(X, 2), "one dimension more"),
    "dropout": (lambda: F.dropout(X, 1.5), "between 0 and 1, but got 1.5"),
    "dropout of integers": (lambda: F.dropout(INDEX), "floating"),
    "dropout1d": (lambda: F.dropout1d(X[0]), "2 or 3 dimensions"),
    "glu": (lambda: F.glu(genesis.ones(3)), "odd"),
    "prelu": (lambda: F.prelu(X, genesis.ones(3)), "a channel each"),
    "rrelu": (lambda: F.rrelu(X, 0.5, 0.1), "at most upper"),
    "softshrink": (lambda: F.softshrink(X, -1.0), "not negative"),
    "hardshrink": (lambda: F.hardshrink(INDEX), "floating"),
    "threshold": (lambda: F.threshold(INDEX, 1, 0.5), "cannot be stored"),
    "elu_ of integers": (lambda: F.elu_(INDEX.clone()), "float32"),
    "attention": (lambda: F.scaled_dot_product_attention(X, W[:, :3], W), r"\(\*, L, E\)"),
    "attention of types": (lambda: F.scaled_dot_product_attention(X, W, W.half()), "one type"),
    "attention of masks": (
        lambda: F.scaled_dot_product_attention(X, W, W, X[:, :3] > 0, is_causal=True),
        "attn_mask is None",
    ),
    "attention of indices": (lambda: F.scaled_dot_product_attention(X, W, W, INDEX), "bool or"),
    "attention of groups": (
        lambda: F.scaled_dot_product_attention(
            X.expand(3, 2, 4), W.expand(2, 3, 4), W.expand(2, 3, 4), enable_gqa=True
        ),
        "multiple",
    ),
    "pad": (lambda: F.pad(X, (1, 1), "mirror"), "mirror"),
    "heads": (
        lambda: F.multi_head_attention_forward(
            X, X, X, 5, 1, None, None, None, None, False, 0.0, W, None
        ),
        "5 wide",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_refused(name):
    call, words = WRONG[name]
    with pytest.raises((ValueError, TypeError, IndexError, RuntimeError), match=words):
        call()


# ---- on a GPU ----


def test_dropout_draws_the_same_numbers_on_a_gpu():
    finished = simulate_script("device_layers.py", SIM_GPU_SCHEDULE="random")
    assert not finished.stderr, finished.stderr
