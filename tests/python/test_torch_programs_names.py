"""Names that whole programs of PyTorch use: older ones, gradients as functions, one device for all.

Numbers were recorded with PyTorch.
"""

from __future__ import annotations

import copy

import pytest

import genesis
from genesis import nn
from genesis.autograd import Variable, grad
from genesis.func import functional_call, grad_and_value, hessian, jacrev
from genesis.nn import functional as F  # noqa: N812


def test_tensor_is_called():
    assert genesis.Tensor().shape == (0,) and genesis.Tensor(2, 3).shape == (2, 3)
    assert genesis.Tensor(4).dtype == genesis.float32
    assert genesis.Tensor([[1, 2], [3, 4]]).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert genesis.Tensor([1, 2]).dtype == genesis.float32
    assert genesis.Tensor(range(3)).tolist() == [0, 1, 2] and genesis.Tensor([]).shape == (0,)
    assert genesis.Tensor((1.5, 2)).tolist() == [1.5, 2] and genesis.Tensor(2, device="cpu").ndim
    x = genesis.tensor([1, 2])
    assert genesis.Tensor(x).dtype == genesis.int64
    genesis.set_default_dtype(genesis.float64)
    assert genesis.Tensor([1]).dtype == genesis.Tensor(1).dtype == genesis.float64
    genesis.set_default_dtype(genesis.float32)


@pytest.mark.parametrize("given", [2.5, True, None, "ab", b"ab", {1: 2}])
def test_what_tensor_is_not_made_of(given):
    with pytest.raises(TypeError, match="Tensor: sizes, or one sequence or tensor of elements"):
        genesis.Tensor(given)


def test_refused_calls_of_tensor():
    with pytest.raises(TypeError, match="may be a shape or elements"):
        genesis.Tensor((2, 3))
    with pytest.raises(TypeError, match="may be a shape or elements"):
        genesis.Tensor(genesis.ones(2).shape)
    with pytest.raises(TypeError, match="unexpected keyword argument 'dtype'"):
        genesis.Tensor(2, dtype=genesis.int64)
    with pytest.raises(ValueError, match="Tensor: the shape"):
        genesis.Tensor(-1)
    with pytest.raises(TypeError, match="Tensor"):
        genesis.Tensor(2, [3])


def test_tensor_shares_an_array_of_its_type():
    numpy = pytest.importorskip("numpy")
    same, other = numpy.ones(3, dtype="float32"), numpy.ones(3)
    x, y = genesis.Tensor(same), genesis.Tensor(other)
    same[0] = other[0] = 7
    assert x.tolist() == [7, 1, 1] and y.tolist() == [1, 1, 1] and y.dtype == genesis.float32
    assert genesis.Tensor(numpy.int64(3)).shape == (3,)


def test_variables():
    x = genesis.ones(2)
    y = Variable(x, requires_grad=True)
    assert isinstance(x, Variable) and y.requires_grad and not x.requires_grad
    x[0] = 3
    assert y.tolist() == [3, 1] and not Variable(y * 2).requires_grad
    assert Variable().shape == (0,)
    with pytest.raises(TypeError, match="Variable: data is a Tensor"):
        Variable([1.0])


def test_arguments_of_grad():
    x, unused = genesis.ones(2, requires_grad=True), genesis.ones(3, requires_grad=True)
    (found,) = grad((x * x).sum(), x, None, True, True, True, True)
    assert found.tolist() == [2, 2] and found.requires_grad
    assert grad(x.sum(), (x, unused), only_inputs=True, allow_unused=True)[1] is None
    zeros = grad(x.sum(), (x, unused), materialize_grads=True)[1]
    assert zeros.tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError):
        grad(x.sum(), unused)
    with pytest.raises(NotImplementedError, match="is_grads_batched"):
        grad(x.sum(), x, is_grads_batched=True)
    with pytest.raises(NotImplementedError, match="only_inputs"):
        grad(x.sum(), x, only_inputs=False)
    with pytest.raises(ValueError, match="materialize_grads"):
        grad(x.sum(), x, allow_unused=False, materialize_grads=True)


