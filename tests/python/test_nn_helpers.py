"""Spectral norms, fused batch norms, orthogonal weights, modules called with other tensors."""

from __future__ import annotations

import copy
import pickle

import pytest

import genesis
from genesis import nn
from genesis.func import functional_call
from genesis.nn import init, utils
from genesis.utils.checkpoint import checkpoint


def is_near(a, b, tolerance=1e-5):
    return bool((a - b).abs().max() <= tolerance)


@pytest.mark.parametrize("make", [lambda: nn.Linear(4, 3), lambda: nn.ConvTranspose2d(3, 4, 2)])
def test_spectral_norms(make):
    """The largest singular value becomes 1; the estimate goes on in training alone."""
    layer = utils.spectral_norm(make(), n_power_iterations=60)
    names = ["bias", "weight_orig", "weight_u", "weight_v"]
    assert sorted(layer.state_dict()) == names
    x = genesis.randn(2, 4) if isinstance(layer, nn.Linear) else genesis.randn(1, 3, 2, 2)
    layer(x).sum().backward()
    dim = 0 if isinstance(layer, nn.Linear) else 1
    largest = genesis.linalg.svdvals(layer.weight.detach().movedim(dim, 0).flatten(1))[0]
    assert abs(largest.item() - 1) < 1e-4 and layer.weight_orig.grad is not None
    before = layer.weight_u.clone()
    layer.eval()(x)
    assert (layer.weight_u == before).all()
    other = utils.spectral_norm(make())
    other.load_state_dict(layer.state_dict())
    assert is_near(other.eval()(x), layer(x))
    with pytest.raises(RuntimeError, match="two spectral_norm hooks"):
        utils.spectral_norm(other)
    value = other.weight.detach().clone()
    utils.remove_spectral_norm(other)
    assert sorted(other.state_dict()) == ["bias", "weight"] and is_near(other.weight, value)
    assert isinstance(other.weight, nn.Parameter) and not other._forward_pre_hooks
    with pytest.raises(ValueError, match="spectral_norm of 'weight' not found"):
        utils.remove_spectral_norm(other)
    with pytest.raises(ValueError, match="n_power_iterations to be positive"):
        utils.spectral_norm(make(), n_power_iterations=0)
    with pytest.raises(ValueError, match="parameter `bias` is None"):
        utils.spectral_norm(nn.Linear(1, 1, bias=False), "bias")


def trained_norm(norm):
    """A batch norm whose numbers are not those of the beginning."""
    norm.running_mean.uniform_(-1, 1)
    norm.running_var.uniform_(0.5, 2)
    for one in norm.parameters():
        nn.init.uniform_(one, 0.5, 1.5)
    return norm.eval()


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("affine", [False, True])
def test_fused_batch_norms(has_bias, affine):
    """One layer computes what both did."""
    genesis.manual_seed(0)
    x = genesis.randn(2, 4, 5, 5)
    norm = trained_norm(nn.BatchNorm2d(6, affine=affine))
    conv = nn.Conv2d(4, 6, 3, groups=2, bias=has_bias).eval()
    one = utils.fuse_conv_bn_eval(conv, norm)
    assert one is not conv and is_near(one(x), norm(conv(x)))
    assert one.weight.requires_grad and one.bias.requires_grad is has_bias
    back = nn.ConvTranspose2d(4, 6, 3, bias=has_bias).eval()
    assert is_near(utils.fuse_conv_bn_eval(back, norm, transpose=True)(x), norm(back(x)))
    layer, flat = nn.Linear(4, 6, bias=has_bias).eval(), trained_norm(nn.BatchNorm1d(6))
    y = genesis.randn(3, 4)
    assert is_near(utils.fuse_linear_bn_eval(layer, flat)(y), flat(layer(y)))
    with pytest.raises(AssertionError, match="num_features"):
        utils.fuse_linear_bn_eval(layer, nn.BatchNorm1d(5).eval())
    with pytest.raises(AssertionError, match="only for eval"):
        utils.fuse_conv_bn_eval(conv.train(), norm)


