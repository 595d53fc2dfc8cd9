"""``python -m genesis memory watch``: the memory figures of another process, while it runs.

They are read out of its memory, through ``/proc/PID/mem``: the process does nothing for it, and
needs no preparation. The library has a table, ``gn_memory_board``, that says where its counters
are (``src/memory/board.c``); it is found by its name in the library as it lies in that memory.

The system decides who may read another process: see :class:`WatchError`.
"""

from __future__ import annotations

import functools
import os
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from genesis._memory import format_size
from genesis._memory_analysis import AMOUNTS

BOARD = b"gn_memory_board"
MAGIC = b"genesis memory"
VERSION = 2

# The table's fields in their order, src/memory/board.c; the names of structures are left away.
_BOARD = struct.Struct("<16sIIQII28I")
_FIELDS = [
    "magic",
    "version",
    "nbytes",
    "managers",
    "manager_count",
    "statistics_bytes",
    "device",
    "is_pinned",
    "pool",
    "direct",
    "is_direct",
    "type",
    "index",
    "backing",
    "counts",
    "caches",
    "live_peak",
    "live_count_peak",
    "requested_peak",
    "reserved",
    "reserved_peak",
    "pending",
    "limit",
    "live",
    "alloc_count",
    "stock",
    "alloc_bytes",
    "free_bytes",
    "slow_count",
    "next",
    "direct_statistics",
    "pending_count",
    "active_peak",
    "active_count_peak",
]
_COUNTED = {  # by each cache: the names of the table, and of gn_memory_statistics
    "alloc_count": "alloc_count",
    "alloc_bytes": "alloc_bytes_total",
    "free_bytes": "free_bytes_total",
}

# gn_memory_statistics, in the order of include/genesis/memory.h.
_STATISTICS = [
    "live_bytes",
    "live_bytes_peak",
    "live_count",
    "live_count_peak",
    "requested_bytes",
    "requested_bytes_peak",
    "reserved_bytes",
    "reserved_bytes_peak",
    "cached_bytes",
    "pending_bytes",
    "alloc_count",
    "free_count",
    "alloc_bytes_total",
    "free_bytes_total",
    "stream_hit_count",
    "global_hit_count",
    "miss_count",
    "out_of_memory_count",
    "retry_count",
    "refused_count",
    "driver_alloc_count",
    "driver_free_count",
    "driver_time_ns",
    "event_count",
    "handover_count",
    "limit_bytes",
    "largest_free_bytes",
    "pending_count",
    "active_bytes_peak",
    "active_count_peak",
    "driver_count_peak",
    "driver_bytes_total",
    "wait_count",
]
_CACHES_MOST = 1 << 20  # a list that is longer is not one


class WatchError(Exception):
    """Why a process cannot be watched: not there, without Genesis, or the system forbids it."""


