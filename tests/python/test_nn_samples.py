"""Layers and losses beside plain loops and definitions: what PyTorch's samples found missing."""

from __future__ import annotations

import copy
import itertools
import math
import pickle

import pytest

import genesis
from genesis import linalg, nn
from genesis.autograd import gradcheck
from genesis.nn import functional

# ---- the CTC loss ----


def scores(*shape, seed=0):
    """Numbers of both signs, in float64."""
    count = math.prod(shape)
    made = [math.sin(1.7 * i + seed) * 1.5 for i in range(count)]
    return genesis.tensor(made, dtype=genesis.float64).reshape(shape)


def collapsed(path):
    """What a path says: repeated classes are one, and 0 is nothing."""
    return [one for one, _ in itertools.groupby(path) if one != 0]


def by_paths(log_probs, target):
    """Minus the logarithm of the sum over all paths that say the target."""
    steps, classes = len(log_probs), len(log_probs[0])
    chance = sum(
        math.exp(sum(log_probs[t][one] for t, one in enumerate(path)))
        for path in itertools.product(range(classes), repeat=steps)
        if collapsed(path) == target
    )
    return -math.log(chance) if chance else math.inf


TARGETS = [[1], [], [1, 1], [2, 1], [1, 2, 1], [1, 1, 1], [2, 2, 1]]


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_ctc_is_the_sum_over_all_paths(target):
    log_probs = scores(5, 3).log_softmax(-1)
    right = by_paths(log_probs.tolist(), target)
    made = functional.ctc_loss(
        log_probs, genesis.tensor(target, dtype=genesis.int64), 5, len(target), reduction="sum"
    )
    assert made.item() == pytest.approx(right)


def test_ctc_of_a_batch():
    log_probs = scores(4, 7, 3).log_softmax(-1)
    lengths, inputs = [len(one) for one in TARGETS], [4, 0, 3, 2, 4, 4, 1]
    rows = [[*one, *[9] * (3 - len(one))] for one in TARGETS]  # what is behind a target is not read
    right = [
        by_paths(log_probs[:steps, i].tolist(), target) if steps else math.inf * bool(target)
        for i, (target, steps) in enumerate(zip(TARGETS, inputs, strict=True))
    ]
    right[1] = 0.0  # nothing says nothing
    made = functional.ctc_loss(log_probs, genesis.tensor(rows), inputs, lengths, reduction="none")
    assert made.tolist() == pytest.approx(right)
    flat = genesis.tensor([one for target in TARGETS for one in target])
    lengths = genesis.tensor(lengths)
    for targets in (flat, genesis.stack([flat, flat], 1)[:, 1]):
        made = functional.ctc_loss(log_probs, targets, inputs, lengths, reduction="none")
        assert made.tolist() == pytest.approx(right)
    loss = nn.CTCLoss(zero_infinity=True)(log_probs, flat, inputs, lengths)
    mean = sum(
        one / max(length, 1)
        for one, length in zip(right, lengths.tolist(), strict=True)
        if one < math.inf
    )
    assert loss.item() == pytest.approx(mean / len(TARGETS))


def test_ctc_has_the_gradient_of_differences():
    targets, lengths = genesis.tensor([[1, 1, 2], [2, 0, 0], [1, 2, 1]]), [3, 1, 2]
    for reduction in ("none", "mean", "sum"):
        x = scores(6, 3, 4).requires_grad_()
        assert gradcheck(
            lambda x, reduction=reduction: functional.ctc_loss(
                x.log_softmax(-1), targets, [6, 4, 5], lengths, reduction=reduction
            ),
            (x,),
        )


def test_ctc_of_what_cannot_be():
    """A target that is too long: infinite, and its gradient is no number, or both are 0."""
    for is_zero in (False, True):
        x = scores(2, 1, 3).requires_grad_()
        made = functional.ctc_loss(
            x.log_softmax(-1), genesis.tensor([[1, 1]]), [2], [2], zero_infinity=is_zero
        )
        made.backward()
        assert made.item() == (0.0 if is_zero else math.inf)
        assert x.grad.isnan().all().item() is not is_zero
        assert is_zero == (x.grad == 0).all().item()


