"""Writing in place to tensors of one memory: bases, views, siblings, detached ones.

Every case is a function of two inputs whose gradients are compared with differences, once and
twice. PyTorch's gradients of the same functions are these, too.
"""

import gc
import weakref

import numpy
import pytest

import genesis
from genesis.autograd import gradcheck, gradgradcheck


def numbers(seed, *sizes):
    values = numpy.random.default_rng(seed).uniform(0.2, 0.9, sizes or (3, 4))
    return genesis.tensor(values, requires_grad=True)


def zeros(*sizes):
    return genesis.zeros(sizes, dtype=genesis.float64)


def column_of_base(x, w):
    y = x * 2
    y[:, 1] += 1
    return y * y * w


def view_is_multiplied(x, w):
    y = x * 2
    v = y.view(-1)
    v.mul_(w.view(-1))
    return y.sin(), v.cos()


def sibling_sees_it(x, w):
    y = x * w
    a = y[0]
    b = y[:, 1]
    a.mul_(3)
    return b.sin(), a.cos(), y * y


def rows_of_a_new_tensor(x, w):
    out = zeros(3, 4)
    for i in range(3):
        out[i] += w[i] * x[i]
    return out * out


def copy_to_a_view_of_a_view(x, w):
    out = zeros(12).view(3, 4)
    out[1].copy_(x[0] * w[0])
    return out.sin(), out.view(-1) + 1


def transposed(x, w):
    y = x * 1.5
    t = y.T
    t[1] = w[:, 1] * 2
    t.exp_()
    return y * w


def mask_of_a_view(x, w):
    y = x * 2
    v = y[1:]
    v[v > 1] = w[0, 0]
    return y * y, v


def base_after_view(x, w):
    y = x * 2
    v = y[0]
    y.mul_(w)
    return v * v, y


def row_is_cleared(x, w):
    y = x * 2
    y[0].zero_()
    return y * w


def every_second_is_filled(x, w):
    y = x * w
    y[:, ::2].fill_(3)
    return y * y


def detached_is_written(x, w):
    d = (x * 2).detach()
    other = d.view(-1)
    d[0] = w[0]
    return other * 2, d.sin() * x


def detached_is_added_to(x, w):
    d = zeros(3, 4).detach()
    d[:, 0] += w[:, 0]
    return d * d * x


def views_of_views(x, w):
    y = x * 2
    v = y.view(2, 6)[1].view(3, 2)[:, 0]
    v.add_(w[0, :3])
    v.mul_(2)
    return y * y, v


def three_writes(x, w):
    y = x.clone()
    y[0] = w[1]
    y[:, 0] = y[:, 1] * 2
    y[2, 2] = 5
    return y * y


def base_of_an_expanded_view(x, w):
    y = x[0] * 2
    e = y.expand(3, 4)
    y.mul_(3)
    return e * w


def a_dimension_more_and_less(x, w):
    y = x * 2
    y.unsqueeze(0).mul_(w)
    y.squeeze().add_(1)
    return y * x


def view_before_the_base_has_history(x, w):
    buffer = zeros(3, 4)
    v = buffer[0]
    buffer.copy_(x * w)
    return v * v, buffer


def rows_of_a_softmax(x, w):
    z = (x * 2).softmax(1)
    y = z * 1
    y[0] *= w[0]
    return y * z


def diagonal_is_written(x, w):
    y = x * 2
    y.diagonal().mul_(w[:, 0])
    return y * y


def split_parts_are_written(x, w):
    first, second = (x * 2).split(2, 1)
    first.mul_(w[:, :2])
    return first * first, second


def the_view_of_a_written_view(x, w):
    y = x * 2
    v = y[1:]
    v.mul_(w[1:])
    u = v[0]
    u.exp_()
    return y, v, u * u


def views_of_expanded_ones(x, w):
    e = x[0].expand(3, 4)
    f = w[:, :1].expand(3, 4)
    return e[1] * f[:, 2:].sum(), e[:, 1:3] * w[:, :2], e.diagonal(), f.T[1], e[0, 2]


