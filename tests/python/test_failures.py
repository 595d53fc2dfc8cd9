"""Failures on the simulated GPU: tests/sim_failures.py, and what is printed meanwhile."""

import os
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT


def run(directory, *sections, **options):
    if not (BUILD / "libgenesis_sim.so").exists():
        pytest.skip("the build has no simulator")
    finished = subprocess.run(
        [sys.executable, ROOT / "tests" / "sim_failures.py", *sections],
        env=os.environ
        | {
            "GENESIS_CUDA_DRIVER": str(BUILD / "libgenesis_sim.so"),
            "GENESIS_KERNEL_CACHE_DIR": str(directory),
        }
        | options,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return [line for line in finished.stderr.splitlines() if "leak:" not in line]


@pytest.mark.parametrize("schedule", ["eager", "random"])
def test_kernels(tmp_path, schedule):
    sections = "programs", "folds", "loading", "alone", "names", "threads"
    lines = run(tmp_path, *sections, SIM_GPU_SCHEDULE=schedule)
    assert 2 < len(lines) < 8, lines  # number 1, 2, 4, ... of some dozens
    assert all("warning: operations that cannot be one kernel run one by one" in x for x in lines)
    assert "multiply_add_relu_kernel" in lines[0] and "a test wants no such text" in lines[0]


def test_the_text_of_a_kernel_on_demand(tmp_path):
    texts = tmp_path / "texts"
    texts.mkdir()
    lines = run(tmp_path, "names", GENESIS_KERNEL_SOURCE_DIR=str(texts), GENESIS_LOG="debug")
    (text,) = texts.glob("tanh_kernel_*.cu")
    assert "tanh_kernel" in text.read_text()
    start = lines.index("genesis: debug: the text of kernel tanh_kernel:")
    assert lines[start + 1].startswith("genesis: debug:    1  ")


@pytest.mark.parametrize("policy", ["virtual", "pool"])
def test_memory(tmp_path, policy):
    sections = ("full", "calls") if policy == "virtual" else ("calls",)
    assert not run(tmp_path, *sections, GENESIS_CUDA_ALLOCATOR=policy)


def test_a_lost_device(tmp_path):
    (line,) = run(tmp_path, "lost")
    assert "cuda:0 is lost: cuLaunchKernel reported CUDA_ERROR_ILLEGAL_ADDRESS" in line
