"""Configuration, caches, giving back and out-of-memory handling of the memory manager."""


def test_caches_meet_what_was_freed(memory):
    memory("""
first = mm.allocate_memory(5000)
mm.free_memory(first)
with mm.performance_context() as perf:
    again = mm.allocate_memory(5000)
assert again == first
assert perf.stats.cache_hits == 1 and perf.stats.cache_misses == 0
assert perf.stats.cache_hit_rate == 1 == perf.stats.efficiency_score()
mm.free_memory(again)
""")


def test_get_statistics(any_memory):
    any_memory("""
assert isinstance(mm.get_statistics(), AllocationStatistics)
start = mm.get_statistics()
assert start.total_allocations == 0 == start.cache_hit_rate and start.efficiency_score() == 1
pointers = [mm.allocate_memory(100_000) for _ in range(10)]
stats = mm.get_statistics()
assert stats.total_allocations == 10 and stats.total_freed == 0 and stats.live_blocks == 10
assert stats.requested_memory == 1_000_000 <= stats.current_memory_usage <= stats.reserved_memory
assert stats.peak_memory_usage == stats.current_memory_usage
assert stats.cache_hits + stats.cache_misses == 10
assert stats.cache_hits == stats.stream_cache_hits + stats.global_cache_hits
assert 0 <= stats.fragmentation_ratio < 1 and 0 <= stats.external_fragmentation <= 1
assert abs(stats.fragmentation_ratio
           - (1 - stats.current_memory_usage / stats.reserved_memory)) < 1e-9
for pointer in pointers: mm.free_memory(pointer)
raises(ValueError, "", mm.free_memory, pointers[0])
raises(genesis.OutOfMemoryError, "", mm.allocate_memory, 2**50)
stats = mm.get_statistics()
assert stats.total_freed == 10 and stats.refused_frees == 1 and stats.failed_allocations == 1
assert stats.peak_memory_usage >= 1_000_000 and stats.current_memory_usage == 0
""")


def test_the_statistics_classes_by_hand():
    from genesis.ndarray.cuda_memory_manager import AllocationStatistics, CacheStatistics

    assert AllocationStatistics().efficiency_score() == 1.0
    stats = AllocationStatistics(total_allocations=10, cache_hits=5, cache_misses=5)
    assert stats.efficiency_score() == 0.5 == stats.cache_hit_rate
    assert CacheStatistics(stream_hits=2, global_hits=1, misses=1).hit_rate == 0.75
    assert CacheStatistics().hit_rate == 0 == CacheStatistics().hits


def test_configure(memory):
    memory("""
before = mm.get_config()
mm.configure(
    segment_size=64 * MiB,
    cache_sizes={'stream_local': 100, 'global': 500},
    warmup_sizes=[(4096, 50), (65536, 20), (1048576, 10)],
)
config = mm.get_config()
assert config["segment_bytes"] == 64 * MiB
assert config["stream_cache_blocks"] == 100 and config["global_cache_blocks"] == 500
assert mm.statistics()["cached_bytes"] >= 50 * 4096 + 20 * 65536 + 10 * 1048576
mm.configure(cache_size="1GB", allocation_strategy="first_fit", memory_fraction=0.5,
             cleanup_threshold=0.75, coalescing_threshold=0.25, enable_stats=True)
config = mm.get_config()
assert config["cache_bytes"] == 10**9 and config["strategy"] == "first_fit"
assert config["memory_fraction"] == 0.5 and config["cleanup_threshold"] == 0.75
assert config["coalescing_threshold"] == 0.25 and config["has_detailed_statistics"] is True
assert config["segment_bytes"] == 64 * MiB   # what is not given stays
mm.configure(cache_size=float("inf"), segment_size="32MiB")
assert mm.get_config()["cache_bytes"] is None and mm.get_config()["segment_bytes"] == 32 * MiB
mm.configure()
config = mm.get_config()
for wrong in (dict(segment_size=-1), dict(segment_size="much"), dict(memory_fraction=2.0),
              dict(memory_fraction=-0.1), dict(memory_fraction=float("nan")),
              dict(cleanup_threshold=1.5), dict(coalescing_threshold=-1.0),
              dict(cache_sizes={"local": 3}), dict(cache_sizes={"global": -3}),
              dict(allocation_strategy="worst_fit"), dict(cache_size="2XB"), dict(segment_size=1),
              dict(memory_fraction=0.25, segment_size=1),
              dict(memory_fraction=0.25, warmup_sizes=[(-1, 1)])):
    raises(ValueError, "", mm.configure, **wrong)
    assert mm.get_config() == config, wrong
for wrong in (dict(segment_size=1.5), dict(allocation_strategy=3), dict(memory_fraction="half"),
              dict(warmup_sizes=5), dict(warmup_sizes=[5]), dict(unknown=1), dict(cache_size=[])):
    raises(TypeError, "", mm.configure, **wrong)
    assert mm.get_config() == config, wrong
raises(TypeError, "by name", mm.set_config, 1)
raises(TypeError, "unexpected", mm.set_config, segment_size=1)
mm.set_config(**before)
assert mm.get_config() == before
""")


