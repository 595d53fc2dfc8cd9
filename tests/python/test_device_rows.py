"""Rows and random numbers on the simulated GPU, in an order of work and of lanes that is drawn."""

from conftest import BUILD, simulate_script


def test_rows_on_the_simulated_gpu():
    """tests/ops/device_rows.py; every finding is fatal: a race, an access outside of memory."""
    finished = simulate_script(
        "device_rows.py",
        SIM_GPU_SCHEDULE="random",
        SIM_GPU_LANES="random",
        SIM_GPU_FINDINGS="abort",
    )
    assert finished.stdout.split()[-1] == "streams"


def test_what_fails_for_memory_leaves_nothing(fresh):
    """Temporary memory that is not there: an error, and all memory is as before."""
    code = """
import genesis
x = genesis.ones(1 << 20, dtype=genesis.int64, device="cuda")
genesis.flush()
before = genesis.cuda.memory_allocated()
for call in (x.sort, x.unique, lambda: x.topk(3000)):
    try:
        call()
    except genesis.OutOfMemoryError:
        assert genesis.cuda.memory_allocated() == before
    else:
        raise AssertionError("there was memory")
assert x[:9].sort()[0].tolist() == [1] * 9
"""
    driver = str(BUILD / "libgenesis_sim.so")
    fresh(code, GENESIS_CUDA_DRIVER=driver, SIM_GPU_MEMORY=str(32 << 20))
