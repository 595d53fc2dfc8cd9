"""``python -m genesis memory``: snapshots, and running processes, from the shell.

    show SNAPSHOT           what it says, in words
    diff A B                what grew from one to the other
    html SNAPSHOT           the interactive page, SNAPSHOT.html or -o PAGE
    replay TRACE            the same allocations through this allocator
    watch PID               the memory of a running process, again and again

A file is a snapshot in PyTorch's layout, PyTorch's own or ours, JSON or pickle, or RMM's log.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from genesis._memory import counted, format_size, parse_size
from genesis._recording import Recording
from genesis._replay import GIB, Outcome, Settings, Trace, default_memory, read_recording, replay
from genesis._report import Report, group_by, printable
from genesis._snapshot import SnapshotError

ROWS = 15  # of a table, at most
PAGE = 2 << 20
SEGMENT_MOST = 64 * GIB  # as GENESIS_CUDA_SEGMENT_SIZE
MEMORY_MOST = 16384 * GIB  # addresses for several times as much are reserved


class CommandError(Exception):
    """What is printed in one line before the command ends with 2."""


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the commands of ``memory`` to its parser."""
    commands = parser.add_subparsers(dest="memory_command", required=True)
    show = commands.add_parser("show", help="what a snapshot says")
    show.add_argument("snapshot")
    diff = commands.add_parser("diff", help="what grew from one snapshot to another")
    diff.add_argument("before", metavar="A")
    diff.add_argument("after", metavar="B")
    html = commands.add_parser("html", help="write the interactive page")
    html.add_argument("snapshot")
    html.add_argument(
        "-o", "--output", metavar="PAGE", help="where; beside the snapshot if not given"
    )
    again = commands.add_parser("replay", help="replay a trace through this allocator")
    again.add_argument("trace")
    again.add_argument("--device", choices=("sim", "cpu", "cuda"), default="sim")
    again.add_argument("--policy", choices=("pool", "virtual", "direct"))
    again.add_argument("--segment-size", metavar="SIZE", help="such as 64MiB")
    again.add_argument("--memory", metavar="SIZE", help="what the device has, such as 80GiB")
    again.add_argument(
        "--with-older", action="store_true", help="begin with what was live before the recording"
    )
    again.add_argument("--trace-device", metavar="NAME", help="whose trace, such as cuda:1")
    live = commands.add_parser("watch", help="the memory of a running process, live")
    live.add_argument("pid", type=int, metavar="PID")
    live.add_argument(
        "--interval", type=float, default=1.0, metavar="SECONDS", help="between two looks; 1"
    )
    live.add_argument("--once", action="store_true", help="look once, and end")


def run(arguments: argparse.Namespace) -> int:
    """Do what the arguments say; gives the exit code."""
    command = {"show": _show, "diff": _diff, "html": _html, "replay": _replay, "watch": _watch}
    try:
        command[arguments.memory_command](arguments)
    except CommandError as error:
        print(printable(f"python -m genesis memory: {error}".split("\n")), file=sys.stderr)
        return 2
    return 0


def _read(path: str) -> Recording:
    try:
        return read_recording(path)
    except SnapshotError as error:
        raise CommandError(f"{path}: {error}") from None
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None


def _size(text: str | None, name: str, most: int) -> int | None:
    """A size that somebody wrote: a page of the allocator at least."""
    if text is None:
        return None
    try:
        size = parse_size(text)
    except ValueError as error:
        raise CommandError(f"{name}: {error}") from None
    if not PAGE <= size <= most:
        raise CommandError(f"{name}: from 2 MiB to {most // GIB} GiB, not {text}")
    return size


# ---- show and html ------------------------------------------------------------------------------


def _show(arguments: argparse.Namespace) -> None:
    recording = _read(arguments.snapshot)
    for device in recording.device_indices():
        print(printable(_state_lines(recording, device)))
    print()
    print(Report(recording).summary())
    if recording.ignored:
        print(f"\nleft out: {_ignored(recording.ignored)}")