def test_ctc_of_other_blanks_and_types():
    log_probs = scores(5, 2, 3).log_softmax(-1)
    turned = log_probs.flip(-1)
    one = functional.ctc_loss(log_probs, genesis.tensor([[1, 2], [2, 1]]), [5, 5], [2, 1])
    other = functional.ctc_loss(turned, genesis.tensor([[1, 0], [0, 1]]), [5, 5], [2, 1], blank=2)
    assert one.item() == pytest.approx(other.item())
    half = functional.ctc_loss(log_probs.half(), genesis.tensor([[1, 2], [2, 1]]), [5, 5], [2, 1])
    assert half.dtype == genesis.float16
    assert half.item() == pytest.approx(one.item(), rel=2e-3)


CTC_WRONG = [
    ((scores(4), genesis.tensor([1]), 4, 1), {}, RuntimeError, "are .T, N, C. or .T, C."),
    ((scores(4, 1, 3), genesis.tensor([1.0]), [4], [1]), {}, TypeError, "targets are integers"),
    ((scores(4, 1, 3), genesis.tensor([3]), [4], [1]), {}, IndexError, "out of 3 classes"),
    ((scores(4, 1, 3), genesis.tensor([1]), [5], [1]), {}, ValueError, "at most 4"),
    ((scores(4, 1, 3), genesis.tensor([1]), [4], [2]), {}, RuntimeError, "a target has 2 classes"),
    ((scores(4, 1, 3), genesis.tensor([1]), [4, 4], [1]), {}, RuntimeError, "must be of size 1"),
    ((scores(4, 2, 3), genesis.tensor([[1]]), [4, 4], [1, 1]), {}, RuntimeError, "they are .N, S."),
    ((scores(4, 1, 3), genesis.tensor([1]), [4], [1]), {"blank": 3}, ValueError, "label range"),
]


@pytest.mark.parametrize("number", range(len(CTC_WRONG)))
def test_ctc_of_wrong_arguments(number):
    arguments, options, kind, words = CTC_WRONG[number]
    with pytest.raises(kind, match=words):
        functional.ctc_loss(*arguments, **options)


def test_ctc_has_no_second_gradient():
    x = scores(4, 1, 3).requires_grad_()
    loss = functional.ctc_loss(x.log_softmax(-1), genesis.tensor([[1]]), [4], [1])
    with pytest.raises(RuntimeError, match="the gradient of ctc_loss has no gradient"):
        genesis.autograd.grad(loss, x, create_graph=True)


# ---- other losses ----


def by_margins(row, target):
    named = list(itertools.takewhile(lambda one: one >= 0, target))
    others = [i for i in range(len(row)) if i not in named]
    return sum(max(0.0, 1 - row[k] + row[c]) for k in named for c in others) / len(row)


def test_multilabel_margins_beside_a_loop():
    x = scores(4, 5)
    target = [[3, 0, -1, 1, 2], [-1, 0, 0, 0, 0], [4, 3, 2, 1, 0], [2, 2, -1, -1, -1]]
    right = [by_margins(row, one) for row, one in zip(x.tolist(), target, strict=True)]
    made = functional.multilabel_margin_loss(x, genesis.tensor(target), reduction="none")
    assert made.tolist() == pytest.approx(right)
    for row, one, each in zip(x, target, right, strict=True):
        assert nn.MultiLabelMarginLoss()(row, genesis.tensor(one)).item() == pytest.approx(each)
    with pytest.raises(RuntimeError, match="input has shape"):
        functional.multilabel_margin_loss(x, genesis.tensor(target[0]))
    with pytest.raises(IndexError):
        functional.multilabel_margin_loss(x[0], genesis.tensor([5, -1, 0, 0, 0])).item()


