"""Messages between a program and its workers: a socket, and memory without a name for tensors.

    wire        1 byte    flags: which files come with it
                the rest  marshal: (kind, epoch, number, form, value); a value that is not plain is
                          (pickle, parts, elements)
    files       the elements of tensors and arrays, one behind the other, where they are more than
                fit into the wire; and the wire itself where it is long

A worker fills the same memory again when all tensors over it have gone: the first word of such a
segment says so, and is set by whoever unmaps it (python_shared_memory.c). It keeps a few segments
that are free; the others go back.

A message is one packet, which comes as a whole or not at all. Memory is a file that has no name
(memfd), so nothing is left when a process is killed: it goes with the last descriptor and the last
mapping. Both ends are processes of the same program, which trust each other: the user's objects
are pickled as multiprocessing does.
"""

from __future__ import annotations

import array
import errno
import io
import marshal
import mmap
import os
import socket
import threading
import time
from collections import deque
from multiprocessing.reduction import ForkingPickler
from pickle import PickleBuffer
from typing import Any

from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Part = tuple[int, tuple[int, ...], int]  # number of the dtype, shape, offset
    Message = tuple[int, int, int, Any]  # kind, epoch, number, value

__all__ = ["Channel", "Segments", "channel_pair"]

PLAIN, PICKLED = 0, 1
_HAS_MEMORY, _IS_LONG, _IS_SEGMENT = 1, 2, 4
_WIRE_MOST = 32768  # bytes in one packet, well below what a socket takes
_COPIED_MOST = 8192  # bytes of elements that are copied: it costs less than a mapping of their own
_SEGMENTS_FREE_MOST = 4  # that a worker keeps for batches to come
_SEGMENT_STEP = 1 << 16  # their sizes are multiples
_RETRY_S = 0.002  # until there is room for one more descriptor on its way
_ALIGNMENT = 64
_BUFFERS_MOST = 512  # for one writev()
_DTYPES = (
    *(_C.bool, _C.uint8, _C.uint16, _C.uint32, _C.uint64, _C.int8, _C.int16, _C.int32, _C.int64),
    *(_C.float16, _C.bfloat16, _C.float32, _C.float64),
)
_NUMBERS = {dtype: number for number, dtype in enumerate(_DTYPES)}
_BYTES = _NUMBERS[_C.uint8]
_PADDING = bytes(_ALIGNMENT)
_FREE, _USED, _LEFT = range(3)  # what the first word of a segment says: python_shared_memory.c


def _as_it_is(value: Any, needs_gradient: bool = False) -> Any:
    return value.requires_grad_() if needs_gradient else value


class _Packer(ForkingPickler):
    """Pickles an object, and puts tensors and arrays aside."""

    def __init__(self, file: Any) -> None:
        super().__init__(file, 5, True, self._aside)
        self.parts: list[Part] = []
        self.buffers: list[Any] = []
        self.end = 0
        self._shapes: dict[int, tuple[int, tuple[int, ...]]] = {}  # by the buffer's identity

    def reducer_override(self, value: Any) -> Any:
        if type(value) is not _C.Tensor:
            return NotImplemented
        if value.requires_grad and not value.is_leaf:
            raise RuntimeError(
                "a batch of a worker has a tensor that needs gradients and is computed: autograd "
                "does not go from one process to another; call detach() on it in the worker"
            )
        if value.device.type != "cpu":
            raise RuntimeError(
                f"a batch of a worker has a tensor on {value.device}: return tensors on the CPU, "
                "and copy them where the batch arrives"
            )
        near = value.detach().contiguous()
        view = memoryview(near.view(_C.int16) if near.dtype == _C.bfloat16 else near)
        if view.readonly:
            view = memoryview(near.clone(memory_format="contiguous_format"))
        held = PickleBuffer(view)
        self._shapes[id(held)] = _NUMBERS[near.dtype], near.shape
        return _as_it_is, (held, True) if value.requires_grad else (held,)

    def _aside(self, held: Any) -> bool:
        raw = held.raw()
        number, shape = self._shapes.pop(id(held), None) or (_BYTES, (raw.nbytes,))
        offset = 0
        if raw.nbytes:
            space = -self.end % _ALIGNMENT
            if space:
                self.buffers.append(_PADDING[:space])
            self.buffers.append(raw)
            offset = self.end + space
            self.end = offset + raw.nbytes
        self.parts.append((number, shape, offset))
        return False


