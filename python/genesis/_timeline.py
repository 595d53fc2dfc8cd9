"""Memory over time, from a recording: as a picture, a page, a trace for Perfetto, a snapshot."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from genesis import _memory
from genesis._memory import counted, format_size
from genesis._recording import MARK, OUT_OF_MEMORY, Event, Recording, Usage, no_collection
from genesis._report import Report, spans_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Report", "Timeline"]

PLOT_POINTS = 6000  # a curve with more is thinned out; no peak is lost
PLOT_SPANS = 400  # the longest ones are drawn
LANES = 4  # levels of annotations that are drawn
CHUNK = 20_000
COLOURS = {"reserved": "#8a929e", "live": "#2f6db3", "requested": "#8fb8de", "pending": "#e0883a"}
BANDS = ("#7a9e7e", "#b58db6", "#c2a878", "#6fa8a8", "#b07a7a", "#8c8cc0")


class Timeline:
    """The memory of all devices over time.

    Examples
    --------
    >>> from genesis._recording import ALLOC, EVENT, Recording
    >>> from genesis._timeline import Timeline
    >>> data = EVENT.pack(10, 4096, 512, 500, 0, 0, 0, 0, ALLOC, 0, 0)
    >>> timeline = Timeline(Recording(data, devices=["cuda:0"]))
    >>> timeline.events[0].size
    512
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._events: list[Event] | None = None

    @property
    def events(self) -> list[Event]:
        """Every event, oldest first."""
        if self._events is None:
            with no_collection():
                self._events = list(self.recording)
        return self._events

    def __len__(self) -> int:
        return len(self.recording)

    def __repr__(self) -> str:
        return f"<Timeline of {counted(len(self), 'event')}>"

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure | None:
        """Draw memory over time, for each device.

        Parameters
        ----------
        path : str or path, optional
            Where to write a PNG (or what else the ending names). The figure is returned if it is
            not given.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise ImportError(
                "plot() needs matplotlib: pip install matplotlib; to_html() does not"
            ) from None
        figure = _draw(Figure, self.recording)
        if path is None:
            return figure
        figure.savefig(path)
        return None

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write one self-contained interactive page."""
        from genesis._timeline_page import write_page

        write_page(self.recording, path)

    def to_chrome_trace(
        self, path: str | os.PathLike[str], block_size: int | str | None = None
    ) -> None:
        """Write a trace that Perfetto (https://ui.perfetto.dev) and chrome://tracing open.

        It has counters of live, pending and reserved bytes for each device, annotations for each
        thread, marks and out-of-memory events.

        Parameters
        ----------
        path : str or path
            Where to write it.
        block_size : int or str, optional
            Blocks of at least this size, such as ``"1MiB"``, become slices of their own.
        """
        least = None if block_size is None else _memory.parse_size(block_size, "block_size")
        with open(path, "w", encoding="ascii") as file:  # noqa: PTH123
            file.write('{"displayTimeUnit":"ns","traceEvents":[')
            separator = "\n"
            entries = trace_entries(self.recording, least, self.recording.span_ns()[0])
            while chunk := list(islice(entries, CHUNK)):
                file.write(separator + ",\n".join(chunk))
                separator = ",\n"
            file.write("\n]}\n")

    def to_snapshot(self, path: str | os.PathLike[str]) -> None:
        """Write PyTorch's snapshot layout: JSON, or a pickle for a name in .pickle or .pkl."""
        from genesis._snapshot import dump

        dump(self.recording, path)


# ---- the trace for Perfetto ---------------------------------------------------------------------

THREADS_PID = 1  # threads; devices come after it


def trace_entries(recording: Recording, block_size: int | None, start: int) -> Iterator[str]:
    """The entries of a trace as JSON, with times relative to a start in nanoseconds."""
    yield _trace_name("process_name", THREADS_PID, 0, "threads")
    for thread in sorted(set(recording.column("thread").tolist())):
        yield _trace_name("thread_name", THREADS_PID, thread, f"thread {thread}")
    for device in recording.device_indices():
        pid = THREADS_PID + 1 + device
        yield _trace_name("process_name", pid, 0, recording.device_name(device))
        yield from _trace_counters(recording.usage(device), pid, start)
    yield from _trace_slices(recording, start)
    yield from _trace_instants(recording, start)
    if block_size is not None:
        yield from _trace_blocks(recording, start, block_size)


def _us(time_ns: int) -> str:
    """Microseconds with all their nanoseconds: a float would round them."""
    return f"{time_ns // 1000}.{time_ns % 1000:03d}"


def _trace_name(what: str, pid: int, tid: int, name: str) -> str:
    return json.dumps({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}})


