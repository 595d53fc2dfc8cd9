"""Gradients from Python: leaves, backward(), the mode, genesis.autograd, and what refuses."""

import copy
import gc
import pickle
import threading
import weakref

import numpy
import pytest

import genesis
from genesis.autograd import GradcheckError, backward, grad, gradcheck, gradgradcheck


def leaf(*values):
    return genesis.tensor(list(values), requires_grad=True)


# ---- leaves ----


def test_leaves_and_results():
    x = leaf(1.0, 2.0)
    assert x.requires_grad and x.is_leaf and x.grad is None and x.grad_fn is None
    y = x.exp()
    assert y.requires_grad and not y.is_leaf and y.grad is None
    assert y.grad_fn.name() == "ExpBackward0" and repr(y.grad_fn) == "<ExpBackward0>"
    assert (x * 2).grad_fn.name() == "MulBackward0"
    assert x.log_softmax(0).grad_fn.name() == "LogSoftmaxBackward0"
    plain = genesis.ones(2)
    assert not plain.requires_grad and plain.is_leaf and plain.grad is None
    assert plain.requires_grad_() is plain and plain.requires_grad
    assert not plain.requires_grad_(False).requires_grad
    plain.requires_grad = True
    assert (plain > 0).requires_grad is False


def test_repr():
    x = leaf(1.0)
    assert repr(x) == "tensor([1.], requires_grad=True)"
    assert repr(x.exp() * 0 + 2) == "tensor([2.], grad_fn=<AddBackward0>)"
    assert repr(x.double().exp()).endswith("dtype=genesis.float64, grad_fn=<ExpBackward0>)")
    assert repr(x.detach()) == "tensor([1.])"
    assert repr(genesis.zeros(0, requires_grad=True)).endswith("requires_grad=True)")


def test_every_function_that_makes_tensors_takes_requires_grad():
    one = genesis.ones(2)
    for made in (
        genesis.tensor([1.0], requires_grad=True),
        genesis.zeros(2, requires_grad=True),
        genesis.ones(2, requires_grad=True),
        genesis.empty(2, requires_grad=True),
        genesis.full((2,), 1.5, requires_grad=True),
        genesis.arange(3.0, requires_grad=True),
        genesis.linspace(0, 1, 3, requires_grad=True),
        genesis.eye(2, requires_grad=True),
        genesis.rand(2, requires_grad=True),
        genesis.randn(2, requires_grad=True),
        genesis.zeros_like(one, requires_grad=True),
        one.new_ones(2, requires_grad=True),
    ):
        assert made.requires_grad and made.is_leaf
    assert not genesis.rand(2, requires_grad=False).requires_grad
    with pytest.raises(TypeError):
        genesis.exp(one, requires_grad=True)
    with pytest.raises(RuntimeError, match="only floating types"):
        genesis.arange(3, requires_grad=True)


def test_copies():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    copied = copy.deepcopy(x)
    assert copied.is_leaf and copied.requires_grad and copied.grad.tolist() == [2, 4]
    assert copied.grad is not x.grad
    read = pickle.loads(pickle.dumps(x))
    assert read.requires_grad and read.is_leaf and read.tolist() == [1, 2]
    assert not pickle.loads(pickle.dumps(x.detach())).requires_grad
    with pytest.raises(RuntimeError, match="clone"):
        copy.deepcopy(x * 2)
    assert genesis.tensor(x).requires_grad is False  # a copy of numbers
    assert genesis.as_tensor(x) is x
    assert x.clone().requires_grad and not x.clone().is_leaf


def test_detach_and_data_share_memory():
    x = leaf(1.0, 2.0)
    y = (x * 2).detach()
    assert not y.requires_grad and y.is_leaf
    for view in (x.detach(), x.data):
        assert not view.requires_grad and view._place == x._place
    x.data += 1
    assert x.tolist() == [2, 3] and x.is_leaf
    x.data = genesis.zeros(2)
    assert x.requires_grad and x.tolist() == [0, 0]
    x.data = genesis.zeros(3, dtype=genesis.float64)
    assert x.requires_grad and x.shape == (3,)
    (x * 2).sum().backward()
    assert x.grad.dtype is genesis.float64 and x.grad.tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="data: the tensor has a gradient, which would not fit"):
        x.data = genesis.zeros(2)
    with pytest.raises(ValueError, match="data: a tensor that needs a gradient can become"):
        x.data = genesis.zeros(3, 1)