def _file_of(buffers: Sequence[Any]) -> int:
    """A file without a name that has these bytes."""
    file = os.memfd_create("genesis-batch", os.MFD_CLOEXEC)
    try:
        for first in range(0, len(buffers), _BUFFERS_MOST):
            left = list(buffers[first : first + _BUFFERS_MOST])
            while left:
                count = os.writev(file, left)
                while left and count >= len(left[0]):
                    count -= len(left.pop(0))
                if count:
                    left[0] = memoryview(left[0])[count:]
    except BaseException:
        os.close(file)
        raise
    return file


class Segments:
    """Memory for the batches of one worker, which is used again."""

    def __init__(self) -> None:
        self._all: list[tuple[int, mmap.mmap]] = []  # file, and what is in it

    def fill(self, buffers: Sequence[Any], size: int) -> int:
        """Put buffers into a segment; a descriptor of it."""
        file, memory = self._take(_ALIGNMENT + size)
        at = _ALIGNMENT
        for one in buffers:
            end = at + len(one)
            memory[at:end] = one
            at = end
        memory[:8] = _USED.to_bytes(8, "little")
        return os.dup(file)

    def _take(self, size: int) -> tuple[int, mmap.mmap]:
        for one in [one for one in self._all if one[1][0] == _LEFT]:
            self._drop(one)
        free = [one for one in self._all if one[1][0] == _FREE]
        for one in free:
            if size <= len(one[1]) <= 4 * size:
                return one
        for one in free[: max(len(free) - _SEGMENTS_FREE_MOST + 1, 0)]:
            self._drop(one)
        file = os.memfd_create("genesis-batch", os.MFD_CLOEXEC)
        try:
            os.ftruncate(file, size + -size % _SEGMENT_STEP)
            made = file, mmap.mmap(file, size + -size % _SEGMENT_STEP)
        except BaseException:
            os.close(file)
            raise
        self._all.append(made)
        return made

    def _drop(self, one: tuple[int, mmap.mmap]) -> None:
        self._all.remove(one)
        one[1].close()
        os.close(one[0])


def _is_plain(value: Any) -> bool:
    """Whether marshal gives back the same: lists of numbers, as samplers make them, do."""
    if type(value) is list:
        return set(map(type, value)) <= {int, type(None)}
    return type(value) in (int, str, type(None))


class Channel:
    """One end of a connection. One thread receives; any may send."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self.segments: Segments | None = None  # of a worker
        self._lock = threading.Lock()  # of what waits
        self._waiting: deque[tuple[bytes, list[int]]] = deque()  # what the socket has no room for

    def __reduce__(self) -> Any:
        return Channel, (self.socket,)

    def fileno(self) -> int:
        """The descriptor to wait for."""
        return self.socket.fileno()

    # ---- sending ----

    def send(self, kind: int, epoch: int, number: int, value: Any) -> None:
        """Send a message, and wait while there is no room."""
        wire, files = _packed(kind, epoch, number, value, self.segments)
        try:
            while not self._send(wire, files, 0):
                time.sleep(_RETRY_S)
        finally:
            _close_all(files)

    def post(self, kind: int, epoch: int, number: int, value: Any) -> None:
        """Send a message, now or by flush(): never waits."""
        packed = _packed(kind, epoch, number, value)
        with self._lock:
            self._waiting.append(packed)
        self.flush()

    def flush(self) -> None:
        """Send what waits, as far as there is room."""
        if not self._waiting:
            return
        with self._lock:
            while self._waiting:
                wire, files = self._waiting[0]
                try:
                    if not self._send(wire, files, socket.MSG_DONTWAIT):
                        return
                except BlockingIOError:
                    return
                except OSError:  # who has gone takes nothing: receive() says so
                    pass
                self._waiting.popleft()
                _close_all(files)

    def _send(self, wire: bytes, files: list[int], flags: int) -> bool:
        """Send a packet; False if too many descriptors are on their way already."""
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
        try:
            self.socket.sendmsg([wire], rights, flags | socket.MSG_NOSIGNAL)
        except OSError as error:
            if error.errno != errno.ETOOMANYREFS:
                raise
            return False
        return True

    # ---- receiving ----

    def receive(self) -> Message | None:
        """Take the next message, and wait for it; None if the other end has gone."""
        try:
            wire, rights, _, _ = self.socket.recvmsg(
                _WIRE_MOST + 1, socket.CMSG_SPACE(8), socket.MSG_CMSG_CLOEXEC
            )
        except ConnectionError:
            return None
        if not wire:
            return None
        files = array.array("i")
        for level, kind, data in rights:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                files.frombytes(data[: len(data) - len(data) % files.itemsize])
        try:
            return _unpacked(wire, list(files))
        finally:
            _close_all(files)

    def shutdown(self) -> None:
        """End the connection for both ends, whoever else has a descriptor of it."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def close(self) -> None:
        """Close this end."""
        self.socket.close()
        with self._lock:
            for _, files in self._waiting:
                _close_all(files)
            self._waiting.clear()


