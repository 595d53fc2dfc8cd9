"""Tensors on the simulated GPU beside the CPU, and on a real one."""

import os
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT


def run(*sections: str, **environment: str) -> None:
    """tests/device_tensors.py: it ends well, and nothing is found on the way."""
    finished = subprocess.run(
        [sys.executable, ROOT / "tests" / "device_tensors.py", *sections],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert not finished.stderr, finished.stderr


@pytest.mark.parametrize("schedule", ["lazy", "random"])
def test_on_the_simulated_gpu(schedule):
    if not (BUILD / "libgenesis_sim.so").exists():
        pytest.skip("the build has no simulator")
    run(
        GENESIS_CUDA_DRIVER=str(BUILD / "libgenesis_sim.so"),
        SIM_GPU_SCHEDULE=schedule,
        SIM_GPU_LANES="random",
    )


@pytest.mark.gpu
def test_on_a_gpu():
    run("--all")
