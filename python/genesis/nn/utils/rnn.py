"""Sequences of several lengths: padded, or packed step by step."""

from __future__ import annotations

from collections import namedtuple

import genesis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from genesis import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]

_Packed = namedtuple("_Packed", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])


class PackedSequence(_Packed):
    """Sequences step by step: the first elements of all, then the second ones, and so on.

    :func:`pack_padded_sequence` and :func:`pack_sequence` make them; recurrent layers take them.

    Attributes
    ----------
    data : Tensor
        The elements, the longest sequence first in every step.
    batch_sizes : Tensor
        How many sequences have each step, on the CPU.
    sorted_indices : Tensor or None
        The sequences in their order here; None: they were sorted.
    unsorted_indices : Tensor or None
        Where each sequence is here.
    """

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        """Of parts that fit each other: see the functions that make them."""
        if batch_sizes is None:
            raise TypeError("PackedSequence: batch_sizes is missing")
        if batch_sizes.is_cuda:
            raise ValueError("batch_sizes are on the CPU, not on a GPU")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _moved(self, call: Callable[[Tensor], Tensor]) -> PackedSequence:
        """The same with other data, and indices on the device of these."""
        data = call(self.data)
        if data is self.data:
            return self

        def near(indices: Tensor | None) -> Tensor | None:
            return None if indices is None else indices.to(data.device)

        return type(self)(
            data, self.batch_sizes, near(self.sorted_indices), near(self.unsorted_indices)
        )

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Data of another type, or on another device: the arguments of ``Tensor.to()``."""
        return self._moved(lambda data: data.to(*args, **kwargs))

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """On a GPU."""
        return self._moved(lambda data: data.cuda(*args, **kwargs))

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """On the CPU."""
        return self._moved(lambda data: data.cpu(*args, **kwargs))

    def pin_memory(self) -> PackedSequence:
        """In page-locked memory."""
        return self._moved(lambda data: data.pin_memory())

    def double(self) -> PackedSequence:
        """As float64."""
        return self.to(genesis.float64)

    def float(self) -> PackedSequence:
        """As float32."""
        return self.to(genesis.float32)

    def half(self) -> PackedSequence:
        """As float16."""
        return self.to(genesis.float16)

    def long(self) -> PackedSequence:
        """As int64."""
        return self.to(genesis.int64)

    def int(self) -> PackedSequence:
        """As int32."""
        return self.to(genesis.int32)

    def short(self) -> PackedSequence:
        """As int16."""
        return self.to(genesis.int16)

    def char(self) -> PackedSequence:
        """As int8."""
        return self.to(genesis.int8)

    def byte(self) -> PackedSequence:
        """As uint8."""
        return self.to(genesis.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether it is on a GPU."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether it is in page-locked memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Where each number is in a permutation.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.utils.rnn.invert_permutation(genesis.tensor([2, 0, 1])).tolist()
    [1, 2, 0]
    """
    return None if permutation is None else genesis.argsort(permutation)


