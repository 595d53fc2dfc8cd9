"""What happens to memory over time: record it, annotate it, look at it.

Recording costs tens of nanoseconds for each allocation and free, and some hundred with the stacks
of Python. Each thread keeps its last events. docs/observability.md walks through it.

Examples
--------
>>> from genesis import memory_profiler
>>> from genesis.ndarray.cuda_memory_manager import CUDAMemoryManager
>>> manager = CUDAMemoryManager("cpu")
>>> with memory_profiler.record():
...     with memory_profiler.annotate("forward"):
...         address = manager.allocate_memory(1 << 20)
...     manager.free_memory(address)
>>> timeline = memory_profiler.get_timeline()
>>> [event.kind for event in timeline.events if event.kind in ("alloc", "free")]
['alloc', 'free']
>>> "forward" in memory_profiler.get_report().summary()
True
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from genesis import _C

if TYPE_CHECKING:
    from genesis._recording import Recording
    from genesis._report import Report
    from genesis._timeline import Timeline

__all__ = [
    "annotate",
    "get_recording",
    "get_report",
    "get_timeline",
    "is_recording",
    "mark",
    "record",
    "start",
    "stop",
]

# How many events each thread keeps, unless it is said otherwise: 56 bytes each, taken when used.
MAX_EVENTS = 1 << 20
PYTHON_FRAMES = 10
C_FRAMES = 16

_STACKS = {
    "none": (0, 0),
    "python": (PYTHON_FRAMES, 0),
    "c": (0, C_FRAMES),
    "all": (PYTHON_FRAMES, C_FRAMES),
}

_has_started = False  # by start(), and not stopped since
_stacks_wanted: tuple[int, int] | None = None  # frames of Python and C, while debugging
_kept: tuple[bytes, int] | None = None  # what was recorded before the library collected stacks only


def start(max_events: int = MAX_EVENTS, stacks: str = "python", frames: int | None = None) -> None:
    """Forget what was recorded before, and record from now on.

    Parameters
    ----------
    max_events : int
        How many events each thread keeps, at least 1; the oldest are overwritten.
    stacks : str
        Which frames are kept of whoever allocates: ``"python"``, ``"c"``, ``"all"`` or ``"none"``.
    frames : int, optional
        How many innermost frames of each kind, at most 32; 10 of Python and 16 of C if not given.

    Examples
    --------
    >>> from genesis import memory_profiler
    >>> memory_profiler.start(max_events=1000, stacks="none")
    >>> memory_profiler.stop()
    """
    global _has_started, _kept
    if stacks not in _STACKS:
        raise ValueError(f"stacks is one of {', '.join(map(repr, _STACKS))}, not {stacks!r}")
    if not isinstance(max_events, int):
        raise TypeError(f"max_events is an int, not {type(max_events).__name__}")
    if max_events < 1:
        raise ValueError(f"max_events is at least 1, not {max_events}")
    python_frames, c_frames = _STACKS[stacks]
    if frames is not None:
        if not 1 <= frames <= 32:
            raise ValueError(f"frames is 1 to 32, not {frames}")
        python_frames, c_frames = (frames if one else 0 for one in (python_frames, c_frames))
    _C.flush()  # what waits is of before
    _C.history_start(max_events, python_frames, c_frames)
    _has_started, _kept = True, None


def stop() -> None:
    """Stop recording; what was recorded can still be looked at.

    Examples
    --------
    >>> from genesis import memory_profiler
    >>> memory_profiler.stop()
    >>> memory_profiler.is_recording()
    False
    """
    global _has_started
    try:
        if has_started():
            _C.flush()  # what waits belongs to the recording
    finally:
        _C.history_stop()
        _has_started = False
        want_stacks(_stacks_wanted)


def has_started() -> bool:
    """Whether start() or record() records now, beyond what debugging needs."""
    return _has_started and _C.history_is_on()


def wanted_stacks() -> tuple[int, int] | None:
    """What want_stacks() was told."""
    return _stacks_wanted


def want_stacks(frames: tuple[int, int] | None) -> None:
    """Have each allocation remember its stack, for debugging, beside recordings; or no more.

    What was recorded stays; a recording that goes on is left alone, and this comes after it.
    """
    global _stacks_wanted, _kept
    _stacks_wanted = frames
    if has_started():
        return
    if frames is None:
        _C.history_stop()
        return
    if _kept is None:
        _kept = _C.history_read()  # the library forgets it when it starts anew
    _C.history_start(0, *frames)


def is_recording() -> bool:
    """Whether stacks or events are collected: by start(), record(), debugging or tracing."""
    return _C.history_is_on()


@contextmanager
def record(
    max_events: int = MAX_EVENTS, stacks: str = "python", frames: int | None = None
) -> Iterator[None]:
    """Record what happens in a ``with`` block; the arguments are those of :func:`start`."""
    start(max_events, stacks, frames)
    try:
        yield
    finally:
        stop()


def _submit() -> None:
    """While a recording goes on, what waits happens before the moment that is named next."""
    if has_started():
        _C.flush()


class annotate:  # noqa: N801 - used like a function
    """Name what a thread does in a ``with`` block, or as a decorator.

    Annotations nest, and show up in every view: ``"train/forward"``.

    Examples
    --------
    >>> from genesis import memory_profiler
    >>> @memory_profiler.annotate("step")
    ... def step():
    ...     with memory_profiler.annotate("forward"):
    ...         pass
    >>> step()
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of an annotation is a str, not {type(name).__name__}")
        self.name = name

    def __enter__(self) -> annotate:
        _submit()
        _C.history_begin(self.name)
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            if exception[0] is None:
                _submit()
        finally:
            _C.history_end()

    def __call__(self, function: Any) -> Any:
        """Decorate a function."""
        from functools import wraps

        @wraps(function)
        def annotated(*arguments: Any, **keywords: Any) -> Any:
            with annotate(self.name):
                return function(*arguments, **keywords)

        return annotated


