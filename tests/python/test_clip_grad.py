"""Clipping of gradients: norms, values, and what is no number."""

from __future__ import annotations

import math
import re

import pytest

import genesis
from genesis.nn.utils import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)

GRADS = [[[3.0, -4.0], [0.5, 1.0]], [2.0, -6.0, 0.25], 7.0]


def parameters(dtype=genesis.float32):
    """Some with gradients, and one without."""
    made = []
    for grad in GRADS:
        value = genesis.tensor(grad, dtype=dtype)
        made.append(genesis.zeros_like(value).requires_grad_())
        made[-1].grad = value
    return [*made, genesis.zeros(3, requires_grad=True)]


def flat(params):
    """All elements of the gradients."""
    return [x for p in params if p.grad is not None for x in p.grad.double().reshape(-1).tolist()]


def norm_of(values, order):
    """As it is defined."""
    if math.isinf(order):
        return max(map(abs, values)) if order > 0 else min(map(abs, values))
    if order == 0:
        return float(sum(x != 0 for x in values))
    return sum(abs(x) ** order for x in values) ** (1 / order)


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.float64, genesis.bfloat16])
@pytest.mark.parametrize("order", [2, 1, 3.0, 0.5, math.inf, -math.inf, 0])
def test_norms(order, dtype):
    """Of all elements; gradients are scaled to it if it is too large."""
    params = parameters(dtype)
    before = flat(params)
    right = norm_of(before, order)
    total = clip_grad_norm_(params, max_norm=1.5, norm_type=order)
    assert total.shape == ()
    assert total.item() == pytest.approx(right, rel=1e-6)
    factor = min(1.0, 1.5 / (right + 1e-6))
    tolerance = 1e-2 if dtype is genesis.bfloat16 else 1e-6
    assert flat(params) == pytest.approx([x * factor for x in before], rel=tolerance)
    assert params[-1].grad is None


def test_small_gradients_stay():
    """To the bit, and with their version."""
    params = parameters()
    before = flat(params)
    assert clip_grad_norm_(params, 1e9).item() == pytest.approx(norm_of(before, 2))
    assert flat(params) == before


def test_one_tensor_and_generators():
    """Are parameters, too."""
    x = parameters()[0]
    assert clip_grad_norm_(x, 1.0).item() == pytest.approx(math.sqrt(26.25))
    assert clip_grad_norm_((p for p in parameters()), math.inf).item() > 1
    with pytest.warns(UserWarning, match="empty generator"):
        assert clip_grad_norm_((p for p in ()), 1.0).item() == 0
    assert clip_grad_norm_([], 1.0).item() == 0
    assert clip_grad_norm_([genesis.ones(1, requires_grad=True)], 1.0).item() == 0
    with pytest.warns(FutureWarning, match="deprecated"):
        clip_grad_norm(x, 1.0)


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_norms_that_are_no_numbers(value):
    """An error if that is asked for; else what multiplying gives."""
    params = parameters()
    params[1].grad[0] = value
    words = re.escape("The total norm of order 2.0 for gradients from `parameters` is non-finite")
    with pytest.raises(RuntimeError, match=words):
        clip_grad_norm_(params, 1.0, error_if_nonfinite=True)
    assert params[0].grad.tolist() == GRADS[0]
    clip_grad_norm_(params, 1.0)
    assert params[0].grad.isnan().all() if math.isnan(value) else params[0].grad.eq(0).all()


def test_the_parts():
    """A norm first, and clipping by it."""
    params = parameters()
    before = flat(params)
    total = get_total_norm([p.grad for p in params if p.grad is not None])
    clip_grads_with_norm_(params, 2.0, total)
    assert norm_of(flat(params), 2) == pytest.approx(2, rel=1e-5)
    assert get_total_norm(params[0].grad).item() == pytest.approx(norm_of(flat(params[:1]), 2))
    assert get_total_norm([]).item() == 0
    assert total.item() == pytest.approx(norm_of(before, 2))
    clip_grads_with_norm_([], 1.0, total)


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.float64, genesis.bfloat16])
def test_values(dtype):
    """Each element by itself; NaN stays."""
    params = parameters(dtype)
    params[1].grad[2] = math.nan
    clip_grad_value_(params, 2)
    assert params[0].grad.tolist() == [[2, -2], [0.5, 1]]
    assert params[1].grad.tolist()[:2] == [2, -2] and math.isnan(params[1].grad[2].item())
    assert params[2].grad.item() == 2
    clip_grad_value_(params[0], 1.0)
    assert params[0].grad.tolist() == [[1, -1], [0.5, 1]]
    clip_grad_value_([], 1.0)


def test_gradients_are_the_same_tensors():
    """Clipping is in place, whatever the layout."""
    x = genesis.zeros(3, 2, requires_grad=True)
    grad = genesis.arange(6.0).reshape(2, 3).T
    x.grad = grad
    clip_grad_norm_(x, 1.0)
    assert x.grad is grad
    assert grad.pow(2).sum().item() == pytest.approx(1, rel=1e-5)


def test_gradients_of_gradients():
    """A gradient that was made with a graph is clipped without one."""
    x = genesis.tensor([3.0], requires_grad=True)
    (x**2).sum().backward(create_graph=True)
    clip_grad_norm_(x, 1.0)
    assert x.grad.item() == pytest.approx(1, rel=1e-5)


def test_in_training():
    """Clipped gradients are what the optimizer takes."""
    x = genesis.tensor([3.0, 4.0], requires_grad=True)
    optimizer = genesis.optim.SGD([x], lr=1.0)
    (x * x).sum().backward()
    clip_grad_norm_([x], 5.0)
    optimizer.step()
    assert x.tolist() == pytest.approx([0, 0], abs=1e-5)
