"""MemoryPool, CUDAMemoryPool, CPUMemoryPool and AsyncMemoryPool."""


def test_memory_pool(any_memory):
    any_memory("""
for kind in ("cpu", "cuda", mm.device):
    pool = MemoryPool(kind)
    assert pool.device_type == (kind if isinstance(kind, str) else kind.type)
    first, second = pool.allocate(1000), pool.allocate(size=2 * MiB)
    assert pool.manager.block_size(first) == 1000
    assert pool.total_allocated == 1000 + 2 * MiB == pool.peak_allocated
    assert pool.allocated_blocks[first] == Block(first, 1000)
    assert set(pool.allocated_blocks) == {first, second}
    pool.deallocate(first)
    raises(ValueError, "handed out", pool.deallocate, first)
    raises(ValueError, "handed out", pool.deallocate, second + 512)
    raises(TypeError, "", pool.deallocate, "x")
    raises(ValueError, "", pool.allocate, -1)
    raises(TypeError, "", pool.allocate, 1.5)
    assert pool.total_allocated == 2 * MiB and pool.peak_allocated == 1000 + 2 * MiB
    pool.deallocate(ptr=second)
    assert pool.total_allocated == 0 and pool.allocated_blocks == {}
    if pool.manager.policy != "direct":
        assert any(first == block.ptr for blocks in pool.free_blocks.values() for block in blocks)
        assert all(block.size == size and block.is_free
                   for size, blocks in pool.free_blocks.items() for block in blocks)
        assert pool.allocate(1000) == first               # it is used again
        pool.deallocate(first)
    raises(genesis.OutOfMemoryError, "", pool.allocate, 2**50)
    assert pool.total_allocated == 0 and pool.allocated_blocks == {}
    report = pool.compact_memory()
    assert report.released_bytes >= 0
    assert pool.free_blocks == {}
raises(ValueError, "", MemoryPool, "gpu")
foreign = mm.allocate_memory(10)
raises(ValueError, "handed out", MemoryPool("cuda").deallocate, foreign)
mm.free_memory(foreign)
""")


def test_cuda_memory_pool(any_memory):
    any_memory("""
pool = CUDAMemoryPool.get_instance()
assert pool is CUDAMemoryPool.get_instance() is CUDAMemoryPool.get_instance(0)
assert isinstance(pool, MemoryPool) and pool.device_type == "cuda" and pool.device_id == 0
assert CUDAMemoryPool(device_id=0) is not pool
before = get_memory_stats()
assert before["allocated"] == pool.allocated_bytes == 0
address = pool.allocate(3 * MiB)
stats = get_memory_stats()
assert stats["allocated"] == pool.allocated_bytes >= 3 * MiB
assert stats["reserved"] == pool.reserved_bytes >= pool.allocated_bytes
assert stats["cached"] == pool.cached_bytes
assert stats["fragmentation"] == pool.fragmentation_ratio
assert pool.fragmentation_ratio == 1 - pool.allocated_bytes / pool.reserved_bytes
assert stats["peak_allocated"] == pool.peak_allocated_bytes >= 3 * MiB
assert pool.free_bytes > 0
pool.deallocate(address)
assert pool.allocated_bytes == 0 and pool.peak_allocated_bytes >= 3 * MiB
pool.memory_fraction = 0.8
assert pool.memory_fraction == 0.8 == mm.get_config()["memory_fraction"]
raises(ValueError, "", setattr, pool, "memory_fraction", 1.5)
pool.memory_fraction = 1.0
raises(RuntimeError, "", CUDAMemoryPool, 77)
raises(TypeError, "", CUDAMemoryPool, "cuda")
""")


def test_a_pool_for_each_device(fresh):
    fresh(
        """
from genesis import cuda
from genesis.ndarray.cuda_memory_manager import *
first = CUDAMemoryPool.get_instance()
cuda.set_device(1)
second = CUDAMemoryPool.get_instance()
assert first is not second and second.device_id == 1
address = second.allocate(1000)
assert first.allocated_bytes == 0 < second.allocated_bytes
assert get_memory_stats()["allocated"] == second.allocated_bytes
second.deallocate(address)
""",
        GENESIS_CUDA_DRIVER="sim",
        SIM_GPU_DEVICES="2",
    )