# ---- backward ----


def test_gradients_accumulate():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 4] and not x.grad.requires_grad
    (x * x).sum().backward()
    assert x.grad.tolist() == [4, 8]
    x.grad = None
    x.sum().backward()
    assert x.grad.tolist() == [1, 1]
    del x.grad
    assert x.grad is None


def test_the_gradient_is_one_object():
    x = leaf(1.0)
    (x * 2).backward()
    first = x.grad
    assert first is x.grad
    there = weakref.ref(first)
    del first
    assert there() is None  # and is made again, of the same memory
    x.grad.zero_()
    assert x.grad.tolist() == [0]
    x.grad = given = genesis.ones(1)
    assert x.grad is given


def test_gradients_are_memory_of_their_own():
    a, b = genesis.ones(3, requires_grad=True), genesis.ones(3, requires_grad=True)
    (a + b).sum().backward()
    a.grad.zero_()
    assert a.grad.tolist() == [0, 0, 0] and b.grad.tolist() == [1, 1, 1]
    given = genesis.ones(3)
    a.grad = None
    (a + 0).backward(given)
    a.grad += 1
    assert given.tolist() == [1, 1, 1]


def test_a_leaf_that_requires_none_keeps_its_gradient():
    x = leaf(1.0, 2.0)
    (x * 3).sum().backward()
    kept = x.grad
    assert x.requires_grad_(False) is x and not x.requires_grad and x.grad is kept
    (x * leaf(1.0, 1.0)).sum().backward()
    assert x.grad.tolist() == [3, 3]
    x.requires_grad = True
    assert x.grad is kept
    (x * 2).sum().backward()
    assert x.grad is kept and kept.tolist() == [5, 5]
    x.detach_()
    assert x.grad is kept and x.detach().grad is None and x.clone().grad is None
    x.data = genesis.zeros(2)
    assert x.grad is kept
    other = copy.deepcopy(x)
    assert other.grad.tolist() == [5, 5] and other.grad is not kept and not other.requires_grad
    x.grad = None
    assert x.grad is None and x.requires_grad_().grad is None


def test_a_result_that_retains_its_gradient_keeps_it():
    y = leaf(1.0, 2.0) * 2
    y.retain_grad()
    (y * y).sum().backward()
    y.detach_()
    assert y.is_leaf and y.grad.tolist() == [4, 8]


def test_a_tensor_that_requires_none_may_be_given_a_gradient():
    x = genesis.ones(2)
    x.grad = given = genesis.tensor([10.0, 20.0])
    assert x.grad is given and not x.requires_grad
    x.requires_grad_()
    (x * 3).sum().backward()
    assert x.grad is given and given.tolist() == [13, 23]
    there = weakref.ref(given)
    del x, given
    assert there() is None
    for wrong in (genesis.ones(3), genesis.ones(2).double()):
        with pytest.raises(RuntimeError, match="the gradient of a tensor of float32"):
            genesis.ones(2).grad = wrong
    frozen = leaf(1.0, 2.0)
    frozen.sum().backward()
    frozen.requires_grad_(False).data = genesis.ones(3)
    with pytest.raises(RuntimeError, match="the gradient of a tensor of float32 and shape"):
        frozen.requires_grad_()
    assert not frozen.requires_grad and frozen.grad.tolist() == [1, 1]


