"""Text and advice about memory: what is alive, how it is used, which settings would help."""

from __future__ import annotations

from typing import Any, NamedTuple

from genesis import _C, _memory, _sites
from genesis._memory import counted, format_size
from genesis._memory_views import is_idle

# What counts as a pattern: a size with this part of all allocations, and this many of them.
FREQUENT_SHARE = 0.05
FREQUENT_COUNT = 16
# At most this much is proposed for warming up one size.
WARMUP_BYTES = 64 << 20
WARMUP_BLOCKS = 256
# Nor are these proposed to grow for ever.
SEGMENT_BYTES_LARGEST = 512 << 20
STREAM_BLOCKS_MOST = 1 << 16


class SizePattern(NamedTuple):
    """How blocks of one size, as rounded, are used."""

    size: int
    allocations: int  # since the start
    hits: int  # that threads met from their own caches
    live: int  # blocks now
    cached: int  # blocks now, in the threads' caches

    @property
    def misses(self) -> int:
        """Allocations that needed more than the thread's own cache."""
        return self.allocations - self.hits

    @property
    def hit_rate(self) -> float:
        """The part of the allocations that the thread's own cache met, 0 to 1."""
        return self.hits / self.allocations if self.allocations else 0.0


class AllocationPatterns:
    """Which sizes dominate, how they repeat, what the caches miss, and what would help.

    Attributes
    ----------
    sizes : list of SizePattern
        Every size that was used, the most frequent first.
    frequent : list of SizePattern
        Those that dominate.
    suggestions : dict
        Keywords of the manager's configure() that would help.
    reasons : list of str
        Why, a sentence for each suggestion.
    applied : bool
        Whether the suggestions were applied.
    """

    def __init__(self, manager: _C.MemoryManager) -> None:
        self.device = manager.device
        self.policy = manager.policy
        self.sizes = _sizes_of(manager)
        total = sum(pattern.allocations for pattern in self.sizes)
        self.frequent = [
            pattern
            for pattern in self.sizes
            if pattern.allocations >= max(FREQUENT_COUNT, FREQUENT_SHARE * total)
        ]
        self.suggestions: dict[str, Any] = {}
        self.reasons: list[str] = []
        self.applied = False
        self._statistics = manager.statistics()
        self._config = manager.get_config()
        self._advise()

    def _suggest(self, reason: str, **settings: Any) -> None:
        self.suggestions.update(settings)
        self.reasons.append(reason)

    def _advise(self) -> None:
        if self.policy == "direct" or self._config["strategy"] == "direct":
            self.reasons.append("nothing is cached: each request goes to the driver")
            return
        self._advise_caches()
        self._advise_memory()

    def _advise_caches(self) -> None:
        cold = [pattern for pattern in self.frequent if pattern.hit_rate < 0.9]
        warmup = [(pattern.size, _warmup_count(pattern)) for pattern in cold]
        if warmup:
            sizes = ", ".join(format_size(size) for size, _ in warmup)
            self._suggest(f"the caches miss much of {sizes}: warm them up", warmup_sizes=warmup)
        now, blocks = self._statistics, self._config["stream_cache_blocks"]
        asked = now["stream_hit_count"] + now["global_hit_count"]
        can_grow = blocks is not None and blocks < STREAM_BLOCKS_MOST
        if can_grow and asked >= 100 and now["global_hit_count"] > asked / 2:
            self._suggest(
                "threads fetch most blocks from the device's cache: let them keep more",
                cache_sizes={"stream_local": min(2 * max(blocks, 1), STREAM_BLOCKS_MOST)},
            )

    def _advise_memory(self) -> None:
        now, config = self._statistics, self._config
        idle = _memory.fragmentation(now)
        if idle > 0.3 and now["cached_bytes"] > 1 << 20 and config["coalescing_threshold"] > 0.1:
            self._suggest(
                f"{idle:.0%} of the reserved memory is idle: merge free blocks sooner",
                coalescing_threshold=0.1,
            )
        if now["retry_count"] + now["out_of_memory_count"] and config["cleanup_threshold"] > 0.9:
            self._suggest(
                "memory ran out: give idle memory back before that", cleanup_threshold=0.9
            )
        segment = config["segment_bytes"]
        is_busy = now["driver_alloc_count"] >= 32 and now["miss_count"] * 10 > now["alloc_count"]
        if is_busy and segment < SEGMENT_BYTES_LARGEST:
            self._suggest(
                "many requests went to the driver: take more at a time",
                segment_size=min(2 * segment, SEGMENT_BYTES_LARGEST),
            )

    def summary(self) -> str:
        """The analysis as text for people."""
        now = self._statistics
        hits = now["stream_hit_count"] + now["global_hit_count"]
        asked = hits + now["miss_count"]
        lines = [
            f"allocation patterns of {self.device} ({self.policy})",
            f"  {counted(now['alloc_count'], 'allocation')}; the caches met "
            f"{hits / asked if asked else 0.0:.1%}, {now['miss_count']} went to the driver",
        ]
        if self.sizes:
            lines.append("        size  allocations  met by the thread      live    cached")
        for pattern in self.sizes[:10]:
            lines.append(
                f"  {format_size(pattern.size):>10}  {pattern.allocations:>11}"
                f"  {pattern.hit_rate:>17.1%}  {pattern.live:>8}  {pattern.cached:>8}"
            )
        if len(self.sizes) > 10:
            lines.append(f"  and {counted(len(self.sizes) - 10, 'size')} more")
        lines += [f"  - {reason}" for reason in self.reasons] or ["  nothing to improve"]
        if self.suggestions:
            verb = "applied" if self.applied else "to do so"
            settings = ", ".join(f"{key}={value!r}" for key, value in self.suggestions.items())
            lines.append(f"  {verb}: configure({settings})")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<AllocationPatterns of {self.device}: {len(self.reasons)} remarks>"


