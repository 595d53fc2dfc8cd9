"""Attention of several heads."""

from __future__ import annotations

import genesis
from genesis.nn import functional as F  # noqa: N812
from genesis.nn import init
from genesis.nn.modules.linear import Linear, new_parameter
from genesis.nn.modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from genesis import Tensor

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Queries attend to keys in several heads, each with a part of the features.

    Parameters
    ----------
    embed_dim : int
        Features of the query and of the output.
    num_heads : int
        How many heads share them.
    dropout : float
        The probability with which a weight of attention becomes 0 in training.
    bias : bool
        Whether projections have biases.
    add_bias_kv : bool
        Whether a learned key and value are added behind the others.
    add_zero_attn : bool
        Whether a key and a value of zeros are added behind the others.
    kdim, vdim : int, optional
        Features of keys and values; None: embed_dim.
    batch_first : bool
        Whether tensors are (batch, steps, features) instead of (steps, batch, features).
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import genesis
    >>> attention = genesis.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = genesis.ones(3, 5, 8)
    >>> output, weights = attention(x, x, x)
    >>> output.shape, weights.shape
    ((3, 5, 8), (3, 5, 5))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        if embed_dim % num_heads != 0:
            raise ValueError(f"embed_dim {embed_dim} must be divisible by num_heads {num_heads}")
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim == self.vdim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self.add_zero_attn = add_zero_attn

        def add(name: str, *shape: int, is_there: bool = True) -> None:
            made = new_parameter(*shape, device=device, dtype=dtype) if is_there else None
            self.register_parameter(name, made)

        is_same = self._qkv_same_embed_dim
        add("q_proj_weight", embed_dim, embed_dim, is_there=not is_same)
        add("k_proj_weight", embed_dim, self.kdim, is_there=not is_same)
        add("v_proj_weight", embed_dim, self.vdim, is_there=not is_same)
        add("in_proj_weight", 3 * embed_dim, embed_dim, is_there=is_same)
        add("in_proj_bias", 3 * embed_dim, is_there=bias)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        add("bias_k", 1, 1, embed_dim, is_there=add_bias_kv)
        add("bias_v", 1, 1, embed_dim, is_there=add_bias_kv)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Set the parameters to first values."""
        for weight in (
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
            self.in_proj_weight,
        ):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for weight in (self.bias_k, self.bias_v):
            if weight is not None:
                init.xavier_normal_(weight)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Compute the output and, if they are needed, the weights of attention.

        `key_padding_mask`, (batch, keys), is True at keys that nobody sees; `attn_mask`, (queries,
        keys) or (batch * heads, queries, keys), is True where a query does not see a key. Masks of
        floating numbers are added. `is_causal` is a promise that `attn_mask` is causal.
        """
        is_swapped = self.batch_first and query.dim() == 3
        if is_swapped:
            # What is one tensor stays one: a single product projects it.
            is_self, is_pair = query is key, key is value
            query = query.transpose(0, 1)
            key = query if is_self else key.transpose(0, 1)
            value = key if is_pair else value.transpose(0, 1)
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return output.transpose(0, 1) if is_swapped else output, weights


def causal_mask(size: int, device: Any = None, dtype: Any = None) -> Tensor:
    """What is added to scores so that a query sees the keys up to its own: 0 and -inf."""
    full = genesis.full((size, size), float("-inf"), device=device, dtype=dtype)
    return full.triu(1)