def test_strategies(memory):
    memory("""
for strategy in ("best_fit", "first_fit", "direct", "best_fit"):
    mm.configure(allocation_strategy=strategy)
    pointers = [mm.allocate_memory(size) for size in (100, 10_000, 3 * MiB)]
    for pointer in pointers:
        mm.free_memory(pointer)
assert mm.statistics()["live_count"] == 0
""")


def test_enable_warmup(memory):
    memory("""
mm.configure(enable_warmup=False)
assert mm.statistics()["reserved_bytes"] == 0
mm.configure(enable_warmup=True)
assert mm.statistics()["cached_bytes"] >= 4096 * 50 + 65536 * 20 + 1048576 * 10
""")


def test_warmup_cache(memory):
    memory("""
mm.warmup_cache([4096, "64KiB"], counts=[10, 5])
assert mm.statistics()["cached_bytes"] >= 10 * 4096 + 5 * 65536
assert mm.statistics()["alloc_count"] == 0
with mm.performance_context() as perf:
    pointers = [mm.allocate_memory(4096) for _ in range(10)]
    pointers += [mm.allocate_memory(65536) for _ in range(5)]
assert perf.stats.cache_misses == 0 and perf.stats.cache_hits == 15
for pointer in pointers:
    mm.free_memory(pointer)
mm.warmup_cache([], [])
mm.warmup_cache(sizes=(100,), counts=(0,))
before = mm.statistics()
raises(ValueError, "1 sizes and 2 counts", mm.warmup_cache, [1], [2, 3])
raises(ValueError, "", mm.warmup_cache, [-1], [1])
raises(TypeError, "", mm.warmup_cache, [1])
raises(TypeError, "", mm.warmup_cache, 4096, 3)
raises(TypeError, "", mm.warmup_cache, [4096], ["3"])
raises((genesis.OutOfMemoryError, ValueError), "", mm.warmup_cache, [2**40], [2**40])
raises(genesis.OutOfMemoryError, "", mm.warmup_cache, [2**45], [4])
assert mm.statistics()["live_count"] == before["live_count"] == 0
""")


def test_warm_blocks_are_for_every_thread(memory):
    memory("""
mm.warmup_cache([MiB // 2], [4])
before = mm.statistics()["miss_count"]
run_threads(4, lambda index: mm.free_memory(mm.allocate_memory(MiB // 2)))
assert mm.statistics()["miss_count"] == before
""")


