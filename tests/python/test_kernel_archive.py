"""The archive of compiled kernels, as its builder writes it and the library reads it."""

import os
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT

BUILDER = [sys.executable, ROOT / "tools" / "kernel_archive.py"]
# The simulator is no compiler for other GPUs.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "GENESIS_CUDA_DRIVER"}


def run(*arguments, code=0):
    finished = subprocess.run(
        [str(argument) for argument in arguments],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert finished.returncode == code, finished.stdout + finished.stderr
    return finished.stdout


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Some of the texts: several kernels of two files, and one that is in no other's block."""
    everything, some = tmp_path_factory.mktemp("all"), tmp_path_factory.mktemp("some")
    run(BUILD / "tools" / "kernel_texts", everything)
    assert 200 < len(list(everything.iterdir())) < 1000
    for pattern in ("mask_get_*", "search_sorted_*int8_*", "columns_*", "add_*"):
        found = sorted(everything.glob(f"{pattern}.cu"))
        assert found, pattern
        for path in found:
            path.rename(some / path.name)
    return some


@pytest.fixture(scope="module")
def nvrtc():
    finished = subprocess.run([*BUILDER, "--find"], env=ENVIRONMENT, timeout=100, check=False)
    if finished.returncode != 0:
        pytest.skip("there is no NVRTC")


def build(folder, texts, architectures):
    out = folder / "libgenesis.kernels"
    said = run(
        *BUILDER, "--out", out, "--cache", folder / "cache", "--architectures", architectures, texts
    )
    return out, said


def test_all_kernels_are_found(nvrtc, texts, tmp_path):
    paths = sorted(texts.iterdir())
    out, said = build(tmp_path, texts, "90 90ptx")
    assert f"compiling {2 * len(paths)} of" in said and f"{len(paths)} kernels" in said
    for architecture in (90, 120):  # by its machine code, and by the PTX
        said = run(BUILD / "tests" / "read_archive", out, architecture, *paths)
        assert f"{len(paths)} of {len(paths)} kernels" in said
    run(BUILD / "tests" / "read_archive", out, 80, *paths, code=1)
    first = out.read_bytes()
    again, said = build(tmp_path, texts, "90 90ptx")
    assert "compiling" not in said, "what the cache has is not compiled again"
    assert again.read_bytes() == first


def test_the_library_opens_it(nvrtc, texts, tmp_path, fresh, fake_driver):
    out, _ = build(tmp_path, texts, "90")
    code = "from genesis.__main__ import info_lines; print('\\n'.join(info_lines()))"
    options = {"GENESIS_CUDA_DRIVER": fake_driver, "GENESIS_KERNEL_ARCHIVE": str(out)}
    said = fresh(code, **options).stdout
    assert f"kernel archive: {len(list(texts.iterdir()))} kernels" in said and str(out) in said
    assert "compiled    NVRTC" in said and "for         sm_90\n" in said
    assert "not used" not in said


def test_bad_input(nvrtc, texts, tmp_path):
    out = tmp_path / "out"
    cache = ["--cache", tmp_path / "cache", "--out", out]
    finished = subprocess.run(
        [*BUILDER, *cache, "--architectures", "sm_90", texts],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert finished.returncode == 1 and "sm_90 is no architecture" in finished.stderr
    (tmp_path / "wrong").mkdir()
    (tmp_path / "wrong" / "bad_0123456789abcdef.cu").write_text("void bad() { nonsense }")
    finished = subprocess.run(
        [*BUILDER, *cache, "--architectures", "90", tmp_path / "wrong"],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert finished.returncode == 1 and "nonsense" in finished.stderr
    assert not out.exists()


def test_without_nvrtc(texts, tmp_path):
    """No archive, one sentence, and no failure."""
    code = (
        "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); import kernel_archive;"
        "kernel_archive.nvrtc_find = lambda given: None; sys.exit(kernel_archive.main())"
    )
    out = tmp_path / "out"
    out.write_bytes(b"of an earlier build")
    said = run(sys.executable, "-c", code, ROOT / "tools", "--out", out, texts)
    assert "NVRTC was not found" in said and len(said.splitlines()) == 1
    assert not out.exists()