def mark(name: str) -> None:
    """Put a moment with a name into the recording.

    Examples
    --------
    >>> from genesis import memory_profiler
    >>> memory_profiler.mark("epoch 1")
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a mark is a str, not {type(name).__name__}")
    _submit()
    _C.history_mark(name)


def get_recording() -> Recording:
    """Everything that was recorded since the last start, as it is now."""
    from genesis import _memory, _sites
    from genesis._recording import EVENT, Recording

    _submit()
    managers = {manager.number: manager for manager in _memory.used_managers()}
    data, lost = _C.history_read()
    if not data and _kept is not None:
        data, lost = _kept
    unix_ns = time.time_ns() - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    blocks = [
        entry | {"device": number}
        for number, manager in managers.items()
        for entry in manager.blocks()
    ]
    defaults = {n: _C.default_stream(one.device).stream_id for n, one in managers.items()}
    for entry in blocks:  # as in the events
        if entry["stream_id"] == defaults[entry["device"]]:
            entry["stream_id"] = 0
    # Site and annotation are the 11th and 12th 32-bit words of an event of 14.
    words = memoryview(data).cast("I") if data else memoryview(b"").cast("I")
    sites = {0, *words[10 :: EVENT.size // 4], *(block["site"] for block in blocks)}
    annotations = {0, *words[11 :: EVENT.size // 4]}
    _sites.resolve(sites)
    count = max([*managers, *memoryview(data)[51 :: EVENT.size]], default=0) + 1
    names = [f"manager {number}" for number in range(count)]  # those that only C has used
    for number, manager in managers.items():
        names[number] = f"{manager.device}{' (pinned)' if manager.is_pinned else ''}"
    return Recording(
        data=data,
        sites=[_sites.stack_of(one) if one in sites else () for one in range(max(sites) + 1)],
        annotations=[
            _C.history_name(one) if one in annotations else ""
            for one in range(max(annotations) + 1)
        ],
        devices=names,
        blocks=blocks,
        lost=lost,
        unix_ns=unix_ns,
        statistics={names[number]: one.statistics() for number, one in managers.items()},
    )


def get_timeline() -> Timeline:
    """What was recorded, over time: ``plot()``, ``to_html()``, ``to_chrome_trace()``."""
    from genesis._timeline import Timeline

    return Timeline(get_recording())


def get_report() -> Report:
    """What was recorded, summed up: ``summary()`` is for people."""
    from genesis._report import Report

    return Report(get_recording())
