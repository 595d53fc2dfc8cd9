"""What a graph keeps: bytes that are allocated after a forward pass, and the same bits whatever is
computed again.

The programs are in resting_programs.py; test_resting.c has cases of single values.
"""

import gc
import os
import subprocess
import sys

import conftest
import pytest

import genesis

SIDE = 512
NBYTES = SIDE * SIDE * 4  # 1 MiB: the least that is computed again
FEW = 8192  # sums, means


def allocated():
    gc.collect()
    genesis.flush()
    return genesis.memory_stats("cpu").allocated_bytes


def numbers(*sizes, requires_grad=False):
    return genesis.rand(sizes or (SIDE, SIDE)).add_(0.1).requires_grad_(requires_grad)


def kept(function, *inputs):
    """Bytes that the graph of a function keeps; nothing stays when it was walked.

    The median of three: threads of earlier tests may still allocate or free something.
    """
    counts, left = [], []
    for _ in range(3):
        before = allocated()
        loss = function(*inputs).sum()
        counts.append(allocated() - before)
        loss.backward()
        del loss
        for one in inputs:
            one.grad = None
        left.append(allocated() - before)
    assert sorted(left)[1] == 0
    return sorted(counts)[1]


def test_a_chain_keeps_nothing():
    x, w = numbers(), numbers(requires_grad=True)
    assert kept(lambda w: ((w * x).sin() * w + 1).exp().tanh() * x, w) <= FEW


def test_a_products_operand_is_computed_again():
    w, v = numbers(requires_grad=True), numbers(requires_grad=True)

    def network(w, v):
        return genesis.gelu((w @ v) * 0.01) @ v

    assert NBYTES <= kept(network, w, v) <= NBYTES + FEW


def test_of_a_dropout_the_mask_stays():
    w = numbers(requires_grad=True)

    def dropped(w):
        mask = genesis.rand(SIDE, SIDE) >= 0.1
        return (w * mask * 1.1).square()

    assert NBYTES // 4 <= kept(dropped, w) <= NBYTES // 4 + FEW


def test_of_a_norm_the_input_stays():
    w, scale = numbers(requires_grad=True), numbers(SIDE, requires_grad=True)
    v = numbers(requires_grad=True)

    def norm(w, scale):
        apart = w - w.mean(-1, keepdim=True)
        variance = (apart * apart).mean(-1, keepdim=True)
        return apart * (variance + 1e-5).rsqrt() * scale

    assert kept(lambda w, scale, v: norm(w, scale) @ v, w, scale, v) <= FEW


def test_what_the_user_holds_is_stored_once():
    w, v = numbers(requires_grad=True), numbers(requires_grad=True)
    before = allocated()
    hidden = (w * 2).sin()
    loss = (hidden @ v).sum()
    assert NBYTES <= allocated() - before <= NBYTES + FEW
    values = hidden.tolist()
    loss.backward()
    assert hidden.tolist() == values
    w.grad = v.grad = loss = None
    assert abs(allocated() - before - NBYTES) <= FEW


def test_small_values_are_stored():
    w = genesis.rand(64, 64, requires_grad=True)
    assert kept(lambda w: (w * 2).sin().exp(), w) >= 2 * 64 * 64 * 4


def test_graphs_that_are_dropped_leave_nothing():
    w, v = numbers(requires_grad=True), numbers(requires_grad=True)
    before = allocated()
    for _ in range(5):
        loss = ((w * 2).sin() @ v).exp().sum()
        del loss
    assert allocated() == before


def test_steps_of_an_optimizer_between_two_graphs():
    """The second graph was made before the step, and needs what the weights were then."""
    w = numbers(requires_grad=True)
    first, second = (w * 3).sin().sum(), (w * 3).sin().sum()
    expected = ((w.detach() * 3).cos() * 3).tolist()
    first.backward()
    with genesis.no_grad():
        w -= 0.1 * w.grad
    w.grad = None
    second.backward()
    assert w.grad.tolist() == expected


@pytest.mark.parametrize("mode", ["fused", "unfused"])
def test_programs_on_the_cpu(mode):
    runs = [
        conftest.run_script(
            "resting_programs.py", "cpu", "0", "400", mode, GENESIS_RECOMPUTE_LEAST=least
        ).stdout.splitlines()
        for least in ("1TiB", "1")
    ]
    assert len(runs[0]) == 400
    assert [one for one in zip(*runs, strict=True) if one[0] != one[1]] == []


def test_memory_that_was_written_to_is_taken_over():
    """The saved slopes lie in memory that was filled before; they have not been changed."""
    program = """
import genesis
x = genesis.full((1 << 19,), -1.0, requires_grad=True)
made = genesis.nn.functional.rrelu(x, 0.25, 0.5, training=True)
assert made.max().item() < 0
made.sum().backward()
assert (x.grad == -made).all().item()
"""
    subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"GENESIS_RECOMPUTE_LEAST": "1TiB"},  # so that the slopes are stored
        check=True,
    )


@pytest.mark.parametrize("schedule", ["eager", "lazy", "random"])
def test_programs_on_the_simulated_gpu(schedule, build):
    runs = [
        conftest.simulate_script(
            "resting_programs.py",
            "cuda",
            "0",
            "12",
            GENESIS_RECOMPUTE_LEAST=least,
            SIM_GPU_SCHEDULE=schedule,
            SIM_GPU_CACHE_DIR=os.environ.get("SIM_GPU_CACHE_DIR", str(build / "sim_cache")),
        ).stdout.splitlines()
        for least in ("1TiB", "1")
    ]
    assert len(runs[0]) == 12 and runs[0] == runs[1]
