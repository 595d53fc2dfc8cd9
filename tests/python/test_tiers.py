"""Interpreted and compiled programs give the same bits: tests/ops/device_tiers.py.

Some types, or with DEVICE_TIERS=all, as in `make soak`, all of them.
"""

import os

import pytest
from conftest import BUILD, run_script, simulate_script

IS_ALL = os.environ.get("DEVICE_TIERS") == "all"
SECTIONS = {
    "operations": 450,
    "layouts": 90,
    "reductions": 200,
    "softmax": 30,
    "lists": 40,
    "programs": 40,
}


def arguments(section):
    count = ("0", "400" if IS_ALL else "12") if section == "programs" else ()
    return ("cuda", section, *(("all",) if IS_ALL and not count else ()), *count)


def lines(finished):
    assert not finished.stderr, finished.stderr
    return finished.stdout.splitlines()


@pytest.mark.parametrize("section", SECTIONS)
def test_the_same_bits_on_the_simulated_gpu(section):
    """Interpreted, compiled, and whichever the kernels' threads have ready."""
    found = {
        tiers: lines(simulate_script("device_tiers.py", *arguments(section), GENESIS_TIERS=tiers))
        for tiers in ("interpreted", "compiled", "on")
    }
    assert len(found["compiled"]) >= SECTIONS[section]
    assert found["interpreted"] == found["compiled"]
    assert found["on"] == found["compiled"]


@pytest.mark.gpu
@pytest.mark.parametrize("section", SECTIONS)
def test_the_same_bits_on_a_gpu(section):
    found = [
        lines(run_script("device_tiers.py", *arguments(section), GENESIS_TIERS=tiers))
        for tiers in ("interpreted", "compiled")
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("schedule", ["eager", "lazy", "random"])
def test_random_programs_when_they_are_interpreted(schedule):
    """Beside the CPU, with and without fusion; each finding of the simulator is fatal."""
    finished = simulate_script(
        "row_programs.py",
        *("cuda", "500", "40", "small"),
        GENESIS_TIERS="interpreted",
        SIM_GPU_SCHEDULE=schedule,
        SIM_GPU_LANES="random",
        SIM_GPU_FINDINGS="abort",
    )
    assert "40 programs, 0 wrong" in finished.stdout


@pytest.fixture
def simulate(fresh):
    """Run code on the simulated GPU."""
    if not (BUILD / "libgenesis_sim.so").exists():
        pytest.skip("the build has no simulator")
    return lambda code, **environment: fresh(code, GENESIS_CUDA_DRIVER="sim", **environment)


TAKEN_OVER = """
import genesis

def kernels(tier):
    every = genesis.cuda.kernels()
    return [one.name for one in every if one.tier == tier and one.launches]

x = genesis.arange(1000, dtype=genesis.float32, device="cuda")
genesis.flush()
first = ((x + 1) * 2).tanh().sum().item()
assert any(name.startswith("interpret") for name in kernels(0)), kernels(0)
genesis.cuda.wait_for_kernels()
before = len(kernels(1))
assert ((x + 1) * 2).tanh().sum().item() == first
assert len(kernels(1)) > before, kernels(1)
"""


def test_a_compiled_kernel_takes_over(simulate):
    simulate(TAKEN_OVER, GENESIS_TIERS="on")


TOO_LARGE = """
import genesis

x = genesis.ones(1_200_000, device="cuda")
genesis.flush()
print((x * 2).sum().item())
"""


def test_what_is_too_large_for_the_interpreter_is_compiled(simulate):
    """The values of the sum would take more than a 64th of the memory; the log says so."""
    finished = simulate(
        TOO_LARGE, GENESIS_TIERS="on", GENESIS_LOG="debug", SIM_GPU_MEMORY=str(64 << 20)
    )
    assert finished.stdout == "2400000.0\n"
    assert "waits for its kernel: the interpreter would need 4800000 bytes" in finished.stderr


def test_many_values_at_a_time(simulate):
    """Thirty results of one program lie in shared memory until they are stored."""
    simulate(
        """
import math
import genesis

x = genesis.ones(9, device="cuda")
genesis.flush()
sine = x.sin()
parts = [sine * (3 + i) for i in range(30)]
genesis.flush()
for i, part in enumerate(parts):
    assert math.isclose(part[8].item(), math.sin(1) * (3 + i), rel_tol=1e-6)
assert not [one for one in genesis.cuda.kernels() if one.tier == 1 and one.launches]
""",
        GENESIS_TIERS="interpreted",
    )


def test_a_graph_is_captured_compiled(simulate):
    """It runs many times; what was captured stays as it is."""
    simulate(
        """
import genesis

x = genesis.arange(64, dtype=genesis.float32, device="cuda")
graph = genesis.cuda.CUDAGraph()
y = genesis.zeros(64, device="cuda")
genesis.cuda.synchronize()
with genesis.cuda.graph(graph):
    y.copy_((x * 3).cos() + 1)
names = [one.name for one in genesis.cuda.kernels() if one.tier == 1 and one.launches]
assert "multiply_cos_add_kernel" in names, names
graph.replay()
assert y.tolist() == ((x * 3).cos() + 1).tolist()
""",
        GENESIS_TIERS="on",
    )


def test_without_an_archive_everything_is_compiled(simulate):
    """GENESIS_TIERS is auto: nobody waits until the interpreter is compiled."""
    simulate(
        """
import genesis

x = genesis.ones(10, device="cuda")
assert (x * 2 + x.sin()).sum().item() > 0
assert not [one for one in genesis.cuda.kernels() if one.name.startswith("interpret")]
"""
    )
