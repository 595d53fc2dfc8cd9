"""python -m genesis memory watch: the figures of a process, read out of its memory."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

import pytest

from genesis import __main__ as command_line
from genesis import _watch
from genesis.ndarray.cuda_memory_manager import CUDAMemoryManager

TOLD_ELSEWHERE = {"largest_free_bytes"}  # is looked for under the lock: a reader has none

# By the version of src/memory/board.c: how many fields its table has, and their names' checksum.
TABLES = {2: (34, 0x930459C0)}

PROGRAM = """
import sys
import genesis
from genesis.ndarray.cuda_memory_manager import CUDAMemoryManager

manager = CUDAMemoryManager({device!r})
kept = [manager.allocate_block(size) for size in (1000, 100_000, 5 << 20)]
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def shell(monkeypatch, capsys):
    """Run the command line here: a parent may read its child where others may not."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["genesis", "memory", "watch", *map(str, arguments)])
        code = command_line.main()
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def start():
    """Start Python code that says when it is ready, and waits for the end of its input."""
    started = []

    def run(code, **environment):
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield run
    for process in started:
        process.stdin.close()
        process.stdout.close()
        process.wait()


def own_figures(name):
    process = _watch.Process(os.getpid())
    try:
        return _watch.Board(process).read()[name]
    finally:
        process.close()


def assert_same(figures, manager):
    now = manager.statistics()
    assert set(figures) == set(now)
    assert {k: v for k, v in figures.items() if k not in TOLD_ELSEWHERE} == {
        k: v for k, v in now.items() if k not in TOLD_ELSEWHERE
    }


def test_the_figures_are_those_of_the_process():
    manager = CUDAMemoryManager("cpu")
    handed = []

    def work():
        handed.extend(manager.allocate_memory(size) for size in range(1, 200_000, 7919))
        for _ in range(100):
            manager.free_memory(manager.allocate_memory(3 << 20))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    for address in handed[::2]:  # of another thread: its counter alone is negative here
        manager.free_memory(address)
    assert_same(own_figures("cpu (pool)"), manager)
    manager.configure(allocation_strategy="direct")
    try:
        handed.append(manager.allocate_memory(12345))
        assert_same(own_figures("cpu (direct)"), manager)
    finally:
        manager.configure(allocation_strategy="best_fit")
    for address in handed[1:-1:2]:
        manager.free_memory(address)
    manager.free_memory(handed[-1])
    assert_same(own_figures("cpu (pool)"), manager)


def test_the_table_is_of_its_version():
    """Fields of src/memory/board.c that change need another version, new ones at the end do not."""
    text = (Path(__file__).parents[2] / "src" / "memory" / "board.c").read_text()
    body = re.search(r"^struct board \{(.*?)^\};", text, re.DOTALL | re.MULTILINE).group(1)
    body = re.sub(r"/\*.*?\*/|\} \w+;", "", body, flags=re.DOTALL)
    fields = re.findall(r"\b(\w+)(?:\[\d+\])?[,;]", body)
    assert fields[: len(_watch._FIELDS)] == _watch._FIELDS
    version = int(re.search(r"BOARD_VERSION = (\d+)", text).group(1))
    count, checksum = TABLES[version]
    assert zlib.crc32(" ".join(fields[:count]).encode()) == checksum
    assert version == _watch.VERSION


def test_another_process(shell, start):
    process = start(PROGRAM.format(device="cpu"))
    code, output, errors = shell(process.pid, "--once")
    assert (code, errors) == (0, "")
    assert f"process {process.pid}, " in output and "cpu (pool)" in output
    assert "\x1b" not in output, "no control codes where there is no terminal"
    rows = dict(re.split(r"\s{2,}", line)[:2] for line in output.splitlines()[2:])
    assert rows["live"] == rows["live, at most"] == "5.1 MiB"
    assert (rows["living blocks"], rows["pending"]) == ("3", "0 bytes")


def test_a_simulated_gpu(shell, start, build):
    if not (build / "libgenesis_sim.so").exists():
        pytest.skip("the build has no simulator")
    driver = str(build / "libgenesis_sim.so")
    process = start(PROGRAM.format(device="cuda"), GENESIS_CUDA_DRIVER=driver)
    output = shell(process.pid, "--once")[1]
    assert "cuda:0 (virtual)" in output and re.search(r"living blocks +3\b", output)


def test_it_ends_with_the_process(shell, start, monkeypatch):
    process = start(PROGRAM.format(device="cpu"))
    sleep, seconds = time.sleep, []

    def slept(interval):
        seconds.append(interval)
        if len(seconds) == 2:
            process.stdin.close()
        sleep(interval)

    monkeypatch.setattr(_watch.time, "sleep", slept)
    code, output, errors = shell(process.pid, "--interval", 0.1)
    assert (code, errors) == (0, "") and set(seconds) == {0.1}
    assert output.count("living blocks") >= 2 and "allocations a second" in output
    assert output.endswith(f"process {process.pid} has ended\n")


def test_a_process_that_ends():
    """It is said to run for a while when its memory is gone."""
    stat = Path("/proc/self/stat").read_text()
    before, _, after = stat.rpartition(")")
    fields = after.split()
    assert _watch._has_memory(stat) and _watch._has_memory(f"1 (a) Z 0) {' '.join(fields)}")
    for at, value in ((0, "Z"), (0, "X"), (20, "0")):
        changed = [*fields[:at], value, *fields[at + 1 :]]
        assert not _watch._has_memory(f"{before}) {' '.join(changed)}\n")


def test_control_c_ends_it_well(shell, start, monkeypatch):
    process = start(PROGRAM.format(device="cpu"))

    def pressed(seconds):
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(_watch.time, "sleep", pressed)
    # Programs in the background ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code, output, errors = shell(process.pid)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (code, errors) == (0, "") and output.count("living blocks") == 1
    assert process.poll() is None


def test_who_cannot_be_watched(shell, start, monkeypatch):
    code, output, errors = shell(1 << 22, "--once")
    assert (code, output) == (2, "") and "there is no process 4194304" in errors
    bare = start("print('ready', flush=True); input()")
    bare.stdin.write("\n")
    assert "has not loaded Genesis" in shell(bare.pid, "--once")[2]
    assert "more than 0" in shell(bare.pid, "--interval", 0)[2]
    process = start(PROGRAM.format(device="cpu"))
    with monkeypatch.context() as patch:
        patch.setattr(_watch, "VERSION", 99)
        errors = shell(process.pid, "--once")[2]
        assert "another version of Genesis" in errors and "this one knows 99" in errors
    with monkeypatch.context() as patch:
        patch.setattr(_watch, "BOARD", b"gn_memory_boards")
        assert "cannot be watched" in shell(process.pid, "--once")[2]

    def refuse(path, flags):
        raise PermissionError

    with monkeypatch.context() as patch:
        patch.setattr(_watch.os, "open", refuse)
        errors = shell(process.pid, "--once")[2]
        assert "this user may not read the memory" in errors and "sudo" in errors