def test_spectral_norm():
    layer = nn.Linear(3, 2, bias=False)
    layer.weight.data = genesis.tensor([[1.0, 2.0, 3.0], [-1.0, 0.5, 2.0]])
    assert nn.utils.spectral_norm(layer) is layer
    layer.weight_u.copy_(genesis.tensor([0.6, 0.8]))
    layer.weight_v.copy_(genesis.tensor([0.0, 0.6, 0.8]))
    y = layer(genesis.tensor([1.0, -1.0, 2.0]))
    y.sum().backward()
    assert y.tolist() == pytest.approx([1.2271391, 0.6135696], abs=1e-6)
    expected = [[0.2660994, -0.4108003, 0.1394391], [0.2576428, -0.3431479, 0.2832004]]
    for row, one in zip(layer.weight_orig.grad.tolist(), expected, strict=True):
        assert row == pytest.approx(one, abs=1e-5)
    assert sorted(layer.state_dict()) == ["weight_orig", "weight_u", "weight_v"]
    layer.eval()
    shown = layer(genesis.ones(3))
    assert shown.tolist() == pytest.approx([1.4725668, 0.3681418], abs=1e-5)
    with pytest.raises(RuntimeError, match="Cannot register two spectral_norm hooks"):
        nn.utils.spectral_norm(layer)
    nn.utils.remove_spectral_norm(layer)
    assert list(layer.state_dict()) == ["weight"] and type(layer.weight) is nn.Parameter
    assert layer(genesis.ones(3)).tolist() == pytest.approx(shown.tolist())
    with pytest.raises(ValueError, match="not found"):
        nn.utils.remove_spectral_norm(layer)
    with pytest.raises(ValueError, match="n_power_iterations"):
        nn.utils.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)
    assert nn.utils.spectral_norm(nn.ConvTranspose2d(2, 5, 3)).weight_u.shape == (5,)


def test_triplets_with_a_distance():
    def city(x, y):
        return (x - y).abs().sum(-1)

    three = [
        genesis.tensor([[0.0, 1.0], [2.0, 3.0]]),
        genesis.tensor([[1.0, 1.0], [2.0, 2.0]]),
        genesis.tensor([[0.5, 1.0], [0.0, 3.0]]),
    ]
    loss = nn.TripletMarginWithDistanceLoss(distance_function=city, reduction="none")
    assert loss(*three).tolist() == [1.5, 0.0]
    assert F.triplet_margin_with_distance_loss(*three).item() == pytest.approx(0.75)
    with pytest.raises(ValueError, match="greater than 0"):
        nn.TripletMarginWithDistanceLoss(margin=0)
    with pytest.raises(ValueError, match="greater than 0"):
        F.triplet_margin_with_distance_loss(*three, margin=-1.0)


def test_data_parallel_on_one_device():
    layer = nn.Linear(2, 3)
    model = nn.DataParallel(layer, device_ids=["cpu"])
    x = genesis.ones(4, 2)
    assert model(x).tolist() == layer(x).tolist() and model.module is layer
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    assert nn.parallel.data_parallel(layer, (x,)).tolist() == layer(x).tolist()
    with pytest.warns(UserWarning, match="computes on one device"):
        nn.DataParallel(layer, device_ids=["cpu", "cpu"])

    class Named(nn.Module):
        def forward(self, batch, scale=1):
            return batch["x"][0] * scale

    wrapped = nn.DataParallel(Named(), ["cpu"])
    assert wrapped({"x": [genesis.ones(2)]}, scale=3).tolist() == [3, 3]


def test_ways_to_attend():
    from genesis.nn.attention import SDPBackend, sdpa_kernel

    q = genesis.randn(1, 2, 4, 8)
    plain = F.scaled_dot_product_attention(q, q, q)
    with sdpa_kernel(SDPBackend.MATH):
        assert not genesis.backends.cuda.flash_sdp_enabled()
        assert F.scaled_dot_product_attention(q, q, q).tolist() == plain.tolist()
    assert genesis.backends.cuda.flash_sdp_enabled()
    with pytest.raises(TypeError, match="SDPBackend"), sdpa_kernel([]):
        pass


