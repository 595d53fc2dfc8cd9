"""Layers of language models by the names of the first Genesis, and rotary positions."""

from __future__ import annotations

import genesis
from genesis import _C
from genesis.nn import functional as F  # noqa: N812
from genesis.nn import init
from genesis.nn.modules.activation import SiLU
from genesis.nn.modules.dropout import Dropout
from genesis.nn.modules.linear import Linear, new_parameter
from genesis.nn.modules.loss import CrossEntropyLoss
from genesis.nn.modules.module import Module
from genesis.nn.modules.normalization import LayerNorm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from genesis import Tensor

__all__ = [
    "FeedFowardSwiGLU",
    "FusedLayerNorm",
    "FusedMultiheadAttention",
    "Residual",
    "RotaryEmbedding",
    "SoftmaxLoss",
]


class RotaryEmbedding(Module):
    """Positions as angles by which pairs of features are turned.

    Parameters
    ----------
    dim : int
        Features of a head, an even number.
    max_position_embeddings : int
        How many positions there are.
    base : float
        Pair i of position p is turned by ``p / base ** (2 i / dim)``.
    device : optional
        Where the angles are.

    Examples
    --------
    >>> import genesis
    >>> rotary = genesis.nn.RotaryEmbedding(4)
    >>> x = genesis.ones(1, 2, 3, 4)
    >>> cos, sin = rotary(x, seq_len=3)
    >>> cos.shape
    (1, 1, 3, 4)
    >>> rotary.rotate(x)[0, 0, 0].tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    cos_cached: Tensor
    sin_cached: Tensor

    def __init__(
        self,
        dim: int,
        max_position_embeddings: int = 2048,
        base: float = 10000,
        device: Any = None,
    ) -> None:
        super().__init__()
        if dim <= 0 or dim % 2 != 0:
            raise ValueError(f"dim is an even number above 0, not {dim}")
        self.dim = dim
        self.max_position_embeddings = max_position_embeddings
        self.base = base
        powers = genesis.arange(0, dim, 2, dtype=genesis.float64, device=device) / dim
        positions = genesis.arange(max_position_embeddings, dtype=genesis.float64, device=device)
        angles = positions.unsqueeze(1) / float(base) ** powers
        angles = genesis.cat([angles, angles], -1).reshape(1, 1, max_position_embeddings, dim)
        self.register_buffer("cos_cached", angles.cos().float(), persistent=False)
        self.register_buffer("sin_cached", angles.sin().float(), persistent=False)

    def forward(self, x: Tensor, seq_len: int | None = None) -> tuple[Tensor, Tensor]:
        """Give cosines and sines of the first positions, (1, 1, positions, dim).

        `seq_len` is how many; None: as many as the dimension of `x` before the last has.
        """
        count = x.shape[-2] if seq_len is None else seq_len
        if count > self.max_position_embeddings:
            raise ValueError(
                f"there are {self.max_position_embeddings} positions, and {count} are asked for"
            )
        return self.cos_cached[:, :, :count], self.sin_cached[:, :, :count]

    def rotate(self, x: Tensor, position_ids: Tensor | None = None) -> Tensor:
        """Turn queries or keys, (batch, heads, positions, dim), each by its position.

        `position_ids`, (batch, positions), says which they are; None: 0, 1, 2 ...
        """
        if position_ids is None:
            cos, sin = self.forward(x)
        else:
            cos, sin = (
                one[0, 0][position_ids].unsqueeze(1) for one in (self.cos_cached, self.sin_cached)
            )
        return _C._nn._rotate(x, cos, sin)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"{self.dim}, max_position_embeddings={self.max_position_embeddings}, base={self.base}"
        )


class FeedFowardSwiGLU(Module):
    """``down(silu(gate(x)) * up(x))``, with dropout.

    Parameters
    ----------
    dim, hidden_dim : int
        Features outside and within.
    dropout : float
        The probability with which an element becomes 0 in training.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.FeedFowardSwiGLU(8, 32)(genesis.ones(2, 8)).shape
    (2, 8)
    """

    def __init__(self, dim: int, hidden_dim: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.gate = Linear(dim, hidden_dim, bias=False)
        self.down = Linear(hidden_dim, dim, bias=False)
        self.up = Linear(dim, hidden_dim, bias=False)
        self.act = SiLU()
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Compute the output."""
        return self.dropout(self.down(self.act(self.gate(x)) * self.up(x)))


class FusedMultiheadAttention(Module):
    """Causal attention of a sequence to itself: (batch, steps, features) in and out.

    Parameters
    ----------
    dim : int
        Features.
    heads : int
        How many heads share them.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import genesis
    >>> output, _ = genesis.nn.FusedMultiheadAttention(8, 2)(genesis.ones(3, 5, 8))
    >>> output.shape
    (3, 5, 8)
    """

    def __init__(
        self, dim: int = 64, heads: int = 1, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        if heads <= 0 or dim % heads != 0:
            raise ValueError(f"dim is {dim}: it is not divisible by {heads} heads")
        self.dim = dim
        self.heads = heads
        self.w_qkv = new_parameter(dim, 3 * dim, device=device, dtype=dtype)
        self.w_out = new_parameter(dim, dim, device=device, dtype=dtype)
        for weight in (self.w_qkv, self.w_out):
            init.kaiming_uniform_(weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        """Compute the output; nothing stands for the weights of attention."""
        batch, steps, _ = x.shape
        parts = (x @ self.w_qkv).reshape(batch, steps, 3, self.heads, self.dim // self.heads)
        q, k, v = (one.transpose(1, 2) for one in parts.unbind(2))
        made = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return made.transpose(1, 2).reshape(batch, steps, self.dim) @ self.w_out, None


class FusedLayerNorm(LayerNorm):
    """:class:`LayerNorm`, which is one kernel here anyway.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.FusedLayerNorm(4)(genesis.zeros(2, 4)).shape
    (2, 4)
    """


class SoftmaxLoss(CrossEntropyLoss):
    """:class:`CrossEntropyLoss` that ignores the class -1.

    Examples
    --------
    >>> import genesis
    >>> loss = genesis.nn.SoftmaxLoss()
    >>> loss(genesis.zeros(3, 4), genesis.tensor([0, -1, 2]))
    tensor(1.3863)
    """

    def __init__(self) -> None:
        super().__init__(ignore_index=-1)


class Residual(Module):
    """A module with a path around it: ``fn(x) + x``.

    Parameters
    ----------
    fn : Module or callable
        What is computed.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.Residual(genesis.nn.Identity())(genesis.ones(2)).tolist()
    [2.0, 2.0]
    """

    def __init__(self, fn: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, x: Tensor) -> Tensor:
        """Compute the output."""
        return self.fn(x) + x
