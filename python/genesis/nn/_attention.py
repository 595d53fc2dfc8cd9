"""Attention of several heads, with the projections around it."""

from __future__ import annotations

import genesis
from genesis._nn import dropout, linear, scaled_dot_product_attention

TYPE_CHECKING = False
if TYPE_CHECKING:
    from genesis import Tensor

__all__ = ["multi_head_attention_forward"]


def _check_shapes(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
) -> bool:
    """Whether there is a batch."""
    ndim = query.dim()
    if ndim not in (2, 3):
        raise ValueError(f"query has 2 or 3 dimensions, not {ndim}")
    if key.dim() != ndim or value.dim() != ndim:
        raise ValueError(
            f"query, key and value have {ndim}, {key.dim()} and {value.dim()} dimensions: "
            "all have as many"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != ndim - 1:
        raise ValueError(
            f"key_padding_mask has {ndim - 1} dimensions where query has {ndim}, "
            f"not {key_padding_mask.dim()}"
        )
    if attn_mask is not None and attn_mask.dim() not in (2, 3):
        raise ValueError(f"attn_mask has 2 or 3 dimensions, not {attn_mask.dim()}")
    return ndim == 3


def _float_mask(mask: Tensor | None, name: str, dtype: genesis.dtype) -> Tensor | None:
    """A mask that is added: of bool, what is True becomes -inf."""
    if mask is None:
        return None
    if mask.dtype == genesis.bool:
        zeros = genesis.zeros(mask.shape, dtype=dtype, device=mask.device)
        return zeros.masked_fill_(mask, float("-inf"))
    if not mask.is_floating_point():
        raise TypeError(f"{name} is of bool or of a floating type, not {mask.dtype}")
    return mask


def _project(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    weight: Tensor | None,
    separate: list[Tensor | None] | None,
    bias: Tensor | None,
) -> list[Tensor]:
    """Query, key and value times their weights: one product where they are one tensor."""
    width = query.shape[-1]
    biases = [None] * 3 if bias is None else [*bias.chunk(3)]
    if separate is not None:
        for name, one in zip(("q", "k", "v"), separate, strict=True):
            if one is None:
                raise ValueError(f"with use_separate_proj_weight {name}_proj_weight is given")
        parts = separate
    else:
        if weight is None:
            raise ValueError("without use_separate_proj_weight in_proj_weight is given")
        if query is key and key is value:
            made = linear(query, weight, bias).unflatten(-1, (3, width))
            return [*made.unbind(-2)]
        if key is value:
            own = linear(query, weight[:width], biases[0])
            rest = None if bias is None else bias[width:]
            made = linear(key, weight[width:], rest).unflatten(-1, (2, width))
            return [own, *made.unbind(-2)]
        parts = [*weight.chunk(3)]
    inputs = (query, key, value)
    return [linear(x, w, b) for x, w, b in zip(inputs, parts, biases, strict=True)]


def _heads(x: Tensor, batch: int, heads: int) -> Tensor:
    """(length, batch, width) as (batch, heads, length, width / heads)."""
    length, _, width = x.shape
    return x.reshape(length, batch, heads, width // heads).permute(1, 2, 0, 3)


def _static(x: Tensor, name: str, batch: int, heads: int, width: int) -> Tensor:
    """(batch heads, length, width) with a dimension for the batch."""
    if x.dim() != 3 or x.shape[0] != batch * heads or x.shape[2] != width:
        raise ValueError(f"{name} has shape ({batch * heads}, S, {width}), not {x.shape}")
    return x.reshape(batch, heads, x.shape[1], width)


def _end(x: Tensor, one: Tensor | None) -> Tensor:
    """One place more in the dimension before the last one: a given one, or zeros."""
    shape = (*x.shape[:-2], 1, x.shape[-1])
    if one is None:
        one = genesis.zeros(shape, dtype=x.dtype, device=x.device)
    return genesis.cat([x, one.expand(shape)], dim=-2)


def _merge(
    attn_mask: Tensor | None,
    key_padding_mask: Tensor | None,
    shape: tuple[int, int, int, int],
    more: int,
) -> Tensor | None:
    """Both masks as one that broadcasts to (batch, heads, queries, keys); `more` keys are seen."""
    batch, heads, queries, keys = shape
    if attn_mask is not None:
        first = 1 if attn_mask.dim() == 2 else batch * heads
        wanted = (queries, keys) if attn_mask.dim() == 2 else (first, queries, keys)
        if attn_mask.shape != wanted:
            raise ValueError(f"attn_mask has shape {wanted}, not {attn_mask.shape}")
        if attn_mask.dim() == 3:
            attn_mask = attn_mask.reshape(batch, heads, queries, keys)
    if key_padding_mask is not None:
        if key_padding_mask.shape != (batch, keys):
            raise ValueError(
                f"key_padding_mask has shape {(batch, keys)}, not {key_padding_mask.shape}"
            )
        key_padding_mask = key_padding_mask.reshape(batch, 1, 1, keys)
        attn_mask = key_padding_mask if attn_mask is None else attn_mask + key_padding_mask
    if attn_mask is not None and more > 0:
        attn_mask = genesis.pad(attn_mask, (0, more))
    return attn_mask


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Project query, key and value, let each head attend, and project the result.

    Parameters
    ----------
    query, key, value : Tensor
        Of shape (length, batch, width), or without the batch.
    embed_dim_to_check : int
        The width of the query.
    num_heads : int
        Heads, which share the width.
    in_proj_weight, in_proj_bias : Tensor, optional
        The three projections, one below the other.
    bias_k, bias_v : Tensor, optional
        One more place for key and value.
    add_zero_attn : bool
        Whether there is one more place of zeros.
    dropout_p : float
        The probability with which a weight is dropped in training.
    out_proj_weight, out_proj_bias : Tensor
        The projection of the result.
    training : bool
        Whether there is dropout.
    key_padding_mask : Tensor, optional
        Of shape (batch, keys): keys that nobody sees are True, or -inf.
    need_weights : bool
        Whether the weights are given, too.
    attn_mask : Tensor, optional
        Of shape (queries, keys) or (batch * num_heads, queries, keys): True, or -inf, for what is
        not to be seen. Other numbers are added.
    use_separate_proj_weight : bool
        Whether the projections are the next three parameters.
    q_proj_weight, k_proj_weight, v_proj_weight : Tensor, optional
        Projections of query, key and value, whose widths may differ.
    static_k, static_v : Tensor, optional
        Of shape (batch * num_heads, keys, width of a head), instead of key and value.
    average_attn_weights : bool
        Whether the weights are the mean over the heads.
    is_causal : bool
        A promise that `attn_mask` is causal. It is not read if weights are not needed.

    Returns
    -------
    tuple
        The result, of the query's shape, and the weights or None.

    Examples
    --------
    >>> import genesis
    >>> from genesis.nn.functional import multi_head_attention_forward
    >>> x, eye = genesis.randn(5, 2, 4), genesis.eye(4)
    >>> made, weights = multi_head_attention_forward(
    ...     x, x, x, 4, 2, genesis.cat([eye] * 3), None, None, None, False, 0.0, eye, None
    ... )
    >>> made.shape, weights.shape
    ((5, 2, 4), (2, 5, 5))
    """
    is_batched = _check_shapes(query, key, value, key_padding_mask, attn_mask)
    if is_causal and attn_mask is None:
        raise ValueError("with is_causal=True attn_mask is given: it is what is promised to be so")
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None
    else:
        is_causal = False
    if not is_batched:
        is_self, is_pair = query is key, key is value
        query = query.unsqueeze(1)
        key = query if is_self else key.unsqueeze(1)
        value = key if is_pair else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    queries, batch, width = query.shape
    if width != embed_dim_to_check:
        raise ValueError(f"the query is {embed_dim_to_check} wide, not {width}")
    if width % num_heads != 0:
        raise ValueError(f"a width of {width} is not divided among {num_heads} heads")
    if key.shape[:2] != value.shape[:2] or key.shape[1] != batch:
        raise ValueError(
            f"query, key and value have shapes {query.shape}, {key.shape} and {value.shape}: "
            "(L, N, *), (S, N, *) and (S, N, *)"
        )
    if (bias_k is None) != (bias_v is None):
        raise ValueError("bias_k and bias_v are given together, or not at all")
    if bias_k is not None and (static_k is not None or static_v is not None):
        raise ValueError("bias_k and bias_v are not for static_k and static_v")

    separate = [q_proj_weight, k_proj_weight, v_proj_weight] if use_separate_proj_weight else None
    q, k, v = _project(query, key, value, in_proj_weight, separate, in_proj_bias)
    q, k, v = (_heads(one, batch, num_heads) for one in (q, k, v))
    each = width // num_heads
    k = k if static_k is None else _static(static_k, "static_k", batch, num_heads, each)
    v = v if static_v is None else _static(static_v, "static_v", batch, num_heads, each)
    keys, more = k.shape[2], 0
    if bias_k is not None and bias_v is not None:
        k = _end(k, bias_k.reshape(num_heads, 1, each))
        v = _end(v, bias_v.reshape(num_heads, 1, each))
        more += 1
    if add_zero_attn:
        k, v = _end(k, None), _end(v, None)
        more += 1
    mask = _merge(
        _float_mask(attn_mask, "attn_mask", query.dtype),
        _float_mask(key_padding_mask, "key_padding_mask", query.dtype),
        (batch, num_heads, queries, keys),
        more,
    )
    dropout_p = dropout_p if training else 0.0

    weights = None
    if need_weights:
        scores = (q * each**-0.5) @ k.transpose(-2, -1)
        if mask is not None:
            scores = scores + mask
        weights = scores.softmax(-1)
        if dropout_p > 0:
            weights = dropout(weights, dropout_p)
        made = weights @ v
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        made = scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal)
    made = made.permute(2, 0, 1, 3).reshape(queries, batch, width)
    made = linear(made, out_proj_weight, out_proj_bias)
    if not is_batched:
        return made.squeeze(1), None if weights is None else weights.squeeze(0)
    return made, weights