def _trace_counters(usage: Usage, pid: int, start: int) -> Iterator[str]:
    """A value for each change of each counter."""
    first = usage.time_ns[0] if usage.time_ns else start
    for name, value in zip(("live", "requested", "pending", "reserved"), usage.start, strict=True):
        column = getattr(usage, name)
        head = f'{{"ph":"C","name":"{name}","pid":{pid},"ts":'
        yield f'{head}{_us(first - start)},"args":{{"bytes":{value}}}}}'
        for time_ns, now in zip(usage.time_ns, column, strict=True):
            if now != value:
                value = now
                yield f'{head}{_us(time_ns - start)},"args":{{"bytes":{now}}}}}'


def _trace_slices(recording: Recording, start: int) -> Iterator[str]:
    times = recording.column("time_ns")
    for span in spans_of(recording):
        begin, end = times[span.begin], times[span.end]
        name = recording.annotation_name(span.annotation).rpartition("/")[2]
        yield (
            f'{{"ph":"X","cat":"annotation","name":{json.dumps(name)},"pid":{THREADS_PID}'
            f',"tid":{span.thread},"ts":{_us(begin - start)},"dur":{_us(end - begin)}}}'
        )


def _trace_instants(recording: Recording, start: int) -> Iterator[str]:
    for row in map(recording.row, recording.find(MARK, OUT_OF_MEMORY)):
        if row[8] == MARK:
            name, arguments, scope = recording.annotation_name(row[6]) or "mark", {}, "t"
        else:
            name, scope = "out of memory", "g"
            arguments = {
                "device": recording.device_name(row[9]),
                "requested": row[3],
                "free": row[2],
                "where": recording.location(row[5]),
            }
        yield (
            f'{{"ph":"i","s":"{scope}","name":{json.dumps(name)},"pid":{THREADS_PID}'
            f',"tid":{row[7]},"ts":{_us(row[0] - start)},"args":{json.dumps(arguments)}}}'
        )


def _trace_blocks(recording: Recording, start: int, least: int) -> Iterator[str]:
    last = recording.span_ns()[1]
    for number, one in enumerate(recording.lifetimes()):
        if one.size < least:
            continue
        common = (
            f'"cat":"block","name":"{format_size(one.size)}","id":{number}'
            f',"pid":{THREADS_PID + 1 + one.device},"tid":0'
        )
        begin = start if one.begin is None else one.begin
        end = last if one.end is None else one.end
        arguments = {
            "address": f"{one.address:#x}",
            "requested": one.requested,
            "stream": one.stream,
            "where": recording.location(one.site),
            "annotation": recording.annotation_name(one.annotation),
        }
        yield f'{{"ph":"b",{common},"ts":{_us(begin - start)},"args":{json.dumps(arguments)}}}'
        yield f'{{"ph":"e",{common},"ts":{_us(end - start)}}}'


# ---- the picture --------------------------------------------------------------------------------


def _draw(figure_class: Any, recording: Recording) -> Figure:
    devices = recording.device_indices() or [0]
    lanes = _lanes(recording)
    depth = min(max((lane for lane, *_ in lanes), default=-1) + 1, LANES)
    heights = [3.0] * len(devices) + ([0.32 * depth + 0.1] if depth else [])
    figure = figure_class(figsize=(12, 1.1 + sum(heights)), dpi=120, layout="constrained")
    axes = figure.subplots(
        len(heights), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights}
    )[:, 0]
    start, end = recording.span_ns()
    scale, unit = _time_unit(end - start)
    for one, device in zip(axes, devices, strict=False):
        _draw_device(one, recording, device, scale)
        _draw_bands(one, lanes, scale)
        _draw_points(one, recording, device, scale)
    if depth:
        _draw_lanes(axes[-1], lanes, depth, scale, (end - start) / scale)
    axes[-1].set_xlabel(f"time ({unit})")
    axes[-1].set_xlim(0, max((end - start) / scale, 1e-9))
    figure.suptitle(_title(recording), x=0.01, ha="left", fontsize=10)
    return figure


def _title(recording: Recording) -> str:
    lost = f", {recording.lost} older ones lost" if recording.lost else ""
    return f"memory over time: {counted(len(recording), 'event')}{lost}"


def _time_unit(span_ns: int) -> tuple[float, str]:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if span_ns >= 2 * size:
            return size, unit
    return 1.0, "ns"


