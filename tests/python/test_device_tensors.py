"""Tensors on the simulated GPU beside the CPU, and on a real one."""

import os
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT, run_script, script_find, simulate_script


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
        [sys.executable, script_find(script), *arguments],
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


def kernels_compile(architecture, texts):
    """Compile texts with NVRTC, or skip where there is none."""
    finished = subprocess.run(
        [BUILD / "tests" / "compile_kernels", architecture, *texts],
        env={k: v for k, v in os.environ.items() if k != "GENESIS_CUDA_DRIVER"},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    if finished.returncode == 77:
        pytest.skip("there is no NVRTC")
    assert finished.returncode == 0, finished.stderr


def fixed_kernels_check(folder, sources):
    """What programs compile and what does not depend on them is in the list for the archive.

    But for the special forms of index kernels: the general forms do what these do.
    """
    folder.mkdir()
    subprocess.run([BUILD / "tools" / "kernel_texts", folder], check=True, timeout=100)
    listed = {path.stem for path in folder.iterdir()}
    names = {stem.rsplit("_", 1)[0] for stem in listed}
    words = {name.rsplit("_", 1)[0] for name in names if not name.endswith("_kernel")}
    made = {path.stem for path in sources.iterdir()}
    fixed = {stem for stem in made if stem.rsplit("_", 2)[0] in words or "matmul_kernel" in stem}
    special = {stem for stem in fixed if stem.startswith("index_")}
    assert len(fixed - special) > 30 and fixed - special <= listed, fixed - special - listed
    assert {s.split("_")[1] for s in special} <= {n.split("_")[1] for n in names if "index" in n}


def test_the_kernels_are_cuda_c(tmp_path):
    """What the simulator compiles, NVRTC compiles, for GPUs that need not be there."""
    soak = os.environ.get("KERNEL_ARCHITECTURES")  # several, and every type of elements
    sources, cache = tmp_path / "sources", tmp_path / "cache"
    sources.mkdir()
    cache.mkdir(mode=0o700)
    texts_write(sources, cache, "device_tensors.py", *(["--all"] if soak else []))
    texts_write(sources, cache, "device_rows.py")
    texts_write(sources, cache, "device_matmul.py")
    texts_write(
        sources,
        cache,
        "device_index.py",
        *([] if soak else ["ordered", "searches", "errors", "keys"]),
    )
    texts_write(sources, cache, "one_of_each.py", *([] if soak else ["--few"]))
    fixed_kernels_check(tmp_path / "fixed", sources)
    texts = sorted(sources.iterdir())
    print(f"{len(texts)} kernels")
    assert 100 < len(texts) < 1500
    if soak:
        for architecture in soak.split():
            kernels_compile(architecture, texts)
        return
    # The assembler takes half of the time, and refuses only what does not fit a processor: here it
    # sees one kernel of each name. NVRTC does not know sm_91, and stops before it.
    names = {text.stem.rsplit("_", 1)[0]: text for text in texts}
    kernels_compile("90", names.values())
    kernels_compile("91", sorted(set(texts) - set(names.values())))


@pytest.mark.gpu
@pytest.mark.parametrize(
    "script", sorted(one.name for one in (ROOT / "tests/ops").glob("device_*.py"))
)
def test_on_a_gpu(script):
    finished = run_script(script, *(["--all"] if script == "device_tensors.py" else []))
    assert not finished.stderr, finished.stderr
