"""What programs add to graphs of gradients, and how they look at them, from Python."""

import gc
import textwrap
import weakref

import pytest

import genesis
from genesis.autograd import Function, functional, gradcheck, gradgradcheck
from genesis.autograd.function import once_differentiable
from genesis.autograd.graph import save_on_cpu, saved_tensors_hooks
from genesis.utils.checkpoint import checkpoint, checkpoint_sequential


def leaf(*values):
    return genesis.tensor(values, dtype=genesis.float64, requires_grad=True)


# ---- hooks ----


def test_a_hook_replaces_the_gradient_of_a_result_and_of_a_leaf():
    x = leaf(1.0, 2.0)
    y = x * x
    seen = []
    handle = y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 3)
    x.register_hook(lambda g: g + 1)
    y.sum().backward()
    assert seen == [[1.0, 1.0]]
    assert x.grad.tolist() == [7.0, 13.0]
    handle.remove()
    handle.remove()  # once more: nothing happens


def test_a_handle_is_a_context():
    x = leaf(1.0)
    with x.register_hook(lambda g: g * 5):
        (x * 2).backward()
    (x * 2).backward()
    assert x.grad.item() == 12.0


def test_a_hook_that_raises_leaves_gradients_as_they_were():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x * w).sum().backward()
    before = x.grad.tolist(), w.grad.tolist()
    loss = (x * w).sum()

    def fail(gradient):
        raise KeyError("mine")

    handle = w.register_hook(fail)
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            loss.backward(retain_graph=True)
        assert (x.grad.tolist(), w.grad.tolist()) == before
    handle.remove()
    loss.backward()
    assert x.grad.tolist() == [6.0, 8.0]


def test_after_a_failure_without_retain_graph_the_graph_says_so():
    x = leaf(1.0)
    loss = (x * x).exp()
    handle = x.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        loss.backward()
    handle.remove()
    with pytest.raises(RuntimeError, match="failed"):
        loss.backward()
    assert x.grad is None


@pytest.mark.parametrize("bad", [3, "text", [1.0]])
def test_a_hook_gives_a_tensor_or_none(bad):
    x = leaf(1.0)
    x.register_hook(lambda g: bad)
    with pytest.raises(TypeError, match="a hook gives a Tensor or None"):
        (x * x).backward()


def test_a_hook_gives_a_gradient_of_the_same_shape():
    x = leaf(1.0, 2.0)
    x.register_hook(lambda g: g.sum())
    with pytest.raises(RuntimeError, match=r"a hook of leaf gave a gradient of .* shape \(\)"):
        (x * x).sum().backward()


def test_hooks_are_for_tensors_that_require_gradients():
    with pytest.raises(RuntimeError, match="needs no gradient"):
        genesis.ones(2).register_hook(print)
    with pytest.raises(TypeError, match="a hook is a function"):
        leaf(1.0).register_hook(3)
    with pytest.raises(RuntimeError, match="only a leaf"):
        (leaf(1.0) * 2).register_post_accumulate_grad_hook(print)


def test_post_accumulate_hooks_may_step_and_clear():
    """An optimizer's step in the backward pass: no gradient lives longer than its leaf's step."""
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)

    def step(parameter):
        with genesis.no_grad():
            parameter -= 0.5 * parameter.grad
        parameter.grad = None

    for one in (x, w):
        one.register_post_accumulate_grad_hook(step)
    (x * w).sum().backward()
    assert (x.tolist(), w.tolist()) == ([-0.5, 0.0], [2.5, 3.0])
    assert x.grad is None and w.grad is None


def test_hooks_see_gradients_that_can_be_differentiated():
    x = leaf(2.0)
    seen = []
    x.register_hook(seen.append)
    (x**3).backward(create_graph=True)
    assert genesis.autograd.grad(seen[0], x)[0].item() == 12.0
    x.grad = None


