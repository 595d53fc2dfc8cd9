"""The memory manager's blocks from Python: on the CPU, the simulated GPU, under every policy."""


def test_the_default_policies(memory):
    policy = {"cpu": "pool", "sim": "virtual", "sim-pool": "pool"}[memory.place]
    kind = "cpu" if memory.place == "cpu" else "cuda"
    memory(f"assert mm.policy == {policy!r} and mm.device.type == {kind!r} and not mm.is_pinned")


def test_allocate_and_free(any_memory):
    any_memory("""
sizes = [0, 1, 511, 512, 513, 4096, 100_000, MiB - 1, MiB, MiB + 1, 5_000_000]
addresses = [mm.allocate_memory(size) for size in sizes]
assert len(set(addresses)) == len(sizes) and all(isinstance(a, int) and a for a in addresses)
assert all(address % (256 if mm.policy == "direct" else 512) == 0 for address in addresses)
ordered = sorted(zip(addresses, sizes))
assert all(a + size <= b for (a, size), (b, _) in zip(ordered, ordered[1:]))
for address, size in zip(addresses, sizes):
    assert mm.block_size(address) == size
now = mm.statistics()
assert now["requested_bytes"] == sum(sizes) and now["live_count"] == len(sizes)
assert now["live_bytes"] >= sum(sizes)
assert now["reserved_bytes"] == now["live_bytes"] + now["cached_bytes"] + now["pending_bytes"]
for i, (address, size) in enumerate(zip(addresses, sizes)):
    mm.free_memory(address, size) if i % 2 else mm.free_memory(ptr=address)
now = mm.statistics()
assert now["live_bytes"] == now["requested_bytes"] == now["live_count"] == 0
assert now["alloc_count"] == now["free_count"] == len(sizes)
""")


def test_the_functions(any_memory):
    any_memory("""
from genesis.ndarray import cuda_memory_manager as one
import genesis.backends.cuda_memory as other
ptr = one.allocate_memory(4 * MiB)
assert one.memory_stats()["requested"] == 4 * MiB and mm.block_size(ptr) == 4 * MiB
other.free_memory(ptr, nbytes="4MiB")
stream = cuda.Stream(mm.device)
ptr = allocate_memory(nbytes=100, stream=stream)
owner = stream.stream_id if mm.policy != "direct" else 0
assert [b["stream_id"] for b in mm.blocks() if b["address"] == ptr] == [owner]
free_memory(ptr=ptr)
assert mm.statistics()["live_count"] == 0
cpu = CUDAMemoryManager("cpu")
foreign = cpu.allocate_memory(10)
free_memory(foreign)   # whichever device it is on
raises(ValueError, "", free_memory, foreign)
assert mm.statistics()["refused_count"] + cpu.statistics()["refused_count"] >= 1
""")


def test_bad_arguments(any_memory):
    any_memory("""
before = mm.statistics()
for call in (mm.allocate_memory, allocate_memory):
    for size in (-1, -(2**63), 2**63, 2**64 - 1, 2**64, 2**100):
        raises(ValueError, "", call, size)
    for size in (b"1", 1.5, None, [], object()):
        raises(TypeError, "nbytes is an int or a text such as '2GB', not", call, size)
    for size in ("", "much", "-1", "1 mile"):
        raises(ValueError, "is not a size", call, size)
    raises(TypeError, "nbytes", call)
    raises(TypeError, "argument", call, 1, None, 2)
    raises(TypeError, "keyword", call, 1, size=2)
    raises(TypeError, "two values", call, 1, nbytes=2)
    raises(TypeError, "Stream", call, 1, "stream")
    raises(TypeError, "Stream", call, 1, stream=0)
assert mm.statistics() == before
address = mm.allocate_memory(1000)
before = mm.statistics()
wrong = [(address + 1, None), (address, 999), (address, 1001), (address, 0), (0, None), (8, None),
         (2**64 - 1, None), (address + 512, None)]
for call in (mm.free_memory, free_memory):
    for pointer, size in wrong:
        raises(ValueError, "", call, pointer, size)
    for pointer in (-1, 2**64):
        raises(ValueError, "", call, pointer)
    for pointer in (None, "0", 1.5, "address"):
        raises(TypeError, "", call, pointer)
    raises(ValueError, "", call, address, "much")
    raises(ValueError, "", call, address, -1)
after = mm.statistics()
assert after.pop("refused_count") == before.pop("refused_count") + 2 * len(wrong)
assert after == before and mm.block_size(address) == 1000
mm.free_memory(address)
raises(ValueError, "freed already", mm.free_memory, address)
raises(ValueError, "", mm.block_size, address)
raises(ValueError, "", mm.record_stream, address, cuda.current_stream(mm.device))
""")