def test_cleanup_cache(memory):
    memory("""
def fill():
    for pointer in [mm.allocate_memory(4 * MiB) for _ in range(8)]:
        mm.free_memory(pointer)
    assert mm.statistics()["cached_bytes"] >= 32 * MiB
fill()
assert mm.cleanup_cache(threshold=1.0) == 0 and mm.statistics()["cached_bytes"] >= 32 * MiB
released = mm.cleanup_cache(threshold=0.0)
assert released >= 32 * MiB and mm.statistics()["cached_bytes"] == 0
fill()
assert mm.cleanup_cache() >= 32 * MiB
fill()
assert mm.cleanup_cache(threshold=1.0, force=True) >= 32 * MiB
assert mm.statistics()["reserved_bytes"] == 0
for wrong in (-0.1, 1.1, float("nan")):
    raises(ValueError, "0 to 1", mm.cleanup_cache, threshold=wrong)
raises(TypeError, "", mm.cleanup_cache, threshold="much")
assert mm.cleanup_cache(force=True) == 0
""")


def test_trim_keeps_what_it_is_told(memory):
    memory("""
for pointer in [mm.allocate_memory(4 * MiB) for _ in range(8)]:
    mm.free_memory(pointer)
mm.trim(8 * MiB)
assert mm.statistics()["cached_bytes"] <= 8 * MiB
mm.trim(keep_bytes=2**64 - 1)
mm.trim()
assert mm.statistics()["cached_bytes"] == 0
raises(ValueError, "", mm.trim, -1)
raises(TypeError, "", mm.trim, 1.5)
""")


def test_expand_cache_size(memory):
    memory("""
mm.configure(cache_size=100 * MiB, cache_sizes={"stream_local": 10, "global": 100})
mm.expand_cache_size(factor=1.5)
config = mm.get_config()
assert config["cache_bytes"] == 150 * MiB
assert config["stream_cache_blocks"] == 15 and config["global_cache_blocks"] == 150
mm.expand_cache_size()
assert mm.get_config()["cache_bytes"] == 225 * MiB
mm.configure(cache_size=float("inf"))
mm.expand_cache_size(2)
assert mm.get_config()["cache_bytes"] is None
for wrong in (0, -1, float("nan"), float("inf")):
    raises(ValueError, "", mm.expand_cache_size, wrong)
raises(TypeError, "", mm.expand_cache_size, "2")
""")


def test_a_small_cache_gives_back(memory):
    memory("""
for pointer in [mm.allocate_memory(4 * MiB) for _ in range(8)]:
    mm.free_memory(pointer)
mm.configure(cache_size=4 * MiB)
assert mm.statistics()["cached_bytes"] <= 4 * MiB
for pointer in [mm.allocate_memory(4 * MiB) for _ in range(8)]:
    mm.free_memory(pointer)
assert mm.statistics()["cached_bytes"] <= 4 * MiB
""")


def test_coalescing(memory):
    memory("""
for pointer in [mm.allocate_memory(1024) for _ in range(64)]:
    mm.free_memory(pointer)
assert sum(len(sizes.get(1024, ())) for sizes in mm.cache.stream_cache.values()) > 0
merged = mm.coalesce_free_blocks()
assert merged > 0 and mm.cache.stream_cache == {}
assert mm.coalesce_free_blocks() == 0
assert mm.get_statistics().external_fragmentation <= 0.5
before = mm.get_config()["coalescing_threshold"]
mm.enable_aggressive_coalescing()
mm.enable_aggressive_coalescing()
assert mm.get_config()["coalescing_threshold"] == 0
for pointer in [mm.allocate_memory(1024) for _ in range(64)]:
    mm.free_memory(pointer)
assert sum(len(sizes) for sizes in mm.cache.stream_cache.values()) <= 1
mm.enable_aggressive_coalescing(False)
assert mm.get_config()["coalescing_threshold"] == before
mm.enable_aggressive_coalescing(False)
""")


def test_garbage_collection(any_memory):
    any_memory("""
class Owner:
    def __init__(self):
        self.own, self.block = self, mm.allocate_block(MiB)
gc.disable()
Owner()
assert mm.statistics()["live_count"] == 1
mm.garbage_collect()
assert mm.statistics()["live_count"] == 0
Owner()
assert genesis.memory_manager.collect_garbage() >= 0
assert mm.statistics()["live_count"] == 0
""")