def test_one_example_may_have_a_target_of_one_element():
    x = scores(4)
    one = functional.multi_margin_loss(x, genesis.tensor(2))
    assert functional.multi_margin_loss(x, genesis.tensor([2])).item() == one.item()
    assert functional.multi_margin_loss(genesis.tensor(3.0), genesis.tensor(0)).item() == 0


def test_triplets_with_a_distance():
    a, b, c = (scores(3, 4, seed=i) for i in range(3))
    one = functional.triplet_margin_with_distance_loss(a, b, c, swap=True, margin=2.0)
    assert one.item() == pytest.approx(
        functional.triplet_margin_loss(a, b, c, swap=True, margin=2.0).item()
    )

    def far(x, y):
        return (x - y).abs().amax(1)

    made = nn.TripletMarginWithDistanceLoss(distance_function=far, margin=0.5, reduction="none")
    right = (0.5 + far(a, b) - far(a, c)).clamp(min=0)
    assert made(a, b, c).tolist() == right.tolist()
    with pytest.raises(ValueError, match="margin must be greater than 0"):
        nn.TripletMarginWithDistanceLoss(margin=0)


def test_the_adaptive_softmax_is_one_of_all_classes():
    genesis.manual_seed(1)
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0, head_bias=True).double()
    x, target = scores(6, 8).requires_grad_(), genesis.tensor([0, 3, 5, 9, 19, 10])
    logs = layer.log_prob(x)
    assert logs.exp().sum(1).tolist() == pytest.approx([1.0] * 6)
    made = layer(x, target)
    right = logs.gather(1, target.unsqueeze(1)).squeeze(1)
    assert made.output.tolist() == pytest.approx(right.tolist())
    assert made.loss.item() == pytest.approx(-right.mean().item())
    assert layer.predict(x).tolist() == logs.argmax(1).tolist()
    assert layer(x[2], target[2]).output.item() == pytest.approx(right[2].item())
    parts = genesis.autograd.grad(made.loss, x)[0], genesis.autograd.grad(-right.mean(), x)[0]
    assert parts[0].flatten().tolist() == pytest.approx(parts[1].flatten().tolist())
    with pytest.raises(RuntimeError, match=r"should be in \[0, 19\]"):
        layer(x, target + 1)
    with pytest.raises(ValueError, match="unique, positive integers"):
        nn.AdaptiveLogSoftmaxWithLoss(8, 20, [10, 4])


# ---- images ----


def by_filter(row, count, reach, weight):
    """A row in another size: each element is a mean, weighted by a filter over its part."""
    scale = len(row) / count
    width = max(scale, 1.0)
    made = []
    for i in range(count):
        center = (i + 0.5) * scale
        weights = [weight(abs(k + 0.5 - center) / width, reach) for k in range(len(row))]
        made.append(sum(w * x for w, x in zip(weights, row, strict=True)) / sum(weights))
    return made


def triangle(t, _):
    return max(0.0, 1 - t)


def cubic(t, _):
    if t < 1:
        return (1.5 * t - 2.5) * t * t + 1
    return ((-0.5 * t + 2.5) * t - 4) * t + 2 if t < 2 else 0.0


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("count", [1, 3, 7, 11, 25])
def test_antialias_is_a_filter(mode, count):
    weight = triangle if mode == "bilinear" else cubic
    x = scores(1, 1, 1, 11)
    right = by_filter(x.flatten().tolist(), count, 0, weight)
    made = functional.interpolate(x, (1, count), mode=mode, antialias=True)
    assert made.flatten().tolist() == pytest.approx(right)
    made = functional.interpolate(x.mT, (count, 1), mode=mode, antialias=True)
    assert made.flatten().tolist() == pytest.approx(right)
    whole = functional.interpolate(genesis.ones(2, 3, 11, 9), (4, count), mode=mode, antialias=True)
    assert whole.shape == (2, 3, 4, count)
    assert genesis.allclose(whole, genesis.ones(1))


