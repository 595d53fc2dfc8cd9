"""Autocast and gradient scaling, on the CPU; what PyTorch gave is in autocast.json."""

from __future__ import annotations

import gc
import json
import pickle
import threading
from pathlib import Path

import pytest
from conftest import simulate_script
from record_autocast import inputs

import genesis
from genesis.amp import GradScaler, autocast, custom_bwd, custom_fwd
from genesis.utils.checkpoint import checkpoint

RECORDED = json.loads(Path(__file__).with_name("autocast.json").read_text())
HALF = genesis.bfloat16


@pytest.mark.parametrize("call", RECORDED)
def test_types_and_values_are_those_of_pytorch(call):
    dtype, values = RECORDED[call]
    name = call.removeprefix("t.nn.functional.").partition("(")[0]
    if "nn.functional" in call and not hasattr(genesis.nn.functional, name):
        pytest.skip(f"there is no {name} yet")
    with autocast("cpu", dtype=HALF):
        made = eval(call, inputs(genesis))
    assert made.dtype.name == dtype
    limit = 0.016 if dtype == "bfloat16" or "linear" in call else 1e-4
    found = made.double().flatten().tolist()[: len(values)]
    assert found == pytest.approx(values, rel=limit, abs=limit / 4)


def test_the_list_of_cuda_on_the_simulated_gpu():
    assert simulate_script("device_autocast.py").stdout.split() == ["types", "gradients", "scaling"]


# ---- the setting ----


def test_blocks_nest_and_restore():
    x = genesis.ones(2, 2)
    with autocast("cpu"):
        assert genesis.is_autocast_enabled("cpu") and not genesis.is_autocast_enabled("cuda")
        with autocast("cpu", dtype=genesis.float16):
            assert (x @ x).dtype == genesis.float16
            with autocast("cpu", enabled=False):
                assert (x @ x).dtype == genesis.float32
        assert (x @ x).dtype == HALF
    assert not genesis.is_autocast_enabled("cpu")
    assert genesis.get_autocast_dtype("cpu") == HALF
    with pytest.raises(ZeroDivisionError), autocast("cpu"):
        raise ZeroDivisionError
    assert not genesis.is_autocast_enabled("cpu")


def test_one_block_can_be_entered_again():
    block, x = autocast("cpu"), genesis.ones(2, 2)
    with block, block:
        pass
    with block:
        assert (x @ x).dtype == HALF
    assert (x @ x).dtype == genesis.float32


def test_a_function_is_decorated():
    @autocast("cpu")
    def product(x):
        """Of x."""
        return x @ x

    assert product(genesis.ones(2, 2)).dtype == HALF
    assert product.__doc__ == "Of x."
    with pytest.raises(TypeError, match="only a function can be decorated"):
        autocast("cpu")(genesis.ones(1))


def test_each_thread_has_its_own_setting():
    seen = []

    def run():
        x = genesis.ones(2, 2)
        seen.append((genesis.is_autocast_enabled("cpu"), (x @ x).dtype))

    with autocast("cpu"):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert seen == [(False, genesis.float32)]


def test_other_names():
    x = genesis.ones(2, 2)
    with genesis.cpu.amp.autocast():
        assert (x @ x).dtype == HALF
    with genesis.autocast(device_type="cpu", dtype=genesis.float16):
        assert (x @ x).dtype == genesis.float16
    with genesis.cuda.amp.autocast(enabled=False):
        assert (x @ x).dtype == genesis.float32
    if not genesis.cuda.is_available():
        with genesis.autocast(dtype=HALF):
            assert (x @ x).dtype == HALF


def test_set_by_hand():
    genesis.set_autocast_enabled("cpu", True)
    genesis.set_autocast_dtype("cpu", genesis.float16)
    try:
        assert (genesis.ones(2, 2) @ genesis.ones(2, 2)).dtype == genesis.float16
    finally:
        genesis.set_autocast_enabled("cpu", False)
        genesis.set_autocast_dtype("cpu", HALF)


def test_wrong_arguments():
    with pytest.raises(RuntimeError, match="no mixed precision for 'tpu'"):
        autocast("tpu")
    with pytest.raises(ValueError, match="a type of device is a text"):
        autocast(3)
    with (
        pytest.warns(UserWarning, match="not to genesis.float32"),
        autocast("cpu", genesis.float32),
    ):
        assert not genesis.is_autocast_enabled("cpu")
    with pytest.raises(TypeError, match="float16 or bfloat16, not to float32"):
        genesis.set_autocast_dtype("cpu", genesis.float32)
    with pytest.raises(RuntimeError, match="'cpu' or 'cuda', not 'tpu'"):
        genesis.is_autocast_enabled("tpu")