def test_a_hook_lives_no_longer_than_its_graph():
    class Context:
        def __call__(self, gradient):
            return None

    x = leaf(1.0)
    y = x * x
    context = Context()
    gone = weakref.ref(context)
    y.register_hook(context)
    del context
    assert gone() is not None
    del y
    assert gone() is None


# ---- gradients that are kept ----


def test_retain_grad():
    x = leaf(1.0, 2.0)
    y = x * x
    assert not y.retains_grad
    y.retain_grad()
    x.retain_grad()  # a leaf does so anyway
    assert y.retains_grad and not x.retains_grad
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="needs no gradient"):
        genesis.ones(1).retain_grad()


def test_retain_grad_comes_after_hooks():
    x = leaf(1.0)
    y = x * x
    y.retain_grad()
    y.register_hook(lambda g: g * 7)
    y.backward()
    assert y.grad.item() == 7.0


def test_backward_to_some_inputs():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * w
    y.sum().backward(inputs=[w], retain_graph=True)
    assert x.grad is None and w.grad.tolist() == [1.0, 2.0]
    genesis.autograd.backward(y.sum(), inputs=x, retain_graph=True)
    assert x.grad.tolist() == [3.0, 4.0] and w.grad.tolist() == [1.0, 2.0]
    y.sum().backward(inputs=y)
    assert y.grad.tolist() == [1.0, 1.0]
    for empty in ([], ()):
        with pytest.raises(RuntimeError, match="inputs must not be empty"):
            y.sum().backward(inputs=empty)
        with pytest.raises(RuntimeError, match="inputs must not be empty"):
            genesis.autograd.backward(y.sum(), inputs=empty)


def test_sums_are_added_in_place():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    held = x.grad
    (x * x).sum().backward()
    assert x.grad is held and held.tolist() == [4.0, 8.0]


def test_a_gradient_that_cannot_be_written_to_is_replaced():
    numpy = pytest.importorskip("numpy")
    x = leaf(1.0, 2.0)
    fixed = numpy.array([10.0, 20.0])
    fixed.flags.writeable = False
    x.grad = genesis.from_numpy(fixed)
    (x * x).sum().backward()
    assert x.grad.tolist() == [12.0, 24.0] and fixed.tolist() == [10.0, 20.0]


def test_detach_in_place():
    x = leaf(1.0, 2.0)
    y = x * x
    assert y.detach_() is y
    assert y.is_leaf and not y.requires_grad and y.grad_fn is None
    z = x * x
    row = z[0]
    with pytest.raises(RuntimeError, match=r"use detach\(\)"):
        row.detach_()


# ---- operations of one's own ----


class Cube(Function):
    @staticmethod
    def forward(ctx, x, scale=1.0):
        ctx.save_for_backward(x, None)
        ctx.scale = scale
        return x**3 * scale

    @staticmethod
    def backward(ctx, gradient):
        x, nothing = ctx.saved_tensors
        assert nothing is None
        return gradient * 3 * x**2 * ctx.scale, None


def test_function():
    x = leaf(1.0, 2.0)
    y = Cube.apply(x, 2.0)
    assert repr(y.grad_fn) == "<CubeBackward>"
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 24.0]
    assert gradcheck(Cube.apply, x) and gradgradcheck(Cube.apply, x)
    assert not Cube.apply(genesis.ones(2)).requires_grad
    with genesis.no_grad():
        assert not Cube.apply(x).requires_grad


def test_function_with_setup_context():
    class Product(Function):
        @staticmethod
        def forward(x, w):
            return x * w

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, gradient):
            x, w = ctx.saved_tensors
            assert ctx.needs_input_grad == (True, False)
            return gradient * w, None

    x = leaf(1.0, 2.0)
    Product.apply(x, genesis.tensor([3.0, 4.0], dtype=genesis.float64)).sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]


