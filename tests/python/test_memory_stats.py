"""Memory of all devices: genesis.memory_stats and its like, genesis.cuda and genesis.cpu."""

TORCH_KEYS = [
    *(
        f"{name}.all.{kind}"
        for name in (
            *("allocation", "active", "segment", "inactive_split"),
            *("allocated_bytes", "requested_bytes", "reserved_bytes", "active_bytes"),
            "inactive_split_bytes",
        )
        for kind in ("current", "peak", "allocated", "freed")
    ),
    "num_alloc_retries",
    "num_sync_all_streams",
    "num_ooms",
    "num_device_alloc",
    "num_device_free",
]


def test_memory_stats(any_memory):
    any_memory("""
assert isinstance(genesis.memory_stats(), MemoryStats)
before = genesis.memory_stats()
pointers = [mm.allocate_memory(100_000) for _ in range(5)]
stats = genesis.memory_stats()
now = mm.statistics()
assert stats.allocated_bytes - before.allocated_bytes == now["live_bytes"] >= 500_000
assert stats.reserved_bytes >= stats.allocated_bytes
assert stats.active_bytes == stats.allocated_bytes and stats.num_allocs == before.num_allocs + 5
assert stats.inactive_bytes == stats.cached_bytes == stats.reserved_bytes - stats.allocated_bytes
assert stats.fragmentation_ratio() == stats.inactive_bytes / stats.reserved_bytes
assert stats.peak_allocated >= stats.allocated_bytes
for pointer in pointers: mm.free_memory(pointer)
stats = genesis.memory_stats(mm.device)
assert stats.allocated_bytes == 0 and stats.num_frees == 5 and stats.peak_allocated >= 500_000
genesis.empty_cache()
assert genesis.memory_stats().reserved_bytes == 0 == genesis.memory_stats().fragmentation_ratio()
raises(ValueError, "", genesis.memory_stats, "gpu")
""")


def test_memory_that_only_tensors_used(fresh):
    """What tensors took is counted and given back, though nobody has asked for a manager."""
    fresh(
        """
import genesis
x = genesis.empty(1000, 1000, device="cuda")
stats = genesis.memory_stats()
assert stats.reserved_bytes >= stats.allocated_bytes >= 4_000_000
del x
genesis.empty_cache()
assert genesis.memory_stats().reserved_bytes == 0
assert genesis.memory_stats(device="cuda").num_frees == 1
""",
        GENESIS_CUDA_DRIVER="sim",
    )


def test_stats_by_hand():
    from genesis.ndarray.cuda_memory_manager import MemoryStats

    stats = MemoryStats()
    assert stats.fragmentation_ratio() == 0.0
    stats.update_allocation(100)
    stats.update_allocation(50)
    assert (stats.allocated_bytes, stats.active_bytes, stats.peak_allocated) == (150, 150, 150)
    assert stats.num_allocs == 2 and stats == MemoryStats(
        allocated_bytes=150, active_bytes=150, peak_allocated=150, num_allocs=2
    )
    stats.reserved_bytes = 300
    assert stats.fragmentation_ratio() == 0.5 and "reserved_bytes=300" in repr(stats)
    assert stats != 1
    try:
        MemoryStats(bytes=1)
    except TypeError:
        pass
    else:
        raise AssertionError


def test_all_devices_are_summed(fresh):
    fresh(
        """
import genesis
from genesis.ndarray.cuda_memory_manager import *
assert "libgenesis_sim" not in open("/proc/self/maps").read()
assert genesis.memory_stats().allocated_bytes == 0
assert genesis.memory_pressure() >= 0
genesis.empty_cache()
assert "libgenesis_sim" not in open("/proc/self/maps").read()   # asking starts nothing
owned = [(CUDAMemoryManager(name), 1 << (20 + i))
         for i, name in enumerate(("cpu", "cuda:0", "cuda:1"))]
blocks = [(manager, manager.allocate_memory(size)) for manager, size in owned]
assert genesis.memory_stats().allocated_bytes == 7 << 20
assert genesis.memory_stats("cuda:1").allocated_bytes == 4 << 20
assert genesis.memory_stats("cpu").allocated_bytes == 1 << 20
assert genesis.memory_stats(0).allocated_bytes == 2 << 20
large = genesis.detailed_memory_stats().get_large_allocations()
sizes = [(one.size, str(one.device)) for one in large]
assert sizes == [(4 << 20, "cuda:1"), (2 << 20, "cuda:0"), (1 << 20, "cpu")]
pinned = CUDAMemoryManager("cuda:0", pinned=True)
address = pinned.allocate_memory(8 << 20)
assert genesis.memory_stats().allocated_bytes == 15 << 20
assert genesis.memory_stats("cpu").allocated_bytes == 9 << 20
assert genesis.memory_stats("cuda:0").allocated_bytes == 2 << 20
pinned.free_memory(address)
genesis.cuda.empty_cache("cuda:0")
for manager, block in blocks: manager.free_memory(block)
genesis.cuda.empty_cache()
assert genesis.memory_stats(0).reserved_bytes == 0 == genesis.memory_stats(1).reserved_bytes
assert genesis.memory_stats("cpu").reserved_bytes > 0
genesis.empty_cache("cpu")
genesis.empty_cache()
assert genesis.memory_stats().reserved_bytes == 0
""",
        GENESIS_CUDA_DRIVER="sim",
        SIM_GPU_DEVICES="2",
    )


