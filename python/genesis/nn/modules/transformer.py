"""Transformers: encoders, decoders, and both."""

from __future__ import annotations

import copy

from genesis import _C
from genesis.nn import init
from genesis.nn.modules.attention import MultiheadAttention, causal_mask
from genesis.nn.modules.container import ModuleList
from genesis.nn.modules.dropout import Dropout
from genesis.nn.modules.linear import Linear
from genesis.nn.modules.module import Module
from genesis.nn.modules.normalization import LayerNorm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from genesis import Tensor

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


def _activation(given: str | Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {given}")
    return _C.relu if given == "relu" else _C.gelu


class _Layer(Module):
    """What layers of encoders and decoders have in common: the feed-forward part and the norms."""

    def __init__(
        self,
        d_model: int,
        dim_feedforward: int,
        dropout: float,
        activation: str | Callable[[Tensor], Tensor],
        norm_first: bool,
    ) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.activation = _activation(activation)

    def _add_feed_forward(
        self, sizes: tuple[int, int], dropout: float, bias: bool, words: dict[str, Any]
    ) -> None:
        self.linear1 = Linear(*sizes, bias=bias, **words)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(*sizes[::-1], bias=bias, **words)

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _add(
        self, x: Tensor, norm: Module, dropout: Module, part: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """A part with the path around it, and the norm before it or behind both."""
        if self.norm_first:
            return x + dropout(part(norm(x)))
        return norm(x + dropout(part(x)))


class TransformerEncoderLayer(_Layer):
    """Attention to itself, and a feed-forward network.

    Parameters
    ----------
    d_model, nhead : int
        Features, and heads of attention.
    dim_feedforward : int
        Features within the feed-forward network.
    dropout : float
        The probability with which an element becomes 0 in training.
    activation : str or callable
        ``"relu"``, ``"gelu"``, or a function.
    layer_norm_eps : float
        Of the norms.
    batch_first : bool
        Whether tensors are (batch, steps, features) instead of (steps, batch, features).
    norm_first : bool
        Whether norms come before attention and network instead of behind.
    bias : bool
        Whether there are biases.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import genesis
    >>> layer = genesis.nn.TransformerEncoderLayer(8, 2, batch_first=True)
    >>> layer(genesis.ones(3, 5, 8)).shape
    (3, 5, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = _C.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(d_model, dim_feedforward, dropout, activation, norm_first)
        words = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **words
        )
        self._add_feed_forward((d_model, dim_feedforward), dropout, bias, words)
        for number in (1, 2):
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **words)
            setattr(self, f"norm{number}", norm)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Compute the output; masks are those of MultiheadAttention."""

        def attend(x: Tensor) -> Tensor:
            return self.self_attn(
                x, x, x, attn_mask=src_mask, key_padding_mask=src_key_padding_mask,
                need_weights=False, is_causal=is_causal,
            )[0]  # fmt: skip

        x = self._add(src, self.norm1, self.dropout1, attend)
        return self._add(x, self.norm2, self.dropout2, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """Attention to itself and to an encoder's output, and a feed-forward network.

    Parameters
    ----------
    d_model, nhead : int
        Features, and heads of attention.
    dim_feedforward : int
        Features within the feed-forward network.
    dropout : float
        The probability with which an element becomes 0 in training.
    activation : str or callable
        ``"relu"``, ``"gelu"``, or a function.
    layer_norm_eps : float
        Of the norms.
    batch_first : bool
        Whether tensors are (batch, steps, features) instead of (steps, batch, features).
    norm_first : bool
        Whether norms come before attention and network instead of behind.
    bias : bool
        Whether there are biases.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import genesis
    >>> layer = genesis.nn.TransformerDecoderLayer(8, 2, batch_first=True)
    >>> layer(genesis.ones(3, 5, 8), genesis.ones(3, 4, 8)).shape
    (3, 5, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = _C.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(d_model, dim_feedforward, dropout, activation, norm_first)
        words = {"device": device, "dtype": dtype}
        for name in ("self_attn", "multihead_attn"):
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **words
            )
            setattr(self, name, attention)
        self._add_feed_forward((d_model, dim_feedforward), dropout, bias, words)
        for number in (1, 2, 3):
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **words)
            setattr(self, f"norm{number}", norm)
        for number in (1, 2, 3):
            setattr(self, f"dropout{number}", Dropout(dropout))

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Compute the output; masks are those of MultiheadAttention."""

        def attend(x: Tensor) -> Tensor:
            return self.self_attn(
                x, x, x, attn_mask=tgt_mask, key_padding_mask=tgt_key_padding_mask,
                need_weights=False, is_causal=tgt_is_causal,
            )[0]  # fmt: skip

        def attend_memory(x: Tensor) -> Tensor:
            return self.multihead_attn(
                x, memory, memory, attn_mask=memory_mask,
                key_padding_mask=memory_key_padding_mask, need_weights=False,
                is_causal=memory_is_causal,
            )[0]  # fmt: skip

        x = self._add(tgt, self.norm1, self.dropout1, attend)
        x = self._add(x, self.norm2, self.dropout2, attend_memory)
        return self._add(x, self.norm3, self.dropout3, self._feed_forward)


def _copies(layer: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoder(Module):
    """Layers one behind the other, each a copy of the first.

    Parameters
    ----------
    encoder_layer : TransformerEncoderLayer
        What is copied.
    num_layers : int
        How often.
    norm : Module, optional
        What comes last.
    enable_nested_tensor, mask_check : bool
        Accepted as PyTorch has them: there are no nested tensors here.

    Examples
    --------
    >>> import genesis
    >>> from genesis import nn
    >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 3)
    >>> encoder(genesis.ones(5, 2, 8)).shape
    (5, 2, 8)
    """

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Compute the output; masks are those of MultiheadAttention."""
        for layer in self.layers:
            src = layer(
                src,
                src_mask=mask,
                src_key_padding_mask=src_key_padding_mask,
                is_causal=bool(is_causal),
            )
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Layers one behind the other, each a copy of the first.

    Parameters
    ----------
    decoder_layer : TransformerDecoderLayer
        What is copied.
    num_layers : int
        How often.
    norm : Module, optional
        What comes last.

    Examples
    --------
    >>> import genesis
    >>> from genesis import nn
    >>> decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2), 3)
    >>> decoder(genesis.ones(5, 2, 8), genesis.ones(4, 2, 8)).shape
    (5, 2, 8)
    """

    def __init__(
        self,
        decoder_layer: TransformerDecoderLayer,
        num_layers: int,
        norm: Module | None = None,
    ) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Compute the output; masks are those of MultiheadAttention."""
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder, and a decoder that attends to its output.

    Parameters
    ----------
    d_model, nhead : int
        Features, and heads of attention.
    num_encoder_layers, num_decoder_layers : int
        Layers of both.
    dim_feedforward : int
        Features within the feed-forward networks.
    dropout : float
        The probability with which an element becomes 0 in training.
    activation : str or callable
        ``"relu"``, ``"gelu"``, or a function.
    custom_encoder, custom_decoder : Module, optional
        What takes the place of the encoder or the decoder.
    layer_norm_eps : float
        Of the norms.
    batch_first : bool
        Whether tensors are (batch, steps, features) instead of (steps, batch, features).
    norm_first : bool
        Whether norms come before attention and network instead of behind.
    bias : bool
        Whether there are biases.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import genesis
    >>> model = genesis.nn.Transformer(8, 2, 1, 1, 16)
    >>> model(genesis.ones(5, 2, 8), genesis.ones(4, 2, 8)).shape
    (4, 2, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = _C.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        words: dict[str, Any] = {"device": device, "dtype": dtype, "bias": bias}
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        order = {"batch_first": batch_first, "norm_first": norm_first}

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, **words)

        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            first = TransformerEncoderLayer(*layer, **order, **words)
            self.encoder = TransformerEncoder(first, num_encoder_layers, norm())
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            second = TransformerDecoderLayer(*layer, **order, **words)
            self.decoder = TransformerDecoder(second, num_decoder_layers, norm())
        for weight in self.parameters():
            if weight.dim() > 1:
                init.xavier_uniform_(weight)
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Compute the output; masks are those of MultiheadAttention."""
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src,
            mask=src_mask,
            src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """What is added to scores so that a query sees the keys up to its own: 0 and -inf."""
        return causal_mask(sz, device, dtype)
