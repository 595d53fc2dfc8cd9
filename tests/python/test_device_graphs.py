"""Captured graphs on the simulated GPU: tests/ops/device_graphs.py under each schedule."""

import pytest
from conftest import simulate_script


def run(schedule, *sections, **options):
    options |= {"SIM_GPU_SCHEDULE": schedule, "SIM_GPU_LANES": "random"}
    finished = simulate_script("device_graphs.py", *sections, **options)
    assert not finished.stderr, finished.stderr


@pytest.mark.parametrize("schedule", ["eager", "lazy", "random"])
def test_on_the_simulated_gpu(schedule):
    run(schedule)


def test_memory_that_is_filled():
    """What the options write into memory is not part of a graph."""
    run("lazy", "waits", "memory", "pools", GENESIS_CUDA_ZERO="1", GENESIS_DEBUG="guard,poison")