class Process:
    """The memory of another process, to be read.

    Parameters
    ----------
    pid : int
        The process.

    Raises
    ------
    WatchError
        There is none, or this one may not read it.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        try:
            self.maps = Path(f"/proc/{pid}/maps").read_text()
            self._memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
        except (FileNotFoundError, ProcessLookupError):
            raise WatchError(f"there is no process {pid}") from None
        except PermissionError:
            raise WatchError(_forbidden(pid)) from None

    def close(self) -> None:
        """Let go of it."""
        os.close(self._memory)

    def read(self, address: int, size: int) -> bytes:
        """Bytes of it; a WatchError once it has ended."""
        try:
            data = os.pread(self._memory, size, address)
        except PermissionError:
            raise WatchError(_forbidden(self.pid)) from None
        except OSError:
            data = b""
        if len(data) < size:
            has_ended = not data and not _is_running(self.pid)
            what = "has ended" if has_ended else f"has nothing to read at {address:#x}"
            raise WatchError(f"process {self.pid} {what}")
        return data

    def number(self, address: int, code: str = "Q") -> int:
        """One number of it, of a code of the struct module."""
        return int(struct.unpack("<" + code, self.read(address, struct.calcsize(code)))[0])


def _is_running(pid: int) -> bool:
    try:
        return _has_memory(Path(f"/proc/{pid}/stat").read_text())
    except OSError:
        return False


def _has_memory(stat: str) -> bool:
    """Whether a process runs, by its /proc/PID/stat: one that ends loses its memory first."""
    fields = stat.rpartition(")")[2].split()
    state, size = fields[0], fields[20]
    return state not in "ZX" and size != "0"


def _forbidden(pid: int) -> str:
    text = f"this user may not read the memory of process {pid}"
    try:
        scope = int(Path("/proc/sys/kernel/yama/ptrace_scope").read_text())
    except (OSError, ValueError):
        scope = 0
    if scope:
        text += (
            f": kernel.yama.ptrace_scope is {scope}, which leaves that to parents and root. Run "
            "this command with sudo, or allow it with sysctl kernel.yama.ptrace_scope=0"
        )
    else:
        text += (
            ". Run this command as the user who started it, or with sudo; in a container it may "
            "need --cap-add SYS_PTRACE"
        )
    return text


# ---- the library in its memory ------------------------------------------------------------------


def _libraries(process: Process) -> Iterator[tuple[int, str]]:
    """Where files with Genesis in their name begin, and their paths."""
    for line in process.maps.splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) < 6 or int(fields[2], 16) != 0:
            continue
        name = Path(fields[5]).name
        if "genesis" in name and ".so" in name:
            yield int(fields[0].split("-")[0], 16), fields[5]


def _hash(name: bytes) -> int:
    value = 5381
    for letter in name:
        value = (value * 33 + letter) & 0xFFFFFFFF
    return value


def _dynamic(process: Process, base: int) -> dict[int, int]:
    """The dynamic section of a library, whose addresses count from its beginning."""
    header = process.read(base, 64)
    if header[:5] != b"\x7fELF\x02":
        return {}
    (start,) = struct.unpack_from("<Q", header, 32)
    size, count = struct.unpack_from("<HH", header, 54)
    programs = process.read(base + start, size * count)
    for i in range(count):
        kind, _, _, address, _, _, nbytes = struct.unpack_from("<IIQQQQQ", programs, i * size)
        if kind == 2:  # PT_DYNAMIC
            entries = process.read(base + address, nbytes // 16 * 16)
            return dict(struct.iter_unpack("<QQ", entries))
    return {}


def _symbol(process: Process, base: int, name: bytes) -> int | None:
    """The address of an exported name, by the library's own hash table."""
    dynamic = _dynamic(process, base)
    places = [dynamic.get(tag, 0) for tag in (0x6FFFFEF5, 5, 6)]  # GNU_HASH, STRTAB, SYMTAB
    if 0 in places:
        return None
    table, names, symbols = (place if place >= base else base + place for place in places)
    buckets, first, blooms, _ = struct.unpack("<IIII", process.read(table, 16))
    wanted = _hash(name)
    chains = table + 16 + 8 * blooms
    index = process.number(chains + 4 * (wanted % buckets), "I")
    chains += 4 * buckets
    while index >= max(first, 1):
        found = process.number(chains + 4 * (index - first), "I")
        text, _, _, _, value = struct.unpack("<IBBHQ", process.read(symbols + 24 * index, 16))
        if found | 1 == wanted | 1 and process.read(names + text, len(name) + 1) == name + b"\0":
            return base + value
        if found & 1:
            return None
        index += 1
    return None


# ---- the figures --------------------------------------------------------------------------------


