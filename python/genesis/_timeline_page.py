"""A recording as one self-contained page for a browser.

The page is the template ``_timeline_page.html`` with one long base64 text in it: a zlib stream of

    u32        the length of the header
    header     JSON: counts, names, stacks, their lines, and the segments at the end
    events     the records byte by byte: all their bytes 0, then all their bytes 1, up to byte 55
    blocks     the blocks at the end as records of BLOCK, byte by byte too

Byte by byte, because equal bytes become neighbours, which zlib likes, and one strided slice writes
all of them.

1. Everything that comes from the recording (names of files, functions, annotations) is inside the
   base64 text and reaches the page as text nodes only, so nothing in it can become markup.
2. The page's policy lets only the template's own script run, named by its hash, and nothing be
   loaded from anywhere.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genesis._recording import EVENT, place_of

if TYPE_CHECKING:
    import os

    from genesis._recording import Frame, Recording

TEMPLATE = Path(__file__).with_name("_timeline_page.html")
# address, size, requested, stream, site, device, is_pending
BLOCK = struct.Struct("<QQQQIBB2x")
PAYLOAD_MARK = "@PAYLOAD@"
POLICY_MARK = "@SCRIPT_HASH@"
_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
# Measured on recordings of 1,000,000 events: higher levels take twice the time for 3 % less.
_LEVEL = 4


class _Texts:
    """Numbers for texts, so that a file's name is written once and not in every frame."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def _pack_sites(recording: Recording, texts: _Texts) -> list[list[int]]:
    """Each stack as name, file, line, name, file, line, ..., the innermost frame first."""
    return [
        [part for name, file, line in stack for part in (texts(name), texts(file), line)]
        for stack in recording.sites
    ]


def _place_index(stack: tuple[Frame, ...]) -> int:
    """Which frame of a stack is its line, see place_of(); 0 of no frames."""
    place = place_of(stack)
    return 0 if place is None else stack.index(place)


def _block_records(blocks: list[dict[str, Any]]) -> bytes:
    """The blocks that hold memory at the end."""
    return b"".join(
        BLOCK.pack(
            block["address"],
            block["nbytes"],
            block["requested"],
            block["stream_id"],
            block["site"],
            block["device"],
            block["state"] == "pending",
        )
        for block in blocks
        if block["state"] in ("live", "pending")
    )


def _pack_segments(blocks: list[dict[str, Any]]) -> list[tuple[int, int, int]]:
    """The segments at the end, each as device, address and bytes."""
    return sorted({(b["device"], b["segment_address"], b["segment_bytes"]) for b in blocks})


def _header(recording: Recording, blocks: bytes) -> bytes:
    texts = _Texts()
    header = {
        "count": len(recording.data) // EVENT.size,
        "block_count": len(blocks) // BLOCK.size,
        "lost": recording.lost,
        "unix_ns": str(recording.unix_ns),  # beyond what a number holds exactly in a browser
        "devices": recording.devices,
        "annotations": recording.annotations,
        "sites": _pack_sites(recording, texts),
        "places": [_place_index(stack) for stack in recording.sites],
        "segments": _pack_segments(recording.blocks),
    }
    header["texts"] = list(texts.numbers)
    return json.dumps(header, separators=(",", ":")).encode("ascii")


def pack(recording: Recording) -> bytes:
    """What the page carries, before base64."""
    blocks = _block_records(recording.blocks)
    header = _header(recording, blocks)
    squeezer = zlib.compressobj(_LEVEL)
    parts = [squeezer.compress(struct.pack("<I", len(header)) + header)]
    for records, size in ((recording.data, EVENT.size), (blocks, BLOCK.size)):
        parts += [squeezer.compress(records[plane::size]) for plane in range(size)]
    parts.append(squeezer.flush())
    return b"".join(parts)


def _template() -> tuple[str, str]:
    """What stands before and after the payload."""
    page = TEMPLATE.read_text(encoding="utf-8")
    script = _SCRIPT.search(page)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    before, after = page.replace(POLICY_MARK, f"sha256-{digest}", 1).split(PAYLOAD_MARK)
    return before, after


def write_page(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write a recording as an interactive page.

    Parameters
    ----------
    recording : Recording
        The events, and the state at their end.
    path : str or path
        The file to write; it needs nothing beside it to be shown.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from genesis._recording import Recording
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     page = pathlib.Path(directory) / "memory.html"
    ...     write_page(Recording(devices=["cpu"]), page)
    ...     page.read_text().startswith("<!doctype html>")
    True
    """
    before, after = _template()
    with Path(path).open("wb") as file:
        file.write(before.encode())
        file.write(binascii.b2a_base64(pack(recording), newline=False))
        file.write(after.encode())