def test_pending_memory_is_collected(simulated_memory):
    simulated_memory(
        """
side = cuda.Stream()
address = mm.allocate_memory(8 * MiB)
gate = cuda.Event()
mm.record_stream(address, side)
mm.free_memory(address)
cuda.synchronize()
mm.garbage_collect()
assert mm.statistics()["pending_bytes"] == 0
""",
        SIM_GPU_SCHEDULE="lazy",
    )


def test_compact(any_memory):
    any_memory("""
pointers = [mm.allocate_memory(100_000) for _ in range(200)]
for i, pointer in enumerate(pointers):
    if i % 4:
        mm.free_memory(pointer)
before = mm.statistics()
report = mm.compact()
after = mm.statistics()
assert isinstance(report, CompactionReport)
assert after["requested_bytes"] == before["requested_bytes"]
assert after["reserved_bytes"] <= before["reserved_bytes"]
assert report.released_bytes == before["reserved_bytes"] - after["reserved_bytes"]
assert report.folded_pages >= 0 and isinstance(report.can_fold, bool)
for pointer in pointers[::4]:
    assert mm.block_size(pointer) == 100_000
    mm.free_memory(pointer)
mm.compact()
assert mm.statistics()["reserved_bytes"] == 0
""")


def test_segments(memory):
    memory("""
assert mm.segments == []
pointers = [mm.allocate_memory(size) for size in (1000, 70_000, 3 * MiB)]
mm.free_memory(pointers[1])
mm.coalesce()
segments = mm.segments
assert sum(segment.size for segment in segments) >= 3 * MiB + 1000
for segment in segments:
    assert isinstance(segment, Segment) and segment.segment_id > 0
    place = segment.base_ptr
    for block in segment.blocks:
        assert isinstance(block, Block) and block.ptr == place
        assert block.segment_id == segment.segment_id and block.pinned is False
        place += block.size
    assert place == segment.base_ptr + segment.size
    for size, blocks in segment.free_blocks_by_size.items():
        assert all(block.is_free and block.size == size for block in blocks)
    free = sum(block.size for block in segment.blocks if block.is_free)
    listed = segment.free_blocks_by_size
    assert free == sum(size * len(blocks) for size, blocks in listed.items())
live = {block.ptr: block for segment in segments for block in segment.blocks if not block.is_free}
assert set(live) == {pointers[0], pointers[2]} and live[pointers[2]].size >= 3 * MiB
assert len({segment.segment_id for segment in segments}) == len(segments)
raises(AttributeError, "", setattr, mm, "segments", [])
raises(AttributeError, "", setattr, segments[0], "size", 1)
mm.free_memory(pointers[0]); mm.free_memory(pointers[2])
""")


def test_the_cache(memory):
    memory("""
stream = cuda.Stream(mm.device)
here, there = mm.allocate_memory(2048), mm.allocate_memory(4096, stream)
mm.free_memory(here); mm.free_memory(there)
cache = mm.cache
assert isinstance(cache, TwoLevelCache) and isinstance(cache.cache_stats, CacheStatistics)
assert here in cache.stream_cache[cuda.current_stream(mm.device).stream_id][2048]
assert there in cache.stream_cache[stream.stream_id][4096]
stats = cache.cache_stats
assert stats.misses == mm.statistics()["miss_count"] and stats.stream_blocks >= 2
idle = sum(size * len(a) for sizes in cache.stream_cache.values() for size, a in sizes.items())
idle += sum(size * len(a) for size, a in cache.global_cache.items())
assert idle == mm.statistics()["cached_bytes"] == stats.stream_bytes + stats.global_bytes
mm.coalesce()
assert mm.cache.stream_cache == {} and mm.cache.global_cache
assert mm.cache.cache_stats.global_bytes == mm.statistics()["cached_bytes"]
raises(AttributeError, "", setattr, mm, "cache", None)
empty = TwoLevelCache()
assert empty.stream_cache == {} == empty.global_cache and empty.cache_stats.hits == 0
""")


