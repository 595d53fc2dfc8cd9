"""What a key comes to: the classes behind :func:`genesis.index_plan`."""

from __future__ import annotations

from enum import Enum

from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["IndexKind", "IndexPlan"]


class IndexKind(Enum):
    """How a key is carried out."""

    VIEW = "view"
    """Reading: another view of the same memory; nothing is copied."""
    GATHER = "gather"
    """Reading: elements are collected into a new tensor."""
    SCATTER = "scatter"
    """Writing: elements are spread over places."""
    COPY = "copy"
    """Writing: a view takes over the elements of a tensor."""
    FILL = "fill"
    """Writing: a view takes over one number."""


class IndexPlan:
    """What a key comes to, before it is carried out: see :func:`index_plan`.

    Attributes
    ----------
    kind : IndexKind
    result_shape : tuple of int
        Of the result, or of what is written.
    result_strides : tuple of int
        In elements: of the view, or of the new tensor.
    ptr_offset_bytes : int
        From the tensor's first element to the first one that integers and slices leave.
    needs_mask_compaction : bool
        Whether there is a mask: which elements are meant depends on its bytes.
    temp_memory_bytes : int
        Memory that is needed for the time of the call, besides the result.
    """

    __slots__ = (
        "_key",
        "_tensor",
        "kind",
        "needs_mask_compaction",
        "ptr_offset_bytes",
        "result_shape",
        "result_strides",
        "temp_memory_bytes",
    )

    kind: IndexKind
    result_shape: tuple[int, ...]
    result_strides: tuple[int, ...]
    ptr_offset_bytes: int
    needs_mask_compaction: bool
    temp_memory_bytes: int

    def __init__(self, tensor: _C.Tensor, key: Any, value: Any, for_set: bool) -> None:
        kind, *rest = _C._index_plan(tensor, key, value, for_set)
        self._tensor, self._key, self.kind = tensor, key, IndexKind(kind)
        self.result_shape, self.result_strides, self.ptr_offset_bytes = rest[:3]
        self.needs_mask_compaction, self.temp_memory_bytes = rest[3:]

    @property
    def index_tensor(self) -> _C.Tensor | None:
        """The places as one flat tensor of int64, made when it is asked for.

        They are the numbers of the elements in the tensor, counted in row-major order. None for
        views, and for a mask before its compaction.
        """
        is_view = self.kind not in (IndexKind.GATHER, IndexKind.SCATTER)
        if is_view or self.needs_mask_compaction:
            return None
        return _C._index_positions(self._tensor, self._key)

    def __repr__(self) -> str:
        names = [name for name in sorted(self.__slots__) if not name.startswith("_")]
        return f"IndexPlan({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"
