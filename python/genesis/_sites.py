"""Where memory was allocated: the stacks of sites, with names and lines.

The library keeps a stack as code objects and return addresses. They become names and lines here,
when somebody reads them. Lines of C come from addr2line (binutils), where it is installed.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import PurePath

from genesis import _C
from genesis._recording import Frame

_PACKAGE = PurePath(__file__).parent
_LIBRARIES = ("libgenesis.so", "_C.abi3.so")
_stacks: dict[int, tuple[Frame, ...]] = {0: ()}
_lines: dict[tuple[str, int], Frame] = {}

# addr2line is asked for so many addresses at a time: a command line has an end.
_BATCH = 1000


def _is_inside_interpreter(file: str | None) -> bool:
    """Whether C code belongs to the interpreter: its frames only repeat what Python's say."""
    return PurePath(file or "").name.startswith(("libpython", "python"))


def _ask_addr2line(file: str, addresses: list[int]) -> None:
    """Note the names and lines of addresses in an object file, as far as they are known."""
    tool = shutil.which("addr2line")
    for start in range(0, len(addresses) if tool else 0, _BATCH):
        part = addresses[start : start + _BATCH]
        command = [str(tool), "-f", "-C", "-e", file, *map(hex, part)]
        try:
            output = subprocess.run(
                command, capture_output=True, text=True, check=True, timeout=60, errors="replace"
            ).stdout.splitlines()
        except (OSError, subprocess.SubprocessError):
            return
        for address, name, place in zip(part, output[0::2], output[1::2], strict=False):
            path, _, line = place.split(" ")[0].rpartition(":")
            if line.isdigit() and not path.startswith("?"):
                _lines[file, address] = Frame(name, path, int(line))


def _c_frame(name: str | None, file: str | None, address: int) -> Frame:
    known = _lines.get((file or "", address))
    if known is not None:
        return known
    return Frame(name or "?", f"{file or '?'}+{address:#x}", 0)


def resolve(sites: Iterable[int]) -> None:
    """Look up many sites at once, which asks addr2line once for each object file."""
    raw = {site: _C.history_stack(site) for site in sites if site not in _stacks}
    asked: dict[str, set[int]] = {}
    for frames in raw.values():
        for kind, _, file, number in frames:
            if kind == "c" and file and (file, number) not in _lines:
                asked.setdefault(file, set()).add(number)
    for file, numbers in asked.items():
        if not _is_inside_interpreter(file):
            _ask_addr2line(file, sorted(numbers))
    for site, frames in raw.items():
        _stacks[site] = tuple(
            Frame(name or "?", file or "?", number)
            if kind == "python"
            else _c_frame(name, file, number)
            for kind, name, file, number in frames
            if kind == "python" or not _is_inside_interpreter(file)
        )


def stack_of(site: int) -> tuple[Frame, ...]:
    """The frames of a site, innermost first; none for 0.

    Examples
    --------
    >>> from genesis._sites import stack_of
    >>> stack_of(0)
    ()
    """
    if site not in _stacks:
        resolve([site])
    return _stacks[site]


def _is_own(frame: Frame) -> bool:
    path = PurePath(frame.filename)
    return _PACKAGE in path.parents or path.name.startswith(_LIBRARIES)


def place_of(site: int) -> Frame | None:
    """The innermost frame of a site that is not the library's own; None where it is not known."""
    frames = stack_of(site)
    return next((frame for frame in frames if not _is_own(frame)), frames[0] if frames else None)


def location_of(site: int) -> str:
    """``"file:line (function)"`` of a site; empty where it is not known."""
    place = place_of(site)
    return str(place) if place is not None else ""