def test_absurd_sizes_are_out_of_memory(any_memory):
    any_memory("""
for size in (2**46, 2**60):
    raises(genesis.OutOfMemoryError, "asked for", mm.allocate_memory, size)
    raises(genesis.OutOfMemoryError, "asked for", mm.allocate_batch, [100, size, 100])
now = mm.statistics()
assert now["out_of_memory_count"] == 4 and now["live_count"] == 0
mm.free_memory(mm.allocate_memory(MiB))
""")


def test_contents_stay(memory):
    """On the CPU, where Python can look."""
    if memory.place != "cpu":
        return
    memory("""
import random
generator, live = random.Random(5), {}
for step in range(4000):
    if live and generator.random() < 0.5:
        address = generator.choice(list(live))
        size, byte = live.pop(address)
        assert ctypes.string_at(address, size) == bytes([byte]) * size
        mm.free_memory(address, size)
    else:
        size, byte = generator.randrange(1 << generator.randrange(1, 19)), step % 256
        address = mm.allocate_memory(size)
        ctypes.memset(address, byte, size)
        live[address] = size, byte
    if step % 500 == 0:
        mm.coalesce()
    if step % 999 == 0:
        mm.compact()
for address, (size, byte) in live.items():
    assert ctypes.string_at(address, size) == bytes([byte]) * size
    mm.free_memory(address, size)
""")


def test_batches(any_memory):
    any_memory("""
sizes = [4096, 1, 0, MiB, 4096, 77]
pointers = mm.allocate_batch([4096, 1, 0, "1MiB", "4KiB", 77])
assert [mm.block_size(pointer) for pointer in pointers] == sizes
assert len(set(pointers)) == len(sizes)
for pointer in reversed(pointers):
    mm.free_memory(pointer)
assert mm.allocate_batch([]) == [] == mm.allocate_batch(iter(()))
stream = cuda.Stream(mm.device)
for pointer in mm.allocate_batch((10, 20), stream=stream):
    if mm.policy != "direct":
        owners = [b["stream_id"] for b in mm.blocks() if b["address"] == pointer]
        assert owners == [stream.stream_id]
    mm.free_memory(pointer)
before = mm.statistics()
raises(TypeError, "", mm.allocate_batch, 5)
raises(TypeError, "", mm.allocate_batch, "12")
raises(TypeError, "", mm.allocate_batch, [1, 2.5])
raises(ValueError, "", mm.allocate_batch, [1, -2])
raises(ValueError, "", mm.allocate_batch, [1, 2**64 - 1])
raises(TypeError, "", mm.allocate_batch, [1], stream=3)
assert mm.statistics() == before
""")


def test_a_batch_is_all_or_nothing(simulated_memory):
    simulated_memory("""
before = mm.statistics()
raises(genesis.OutOfMemoryError, "", mm.allocate_batch, [300 * MiB] * 4)
after = mm.statistics()
assert after["live_count"] == 0 == after["live_bytes"]
assert after["alloc_count"] == before["alloc_count"]
pointers = mm.allocate_batch([300 * MiB] * 3)
for pointer in pointers:
    mm.free_memory(pointer)
""")


def test_record_stream(any_memory):
    any_memory("""
side = cuda.Stream(mm.device)
address = mm.allocate_memory(MiB)
mm.record_stream(address, side)
mm.record_stream(ptr=address, stream=None)
raises(TypeError, "", mm.record_stream, address)
raises(TypeError, "", mm.record_stream, address, "side")
raises(ValueError, "", mm.record_stream, address + 512, side)
mm.free_memory(address)
side.synchronize()
mm.collect()
now = mm.statistics()
assert now["pending_bytes"] == 0 == now["live_bytes"]
del side
gc.collect()
""")


