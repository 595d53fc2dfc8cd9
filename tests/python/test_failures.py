"""Failures on the simulated GPU: tests/sim/sim_failures.py, and what is printed meanwhile."""

import os
from concurrent.futures import ThreadPoolExecutor

from conftest import simulate_script


def run(directory, *sections, **options):
    options |= {"GENESIS_KERNEL_CACHE_DIR": str(directory)}
    lines = simulate_script("sim_failures.py", *sections, **options).stderr.splitlines()
    return [line for line in lines if "leak:" not in line]


def test_kernels(tmp_path):
    sections = "programs", "folds", "loading", "alone", "names", "threads"
    lines = run(tmp_path, *sections, SIM_GPU_SCHEDULE="random")
    assert 2 < len(lines) < 8, lines  # number 1, 2, 4, ... of some dozens
    assert all("warning: operations that cannot be one kernel run one by one" in x for x in lines)
    assert "multiply_add_relu_kernel" in lines[0] and "a test wants no such text" in lines[0]


def test_the_text_of_a_kernel_on_demand(tmp_path):
    texts = tmp_path / "texts"  # it is made
    lines = run(tmp_path, "names", GENESIS_KERNEL_SOURCE_DIR=str(texts), GENESIS_LOG="debug")
    assert texts.stat().st_mode & 0o777 == 0o700
    (text,) = texts.glob("tanh_kernel_*.cu")
    assert "tanh_kernel" in text.read_text()
    start = lines.index("genesis: debug: the text of kernel tanh_kernel:")
    assert lines[start + 1].startswith("genesis: debug:    1  ")
    missing = tmp_path / "no" / "such" / "place"
    lines = run(tmp_path, "names", GENESIS_KERNEL_SOURCE_DIR=str(missing))
    (said,) = {line.partition(str(missing))[2][-27:] for line in lines if str(missing) in line}
    assert said == ": No such file or directory"


# ---- the cache on disk: tests/jit/test_disk_cache.c has more, one by one ----


def compilations(directory, **options):
    """How many kernels a run has compiled, and what it warned of."""
    lines = run(directory, "cached", GENESIS_LOG="info", **options)
    warnings = [line for line in lines if "warning" in line or "error" in line]
    return sum("was compiled" in line for line in lines), warnings


def cut(entry, other):
    os.truncate(entry, entry.stat().st_size // 2)


def change(entry, other):
    data = bytearray(entry.read_bytes())
    data[len(data) * 2 // 3] ^= 4
    entry.write_bytes(data)


def swap(entry, other):
    """It has the code of another kernel."""
    entry.write_bytes(other)


def link(entry, other):
    aside = entry.parent.parent / entry.name
    entry.rename(aside)
    entry.symlink_to(aside)


def pipe(entry, other):
    entry.unlink()
    os.mkfifo(entry)


def disown(entry, other):
    if os.geteuid() == 0:
        os.chown(entry, 12345, 12345)
    else:
        entry.chmod(0o620)


def publish(entry, other):
    entry.chmod(0o666)


def occupy(entry, other):
    entry.unlink()
    entry.mkdir()


ATTACKS = [cut, change, swap, link, pipe, disown, publish, occupy]


def test_entries_that_were_attacked(tmp_path):
    """Each entry in another way: all is compiled again, and kept where that can be."""
    directory = tmp_path / "cache"
    count, warnings = compilations(directory)
    assert count >= 5 and not warnings
    assert compilations(directory) == (0, [])
    for turn in range(0, len(ATTACKS), 3):
        entries = sorted(directory.glob("*.gk"))
        contents = [entry.read_bytes() for entry in entries]
        for i, entry in enumerate(entries):
            ATTACKS[(i + turn) % len(ATTACKS)](entry, contents[i - 1])
        assert compilations(directory) == (count, [])
        occupied = [entry for entry in entries if entry.is_dir()]
        assert compilations(directory)[0] in (len(occupied), len(occupied) - 1)  # one is no kernel
        for entry in occupied:
            entry.rmdir()
        assert compilations(directory)[0] <= len(occupied)


def test_a_cache_of_others(tmp_path):
    directory = tmp_path / "cache"
    directory.mkdir(mode=0o700)
    directory.chmod(0o777)
    count, warnings = compilations(directory)
    assert count >= 5 and len(warnings) == 1 and "GENESIS_KERNEL_CACHE_DIR" in warnings[0]
    assert not list(directory.iterdir())


def test_processes_that_share_a_cache(tmp_path):
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: compilations(tmp_path / "cache"), range(4)))
    assert all(not warnings for _, warnings in found)
    assert compilations(tmp_path / "cache") == (0, [])


# ---- memory, and the device ----


def test_memory(tmp_path):
    assert not run(tmp_path, "full", "calls")


def test_a_lost_device(tmp_path):
    (line,) = run(tmp_path, "lost")
    assert "cuda:0 is lost: cuLaunchKernelEx reported CUDA_ERROR_ILLEGAL_ADDRESS" in line