@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5)])
def test_orthogonal_weights(shape, kind):
    """They are so from the beginning, and stay so in training; they can be assigned."""
    layer = utils.parametrizations.orthogonal(nn.Linear(*shape), orthogonal_map=kind)

    def is_orthogonal(weight):
        product = weight @ weight.T if weight.shape[0] <= weight.shape[1] else weight.T @ weight
        return is_near(product, genesis.eye(min(shape)))

    first = layer.weight.detach().clone()
    assert is_orthogonal(first)
    sgd = genesis.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        (layer.weight * genesis.arange(15.0)[: first.numel()].reshape(first.shape)).sum().backward()
        sgd.step()
    assert is_orthogonal(layer.weight) and not is_near(layer.weight, first, 1e-2)
    layer.weight = first
    assert is_near(layer.weight, first)
    other = utils.parametrizations.orthogonal(nn.Linear(*shape), orthogonal_map=kind)
    other.load_state_dict(layer.state_dict())
    assert is_near(other.weight, first)


def test_orthogonal_weights_without_a_base():
    """The matrix begins as one of what the weight was, and cannot be assigned."""
    layer = utils.parametrizations.orthogonal(
        nn.Linear(4, 4), orthogonal_map="cayley", use_trivialization=False
    )
    assert is_near(layer.weight @ layer.weight.T, genesis.eye(4))
    with pytest.raises(NotImplementedError, match="not possible to assign"):
        layer.weight = genesis.eye(4)
    for options, words in [
        ({"orthogonal_map": "other"}, "orthogonal_map has to be one of"),
        ({"orthogonal_map": "householder", "use_trivialization": False}, "needs use_trivial"),
        ({"name": "bias"}, "a tensor of 1 dimensions"),
        ({"name": "none"}, "no parameter or buffer"),
    ]:
        with pytest.raises(ValueError, match=words):
            utils.parametrizations.orthogonal(nn.Linear(2, 2), **options)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
        self.b.weight = self.a.weight
        self.register_buffer("count", genesis.tensor(0.0))

    def forward(self, x, times=1):
        self.count = self.count + 1
        return self.b(self.a(x)) * times


def test_modules_called_with_other_tensors():
    """Gradients go to what was given; the module stays as it is, whatever happens."""
    model = Tied()
    kept = copy.deepcopy(model.state_dict())
    given = {"a.weight": 2 * genesis.eye(2), "count": genesis.tensor(5.0)}
    given["a.weight"].requires_grad_()
    made = functional_call(model, given, genesis.ones(1, 2), {"times": 3})
    assert made.tolist() == [[12, 12]] and given["count"].item() == 6
    made.sum().backward()
    assert given["a.weight"].grad is not None and model.a.weight.grad is None
    assert model.a.weight is model.b.weight and isinstance(model.a.weight, nn.Parameter)
    assert all((model.state_dict()[key] == one).all() for key, one in kept.items())
    one = functional_call(
        model, {"a.weight": genesis.eye(2)}, (genesis.ones(1, 2),), tie_weights=False
    )
    assert is_near(one, model.b(genesis.ones(1, 2)))
    parts = ({"a.weight": genesis.eye(2)}, {"count": genesis.tensor(1.0)})
    assert functional_call(model, parts, (genesis.ones(1, 2),)).tolist() == [[1, 1]]
    for wrong, options, words in [
        ({"a.weight": genesis.eye(2), "b.weight": genesis.ones(2, 2)}, {}, "are tied"),
        ((parts[0], parts[0]), {}, "given more than once"),
        ({"other": genesis.eye(2)}, {"strict": True}, "Unexpected key.*other"),
        ({"a.weight": genesis.eye(3)}, {}, "3"),
    ]:
        with pytest.raises((ValueError, RuntimeError), match=words):
            functional_call(model, wrong, (genesis.ones(1, 2),), **options)
        assert model.a.weight is model.b.weight and model.a.weight.shape == (2, 2)
    functional_call(model, {"other": genesis.eye(2)}, (genesis.ones(1, 2),))
    assert not hasattr(model, "other")
    assert utils.stateless.functional_call is functional_call


