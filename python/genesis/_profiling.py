"""How long kernels take on the GPU: printed as they end, or collected.

The library measures while somebody wants to know: :func:`enable_profiling`, or an active
:class:`profiler`. What it has measured is taken by :func:`_deliver` and given to all of them.
"""

from __future__ import annotations

import atexit
import json
from os import register_at_fork
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

from genesis import _C
from genesis._memory import counted

if TYPE_CHECKING:
    from os import PathLike
    from types import TracebackType

KERNELS_PID = 1000  # in traces: the trace of memory has threads at 1, and devices from 2 on
SORTS = ("total", "mean", "max", "min", "count", "name")


class KernelEvent(NamedTuple):
    """One kernel that has run. Times are of ``time.monotonic_ns()``."""

    name: str
    device: int
    stream: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    submitted_ns: int
    start_ns: int
    duration_ms: float


class KernelStats(NamedTuple):
    """All runs of one kernel, in milliseconds."""

    name: str
    count: int
    total: float
    mean: float
    min: float
    max: float


_lock = RLock()  # the interpreter may call _deliver() between any two lines of the main thread
_profilers: list[profiler] = []
_is_printing = False


def _format_ms(duration: float) -> str:
    return f"{duration:.2f}ms" if duration >= 0.1 else f"{duration:.4f}ms"


def _deliver() -> None:
    """Give what has been measured to everybody who wants it."""
    with _lock:
        events = [KernelEvent(*run) for run in _C.profile_take()]
        for one in _profilers:
            one.events.extend(events)
        if _is_printing:
            for event in events:
                print(f"{event.name}: {_format_ms(event.duration_ms)}")  # noqa: T201


def _finish() -> None:
    """Wait for what is being measured, and deliver it."""
    _C.profile_wait()
    _deliver()


def _update() -> None:
    """Measure if somebody wants it. Under the lock."""
    is_wanted = _is_printing or bool(_profilers)
    _C.profile_enable(is_wanted)
    _C.profile_set_listener(_deliver if is_wanted else None)


def _in_child() -> None:
    """A child has no device, and nobody there gives back a lock that another thread held."""
    global _lock, _is_printing
    _lock, _is_printing = RLock(), False
    _profilers.clear()


def _at_exit() -> None:
    try:
        if _is_printing or _profilers:
            _finish()
    except RuntimeError:
        pass  # the device is lost, which was or will be reported elsewhere
    _C.profile_set_listener(None)


atexit.register(_at_exit)
register_at_fork(after_in_child=_in_child)


def enable_profiling(enabled: bool = True) -> None:
    """Print the name and the time of each kernel after it has run.

    A line appears when it is known that the kernel has ended: after something has waited for it,
    such as :func:`synchronize` or reading a tensor, at a later launch, or at the end of the
    program. Operations on tensors are kernels when they are submitted, several of them as one.

    Parameters
    ----------
    enabled : bool
        False prints what is still running, and no more after that.

    Examples
    --------
    >>> import genesis
    >>> genesis.cuda.enable_profiling(True)
    >>> genesis.cuda.enable_profiling(False)
    """
    global _is_printing
    if _is_printing:
        _finish()
    with _lock:
        _is_printing = bool(enabled)
        _update()