def test_what_is_frozen_is_stepped_and_zeroed():
    frozen, trained = leaf(1.0), leaf(1.0)
    both = genesis.optim.SGD([frozen, trained], lr=0.5)
    (frozen * trained).backward()
    frozen.requires_grad_(False)
    both.step()
    assert frozen.item() == trained.item() == 0.5
    both.zero_grad(set_to_none=False)
    assert frozen.grad.tolist() == [0]
    both.zero_grad()
    assert frozen.grad is None
    layer = genesis.nn.Linear(2, 2)
    layer(genesis.ones(1, 2)).sum().backward()
    layer.requires_grad_(False)
    assert layer.double().weight.grad.dtype == genesis.float64
    assert (layer.weight.grad == 1).all() and not layer.weight.requires_grad
    layer.zero_grad(set_to_none=False)
    assert (layer.weight.grad == 0).all()
    layer.zero_grad()
    assert layer.weight.grad is None


def test_a_gradient_may_be_given():
    x = leaf(1.0, 2.0)
    (x * 3).backward(genesis.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [3, 30]
    (x * 3).backward(gradient=genesis.ones(2))
    assert x.grad.tolist() == [6, 33]


def test_the_graph_is_used_once_unless_it_is_kept():
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward()
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [6, 12]


def test_second_derivative():
    x = leaf(2.0, 3.0)
    (first,) = grad((x**3).sum(), x, create_graph=True)
    assert first.tolist() == [12, 27] and first.requires_grad
    (second,) = grad(first.sum(), x)
    assert second.tolist() == [12, 18] and not second.requires_grad
    y = (x**3).sum()
    y.backward(create_graph=True)
    assert x.grad.requires_grad
    y.backward()  # create_graph keeps the graph


def test_grad_of_several_inputs():
    x, y, unused = leaf(2.0), leaf(5.0), leaf(1.0)
    found = grad(x * y + x, [x, y])
    assert [one.item() for one in found] == [6, 2] and x.grad is None
    with pytest.raises(RuntimeError, match="allow_unused"):
        grad(x * y, (x, unused))
    found = grad(x * y, (x, unused), allow_unused=True)
    assert found[0].item() == 5 and found[1] is None
    middle = x * 2
    assert grad(middle * middle, middle)[0].item() == 8
    found = grad((x * 2, y * 3), (x, y), (genesis.tensor([10.0]), None))
    assert [one.item() for one in found] == [20, 3]


def test_backward_of_several_tensors():
    x = leaf(1.0, 2.0)
    backward([x.sum(), x * x], [None, genesis.ones(2)])
    assert x.grad.tolist() == [3, 5]
    backward(x.sum())
    assert x.grad.tolist() == [4, 6]


def test_errors():
    x = leaf(1.0, 2.0)
    for call, words in (
        (lambda: (x * 2).backward(), "must be given"),
        (lambda: genesis.ones(1).backward(), "needs no gradient"),
        (lambda: (x * 2).backward(genesis.ones(3)), r"shape \(3,\)"),
        (lambda: grad(x.sum(), genesis.ones(2)), "input 0 needs no gradient"),
        (lambda: backward([x.sum()], [None, None]), "1 tensors have 2 gradients"),
        (lambda: setattr(x, "grad", genesis.ones(3)), r"shape \(3,\)"),
        (lambda: setattr(x, "grad", x), "its own gradient"),
        (lambda: setattr(x * 2, "requires_grad", False), "detach"),
        (lambda: genesis.tensor([1]).requires_grad_(), "only floating types"),
        (lambda: x.add_(1), "a leaf that needs a gradient"),
        (lambda: x.unsqueeze_(0), "a leaf that needs a gradient"),
        (lambda: x[:1].t_(), "a view of a leaf"),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()
    for call in (
        lambda: setattr(x, "grad", 3),
        lambda: setattr(x, "requires_grad", 1),
        lambda: x.sum().backward(2.0),
        lambda: grad(x.sum(), [3]),
        lambda: backward([3]),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError, match="an input"):
        grad(x.sum(), [])
    assert x.grad is None and x.tolist() == [1, 2]


def test_a_value_that_was_changed_is_noticed():
    x = leaf(1.0, 2.0)
    weight = genesis.ones(2)
    y = (x * weight).sum()
    weight += 1
    with pytest.raises(RuntimeError, match="in place"):
        y.backward()


def test_memory_is_not_given_away():
    x = leaf(1.0, 2.0)
    for call in (x.numpy, x.__array__, x.__dlpack__, lambda: numpy.asarray(x)):
        with pytest.raises(RuntimeError, match="detach"):
            call()
    with pytest.raises(BufferError, match="detach"):
        memoryview(x)
    assert x.detach().numpy().tolist() == [1, 2]
    assert x.tolist() == [1, 2] and (x * 2).tolist() == [2, 4]
    assert x.sum().item() == 3 and float(x[0]) == 1


def test_numpy_and_indices_keep_the_history():
    x = genesis.ones(2, 3, requires_grad=True)
    (numpy.exp(x)[0].sum() + x[:, ::2].sum() + x[1, 2] + x[..., None][0, 0, 0]).backward()
    e = numpy.float32(numpy.e)
    wanted = numpy.array([[e + 2, e, e + 1], [1, 0, 2]], dtype=numpy.float32)
    assert numpy.allclose(x.grad.numpy(), wanted)
    for row in x:
        assert row.requires_grad


# ---- the mode ----


def test_no_grad_in_all_forms():
    x = leaf(1.0)

    @genesis.no_grad()
    def called(y):
        """What it does."""
        return y * 2

    @genesis.no_grad
    def bare(y):
        return y * 2

    @genesis.no_grad()
    def items(y):
        for _ in range(2):
            yield (y * 2).requires_grad, (yield)

    with genesis.no_grad():
        assert not genesis.is_grad_enabled() and not (x * 2).requires_grad
        assert x.requires_grad
        with genesis.enable_grad():
            assert (x * 2).requires_grad
        assert not genesis.is_grad_enabled()
    assert genesis.is_grad_enabled()
    assert not called(x).requires_grad and called.__doc__ == "What it does."
    assert not bare(x).requires_grad and genesis.is_grad_enabled()
    for item in items(x):
        assert genesis.is_grad_enabled()
        assert item is None or item[0] is False
    with pytest.raises(ZeroDivisionError), genesis.no_grad():
        1 / 0  # noqa: B018
    assert genesis.is_grad_enabled()
    mode = genesis.no_grad()
    with mode, mode:
        pass
    assert genesis.is_grad_enabled()


def test_the_other_modes():
    x = leaf(1.0)
    with genesis.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    assert genesis.is_grad_enabled()
    genesis.set_grad_enabled(False)
    assert not genesis.is_grad_enabled()
    genesis.set_grad_enabled(True)

    @genesis.set_grad_enabled(False)
    def decorated():
        return genesis.is_grad_enabled()

    @genesis.inference_mode
    def inferred():
        return genesis.is_grad_enabled()

    assert genesis.is_grad_enabled() and not decorated() and not inferred()
    with genesis.inference_mode():
        assert not genesis.is_grad_enabled()
        with genesis.inference_mode(False):
            assert genesis.is_grad_enabled()
    assert genesis.autograd.no_grad is genesis.no_grad


def test_each_thread_has_its_own_mode():
    seen = []
    with genesis.no_grad():
        thread = threading.Thread(target=lambda: seen.append(genesis.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_threads_sum_into_one_leaf():
    x = genesis.zeros(100, requires_grad=True)

    def work():
        for _ in range(20):
            (x * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert (x.grad == 160).all()


# ---- training ----


def mlp():
    """Two layers for points of two classes: one inside a circle, one outside."""
    generator = genesis.Generator().manual_seed(1)
    points = genesis.randn(64, 2, generator=generator)
    classes = ((points * points).sum(1) > 1.2).long()
    weights = [
        genesis.randn(2, 16, generator=generator),
        genesis.zeros(16),
        genesis.randn(16, 2, generator=generator) * 0.3,
        genesis.zeros(2),
    ]
    for weight in weights:
        weight.requires_grad_()

    def loss_of():
        hidden = (points @ weights[0] + weights[1]).tanh()
        chances = (hidden @ weights[2] + weights[3]).log_softmax(1)
        return -chances.gather(1, classes.unsqueeze(1)).mean()

    return weights, loss_of


def step(weights, loss, rate=0.5):
    loss.backward()
    with genesis.no_grad():
        for weight in weights:
            weight -= rate * weight.grad
            weight.grad = None


def test_a_small_network_learns():
    weights, loss_of = mlp()
    first = loss_of().item()
    for _ in range(100):
        step(weights, loss_of())
    assert loss_of().item() < first / 3
    assert all(weight.is_leaf and weight.requires_grad for weight in weights)


def test_nothing_is_left_without_the_garbage_collector():
    weights, loss_of = mlp()
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            step(weights, loss_of())
        genesis.flush()
        before = genesis.cpu.memory_stats()["allocated_bytes.all.current"]
        for _ in range(200):
            step(weights, loss_of())
        genesis.flush()
        assert genesis.cpu.memory_stats()["allocated_bytes.all.current"] == before
        for _ in range(20):  # graphs of gradients have no cycles, either
            loss = loss_of()
            found = grad(loss, weights, create_graph=True)
            sum((one * one).sum() for one in found).backward()
            for weight in weights:
                weight.grad = None
        del loss, found
        genesis.flush()
        assert genesis.cpu.memory_stats()["allocated_bytes.all.current"] == before
    finally:
        gc.enable()


# ---- checks ----

MASK = genesis.tensor([[True, False, True], [False, True, True]])
PLACES = genesis.tensor([[0, 2], [1, 0]])


def zeros():
    return genesis.zeros(2, 3, dtype=genesis.float64)


def assigned(x):
    made = zeros()
    made[1] = x[0] * x[1]
    return made


# Public functions, most of them made of others, of one or two tensors of shape (2, 3).
CHECKED = {
    "norm": lambda x: x.norm(),
    "norm of rows": lambda x: x.norm(3, 1),
    "var": lambda x: x.var(),
    "var of rows": lambda x: x.var(1, keepdim=True),
    "std": lambda x: x.std(),
    "var_mean": lambda x: tuple(genesis.var_mean(x)),
    "logsumexp": lambda x: x.logsumexp(1),
    "nan_to_num": lambda x: genesis.nan_to_num(x),
    "cosine_similarity": lambda x, y: genesis.cosine_similarity(x, y),
    "cdist": lambda x, y: genesis.cdist(x, y + 2),
    "addcmul": lambda x, y: genesis.addcmul(x, y, y, value=2),
    "addcdiv": lambda x, y: genesis.addcdiv(x, y, x + 2),
    "outer": lambda x, y: genesis.outer(x[0], y[1]),
    "inner": lambda x, y: genesis.inner(x, y),
    "kron": lambda x, y: genesis.kron(x, y),
    "cross": lambda x, y: genesis.cross(x, y, dim=1),
    "tensordot": lambda x, y: genesis.tensordot(x, y.T, dims=1),
    "einsum": lambda x, y: genesis.einsum("ij,kj->ik", x, y),
    "addmm": lambda x, y: genesis.addmm(x[:, :2], x, y.T, beta=2),
    "matmul": lambda x, y: x @ y.mT,
    "tril": lambda x: x.tril(),
    "trace": lambda x: x.trace(),
    "diagonal": lambda x: x.diagonal(),
    "pad reflect": lambda x: genesis.pad(x, (1, 1), mode="reflect"),
    "diff": lambda x: x.diff(),
    "trapezoid": lambda x: genesis.trapezoid(x),
    "cov": lambda x: genesis.cov(x),
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(0),
    "logcumsumexp": lambda x: x.logcumsumexp(1),
    "cumsum": lambda x: x.cumsum(1),
    "cumprod": lambda x: x.cumprod(1),
    "prod": lambda x: x.prod(1),
    "amax": lambda x: x.amax(1),
    "max": lambda x: x.max(1).values,
    "sort": lambda x: x.sort().values,
    "topk": lambda x: x.topk(2).values,
    "quantile": lambda x: x.quantile(0.3),
    "gather": lambda x: x.gather(1, PLACES),
    "index_select": lambda x: x.index_select(1, PLACES[0]),
    "by a mask": lambda x: x[MASK],
    "by lists": lambda x: x[[0, 1, 0], [2, 0, 2]],
    "by slices": lambda x: x[1:, ::-1],
    "masked_fill": lambda x: x.masked_fill(MASK, 2.0),
    "where": lambda x, y: genesis.where(MASK, x, y),
    "clamp": lambda x: x.clamp(0.3, 0.6),
    "lerp": lambda x, y: genesis.lerp(x, y, 0.3),
    "stack": lambda x, y: genesis.stack([x, y], 1),
    "hstack": lambda x, y: genesis.hstack([x, y]),
    "repeat": lambda x: x.repeat(2, 1),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 1),
    "rot90": lambda x: x.rot90(),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "split": lambda x: x.split(2, 1),
    "meshgrid": lambda x, y: genesis.meshgrid(x[0], y[1]),
    "copysign of a number": lambda x: x.copysign(-1.0),
    "scatter": lambda x: x.scatter(1, PLACES, 5.0),
    "scatter_add": lambda x: x.scatter_add(1, PLACES, x),
    "index_add": lambda x: x.index_add(1, PLACES[:, 0], x[:, :2]),
    "index_copy": lambda x: x.index_copy(1, PLACES[:, 0], x[:, :2]),
    "index_fill": lambda x: x.index_fill(1, PLACES[0], 1.0),
    "index_put": lambda x: x.index_put((PLACES[:, 0],), x[0]),
    "masked_scatter": lambda x: x.masked_scatter(MASK, x),
    "full": lambda x: genesis.full((2,), x.sum()),
    "full_like": lambda x: genesis.full_like(MASK, x.sum(), dtype=genesis.float64),
    "copy_": lambda x: zeros().copy_(x),
    "x[key] = y": assigned,
    "+=": lambda x, y: (x * 2).add_(y).mul_(x),
    "xlogy": lambda x, y: genesis.xlogy(x, y),
    "gelu": lambda x: genesis.gelu(x, approximate="tanh"),
    "softplus": lambda x: genesis.softplus(x, 2.0),
    "roll": lambda x: x.roll(1, 1),
    "pad": lambda x: genesis.pad(x, (1, 1)),
    "block_diag": lambda x: genesis.block_diag(x, x),
    "diag_embed": lambda x: x.diag_embed(),
    "slice_scatter": lambda x: x.slice_scatter(x[:1], 0, 0, 1),
    "select_scatter": lambda x: x.select_scatter(x[0], 0, 1),
    "diagonal_scatter": lambda x: x.diagonal_scatter(x[0, :2]),
    "median": lambda x: x.median(),
    "median of rows": lambda x: x.median(1).values,
    "nanmedian": lambda x: x.nanmedian(),
    "kthvalue": lambda x: x.kthvalue(2).values,
    "mode": lambda x: x.mode().values,
    "copysign": lambda x, y: x.copysign(y - 0.5),
    "div trunc": lambda x, y: genesis.div(x * 5, y, rounding_mode="trunc"),
    "div floor": lambda x, y: genesis.div(x * 5, y, rounding_mode="floor"),
    "digamma": lambda x: x.digamma(),
    "lgamma": lambda x: (x + 1).lgamma(),
    "polygamma": lambda x: genesis.polygamma(2, x),
    "norm of order 0": lambda x: x.norm(0),
    "addmm without input": lambda x: genesis.addmm(x[:, :1], zeros(), zeros().T, beta=0),
    "row of an expanded tensor": lambda x: x[:1].expand(4, 3)[2],
    "part of an expanded tensor": lambda x: x[:1].expand(4, 3)[1:3, ::2].narrow(0, 1, 1),
    "diagonal of an expanded tensor": lambda x: x[:1].expand(3, 3).diagonal(),
    "windows of an expanded tensor": lambda x: x[:1].expand(4, 3).unfold(0, 2, 1),
    "einsum of an expanded tensor": lambda x: genesis.einsum("ii->i", x[:1].expand(3, 3)),
    "cross of expanded tensors": lambda x, y: genesis.cross(x[:1], y, dim=1),
    "t_": lambda x, y: (x * 2).t_() * y.T,
    "views in place": lambda x: (x * 2).unsqueeze_(0).transpose_(0, 2).squeeze_(1) ** 2,
    "cumprod_": lambda x: (x * 1).cumprod_(1),
    "float_power_": lambda x, y: (x * 1).float_power_(y),
    "clamp_": lambda x, y: (x * 1).clamp_(y, y + 0.2),
    "copysign_": lambda x: (x * 1).copysign_(-1.0),
}

# These have no gradient yet, and say so. When one has, it moves to CHECKED.
REFUSED = {
    "unique": lambda x: x.unique(),
    "bincount": lambda x: genesis.bincount(PLACES[0], weights=x[0, :2]),
    "resize_": lambda x: (x * 1).resize_(3, 2),
}


def gradients_of(function, *values):
    """The gradients of lists, and of a sum of the result."""
    leaves = [leaf(*value) for value in values]
    function(*leaves).sum().backward()
    return [one.grad.tolist() for one in leaves]


def test_equal_elements_share_a_gradient():
    assert gradients_of(lambda x: x.median(), [2.0, 1.0, 2.0, 5.0, 2.0]) == [
        [pytest.approx(1 / 3), 0, pytest.approx(1 / 3), 0, pytest.approx(1 / 3)]
    ]
    nan = float("nan")
    assert gradients_of(lambda x: x.median(), [1.0, nan, nan]) == [[0, 0.5, 0.5]]
    assert gradients_of(lambda x: x.nanmedian(), [nan, 3.0, 3.0, 4.0]) == [[0, 0.5, 0.5, 0]]
    assert gradients_of(lambda x: x.max(), [1.0, nan, nan]) == [[0, 0.5, 0.5]]
    assert gradients_of(lambda x: x.amax(0), [4.0, 4.0, 1.0]) == [[0.5, 0.5, 0]]


def test_bounds_take_the_gradient_or_a_half():
    """As in PyTorch: a number that is met takes all of it, a tensor half of it."""
    x = [0.0, 1.0, 1.5, 2.0, 3.0]
    for function in (lambda x: x.clamp(1, 2), lambda x: genesis.hardtanh(x, 1, 2)):
        assert gradients_of(function, x) == [[0, 0, 1, 0, 0]]
    assert gradients_of(lambda x: x.clamp(min=1), x) == [[0, 0, 1, 1, 1]]
    assert gradients_of(lambda x: x.clamp_max(2), x) == [[1, 1, 1, 0, 0]]
    ones, twos = [1.0] * 5, [2.0] * 5
    bounds = gradients_of(lambda x, low, high: x.clamp(low, high), x, ones, twos)
    assert bounds == [[0, 0.5, 1, 0.5, 0], [1, 0.5, 0, 0, 0], [0, 0, 0, 0.5, 1]]
    assert gradients_of(genesis.clamp_min, x, ones) == [[0, 0.5, 1, 1, 1], [1, 0.5, 0, 0, 0]]
    nan = float("nan")
    beside = [[nan, nan, 1.0], [nan, 1.0, nan]]
    assert gradients_of(genesis.fmax, *beside) == [[1, 0, 1], [0, 1, 0]]
    assert gradients_of(genesis.fmin, *beside) == [[1, 0, 1], [0, 1, 0]]


def test_gradients_that_are_zero_are_there():
    for function in (
        genesis.floor,
        genesis.sign,
        lambda x: x**0,
        lambda x: x.norm(0),
        lambda x: genesis.ones(2).copysign(x),
        lambda x: genesis.div(genesis.ones(2), x, rounding_mode="trunc"),
        lambda x: genesis.div(x, 0, rounding_mode="floor"),
        lambda x: genesis.addmv(x, genesis.ones(2, 2), genesis.ones(2), beta=0),
        lambda x: genesis.nextafter(genesis.ones(2), x),
    ):
        assert gradients_of(function, [0.0, 2.0]) == [[0, 0]]
    assert gradients_of(genesis.nextafter, [1.0, 2.0], [1.0, 3.0]) == [[0, 1], [0, 0]]


def test_a_place_that_is_filled_twice_counts_once():
    x, value = genesis.zeros(3, 2, requires_grad=True), genesis.tensor(5.0, requires_grad=True)
    weights = genesis.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    (x.index_fill(0, genesis.tensor([2, -1, 0]), value) * weights).sum().backward()
    assert value.grad.item() == 14 and x.grad.tolist() == [[0, 0], [3, 4], [0, 0]]


@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.prod(),
        lambda x: x.prod(1),
        lambda x: x.reshape(2, 2, 2).prod(1),
        lambda x: x.cumprod(1),
        lambda x: x.cumprod(0),
    ],
)
def test_products_with_zeros_can_be_differentiated_twice(function, zeros):
    values = numpy.random.default_rng(0).uniform(0.5, 1.5, (2, 4))
    values[0, :zeros] = 0
    x = genesis.tensor(values, requires_grad=True)
    assert gradcheck(function, x) and gradgradcheck(function, x)


def test_a_view_in_place_is_one_for_its_aliases():
    x = genesis.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    y = x * 2
    row = y[0]
    assert y.t_() is y and y.shape == (3, 1) and y.grad_fn is not None
    y.mul_(10)
    assert row.tolist() == [20, 40, 60]
    (row * genesis.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [[20, 40, 60]]
    with genesis.no_grad():
        plain = genesis.ones(2, 3).t_()
    assert plain.shape == (3, 2) and not plain.requires_grad


WRITTEN = {
    "elementwise": lambda x, out: genesis.exp(x, out=out),
    "where": lambda x, out: genesis.where(x > 0, x, 1.0, out=out),
    "reduction": lambda x, out: x.sum(0, out=out[0]),
    "cat": lambda x, out: genesis.cat([x[:1], x[1:]], out=out),
    "matmul": lambda x, out: genesis.matmul(x, x.T, out=out[:, :2]),
    "function": lambda x, out: genesis.cumsum(x, 1, out=out),
    "two": lambda x, out: genesis.sort(x, out=(out, genesis.zeros(2, 3, dtype=genesis.int64))),
}


def numbers(seed):
    return genesis.tensor(
        numpy.random.default_rng(seed).uniform(0.2, 0.9, (2, 3)), requires_grad=True
    )


def inputs_of(function):
    return tuple(numbers(seed) for seed in range(function.__code__.co_argcount))


@pytest.mark.parametrize("name", CHECKED)
def test_gradients_are_those_of_differences(name):
    function = CHECKED[name]
    made = function(*inputs_of(function))
    assert all(one.requires_grad for one in (made if isinstance(made, tuple) else (made,)))
    assert gradcheck(function, inputs_of(function))
    assert gradgradcheck(function, inputs_of(function))


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_gradient_yet_says_so(name):
    with pytest.raises(RuntimeError, match="has no gradient yet"):
        REFUSED[name](numbers(0))
    with genesis.no_grad():
        REFUSED[name](numbers(0))


@pytest.mark.parametrize("name", WRITTEN)
def test_out_takes_no_part_in_gradients(name):
    """As in PyTorch: out= is refused where it, or an argument, needs a gradient."""
    x, out = numbers(0), zeros()
    with pytest.raises(RuntimeError, match="out= has no gradient, and an argument requires one"):
        WRITTEN[name](x, out)
    assert not out.any()
    with pytest.raises(RuntimeError, match="out= has no gradient, and out requires one"):
        WRITTEN[name](x.detach(), out.requires_grad_())
    with genesis.no_grad():
        WRITTEN[name](x, out)
    assert out.any()


def test_gradcheck_finds_what_is_wrong():
    x = numbers(0)
    with pytest.raises(GradcheckError, match="element 0 of output 0 .* requires no gradient"):
        gradcheck(lambda one: one.detach().exp(), x)
    with pytest.raises(GradcheckError, match="input 1"):
        gradcheck(lambda one, two: one + two.detach() * two, (x, numbers(1)))
    assert gradcheck(lambda one: one.detach() * one, x, raise_exception=False) is False
    with pytest.raises(ValueError, match="float64"):
        gradcheck(genesis.exp, leaf(1.0))
    with pytest.raises(ValueError, match="no input requires"):
        gradcheck(genesis.exp, genesis.ones(1))