def test_the_documented_paths(memory):
    """allocate_memory as seed document 2 writes it, from the functions that it names."""
    memory("""
def allocate(size):
    if size < mm.SMALL_BLOCK_THRESHOLD:
        return mm.allocate_from_cache(size) or mm.allocate_segment_block(size)
    return mm.allocate_large_block(size)
assert mm.SMALL_BLOCK_THRESHOLD == MiB
assert mm.allocate_from_cache(4096) is None          # nothing is there yet
small, large = allocate(4096), allocate(8 * MiB)
assert mm.block_size(small) == 4096 and mm.block_size(large) == 8 * MiB
mm.add_to_cache(small, 4096)
misses = mm.statistics()["miss_count"]
again = mm.allocate_from_cache(4096)
assert again is not None and mm.statistics()["miss_count"] == misses
raises(ValueError, "", mm.add_to_cache, again, 4097)
mm.add_to_cache(again)
mm.free_memory(large)
for call in (mm.allocate_from_cache, mm.allocate_segment_block, mm.allocate_large_block):
    raises(ValueError, "", call, -1)
    raises(TypeError, "", call, None)
mm.compact()
def cached(size):
    return sum(entry["nbytes"] for entry in mm.blocks() if entry["state"] != "live")
for _ in range(5):                                   # the warm-up loop of the document
    pointer = mm.allocate_segment_block(300 * KiB)
    mm.add_to_cache(pointer, 300 * KiB)
assert cached(0) >= 5 * 300 * KiB
""")


def test_performance_context(any_memory):
    any_memory("""
outer = mm.allocate_memory(10 * MiB)
mm.free_memory(outer)
peak = mm.get_statistics().peak_memory_usage
with mm.performance_context() as perf:
    pointers = [mm.allocate_memory(100_000) for _ in range(10)]
    with mm.performance_context() as inner:
        mm.free_memory(mm.allocate_memory(50_000))
    for pointer in pointers[1:]:
        mm.free_memory(pointer)
assert perf.stats.total_allocations == 11 and perf.stats.total_freed == 10
assert 1_050_000 <= perf.stats.peak_memory_usage < 2 * MiB
assert inner.stats.total_allocations == 1 == inner.stats.total_freed
assert 1_050_000 <= inner.stats.peak_memory_usage <= perf.stats.peak_memory_usage
assert perf.stats.live_blocks == 1 and 0 <= perf.stats.fragmentation_ratio <= 1
assert mm.get_statistics().peak_memory_usage == peak      # nobody else notices
assert cuda.max_memory_allocated(mm.device) == peak == mm.memory_stats()["peak_allocated"]
cuda.reset_peak_memory_stats(mm.device)
assert cuda.max_memory_allocated(mm.device) == cuda.memory_allocated(mm.device)
try:
    with mm.performance_context() as failed:
        mm.free_memory(mm.allocate_memory(1))
        raise KeyError
except KeyError:
    pass
assert failed.stats.total_allocations == 1
mm.free_memory(pointers[0])
""")


def test_no_name_of_c_reaches_python(any_memory):
    any_memory("""
def said(call, *arguments, **keywords):
    error = raises(ValueError, "", call, *arguments, **keywords)
    assert "gn_" not in str(error) and "GN_" not in str(error), error
    return str(error)
assert said(cuda.set_memory_fraction, 2) == (
    "memory_fraction must be above 0 and at most 1: memory_fraction=2")
assert said(mm.configure, segment_size=1) == (
    "segment_size must be from 2 MiB to 64 GiB: segment_size=1")
said(mm.configure, cleanup_threshold=7)
said(cuda.set_memory_callback, print, threshold=3)
said(mm.free_memory, 12345)
said(mm.allocate_memory, 2**63)
said(genesis.memory_profiler.start, max_events=2**40)
stream = cuda.Stream(device=mm.device)
start, end = stream.record_event(), stream.record_event()
assert said(start.elapsed_time, end) == (
    "elapsed_time: both events must be made with enable_timing=True")
""")


