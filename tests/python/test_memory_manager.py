"""genesis.ndarray.cuda_memory_manager on the CPU, in this process."""

import ctypes
import gc
import os
import sys
import threading

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import genesis
from genesis.ndarray.cuda_memory_manager import CUDAMemoryManager


@pytest.fixture
def manager():
    manager = CUDAMemoryManager("cpu")
    before = manager.get_statistics()
    yield manager
    after = manager.get_statistics()
    assert after.live_blocks == before.live_blocks
    assert after.current_memory_usage == before.current_memory_usage


def test_both_import_paths():
    import genesis.backends.cuda_memory as other
    import genesis.ndarray.cuda_memory_manager as one

    assert sorted(one.__all__) == sorted(other.__all__)
    for name in one.__all__:
        assert getattr(one, name) is getattr(other, name)


def test_the_document_example():
    """What seed document 1 shows, on whatever device there is."""
    from genesis.ndarray.cuda_memory_manager import allocate_memory, free_memory, memory_stats

    nbytes = 1 << 20
    before = memory_stats()["requested"]
    ptr = allocate_memory(nbytes)
    assert isinstance(ptr, int)
    stats = memory_stats()
    assert stats["requested"] == before + nbytes
    free_memory(ptr)
    assert memory_stats()["requested"] == before


def test_memory_is_usable(manager):
    address = manager.allocate_memory(1000)
    ctypes.memset(address, 0x5A, 1000)
    assert ctypes.string_at(address, 1000) == b"Z" * 1000
    assert manager.block_size(address) == 1000
    manager.free_memory(address, 1000)


def test_zero_bytes(manager):
    addresses = [manager.allocate_memory(0) for _ in range(10)]
    assert len(set(addresses)) == 10 and all(addresses)
    for address in addresses:
        assert manager.block_size(address) == 0
        manager.free_memory(address, 0)


@pytest.mark.parametrize("size", [-1, -(2**63), 2**63, 2**64 - 1, 2**64, 2**100])
def test_impossible_sizes(manager, size):
    before = manager.statistics()
    with pytest.raises(ValueError):
        manager.allocate_memory(size)
    assert manager.statistics() == before


@pytest.mark.parametrize("size", [2**46, 2**62, 2**63 - 1, 2**63 - 4096])
def test_more_than_there_is(manager, size):
    with pytest.raises((genesis.OutOfMemoryError, ValueError)) as caught:
        manager.allocate_memory(size)
    if size < 2**63 - 4096:
        assert isinstance(caught.value, genesis.OutOfMemoryError)
        assert "were asked for" in str(caught.value)
    address = manager.allocate_memory(10)
    manager.free_memory(address)


@pytest.mark.parametrize("size", [1.5, None, b"1", []])
def test_sizes_of_the_wrong_type(manager, size):
    with pytest.raises(TypeError):
        manager.allocate_memory(size)


def test_misuse_changes_nothing(manager):
    address = manager.allocate_memory(100)
    before = manager.statistics()
    for pointer, nbytes, text in (
        (address, 99, "has 100 bytes, not 99"),
        (address, 0, "has 100 bytes"),
        (address + 1, None, "1 bytes into the block"),
        (address + 4096 * 1000, None, "not allocated"),
        (0, None, "not allocated"),
        (2**64 - 1, None, "not allocated"),
        (id(manager), None, "not allocated"),
    ):
        with pytest.raises(ValueError, match=text):
            manager.free_memory(pointer, nbytes)
    with pytest.raises(ValueError):
        manager.free_memory(-1)
    with pytest.raises(TypeError):
        manager.free_memory(None)
    after = manager.statistics()
    assert after.pop("refused_count") == before.pop("refused_count") + 7
    assert after == before
    manager.free_memory(address)
    with pytest.raises(ValueError, match="freed already"):
        manager.free_memory(address)


def test_peaks(manager):
    first = manager.allocate_memory(1 << 20)
    second = manager.allocate_memory(1 << 20)
    manager.free_memory(second)
    peak = manager.get_statistics().peak_memory_usage
    assert peak >= 2 << 20
    genesis.cuda.reset_peak_memory_stats("cpu")
    assert genesis.cuda.max_memory_allocated("cpu") == genesis.cuda.memory_allocated("cpu")
    assert genesis.cuda.max_memory_allocated("cpu") < peak
    manager.free_memory(first)