def test_blocks_by_handle(any_memory):
    any_memory("""
block = mm.allocate_block(1000)
assert block.nbytes == 1000 and mm.statistics()["requested_bytes"] == 1000
assert block.address == block.address and block.address % 256 == 0
assert mm.block_size(block.address) == 1000
block.free()
raises(ValueError, "freed", block.free)
raises(ValueError, "freed", lambda: block.address)
raises(ValueError, "freed", lambda: block.nbytes)
other = mm.allocate_block(nbytes=5, stream=cuda.Stream(mm.device))
assert mm.statistics()["live_count"] == 1
del other
gc.collect()
assert mm.statistics()["live_count"] == 0
raises(TypeError, "", mm.allocate_block, 5.5)
raises(ValueError, "", mm.allocate_block, -5)
raises(TypeError, "", type(block))
""")


def test_requests(any_memory):
    any_memory("""
request = mm.allocate_async(1000)
address = request.wait()
assert request.query() is True and mm.block_size(address) == 1000
del request
gc.collect()
assert mm.block_size(address) == 1000   # it is the caller's
mm.free_memory(address)
forgotten = [mm.allocate_async(MiB) for _ in range(20)]
del forgotten
gc.collect()
mm.free_memory(mm.allocate_async(1).wait())   # served after them
assert mm.statistics()["live_count"] == 0
request = mm.allocate_async(2**50, cuda.Stream(mm.device))
while not request.query():
    pass
raises(genesis.OutOfMemoryError, "", request.wait, timeout=10)
raises(ValueError, "", mm.allocate_async, -1)
raises(TypeError, "", mm.allocate_async, 1.5)
request = mm.allocate_async(10)
raises(TypeError, "", request.wait, "soon")
mm.free_memory(request.wait(timeout=30))
""")


def test_graph_pools(memory):
    memory("""
pool = GraphPool(mm)
stream = cuda.Stream(mm.device)
with cuda.stream(stream):
    pool.begin()
    first = mm.allocate_memory(MiB)
    mm.free_memory(first)
    second = mm.allocate_memory(MiB)
    pool.end()
    outside = mm.allocate_memory(MiB)
assert outside not in (first, second)
raises(ValueError, "", pool.close)          # a block of it lives
mm.free_memory(second)
pool.begin(stream=stream)
raises(ValueError, "", pool.close)          # a stream uses it
pool.end(stream)
pool.close()
pool.close()
raises(ValueError, "closed", pool.begin, stream)
raises(TypeError, "", GraphPool, "cpu")
raises(TypeError, "", GraphPool)
mm.free_memory(outside)
GraphPool(mm)   # and one that is forgotten
gc.collect()
""")


def test_pinned_managers(any_memory):
    any_memory("""
pinned = CUDAMemoryManager(mm.device, pinned=True)
is_cuda = mm.device.type == "cuda"      # the CPU's own memory is all there is on the CPU
assert pinned.is_pinned is is_cuda and pinned.device == mm.device
assert ("pinned" in repr(pinned)) is is_cuda
address = pinned.allocate_memory(10_000)
ctypes.memset(address, 7, 10_000)
assert ctypes.string_at(address, 10_000) == b"\\7" * 10_000
assert pinned.block_size(address) == 10_000
if is_cuda:
    raises(ValueError, "", mm.free_memory, address)
pinned.free_memory(address)
assert pinned.get_statistics().live_blocks == 0
address = pinned.allocate_memory(100)
free_memory(address)
assert pinned.get_statistics().live_blocks == 0
""")


def test_streams_of_another_device_are_refused(fresh):
    code = """
import genesis
from genesis.ndarray.cuda_memory_manager import CUDAMemoryManager
manager = CUDAMemoryManager("cuda:1")
address = manager.allocate_memory(10)
for stream in (genesis.cuda.Stream("cuda:0"), genesis.cuda.Stream("cpu")):
    for call in (lambda: manager.allocate_memory(10, stream),
                 lambda: manager.allocate_batch([10], stream),
                 lambda: manager.allocate_async(10, stream),
                 lambda: manager.allocate_block(10, stream),
                 lambda: manager.record_stream(address, stream)):
        try:
            call()
        except ValueError as error:
            assert f"the stream is of {stream.device}, and the memory of cuda:1" in str(error)
        else:
            raise AssertionError
manager.free_memory(address)
assert manager.statistics()["live_count"] == 0
"""
    fresh(code, GENESIS_CUDA_DRIVER="sim", SIM_GPU_DEVICES="2")