def _thin(times: list[int], values: list[int]) -> tuple[list[int], list[int]]:
    """A curve with few points that keeps each bucket's first, lowest, highest and last one."""
    if len(times) <= PLOT_POINTS:
        return times, values
    step = -(-len(times) // (PLOT_POINTS // 4))
    kept: list[int] = []
    for begin in range(0, len(times), step):
        part = values[begin : begin + step]
        low, high = part.index(min(part)), part.index(max(part))
        kept += sorted({begin, begin + low, begin + high, begin + len(part) - 1})
    return [times[place] for place in kept], [values[place] for place in kept]


def _draw_device(axes: Axes, recording: Recording, device: int, scale: float) -> None:
    from matplotlib.ticker import FuncFormatter, MultipleLocator

    usage = recording.usage(device)
    start, end = recording.span_ns()
    top = 0
    for name, before in zip(("live", "requested", "pending", "reserved"), usage.start, strict=True):
        times, values = _thin(usage.time_ns, getattr(usage, name))
        x = [0.0, *((time - start) / scale for time in times), (end - start) / scale]
        y = [max(0, value) for value in (before, *values, values[-1] if values else before)]
        top = max(top, *y)
        colour = COLOURS[name]
        if name == "pending" and not any(y):
            continue
        label = f"{name}, at most {format_size(max(y))}"
        if name == "live":
            axes.fill_between(x, y, step="post", color=colour, alpha=0.35, linewidth=0, zorder=2)
        style = "--" if name == "requested" else "-"
        width = 0.8 if name == "requested" else 1.2
        axes.plot(
            x, y, style, drawstyle="steps-post", color=colour, lw=width, label=label, zorder=3
        )
    axes.set_ylim(0, 1.08 * max(top, 1))
    # Powers of two: a size that is round in bytes is not round in MiB.
    axes.yaxis.set_major_locator(MultipleLocator(1 << max(top // 4, 1).bit_length() - 1))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_size(int(value))))
    axes.set_title(recording.device_name(device), loc="left", fontsize=10, fontweight="bold")
    axes.grid(axis="y", color="#e6e8ec", lw=0.6, zorder=0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _lanes(recording: Recording) -> list[tuple[int, str, int, int]]:
    """Annotations to draw: depth, name, begin and length in ns, since the first event."""
    times = recording.column("time_ns")
    start = recording.span_ns()[0]
    found = []
    for span in spans_of(recording):
        path = recording.annotation_name(span.annotation)
        begin = times[span.begin] - start
        found.append((path.count("/"), path, begin, times[span.end] - start - begin))
    found.sort(key=lambda lane: -lane[3])
    return [lane for lane in found[:PLOT_SPANS] if lane[0] < LANES]


def _band_colours(lanes: list[tuple[int, str, int, int]]) -> dict[str, str]:
    """Annotations of one name look the same, wherever they are nested."""
    names = sorted({name.rpartition("/")[2] for _, name, _, _ in lanes})
    colours = {name: BANDS[index % len(BANDS)] for index, name in enumerate(names)}
    return {name: colours[name.rpartition("/")[2]] for _, name, _, _ in lanes}


def _draw_bands(axes: Axes, lanes: list[tuple[int, str, int, int]], scale: float) -> None:
    """Shade the device's picture: the innermost level that is drawn shows through."""
    colours = _band_colours(lanes)
    for depth, name, begin, length in lanes:
        axes.axvspan(
            begin / scale,
            (begin + length) / scale,
            color=colours[name],
            alpha=0.05 + 0.05 * depth,
            lw=0,
            zorder=1,
        )


def _draw_lanes(
    axes: Axes, lanes: list[tuple[int, str, int, int]], depth: int, scale: float, width: float
) -> None:
    colours = _band_colours(lanes)
    for level, name, begin, length in lanes:
        axes.broken_barh(
            [(begin / scale, length / scale)],
            (level - 0.42, 0.84),
            color=colours[name],
            alpha=0.75,
            lw=0,
        )
        text = name.rpartition("/")[2].replace("\n", " ")
        # About 140 letters fit across the picture; a name that does not fit is left out.
        if length / scale > width * len(text) / 140:
            middle = (begin + length / 2) / scale
            axes.text(middle, level, text, ha="center", va="center", fontsize=7, clip_on=True)
    axes.set_ylim(depth - 0.5, -0.5)
    axes.set_yticks([])
    axes.set_ylabel("annotations", rotation=0, ha="right", va="center", fontsize=8)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _draw_points(axes: Axes, recording: Recording, device: int, scale: float) -> None:
    start = recording.span_ns()[0]
    top = axes.get_ylim()[1]
    failures = []
    for row in map(recording.row, recording.find(MARK, OUT_OF_MEMORY)):
        if row[8] == OUT_OF_MEMORY and row[9] == device:
            failures.append((row[0] - start) / scale)
        elif row[8] == MARK:
            x = (row[0] - start) / scale
            name = recording.annotation_name(row[6]).replace("\n", " ")
            axes.axvline(x, color="#555555", lw=0.8, ls=":", zorder=4)
            axes.text(x, top, f" {name}", fontsize=7, va="top", color="#555555", clip_on=True)
    if failures:
        axes.plot(
            failures,
            [0.97 * top] * len(failures),
            "v",
            color="#c0392b",
            ms=7,
            label="out of memory",
            zorder=5,
            clip_on=False,
        )
        for x in failures:
            axes.axvline(x, color="#c0392b", lw=0.8, zorder=4)
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=5,
        fontsize=8,
        frameon=False,
        borderaxespad=0.2,
    )
