"""Random programs on several streams of the simulated GPU beside the CPU."""

import pytest
from conftest import simulate_script


@pytest.mark.parametrize(("schedule", "first"), [("eager", 0), ("lazy", 100), ("random", 200)])
def test_on_the_simulated_gpu(schedule, first):
    finished = simulate_script("device_streams.py", "20", str(first), SIM_GPU_SCHEDULE=schedule)
    assert not finished.stderr, finished.stderr


def test_memory_that_is_not_pooled():
    finished = simulate_script("device_streams.py", "8", "300", GENESIS_CUDA_ALLOCATOR="direct")
    assert not finished.stderr, finished.stderr