def test_old_names_of_first_values():
    """They warn, and do the same."""
    for name in (
        *("uniform", "normal", "constant", "eye", "dirac", "orthogonal", "sparse"),
        *("xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal"),
    ):
        given = {"constant": (2.0,), "sparse": (0.5,)}.get(name, ())
        tensor = genesis.empty(*((2, 2, 3) if name == "dirac" else (2, 3)))
        with pytest.warns(FutureWarning, match=f"`nn.init.{name}_`"):
            assert getattr(init, name)(tensor, *given) is tensor


def test_packed_sequences_of_other_types():
    packed = utils.rnn.pack_sequence([genesis.tensor([1.0, 2.0]), genesis.tensor([3.0])])
    kinds = {"long": "int64", "int": "int32", "short": "int16", "char": "int8", "byte": "uint8"}
    for name, kind in kinds.items():
        made = getattr(packed, name)()
        assert type(made) is type(packed) and made.data.dtype == kind
        assert made.data.tolist() == [1, 3, 2]


def test_checkpoints_that_run_to_their_end():
    """Without early_stop, all of the function runs again."""
    calls = []

    def function(x):
        made = x.sin() * x
        calls.append("begin")
        made = made.exp()
        calls.append("end")
        return made

    for early_stop, again in ((True, ["begin"]), (False, ["begin", "end"])):
        calls.clear()
        x = genesis.tensor([1.0, 2.0], requires_grad=True)
        checkpoint(function, x, use_reentrant=False, early_stop=early_stop).sum().backward()
        assert calls == ["begin", "end", *again] and x.grad is not None


def test_layers_with_a_spectral_norm_can_be_copied():
    layer = utils.spectral_norm(nn.Linear(3, 2))
    for one in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert is_near(one.eval()(genesis.ones(1, 3)), layer.eval()(genesis.ones(1, 3)))


# ---- without first values ----


@pytest.mark.parametrize(
    ("make", "args"),
    [
        (nn.Linear, (3, 2)),
        (nn.Conv2d, (2, 3, 3)),
        (nn.LSTM, (3, 4)),
        (nn.Embedding, (5, 3)),
        (nn.MultiheadAttention, (8, 2)),
        (nn.TransformerEncoderLayer, (8, 2)),
    ],
)
def test_skip_init(make, args):
    """No random number is drawn, no initial value written, and modules work as others do."""
    genesis.manual_seed(1)
    before = genesis.get_rng_state().tolist()
    made = utils.skip_init(make, *args, device="cpu", dtype=genesis.float64)
    assert type(made) is make and genesis.get_rng_state().tolist() == before
    genesis.manual_seed(1)
    usual = make(*args, dtype=genesis.float64)
    assert genesis.get_rng_state().tolist() != before  # values are set again afterwards
    assert [(name, one.shape, one.dtype) for name, one in made.named_parameters()] == [
        (name, one.shape, one.dtype) for name, one in usual.named_parameters()
    ]
    made.load_state_dict(usual.state_dict())
    assert all(one.requires_grad for one in made.parameters())


def test_skip_init_writes_nothing():
    class Kept(nn.Module):
        def __init__(self, device=None):
            super().__init__()
            self.weight = nn.Parameter(genesis.full((4,), 7.0, device=device))
            for change in (init.zeros_, init.normal_, init.trunc_normal_, init.ones_):
                assert change(self.weight) is self.weight

    assert utils.skip_init(Kept).weight.tolist() == [7.0] * 4
    assert Kept().weight.tolist() == [1.0] * 4
    with pytest.raises(RuntimeError, match="Expected a Module; got <class 'int'>"):
        utils.skip_init(int)
    with pytest.raises(RuntimeError, match="must support a 'device' arg"):
        utils.skip_init(nn.ReLU)
    with pytest.raises(TypeError):
        utils.skip_init(nn.Linear, 1, device="cpu")
    assert nn.Linear(3, 3).weight.abs().max() > 0 and not init._skipping.is_on
