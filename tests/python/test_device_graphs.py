"""Captured graphs on the simulated GPU: tests/device_graphs.py under each schedule."""

import os
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT


def run(schedule, *sections, **options):
    if not (BUILD / "libgenesis_sim.so").exists():
        pytest.skip("the build has no simulator")
    finished = subprocess.run(
        [sys.executable, ROOT / "tests" / "device_graphs.py", *sections],
        env=os.environ
        | {
            "GENESIS_CUDA_DRIVER": str(BUILD / "libgenesis_sim.so"),
            "SIM_GPU_SCHEDULE": schedule,
            "SIM_GPU_LANES": "random",
        }
        | options,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert not finished.stderr, finished.stderr


@pytest.mark.parametrize("schedule", ["eager", "lazy", "random"])
def test_on_the_simulated_gpu(schedule):
    run(schedule)


def test_memory_that_is_filled():
    """What the options write into memory is not part of a graph."""
    run("lazy", "waits", "memory", "pools", GENESIS_CUDA_ZERO="1", GENESIS_DEBUG="guard,poison")