def test_without_cuda_it_is_off():
    if genesis.cuda.is_available():
        pytest.skip("there is CUDA")
    with pytest.warns(UserWarning, match="there is no CUDA device"), autocast("cuda"):
        assert not genesis.is_autocast_enabled("cuda")
    with pytest.warns(UserWarning, match="there is no CUDA device"):
        assert not GradScaler().is_enabled()


# ---- what is converted ----


def test_out_and_in_place_are_left_alone():
    x, out = genesis.ones(2, 2), genesis.empty(2, 2)
    with autocast("cpu"):
        assert genesis.matmul(x, x, out=out) is out
        assert genesis.mm(x, x, out=out) is out
    assert out.tolist() == [[2.0, 2.0]] * 2


def test_a_leaf_gets_a_gradient_of_its_type():
    weight = genesis.rand(4, 4, requires_grad=True)
    x = genesis.rand(3, 4)
    with autocast("cpu"):
        loss = genesis.nn.functional.linear(x @ weight, weight).square().sum()
    assert loss.dtype == HALF
    loss.backward()
    assert weight.grad.dtype == genesis.float32
    exact = weight.detach().requires_grad_()
    genesis.nn.functional.linear(x @ exact, exact).square().sum().backward()
    assert genesis.allclose(weight.grad, exact.grad, rtol=0.05, atol=0.2)


def casts(loss):
    """How many conversions there are in a graph."""
    seen, waiting = set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [following for following, _ in node.next_functions]
    return sum("cast" in node.name().lower() for node in seen)


def test_a_weight_is_converted_once():
    weight = genesis.rand(4, 4, requires_grad=True)
    x = genesis.rand(3, 4).to(HALF)
    with autocast("cpu"):
        loss = (x @ weight).sum() + (x @ weight).sum()
    assert casts(loss) == 1
    with autocast("cpu", cache_enabled=False):
        loss = (x @ weight).sum() + (x @ weight).sum()
    assert casts(loss) == 2


def test_a_changed_weight_is_converted_again():
    weight = genesis.ones(2, 2, requires_grad=True)
    x = genesis.ones(1, 2)
    with autocast("cpu"):
        first = x @ weight
        with genesis.no_grad():
            weight.mul_(3)
        assert (x @ weight).tolist() == [[6.0, 6.0]]
        weight.data = genesis.full((2, 2), 5.0)
        assert (x @ weight).tolist() == [[10.0, 10.0]]
    assert first.tolist() == [[2.0, 2.0]]


def test_a_weight_that_was_used_without_gradients_gets_one():
    weight = genesis.ones(2, 2, requires_grad=True)
    x = genesis.ones(1, 2)
    with autocast("cpu"):
        with genesis.no_grad():
            assert not (x @ weight).requires_grad
        (x @ weight).sum().backward()
    assert weight.grad.tolist() == [[1.0, 1.0]] * 2


def test_several_backward_passes_use_one_conversion():
    weight = genesis.ones(2, 2, requires_grad=True)
    x = genesis.ones(1, 2)
    with autocast("cpu"):
        first, second = (x @ weight).sum(), (x @ weight * 2).sum()
        first.backward()
        second.backward()
        (x @ weight).sum().backward()
    assert weight.grad.tolist() == [[4.0, 4.0]] * 2


def test_nothing_is_kept_behind_the_block():
    gc.collect()
    before = genesis.cpu.memory_stats()["allocated"]
    weight = genesis.rand(256, 256, requires_grad=True)
    for _ in range(3):
        with autocast("cpu"):
            y = genesis.rand(8, 256) @ weight
            with autocast("cpu", enabled=False):
                pass
        del y
    del weight
    gc.collect()
    assert genesis.cpu.memory_stats()["allocated"] == before