def test_detailed_memory_stats(any_memory):
    any_memory("""
pointers = [mm.allocate_memory(size) for size in (1000, 3 * MiB, 2 * MiB)]
stats = genesis.detailed_memory_stats()
assert isinstance(stats, DetailedMemoryStats) and "total_allocated" in repr(stats)
assert stats.total_allocated == genesis.memory_stats().allocated_bytes >= 5 * MiB + 1000
assert stats.peak_allocated >= stats.total_allocated
assert 0 <= stats.fragmentation_ratio <= 1 and 0 <= stats.cache_hit_rate <= 1
large = stats.get_large_allocations(min_size=2 * MiB)
assert [one.size for one in large] == [3 * MiB, 2 * MiB]
assert [one.address for one in large] == pointers[1:]
assert all(one.device == mm.device and isinstance(one.location, str) for one in large)
assert len(stats.get_large_allocations("3MiB")) == 1 and len(stats.get_large_allocations()) == 3
for pointer in pointers: mm.free_memory(pointer)
assert genesis.detailed_memory_stats().get_large_allocations(0) == []
for _ in range(99): mm.free_memory(mm.allocate_memory(1000))
rate = genesis.detailed_memory_stats().cache_hit_rate
assert rate == 0 if mm.policy == "direct" else rate > 0.9
""")


def test_the_dict(any_memory):
    any_memory(f"""
pointer = mm.allocate_memory(12345)
stats, now = mm.memory_stats(), mm.statistics()
assert stats["allocated"] == stats["allocated_bytes.all.current"] == now["live_bytes"] >= 12345
assert stats["requested"] == 12345 == stats["requested_bytes.all.current"]
assert stats["reserved"] == stats["reserved_bytes.all.current"] == now["reserved_bytes"]
assert stats["cached"] == now["cached_bytes"] and stats["pending"] == 0
assert stats["peak_allocated"] == stats["allocated_bytes.all.peak"]
assert stats["allocation.all.current"] == 1 == stats["allocation.all.allocated"]
assert stats["free"] > 0 and stats["fragmentation"] == 1 - stats["allocated"] / stats["reserved"]
assert set({TORCH_KEYS}) <= set(stats)
again = cuda.memory_stats(mm.device)
assert again.keys() == stats.keys()
for name in set(stats) - {{"free"}}:  # the system's memory is others', too
    assert again[name] == stats[name], name
mm.free_memory(pointer)
""")


def test_the_dict_of_the_cpu(any_memory):
    any_memory("""
cpu = CUDAMemoryManager("cpu")
pointer = cpu.allocate_memory(5000)
assert genesis.cpu.memory_stats()["requested"] == 5000
cpu.free_memory(pointer)
assert genesis.cpu.memory_stats()["requested"] == 0
""")


def test_more_names_of_pytorch(simulated_memory):
    simulated_memory("""
free, total = cuda.mem_get_info()
assert (free, total) == cuda.mem_get_info("cuda:0") and 0 < free <= total == 1 << 30
held = genesis.empty(100 * MiB, dtype=genesis.uint8, device="cuda")
assert cuda.mem_get_info(0)[0] <= free - 100 * MiB
del held
cuda.empty_cache()
assert cuda.max_memory_reserved() >= 100 * MiB > cuda.memory_reserved()
cuda.reset_peak_memory_stats()
assert cuda.max_memory_reserved() == cuda.memory_reserved()
cuda.set_per_process_memory_fraction(0.25)
raises(cuda.OutOfMemoryError, "of 256.00 MiB", genesis.empty, 300 * MiB,
       dtype=genesis.uint8, device="cuda")
cuda.set_per_process_memory_fraction(1.0)
cuda.manual_seed_all(7)
first = genesis.rand(5, device="cuda").tolist()
cuda.manual_seed(7)
assert genesis.rand(5).tolist() == first
""")


def test_cuda_functions(simulated_memory):
    simulated_memory("""
assert cuda.memory_allocated() == cuda.memory_reserved() == cuda.memory_cached() == 0
pointer = mm.allocate_memory(3 * MiB)
assert cuda.memory_allocated() >= 3 * MiB
assert cuda.memory_reserved() == cuda.memory_allocated() + cuda.memory_cached()
mm.free_memory(pointer)
assert cuda.memory_allocated() == 0 < cuda.memory_cached() == cuda.memory_reserved()
assert cuda.max_memory_allocated() >= 3 * MiB
cuda.empty_cache()
assert cuda.memory_cached() == 0 == cuda.memory_reserved()
text = cuda.memory_summary()
assert "cuda:0" in text and "virtual" in text and "driver allocations" in text
assert "driver allocations" not in cuda.memory_summary(abbreviated=True)
""")


