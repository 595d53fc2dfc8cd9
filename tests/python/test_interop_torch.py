"""Tensors beside PyTorch's on the CPU: shared memory, and functions of either on the other's."""

import gc

import pytest

import genesis
from genesis import Tensor

torch = pytest.importorskip("torch")

DTYPES = [
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64"),
]


def allocated():
    gc.collect()
    genesis.flush()
    return genesis.memory_stats().allocated_bytes


# ---- memory ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (0, 3)])
def test_memory_is_shared_both_ways(dtype, shape):
    there = torch.ones(shape, dtype=getattr(torch, dtype))
    for one in (there, there.T if there.ndim == 2 else there):
        x = genesis.from_dlpack(one)
        assert str(x.dtype) == f"genesis.{dtype}" and x.shape == tuple(one.shape)
        back = torch.from_dlpack(x)
        assert back.dtype == one.dtype and back.shape == one.shape
        if one.numel():
            assert x.strides == one.stride() == back.stride()
            assert x.data_ptr() == one.data_ptr() == back.data_ptr()
            x.zero_()
            assert not one.any()
            one.fill_(1)
            assert x.all().item() and genesis.as_tensor(one).data_ptr() == one.data_ptr()


def test_torch_takes_tensors_without_a_copy():
    x = genesis.arange(6).reshape(2, 3).float() + 1
    for take in (torch.as_tensor, torch.from_dlpack, torch.asarray, torch.utils.dlpack.from_dlpack):
        assert take(x).data_ptr() == x.data_ptr()
    assert torch.from_dlpack(x.__dlpack__()).data_ptr() == x.data_ptr()
    assert torch.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    assert torch.from_numpy(x.numpy()).data_ptr() == x.data_ptr()
    assert torch.tensor(x.tolist()).tolist() == x.tolist()


def test_either_may_go_first():
    before = allocated()
    x = genesis.full((1000,), 3)
    there = torch.from_dlpack(x)
    del x
    assert (there == 3).all() and allocated() > before
    del there
    assert allocated() == before
    there = torch.full((1000,), 4)
    x = genesis.from_dlpack(there)
    del there
    gc.collect()
    assert (x == 4).all().item()


def test_exchanges_leak_nothing():
    x, there = genesis.ones(64), torch.ones(64)
    before = allocated()
    for _ in range(2000):
        a, b, c = torch.from_dlpack(x), genesis.from_dlpack(there), torch.add(x, there)
        del a, b, c
    assert allocated() == before


def test_what_cannot_be_shared_is_refused():
    for wrong, error, words in [
        (torch.ones(2, requires_grad=True), BufferError, "require gradient"),
        (torch.ones(2, dtype=torch.complex64), TypeError, "complex64 have no dtype here"),
        (torch.eye(2).to_sparse(), BufferError, "sparse|strided"),
    ]:
        with pytest.raises(error, match=words):
            genesis.as_tensor(wrong)
        with pytest.raises(error, match=words):
            genesis.add(genesis.ones(2), wrong)


# ---- operators ----


def test_operators_give_tensors():
    x, there = genesis.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[4.0, 3.0], [2.0, 1.0]])
    pairs = {
        "add": (x + there, there + x),
        "mul": (x * there, there * x),
        "sub": (x - there, -(there - x)),
        "div": (x / there, 1 / (there / x)),
        "lt": (x < there, there > x),
    }
    for name, (left, right) in pairs.items():
        assert isinstance(left, Tensor) and isinstance(right, Tensor), name
        assert left.shape == (2, 2) and genesis.allclose(left.float(), right.float()), name
    assert isinstance(there @ x, Tensor)
    kept = x
    x += there
    assert x is kept and x.tolist() == [[5, 5], [5, 5]]
    kept = there
    there += x
    assert there is kept and there.tolist() == [[9, 8], [7, 6]]
    assert genesis.add(x, there).tolist() == [[14, 13], [12, 11]]
    x.copy_(there)
    assert x.tolist() == there.tolist()
    half = torch.ones(2, dtype=torch.bfloat16) + genesis.ones(2, dtype=genesis.bfloat16)
    assert half.dtype == genesis.bfloat16


def test_gradients_stay_with_torch():
    x, weight = genesis.tensor([1.0, 2.0]), torch.ones(2, requires_grad=True)
    for product in (x * weight, weight * x):
        assert isinstance(product, torch.Tensor) and product.requires_grad
        weight.grad = None
        product.sum().backward()
        assert weight.grad.tolist() == [1, 2]
    layer = torch.nn.Linear(2, 3)
    assert layer(x).requires_grad
    with torch.no_grad():
        assert isinstance(layer(x), Tensor)


# ---- functions ----


def test_functions_give_tensors():
    x = genesis.arange(6).reshape(2, 3).float()
    there = torch.arange(6).reshape(2, 3).float()
    for function in (
        lambda a: torch.add(a, 1),
        lambda a: torch.sin(a),
        lambda a: torch.sum(a, dim=1),
        lambda a: torch.cat([a, a]),
        lambda a: torch.stack((a, there)),
        lambda a: torch.nn.functional.softmax(a, dim=1),
        lambda a: torch.nn.functional.layer_norm(a, (3,)),
        lambda a: torch.matmul(a, a.T),
        lambda a: torch.einsum("ij,kj->ik", a, a),
        lambda a: torch.where(a > 2, a, there),
        lambda a: torch.zeros_like(a),
        lambda a: torch.linalg.norm(a),
    ):
        made, expected = function(x), function(there)
        assert isinstance(made, Tensor) and made.shape == tuple(expected.shape)
        assert torch.allclose(torch.from_dlpack(made), expected)
    values, indices = torch.max(x, dim=1)
    assert values.tolist() == [2, 5] and indices.dtype == genesis.int64
    assert type(torch.max(x, dim=1)).__name__ == "max"
    parts = torch.split(x, 1)
    assert type(parts) is tuple and all(isinstance(part, Tensor) for part in parts)
    assert torch.numel(x) == 6 and torch.equal(x, there) is True
    assert torch.complex(x, x).dtype == torch.complex64  # there is no such dtype


def test_functions_copy_no_inputs():
    x = genesis.arange(6).float()
    view = torch.narrow(x, 0, 2, 3)
    assert view.data_ptr() == x.data_ptr() + 8 and view.tolist() == [2, 3, 4]
    view.zero_()
    assert x.tolist() == [0, 1, 0, 0, 0, 5]


def test_out_and_in_place_come_back_as_they_were():
    x, out, there = genesis.ones(3), genesis.zeros(3), torch.zeros(3)
    assert torch.add(x, 1, out=out) is out and out.tolist() == [2, 2, 2]
    assert torch.add(x, 1, out=there) is there and there.tolist() == [2, 2, 2]
    assert torch.nn.functional.relu(x, inplace=True) is x
    assert there.add_(x) is there and there.tolist() == [3, 3, 3]
    torch.nn.init.constant_(x, 7)
    assert x.tolist() == [7, 7, 7]


def test_what_waits_is_computed_first():
    x = genesis.ones(100)
    y = x + 1
    assert torch.sum(y).item() == 200
    z = torch.mul(y, 2) + y
    y += 1
    assert z.tolist() == [6] * 100


def test_other_classes_have_their_turn():
    class Other:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "other"

    assert torch.add(genesis.ones(2), Other()) == "other"