def test_dump_allocation_trace(any_memory):
    finished = any_memory("""
import pathlib, tempfile
pointers = [mm.allocate_memory(size) for size in (1000, 1000, 70_000)]
shown = mm.dump_allocation_trace()
buffer = io.StringIO()
text = mm.dump_allocation_trace(buffer)
assert text == buffer.getvalue() == shown
assert "3 living blocks" in text and "2 x 1000 bytes" in text and "1 x 70000 bytes" in text
for block in mm.blocks():
    if block["state"] == "live":
        assert f"{block['address']:#x}" in text and f"allocation {block['number']}" in text
        assert f"segment {block['segment_id']}" in text
assert text.count("  default stream\\n") == 3
other = cuda.Stream(device=mm.device)
pointers.append(mm.allocate_memory(3000, stream=other))
if mm.policy != "direct":
    assert f"  stream {other.stream_id}\\n" in mm.dump_allocation_trace(io.StringIO())
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "trace.txt"
    assert mm.dump_allocation_trace(path) == path.read_text()
    mm.dump_allocation_trace(file=str(path))
    raises(OSError, "", mm.dump_allocation_trace, folder)
for pointer in pointers: mm.free_memory(pointer)
assert "0 living blocks" in mm.dump_allocation_trace(io.StringIO())
""")
    assert "3 living blocks" in finished.stdout


def test_analyze_allocation_patterns(memory):
    memory("""
for _ in range(100):
    mm.free_memory(mm.allocate_memory(4096))
kept = [mm.allocate_memory(20_000) for _ in range(60)]
patterns = mm.analyze_allocation_patterns()
by_size = {pattern.size: pattern for pattern in patterns.sizes}
assert by_size[4096].allocations == 100 and by_size[4096].hits >= 98
assert by_size[4096].misses == by_size[4096].allocations - by_size[4096].hits
assert patterns.sizes[0].size == 4096 and 4096 in [p.size for p in patterns.frequent]
(other,) = [pattern for pattern in patterns.sizes if pattern.live == 60]
assert other.size >= 20_000 and other.allocations == 60
text = patterns.summary()
assert "160 allocations" in text and "4.0 KiB" in text and str(patterns) == text
assert not patterns.applied
if patterns.suggestions:
    assert "configure(" in text and len(patterns.reasons) >= 1
config = mm.get_config()
assert mm.analyze_allocation_patterns().suggestions == patterns.suggestions
assert mm.get_config() == config                    # looking changes nothing
applied = mm.analyze_allocation_patterns(apply=True)
assert applied.applied == bool(applied.suggestions)
assert any(size == other.size for size, _ in applied.suggestions.get("warmup_sizes", ()))
with mm.performance_context() as perf:              # and it helped
    more = [mm.allocate_memory(20_000) for _ in range(20)]
assert perf.stats.cache_misses == 0
for pointer in kept + more: mm.free_memory(pointer)
""")


def test_advice_has_an_end(memory):
    memory("""
mm.configure(cache_sizes={"stream_local": 0})
for i in range(300):
    mm.free_memory(mm.allocate_memory(1000))
for i in range(100):
    mm.analyze_allocation_patterns(apply=True)
assert mm.get_config()["stream_cache_blocks"] <= 1 << 16
assert mm.get_config()["segment_bytes"] <= 512 * MiB
assert mm.statistics()["reserved_bytes"] < 512 * MiB
""")


