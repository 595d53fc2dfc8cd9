"""Tables of vectors."""

from __future__ import annotations

from genesis import _C
from genesis._grad_mode import no_grad
from genesis.nn import functional as F  # noqa: N812
from genesis.nn import init
from genesis.nn.modules.linear import new_parameter
from genesis.nn.modules.module import Module
from genesis.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

__all__ = ["Embedding", "EmbeddingBag"]


def _padding_row(padding_idx: int | None, count: int) -> int | None:
    """The number of the padding's row, counted from the first one."""
    if padding_idx is None:
        return None
    if not -count <= padding_idx < count:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx % count


class _Table(Module):
    """What they have in common: the table."""

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None

    def _set_weight(
        self, weight: _C.Tensor | None, requires_grad: bool, device: Any, dtype: Any
    ) -> None:
        shape = (self.num_embeddings, self.embedding_dim)
        if weight is None:
            made = new_parameter(*shape, device=device, dtype=dtype)
            self.weight = made.requires_grad_(requires_grad)
            self.reset_parameters()
            return
        if weight.shape != shape:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self.weight = Parameter(weight, requires_grad=requires_grad)

    def reset_parameters(self) -> None:
        """Set the table to normally distributed numbers, and the padding's row to 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0


class Embedding(_Table):
    """Rows of a table, by their numbers.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        Rows of the table, and their size.
    padding_idx : int, optional
        A row that is 0 at first, and not trained.
    max_norm : float, optional
        Rows with a larger norm are scaled to this one when they are looked up.
    norm_type : float
        Which norm that is.
    scale_grad_by_freq : bool
        Whether the gradient of a row is divided by how often it occurs.
    sparse : bool
        Accepted for PyTorch's sake.
    device, dtype : optional
        Of the table.

    Examples
    --------
    >>> import genesis
    >>> table = genesis.nn.Embedding(10, 3)
    >>> table(genesis.tensor([[1, 2], [4, 5]])).shape
    (2, 2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: _C.Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _padding_row(padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._set_weight(_weight, not _freeze, device, dtype)

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        """Look rows up."""
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        """The arguments."""
        others = {
            "padding_idx": (self.padding_idx, None),
            "max_norm": (self.max_norm, None),
            "norm_type": (self.norm_type, 2),
            "scale_grad_by_freq": (self.scale_grad_by_freq, False),
            "sparse": (self.sparse, False),
        }
        parts = [f"{name}={one}" for name, (one, usual) in others.items() if one != usual]
        return ", ".join([str(self.num_embeddings), str(self.embedding_dim), *parts])

    @classmethod
    def from_pretrained(
        cls,
        embeddings: _C.Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """Make one of a table that is there; with `freeze` it is not trained.

        Examples
        --------
        >>> import genesis
        >>> table = genesis.nn.Embedding.from_pretrained(genesis.tensor([[1.0, 2.3], [4.0, 5.1]]))
        >>> table(genesis.tensor([1]))
        tensor([[4.0000, 5.1000]])
        """
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        return cls(
            *embeddings.shape,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
            _weight=embeddings,
            _freeze=freeze,
        )


class EmbeddingBag(_Table):
    """Sums, means or maxima of rows of a table.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        Rows of the table, and their size.
    max_norm, norm_type, scale_grad_by_freq, sparse, device, dtype : optional
        As those of :class:`Embedding`.
    mode : str
        ``"sum"``, ``"mean"`` or ``"max"``.
    include_last_offset : bool
        Whether the last offset is the end of the last bag.
    padding_idx : int, optional
        A row that does not count.

    Examples
    --------
    >>> import genesis
    >>> bag = genesis.nn.EmbeddingBag(10, 3, mode="sum")
    >>> bag(genesis.tensor([1, 2, 4, 5]), genesis.tensor([0, 2])).shape
    (2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: _C.Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = _padding_row(padding_idx, num_embeddings)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self._set_weight(_weight, True, device, dtype)

    def forward(
        self,
        input: _C.Tensor,
        offsets: _C.Tensor | None = None,
        per_sample_weights: _C.Tensor | None = None,
    ) -> _C.Tensor:
        """Look rows up: each row of `input` is a bag, or `offsets` say where one begins."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        """The arguments."""
        others = {
            "max_norm": (self.max_norm, None),
            "norm_type": (self.norm_type, 2),
            "scale_grad_by_freq": (self.scale_grad_by_freq, False),
            "mode": (self.mode, ""),
            "padding_idx": (self.padding_idx, None),
        }
        parts = [f"{name}={one!r}" for name, (one, usual) in others.items() if one != usual]
        return ", ".join([str(self.num_embeddings), str(self.embedding_dim), *parts])

    @classmethod
    def from_pretrained(
        cls,
        embeddings: _C.Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Self:
        """Make one of a table that is there; with `freeze` it is not trained."""
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        made = cls(
            *embeddings.shape,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
            _weight=embeddings,
        )
        made.weight.requires_grad_(not freeze)
        return made