def test_results_of_a_function_that_ctx_has_are_no_cycle():
    """pytorch issue 25340: ctx.y = y."""

    class Kept(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.y = x.exp()
            return ctx.y

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.y

    gc.disable()
    try:
        x = leaf(0.0, 1.0)
        before = genesis.memory_stats().allocated_bytes
        for _ in range(20):
            y = Kept.apply(x)
            loss = y.sum()
            del y, loss
        assert genesis.memory_stats().allocated_bytes == before
    finally:
        gc.enable()
    Kept.apply(x).sum().backward()
    assert x.grad.tolist() == pytest.approx([1.0, 2.718281828459045])


def test_function_with_several_results():
    class Both(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            index = x.argmax()
            ctx.mark_non_differentiable(index)
            return x * 2, x * 3, index

        @staticmethod
        def backward(ctx, first, second, index):
            assert index is None
            parts = [one * factor for one, factor in ((first, 2), (second, 3)) if one is not None]
            return sum(parts)

    x = leaf(1.0, 2.0)
    first, second, index = Both.apply(x)
    assert not index.requires_grad and index.item() == 1
    second.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_missing_gradients_are_zeros():
    class Pair(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, first, second):
            assert second.tolist() == [0.0, 0.0]
            return first * 2

    x = leaf(1.0, 2.0)
    Pair.apply(x)[0].sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_function_in_place():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    x = leaf(1.0, 2.0)
    y = x * 3
    z = Double.apply(y)
    assert z is y
    (z * z).sum().backward()
    assert x.grad.tolist() == [72.0, 144.0]
    with pytest.raises(RuntimeError, match="leaf"):
        Double.apply(leaf(1.0))


def test_an_argument_that_is_returned_is_a_tensor_of_its_own():
    class Reverse(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, gradient):
            return -gradient

    x = leaf(1.0, 2.0)
    y = Reverse.apply(x)
    assert y is not x
    y.sum().backward()
    assert x.grad.tolist() == [-1.0, -1.0]


def test_a_view_out_of_a_function_keeps_its_gradient():
    """pytorch issue 14707: after a write to the base, another backward was used silently."""

    class Row(Function):
        @staticmethod
        def forward(ctx, x):
            return x[0]

        @staticmethod
        def backward(ctx, gradient):
            return genesis.stack([gradient * 10, gradient * 0])

    x = genesis.ones(2, 2, dtype=genesis.float64, requires_grad=True)
    base = x * 1
    row = Row.apply(base)
    base.mul_(2)
    row.sum().backward()
    assert x.grad.tolist() == [[10.0, 10.0], [0.0, 0.0]]


def test_a_saved_value_that_is_changed_is_noticed():
    x = leaf(1.0, 2.0)
    scale = x * 1
    y = Cube.apply(scale)
    scale.mul_(2)
    with pytest.raises(RuntimeError, match="changed by an operation in place"):
        y.sum().backward()


def test_functions_that_are_wrong():
    class Many(Function):
        @staticmethod
        def forward(ctx, x, w):
            return x * w

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    x, w = leaf(1.0), leaf(2.0)
    with pytest.raises(RuntimeError, match="gives 1 gradients, and forward has 2"):
        Many.apply(x, w).backward()
    with pytest.raises(NotImplementedError, match="forward"):
        Function.apply(x)
    with pytest.raises(TypeError, match="save_for_backward"):
        genesis.autograd.function.FunctionCtx().save_for_backward(3)


def test_once_differentiable():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, gradient):
            return gradient * 2 * ctx.saved_tensors[0]

    x = leaf(3.0)
    Once.apply(x).backward()
    assert x.grad.item() == 6.0
    (first,) = genesis.autograd.grad(Once.apply(x), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.backward()


def test_a_kernel_with_a_gradient_and_streams(simulated_memory):
    simulated_memory("""
import genesis
twice = genesis.cuda.Kernel(
    '''extern "C" __global__ void scale(const float *x, float *y, float factor, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = x[i] * factor;
    }''',
    "scale",
    outputs=[1],
    backward=lambda ctx, g: (g * ctx.args[2], None, None, None),
)
x = genesis.ones(5, device="cuda", requires_grad=True)
y = genesis.empty(5, device="cuda")
twice(1, 32, (x, y, 3.0, 5))
assert y.requires_grad and "scale" in repr(y.grad_fn).lower(), y.grad_fn
(y * y).sum().backward()
assert x.grad.tolist() == [18.0] * 5
z = genesis.empty(5, device="cuda")
twice(1, 32, (x.detach(), z, 3.0, 5))
assert not z.requires_grad
stream = genesis.cuda.Stream()
with genesis.cuda.stream(stream):
    w = x * x
w.sum().backward()
assert x.grad.tolist() == [20.0] * 5
""")


def test_kernels_with_backward_are_checked():
    with pytest.raises(ValueError, match="outputs"):
        genesis.cuda.Kernel("", "f", backward=print)
    with pytest.raises(ValueError, match="outputs"):
        genesis.cuda.Kernel("", "f", outputs=[1])


# ---- values that are packed ----


def test_saved_tensors_hooks():
    x = leaf(1.0, 2.0)
    packed = []

    def pack(tensor):
        packed.append(tensor.shape)
        return tensor.tolist()

    with saved_tensors_hooks(pack, lambda values: genesis.tensor(values, dtype=genesis.float64)):
        y = (x * x).exp().sum()
    assert len(packed) >= 2
    y.backward()
    expected = x.grad.tolist()
    x.grad = None
    (x * x).exp().sum().backward()
    assert x.grad.tolist() == expected


def test_hooks_that_pack_and_raise():
    x = leaf(1.0)

    def fail(_):
        raise KeyError("mine")

    with saved_tensors_hooks(fail, fail), pytest.raises(KeyError, match="mine"):
        x * x
    with saved_tensors_hooks(lambda tensor: tensor, fail):
        y = x * x
    with pytest.raises(KeyError, match="mine"):
        y.backward()
    with saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor.float()):
        y = x * x
    with pytest.raises(RuntimeError, match="gave another tensor"):
        y.backward()
    assert x.grad is None


def test_save_on_cpu():
    x = leaf(1.0, 2.0)
    with save_on_cpu():
        y = (x * x).sum()
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_gradients_of_gradients_through_packed_values():
    x = leaf(0.3, 0.7)

    def function(x):
        with saved_tensors_hooks(lambda tensor: (tensor,), lambda packed: packed[0]):
            return x.sin() * x.exp()

    assert gradcheck(function, x) and gradgradcheck(function, x)


# ---- checkpoint ----


def noisy(x, w):
    """With random numbers, so that computing again must repeat them."""
    y = (x * w).exp() * genesis.rand(x.shape, dtype=x.dtype)
    return (y.sin() + genesis.randn(x.shape, dtype=x.dtype)) * w


def gradients(function, *inputs):
    genesis.manual_seed(11)
    function(*inputs).sum().backward()
    found = [one.grad.tolist() for one in inputs]
    for one in inputs:
        one.grad = None
    return found, genesis.rand(1).item()


@pytest.mark.parametrize("reentrant", [None, True, False])
def test_checkpoint_gives_the_same_bits(reentrant):
    x, w = leaf(0.1, 0.2, 0.3), leaf(1.0, 2.0, 3.0)
    plain = gradients(noisy, x, w)
    again = gradients(lambda x, w: checkpoint(noisy, x, w, use_reentrant=reentrant), x, w)
    nested = gradients(
        lambda x, w: checkpoint(lambda x, w: checkpoint(noisy, x.sin(), w), x, w), x, w
    )
    assert again == plain
    assert nested[1] == plain[1]
    deeper = gradients(lambda x, w: noisy(x.sin(), w), x, w)
    assert nested == deeper


def test_checkpoint_saves_memory():
    x = genesis.ones(1 << 16, requires_grad=True)

    def function(x):
        for _ in range(10):
            x = (x @ x.reshape(-1, 1)) * 0 + x.sin()
        return x

    def saved(made):
        return sum(one.nbytes for one in genesis.autograd.saved(made))

    assert saved(checkpoint(function, x)) == 0 < saved(function(x))


def test_checkpoint_takes_keywords_and_closures():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    checkpoint(lambda x, *, scale: x * w * scale, x, scale=2).sum().backward()
    assert x.grad.tolist() == [6.0, 8.0] and w.grad.tolist() == [2.0, 4.0]
    with genesis.no_grad():
        assert not checkpoint(lambda x: x * 2, x).requires_grad


def test_checkpoint_of_gradients_of_gradients():
    x = leaf(0.3, 0.7)
    assert gradgradcheck(lambda x: checkpoint(lambda x: x.sin() * x.exp(), x), x)


def test_checkpoint_with_retain_graph():
    x = leaf(1.0, 2.0)
    y = checkpoint(lambda x: x.exp() * x.sin(), x).sum()
    y.backward(retain_graph=True)
    first = x.grad.tolist()
    y.backward()
    assert x.grad.tolist() == [2 * one for one in first]


def test_checkpoint_of_a_function_that_changes():
    x = leaf(1.0, 2.0)
    calls = []

    def other(x):
        calls.append(1)
        return x * x if len(calls) == 1 else x[:1] * x[:1]

    y = checkpoint(other, x)
    with pytest.raises(RuntimeError, match="it must do the same each time"):
        y.sum().backward()
    calls.clear()

    def less(x):
        calls.append(1)
        return (x * x).exp() if len(calls) == 1 else x + 1

    y = checkpoint(less, x)
    with pytest.raises(RuntimeError, match="and 0 when it was called again"):
        y.sum().backward()
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(less, x, determinism_check="maybe")


def test_checkpoint_in_contexts():
    entered = []

    class Noted:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            entered.append(self.name)

        def __exit__(self, *exception):
            pass

    x = leaf(1.0)
    y = checkpoint(lambda x: x * x, x, context_fn=lambda: (Noted("first"), Noted("again")))
    assert entered == ["first"]
    y.backward()
    assert entered == ["first", "again"]


def test_checkpoint_sequential():
    x = leaf(0.5, 1.5)
    steps = [genesis.sin, genesis.exp, genesis.square, genesis.cos]
    for segments in (1, 2, 3, 4):
        x.grad = None
        checkpoint_sequential(steps, segments, x).sum().backward()
        found = x.grad.tolist()
        x.grad = None
        x.sin().exp().square().cos().sum().backward()
        assert x.grad.tolist() == found


# ---- looking at it ----


def test_next_functions():
    x, w = leaf(1.0, 2.0), genesis.ones(2, dtype=genesis.float64)
    y = (x * w).exp()
    ((product, number),) = y.grad_fn.next_functions
    assert product.name() == "MulBackward0" and number == 0
    assert product == y.grad_fn.next_functions[0][0] and hash(product) == hash(
        y.grad_fn.next_functions[0][0]
    )
    assert product != y.grad_fn and product != 3
    (accumulate, _), nothing = product.next_functions
    assert nothing == (None, 0)
    assert accumulate.name() == "AccumulateGrad" and accumulate.variable is x
    assert y.grad_fn.variable is None


def test_saved_names_operations_and_lines():
    x = genesis.ones(4, requires_grad=True)
    genesis.enable_memory_debugging(True)
    try:
        y = (x * 2).exp() * x
        listed = genesis.autograd.saved()
    finally:
        genesis.enable_memory_debugging(False)
    assert {one.operation for one in listed} == {"ExpBackward0", "MulBackward0"}
    assert all("test_autograd_graph.py" in one.location for one in listed)
    of_root = genesis.autograd.saved(y)
    assert sum(one.nbytes for one in of_root) == sum(one.nbytes for one in listed) == 32
    y.sum().backward()
    assert genesis.autograd.saved(y) == []


def test_a_leak_report_names_the_graph():
    x = genesis.ones(1000, requires_grad=True)
    genesis.enable_memory_debugging(True)
    try:
        y = (x * 2).exp()
        held = [one.held_by for one in genesis.check_memory_leaks()]
        del y
    finally:
        genesis.enable_memory_debugging(False)
    assert any("the gradient of ExpBackward0" in one and "graph.py" in one for one in held), held


def test_the_profiler_knows_backward_and_the_operation():
    x = genesis.ones(100, 100, requires_grad=True)
    genesis.enable_memory_profiling(True)
    try:
        (x @ x).sum().backward()
        events = genesis.memory_profiler.get_timeline().events
    finally:
        genesis.enable_memory_profiling(False)
    names = {one.annotation for one in events}
    assert any("backward" in name and "matmul" in name for name in names), names
    assert any("backward" not in name for name in names)


def test_plot(tmp_path):
    x = leaf(1.0, 2.0)
    text = genesis.autograd.plot((x.exp() * x).sum(), path=str(tmp_path / "graph.dot"))
    assert text.startswith("digraph {") and text.count("->") == 4 and "leaf float64" in text
    assert (tmp_path / "graph.dot").read_text() == text + "\n"
    assert genesis.autograd.plot(x) == "digraph {\n  node [shape=box];\n}"


def test_plot_draws_or_says_what_is_missing(tmp_path, monkeypatch):
    import shutil

    x = leaf(1.0)
    path = str(tmp_path / "graph.svg")
    if shutil.which("dot"):
        genesis.autograd.plot(x.exp(), path=path)
        assert "<svg" in (tmp_path / "graph.svg").read_text()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(RuntimeError, match="Graphviz"):
        genesis.autograd.plot(x.exp(), path=path)


def test_detect_anomaly():
    x = leaf(-1.0)
    with genesis.autograd.detect_anomaly():
        y = x.sqrt()
        with pytest.raises(RuntimeError, match=r"of sqrt has a NaN \(called at .*graph.py"):
            y.backward()
    assert x.grad is None
    x.sqrt().backward()  # nobody looks any more
    x.grad = None
    with genesis.autograd.detect_anomaly(check_nan=False):
        x.sqrt().backward()
    genesis.autograd.set_detect_anomaly(True)
    try:
        with pytest.raises(RuntimeError, match="NaN"):
            x.sqrt().backward()
    finally:
        genesis.autograd.set_detect_anomaly(False)
    x.sqrt().backward()


def test_an_error_names_the_line_of_the_write():
    x = leaf(1.0, 2.0)
    with genesis.autograd.detect_anomaly():
        w = x * 1
        y = w * w
        w.mul_(2)  # here
        with pytest.raises(RuntimeError, match=r"saved at .*graph.py.*changed at .*graph.py"):
            y.sum().backward()


# ---- derivatives of functions ----


def test_jacobian_and_hessian():
    x, w = leaf(0.5, 1.5), leaf(2.0, 3.0, 4.0)

    def outer(x, w):
        return x.reshape(-1, 1) * w.exp()

    found = functional.jacobian(outer, (x, w))
    assert found[0].shape == (2, 3, 2) and found[1].shape == (2, 3, 3)
    assert found[0][1, 2].tolist() == [0.0, w[2].exp().item()]
    assert not found[0].requires_grad
    hessian = functional.hessian(lambda x, w: x.sum() ** 2 * w.sum(), (x, w))
    assert hessian[0][0].tolist() == [[18.0, 18.0], [18.0, 18.0]]
    assert hessian[0][1].tolist() == [[4.0] * 3] * 2 and hessian[1][1].tolist() == [[0.0] * 3] * 3
    with pytest.raises(RuntimeError, match="one element"):
        functional.hessian(lambda x: x * 2, x)
    assert functional.jacobian(lambda x: x[:0], x).shape == (0, 2)


def test_products_with_vectors():
    x, v = leaf(0.5, 1.5), genesis.tensor([2.0, -1.0], dtype=genesis.float64)

    def function(x):
        return x.sin() * x.flip(0)

    jacobian = functional.jacobian(function, x)
    _, left = functional.vjp(function, x, v)
    _, right = functional.jvp(function, x, v)
    assert genesis.allclose(left, v @ jacobian) and genesis.allclose(right, jacobian @ v)
    value, product = functional.vhp(lambda x: (x**3).prod(), x, v)
    hessian = functional.hessian(lambda x: (x**3).prod(), x)
    assert genesis.allclose(product, v @ hessian)
    assert value.item() == pytest.approx((0.5 * 1.5) ** 3)
    assert genesis.allclose(functional.hvp(lambda x: (x**3).prod(), x, v)[1], hessian @ v)
    with pytest.raises(RuntimeError, match="v may be left out"):
        functional.vjp(function, x)
    with pytest.raises(RuntimeError, match="shapes"):
        functional.jvp(function, x, genesis.ones(3))
    with pytest.raises(RuntimeError, match="does not depend"):
        functional.vjp(lambda x, w: x * 2, (x, v), v, strict=True)


def test_derivatives_that_can_be_differentiated():
    x = leaf(0.5, 1.5)
    assert gradcheck(lambda x: functional.jacobian(lambda x: x**3, x, create_graph=True), x)
    assert gradcheck(lambda x: functional.jvp(lambda x: x**3, x, x, create_graph=True)[1], x)


# ---- nothing stays ----


def test_nothing_of_it_stays_without_the_garbage_collector(fresh):
    """Everything of this file in a loop, with the collector off."""
    code = """
    import gc, genesis
    from genesis.utils.checkpoint import checkpoint
    gc.disable()
    x = genesis.ones(100, dtype=genesis.float64, requires_grad=True)
    class Cube(genesis.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3
        @staticmethod
        def backward(ctx, g):
            return g * 3 * ctx.saved_tensors[0] ** 2
    def step():
        y = Cube.apply(x)
        y.retain_grad()
        handle = y.register_hook(lambda g: g * 2)
        z = checkpoint(lambda y: (y.sin() * y).exp(), y)
        z.sum().backward(create_graph=True)
        genesis.autograd.functional.hvp(lambda x: (x**3).sum(), x, x)
        x.grad = None
        y.grad = None
    for _ in range(3):
        step()
    before = genesis.memory_stats().allocated_bytes, len(gc.get_objects())
    for _ in range(100):
        step()
    after = genesis.memory_stats().allocated_bytes, len(gc.get_objects())
    assert before[0] == after[0], (before, after)
    assert after[1] - before[1] < 20, (before, after)
    """
    fresh(textwrap.dedent(code))


# ---- training ----


def train(layer, steps):
    """The losses of a small network with dropout, as bits."""
    genesis.manual_seed(3)
    x, target = genesis.randn(32, 8), genesis.randint(0, 4, (32, 1))
    weights = [
        (genesis.randn(*sizes) * 0.3).requires_grad_() for sizes in ((8, 16), (16, 16), (16, 4))
    ]

    def hidden(x, weight):
        y = genesis.gelu(x @ weight)
        return y * (genesis.rand(y.shape) > 0.1) / 0.9

    losses = []
    for _ in range(steps):
        y = x
        for weight in weights[:-1]:
            y = layer(hidden, y, weight)
        loss = -(y @ weights[-1]).log_softmax(1).gather(1, target).mean()
        loss.backward()
        with genesis.no_grad():
            for weight in weights:
                weight -= 0.1 * weight.grad
                weight.grad = None
        losses.append(loss.item().hex())
    return losses


def test_200_steps_with_and_without_checkpoint():
    plain = train(lambda function, *args: function(*args), 200)
    assert train(checkpoint, 200) == plain
    assert float.fromhex(plain[-1]) < float.fromhex(plain[0]) / 2
    genesis.cuda.set_kernel_fusion(False)
    try:
        assert train(checkpoint, 20) == plain[:20]
    finally:
        genesis.cuda.set_kernel_fusion(True)