def test_patterns_of_nothing_and_of_the_direct_policy(any_memory):
    any_memory("""
patterns = mm.analyze_allocation_patterns(apply=True)
assert patterns.sizes == [] and "0 allocations" in patterns.summary()
if mm.policy == "direct":
    assert "driver" in patterns.summary()
else:
    mm.configure(allocation_strategy="direct")
    assert "goes to the driver" in mm.analyze_allocation_patterns().summary()
""")


def test_smart_cache_management(memory):
    memory("""
rare = [mm.allocate_memory(16 * MiB) for _ in range(4)]
for pointer in rare: mm.free_memory(pointer)
for _ in range(200):
    mm.free_memory(mm.allocate_memory(8192))
assert mm.statistics()["cached_bytes"] >= 64 * MiB
patterns = mm.smart_cache_management()
assert 8192 in [pattern.size for pattern in patterns.frequent]
assert mm.statistics()["cached_bytes"] < 64 * MiB       # what is rarely used went back
assert patterns.applied == bool(patterns.suggestions)
""")


def test_memory_pressure(any_memory):
    any_memory("""
before = mm.memory_pressure()
assert 0 <= before <= 1 and isinstance(before, float)
assert genesis.memory_pressure(mm.device) <= 1
if mm.device.type == "cuda":
    pointer = mm.allocate_memory(512 * MiB)
    assert mm.memory_pressure() >= 0.5 > before
    mm.free_memory(pointer)
    mm.cleanup_cache(force=True)
    assert mm.memory_pressure() < 0.5
""")


def test_out_of_memory_and_going_on(simulated_memory):
    simulated_memory("""
pointers = []
try:
    while True:
        pointers.append(mm.allocate_memory(100 * MiB))
except genesis.OutOfMemoryError as error:
    assert "100" in str(error) and isinstance(error, RuntimeError)
assert 5 <= len(pointers) <= 10
mm.free_memory(pointers.pop())
pointers.append(mm.allocate_memory(100 * MiB))
for pointer in pointers: mm.free_memory(pointer)
whole = mm.allocate_memory(800 * MiB)     # from what was in pieces before
mm.free_memory(whole)
assert mm.get_statistics().failed_allocations == 1 == cuda.memory_stats()["num_ooms"]
assert mm.get_statistics().live_blocks == 0
""")


def test_a_limit_of_the_process_is_named(cpu_memory):
    cpu_memory("""
import resource
pages = int(open("/proc/self/statm").read().split()[0])
most = pages * resource.getpagesize() + 100 * MiB
resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
text = str(raises(genesis.OutOfMemoryError, "out of memory", mm.allocate_memory, 200 * MiB))
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert "may not take it: ulimit -v" in text and "in pieces" not in text, text
mm.free_memory(mm.allocate_memory(200 * MiB))
""")


def test_the_out_of_memory_handler(simulated_memory):
    simulated_memory("""
kept, seen = [mm.allocate_memory(200 * MiB) for _ in range(4)], []
def handler(request):
    seen.append(request)
    assert request.nbytes == request.size == 500 * MiB and request.device == mm.device
    mm.free_memory(kept.pop())
    return True
mm.set_oom_handler(handler)
pointer = mm.allocate_memory(500 * MiB)
assert 1 <= len(seen) <= 3 and len(kept) == 4 - len(seen)
mm.free_memory(pointer)
while kept: mm.free_memory(kept.pop())

calls = []
def hopeless(request):
    calls.append(request)
    return True
mm.set_oom_handler(hopeless)
raises(genesis.OutOfMemoryError, "", mm.allocate_memory, 2000 * MiB)
assert len(calls) == 3                                   # at most 3 times
mm.set_oom_handler(lambda request: calls.append(0))     # None: do not try again
raises(genesis.OutOfMemoryError, "", mm.allocate_memory, 2000 * MiB)
assert len(calls) == 4

def handle_oom():                                        # as seed document 2 writes it
    calls.append("doc")
    mm.cleanup_cache(force=True)
    mm.coalesce_free_blocks()
    mm.garbage_collect()
mm.set_oom_handler(handle_oom)
raises(genesis.OutOfMemoryError, "", mm.allocate_memory, 2000 * MiB)
assert calls[4:] == ["doc"]
raises(genesis.OutOfMemoryError, "", mm.allocate_batch, [2000 * MiB])
assert calls[4:] == ["doc"] * 2
mm.set_oom_handler(None)
raises(genesis.OutOfMemoryError, "", mm.allocate_memory, 2000 * MiB)
assert len(calls) == 6
raises(TypeError, "callable", mm.set_oom_handler, 5)
mm.free_memory(mm.allocate_memory(MiB))
""")


