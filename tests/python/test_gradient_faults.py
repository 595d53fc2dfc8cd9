"""Calls of the driver that fail in backward passes: tests/sim/gradient_faults.py.

tests/autograd/test_gradient_faults.c has requests for host memory.
"""

import pytest
from conftest import simulate_script


@pytest.mark.parametrize("memory", ["pool", "virtual"])
def test_driver_calls_that_fail(memory):
    finished = simulate_script(
        "gradient_faults.py", "few", GENESIS_CUDA_ALLOCATOR=memory, SIM_GPU_SCHEDULE="random"
    )
    assert int(finished.stdout.split()[0]) > 50
    assert not finished.stderr, finished.stderr