def test_stats_agree(manager):
    address = manager.allocate_memory(12345)
    stats = manager.memory_stats()
    assert stats["allocated"] == stats["allocated_bytes.all.current"] <= stats["reserved"]
    assert stats["peak_allocated"] == stats["allocated_bytes.all.peak"]
    assert stats["allocation.all.current"] == manager.get_statistics().live_blocks
    assert stats["cached"] + stats["allocated"] + stats["pending"] == stats["reserved"]
    assert 0 <= stats["fragmentation"] < 1 and stats["free"] > 0
    manager.free_memory(address)


def test_eight_threads(manager):
    failures = []

    def work(seed):
        try:
            for i in range(200):
                size = (seed * 7919 + i * 104729) % 20000
                address = manager.allocate_memory(size)
                ctypes.memset(address, seed, size)
                assert ctypes.string_at(address, size) == bytes([seed]) * size
                manager.free_memory(address, size)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_after_fork(manager):
    address = manager.allocate_memory(100)
    ctypes.memset(address, 1, 100)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert ctypes.string_at(address, 100) == b"\1" * 100
            manager.free_memory(address, 100)
            other = manager.allocate_memory(1 << 20)
            manager.free_memory(other)
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ctypes.string_at(address, 100) == b"\1" * 100
    manager.free_memory(address)


class Model(RuleBasedStateMachine):
    """The manager beside a dict: whatever the program, both say the same."""

    def __init__(self):
        super().__init__()
        self.manager = CUDAMemoryManager("cpu")
        gc.collect()  # what other tests left is not freed in the middle of this one
        self.start = self.manager.statistics()
        self.live = {}

    @rule(size=st.one_of(st.integers(0, 5000), st.integers(0, 1 << 22)))
    def allocate(self, size):
        address = self.manager.allocate_memory(size)
        assert address not in self.live
        self.live[address] = size

    @precondition(lambda self: self.live)
    @rule(data=st.data(), is_sized=st.booleans())
    def free(self, data, is_sized):
        address = data.draw(st.sampled_from(sorted(self.live)))
        size = self.live.pop(address)
        self.manager.free_memory(address, size if is_sized else None)

    @rule(address=st.integers(0, 2**64 - 1), size=st.one_of(st.none(), st.integers(0, 10)))
    def free_at_random(self, address, size):
        if address not in self.live:
            with pytest.raises(ValueError):
                self.manager.free_memory(address, size)

    @rule(size=st.integers(min_value=2**63))
    def allocate_too_much(self, size):
        with pytest.raises(ValueError):
            self.manager.allocate_memory(size)

    @invariant()
    def books_agree(self):
        now = self.manager.statistics()
        assert now["live_count"] - self.start["live_count"] == len(self.live)
        requested = now["requested_bytes"] - self.start["requested_bytes"]
        assert requested == sum(self.live.values())
        assert now["live_bytes"] - self.start["live_bytes"] >= requested
        idle = now["cached_bytes"] + now["pending_bytes"]
        assert now["reserved_bytes"] == now["live_bytes"] + idle

    @rule(data=st.data())
    def give_back(self, data):
        call = data.draw(st.sampled_from(["collect", "coalesce", "trim", "compact"]))
        getattr(self.manager, call)()

    @rule(sizes=st.lists(st.integers(0, 100_000), max_size=5))
    def allocate_batch(self, sizes):
        for address, size in zip(self.manager.allocate_batch(sizes), sizes, strict=True):
            assert address not in self.live
            self.live[address] = size

    def teardown(self):
        for address in self.live:
            self.manager.free_memory(address)


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)


def test_objects_do_not_leak():
    import gc

    def work():
        manager = CUDAMemoryManager("cpu")
        manager.free_memory(manager.allocate_memory(10))
        stream = genesis.cuda.Stream("cpu")
        stream.record_event().synchronize()
        str(stream.device), manager.device, manager.memory_stats()
        for call in (lambda: manager.free_memory(1), lambda: genesis.device("x")):
            with pytest.raises(ValueError):
                call()

    for _ in range(20):
        work()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(200):
        work()
    gc.collect()
    assert sys.getallocatedblocks() - before < 100