CASES = [
    views_of_expanded_ones,
    column_of_base,
    view_is_multiplied,
    sibling_sees_it,
    rows_of_a_new_tensor,
    copy_to_a_view_of_a_view,
    transposed,
    mask_of_a_view,
    base_after_view,
    row_is_cleared,
    every_second_is_filled,
    detached_is_written,
    detached_is_added_to,
    views_of_views,
    three_writes,
    base_of_an_expanded_view,
    a_dimension_more_and_less,
    view_before_the_base_has_history,
    rows_of_a_softmax,
    diagonal_is_written,
    the_view_of_a_written_view,
]
# Detached values stand in these: the first input's gradient is not the difference.
DETACHED = {detached_is_written}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_writes_to_views_have_gradients(case):
    x, w = numbers(0), numbers(1)
    if case in DETACHED:
        held = x.detach()

        def function(w):
            return case(held, w)

        inputs = (w,)
    else:
        function, inputs = case, (x, w)
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


def test_parts_of_a_split_are_written():
    """PyTorch refuses this one; the gradient is the difference's here."""
    assert gradcheck(split_parts_are_written, (numbers(0), numbers(1)))


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.add_(1),
        lambda x: x[0].add_(1),
        lambda x: x.view(-1).mul_(2),
        lambda x: x.T.zero_(),
        lambda x: x.__setitem__(0, 1),
        lambda x: x[1:].__setitem__(0, 1),
        lambda x: x.copy_(x.detach() * 2),
    ],
)
def test_leaves_are_protected(write):
    x = numbers(0)
    before = x.tolist()
    with pytest.raises(RuntimeError, match="leaf that needs a gradient"):
        write(x)
    assert x.tolist() == before
    with genesis.no_grad():
        write(x)
    assert x.tolist() != before and x.is_leaf and x.requires_grad


def test_a_view_made_before_the_leaf_is_protected_too():
    x = zeros(3, 4)
    v = x[0]
    x.requires_grad_()
    with pytest.raises(RuntimeError, match="view of a leaf"):
        v.add_(numbers(1, 4))


def test_what_is_written_is_what_the_view_says_it_was_made_by():
    y = numbers(0) * 2
    v = y[0]
    made_by = v.grad_fn.name()
    y.exp_()
    assert y.grad_fn.name() == "ExpBackward0"
    assert v.requires_grad and v.grad_fn.name() == made_by
    assert not v.is_leaf


def test_a_value_saved_before_the_write_is_noticed():
    x = numbers(0)
    y = x * 2
    z = y.sin()
    y[0] += 1
    with pytest.raises(RuntimeError, match="changed by an operation in place"):
        z.sum().backward()


def test_a_write_through_a_view_is_noticed_by_who_saved_the_base():
    x = numbers(0)
    y = x * 2
    v = y.view(-1)
    z = y.sin()
    v[3] = 1.0
    with pytest.raises(RuntimeError, match="changed by an operation in place"):
        z.sum().backward()


def test_writes_without_gradients_leave_the_history():
    x, w = numbers(0), numbers(1)
    y = x * 2
    v = y[0]
    with genesis.no_grad():
        v.fill_(1)
    (y * w.detach()).sum().backward()
    assert (x.grad == 2 * w.detach()).all()
    assert y[0].tolist() == [1] * 4


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_nothing_is_held_in_a_circle(case):
    """With the collector off, what a graph of written views holds goes with its tensors."""
    gc.collect()
    gc.disable()
    try:
        live = []
        for _ in range(3):
            x, w = numbers(0), numbers(1)
            results = case(x, w)
            results = results if isinstance(results, tuple) else (results,)
            total = sum((one * one).sum() for one in results)
            total.backward(create_graph=True)
            gone = [weakref.ref(one) for one in (x, w, total, *results)]
            del x, w, results, total
            assert not any(one() is not None for one in gone)
            live.append(genesis.memory_stats("cpu").allocated_bytes)
        assert live[2] == live[1]
    finally:
        gc.enable()


@pytest.mark.parametrize("name", ["uniform_", "normal_", "random_", "exponential_", "bernoulli_"])
def test_random_numbers_in_place_have_no_gradient(name):
    x = numbers(1)
    y = x * 2
    getattr(y[0], name)()
    before = y.tolist()
    y.sum().backward()
    assert x.grad.tolist() == [[0.0] * 4, [2.0] * 4, [2.0] * 4]
    assert y.tolist() == before and before[0] != (x[0] * 2).tolist()
    with pytest.raises(RuntimeError, match="leaf"):
        getattr(x, name)()
    with genesis.no_grad():
        getattr(x, name)()