class Board:
    """Where the counters of a process are.

    Examples
    --------
    >>> import os
    >>> import genesis
    >>> block = genesis.memory_manager.allocate_block(1000)
    >>> process = Process(os.getpid())
    >>> any(now["live_count"] for now in Board(process).read().values())
    True
    >>> process.close()
    """

    def __init__(self, process: Process) -> None:
        self.process = process
        self._tables: list[dict[str, Any]] = []
        libraries = list(_libraries(process))
        if not libraries:
            raise WatchError(f"process {process.pid} has not loaded Genesis")
        for base, path in libraries:
            address = _symbol(process, base, BOARD)
            if address is not None:
                self._tables.append(_table(process, address, path))
        if not self._tables:
            raise WatchError(
                f"process {process.pid} has a version of Genesis that cannot be watched: "
                f"{libraries[-1][1]}"
            )

    def read(self) -> dict[str, dict[str, int]]:
        """The statistics of each manager by its name, as ``manager.statistics()`` has them."""
        figures = {}
        for table in self._tables:
            places = self.process.read(table["managers"], 8 * table["manager_count"])
            for (manager,) in struct.iter_unpack("<Q", places):
                if manager:
                    figures.update(self._manager(table, manager))
        return figures

    def _field(self, table: dict[str, Any], base: int, field: str, code: str = "Q") -> int:
        """A number in a structure, at the place that the table says."""
        return self.process.number(base + table[field], code)

    def _manager(self, table: dict[str, Any], manager: int) -> dict[str, dict[str, int]]:
        number = functools.partial(self._field, table)
        device, pool, direct = (number(manager, name) for name in ("device", "pool", "direct"))
        name = "cpu" if number(device, "type", "i") == 0 else f"cuda:{number(device, 'index', 'i')}"
        if number(manager, "is_pinned", "?"):
            name += " page-locked"
        policy = "pool" if number(pool, "backing", "I") else "virtual"
        if number(manager, "is_direct", "?"):
            policy = "direct"
        now = self._pool(table, pool)
        if direct:
            other = self._statistics(table, direct + table["direct_statistics"])
            other["requested_bytes"] = other["live_bytes"]
            other["requested_bytes_peak"] = other["live_bytes_peak"]
            other["miss_count"] = other["alloc_count"]
            for key, value in other.items():
                now[key] += value if key not in ("limit_bytes", "largest_free_bytes") else 0
        return {f"{name} ({policy})": now}

    def _statistics(self, table: dict[str, Any], address: int) -> dict[str, int]:
        count = min(table["statistics_bytes"] // 8, len(_STATISTICS))
        values = struct.unpack(f"<{count}Q", self.process.read(address, 8 * count))
        now = dict.fromkeys(_STATISTICS, 0)
        now.update(zip(_STATISTICS, values, strict=False))
        return now

    def _pool(self, table: dict[str, Any], pool: int) -> dict[str, int]:
        number = functools.partial(self._field, table)
        now = self._statistics(table, pool + table["counts"])
        live = slow = count = 0
        cache = number(pool, "caches")
        for _ in range(_CACHES_MOST):
            if not cache:
                break
            live += number(cache, "live", "q") & ~1  # the lowest bit: its thread is at work
            slow += number(cache, "slow_count")
            count += number(cache, "stock", "q") >> 16  # below: what its owner may still keep
            for field, key in _COUNTED.items():
                now[key] += number(cache, field)
            cache = number(cache, "next")
        now["live_bytes"] = max(live, 0)
        now["live_count"] = max(count, 0)
        now["free_count"] = max(now["alloc_count"] - now["live_count"], 0)
        now["requested_bytes"] = max(now["alloc_bytes_total"] - now["free_bytes_total"], 0)
        now["stream_hit_count"] = max(now["alloc_count"] - slow, 0)
        now["live_bytes_peak"] = max(number(pool, "live_peak"), now["live_bytes"])
        now["live_count_peak"] = max(number(pool, "live_count_peak"), now["live_count"])
        now["requested_bytes_peak"] = max(number(pool, "requested_peak"), now["requested_bytes"])
        now["reserved_bytes"] = number(pool, "reserved")
        now["reserved_bytes_peak"] = number(pool, "reserved_peak")
        now["pending_bytes"] = number(pool, "pending")
        now["pending_count"] = number(pool, "pending_count")
        used = now["live_bytes"] + now["pending_bytes"]
        blocks = now["live_count"] + now["pending_count"]
        now["active_bytes_peak"] = max(number(pool, "active_peak"), used)
        now["active_count_peak"] = max(number(pool, "active_count_peak"), blocks)
        now["cached_bytes"] = max(now["reserved_bytes"] - used, 0)
        now["limit_bytes"] = number(pool, "limit")
        return now


def _table(process: Process, address: int, path: str) -> dict[str, Any]:
    head = process.read(address, 24)
    version, nbytes = struct.unpack_from("<II", head, 16)
    if head[:16].rstrip(b"\0") != MAGIC or version != VERSION or nbytes < _BOARD.size:
        raise WatchError(
            f"process {process.pid} has another version of Genesis, {path}: its figures are in "
            f"layout {version}, and this one knows {VERSION}"
        )
    values = _BOARD.unpack(process.read(address, _BOARD.size))
    return dict(zip(_FIELDS, values, strict=True))


# ---- on the terminal ----------------------------------------------------------------------------


def table_lines(
    figures: dict[str, dict[str, int]], before: dict[str, dict[str, int]], seconds: float
) -> list[str]:
    """The figures as a table, a column for each manager; rates since the reading before."""
    if not figures:
        return ["no memory manager yet: nothing was allocated"]
    rows: list[list[str]] = [["", *figures]]
    for name, key in AMOUNTS:
        rows.append([name, *(format_size(now[key]) for now in figures.values())])
    rows.append(["living blocks", *(f"{now['live_count']:,}" for now in figures.values())])
    rates = []
    for name, now in figures.items():
        old = before.get(name)
        made = now["alloc_count"] - (old["alloc_count"] if old else 0)
        rates.append(f"{made / seconds:,.0f}" if old and seconds > 0 else f"{made:,} in all")
    rows.append(["allocations a second" if before else "allocations", *rates])
    for name, key in (
        ("met by the threads", "stream_hit_count"),
        ("met by the device", "global_hit_count"),
        ("met by the driver", "miss_count"),
    ):
        parts = []
        for now in figures.values():
            asked = now["stream_hit_count"] + now["global_hit_count"] + now["miss_count"]
            parts.append(f"{now[key] / asked:.1%}" if asked else "-")
        rows.append([name, *parts])
    calls = [now["driver_alloc_count"] + now["driver_free_count"] for now in figures.values()]
    rows.append(["driver calls", *(f"{count:,}" for count in calls)])
    for name, key in (("retries", "retry_count"), ("out of memory", "out_of_memory_count")):
        rows.append([name, *(f"{now[key]:,}" for now in figures.values())])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in rows
    ]


def _title(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        words = []
    command = " ".join(b" ".join(words).decode(errors="replace").split())
    command = "".join(letter if letter.isprintable() else "?" for letter in command)
    shown = command if len(command) <= 60 else command[:59] + "…"
    return f"process {pid}, {time.strftime('%H:%M:%S')}" + (f": {shown}" if shown else "")


def watch(pid: int, interval: float, once: bool) -> None:
    """Show the figures of a process, again and again until it ends or Ctrl-C is pressed."""
    process = Process(pid)
    try:
        board = Board(process)
        before: dict[str, dict[str, int]] = {}
        last = time.monotonic()
        clear = "\x1b[H\x1b[J" if sys.stdout.isatty() and not once else ""
        while True:
            try:
                figures = board.read()
            except WatchError:
                if before and not _is_running(pid):
                    print(f"process {pid} has ended")
                    return
                raise
            now = time.monotonic()
            lines = [_title(pid), *table_lines(figures, before, now - last)]
            print(clear + "\n".join(lines), flush=True)
            if once:
                return
            before, last = figures, now
            time.sleep(interval)
            if not clear:
                print()
    except KeyboardInterrupt:
        print()
    finally:
        process.close()