def test_threads(any_memory):
    any_memory("""
def work(seed):
    for i in range(300):
        size = (seed * 7919 + i * 104729) % 20000
        address = mm.allocate_memory(size)
        if i % 7 == 0:
            batch = mm.allocate_batch([size, 100])
            for one in batch:
                mm.free_memory(one)
        if i % 50 == 0:
            mm.statistics(), mm.blocks(), mm.classes(), mm.collect(), mm.coalesce()
        mm.free_memory(address, size)
run_threads(8, work)
assert mm.statistics()["live_count"] == 0
""")


def test_blocks_of_other_threads(any_memory):
    any_memory("""
import queue
line = queue.Queue()
def make(index):
    for size in range(500):
        line.put(mm.allocate_memory(size * 100))
    line.put(None)
def end(index):
    while (address := line.get()) is not None:
        mm.free_memory(address)
run_threads(2, lambda index: (make, end)[index](index))
assert mm.statistics()["live_count"] == 0
""")


def test_after_fork(any_memory):
    any_memory("""
address, cpu = mm.allocate_memory(1000), CUDAMemoryManager("cpu")
kept, pinned = cpu.allocate_memory(100), CUDAMemoryManager(mm.device, pinned=True)
pinned.free_memory(pinned.allocate_memory(10))
ctypes.memset(kept, 1, 100)
child = os.fork()
if child == 0:
    status = 1
    try:
        assert ctypes.string_at(kept, 100) == b"\\1" * 100
        cpu.free_memory(kept, 100)
        cpu.free_memory(cpu.allocate_memory(MiB))
        assert genesis.memory_stats().reserved_bytes > 0
        genesis.empty_cache()
        genesis.empty_cache("cpu")
        if mm.device.type == "cuda":
            raises(RuntimeError, "forked", mm.allocate_memory, 1)
            raises(RuntimeError, "forked", allocate_memory, 1)
        mm.free_memory(address)
        status = 0
    finally:
        os._exit(status)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert ctypes.string_at(kept, 100) == b"\\1" * 100
cpu.free_memory(kept)
mm.free_memory(address)
""")


def test_objects_do_not_leak(any_memory):
    any_memory("""
def work():
    manager = CUDAMemoryManager(mm.device)
    manager.free_memory(manager.allocate_memory(10))
    for one in manager.allocate_batch([1, 2]): manager.free_memory(one)
    manager.free_memory(manager.allocate_async(5).wait())
    manager.allocate_block(7).free()
    manager.statistics(), manager.blocks(), manager.classes(), manager.get_config()
    manager.set_config(memory_fraction=1.0)
    manager.set_oom_handler(lambda request: False)
    raises(ValueError, "", manager.free_memory, 1)
    raises(ValueError, "", manager.allocate_batch, [1, -1])
    raises(TypeError, "", manager.warmup_cache, [1], ["x"])
for _ in range(20):
    work()
gc.collect()
before = sys.getallocatedblocks()
for _ in range(200):
    work()
gc.collect()
assert sys.getallocatedblocks() - before < 100
""")


def test_only_its_owner_frees_memory(any_memory):
    """An address that a tensor, a handle or a view of it owns is refused, and all goes on."""
    any_memory("""
place = "cpu" if mm.device.type == "cpu" else "cuda"
for count in (3, 300_000, 3_000_000):
    x = genesis.ones(count, device=place)
    y = x[1:]
    for free in (mm.free_memory, genesis.ndarray.cuda_memory_manager.free_memory):
        raises(ValueError, "belongs to a tensor", free, x.data_ptr())
        raises(ValueError, "belongs to a tensor", free, x.data_ptr(), 4 * count)
        raises(ValueError, "belongs to a tensor", free, y.data_ptr())
    z = genesis.zeros(count, device=place)
    assert z.data_ptr() != x.data_ptr() and (x == 1).all().item()
block = mm.allocate_block(1000)
raises(ValueError, "belongs to a block handle", mm.free_memory, block.address)
if mm.device.type == "cpu":
    with memoryview(block) as view:
        view[0] = 7
        raises(ValueError, "belongs to a block handle", mm.free_memory, block.address)
        assert view[0] == 7
address = block.address
block.free()
raises(ValueError, "freed already", mm.free_memory, address)
""")