def _lengths_mask(lengths: Tensor, steps: int, device: Any) -> Tensor:
    """Which elements sequences have: a row for each step."""
    return genesis.arange(steps, device=device).unsqueeze(1) < lengths.to(device).unsqueeze(0)


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Pack padded sequences.

    Parameters
    ----------
    input : Tensor
        (steps, batch, ...), or with `batch_first` (batch, steps, ...).
    lengths : Tensor or list of int
        Of each sequence, at least 1.
    batch_first : bool
        The order of the first two dimensions.
    enforce_sorted : bool
        Whether the longest sequence must be first, and so on; else they are sorted here.

    Examples
    --------
    >>> import genesis
    >>> from genesis.nn.utils.rnn import pack_padded_sequence
    >>> packed = pack_padded_sequence(genesis.tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True)
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1, 3, 2], [2, 1])
    """
    lengths = genesis.as_tensor(lengths, dtype=genesis.int64)
    if lengths.is_cuda:
        raise RuntimeError("lengths are on the CPU, not on a GPU")
    order = None
    if not enforce_sorted:
        lengths, order = genesis.sort(lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    if batch_first:
        input = input.transpose(0, 1)
    counts = lengths.tolist()
    if len(counts) != input.shape[1]:
        raise RuntimeError(f"there are {len(counts)} lengths, and {input.shape[1]} sequences")
    if not counts or counts[-1] <= 0:
        raise RuntimeError("a length is at least 1, and there is one")
    if any(after > before for before, after in zip(counts, counts[1:], strict=False)):
        raise RuntimeError(
            "lengths must get smaller from one sequence to the next; with enforce_sorted=False "
            "sequences are sorted"
        )
    if counts[0] > input.shape[0]:
        raise RuntimeError(f"a length is {counts[0]}, and there are {input.shape[0]} steps")
    mask = _lengths_mask(lengths, counts[0], input.device)
    sizes = _lengths_mask(lengths, counts[0], "cpu").sum(1)
    return PackedSequence(input[: counts[0]][mask], sizes, order)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Padded sequences, and their lengths: the inverse of :func:`pack_padded_sequence`.

    Parameters
    ----------
    sequence : PackedSequence
        The sequences.
    batch_first : bool
        Whether the result is (batch, steps, ...) instead of (steps, batch, ...).
    padding_value : float
        What is behind the end of a sequence.
    total_length : int, optional
        The steps of the result; the longest sequence fits.

    Examples
    --------
    >>> import genesis
    >>> from genesis.nn.utils.rnn import pack_sequence, pad_packed_sequence
    >>> packed = pack_sequence([genesis.tensor([1, 2]), genesis.tensor([3])])
    >>> padded, lengths = pad_packed_sequence(packed, batch_first=True)
    >>> padded.tolist(), lengths.tolist()
    ([[1, 2], [3, 0]], [2, 1])
    """
    data, batch_sizes = sequence.data, sequence.batch_sizes
    steps, batch = len(batch_sizes), int(batch_sizes[0])
    lengths = (batch_sizes.unsqueeze(1) > genesis.arange(batch).unsqueeze(0)).sum(0)
    if total_length is not None and total_length < steps:
        raise ValueError(
            f"total_length is {total_length}, and the longest sequence has {steps} steps"
        )
    steps = steps if total_length is None else total_length
    padded = genesis.full(
        (steps, batch, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device
    )
    padded[_lengths_mask(lengths, steps, data.device)] = data
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.cpu()]
    return padded.transpose(0, 1) if batch_first else padded, lengths


def pad_sequence(
    sequences: Tensor | Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences as one tensor: the shorter ones are padded.

    Parameters
    ----------
    sequences : list of Tensor
        Each (steps, ...): all but the first dimension are the same.
    batch_first : bool
        Whether the result is (batch, steps, ...) instead of (steps, batch, ...).
    padding_value : float
        What is added.
    padding_side : str
        ``"right"`` or ``"left"``: behind the end, or before the beginning.

    Examples
    --------
    >>> import genesis
    >>> from genesis.nn.utils.rnn import pad_sequence
    >>> pad_sequence([genesis.tensor([1, 2]), genesis.tensor([3])], batch_first=True).tolist()
    [[1, 2], [3, 0]]
    """
    if padding_side not in ("left", "right"):
        raise ValueError(f"padding_side is 'left' or 'right', not {padding_side!r}")
    several = [*sequences]
    if not several:
        raise RuntimeError("pad_sequence: there is no sequence")
    longest = max(one.shape[0] for one in several)

    def padded(one: Tensor) -> Tensor:
        lack = longest - one.shape[0]
        if lack == 0:
            return one
        rest = genesis.full(
            (lack, *one.shape[1:]), padding_value, dtype=one.dtype, device=one.device
        )
        return genesis.cat([one, rest] if padding_side == "right" else [rest, one])

    return genesis.stack([padded(one) for one in several], 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """The sequences of a padded tensor: the inverse of :func:`pad_sequence`.

    Examples
    --------
    >>> import genesis
    >>> from genesis.nn.utils.rnn import unpad_sequence
    >>> padded = genesis.tensor([[1, 2], [3, 0]])
    >>> [one.tolist() for one in unpad_sequence(padded, genesis.tensor([2, 1]), batch_first=True)]
    [[1, 2], [3]]
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    counts = genesis.as_tensor(lengths).tolist()
    return [one[:count] for one, count in zip(padded_sequences.unbind(0), counts, strict=True)]


def pack_sequence(sequences: Iterable[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences: :func:`pad_sequence`, then :func:`pack_padded_sequence`.

    Examples
    --------
    >>> import genesis
    >>> from genesis.nn.utils.rnn import pack_sequence
    >>> pack_sequence([genesis.tensor([1, 2]), genesis.tensor([3])]).data.tolist()
    [1, 3, 2]
    """
    several = [*sequences]
    lengths = [one.shape[0] for one in several]
    return pack_padded_sequence(pad_sequence(several), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed one: the inverse of :func:`pack_sequence`.

    Examples
    --------
    >>> import genesis
    >>> from genesis.nn.utils.rnn import pack_sequence, unpack_sequence
    >>> packed = pack_sequence([genesis.tensor([1, 2]), genesis.tensor([3])])
    >>> [one.tolist() for one in unpack_sequence(packed)]
    [[1, 2], [3]]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
