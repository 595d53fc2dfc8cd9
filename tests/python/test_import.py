"""Importing the package is light, starts nothing, and works without any driver."""

import pytest


def test_import_loads_little(fresh):
    code = """
import sys
before = set(sys.modules)
import genesis
new = set(sys.modules) - before
heavy = {"numpy", "torch", "ctypes", "dataclasses", "inspect", "subprocess", "typing", "re"}
assert not new & heavy, new & heavy
"""
    fresh(code)


def test_import_starts_no_cuda(fresh, fake_driver):
    code = """
import threading, genesis
loaded = open("/proc/self/maps").read()
assert "libgenesis_fake" not in loaded and "libcuda" not in loaded and "nvrtc" not in loaded
genesis.device("cuda"), genesis.device("cuda:1"), genesis.cuda.current_device()
assert "libgenesis_fake" not in open("/proc/self/maps").read()
assert genesis.cuda.is_available()
assert "libgenesis_fake" in open("/proc/self/maps").read()
"""
    fresh(code, GENESIS_CUDA_DRIVER=fake_driver)


@pytest.mark.parametrize("content", [None, b"", b"not a library", b"\x7fELF" + bytes(100)])
def test_a_missing_or_broken_driver(fresh, tmp_path, content):
    path = tmp_path / "libcuda.so.1"
    if content is not None:
        path.write_bytes(content)
    code = """
import genesis
assert genesis.cuda.is_available() is False
assert genesis.cuda.device_count() == 0
assert genesis.cuda.memory_allocated() == 0 and genesis.cuda.memory_stats() == {}
for attempt in range(2):
    try:
        genesis.cuda.set_device(0)
    except RuntimeError as error:
        assert "libcuda.so.1" in str(error), error
    else:
        raise AssertionError("no error")
address = genesis.memory_manager.allocate_memory(10)
genesis.memory_manager.free_memory(address)
"""
    fresh(code, GENESIS_CUDA_DRIVER=str(path))


def test_the_default_driver_is_libcuda(fresh):
    code = """
import genesis
if not genesis.cuda.is_available():
    try:
        genesis.cuda.set_device(0)
    except RuntimeError as error:
        print(error)
"""
    output = fresh(code).stdout
    assert output == "" or "libcuda.so.1" in output or "CUDA driver" in output


def test_version(fresh, root):
    import genesis

    header = (root / "include/genesis/base.h").read_text()
    for place, name in zip(
        genesis.__version__.split("."), ("MAJOR", "MINOR", "PATCH"), strict=True
    ):
        assert f"GN_VERSION_{name} {place}" in header


def test_libraries_are_never_taken_from_the_current_directory(fresh, tmp_path):
    """A relative PYTHONUSERBASE, and an empty sys.path entry, are no place for one."""
    planted = tmp_path / "base/lib/python3/site-packages/scipy_openblas32/lib"
    planted.mkdir(parents=True)
    (planted / "libscipy_openblas.so").write_text("not a library")
    fresh(
        f"""
import os, site, sys
os.chdir({str(tmp_path)!r})
site.getusersitepackages = lambda: "base/lib/python3/site-packages"
sys.path.insert(0, "")
from genesis import _wheels
assert "base/lib/python3/site-packages" not in _wheels.roots()
assert _wheels.roots() and all(os.path.isabs(one) for one in _wheels.roots())
assert all(os.path.isabs(one) and "base/lib" not in one for one in _wheels.openblas())
"""
    )