def channel_pair() -> tuple[Channel, Channel]:
    """Make the two ends of a connection."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return Channel(one), Channel(other)


def _close_all(files: Any) -> None:
    for file in files:
        os.close(file)


def _packed(
    kind: int, epoch: int, number: int, value: Any, segments: Segments | None = None
) -> tuple[bytes, list[int]]:
    """A message as a wire, and the files that come with it."""
    files: list[int] = []
    flags = 0
    try:
        if _is_plain(value):
            wire = marshal.dumps((kind, epoch, number, PLAIN, value))
        else:
            room = io.BytesIO()
            packer = _Packer(room)
            packer.dump(value)
            parts = tuple(packer.parts)
            elements = b""
            if packer.end > _COPIED_MOST and segments is not None:
                files.append(segments.fill(packer.buffers, packer.end))
                flags = _HAS_MEMORY | _IS_SEGMENT
            elif packer.end > _COPIED_MOST:
                files.append(_file_of(packer.buffers))
                flags = _HAS_MEMORY
            elif packer.end:
                elements = b"".join(packer.buffers)
            content = room.getvalue(), parts, elements
            wire = marshal.dumps((kind, epoch, number, PICKLED, content))
        if len(wire) >= _WIRE_MOST:
            files.append(_file_of([wire]))
            wire, flags = b"", flags | _IS_LONG
        return bytes([flags]) + wire, files
    except BaseException:
        _close_all(files)
        raise


def _unpacked(packet: bytes, files: list[int]) -> Message:
    flags, wire = packet[0], packet[1:]
    if len(files) != (flags & (_HAS_MEMORY | _IS_LONG)).bit_count():
        raise RuntimeError(
            "the memory of a batch did not arrive: this process has too many open files (ulimit -n)"
        )
    if flags & _IS_LONG:
        with open(files[-1], "rb", closefd=False) as file:  # noqa: PTH123
            file.seek(0)
            wire = file.read()
    kind, epoch, number, form, value = marshal.loads(wire)
    if form == PLAIN:
        return kind, epoch, number, value
    data, parts, elements = value
    if flags & _HAS_MEMORY:
        made = _tensors_shared(files[0], parts, bool(flags & _IS_SEGMENT))
    else:
        made = [_tensor_copied(part, elements) for part in parts]
    return kind, epoch, number, ForkingPickler.loads(data, buffers=made)


# What was put aside: tensors, and for arrays the bytes of tensors.


def _tensors_shared(file: int, parts: Sequence[Part], is_segment: bool) -> list[Any]:
    start = _ALIGNMENT if is_segment else 0
    try:
        return _C._shared_tensors(
            file,
            tuple([(_DTYPES[number], shape, start + offset) for number, shape, offset in parts]),
            False,
            is_segment,
        )
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
    # The system allows a process so many mappings (vm.max_map_count), and they are taken.
    with open(file, "r+b", closefd=False) as source:  # noqa: PTH123
        source.seek(start)
        elements = source.read()
        made = [_tensor_copied(part, elements) for part in parts]
        if is_segment:
            os.pwrite(file, bytes(8), 0)
    return made


def _tensor_copied(part: Part, elements: bytes) -> _C.Tensor:
    number, shape, offset = part
    made = _C._empty(shape, _DTYPES[number], "cpu")
    if made.nbytes:
        _C._set_bytes(made, 0, elements[offset : offset + made.nbytes])
    return made
