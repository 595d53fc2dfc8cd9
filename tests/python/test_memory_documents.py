"""The examples of the documents that describe the memory manager, as they stand there.

What is changed: tensors, which are not there yet, are memory of their size; a function that a
document names without defining it is defined.
"""


def test_direct_management(any_memory):
    any_memory("""
nbytes = 1000
# Internal usage (automatically handled)
from genesis.ndarray.cuda_memory_manager import allocate_memory, free_memory

# Allocate GPU memory
ptr = allocate_memory(nbytes)

# Free GPU memory
free_memory(ptr)

# Get statistics
stats = memory_stats()
assert stats["allocated"] == 0
""")


def test_basic_allocation(any_memory):
    finished = any_memory("""
from genesis.ndarray.cuda_memory_manager import get_memory_manager

# Get global memory manager instance
mm = get_memory_manager()

# Allocate GPU memory
ptr = mm.allocate_memory(1024 * 1024)  # 1MB

# Free memory (automatic caching)
mm.free_memory(ptr, 1024 * 1024)

# Check statistics
stats = mm.get_statistics()
print(f"Cache hit rate: {stats.cache_hit_rate:.2%}")
print(f"Memory efficiency: {stats.efficiency_score():.2%}")
""")
    assert finished.stdout.startswith("Cache hit rate: 0.00%\nMemory efficiency: 0.00%")


def test_advanced_configuration(memory):
    memory("""
# Configure memory manager for specific workload
mm.configure(
    segment_size=512 * 1024 * 1024,    # 512MB segments
    cache_sizes={
        'stream_local': 100,            # 100 blocks per stream
        'global': 500,                  # 500 blocks global cache
    },
    warmup_sizes=[
        (4096, 50),    # 50 blocks of 4KB
        (65536, 20),   # 20 blocks of 64KB
        (1048576, 10), # 10 blocks of 1MB
    ]
)
assert mm.get_config()["segment_bytes"] == 512 * 1024 * 1024
assert mm.statistics()["cached_bytes"] >= 50 * 4096
""")


def test_transformer_training(memory):
    memory("""
memory_manager = mm
def allocate_transformer_tensors(batch_size: int, seq_len: int, hidden_size: int):
    common_sizes = [
        batch_size * seq_len * hidden_size,      # Attention weights
        batch_size * seq_len * hidden_size * 4,  # Feed-forward
        batch_size * seq_len * seq_len,          # Attention scores
    ]

    # Warmup cache with expected allocation pattern
    memory_manager.warmup_cache(common_sizes, counts=[10, 5, 10])
allocate_transformer_tensors(4, 128, 256)
with mm.performance_context() as perf:
    for size in (4 * 128 * 256, 4 * 128 * 256 * 4, 4 * 128 * 128):
        mm.free_memory(mm.allocate_memory(size))
assert perf.stats.cache_misses == 0
""")


def test_dynamic_memory_scaling(any_memory):
    any_memory("""
memory_manager = mm
def adaptive_memory_management(memory_pressure: float):
    if memory_pressure > 0.8:
        # High pressure: aggressive cache cleanup
        memory_manager.cleanup_cache(threshold=0.9)
        memory_manager.enable_aggressive_coalescing()
    elif memory_pressure < 0.3:
        # Low pressure: expand cache for better performance
        memory_manager.expand_cache_size(factor=1.5)
for pressure in (0.1, 0.5, 0.9, mm.memory_pressure(), genesis.memory_pressure()):
    adaptive_memory_management(pressure)
mm.free_memory(mm.allocate_memory(1000))
""")


def test_performance_monitoring(any_memory):
    finished = any_memory("""
# Enable detailed performance tracking
with mm.performance_context() as perf:
    # Run memory-intensive operations
    tensors = [mm.allocate_memory(4 * 1000 * 1000) for _ in range(100)]

# Analyze performance
print(f"Total allocations: {perf.stats.total_allocations}")
print(f"Peak memory: {perf.stats.peak_memory_usage / 1024**3:.2f} GB")
print(f"Fragmentation: {perf.stats.fragmentation_ratio:.2%}")
for tensor in tensors: mm.free_memory(tensor)
""")
    assert "Total allocations: 100" in finished.stdout and "0.37 GB" in finished.stdout


def test_runtime_configuration(memory):
    memory("""
# Configure at runtime
genesis.cuda.configure_memory_manager({
    'segment_size': 1024 * 1024 * 1024,  # 1GB
    'enable_warmup': True,
    'enable_stats': True,
    'allocation_strategy': 'best_fit',
    'coalescing_threshold': 0.1,
})
config = mm.get_config()
assert config["segment_bytes"] == 1 << 30 and config["has_detailed_statistics"]
assert config["strategy"] == "best_fit" and config["coalescing_threshold"] == 0.1
assert mm.statistics()["cached_bytes"] > 0
""")


def test_the_environment(simulated_memory):
    simulated_memory(
        """
config = mm.get_config()
assert config["segment_bytes"] == 1073741824 and config["has_detailed_statistics"]
assert 1000 in (config["stream_cache_blocks"], config["global_cache_blocks"])
mm.free_memory(mm.allocate_memory(1000))
""",
        GENESIS_CUDA_SEGMENT_SIZE="1073741824",
        GENESIS_CUDA_CACHE_SIZE="1000",
        GENESIS_CUDA_WARMUP_ENABLED="true",
        GENESIS_CUDA_STATS_ENABLED="true",
    )
    simulated_memory(
        """
assert mm.get_config()["cache_bytes"] == 10**9 and mm.get_config()["memory_fraction"] == 0.8
""",
        GENESIS_CUDA_MEMORY_FRACTION="0.8",
        GENESIS_CUDA_CACHE_SIZE="1GB",
    )


