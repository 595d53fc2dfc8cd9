"""Memory of every device: what the functions of genesis, genesis.cuda and genesis.cpu share.

Peaks. A manager has one set of peaks. A scope (see :func:`scope_begin`) starts them anew, and what
they were before is kept here, so that nobody else notices: every reading of peaks goes through
:func:`statistics`.
"""

from __future__ import annotations

from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from genesis._types import DetailedMemoryStats, MemoryStats
    from genesis.cuda import DeviceLike

__all__ = ["detailed_memory_stats", "empty_cache", "memory_pressure", "memory_stats"]

_PEAKS = (
    "live_bytes_peak",
    "live_count_peak",
    "requested_bytes_peak",
    "reserved_bytes_peak",
    "active_bytes_peak",
    "active_count_peak",
    "driver_count_peak",
)

# For each manager: the peaks from before the first open scope, then those of the open scopes.
_scopes: dict[tuple[str, bool], list[dict[str, int]]] = {}


def _key(manager: _C.MemoryManager) -> tuple[str, bool]:
    return str(manager.device), manager.is_pinned


def _note_peaks(manager: _C.MemoryManager) -> list[dict[str, int]]:
    """Take the manager's peaks into every open scope; they may be reset after that."""
    scopes = _scopes.setdefault(_key(manager), [{}])
    now = manager.statistics()
    for scope in scopes:
        for name in _PEAKS:
            scope[name] = max(scope.get(name, 0), now[name])
    return scopes


def statistics(manager: _C.MemoryManager) -> dict[str, int]:
    """All counters of a manager."""
    now = manager.statistics()
    for before in _scopes.get(_key(manager), ())[:1]:
        for name in _PEAKS:
            now[name] = max(now[name], before.get(name, 0))
    return now


def reset_peaks(manager: _C.MemoryManager) -> None:
    """Set the peaks of a manager to what is live now; open scopes keep theirs."""
    _note_peaks(manager)[0].clear()
    manager.reset_peaks()


def scope_begin(manager: _C.MemoryManager) -> dict[str, int]:
    """Open a scope with peaks of its own."""
    scope: dict[str, int] = {}
    scopes = _note_peaks(manager)
    manager.reset_peaks()
    scopes.append(scope)
    return scope


def scope_end(manager: _C.MemoryManager, scope: dict[str, int]) -> dict[str, int]:
    """Close a scope; returns its peaks."""
    scopes = _note_peaks(manager)
    scopes[:] = [one for one in scopes if one is not scope]
    return scope


# ---- sizes --------------------------------------------------------------------------------------


def parse_size(size: int | str, what: str = "a size") -> int:
    """Bytes of a number, or of a text such as ``"2GB"``."""
    if isinstance(size, str):
        return _C.parse_size(size)
    if isinstance(size, bool) or not hasattr(size, "__index__"):
        raise TypeError(f"{what} is an int or a text such as '2GB', not {size!r}")
    number = size.__index__()
    if not 0 <= number < 1 << 64:
        raise ValueError(f"{what} must be a number from 0 to 2**64 - 1, not {number}")
    return number


def counted(count: int, word: str, words: str = "") -> str:
    """A number and its word: ``1 block``, ``2 blocks``; `words` where an s is not enough.

    Examples
    --------
    >>> from genesis._memory import counted
    >>> counted(1, "block"), counted(0, "block"), counted(2, "entry", "entries")
    ('1 block', '0 blocks', '2 entries')
    """
    return f"{count} {word if count == 1 else words or word + 's'}"


def format_size(number: int) -> str:
    """A size as people read it."""
    size = float(number)
    if size < 1024:
        return counted(round(size), "byte")
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024:
            return f"{size:.1f} {unit}"
    return f"{size / 1024:.1f} TiB"


# ---- one manager --------------------------------------------------------------------------------


def fragmentation(now: dict[str, int]) -> float:
    """1 - live / reserved; 0 where living blocks share folded pages."""
    return max(0.0, 1 - now["live_bytes"] / now["reserved_bytes"]) if now["reserved_bytes"] else 0.0


def torch_amounts(now: dict[str, int]) -> dict[str, tuple[int, int, int, int]]:
    """PyTorch's statistics, each now, at most, and what came and went since the start.

    What came and went in bytes is counted as asked for, and not as rounded. What could not be given
    back (``inactive_split``) is nothing: pages go back wherever they are.
    """
    live, pending = now["live_bytes"], now["pending_bytes"]
    live_count, pending_count = now["live_count"], now["pending_count"]
    allocated, freed = now["alloc_count"], now["free_count"]
    freed_bytes = now["free_bytes_total"]
    came, went = now["driver_alloc_count"], now["driver_free_count"]
    reserved, came_bytes = now["reserved_bytes"], now["driver_bytes_total"]
    return {
        "allocation": (live_count, now["live_count_peak"], allocated, freed),
        "segment": (came - went, now["driver_count_peak"], came, went),
        "active": (
            live_count + pending_count,
            now["active_count_peak"],
            allocated,
            max(0, freed - pending_count),
        ),
        "inactive_split": (0, 0, 0, 0),
        "allocated_bytes": (live, now["live_bytes_peak"], live + freed_bytes, freed_bytes),
        "reserved_bytes": (reserved, now["reserved_bytes_peak"], came_bytes, came_bytes - reserved),
        "active_bytes": (
            live + pending,
            now["active_bytes_peak"],
            live + freed_bytes,
            max(0, freed_bytes - pending),
        ),
        "inactive_split_bytes": (0, 0, 0, 0),
        "requested_bytes": (
            now["requested_bytes"],
            now["requested_bytes_peak"],
            now["alloc_bytes_total"],
            freed_bytes,
        ),
    }


