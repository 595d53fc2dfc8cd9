"""What a recording says, in words and numbers: peaks, holders, rates, annotations, churn."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from heapq import nlargest
from operator import attrgetter
from typing import Any, NamedTuple

from genesis._memory import counted, format_size
from genesis._recording import (
    ALLOC,
    ANNOTATION_BEGIN,
    ANNOTATION_END,
    FREE,
    FREE_REQUESTED,
    OUT_OF_MEMORY,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
    Event,
    Lifetime,
    Recording,
    no_collection,
    place_of,
)

ROWS = 10  # that a table of the summary has at most
SHORT_NS = 1_000_000  # a block that lives less is churn

_size = attrgetter("size")
_requested = attrgetter("requested")


class Holder(NamedTuple):
    """The blocks that one line of code allocated."""

    location: str  # file:line (function)
    bytes: int
    count: int
    site: int


class Peak(NamedTuple):
    """The moment at which most memory of a device was live."""

    device: str
    live: int
    requested: int
    reserved: int
    time_ns: int  # since the first event
    annotation: str
    event: int  # its index; -1: before the first
    holders: list[Holder]  # the most bytes first


class AnnotationUse(NamedTuple):
    """What happened under an annotation, and under those inside of it."""

    name: str
    spans: int  # how often it was entered
    allocations: int
    allocated: int  # bytes
    growth: int  # the most by which live memory rose above where a span began
    stayed: int  # bytes allocated in a span that were still live when it ended


class Span(NamedTuple):
    """One stay inside an annotation: indices of its first and its last event."""

    annotation: int
    thread: int
    begin: int
    end: int


# Control characters, those that change the direction of text, ends of lines, halves of characters.
UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(lines: list[str]) -> str:
    r"""Lines as one text. Names may come from a file of others: what a terminal obeys is escaped.

    Examples
    --------
    >>> from genesis._report import printable
    >>> print(printable(["one\x1b[31m", "two"]))
    one\x1b[31m
    two
    """
    return "\n".join(UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], one) for one in lines)


def spans_of(recording: Recording) -> list[Span]:
    """The spans of all annotations; those that are open at an end are cut there."""
    kinds = recording.column("kind")
    names, threads = recording.column("annotation"), recording.column("thread")
    found: list[Span] = []
    stacks: dict[int, list[tuple[int, int]]] = {}
    for index in recording.find(ANNOTATION_BEGIN, ANNOTATION_END):
        name, thread = names[index], threads[index]
        stack = stacks.setdefault(thread, [])
        if kinds[index] == ANNOTATION_BEGIN:
            stack.append((name, index))
        elif any(name == one for one, _ in stack):
            while stack[-1][0] != name:  # an end that was lost
                inner, begin = stack.pop()
                found.append(Span(inner, thread, begin, index))
            found.append(Span(name, thread, stack.pop()[1], index))
        else:
            found.append(Span(name, thread, 0, index))
    last = max(len(recording) - 1, 0)
    for thread, stack in stacks.items():
        found += [Span(name, thread, begin, last) for name, begin in stack]
    return sorted(found, key=lambda span: (span.begin, -span.end))


def group_by(
    recording: Recording, blocks: Iterable[Lifetime], size: Callable[[Lifetime], int]
) -> list[Holder]:
    """Blocks by the line that allocated them, the most bytes first."""
    totals: dict[int, list[int]] = {}
    for one in blocks:
        total = totals.setdefault(one.site, [0, 0])
        total[0] += size(one)
        total[1] += 1
    by_place: dict[str, Holder] = {}
    for site, (nbytes, count) in totals.items():
        place = recording.location(site)
        before = by_place.get(place, Holder(place, 0, 0, site))
        by_place[place] = Holder(place, before.bytes + nbytes, before.count + count, before.site)
    return sorted(by_place.values(), key=lambda one: (-one.bytes, one.location))


class Report:
    """What a recording says.

    Attributes
    ----------
    duration_ns, events, lost : int
    allocations, frees : int
        How many there were.
    allocated : int
        Bytes that were allocated in all.
    rate : float
        Allocations a second.
    peaks : list of Peak
        For each device.
    largest : list of Lifetime
        The largest blocks that were ever live.
    annotations : list of AnnotationUse
        By name.
    churn : list of Holder
        Lines whose blocks lived less than a millisecond, by what they allocated.
    out_of_memory : list of Event
    left : list of Holder
        What is live at the end.

    Examples
    --------
    >>> from genesis._recording import ALLOC, EVENT, Recording
    >>> from genesis._report import Report
    >>> data = EVENT.pack(10, 4096, 512, 500, 0, 0, 0, 0, ALLOC, 0, 0)
    >>> report = Report(Recording(data, devices=["cuda:0"]))
    >>> report.allocations, report.allocated
    (1, 500)
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        with no_collection():
            self._analyse(recording)

    def _analyse(self, recording: Recording) -> None:
        kinds = bytes(recording.column("kind"))
        begin, end = recording.span_ns()
        self.duration_ns = end - begin
        self.events = len(recording)
        self.lost = recording.lost
        self.allocations = kinds.count(ALLOC)
        self.frees = kinds.count(FREE) + kinds.count(FREE_REQUESTED)
        self.driver_calls = kinds.count(SEGMENT_MAP) + kinds.count(SEGMENT_UNMAP)
        seconds = self.duration_ns / 1e9
        self.rate = self.allocations / seconds if seconds else 0.0
        lifetimes = recording.lifetimes()
        seen = [one for one in lifetimes if one.first is not None]
        self.allocated = sum(one.requested for one in seen)
        self.peaks = [self._peak(device) for device in recording.device_indices()]
        self.largest = nlargest(ROWS, lifetimes, key=_size)
        self.left = group_by(recording, [one for one in lifetimes if one.end is None], _size)
        self.churn = group_by(recording, filter(_is_short, seen), _requested)
        self.out_of_memory: list[Event] = [
            recording[index] for index in recording.find(OUT_OF_MEMORY)
        ]
        self.annotations = _annotation_uses(recording, seen)

    @property
    def peak(self) -> Peak | None:
        """The highest of the devices' peaks."""
        return max(self.peaks, key=lambda one: one.live, default=None)

    @property
    def turnover(self) -> float:
        """How many times the peak's bytes were allocated in all."""
        peak = self.peak
        return self.allocated / peak.live if peak and peak.live else 0.0

    def _peak(self, device: int) -> Peak:
        recording, usage = self.recording, self.recording.usage(device)
        live, requested, _, reserved = usage.start
        event, time_ns, annotation = -1, 0, ""
        most = max(usage.live, default=live)
        if most > live:
            row = usage.live.index(most)
            event, live, requested = usage.event[row], most, usage.requested[row]
            reserved = usage.reserved[row]
            time_ns = usage.time_ns[row] - recording.span_ns()[0]
            annotation = recording[event].annotation
        holders = group_by(recording, recording.live_at(event, device), _size)
        name = recording.device_name(device)
        return Peak(name, live, requested, reserved, time_ns, annotation, event, holders)

    # ---- text -----------------------------------------------------------------------------------

    def summary(self) -> str:
        """The report as text for people."""
        parts = [self._head()]
        parts += [_peak_lines(peak) for peak in self.peaks]
        parts += [
            self._annotation_lines(),
            _holder_lines("live at the end:", self.left),
            self._largest_lines(),
            self._churn_lines(),
            self._out_of_memory_lines(),
        ]
        return "\n\n".join(printable(lines) for lines in parts if lines)

    def _head(self) -> list[str]:
        lines = [
            f"{counted(self.events, 'event')} in {_duration(self.duration_ns)}: "
            f"{counted(self.allocations, 'allocation')} of {format_size(self.allocated)} in all, "
            f"{counted(self.frees, 'free')}, {counted(self.driver_calls, 'segment')} mapped or "
            "unmapped"
        ]
        if not self.events and not self.lost:
            lines.append("nothing was recorded")
        if self.rate:
            lines.append(
                f"{self.rate:,.0f} allocations a second; what was allocated in all is "
                f"{self.turnover:.1f} times the highest peak"
            )
        if self.lost:
            lines.append(
                f"lost: {counted(self.lost, 'older event')}; what is said of the time before the "
                "loss is incomplete"
            )
        return lines

    def _annotation_lines(self) -> list[str]:
        if not self.annotations:
            return []
        width = max(10, *(len(one.name) for one in self.annotations[: 2 * ROWS]))
        lines = [
            "by annotation, with those inside of each:",
            f"  {'':<{width}}  {'times':>7}  {'allocs':>9}  {'allocated':>10}"
            f"  {'peak growth':>11}  {'stayed':>10}",
        ]
        for one in self.annotations[: 2 * ROWS]:
            lines.append(
                f"  {one.name:<{width}}  {one.spans:>7}  {one.allocations:>9}"
                f"  {format_size(one.allocated):>10}  {format_size(one.growth):>11}"
                f"  {format_size(one.stayed):>10}"
            )
        return lines + _more(self.annotations, 2 * ROWS, "annotation")

    def _largest_lines(self) -> list[str]:
        if not self.largest:
            return []
        lines = ["largest blocks:"]
        begin = self.recording.span_ns()[0]
        for one in self.largest:
            born = "before" if one.begin is None else f"at {_duration(one.begin - begin)}"
            gone = "live at the end"
            if one.end is not None:
                gone = f"lived {_duration(one.end - (begin if one.begin is None else one.begin))}"
            lines.append(
                f"  {format_size(one.size):>10}  {self.recording.device_name(one.device)}  "
                f"{born}, {gone}  {self.recording.location(one.site)}"
            )
        return lines

    def _churn_lines(self) -> list[str]:
        return _holder_lines("allocated for less than a millisecond:", self.churn)

    def _out_of_memory_lines(self) -> list[str]:
        begin = self.recording.span_ns()[0]
        lines = [
            f"  at {_duration(event.time_ns - begin)} on {event.device}: "
            f"{format_size(event.requested)} requested, {format_size(event.size)} free on the "
            f"device{_at(event)}"
            for event in self.out_of_memory[:ROWS]
        ]
        return ["out of memory:", *lines, *_more(self.out_of_memory, ROWS, "time")] if lines else []

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<Report of {counted(self.events, 'event')}>"


def _is_short(one: Lifetime) -> bool:
    return one.end is not None and one.begin is not None and one.end - one.begin < SHORT_NS


def _at(event: Event) -> str:
    place = place_of(event.frames)
    return f"  {place}" if place is not None else ""


def _more(rows: list[Any], shown: int, what: str) -> list[str]:
    return [f"  and {counted(len(rows) - shown, what)} more"] if len(rows) > shown else []


def _duration(time_ns: int) -> str:
    """A time as people read it."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if time_ns >= size:
            return (
                f"{time_ns / size:.3g} {unit}"
                if time_ns < 1000 * size
                else f"{time_ns / size:.0f} {unit}"
            )
    return f"{time_ns} ns"


def _holder_lines(title: str, holders: list[Holder]) -> list[str]:
    if not holders:
        return []
    lines = [title]
    for one in holders[:ROWS]:
        blocks = "block " if one.count == 1 else "blocks"
        lines.append(f"  {format_size(one.bytes):>10}  {one.count:>7} {blocks}  {one.location}")
    return lines + _more(holders, ROWS, "place")


def _peak_lines(peak: Peak) -> list[str]:
    under = f", under {peak.annotation}" if peak.annotation else ""
    when = f"at {_duration(peak.time_ns)}" if peak.event >= 0 else "before the first event"
    title = (
        f"{peak.device}: at most {format_size(peak.live)} live, {when}{under} "
        f"({format_size(peak.requested)} requested, {format_size(peak.reserved)} reserved); "
        "held by:"
    )
    return _holder_lines(title, peak.holders) or [title.removesuffix("; held by:")]


# ---- annotations --------------------------------------------------------------------------------


def _ancestors(recording: Recording) -> list[list[int]]:
    """For each annotation, itself and those around it that have a number."""
    number_of = {name: number for number, name in enumerate(recording.annotations) if number}
    found: list[list[int]] = []
    for number, name in enumerate(recording.annotations):
        around = [number] if number else []
        while "/" in name:
            name = name.rpartition("/")[0]
            if name in number_of:
                around.append(number_of[name])
        found.append(around)
    return found


def _annotation_uses(recording: Recording, seen: list[Lifetime]) -> list[AnnotationUse]:
    spans = spans_of(recording)
    ancestors = _ancestors(recording)
    live = recording.total_live() if spans else []
    begins: dict[tuple[int, int], list[int]] = {}
    ends: dict[tuple[int, int], list[int]] = {}
    growth: dict[int, int] = {}
    counts: dict[int, int] = {}
    for span in spans:
        key = (span.annotation, span.thread)
        begins.setdefault(key, []).append(span.begin)
        ends.setdefault(key, []).append(span.end)
        counts[span.annotation] = counts.get(span.annotation, 0) + 1
        rise = max(live[span.begin : span.end + 1]) - live[span.begin]
        growth[span.annotation] = max(growth.get(span.annotation, 0), rise)
    totals: dict[int, list[int]] = {number: [0, 0, 0] for number in counts}
    for one in seen:
        if not one.annotation or one.annotation >= len(ancestors):
            continue
        for number in ancestors[one.annotation]:
            total = totals.setdefault(number, [0, 0, 0])
            total[0] += 1
            total[1] += one.requested
            total[2] += _stayed(one, begins, ends, number)
    order = sorted(totals, key=lambda number: recording.annotations[number])
    return [
        AnnotationUse(
            recording.annotations[number],
            counts.get(number, 0),
            totals[number][0],
            totals[number][1],
            growth.get(number, 0),
            totals[number][2],
        )
        for number in order
        if number < len(recording.annotations)
    ]


def _stayed(
    one: Lifetime,
    begins: dict[tuple[int, int], list[int]],
    ends: dict[tuple[int, int], list[int]],
    number: int,
) -> int:
    """The bytes of a block if it outlived the span that it was allocated in."""
    key = (number, one.thread)
    place = bisect_right(begins.get(key, ()), one.first) - 1
    end = ends[key][place] if place >= 0 else -1
    is_gone = one.last is not None and one.last <= end
    return 0 if is_gone or end < one.first else one.requested