def test_images_of_bytes():
    x = genesis.tensor([[[[0, 255, 7, 9]]]], dtype=genesis.uint8)
    made = functional.interpolate(x, (1, 8))
    assert made.dtype == genesis.uint8
    assert made.flatten().tolist() == [0, 0, 255, 255, 7, 7, 9, 9]
    for mode in ("bilinear", "bicubic"):
        for is_smooth in (False, True):
            options = {"size": (1, 6), "mode": mode, "antialias": is_smooth}
            right = functional.interpolate(x.double(), **options).clamp(0, 255)
            made = functional.interpolate(x, **options)
            assert (made.double() - right).abs().max().item() <= 0.5
    with pytest.raises(TypeError, match="convert it to a floating type"):
        functional.interpolate(x.long(), (1, 8))


def test_interpolation_by_its_old_names():
    x = scores(1, 2, 3, 4)
    options = {"scale_factor": 2, "mode": "bilinear", "align_corners": True}
    right = functional.interpolate(x, **options)
    assert genesis.equal(functional.upsample_bilinear(x, scale_factor=2), right)
    assert genesis.equal(functional.upsample_nearest(x, (5, 5)), functional.interpolate(x, (5, 5)))


@pytest.mark.parametrize("kind", ["avg", "max"])
def test_adaptive_pools_keep_a_size_that_is_none(kind):
    x = scores(2, 3, 4, 5, 6)
    flat = x[:, :, 0]
    pool2, pool3 = (getattr(functional, f"adaptive_{kind}_pool{n}d") for n in (2, 3))
    assert genesis.equal(pool2(flat, (None, 2)), pool2(flat, (5, 2)))
    assert genesis.equal(pool3(x, [2, None, None]), pool3(x, (2, 5, 6)))
    layer = getattr(nn, f"Adaptive{kind.capitalize()}Pool2d")((3, None))
    assert genesis.equal(layer(flat[0]), pool2(flat[0], (3, 6)))
    with pytest.raises(TypeError):
        pool2(flat, None)
    with pytest.raises(ValueError, match="it must be from 1"):
        pool2(flat, (-(2**63), 2))
    with pytest.raises(TypeError, match="integer"):
        pool2(flat, (None, 2.5))


def test_maxima_with_their_places():
    x = scores(2, 3, 6)
    for name in ("max_pool1d", "adaptive_max_pool1d"):
        values, places = getattr(functional, f"{name}_with_indices")(x, 2)
        assert genesis.equal(values, x.gather(2, places))
        assert genesis.equal(values, getattr(functional, name)(x, 2))


def test_padding_is_at_most_half_of_a_dilated_window():
    x = genesis.ones(1, 1, 9)
    assert functional.max_pool1d(x, 3, 1, 2, 2).shape == (1, 1, 9)
    with pytest.raises(ValueError, match="3 of 5"):
        functional.max_pool1d(x, 3, 1, 3, 2)


# ---- matrices ----


def test_the_gradient_of_eigenvectors_is_symmetric():
    for side in "LU":
        x = scores(4, 4).requires_grad_()
        values, vectors = linalg.eigh(x, side)
        ((vectors.abs() * scores(4, 4, seed=3)).sum() + values.sum()).backward()
        assert genesis.allclose(x.grad, x.grad.mT)


@pytest.mark.parametrize("p", [0.5, -0.5, -1, 0.25])
def test_norms_of_small_orders_have_no_slope_at_zero(p):
    x = genesis.tensor([0.0, 0.0], requires_grad=True)
    linalg.vector_norm(x, p).backward()
    assert x.grad.tolist() == [0.0, 0.0]
    x = genesis.tensor([0.0, 2.0], requires_grad=True)
    norm = linalg.vector_norm(x, p)
    norm.backward()
    assert x.grad.tolist() == pytest.approx([0.0, 1.0] if p > 0 else [0.0, 0.0])
    assert norm.item() == pytest.approx(2.0 if p > 0 else 0.0)


