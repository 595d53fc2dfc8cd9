"""Tensors on the simulated GPU beside the CPU, and on a real one."""

import os
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT, run_script, simulate_script


@pytest.mark.parametrize("schedule", ["lazy", "random"])
def test_on_the_simulated_gpu(schedule):
    options = {"SIM_GPU_SCHEDULE": schedule, "SIM_GPU_LANES": "random"}
    finished = simulate_script("device_tensors.py", **options)
    assert not finished.stderr, finished.stderr


@pytest.mark.parametrize("script", [("one_of_each.py", "--few"), ("device_index.py", "writes")])
def test_bounds(script):
    """Each tensor is an allocation by itself: what is outside is nobody's."""
    finished = simulate_script(*script, GENESIS_CUDA_ALLOCATOR="direct")
    assert not finished.stderr, finished.stderr


def texts_write(sources, cache, script, *arguments):
    """Keep the texts of a script's kernels."""
    subprocess.run(
        [sys.executable, ROOT / "tests" / script, *arguments],
        env=os.environ
        | {
            "GENESIS_CUDA_DRIVER": str(BUILD / "libgenesis_sim.so"),
            "GENESIS_KERNEL_CACHE_DIR": str(cache),
            "GENESIS_KERNEL_SOURCE_DIR": str(sources),
        },
        capture_output=True,
        timeout=1200,
        check=True,
    )


def test_the_kernels_are_cuda_c(tmp_path):
    """What the simulator compiles, NVRTC compiles, for GPUs that need not be there."""
    is_soak = "KERNEL_ARCHITECTURES" in os.environ  # several, and every type of elements
    sources, cache = tmp_path / "sources", tmp_path / "cache"
    sources.mkdir()
    cache.mkdir(mode=0o700)
    texts_write(sources, cache, "device_tensors.py", *(["--all"] if is_soak else []))
    texts_write(sources, cache, "device_rows.py")
    texts_write(sources, cache, "device_matmul.py")
    texts_write(
        sources,
        cache,
        "device_index.py",
        *([] if is_soak else ["ordered", "searches", "errors", "keys"]),
    )
    texts_write(sources, cache, "one_of_each.py", *([] if is_soak else ["--few"]))
    texts = sorted(sources.iterdir())
    print(f"{len(texts)} kernels")
    assert 100 < len(texts) < 1500
    kept = {k: v for k, v in os.environ.items() if k != "GENESIS_CUDA_DRIVER"}
    for architecture in os.environ.get("KERNEL_ARCHITECTURES", "90").split():
        finished = subprocess.run(
            [BUILD / "tests" / "compile_kernels", architecture, *texts],
            env=kept,
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
        if finished.returncode == 77:
            pytest.skip("there is no NVRTC")
        assert finished.returncode == 0, finished.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("script", sorted(one.name for one in (ROOT / "tests").glob("device_*.py")))
def test_on_a_gpu(script):
    finished = run_script(script, *(["--all"] if script == "device_tensors.py" else []))
    assert not finished.stderr, finished.stderr