def test_functional_call():
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    x = genesis.tensor([[1.0, -2.0]])
    before = copy.deepcopy(model.state_dict())
    other = {name: (one * 2).detach().requires_grad_() for name, one in model.named_parameters()}
    twice = copy.deepcopy(model)
    twice.load_state_dict(other)
    y = functional_call(model, other, x)
    assert y.tolist() == twice(x).tolist()
    y.sum().backward()
    assert all(one.grad is not None for one in other.values())
    assert all(one.grad is None for one in model.parameters())
    assert all((one == before[name]).all() for name, one in model.state_dict().items())
    assert all(type(one) is nn.Parameter for one in model.parameters())
    parts = ({"0.bias": other["0.bias"]}, {"2.bias": other["2.bias"]})
    assert functional_call(model, parts, (x,)).shape == (1, 1)
    with pytest.raises(ValueError, match="'0.bias' is given more than once"):
        functional_call(model, (parts[0], parts[0]), x)
    with pytest.raises(RuntimeError, match="Missing key"):
        functional_call(model, parts, x, strict=True)
    with pytest.raises(TypeError, match="'0.bias' is a list, not a tensor"):
        functional_call(model, {"0.bias": [0.0]}, x)
    with pytest.raises(ValueError):  # from forward(): the parameters are back
        functional_call(model, other, genesis.ones(5, 5))
    assert all(type(one) is nn.Parameter for one in model.parameters())


def test_functional_call_with_tied_weights():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(genesis.zeros(2))
            self.b = self.a
            self.register_buffer("c", genesis.zeros(2))

        def forward(self, x):
            self.c.add_(1)
            return self.a + self.b + x

    module, ones, zeros = Tied(), genesis.ones(2), genesis.zeros(2)
    assert functional_call(module, {"b": ones}, zeros).tolist() == [2, 2]
    assert functional_call(module, {"a": ones}, zeros, tie_weights=False).tolist() == [1, 1]
    with pytest.raises(ValueError, match="tied"):
        functional_call(module, {"a": ones, "b": zeros}, zeros)
    own = genesis.zeros(2)
    module.c.zero_()
    functional_call(module, {"c": own}, zeros)
    assert own.tolist() == [1, 1] and module.c.tolist() == [0, 0]


def test_gradients_as_functions():
    def cube(x):
        return (x**3).sum()

    x = genesis.tensor([1.0, 2.0])
    assert genesis.func.grad(cube)(x).tolist() == [3, 12]
    assert not genesis.func.grad(cube)(x).requires_grad
    assert genesis.func.grad(genesis.func.grad(cube))(genesis.tensor(2.0)).item() == 12
    assert hessian(cube)(x).tolist() == [[6, 0], [0, 12]]
    assert jacrev(lambda a, b: a * b, argnums=1)(x, x).tolist() == [[1, 0], [0, 2]]
    gradients, value = grad_and_value(lambda a, b: (a * b).sum(), argnums=(0, 1))(x, 2 * x)
    assert [one.tolist() for one in gradients] == [[2, 4], [1, 2]] and value.item() == 10
    tree = {"w": x, "other": [genesis.zeros(2)]}
    found, (value, aux) = grad_and_value(lambda t: (cube(t["w"]), "aux"), has_aux=True)(tree)
    assert found["w"].tolist() == [3, 12] and found["other"][0].tolist() == [0, 0]
    assert value.item() == 9 and aux == "aux"
    y = genesis.tensor([1.0, 2.0], requires_grad=True)
    genesis.func.grad(cube)(y).sum().backward()
    assert y.grad.tolist() == [6, 12]
    with genesis.no_grad():
        assert genesis.func.grad(cube)(y).tolist() == [3, 12]
    with pytest.raises(RuntimeError, match="one element"):
        genesis.func.grad(lambda a: a)(x)
    with pytest.raises(RuntimeError, match="there is no argument 1"):
        genesis.func.grad(cube, argnums=1)(x)


def test_two_backward_passes_through_what_saves_nothing():
    """Two losses may share views, sums and the like of a parameter, without retain_graph."""
    makes = [
        lambda x: x.expand(3, 4),
        lambda x: x.view(2, 2).t(),
        lambda x: 1 - x,
        lambda x: x.mean(),
        lambda x: genesis.cat([x, x.flip(0)]),
        lambda x: x[1:].sum(),
        lambda x: F.pad(x, (1, 1)),
    ]
    for make in makes:
        x = genesis.ones(4, requires_grad=True)
        y = make(x)
        (y * 1.5).sum().backward()
        first = x.grad.clone()
        (y * 3.0).sum().backward()
        assert x.grad.tolist() == (first * 3).tolist()
    x = genesis.ones(4, requires_grad=True)
    y = x.exp().view(2, 2)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="walked before"):
        y.sum().backward()