def test_a_handler_that_fails_or_changes_itself(simulated_memory):
    simulated_memory("""
printed = []
sys.unraisablehook = lambda args: printed.append(args.exc_value)
def broken(request):
    raise KeyError("broken")
mm.set_oom_handler(broken)
raises(genesis.OutOfMemoryError, "", mm.allocate_memory, 2000 * MiB)
assert [type(error) for error in printed] == [KeyError]
def last(request):
    mm.set_oom_handler(None)
    gc.collect()
    return True
mm.set_oom_handler(last)
raises(genesis.OutOfMemoryError, "", mm.allocate_memory, 2000 * MiB)
seen = []
def nested(request):
    seen.append(request.nbytes)
    raises(genesis.OutOfMemoryError, "", mm.allocate_memory, 4000 * MiB)
    raises(genesis.OutOfMemoryError, "", genesis.empty, 4000 * MiB, device="cuda")
    raises(genesis.OutOfMemoryError, "", mm.allocate_batch, [4000 * MiB])
    raises(genesis.OutOfMemoryError, "", mm.allocate_async(4000 * MiB).wait, 60)
    return True
mm.set_oom_handler(nested)
raises(genesis.OutOfMemoryError, "", mm.allocate_memory, 2000 * MiB)
# not by what it asks for itself; a thread that it waits for is another one, and is served alike
own = seen.count(2000 * MiB)
assert own == 3 and set(seen) == {2000 * MiB, 4000 * MiB} and len(seen) == 3 + 3 * 3, seen
request = mm.allocate_async(2000 * MiB)                 # in a thread that is not Python's
raises(genesis.OutOfMemoryError, "", request.wait, 60)
request = mm.allocate_async(2000 * MiB)                 # and left alone when Python ends
""")


def test_a_handler_that_computes(simulated_memory):
    """An operation that keeps the interpreter's lock calls one that lets it go."""
    simulated_memory("""
kept, seen, size = [], [], 512 * MiB
x = genesis.ones(1000, device="cuda")
x.data_ptr()                                             # now operations on it are not recorded
pending = genesis.ones(100000) + 1
while size > 4096:
    try:
        kept.append(mm.allocate_memory(size))
    except genesis.OutOfMemoryError:
        size //= 2
def handler(request):
    seen.append(pending.numpy()[0])
    mm.free_memory(kept.pop(0))
    return True
mm.set_oom_handler(handler)
while not seen:
    kept.append(x + 1)
assert seen == [2] and kept[-1].cpu().numpy()[0] == 2
""")


def test_handlers_and_threads(simulated_memory):
    """Python code runs in handlers while other threads allocate, free and fail."""
    simulated_memory("""
sys.setswitchinterval(1e-5)
lock, rounds = threading.Lock(), []
def handler(request):
    with lock:
        rounds.append(1)
    time.sleep(0.001)
    return len(rounds) % 2 == 0
mm.set_oom_handler(handler)
def work(index):
    for i in range(20):
        if index % 2:
            raises(genesis.OutOfMemoryError, "", mm.allocate_memory, 2000 * MiB)
            with lock:
                small = mm.allocate_memory(1000)
            mm.free_memory(small)
        else:
            for _ in range(200):
                mm.free_memory(mm.allocate_memory(i * 1000))
run_threads(4, work)
assert len(rounds) >= 40 and mm.statistics()["live_count"] == 0
""")
