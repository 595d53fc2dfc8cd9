"""Kernels that are compiled in the background: who waits, what is listed, and how processes end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import BUILD

COUNT = 6
PRELUDE = f"""
import ctypes, os, signal, sys
import genesis
from genesis import cuda
simulator = ctypes.CDLL({str(BUILD / "libgenesis_sim.so")!r})
def hold(text):
    simulator.sim_control_hold(text)
def wait_until_held():
    while simulator.sim_control_held_count() == 0:
        os.sched_yield()
def make(number):
    name = f"background{{number}}"
    return cuda.Kernel(f"__global__ void {{name}}(int *x) {{{{ *x = {{number}}; }}}}", name)
kernels = [make(number) for number in range({COUNT})]
def check(kernel, value):
    x = genesis.zeros(1, dtype=genesis.int32, device="cuda")
    kernel(1, 1, (x,))
    assert x.item() == value
def origins():
    return {{one.name: one.origin for one in cuda.kernels() if one.name.startswith("background")}}
"""


@pytest.fixture
def environment(tmp_path):
    """A cache of its own, so that all is compiled; and one of the simulator's compiler, none."""
    if not (BUILD / "libgenesis_sim.so").exists():
        pytest.skip("the build has no simulator")
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GENESIS_")}
    own = {
        "GENESIS_CUDA_DRIVER": "sim",
        "GENESIS_KERNEL_CACHE_DIR": str(tmp_path / "kernels"),
        "GENESIS_COMPILE_THREADS": "2",
        "SIM_GPU_CACHE_DIR": "",
    }
    return kept | own