def test_cpu_memory_pool(any_memory):
    any_memory("""
import warnings
pool = CPUMemoryPool()
assert pool.device_type == "cpu" and pool.use_pinned_memory is False
assert pool.pinned_blocks == set()
plain = pool.allocate(1000)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    block = pool.allocate_pinned(1000)
    other = pool.allocate_pinned(10)
assert len(caught) == (0 if cuda.is_available() else 1)
assert isinstance(block, Block) and block.pinned and block.size == 1000
ctypes.memset(block.ptr, 1, 1000); ctypes.memset(plain, 2, 1000)
assert pool.is_pinned(block) and pool.is_pinned(block.ptr) and not pool.is_pinned(plain)
assert pool.pinned_blocks == {block.ptr, other.ptr}
assert set(pool.allocated_blocks) == {plain, block.ptr, other.ptr}
if cuda.is_available():
    assert CUDAMemoryManager(pinned=True).block_size(block.ptr) == 1000
pool.deallocate(block); pool.deallocate(other.ptr); pool.deallocate(plain)
raises(ValueError, "", pool.deallocate, block)
assert pool.pinned_blocks == set() and pool.total_allocated == 0
assert not pool.is_pinned(block)
pool.use_pinned_memory = True
address = pool.allocate(5)
assert pool.is_pinned(address)
pool.deallocate(address)
raises(ValueError, "", pool.allocate_pinned, -1)
""")


def test_enable_pinned_memory(any_memory):
    any_memory("""
import warnings
assert genesis.cpu.is_pinned_memory_enabled() is False
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    genesis.cpu.enable_pinned_memory(True)
    genesis.cpu.enable_pinned_memory(True)
assert len(caught) == (0 if cuda.is_available() else 1)
assert all("no CUDA device" in str(one.message) for one in caught)
pool = CPUMemoryPool()
assert genesis.cpu.is_pinned_memory_enabled() and pool.use_pinned_memory
address = pool.allocate(100)
assert pool.is_pinned(address)
pool.deallocate(address)
genesis.cpu.enable_pinned_memory(False)
assert CPUMemoryPool().use_pinned_memory is False
raises(TypeError, "", genesis.cpu.enable_pinned_memory, "yes")
""")


def test_async_memory_pool(any_memory):
    any_memory("""
pool = AsyncMemoryPool()
assert pool.pool_size == 1 << 30 and pool.alignment == (256 if mm.policy == "direct" else 512)
future = pool.allocate_async(size=100_000)
address = future.result(timeout=60)
assert future.result() == address and future.done() and not future.running()
assert future.exception() is None and not future.cancel() and not future.cancelled()
assert address % pool.alignment == 0 and pool.allocated_blocks[address].size == 100_000
plain = pool.allocate(size_bytes=1000)
assert plain % pool.alignment == 0 and set(pool.allocated_blocks) == {address, plain}
pool.deallocate(address); pool.deallocate(plain)
assert pool.allocated_blocks == {} and pool.total_allocated == 0
if mm.policy != "direct":
    assert any(address == b.ptr for blocks in pool.free_blocks.values() for b in blocks)
raises(ValueError, "", pool.deallocate, address)
futures = [pool.allocate_async(size) for size in range(0, 50_000, 1000)]
results = [future.result() for future in futures]
assert len(set(results)) == 50
for result in results: pool.deallocate(result)
""")


def test_the_size_of_an_async_pool(any_memory):
    any_memory("""
pool = AsyncMemoryPool(pool_size="1MiB")
first = pool.allocate_async(600 * KiB)
second = pool.allocate_async(600 * KiB)
raises(genesis.OutOfMemoryError, "pool_size", second.result)
assert isinstance(second.exception(), genesis.OutOfMemoryError) and second.done()
raises(genesis.OutOfMemoryError, "pool_size", pool.allocate, 600 * KiB)
pool.deallocate(first.result())
pool.deallocate(pool.allocate("1MiB"))
forgotten = pool.allocate_async(MiB)
del forgotten
gc.collect()
assert all_is_freed()
pool.deallocate(pool.allocate(MiB))
for call in (pool.allocate, pool.allocate_async):
    raises(ValueError, "", call, -1)
    raises(ValueError, "", call, "much")
    raises(TypeError, "", call, None)
    raises(TypeError, "", call, 1, stream="x")
raises(ValueError, "", AsyncMemoryPool, -1)
raises(ValueError, "", AsyncMemoryPool, "x")
raises(TypeError, "", AsyncMemoryPool, 1.5)
pool.deallocate(pool.allocate(MiB))        # nothing of what failed is counted
large = AsyncMemoryPool(2**60)
failing = large.allocate_async(2**50)
raises(genesis.OutOfMemoryError, "", failing.result)
raises(genesis.OutOfMemoryError, "", failing.result, timeout=1)
assert large.total_allocated == 0
""")


def test_futures_and_threads(memory):
    memory("""
pool = AsyncMemoryPool()
called = threading.Event()
future = pool.allocate_async(1000)
future.add_done_callback(lambda done: called.set())
assert called.wait(60)
pool.deallocate(future.result())
def work(index):
    for i in range(50):
        pool.deallocate(pool.allocate_async(i * 1000).result())
run_threads(4, work)
shared = pool.allocate_async(5000)
results = []
run_threads(4, lambda index: results.append(shared.result()))
assert len(set(results)) == 1 and pool.total_allocated == 5000
pool.deallocate(results[0])
assert mm.statistics()["live_count"] == 0
""")
