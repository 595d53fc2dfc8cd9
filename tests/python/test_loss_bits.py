"""The same bits of losses in each run of a training loop: tests/ops/loss_bits.py.

A few steps, or with LOSS_BITS=all, as in `make soak`, 200 under every policy and schedule.
"""

import itertools
import os

import pytest
from conftest import run_script, simulate_script

IS_ALL = os.environ.get("LOSS_BITS") == "all"
STEPS = "200" if IS_ALL else "12"
SCHEDULES = [
    ("eager", 1),
    ("lazy", 1),
    *(("random", seed) for seed in range(1, 6 if IS_ALL else 3)),
]
FUSION = ("fused", "unfused")
MEMORY = ("direct", "pool", "virtual")


def losses(finished):
    """What a run has printed: a line for each step."""
    lines = finished.stdout.split()
    assert len(lines) == int(STEPS) and len({*lines}) > 1 and not finished.stderr
    return lines


def settings():
    """Fusion, policy and schedule: all, or each of them at least once."""
    every = [*itertools.product(FUSION, MEMORY, SCHEDULES)]
    return every if IS_ALL else every[::5]


def test_on_the_simulated_gpu():
    found = {}
    for fusion, memory, (schedule, seed) in settings():
        finished = simulate_script(
            "loss_bits.py",
            *("cuda", STEPS, "48", fusion),
            GENESIS_CUDA_ALLOCATOR=memory,
            SIM_GPU_SCHEDULE=schedule,
            SIM_GPU_SEED=str(seed),
            SIM_GPU_LANES="random",
        )
        found[fusion, memory, schedule, seed] = losses(finished)
    first = found.popitem()[1]
    assert {key for key, lines in found.items() if lines != first} == set()


@pytest.mark.parametrize("threads", ["1", "2"])
def test_on_the_cpu(threads):
    """With many rows the sums of weights' gradients are shared by threads."""
    runs = [
        losses(run_script("loss_bits.py", "cpu", STEPS, "3000", fusion, threads))
        for fusion in (*FUSION, *FUSION)
    ]
    assert all(run == runs[0] for run in runs)


@pytest.mark.gpu
@pytest.mark.parametrize("memory", MEMORY)
def test_on_a_gpu(memory):
    runs = [
        losses(
            run_script("loss_bits.py", "cuda", STEPS, "48", fusion, GENESIS_CUDA_ALLOCATOR=memory)
        )
        for fusion in (*FUSION, *FUSION)
    ]
    assert all(run == runs[0] for run in runs)
