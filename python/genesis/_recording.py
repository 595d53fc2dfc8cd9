"""A recording of memory events: packed records, and what their numbers refer to.

Records are ordered by time. A block is live from its ALLOC to its FREE or FREE_REQUESTED, and
pending from FREE_REQUESTED to FREE_COMPLETED. What was live before the first record has no ALLOC:
the past follows from ``blocks``, which is the state at the end, by going backwards.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, NamedTuple

# time_ns, address, size, requested, stream, site, annotation, thread, kind, device, number
EVENT = struct.Struct("<QQQQQIIHBBI")

ALLOC = 1
FREE = 2
FREE_REQUESTED = 3
FREE_COMPLETED = 4
SEGMENT_MAP = 5
SEGMENT_UNMAP = 6
OUT_OF_MEMORY = 7
SNAPSHOT = 8
MARK = 9
ANNOTATION_BEGIN = 10
ANNOTATION_END = 11


class Frame(NamedTuple):
    """A function that was running."""

    name: str
    filename: str
    line: int  # 0: not known


@dataclass
class Recording:
    """Events of memory, oldest first, with the state at their end."""

    data: bytes = b""
    sites: list[tuple[Frame, ...]] = field(default_factory=lambda: [()])
    annotations: list[str] = field(default_factory=lambda: [""])
    devices: list[str] = field(default_factory=list)
    blocks: list[dict[str, Any]] = field(default_factory=list)
    lost: int = 0
    unix_ns: int = 0
    statistics: dict[str, dict[str, Any]] = field(default_factory=dict)
