"""The memory behind a tensor, as PyTorch's storage objects show it, and shapes with a count."""

from __future__ import annotations

from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["Size"]


class Size(tuple[int, ...]):
    """A shape that counts its elements: a tuple of sizes, equal to any other one.

    ``x.shape`` is a plain tuple, which Python makes in two thirds of the time:
    ``genesis.Size(x.shape)`` where the count is needed.

    Examples
    --------
    >>> import genesis
    >>> genesis.Size(genesis.zeros(2, 3).shape).numel()
    6
    """

    __slots__ = ()

    def numel(self) -> int:
        """How many elements a tensor of this shape has."""
        count = 1
        for size in self:
            count *= size
        return count


class Storage:
    """All of the memory that a tensor is a view of: its elements, or its bytes.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.zeros(4, 2)[1]
    >>> x.storage().size(), x.untyped_storage().nbytes()
    (8, 32)
    """

    __slots__ = ("_all",)

    def __init__(self, tensor: _C.Tensor, is_typed: bool) -> None:
        self._all = tensor._storage(is_typed)

    device = property(lambda self: self._all.device, doc="Where the memory is.")
    dtype = property(lambda self: self._all.dtype, doc="The type of the elements.")

    def size(self) -> int:
        """How many elements there are: bytes, if it is untyped."""
        return self._all.numel()

    def nbytes(self) -> int:
        """Bytes of all of them."""
        return self._all.nbytes

    def data_ptr(self) -> int:
        """The address of the first one."""
        return self._all.data_ptr()

    def tolist(self) -> list[Any]:
        """The elements."""
        return self._all.tolist()

    def __len__(self) -> int:
        return self._all.numel()

    def __getitem__(self, index: int) -> Any:
        return self._all[index].item()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all.tolist())


def storage(self: _C.Tensor) -> Storage:
    """All of the memory that the tensor is a view of, as elements of its type."""
    return Storage(self, True)


def untyped_storage(self: _C.Tensor) -> Storage:
    """All of the memory that the tensor is a view of, as bytes."""
    return Storage(self, False)


_C.Tensor.storage, _C.Tensor.untyped_storage = storage, untyped_storage