class profiler:  # noqa: N801 - used as a context manager, like cuda.stream and cuda.device
    """Collect the kernels that run inside a ``with`` block, of all threads.

    Operations that were recorded before the block are submitted first, and at its end the kernels
    in it are waited for.

    Attributes
    ----------
    events : list of KernelEvent
        Each run: ``name``, ``device``, ``stream``, ``grid``, ``block`` (zeros where a library chose
        them), ``shared_bytes``, ``submitted_ns``, ``start_ns`` and ``duration_ms``, in the order in
        which they ended.
    lost : int
        How many runs could not be measured or kept.

    Examples
    --------
    >>> import genesis
    >>> with genesis.cuda.profiler() as profile:
    ...     if genesis.cuda.is_available():
    ...         total = genesis.ones(1000, device="cuda").sum().item()
    >>> print(profile.table())  # doctest: +ELLIPSIS
    kernel ...
    """

    def __init__(self) -> None:
        self.events: list[KernelEvent] = []
        self.lost = 0

    def __enter__(self) -> profiler:
        _finish()  # what came before belongs to others
        with _lock:
            if any(one is self for one in _profilers):
                raise RuntimeError("this profiler is active already")
            self.lost = -_C.profile_lost_count()
            _profilers.append(self)
            _update()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            _finish()
        except RuntimeError:
            if kind is None:
                raise
        finally:
            with _lock:
                _profilers[:] = [one for one in _profilers if one is not self]
                self.lost += _C.profile_lost_count()
                _update()

    def __repr__(self) -> str:
        return f"<genesis.cuda.profiler with {counted(len(self.events), 'event')}>"

    def __str__(self) -> str:
        return self.table()

    def stats(self, sort_by: str = "total") -> list[KernelStats]:
        """One entry for each kernel, in milliseconds.

        Parameters
        ----------
        sort_by : str
            ``"total"``, ``"mean"``, ``"max"``, ``"min"`` or ``"count"``: the largest first; or
            ``"name"``.
        """
        if sort_by not in SORTS:
            raise ValueError(f"sort_by is one of {', '.join(map(repr, SORTS))}, not {sort_by!r}")
        durations: dict[str, list[float]] = {}
        for event in self.events:
            durations.setdefault(event.name, []).append(event.duration_ms)
        stats = [
            KernelStats(name, len(all_), sum(all_), sum(all_) / len(all_), min(all_), max(all_))
            for name, all_ in durations.items()
        ]
        stats.sort(key=lambda one: one.name)
        if sort_by != "name":
            stats.sort(key=lambda one: getattr(one, sort_by), reverse=True)
        return stats

    def table(self, sort_by: str = "total") -> str:
        """The statistics as text for people: count, and total, mean, min and max in ms."""
        stats = self.stats(sort_by)
        width = max([len(one.name) for one in stats] + [len("kernel")])
        columns = ("count", "total ms", "mean ms", "min ms", "max ms")
        lines = [f"{'kernel':{width}}" + "".join(f"{column:>12}" for column in columns)]
        for one in stats:
            numbers = "".join(f"{number:12.4f}" for number in one[2:])
            lines.append(f"{one.name:{width}}{one.count:12}{numbers}")
        if self.lost:
            lines.append(
                f"not in this table, since not measured: {counted(self.lost, 'launch', 'launches')}"
            )
        return "\n".join(lines)

    def to_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write a trace that Perfetto (https://ui.perfetto.dev) and chrome://tracing open.

        Each stream of each device is a line of kernels. What :mod:`genesis.memory_profiler` has
        recorded meanwhile is in there, too, on the same clock.

        Examples
        --------
        >>> import genesis, os, tempfile
        >>> with genesis.cuda.profiler() as profile:
        ...     pass
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     profile.to_chrome_trace(os.path.join(directory, "trace.json"))
        """
        from genesis import memory_profiler
        from genesis._timeline import trace_entries

        recording = memory_profiler.get_recording()
        starts = [event.start_ns for event in self.events]
        if len(recording):
            starts.append(recording.span_ns()[0])
        start = min(starts, default=0)
        entries = [json.dumps(entry) for entry in self._trace_kernels(start)]
        if len(recording):
            entries.extend(trace_entries(recording, None, start))
        with open(path, "w", encoding="ascii") as file:  # noqa: PTH123
            file.write('{"displayTimeUnit":"ns","traceEvents":[\n')
            file.write(",\n".join(entries) + "\n]}\n")

    def _trace_kernels(self, start: int) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = []
        lines = sorted({(event.device, event.stream) for event in self.events})
        for number, (device, stream) in enumerate(lines):
            place = {"ph": "M", "pid": KERNELS_PID + device, "tid": number}
            name = {"name": f"kernels of cuda:{device}"}
            entries.append(place | {"name": "process_name", "args": name})
            entries.append(place | {"name": "thread_name", "args": {"name": f"stream {stream}"}})
        for event in self.events:
            entries.append(
                {
                    "ph": "X",
                    "cat": "kernel",
                    "name": event.name,
                    "pid": KERNELS_PID + event.device,
                    "tid": lines.index((event.device, event.stream)),
                    "ts": (event.start_ns - start) / 1e3,
                    "dur": event.duration_ms * 1e3,
                    "args": {
                        "grid": event.grid,
                        "block": event.block,
                        "shared_bytes": event.shared_bytes,
                        "submitted": (event.submitted_ns - start) / 1e3,
                    },
                }
            )
        return entries