def test_troubleshooting(any_memory):
    finished = any_memory("""
tensors = [mm.allocate_memory(64) for _ in range(1500)]
# Debug memory leaks
stats = mm.get_statistics()
if stats.total_allocations > stats.total_freed + 1000:
    print("Warning: Potential memory leak detected")
    mm.dump_allocation_trace()
for tensor in tensors: mm.free_memory(tensor)

# Diagnose performance problems
if stats.cache_hit_rate < 0.5:
    print("Low cache hit rate - consider warmup cache")
    mm.analyze_allocation_patterns()

if stats.fragmentation_ratio > 0.3:
    print("High fragmentation - enable aggressive coalescing")
    mm.enable_aggressive_coalescing()

# Handle memory pressure
def handle_oom():
    mm.cleanup_cache(force=True)
    mm.coalesce_free_blocks()
    mm.garbage_collect()
handle_oom()
assert mm.statistics()["reserved_bytes"] == 0
""")
    assert "1500 x 64 bytes" in finished.stdout


def test_basic_memory_configuration(any_memory):
    finished = any_memory("""
import warnings
warnings.simplefilter("ignore")   # there may be no device to lock pages for
import genesis

# Configure CUDA memory
genesis.cuda.set_memory_fraction(0.9)  # Use 90% of GPU memory
genesis.cuda.set_cache_size("2GB")     # Set cache size

# Configure CPU memory
genesis.cpu.enable_pinned_memory(True) # Enable pinned memory

# Get current memory stats
stats = genesis.memory_stats()
print(f"Allocated: {stats.allocated_bytes / 1e9:.2f} GB")
print(f"Cached: {stats.cached_bytes / 1e9:.2f} GB")
""")
    assert finished.stdout == "Allocated: 0.00 GB\nCached: 0.00 GB\n"


def test_advanced_memory_control(any_memory):
    any_memory("""
mm.free_memory(mm.allocate_memory(MiB))
# Manual memory management
def optimize_memory_usage():
    # Clear unused cache
    genesis.empty_cache()

    # Trigger garbage collection
    genesis.memory_manager.collect_garbage()

    # Compact fragmented memory
    genesis.memory_manager.compact()

# Memory monitoring
def monitor_memory():
    stats = genesis.memory_stats()
    fragmentation = stats.fragmentation_ratio()

    if fragmentation > 0.3:  # 30% fragmentation threshold
        print("High fragmentation detected, compacting...")
        genesis.memory_manager.compact()
monitor_memory()
optimize_memory_usage()
assert genesis.memory_stats().reserved_bytes == 0
""")


def test_memory_usage_analysis(simulated_memory):
    finished = simulated_memory("""
pointer = mm.allocate_memory(200 * 1000 * 1000)
def analyze_memory_usage():
    stats = genesis.detailed_memory_stats()

    print(f"Total allocated: {stats.total_allocated / 1e9:.2f} GB")
    print(f"Peak usage: {stats.peak_allocated / 1e9:.2f} GB")
    print(f"Fragmentation: {stats.fragmentation_ratio:.2%}")
    print(f"Cache hit rate: {stats.cache_hit_rate:.2%}")

    # Show largest allocations
    large_allocs = stats.get_large_allocations(min_size=100*1024*1024)  # 100MB+
    for alloc in large_allocs:
        print(f"Large alloc: {alloc.size / 1e6:.1f} MB at {alloc.location}")
analyze_memory_usage()
mm.free_memory(pointer)
""")
    assert "Total allocated: 0.20 GB" in finished.stdout
    assert "Large alloc: 200.0 MB at allocation 1 on cuda:0" in finished.stdout


def test_the_pools_of_the_documents(any_memory):
    any_memory("""
pool = CUDAMemoryPool.get_instance()
data = pool.allocate(4096)
def get_memory_stats():
    pool = CUDAMemoryPool.get_instance()
    return {
        'allocated': pool.allocated_bytes,
        'cached': pool.cached_bytes,
        'reserved': pool.reserved_bytes,
        'free': pool.free_bytes,
        'fragmentation': pool.fragmentation_ratio,
        'peak_allocated': pool.peak_allocated_bytes,
    }
from genesis.ndarray import cuda_memory_manager
ours = cuda_memory_manager.get_memory_stats()
theirs = get_memory_stats()
for stats in (ours, theirs): stats.pop('free')
assert ours == theirs
pool.deallocate(data)
future = AsyncMemoryPool(pool_size=1024 * 1024 * 1024).allocate_async(4096)
free_memory(future.result())

def smart_cache_management():
    patterns = mm.analyze_allocation_patterns()
    return [pattern.size for pattern in patterns.frequent]
smart_cache_management(); mm.smart_cache_management()
pool.compact_memory()
""")


def test_monitoring(simulated_memory):
    finished = simulated_memory("""
def monitor_cuda_memory():
    stats = genesis.cuda.memory_stats()
    print(f"Allocated: {stats['allocated'] / 1e9:.2f} GB")
    print(f"Cached: {stats['cached'] / 1e9:.2f} GB")
    print(f"Fragmentation: {stats['fragmentation']:.2%}")
monitor_cuda_memory()
print(f"Allocated memory: {genesis.cuda.memory_allocated() / 1024**2:.1f} MB")
print(f"Cached memory: {genesis.cuda.memory_cached() / 1024**2:.1f} MB")
genesis.cuda.empty_cache()  # Empty cache
snapshot = genesis.cuda.memory_snapshot()
for entry in snapshot[:3]:  # Show first 3 entries
    print(f"Address: {entry['address']}, Size: {entry['size']} bytes")
""")
    assert "Allocated memory: 0.0 MB" in finished.stdout