def test_custom_functions():
    seen = []

    class Product(genesis.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu")
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x @ y

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            seen.append((grad @ y.T).dtype)
            return (grad @ y.T).to(x.dtype), (x.T @ grad).to(y.dtype)

    x = genesis.ones(2, 2, requires_grad=True)
    with autocast("cpu"):
        y = Product.apply(x, x)
    assert y.dtype == HALF
    y.float().sum().backward()
    assert seen == [HALF] and x.grad.tolist() == [[4.0, 4.0]] * 2

    class Exact(genesis.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu", cast_inputs=genesis.float32)
        def forward(ctx, x):
            seen.append((x.dtype, (x @ x).dtype))
            return x * 2

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            seen.append((grad @ grad).dtype)
            return grad * 2

    x = genesis.ones(2, 2, dtype=HALF, requires_grad=True)
    with autocast("cpu"):
        Exact.apply(x).sum().backward()
    assert seen[1:] == [(genesis.float32, genesis.float32), genesis.float32]
    assert x.grad.dtype == HALF


def test_a_checkpoint_is_computed_again_in_the_same_precision():
    seen = []

    def part(x):
        y = x @ x
        seen.append(y.dtype)
        return y.exp()

    x = genesis.full((2, 2), 0.1, requires_grad=True)
    with autocast("cpu"):
        y = checkpoint(part, x)
    y.sum().backward()
    assert seen == [HALF, HALF]
    y = checkpoint(part, x)
    with autocast("cpu"):
        y.sum().backward()
    assert seen[2:] == [genesis.float32, genesis.float32]


# ---- gradient scaling ----


class Descent:
    """A plain optimizer."""

    def __init__(self, *parameters):
        self.param_groups = [{"params": list(parameters)}]

    def step(self):
        with genesis.no_grad():
            for parameter in self.param_groups[0]["params"]:
                parameter -= parameter.grad
        return "done"


class Scaled(Descent):
    """One that unscales gradients itself."""

    _step_supports_amp_scaling = True

    def step(self):
        self.seen = (self.grad_scale, self.found_inf.item())


def loss_of(weight, factor):
    weight.grad = None
    return (weight * factor).sum()


def test_scale_step_update():
    weight = genesis.ones(3, requires_grad=True)
    optimizer, scaler = Descent(weight), GradScaler("cpu", init_scale=8.0, growth_interval=2)
    scales = []
    for factor in (1.0, 2.0, float("inf"), float("nan"), 1.0, 1.0):
        scaler.scale(loss_of(weight, factor)).backward()
        result = scaler.step(optimizer)
        assert result == ("done" if factor in (1.0, 2.0) else None)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [8.0, 16.0, 8.0, 4.0, 4.0, 8.0]
    assert weight.tolist() == [1.0 - 1 - 2 - 1 - 1] * 3


def test_losses_in_lists():
    scaler = GradScaler("cpu", init_scale=2.0)
    one = genesis.ones(())
    scaled = scaler.scale([one, (one, one)])
    assert type(scaled) is list and type(scaled[1]) is tuple
    assert scaled[1][1].item() == 2.0
    assert [x.item() for x in scaler.scale(x for x in (one, one))] == [2.0, 2.0]
    with pytest.raises(ValueError, match="takes a Tensor or several"):
        scaler.scale(3)


def test_unscale_before_clipping():
    weight = genesis.ones(3, requires_grad=True)
    optimizer, scaler = Descent(weight), GradScaler("cpu", init_scale=1024.0)
    scaler.scale(loss_of(weight, 3.0)).backward()
    assert weight.grad.tolist() == [3072.0] * 3
    scaler.unscale_(optimizer)
    assert weight.grad.tolist() == [3.0] * 3
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="already been called since"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="called after step"):
        scaler.unscale_(optimizer)
    scaler.update()
    assert weight.tolist() == [-2.0] * 3


def test_an_optimizer_that_unscales_itself():
    weight = genesis.ones(3, requires_grad=True)
    optimizer, scaler = Scaled(weight), GradScaler("cpu", init_scale=16.0)
    scaler.scale(loss_of(weight, 3.0)).backward()
    scaler.step(optimizer)
    assert optimizer.seen[0].item() == 16.0 and optimizer.seen[1] == 0.0
    assert weight.grad.tolist() == [48.0] * 3
    assert not hasattr(optimizer, "grad_scale") and not hasattr(optimizer, "found_inf")
    scaler.update()
    scaler.scale(loss_of(weight, float("inf"))).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    assert optimizer.seen == (None, 1.0)
    scaler.update()
    assert scaler.get_scale() == 8.0


def test_a_fused_optimizer_without_gradients():
    """It does nothing while the other one steps. Gradients that came too late are an error."""
    a, b = (genesis.ones(2, requires_grad=True) for _ in range(2))
    one = genesis.optim.SGD([a], lr=1.0)
    two = genesis.optim.Adam([b], lr=1.0, fused=True)
    scaler = GradScaler("cpu", init_scale=4.0)
    scaler.scale(a.sum()).backward()
    scaler.step(one)
    scaler.step(two)
    scaler.update()
    assert a.tolist() == [0, 0] and b.tolist() == [1, 1]
    scaler.scale(a.sum()).backward()
    scaler.unscale_(two)
    scaler.scale(b.sum()).backward()
    with pytest.raises(RuntimeError, match=r"no gradients when unscale_\(\) was called"):
        scaler.step(two)


def test_two_optimizers_and_types():
    small = genesis.ones(2, requires_grad=True)
    wide = genesis.ones(2, dtype=genesis.float64, requires_grad=True)
    half = genesis.ones(2, dtype=HALF, requires_grad=True)
    one, two = Descent(small, wide), Descent(half)
    scaler = GradScaler("cpu", init_scale=4.0)
    scaler.scale(small.sum() + wide.sum() + half.float().sum()).backward()
    scaler.step(one)
    scaler.step(two)
    scaler.update()
    for weight in (small, wide, half):
        assert weight.tolist() == [0.0, 0.0]


def test_errors_of_scaling():
    weight = genesis.ones(2, requires_grad=True)
    scaler, optimizer = GradScaler("cpu"), Descent(weight)
    with pytest.raises(RuntimeError, match="call scale"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="call scale"):
        scaler.update()
    scaler.scale(weight.sum())
    with pytest.raises(RuntimeError, match="no parameter of the optimizer has a gradient"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="no gradients were checked"):
        scaler.update()
    with pytest.raises(RuntimeError, match="closure"):
        scaler.step(optimizer, closure=None)
    half = genesis.ones(2, dtype=genesis.float16, requires_grad=True)
    scaler.scale(half.sum()).backward()
    with pytest.raises(ValueError, match="a gradient is float16"):
        scaler.unscale_(Descent(half))
    with pytest.raises(ValueError, match="growth_factor is more than 1"):
        GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(ValueError, match="backoff_factor is between 0 and 1"):
        GradScaler("cpu", backoff_factor=1.0)


def test_the_state_goes_on():
    weight = genesis.ones(2, requires_grad=True)
    scaler, optimizer = GradScaler("cpu", init_scale=4.0, growth_interval=3), Descent(weight)

    def step(scaler):
        scaler.scale(loss_of(weight, 1.0)).backward()
        scaler.step(optimizer)
        scaler.update()

    step(scaler)
    step(scaler)
    state = scaler.state_dict()
    assert state == {
        "scale": 4.0,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 3,
        "_growth_tracker": 2,
    }
    other = GradScaler("cpu")
    other.load_state_dict(state)
    copied = pickle.loads(pickle.dumps(scaler))
    for one in (scaler, other, copied):
        step(one)
        assert one.get_scale() == 8.0
    scaler.update(32.0)
    assert scaler.get_scale() == 32.0
    scaler.update(genesis.tensor(2.0))
    assert scaler.get_scale() == 2.0
    with pytest.raises(RuntimeError, match="the state is empty"):
        scaler.load_state_dict({})


def test_scaling_that_is_off():
    weight = genesis.ones(2, requires_grad=True)
    scaler, optimizer = GradScaler("cpu", enabled=False), Descent(weight)
    loss = loss_of(weight, 1.0)
    assert scaler.scale(loss) is loss
    loss.backward()
    assert scaler.step(optimizer) == "done"
    scaler.update()
    assert scaler.get_scale() == 1.0 and scaler.state_dict() == {} and not scaler.is_enabled()


def test_settings():
    scaler = GradScaler("cpu")
    scaler.set_growth_factor(4.0)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_interval(7)
    assert scaler.get_growth_factor() == 4.0
    assert scaler.get_backoff_factor() == 0.25
    assert scaler.get_growth_interval() == 7
    assert scaler.get_scale() == 65536.0


def test_the_parts_that_autocast_is_made_of():
    """A block written out, as PyTorch's own class has it."""
    weight = genesis.ones(8, 8, requires_grad=True)
    before = genesis.is_autocast_enabled("cpu"), genesis.is_autocast_cache_enabled()
    assert genesis.autocast_increment_nesting() == 1
    genesis.set_autocast_enabled("cpu", True)
    genesis.set_autocast_cache_enabled(False)
    try:
        assert genesis.is_autocast_enabled("cpu") and not genesis.is_autocast_cache_enabled()
        assert (weight @ weight).dtype == genesis.get_autocast_dtype("cpu") == genesis.bfloat16
        assert genesis.autocast_increment_nesting() == 2
        assert genesis.autocast_decrement_nesting() == 1
    finally:
        genesis.set_autocast_enabled("cpu", before[0])
        genesis.set_autocast_cache_enabled(before[1])
        genesis.clear_autocast_cache()
        assert genesis.autocast_decrement_nesting() == 0
    assert (weight @ weight).dtype == genesis.float32