def _warmup_count(pattern: SizePattern) -> int:
    """As many as were alive at a time, within reason."""
    wanted = max(pattern.live, pattern.cached, min(pattern.misses, 8))
    return max(1, min(wanted, WARMUP_BLOCKS, WARMUP_BYTES // max(pattern.size, 1)))


def _sizes_of(manager: _C.MemoryManager) -> list[SizePattern]:
    """What is known of each size: from its class if it has one, else from the living blocks."""
    live: dict[int, int] = {}
    for block in manager.blocks():
        if block["state"] == "live":
            live[block["nbytes"]] = live.get(block["nbytes"], 0) + 1
    patterns = [
        SizePattern(
            one["nbytes"],
            one["alloc_count"],
            one["hit_count"],
            live.pop(one["nbytes"], 0),
            one["cached_count"],
        )
        for one in manager.classes()
    ]
    patterns += [SizePattern(size, count, 0, count, 0) for size, count in live.items()]
    used = [pattern for pattern in patterns if pattern.allocations or pattern.live]
    return sorted(used, key=lambda pattern: (-pattern.allocations, pattern.size))


# ---- text ---------------------------------------------------------------------------------------


# Statistics in bytes: what people call them, and their keys.
AMOUNTS = (
    ("live", "live_bytes"),
    ("live, at most", "live_bytes_peak"),
    ("requested", "requested_bytes"),
    ("reserved", "reserved_bytes"),
    ("reserved, at most", "reserved_bytes_peak"),
    ("cached", "cached_bytes"),
    ("pending", "pending_bytes"),
)


def summary_text(manager: _C.MemoryManager, abbreviated: bool = False) -> str:
    """The statistics of a manager for people."""
    now = _memory.statistics(manager)
    lines = [f"memory of {manager.device} ({manager.policy})"]
    for name, key in (*AMOUNTS, ("largest free block", "largest_free_bytes")):
        lines.append(f"  {name:<20}{format_size(now[key]):>12}")
    idle = max(now["reserved_bytes"] - now["live_bytes"], 0)
    hits = now["stream_hit_count"] + now["global_hit_count"]
    asked = hits + now["miss_count"]
    for name, part in (
        ("fragmentation", _memory.fragmentation(now)),
        ("in pieces", max(0.0, 1 - now["largest_free_bytes"] / idle) if idle else 0.0),
        ("met by caches", hits / asked if asked else 0.0),
        ("pressure", _memory.manager_pressure(manager)),
    ):
        lines.append(f"  {name:<20}{part:>12.1%}")
    if abbreviated:
        return "\n".join(lines)
    for name, key in (
        ("allocations", "alloc_count"),
        ("frees", "free_count"),
        ("living blocks", "live_count"),
        ("met by the threads", "stream_hit_count"),
        ("met by the device", "global_hit_count"),
        ("met by the driver", "miss_count"),
        ("driver allocations", "driver_alloc_count"),
        ("driver frees", "driver_free_count"),
        ("retries", "retry_count"),
        ("out of memory", "out_of_memory_count"),
        ("refused frees", "refused_count"),
        ("stream events", "event_count"),
        ("hand-overs", "handover_count"),
    ):
        lines.append(f"  {name:<20}{now[key]:>12}")
    if now["driver_time_ns"]:
        lines.append(f"  {'time in the driver':<20}{now['driver_time_ns'] / 1e6:>9.1f} ms")
    return "\n".join(lines)


def trace_text(manager: _C.MemoryManager) -> str:
    """Every living block of a manager, by size, then by segment."""
    blocks = manager.blocks()
    held = [block for block in blocks if not is_idle(block)]
    requested = sum(block["requested"] for block in held)
    lines = [
        f"memory of {manager.device} ({manager.policy}): {counted(len(held), 'living block')}, "
        f"{format_size(requested)} requested"
    ]
    groups: dict[int, list[dict[str, Any]]] = {}
    for block in held:
        groups.setdefault(block["requested"], []).append(block)
    lines.append("by size, the most bytes first:")
    for size, group in sorted(groups.items(), key=lambda item: (-item[0] * len(item[1]), item[0])):
        lines.append(f"  {len(group)} x {counted(size, 'byte')} = {format_size(size * len(group))}")
    segment = None
    default = _C.default_stream(manager.device).stream_id if held else 0
    for block in held:
        stream = block["stream_id"]
        if block["segment_id"] != segment:
            segment = block["segment_id"]
            lines.append(
                f"segment {segment} at {block['segment_address']:#x}, "
                f"{format_size(block['segment_bytes'])}:"
            )
        lines.append(
            f"  {block['address']:#x}  {counted(block['requested'], 'byte')} in {block['nbytes']}"
            f"  allocation {block['number']}"
            + ("  default stream" if stream in (0, default) else f"  stream {stream}")
            + ("  freed, waiting for its streams" if block["state"] == "pending" else "")
            + (f"  at {_sites.location_of(block['site'])}" if block["site"] else "")
        )
    return "\n".join(lines) + "\n"
