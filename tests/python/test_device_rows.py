"""Rows and random numbers on the simulated GPU, in an order of work and of lanes that is drawn."""

import os
import subprocess
import sys

from conftest import BUILD, ROOT


def test_rows_on_the_simulated_gpu():
    """tests/device_rows.py, with each finding fatal: a race, an access outside of its memory."""
    environment = {
        "GENESIS_CUDA_DRIVER": str(BUILD / "libgenesis_sim.so"),
        "SIM_GPU_SCHEDULE": "random",
        "SIM_GPU_LANES": "random",
        "SIM_GPU_FINDINGS": "abort",
    }
    finished = subprocess.run(
        [sys.executable, ROOT / "tests" / "device_rows.py"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.split()[-1] == "streams"
