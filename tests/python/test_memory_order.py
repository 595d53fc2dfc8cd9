"""Copies, conversions and tensors like others keep the order of elements: preserve_format."""

import copy
import random

import numpy
import pytest

import genesis
from genesis.autograd import gradcheck, gradgradcheck


def is_dense(shape, strides):
    """Whether the elements fill their memory without gaps."""
    step = 1
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size > 1 and stride != step:
            return False
        step *= max(size, 1)
    return True


def kept(x):
    """The strides of a copy: those of `x`, or those of its order without gaps."""
    shape, strides = x.shape, x.stride()
    if is_dense(shape, strides):
        return strides
    step, found = 1, [0] * x.ndim
    for dim in sorted(range(x.ndim), key=lambda i: (strides[i], shape[i], -i)):
        found[dim] = step
        step *= max(shape[dim], 1)
    return tuple(found)


def of(x):
    """What should have the order of `x`, by name."""
    other = genesis.float32 if x.dtype == genesis.float64 else genesis.float64
    return {
        "clone": x.clone(),
        "genesis.clone": genesis.clone(x),
        "preserve": x.clone(memory_format=genesis.preserve_format),
        "to another dtype": x.to(other),
        "copied": x.to(x.dtype, copy=True),
        "half": x.half(),
        "pending": x.to(other) + 1,
        "copy": copy.copy(x),
        "deepcopy": copy.deepcopy(x),
        "empty_like": genesis.empty_like(x),
        "zeros_like": genesis.zeros_like(x),
        "ones_like": genesis.ones_like(x, dtype=genesis.int16),
        "full_like": genesis.full_like(x, 1),
        "rand_like": genesis.rand_like(x, dtype=genesis.float32),
        "randn_like": genesis.randn_like(x, dtype=genesis.float32),
        "randint_like": genesis.randint_like(x, 2),
    }


COPIES = "clone", "genesis.clone", "preserve", "copied", "copy", "deepcopy"


@pytest.mark.parametrize("seed", range(60))
def test_of_any_layout(seed):
    """Dimensions of 1 have any stride, so that only those of the others are compared."""
    draw = random.Random(seed)
    sizes = [draw.choice([0, 1, 2, 3, 4, 5, 9]) for _ in range(draw.randint(1, 5))]
    dtype = draw.choice([genesis.float32, genesis.float64, genesis.int64, genesis.bfloat16])
    x = genesis.arange(numpy.prod(sizes).item()).reshape(sizes).to(dtype)
    x = x.permute(draw.sample(range(len(sizes)), len(sizes)))
    if draw.random() < 0.5:
        dim = draw.randrange(len(sizes))
        x = x.narrow(dim, 0, (x.shape[dim] + 1) // 2)
    for name, made in of(x).items():
        assert made.shape == x.shape, name
        pairs = zip(made.stride(), kept(x), x.shape, strict=True)
        assert x.numel() == 0 or all(a == b for a, b, size in pairs if size > 1), (
            name,
            x.shape,
            x.stride(),
            made.stride(),
        )
        if name in COPIES:
            assert made.tolist() == x.tolist() and made.data_ptr() != x.data_ptr() or not x.numel()
    assert x.to(genesis.float64).tolist() == x.tolist()
    assert genesis.ones_like(x, dtype=genesis.int64).sum().item() == x.numel()
    contiguous = genesis.zeros_like(x, memory_format=genesis.contiguous_format)
    assert contiguous.is_contiguous()
    assert x.clone(memory_format=genesis.contiguous_format).is_contiguous()
    assert x.contiguous().is_contiguous() and x.contiguous().tolist() == x.tolist()


def test_large_ones_wait_and_join_programs():
    x = genesis.randn(70, 50, 3).permute(2, 0, 1)
    y = (x.double().exp() + x.double()).float()
    assert y.stride() == x.stride() == (1, 150, 3)
    wide = x.numpy().astype("float64")
    assert numpy.array_equal(y.numpy(), (numpy.exp(wide) + wide).astype("float32")) or (
        abs(y.numpy() - (numpy.exp(wide) + wide)).max() < 1e-4
    )
    part = genesis.randn(64, 80).t()[::2]
    assert part.double().stride() == (1, 40) and part.clone().stride() == (1, 40)
    assert numpy.array_equal((part.clone() * 2).numpy(), part.numpy() * 2)
    assert (part.double() + part.contiguous()).tolist() == (part.contiguous().double() * 2).tolist()


def test_broadcast_dimensions():
    x = genesis.arange(6.0).reshape(3, 2).t().expand(4, 2, 3)
    assert x.clone().tolist() == x.tolist() and x.clone().stride() == (6, 1, 2)
    assert genesis.zeros(1).expand(5).clone().stride() == (1,)
    assert genesis.zeros(()).clone().stride() == ()


@pytest.mark.parametrize("gaps", [False, True])
def test_gradients(gaps):
    x = genesis.randn(3, 8, dtype=genesis.float64).t()
    x = (x[::2] if gaps else x).detach().requires_grad_()
    for call in (
        lambda x: x.clone() * x,
        lambda x: x.to(genesis.float64, copy=True).exp(),
        lambda x: x.clone(memory_format=genesis.preserve_format).t() @ x,
    ):
        assert gradcheck(call, (x,)) and gradgradcheck(call, (x,))
    x.float().sum().backward()
    assert x.grad.dtype == genesis.float64 and (x.grad == 1).all()


def test_optimizers_and_modules_keep_it():
    weight = genesis.nn.Parameter(genesis.randn(4, 3).t())
    other = genesis.nn.Parameter(weight.detach().contiguous())
    for one in (weight, other):
        optimizer = genesis.optim.Adam([one], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (one**2).sum().backward()
            optimizer.step()
    assert optimizer.state[other]["exp_avg"].shape == (3, 4)
    assert weight.stride() == (1, 3) and weight.tolist() == other.tolist()
    net = genesis.nn.Module()
    net.weight = weight
    assert copy.deepcopy(net).weight.stride() == (1, 3)
    assert net.half().weight.stride() == (1, 3)