def torch_counts(now: dict[str, int]) -> dict[str, int]:
    """PyTorch's counters of single events."""
    return {
        "num_alloc_retries": now["retry_count"],
        "num_ooms": now["out_of_memory_count"],
        "num_sync_all_streams": now["wait_count"],
        "num_device_alloc": now["driver_alloc_count"],
        "num_device_free": now["driver_free_count"],
    }


def manager_stats(manager: _C.MemoryManager) -> dict[str, Any]:
    """What memory_stats() says of one manager, with PyTorch's flat keys that can be told."""
    now = statistics(manager)
    stats: dict[str, Any] = {
        "allocated": now["live_bytes"],
        "requested": now["requested_bytes"],
        "reserved": now["reserved_bytes"],
        "cached": now["cached_bytes"],
        "pending": now["pending_bytes"],
        "free": _C.memory_info(manager.device)[0],
        "fragmentation": fragmentation(now),
        "peak_allocated": now["live_bytes_peak"],
    }
    for name, amount in torch_amounts(now).items():
        for kind, number in zip(("current", "peak", "allocated", "freed"), amount, strict=True):
            stats[f"{name}.all.{kind}"] = number
    stats.update(torch_counts(now))
    return stats


def manager_pressure(manager: _C.MemoryManager) -> float:
    """How full a device is, 0 to 1: of its total, or of what this process may take of it."""
    now = manager.statistics()
    free, total = _C.memory_info(manager.device)
    used = (total - free) / total if total else 0.0
    own = now["reserved_bytes"] / now["limit_bytes"] if now["limit_bytes"] else 0.0
    return min(1.0, max(used, own, 0.0))


def manager_snapshot(manager: _C.MemoryManager) -> list[dict[str, Any]]:
    """Every block of a manager, in the order of addresses."""
    device = str(manager.device)
    return [
        {
            "address": block["address"],
            "size": block["nbytes"],
            "requested_size": block["requested"],
            "state": block["state"],
            "stream": block["stream_id"],
            "device": device,
            "segment": block["segment_id"],
            "number": block["number"],
        }
        for block in manager.blocks()
    ]


# ---- all of them --------------------------------------------------------------------------------


def used_managers(device: DeviceLike = None) -> list[_C.MemoryManager]:
    """The managers of a device, or all that were used if none is named; this starts no device.

    Page-locked memory is the CPU's.
    """
    used = _C.memory_managers()
    if any(one.device.type == "cuda" for one in used):
        try:
            _C.cuda_device_count()
        except RuntimeError:  # a forked child has what it inherited, and cannot use it
            used = [one for one in used if one.device.type == "cpu"]
    if device is None:
        return used or [_C.MemoryManager("cpu")]
    name = _C.device(device)
    pinned = [one for one in used if one.is_pinned and name.type == "cpu"]
    return [_C.MemoryManager(name), *pinned]


def memory_stats(device: DeviceLike = None) -> MemoryStats:
    """How much memory there is of each kind, over all devices, or on one.

    Returns
    -------
    MemoryStats
        ``allocated_bytes``, ``reserved_bytes``, ``cached_bytes``, ``active_bytes``,
        ``inactive_bytes``, ``peak_allocated``, ``num_allocs``, ``num_frees`` and
        ``fragmentation_ratio()``. The peak is the sum of the devices' peaks.

    Examples
    --------
    >>> import genesis
    >>> stats = genesis.memory_stats()
    >>> stats.reserved_bytes >= stats.allocated_bytes
    True
    """
    from genesis._types import MemoryStats

    total = MemoryStats()
    for manager in used_managers(device):
        now = statistics(manager)
        total.allocated_bytes += now["live_bytes"]
        total.reserved_bytes += now["reserved_bytes"]
        total.cached_bytes += now["cached_bytes"]
        total.active_bytes += now["live_bytes"] + now["pending_bytes"]
        total.peak_allocated += now["live_bytes_peak"]
        total.num_allocs += now["alloc_count"]
        total.num_frees += now["free_count"]
    total.inactive_bytes = max(0, total.reserved_bytes - total.active_bytes)
    return total


def detailed_memory_stats(device: DeviceLike = None) -> DetailedMemoryStats:
    """Totals, ratios and the living blocks, over all devices, or on one.

    Examples
    --------
    >>> import genesis
    >>> address = genesis.memory_manager.allocate_memory(1 << 20)
    >>> [one.size for one in genesis.detailed_memory_stats().get_large_allocations("1MiB")]
    [1048576]
    >>> genesis.memory_manager.free_memory(address)
    """
    from genesis import _sites
    from genesis._types import DetailedMemoryStats, LargeAllocation

    hits = asked = 0
    allocations = []
    for manager in used_managers(device):
        now, place = manager.statistics(), manager.device
        met = now["stream_hit_count"] + now["global_hit_count"]
        hits, asked = hits + met, asked + met + now["miss_count"]
        allocations += [
            LargeAllocation(
                block["requested"],
                _sites.location_of(block["site"]) or f"allocation {block['number']} on {place}",
                block["address"],
                place,
            )
            for block in manager.blocks()
            if block["state"] == "live"
        ]
    return DetailedMemoryStats(memory_stats(device), hits / asked if asked else 0.0, allocations)


def empty_cache(device: DeviceLike = None) -> None:
    """Give idle memory back to the driver and the system, on all devices, or on one.

    Examples
    --------
    >>> import genesis
    >>> genesis.empty_cache()
    """
    for manager in used_managers(device):
        manager.trim(0)


def memory_pressure(device: DeviceLike = None) -> float:
    """How full a device is, 0 to 1; the fullest of those in use if none is named.

    Examples
    --------
    >>> import genesis
    >>> 0 <= genesis.memory_pressure() <= 1
    True
    """
    return max(manager_pressure(manager) for manager in used_managers(device))