@pytest.fixture
def start(environment, tmp_path):
    """Start a process that runs code."""

    def run(code, **more):
        command = [sys.executable, "-c", PRELUDE + code]
        return subprocess.Popen(
            command,
            env=environment | more,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    return run


@pytest.fixture
def finish(start):
    """Run code to its end; gives what it wrote to standard error."""

    def run(code, returncode=0, **more):
        process = start(code, **more)
        try:
            _, errors = process.communicate(timeout=120)
        finally:
            process.kill()
        assert process.returncode == returncode, errors
        return errors

    return run


def test_without_waiting(finish):
    errors = finish("""
hold(b"background")
cuda.warm_up_kernels(kernels, wait=False)
assert cuda.kernels() == []
hold(None)
cuda.wait_for_kernels()
found = cuda.kernels()
assert sorted(one.name for one in found) == [kernel.name for kernel in kernels]
for one in found:
    assert isinstance(one, cuda.LoadedKernel) and one.device == 0 and one.tier == 1
    assert one.origin == "compiler" and one.compile_ms > 0
    assert one.launches == 0 and one.gpu_ms is None
for number, kernel in enumerate(kernels):
    check(kernel, number)
with cuda.profiler():
    check(kernels[0], 0)
times = {one.name: one for one in cuda.kernels()}
assert times["background0"].launches == 2 and times["background0"].gpu_ms >= 0
assert times["background1"].launches == 1 and times["background1"].gpu_ms is None
cuda.clear_kernel_cache()
assert cuda.kernels() == []
""")
    assert errors == ""


def test_a_launch_does_not_wait_for_others(finish):
    finish(
        """
hold(b"background0(")
kernels[0].compile(wait=False)
wait_until_held()
cuda.warm_up_kernels(kernels[1:], wait=False)
check(kernels[3], 3)
assert "background0" not in origins()
hold(None)
check(kernels[0], 0)
cuda.wait_for_kernels()
""",
        GENESIS_COMPILE_THREADS="1",
    )


def test_operations_are_warmed_up(finish):
    """They are found by the operations, in this process and on disk by the next one."""
    use = """
a, b = genesis.ones(64, 64, device="cuda"), genesis.zeros(64, 64, device="cuda")
cuda.set_kernel_fusion(False)
a + b, a * 2, a.exp(), a.sum(0), a.mean(1)
cuda.synchronize()
"""
    log = {"GENESIS_LOG": "info", "SIM_GPU_CACHE_DIR": str(BUILD / "sim_cache")}
    warm = "cuda.warm_up_kernels(wait=False)\ncuda.wait_for_kernels()\n"
    errors = finish(warm + "print('----', file=sys.stderr, flush=True)\n" + use, **log)
    before, after = errors.split("----\n")
    assert before.count("was compiled") >= 20
    assert "was compiled" not in after
    assert "was compiled" not in finish(use, **log)
    assert "was compiled" not in finish("cuda.warm_up_kernels()", **log).replace(
        "genesis_warm_up was compiled", ""
    )


def test_what_does_not_compile(finish):
    errors = finish("""
wrong = cuda.Kernel("__global__ void wrong() { y = 1; }", "wrong")
for _ in range(2):
    cuda.warm_up_kernels([wrong], wait=False)
    cuda.wait_for_kernels()
try:
    wrong(1, 1, ())
except RuntimeError as error:
    assert "kernel wrong does not compile" in str(error)
else:
    raise AssertionError
check(kernels[1], 1)
try:
    kernels[0].compile("cpu", wait=False)
except RuntimeError as error:
    assert "cpu" in str(error)
else:
    raise AssertionError
""")
    assert errors.count("kernel wrong was not made in the background: ") == 2  # each asks once


def test_interrupted_while_waiting(finish):
    finish("""
def interrupt(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
hold(b"background0(")
kernels[0].compile(wait=False)
wait_until_held()
signal.setitimer(signal.ITIMER_REAL, 0.01)
try:
    cuda.wait_for_kernels()
except KeyboardInterrupt:
    hold(None)
else:
    raise AssertionError
cuda.wait_for_kernels()
check(kernels[0], 0)
""")


def test_the_program_goes_first(finish):
    """The compiling threads are nicer than the program's."""
    finish("""
hold(b"background0(")
kernels[0].compile(wait=False)
wait_until_held()
def niceness(thread):
    with open(f"/proc/self/task/{thread}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[16])
own = niceness(os.getpid())
others = [niceness(thread) for thread in os.listdir("/proc/self/task")]
assert max(others) == min(own + 10, 19), (own, others)
hold(None)
""")


# ---- operations on tensors ----------------------------------------------------------------------

PROGRAM = """
x = genesis.arange(1000.0, device="cuda") / 100
x.tolist()  # a program of its own
def program():
    return ((x + 1).tanh() * x).tolist()
def launches(name):
    return sum(one.launches for one in cuda.kernels() if one.name == name)
NAME = "add_tanh_multiply_kernel"
"""
TIERS = {"GENESIS_TIERS": "on", "SIM_GPU_CACHE_DIR": str(BUILD / "sim_cache")}


def test_a_program_changes_to_its_kernel(finish):
    errors = finish(
        PROGRAM
        + """
hold(NAME.encode())
first = program()
wait_until_held()
assert program() == first and launches(NAME) == 0
hold(None)
cuda.wait_for_kernels()
assert program() == first and launches(NAME) == 1
assert {one.tier for one in cuda.kernels() if one.name == NAME} == {1}
assert any(one.tier == 0 and one.launches >= 2 for one in cuda.kernels())
""",
        **TIERS,
    )
    assert errors == ""


def test_a_program_goes_on_without_its_kernel(finish):
    errors = finish(
        PROGRAM
        + """
simulator.sim_control_refuse(NAME.encode())
first = program()
cuda.wait_for_kernels()
assert [program() for _ in range(3)] == [first] * 3
cuda.wait_for_kernels()
assert launches(NAME) == 0
cuda.clear_kernel_cache()
simulator.sim_control_refuse(None)
assert program() == first
cuda.wait_for_kernels()
assert program() == first and launches(NAME) == 1
""",
        **TIERS,
    )
    (warning,) = errors.splitlines()
    assert "kernel add_tanh_multiply_kernel was not made in the background" in warning


def test_a_program_ends_while_its_kernel_is_compiled(finish):
    assert finish(PROGRAM + "program()", **TIERS | {"SIM_GPU_CACHE_DIR": ""}) == ""


# ---- how processes end --------------------------------------------------------------------------

ASK = "cuda.warm_up_kernels(kernels, wait=False)\n"
# All that is on disk is right: what is not is removed and compiled again.
VERIFY = """
for number, kernel in enumerate(kernels):
    check(kernel, number)
print(sum(origin == "disk" for origin in origins().values()), file=sys.stderr)
"""


def entries(environment):
    """The files of kernels, with their numbers: those of a compiler are not counted."""
    directory = Path(environment["GENESIS_KERNEL_CACHE_DIR"])
    return {
        path.name: path.stat().st_ino
        for path in (directory.iterdir() if directory.is_dir() else ())
        if path.suffix == ".gk" and b"background" in path.read_bytes()
    }


def cache_check(finish, environment):
    """What is there is whole, and is used."""
    before = entries(environment)
    found = int(finish(VERIFY, SIM_GPU_CACHE_DIR=str(BUILD / "sim_cache")))
    after = entries(environment)
    assert found == len(before) and len(after) == COUNT
    assert before.items() <= after.items()
    return len(before)


def test_exit_while_compiling(finish, environment):
    """It waits for what runs, and nothing else."""
    errors = finish(ASK + "import time; time.sleep(0.05)")
    assert errors == ""
    cache_check(finish, environment)


def test_an_exception_while_compiling(finish, environment):
    errors = finish(ASK + "raise ValueError('of the program')", returncode=1)
    assert errors.count("Traceback") == 1 and errors.rstrip().endswith("of the program")
    cache_check(finish, environment)


def test_a_fork_while_compiling(finish, environment):
    """The child has no threads and nothing to wait for; the parent goes on."""
    finish("""
hold(b"background0(")
cuda.warm_up_kernels(kernels, wait=False)
wait_until_held()
for way in (lambda: os._exit(0), lambda: sys.exit(0)):
    child = os.fork()
    if child == 0:
        assert len(os.listdir("/proc/self/task")) == 1
        cuda.wait_for_kernels()
        assert (genesis.ones(3) + 1).sum().item() == 6
        way()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
hold(None)
cuda.wait_for_kernels()
assert len(origins()) == 6
for number, kernel in enumerate(kernels):
    check(kernel, number)
""")
    assert cache_check(finish, environment) == COUNT


def test_killed_while_compiling(start, finish, environment):
    """At whatever moment: nothing broken is left on disk."""
    for moment in range(COUNT):
        process = start(ASK + "cuda.wait_for_kernels()")
        while process.poll() is None and len(entries(environment)) < min(moment, COUNT - 1):
            time.sleep(0.001)
        time.sleep(0.01 * (moment % 3))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    cache_check(finish, environment)


def test_two_processes_compile_the_same(start, finish, environment):
    code = ASK + "cuda.wait_for_kernels()\n" + VERIFY
    processes = [start(code) for _ in range(2)]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    assert cache_check(finish, environment) == COUNT
