"""The number of threads of operations on the CPU."""

import os
import threading

import pytest

import genesis
from genesis import cpu


@pytest.fixture(autouse=True)
def as_before():
    before = cpu.get_num_threads()
    yield
    cpu.set_num_threads(before)


def test_at_first_the_processors_of_this_process(fresh):
    code = "import genesis; print(genesis.cpu.get_num_threads())"
    assert int(fresh(code).stdout) == min(len(os.sched_getaffinity(0)), 256)
    code = f"import os; os.sched_setaffinity(0, [{min(os.sched_getaffinity(0))}]); {code}"
    assert int(fresh(code).stdout) == 1


@pytest.mark.parametrize(
    ("count", "kept"), [(1, 1), (2, 2), (8, 8), (256, 256), (257, 256), (10**30, 256)]
)
def test_set(count, kept):
    assert genesis.cpu.set_num_threads(count) is None
    assert cpu.get_num_threads() == kept


@pytest.mark.parametrize("count", [0, -1, -(2**31), -(10**30)])
def test_too_few(count):
    cpu.set_num_threads(3)
    with pytest.raises(ValueError, match="at least 1 thread"):
        cpu.set_num_threads(count)
    assert cpu.get_num_threads() == 3


@pytest.mark.parametrize("count", [1.0, "2", None])
def test_not_a_number(count):
    with pytest.raises(TypeError):
        cpu.set_num_threads(count)


def test_setting_it_starts_no_thread(fresh):
    fresh("""
import os, genesis
genesis.cpu.set_num_threads(8)
assert len(os.listdir("/proc/self/task")) == 1
""")


def test_two_threads_and_one_recorder():
    """One writes in place while the other computes all that waits, and shows memory to others."""
    x, y = genesis.ones(20000), genesis.zeros(20000)
    rounds = 300

    def write():
        for _ in range(rounds):
            y.add_(x)

    def watch():
        for _ in range(rounds):
            z = x + 1
            genesis.flush()
            x.data_ptr()
            assert z[5].item() == 2

    threads = [threading.Thread(target=one) for one in (write, watch)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert y.tolist() == [rounds] * 20000