def test_cuda_functions_without_cuda(fresh, tmp_path):
    fresh(
        """
import genesis
from genesis import cuda
assert cuda.memory_allocated() == cuda.memory_cached() == cuda.memory_reserved() == 0
assert cuda.memory_stats() == {} and cuda.memory_snapshot() == []
assert "no CUDA" in cuda.memory_summary()
cuda.empty_cache(); cuda.reset_peak_memory_stats()
assert cuda.max_memory_allocated() == 0
cuda.set_memory_fraction(0.9); cuda.set_cache_size("2GB")
assert genesis.memory_manager.get_config()["memory_fraction"] == 0.9
assert genesis.memory_manager.get_config()["cache_bytes"] == 2 * 10**9
for call in (lambda: cuda.memory_stats(0), lambda: cuda.set_memory_fraction(0.5, 0)):
    try:
        call()
    except RuntimeError:
        pass
    else:
        raise AssertionError
""",
        GENESIS_CUDA_DRIVER=str(tmp_path / "libcuda.so.1"),
    )


def test_memory_snapshot(any_memory):
    any_memory("""
stream = cuda.Stream(mm.device)
pointers = [mm.allocate_memory(1000), mm.allocate_memory(2 * MiB, stream)]
pointers.append(mm.allocate_memory(70_000))
mm.free_memory(pointers[2])
snapshot = cuda.memory_snapshot(mm.device)
assert snapshot == mm.memory_snapshot()
by_address = {entry["address"]: entry for entry in snapshot}
first, second = by_address[pointers[0]], by_address[pointers[1]]
assert first["state"] == "live" and first["requested_size"] == 1000 <= first["size"]
assert first["device"] == str(mm.device) and first["number"] == 1
assert second["stream"] == (stream.stream_id if mm.policy != "direct" else 0)
assert second["requested_size"] == 2 * MiB
if mm.policy != "direct":
    assert by_address[pointers[2]]["state"] == "stream_cached"
    assert by_address[pointers[2]]["number"] == 0
assert sum(entry["size"] for entry in snapshot) == mm.statistics()["reserved_bytes"]
for entry in snapshot[:3]:
    print(f"Address: {entry['address']}, Size: {entry['size']} bytes")
mm.free_memory(pointers[0]); mm.free_memory(pointers[1])
""")


def test_memory_fraction(simulated_memory):
    simulated_memory("""
cuda.set_memory_fraction(0.25)
raises(genesis.OutOfMemoryError, "", mm.allocate_memory, 300 * MiB)
pointer = mm.allocate_memory(200 * MiB)
mm.free_memory(pointer)
cuda.set_memory_fraction(1.0)
mm.free_memory(mm.allocate_memory(300 * MiB))
cuda.set_memory_fraction(0.5, device="cuda:0")
assert mm.get_config()["memory_fraction"] == 0.5
for wrong in (1.5, -1, float("nan")):
    raises(ValueError, "", cuda.set_memory_fraction, wrong)
raises(TypeError, "", cuda.set_memory_fraction, "all")
assert mm.get_config()["memory_fraction"] == 0.5
raises(RuntimeError, "", cuda.set_memory_fraction, 0.5, device=5)
""")


def test_cache_size(memory):
    memory("""
cuda.set_cache_size("2GB")
assert mm.get_config()["cache_bytes"] == 2 * 10**9
cuda.set_cache_size(8 * MiB, device=mm.device)
for pointer in [mm.allocate_memory(4 * MiB) for _ in range(8)]:
    mm.free_memory(pointer)
assert cuda.memory_cached(mm.device) <= 8 * MiB
cuda.set_cache_size(None)
assert mm.get_config()["cache_bytes"] is None
for wrong in ("2XB", "", "-1", -1):
    raises(ValueError, "", cuda.set_cache_size, wrong)
raises(TypeError, "", cuda.set_cache_size, 1.5)
raises(TypeError, "", cuda.set_cache_size, [])
""")


def test_configure_memory_manager(memory):
    memory("""
before = mm.get_config()
error = raises(ValueError, "segment_siz", cuda.configure_memory_manager,
               {"segment_siz": 1, "memory_fraction": 0.5})
for known in ("segment_size", "enable_warmup", "enable_stats", "allocation_strategy",
              "coalescing_threshold", "cache_sizes", "warmup_sizes", "memory_fraction"):
    assert known in str(error)
assert mm.get_config() == before
cuda.configure_memory_manager({"cleanup_threshold": 0.5}, device=mm.device)
assert mm.get_config()["cleanup_threshold"] == 0.5
cuda.configure_memory_manager({})
raises(ValueError, "", cuda.configure_memory_manager, {3: 4})
""")