def _ignored(count: int) -> str:
    return f"{counted(count, 'entry', 'entries')} with an action that is not known"


def _state(recording: Recording, device: int) -> dict[str, int]:
    """A device at the end of the recording, in bytes and in counts."""
    end = recording.end_bytes(device)
    live = [one for one in recording.blocks if one["device"] == device and one["state"] == "live"]
    segments = recording.segments(device)
    return {
        **dict(zip(("live", "requested", "pending", "reserved"), end, strict=True)),
        "blocks": len(live),
        "segments": sum(1 for _, size in segments.values() if size),
    }


def _state_lines(recording: Recording, device: int) -> list[str]:
    state = _state(recording, device)
    return [
        f"{recording.device_name(device)} at the end: {format_size(state['live'])} live in "
        f"{counted(state['blocks'], 'block')} ({format_size(state['requested'])} requested), "
        f"{format_size(state['pending'])} pending, {format_size(state['reserved'])} reserved in "
        f"{counted(state['segments'], 'segment')}"
    ]


def _html(arguments: argparse.Namespace) -> None:
    from genesis._timeline import Timeline

    recording = _read(arguments.snapshot)
    output = arguments.output or str(Path(arguments.snapshot).with_suffix(".html"))
    try:
        Timeline(recording).to_html(output)
    except OSError as error:
        raise CommandError(f"{output}: {error.strerror or error}") from None
    print(f"{output}: {counted(len(recording), 'event')}")


# ---- diff ---------------------------------------------------------------------------------------


def _diff(arguments: argparse.Namespace) -> None:
    before, after = _read(arguments.before), _read(arguments.after)
    print("\n\n".join(printable(part) for part in diff_parts(before, after) if part))


def diff_parts(before: Recording, after: Recording) -> list[list[str]]:
    """The tables of a comparison: totals, by place, by size."""
    return [
        _diff_totals(before, after),
        _diff_table("by place, live at the end:", _places(before), _places(after)),
        _diff_table("by size, live at the end:", _sizes(before), _sizes(after)),
    ]


def _diff_totals(before: Recording, after: Recording) -> list[str]:
    names = list(dict.fromkeys(before.devices + after.devices))
    lines = [f"{'':<24}{'A':>12}{'B':>12}{'B - A':>14}"]
    for name in names:
        one, two = _named_state(before, name), _named_state(after, name)
        for key in ("live", "requested", "pending", "reserved"):
            lines.append(
                f"{name + ' ' + key:<24}{format_size(one[key]):>12}{format_size(two[key]):>12}"
                f"{_signed(two[key] - one[key]):>14}"
            )
        for key in ("blocks", "segments"):
            label = f"{name} {key}"
            lines.append(f"{label:<24}{one[key]:>12}{two[key]:>12}{two[key] - one[key]:>+14}")
    return lines


def _named_state(recording: Recording, name: str) -> dict[str, int]:
    device = recording.devices.index(name) if name in recording.devices else -1
    return _state(recording, device)


def _signed(number: int) -> str:
    return ("-" if number < 0 else "+" if number else "") + format_size(abs(number))


Totals = dict[str, tuple[int, int]]  # bytes and blocks


def _places(recording: Recording) -> Totals:
    left = [one for one in recording.lifetimes() if one.end is None]
    holders = group_by(recording, left, lambda one: one.size)
    return {one.location: (one.bytes, one.count) for one in holders}


def _sizes(recording: Recording) -> Totals:
    counts = Counter(one["nbytes"] for one in recording.blocks if one["state"] == "live")
    return {counted(size, "byte"): (size * count, count) for size, count in counts.items()}