def test_norms_of_matrices_without_elements():
    for shape in ((0, 0), (0, 3), (3, 0)):
        for order in (1, 2, math.inf, "fro", "nuc"):
            assert linalg.matrix_norm(genesis.zeros(shape), order).item() == 0
    with pytest.raises(ValueError, match="without elements"):
        linalg.matrix_norm(genesis.zeros(3, 0), -1)
    assert linalg.vander(genesis.tensor(3.0), N=3).tolist() == [[1.0, 3.0, 9.0]]


# ---- modules ----


def test_lazy_modules_find_their_sizes():
    genesis.manual_seed(1)
    model = nn.Sequential(
        nn.LazyConv2d(4, 3, groups=1), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(3)
    )
    assert repr(model[3]) == "LazyLinear(in_features=0, out_features=3, bias=True)"
    assert repr(model[3].weight) == "<UninitializedParameter>"
    assert list(model.state_dict())[:2] == ["0.weight", "0.bias"]
    with pytest.raises(RuntimeError, match="an uninitialized parameter"):
        _ = model[3].weight.shape
    fresh, packed = copy.deepcopy(model), pickle.dumps(model)
    optimizer = genesis.optim.SGD(model.parameters(), lr=0.1)
    x = genesis.randn(2, 3, 6, 5)
    model(x).sum().backward()
    optimizer.step()
    assert [type(one) for one in model] == [nn.Conv2d, nn.BatchNorm2d, nn.Flatten, nn.Linear]
    assert repr(model[0]).startswith("Conv2d(3, 4,")
    assert model[1].num_features == 4
    assert model[3].weight.shape == (3, 48)
    assert all(type(one) is nn.Parameter for one in model.parameters())
    fresh.load_state_dict(model.state_dict())
    model.eval()
    fresh.eval()
    assert genesis.equal(fresh(x), model(x))
    assert type(fresh[3]) is nn.Linear
    assert fresh[3].in_features == 48
    assert pickle.loads(packed)(x).shape == (2, 3)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_lazy_layers_are_the_layers(count):
    x = scores(2, 4, *[5] * count).float()
    for kind, arguments in (
        ("Conv", (6, 2, 2)),
        ("ConvTranspose", (6, 2)),
        ("BatchNorm", ()),
        ("InstanceNorm", (1e-5, 0.1, True, True)),
    ):
        lazy = getattr(nn, f"Lazy{kind}{count}d")(*arguments)
        other = getattr(nn, f"{kind}{count}d")(4, *arguments)
        made = lazy(x)
        assert type(lazy) is type(other)
        assert repr(lazy) == repr(other)
        other.load_state_dict(lazy.state_dict())
        if kind.startswith("Conv"):
            assert genesis.equal(other(x), made)
    with pytest.raises(RuntimeError, match="Expected"):
        getattr(nn, f"LazyConv{count}d")(2, 2)(genesis.ones(2))


def test_arguments_by_their_names():
    with pytest.warns(FutureWarning, match="`min_value` is deprecated"):
        assert nn.Hardtanh(min_value=-2.0, max_val=3.0).min_val == -2.0
    assert isinstance(nn.ReLU6(), nn.Hardtanh)
    assert nn.ReLU6().max_val == 6.0
    x = scores(2, 3)
    assert nn.PoissonNLLLoss()(log_input=x, target=x.abs()).shape == ()
    assert nn.RMSNorm(3).double()(x=x).shape == (2, 3)
    for kind in (nn.Softmax, nn.LogSoftmax):
        with pytest.raises(TypeError, match="dim must be an int or None"):
            kind(True)
    for kind in (nn.RNN, nn.GRU, nn.LSTM):
        with pytest.raises(TypeError, match="bias should be of type bool"):
            kind(3, 5, bias=1)
        with pytest.raises(ValueError, match="does not match weight dtype"):
            kind(3, 5)(genesis.ones(2, 4, 3).double())


def test_special_functions_are_those_of_genesis():
    assert genesis.special.expit is genesis.sigmoid
    assert genesis.special.gammaln(genesis.tensor(4.0)).item() == pytest.approx(math.log(6))
    assert set(genesis.special.__all__) <= {*dir(genesis.special)}
