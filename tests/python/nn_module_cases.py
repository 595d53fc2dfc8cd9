"""Calls of modules whose results are recorded: recurrent layers and attention.

Parameters and inputs are drawn from a seed, so that only results are recorded: the outputs and the
gradients of inputs as they are, the gradients of parameters as two sums, and the state_dict.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy


class Case(NamedTuple):
    """A module and a call of it: tensors as ("name", shape, ...), nested in lists and tuples."""

    name: str
    given: tuple[Any, ...]
    words: dict[str, Any]
    inputs: tuple[Any, ...]
    keywords: dict[str, Any] = {}
    dtype: str = "float32"
    is_strided: bool = False
    is_eval: bool = False

    @property
    def key(self) -> str:
        """What a test is called by, and what its results are recorded as."""
        words = [self.name, *map(str, self.given)]
        words += [f"{name}={value}" for name, value in self.words.items()]
        words += ["of", *map(str, self.inputs)]
        words += [f"{name}={value}" for name, value in self.keywords.items()]
        words += [self.dtype] + ["strided"] * self.is_strided + ["eval"] * self.is_eval
        return " ".join(words).replace("'", "").replace(", ", ",")


def values(text: str, shape: tuple[int, ...], scale: float = 1.0) -> list:
    """Normal numbers that belong to a text."""
    rng = numpy.random.default_rng(zlib.crc32(text.encode()))
    return (scale * rng.standard_normal(shape)).tolist()


def is_spec(one: Any) -> bool:
    """Whether it stands for a tensor."""
    return isinstance(one, tuple) and len(one) > 1 and isinstance(one[0], str)


class Run:
    """What a case gives with torch or genesis."""

    def __init__(self, case: Case, module: Any):
        self.case, self.module, self.leaves = case, module, []
        self.dtype = getattr(module, case.dtype)

    def tensor(self, spec: tuple) -> Any:
        """A tensor of normal numbers; or "packed", with lengths; or "mask", of numbers."""
        if spec[0] == "mask":
            return self.module.tensor(spec[1])
        if spec[0] == "added":
            return self.module.tensor(spec[1], dtype=self.dtype)
        made = self.module.tensor(values(str(spec), spec[1]), dtype=self.module.float64).reshape(
            spec[1]
        )
        made = made.to(self.dtype)
        if self.case.is_strided:
            made = self.module.stack([made, made], -1)[..., 1]
        made = made.detach().requires_grad_()
        self.leaves.append(made)
        if spec[0] == "packed":
            pack = self.module.nn.utils.rnn.pack_padded_sequence
            return pack(made, spec[2], enforce_sorted=False)
        return made

    def replaced(self, one: Any) -> Any:
        """Arguments with their tensors."""
        if is_spec(one):
            return self.tensor(one)
        if isinstance(one, tuple | list):
            return type(one)(self.replaced(each) for each in one)
        return one

    def build(self) -> Any:
        """The module with its parameters set."""
        case = self.case
        made = getattr(self.module.nn, case.name)(*self.replaced(case.given), **case.words)
        made = made.to(self.dtype)
        with self.module.no_grad():
            for name, one in made.named_parameters():
                drawn = self.module.tensor(
                    values(name, tuple(one.shape), 0.5), dtype=self.module.float64
                )
                one.copy_(drawn.to(self.dtype))
        return made.eval() if case.is_eval else made

    def outputs(self, made: Any) -> list[Any]:
        """The tensors of a result."""
        if made is None:
            return []
        if hasattr(made, "batch_sizes"):
            return [made.data]
        if isinstance(made, tuple | list):
            return [tensor for one in made for tensor in self.outputs(one)]
        return [made]

    def results(self) -> dict[str, Any]:
        """Everything that is compared."""
        net = self.build()
        words = {name: self.replaced(one) for name, one in self.case.keywords.items()}
        made = self.outputs(net(*self.replaced(self.case.inputs), **words))
        total = 0
        for one in made:
            scale = self.module.arange(1, one.numel() + 1).to(self.dtype).reshape(one.shape)
            total = total + (one * scale).double().sum()
        total.backward()
        sums = {}
        for name, one in net.named_parameters():
            grad = one.grad.double().reshape(-1)
            scale = self.module.arange(1, grad.numel() + 1).double() / max(grad.numel(), 1)
            sums[name] = [grad.sum().item(), (grad * scale).sum().item()]
        return {
            "outputs": [flat(one) for one in made],
            "gradients": [flat(one.grad) for one in self.leaves if one.grad is not None],
            "sums": sums,
            "state": {name: list(one.shape) for name, one in net.state_dict().items()},
        }


def flat(tensor: Any) -> list:
    """The shape and the elements."""
    return [list(tensor.shape), tensor.detach().double().reshape(-1).tolist()]


def x(*shape: int, name: str = "x") -> tuple:
    """A tensor of normal numbers."""
    return (name, shape)


def recurrent() -> list[Case]:
    """Recurrent layers and cells."""
    made = []
    for name in ("RNN", "LSTM", "GRU"):
        is_lstm = name == "LSTM"

        def states(*shape: int, is_lstm: bool = is_lstm) -> Any:
            return (x(*shape, name="h"), x(*shape, name="c")) if is_lstm else x(*shape, name="h")

        def add(*inputs: Any, given: tuple = (3, 4), dtype: str = "float32",
                is_strided: bool = False, name: str = name, **words: Any) -> None:  # fmt: skip
            made.append(Case(name, given, words, inputs, {}, dtype, is_strided))

        add(x(5, 2, 3))
        add(x(5, 2, 3), states(1, 2, 4))
        add(x(5, 3), states(1, 4))
        add(x(1, 1, 3), bias=False)
        add(x(2, 5, 3), states(4, 2, 4), num_layers=2, bidirectional=True, batch_first=True)
        add(("packed", (5, 3, 3), (2, 5, 4)))
        add(("packed", (5, 3, 3), (2, 5, 4)), states(2, 3, 4), bidirectional=True)
        add(x(5, 2, 3), is_strided=True)
        add(x(5, 0, 3))
        add(x(5, 2, 3), dtype="float64", num_layers=2)
        add(x(5, 2, 3), states(1, 2, 4), dtype="bfloat16")
        if name == "RNN":
            add(x(5, 2, 3), nonlinearity="relu")
        if is_lstm:
            both = (x(1, 2, 2, name="h"), x(1, 2, 4, name="c"))
            add(x(5, 2, 3), both, proj_size=2)
            add(x(5, 2, 3), proj_size=2, bidirectional=True, num_layers=2, bias=False)
        cell = f"{name}Cell"
        add(x(2, 3), states(2, 4), name=cell)
        add(x(2, 3), name=cell, bias=False)
        add(x(3), states(4), name=cell)
        if name == "RNN":
            add(x(2, 3), states(2, 4), name=cell, nonlinearity="relu")
    return made


def attention() -> list[Case]:
    """Attention and transformers."""
    made = []

    def add(name: str, given: tuple, *inputs: Any, words: dict[str, Any] | None = None,
            dtype: str = "float32", is_strided: bool = False, is_eval: bool = False,
            **keywords: Any) -> None:  # fmt: skip
        made.append(Case(name, given, words or {}, inputs, keywords, dtype, is_strided, is_eval))

    many = "MultiheadAttention"
    q, k, v = x(3, 2, 8), x(4, 2, 8, name="k"), x(4, 2, 8, name="v")
    causal = ("mask", [[False, True, True], [False, False, True], [False, False, False]])
    padding = ("mask", [[False, False, False, True], [False, False, True, True]])
    added = ("added", [[0.0, -1.0, 0.5, 0.0], [0.0, 1.0, 0.5, -2.0], [0.3, 0.0, 0.0, 0.0]])
    same = (q, q, q)
    add(many, (8, 2), q, k, v)
    add(many, (8, 2), q, k, v, need_weights=False)
    add(many, (8, 4), q, k, v, average_attn_weights=False)
    add(many, (8, 2), q, k, v, attn_mask=added)
    add(many, (8, 2), q, k, v, key_padding_mask=padding)
    add(many, (8, 2), q, k, v, key_padding_mask=padding, attn_mask=added, need_weights=False)
    add(many, (8, 2), *same, attn_mask=causal)
    add(many, (8, 2), *same, attn_mask=causal, is_causal=True, need_weights=False)
    add(many, (8, 2), q, k, v, words={"bias": False})
    add(many, (8, 2), q, k, v, words={"add_bias_kv": True})
    add(many, (8, 2), q, k, v, words={"add_zero_attn": True, "dropout": 0.5}, is_eval=True)
    add(many, (8, 2), q, x(4, 2, 5, name="k"), x(4, 2, 6, name="v"), words={"kdim": 5, "vdim": 6})
    add(many, (8, 2), x(2, 3, 8), x(2, 4, 8, name="k"), x(2, 4, 8, name="v"),
        words={"batch_first": True}, key_padding_mask=padding)  # fmt: skip
    add(many, (8, 2), x(3, 8), x(4, 8, name="k"), x(4, 8, name="v"))
    add(many, (8, 2), q, k, v, is_strided=True)
    add(many, (8, 2), q, k, v, dtype="bfloat16")
    add(many, (8, 2), q, k, v, dtype="float64")
    layer = "TransformerEncoderLayer"
    plain = {"dropout": 0.0, "dim_feedforward": 16}
    add(layer, (8, 2), q, words=plain)
    add(layer, (8, 2), q, words={**plain, "norm_first": True, "activation": "gelu"})
    add(layer, (8, 2), q, words={**plain, "bias": False, "layer_norm_eps": 0.1})
    add(layer, (8, 2), x(2, 3, 8), words={**plain, "batch_first": True}, src_mask=causal)
    add(layer, (8, 2), q, words=plain, src_mask=causal, is_causal=True)
    add(layer, (8, 2), q, words={**plain, "dropout": 0.5}, is_eval=True,
        src_key_padding_mask=("mask", [[False, False, True], [False, True, True]]))  # fmt: skip
    add(layer, (8, 2), x(3, 8), words=plain)
    add("TransformerDecoderLayer", (8, 2), q, k, words=plain)
    add("TransformerDecoderLayer", (8, 2), q, k, words={**plain, "norm_first": True},
        tgt_mask=causal, memory_key_padding_mask=padding)  # fmt: skip
    small = {**plain, "num_encoder_layers": 2, "num_decoder_layers": 2}
    add("Transformer", (8, 2), k, q, words=small)
    add("Transformer", (8, 2), x(2, 4, 8, name="k"), x(2, 3, 8), tgt_mask=causal,
        words={**small, "batch_first": True, "norm_first": True})  # fmt: skip
    return made