def _diff_table(title: str, before: Totals, after: Totals) -> list[str]:
    """What changed, the largest growth first."""
    changes = []
    for key in {**before, **after}:
        one, two = before.get(key, (0, 0)), after.get(key, (0, 0))
        if one != two:
            changes.append((two[0] - one[0], two[1] - one[1], key))
    if not changes:
        return [title, "  nothing changed"]
    changes.sort(key=lambda change: (-change[0], -change[1], change[2]))
    shown = changes if len(changes) <= 2 * ROWS else [*changes[:ROWS], *changes[-ROWS:]]
    lines = [title]
    for nbytes, count, key in shown:
        word = "block " if abs(count) == 1 else "blocks"
        lines.append(f"  {_signed(nbytes):>12}  {count:>+8} {word}  {key}")
    if len(shown) < len(changes):
        lines.append(f"  and {len(changes) - len(shown)} more in between")
    return lines


# ---- replay -------------------------------------------------------------------------------------


def _replay(arguments: argparse.Namespace) -> None:
    settings = Settings(
        arguments.device,
        arguments.policy,
        _size(arguments.segment_size, "--segment-size", SEGMENT_MOST),
        _size(arguments.memory, "--memory", MEMORY_MOST),
    )
    if settings.device == "cpu" and settings.policy == "virtual":
        raise CommandError("--policy: the CPU has pool and direct")
    recording = _read(arguments.trace)
    device = _trace_device(recording, arguments.trace_device)
    trace = Trace.of(recording, device, arguments.with_older)
    if not trace.allocations:
        raise CommandError(f"{arguments.trace}: no allocations in it")
    try:
        outcome, policy = replay(trace, settings)
    except RuntimeError as error:
        raise CommandError(f"the replay failed: {error}") from None
    older = 0 if arguments.with_older else _older_bytes(recording, trace.device)
    print(printable(_replay_lines(trace, settings, outcome, policy, older)))


def _older_bytes(recording: Recording, name: str) -> int:
    """What was live on a device before the first event."""
    return recording.usage(recording.devices.index(name)).start[0]


def _trace_device(recording: Recording, name: str | None) -> int | None:
    if name is None:
        return None
    if name not in recording.devices:
        raise CommandError(f"--trace-device: there are {', '.join(recording.devices)}")
    return recording.devices.index(name)


def _replay_lines(
    trace: Trace, settings: Settings, outcome: Outcome, policy: str, older: int
) -> list[str]:
    place = settings.device
    if place == "sim":
        place = f"a simulated GPU of {format_size(settings.memory or default_memory(trace))}"
    lines = [
        f"{counted(trace.allocations, 'allocation')} and {counted(trace.frees, 'free')} of "
        f"{trace.device}, {counted(trace.streams, 'stream')} besides the default one, replayed on "
        f"{place}",
    ]
    if trace.older:
        lines.append(
            f"left out: {counted(trace.older, 'free')} of blocks from before the recording"
        )
    if older:
        lines.append(
            f"{format_size(older)} that were live before the recording are in the recorded figures "
            "only; --with-older replays them, too"
        )
    if trace.ignored:
        lines.append(f"left out: {_ignored(trace.ignored)}")
    lines.append("")
    lines.append(f"{'':<22}{'recorded':>14}{'genesis, ' + policy:>20}")
    rows: list[tuple[str, Any, Any]] = [
        (name, _cell(key, trace.recorded), _cell(key, outcome))
        for name, key in (
            ("peak live", "peak_live"),
            ("peak requested", "peak_requested"),
            ("peak reserved", "peak_reserved"),
            ("fragmentation", "fragmentation"),
            ("driver calls", "driver_calls"),
            ("out of memory", "out_of_memory"),
        )
    ]
    return lines + [f"{name:<22}{one:>14}{two:>20}" for name, one, two in rows]


def _cell(key: str, outcome: Outcome) -> str:
    value = getattr(outcome, key)
    if value is None:
        return "-"
    if key == "fragmentation":
        return f"{value:.1%}"
    return format_size(value) if key.startswith("peak") else str(value)


# ---- watch --------------------------------------------------------------------------------------


def _watch(arguments: argparse.Namespace) -> None:
    from genesis._watch import WatchError, watch

    if not 0 < arguments.interval < float("inf"):
        raise CommandError("--interval: seconds, more than 0")
    try:
        watch(arguments.pid, arguments.interval, arguments.once)
    except WatchError as error:
        raise CommandError(str(error)) from None
