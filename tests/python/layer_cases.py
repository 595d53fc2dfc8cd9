"""Calls of genesis.nn.functional that are compared with what PyTorch gave: layers, activations.

A call is given a package, torch or genesis, and tensors. record_layers.py writes what torch gives
into layer_results.json, and test_nn_layers.py compares.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = 0.6180339887498949
NAN = float("nan")
INF = float("inf")


class Case(NamedTuple):
    """A call, and the shapes of the tensors that it is given, or tensors written out."""

    name: str
    call: Callable[..., Any]
    shapes: tuple[Any, ...]
    kinds: tuple[str, ...] = ("float32", "bfloat16")
    has_gradient: bool = True
    low: float = -2.0
    high: float = 2.1


def numbers(shape: tuple[int, ...], seed: int, low: float, high: float) -> list[float]:
    """As many numbers of a range as a shape has."""
    return [
        low + (high - low) * ((0.31 * (seed + 1) + GOLDEN * (i + 1)) % 1)
        for i in range(math.prod(shape))
    ]


def run(m: Any, case: Case, kind: str) -> dict[str, list[float]]:
    """What a call gives, and gradients of a sum of it with weights."""
    dtype = getattr(m, kind)
    tensors = []
    for seed, shape in enumerate(case.shapes):
        if callable(shape):
            tensors.append(shape(m))
            continue
        values = numbers(shape, seed, case.low, case.high)
        one = m.tensor(values, dtype=m.float32).reshape(shape).to(dtype)
        tensors.append(one.detach().requires_grad_(case.has_gradient))
    made = case.call(m, m.nn.functional, *tensors)
    parts = made if isinstance(made, tuple) else (made,)
    found: dict[str, list[float]] = {}
    total = None
    for place, part in enumerate(parts):
        found[f"result{place or ''}"] = part.detach().float().reshape(-1).tolist()
        found[f"shape{place or ''}"] = [*part.shape]
        if case.has_gradient and part.requires_grad:
            weights = m.tensor(numbers(part.shape, 7, -1.0, 1.0)).reshape(part.shape)
            own = (part.float() * weights).sum()
            total = own if total is None else total + own
    leaves = [one for one in tensors if one.requires_grad]
    if total is not None and kind == "float32":
        for place, one in enumerate(m.autograd.grad(total, leaves, allow_unused=True)):
            if one is not None:
                found[f"gradient{place}"] = one.float().reshape(-1).tolist()
    return found


def written(x: Any, change: Callable[[Any], Any]) -> Any:
    """What a function in place makes of a copy."""
    copy = x.clone()
    made = change(copy)
    assert made is copy
    return copy


def ints(*values: Any) -> Callable[[Any], Any]:
    """A tensor of integers."""
    return lambda m: m.tensor([*values])


def bools(rows: list[list[int]]) -> Callable[[Any], Any]:
    """A mask."""
    return lambda m: m.tensor(rows).bool()


POINTS = (4, 6)
ACTIVATIONS: dict[str, tuple[Any, ...]] = {
    "relu": (),
    "relu6": (),
    "gelu": (),
    "silu": (),
    "mish": (),
    "sigmoid": (),
    "tanh": (),
    "softplus": (2.0, 1.5),
    "leaky_relu": (0.2,),
    "elu": (0.7,),
    "selu": (),
    "celu": (0.6,),
    "hardswish": (),
    "hardtanh": (-0.5, 0.75),
    "logsigmoid": (),
    "softsign": (),
    "tanhshrink": (),
    "softshrink": (0.7,),
    "hardshrink": (0.8,),
    "hardsigmoid": (),
    "threshold": (0.3, -4.0),
    "rrelu": (0.25, 0.5),
    "softmax": (0,),
    "log_softmax": (1,),
    "softmin": (-1,),
    "glu": (1,),
}
WRITTEN = {
    "relu": (),
    "silu": (),
    "relu6": (),
    "mish": (),
    "hardswish": (),
    "hardsigmoid": (),
    "selu": (),
    "elu": (1.5,),
    "celu": (1.5,),
    "leaky_relu": (0.3,),
    "hardtanh": (-1.0, 0.5),
    "threshold": (0.1, 2.0),
    "rrelu": (0.1, 0.2),
}
UNDERLINED = ("relu", "selu", "elu", "celu", "leaky_relu", "hardtanh", "threshold", "rrelu")


def activations() -> list[Case]:
    """All activations, in place and not."""
    made = []
    for name, rest in ACTIVATIONS.items():
        made.append(
            Case(
                name,
                lambda m, f, x, name=name, rest=rest: getattr(f, name)(x * 3, *rest),
                (POINTS,),
            )
        )
    for name, rest in WRITTEN.items():
        made.append(
            Case(
                f"{name} inplace",
                lambda m, f, x, name=name, rest=rest: written(
                    x * 2, lambda y: getattr(f, name)(y, *rest, inplace=True)
                ),
                ((2, 5),),
            )
        )
    for name in UNDERLINED:
        made.append(
            Case(
                f"{name}_",
                lambda m, f, x, name=name: written(
                    x * 2, lambda y: getattr(f, name + "_")(y, *WRITTEN[name])
                ),
                ((2, 5),),
            )
        )
    made += [
        Case("gelu tanh", lambda m, f, x: f.gelu(x, approximate="tanh"), ((7,),)),
        Case("prelu of channels", lambda m, f, x, w: f.prelu(x, w), ((2, 3, 4), (3,))),
        Case("prelu", lambda m, f, x, w: f.prelu(x, w), ((5,), (1,))),
        Case("glu in the middle", lambda m, f, x: f.glu(x, -2), ((2, 4, 3),)),
        Case("softmax dtype", lambda m, f, x: f.softmax(x, -1, dtype=m.float64), ((2, 3),)),
    ]
    # Where functions bend, beyond where they matter, and what is no number.
    edges = [-INF, -3.0, -0.5, -0.0, 0.0, 0.5, 3.0, 6.0, 100.0, INF, NAN]
    for name, rest in ACTIVATIONS.items():
        if name in ("gelu", "glu", "softmax", "softmin", "log_softmax", "rrelu"):
            continue
        rest = (0.5,) if name.endswith("shrink") and rest else rest
        made.append(
            Case(
                f"{name} at edges",
                lambda m, f, x, name=name, rest=rest: getattr(f, name)(x, *rest),
                (lambda m: m.tensor(edges),),
                ("float32",),
            )
        )
    return made


def layers() -> list[Case]:
    """Products, lookups and distances."""
    names = [
        Case("linear", lambda m, f, x, w, b: f.linear(x, w, b), ((3, 5), (4, 5), (4,))),
        Case("linear without bias", lambda m, f, x, w: f.linear(x, w), ((2, 3, 5), (4, 5))),
        Case("linear vector", lambda m, f, x, w: f.linear(x, w), ((2, 5), (5,))),
        Case("linear strided", lambda m, f, x, w, b: f.linear(x.t(), w, b), ((5, 3), (4, 5), (4,))),
        Case("linear empty", lambda m, f, x, w, b: f.linear(x, w, b), ((0, 5), (4, 5), (4,))),
        Case(
            "bilinear",
            lambda m, f, x, y, w, b: f.bilinear(x, y, w, b),
            ((2, 3, 2), (2, 3, 4), (3, 2, 4), (3,)),
        ),
        Case("normalize", lambda m, f, x: f.normalize(x), ((3, 5),)),
        Case("normalize 1", lambda m, f, x: f.normalize(x, 1.0, 0), ((3, 5),)),
        Case("normalize 3", lambda m, f, x: f.normalize(x, 3.0, -1), ((2, 3, 2),)),
        Case("normalize dims", lambda m, f, x: f.normalize(x, dim=(0, -1)), ((2, 3, 2),)),
        Case("normalize eps", lambda m, f, x: f.normalize(x, eps=8.0), ((3, 5),)),
        Case("pairwise_distance", lambda m, f, x, y: f.pairwise_distance(x, y), ((3, 5), (3, 5))),
        Case(
            "pairwise_distance 1",
            lambda m, f, x, y: f.pairwise_distance(x, y, 1.0, 0.1, True),
            ((2, 3, 5), (5,)),
        ),
        Case("pdist", lambda m, f, x: f.pdist(x), ((4, 3),), ("float32",)),
        Case("pdist 1", lambda m, f, x: f.pdist(x, 1.0), ((4, 3),), ("float32",)),
        Case("cosine_similarity", lambda m, f, x, y: f.cosine_similarity(x, y), ((3, 5), (3, 5))),
        Case(
            "cosine_similarity 0",
            lambda m, f, x, y: f.cosine_similarity(x, y, dim=0, eps=0.5),
            ((3, 5), (3, 5)),
        ),
    ]
    index = ints([1, 4, 1], [0, 2, 4])
    lookups = {
        "embedding": {},
        "embedding padding": {"padding_idx": -1},
        "embedding frequency": {"scale_grad_by_freq": True},
        "embedding both": {"scale_grad_by_freq": True, "padding_idx": 1},
    }
    for name, words in lookups.items():
        names.append(
            Case(name, lambda m, f, i, w, words=words: f.embedding(i, w, **words), (index, (5, 3)))
        )
    bags = {f"embedding_bag {mode}": {"mode": mode} for mode in ("sum", "mean", "max")}
    bags |= {name + " padding": words | {"padding_idx": 4} for name, words in [*bags.items()]}
    for name, words in bags.items():
        names.append(
            Case(
                name,
                lambda m, f, i, w, words=words: f.embedding_bag(i, w, **words),
                (index, (5, 3)),
            )
        )
        names.append(
            Case(
                name + " offsets",
                lambda m, f, i, w, o, words=words: f.embedding_bag(i, w, o, **words),
                (ints(1, 4, 1, 0, 2, 4, 3), (5, 2), ints(0, 2, 2, 5)),
                ("float32",),
            )
        )
    names.append(
        Case(
            "embedding_bag weights",
            lambda m, f, i, w, shares: f.embedding_bag(i, w, mode="sum", per_sample_weights=shares),
            (index, (5, 3), (2, 3)),
            ("float32",),
        )
    )
    names.append(
        Case(
            "embedding_bag last offset",
            lambda m, f, i, w, o: f.embedding_bag(
                i, w, o, include_last_offset=True, scale_grad_by_freq=True
            ),
            (ints(1, 4, 1, 0), (5, 2), ints(0, 3, 4)),
            ("float32",),
        )
    )
    return names


def renormalized(m: Any, f: Any, index: Any, weight: Any, call: str, **words: Any) -> Any:
    """A lookup that changes its table, and the table."""
    table = weight.detach().clone().requires_grad_()
    made = getattr(f, call)(index, table, **words)
    return made.detach(), table.detach()


def running(m: Any, call: Callable[..., Any], like: Any) -> Any:
    """A norm, and its running statistics."""
    mean = (m.arange(len(like)).float() / 4).to(like.dtype)
    variance = (m.arange(len(like)).float() / 2 + 0.5).to(like.dtype)
    made = call(mean, variance)
    return made, mean, variance


def norms() -> list[Case]:
    """Norms over all kinds of dimensions."""
    both = ("float32", "bfloat16")
    made = [
        Case(
            "layer_norm",
            lambda m, f, x, w, b: f.layer_norm(x, (5,), w, b, 0.1),
            ((2, 3, 5), (5,), (5,)),
            both,
        ),
        Case("layer_norm plain", lambda m, f, x: f.layer_norm(x, (3, 5)), ((2, 3, 5),)),
        Case("layer_norm weight", lambda m, f, x, w: f.layer_norm(x, [5], w), ((3, 5), (5,)), both),
        Case("layer_norm strided", lambda m, f, x: f.layer_norm(x.t(), (3,)), ((3, 5),)),
        Case("layer_norm empty", lambda m, f, x: f.layer_norm(x, (3,)), ((0, 3),)),
        Case("layer_norm of one", lambda m, f, x: f.layer_norm(x, (1,)), ((3, 1),)),
        Case("rms_norm", lambda m, f, x, w: f.rms_norm(x, (5,), w, 0.1), ((2, 3, 5), (5,)), both),
        Case("rms_norm plain", lambda m, f, x: f.rms_norm(x, (3, 5)), ((2, 3, 5),)),
        Case("rms_norm eps", lambda m, f, x: f.rms_norm(x * 1e-4, (5,)), ((3, 5),)),
        Case("rms_norm strided", lambda m, f, x: f.rms_norm(x.t(), (3,)), ((3, 5),)),
        Case(
            "group_norm",
            lambda m, f, x, w, b: f.group_norm(x, 2, w, b, 0.1),
            ((2, 4, 3), (4,), (4,)),
        ),
        Case("group_norm plain", lambda m, f, x: f.group_norm(x, 3), ((2, 6),)),
        Case(
            "group_norm strided",
            lambda m, f, x: f.group_norm(x.transpose(0, 2), 2),
            ((3, 4, 2),),
        ),
        Case("group_norm empty", lambda m, f, x: f.group_norm(x, 2), ((0, 4, 3),)),
        Case(
            "local_response_norm",
            lambda m, f, x: f.local_response_norm(x, 3, 0.5, 0.6, 1.5),
            ((2, 5, 3),),
            ("float32",),
        ),
        Case(
            "local_response_norm even",
            lambda m, f, x: f.local_response_norm(x, 4, alpha=1.0),
            ((1, 3, 2, 2),),
            ("float32",),
        ),
        Case("instance_norm", lambda m, f, x: f.instance_norm(x, eps=0.1), ((2, 3, 4),)),
        Case(
            "instance_norm running",
            lambda m, f, x, w, b: running(
                m, lambda mean, var: f.instance_norm(x, mean, var, w, b, True, 0.3), w
            ),
            ((2, 3, 4), (3,), (3,)),
        ),
        Case(
            "instance_norm by running",
            lambda m, f, x, w, b: running(
                m, lambda mean, var: f.instance_norm(x, mean, var, w, b, False), w
            ),
            ((2, 3, 4), (3,), (3,)),
        ),
    ]
    for shape in ((4, 3), (2, 3, 4), (2, 3, 2, 3), (2, 3, 2, 1, 2)):
        made.append(
            Case(
                f"batch_norm {len(shape)}",
                lambda m, f, x, w, b: running(
                    m, lambda mean, var: f.batch_norm(x, mean, var, w, b, True, 0.2, 0.01), w
                ),
                (shape, (3,), (3,)),
                both,
            )
        )
    made += [
        Case(
            "batch_norm mixed",
            lambda m, f, x, w, b: running(
                m,
                lambda mean, var: f.batch_norm(x, mean, var, w.float(), b.float(), True),
                w.float(),
            ),
            ((2, 3, 4), (3,), (3,)),
            both,
        ),
        Case(
            "layer_norm mixed",
            lambda m, f, x, w, b: f.layer_norm(x, (5,), w.float(), b.float()),
            ((3, 5), (5,), (5,)),
            both,
        ),
        Case(
            "batch_norm evaluation",
            lambda m, f, x, w, b: running(
                m, lambda mean, var: f.batch_norm(x, mean, var, w, b, False, 0.2, 0.01), w
            ),
            ((2, 3, 4), (3,), (3,)),
            both,
        ),
        Case(
            "batch_norm alone",
            lambda m, f, x: f.batch_norm(x, None, None, training=True),
            ((2, 3, 4),),
        ),
        Case(
            "batch_norm strided",
            lambda m, f, x, w: f.batch_norm(x.transpose(0, 1), None, None, w, training=True),
            ((3, 2, 4), (3,)),
        ),
    ]
    return made


MASK = [[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]]
HEADS = ((2, 2, 3, 4), (2, 2, 4, 4), (2, 2, 4, 3))


def attention() -> list[Case]:
    """Attention, alone and with its projections."""

    def attend(name: str, shapes: tuple[Any, ...] = HEADS, **words: Any) -> Case:
        return Case(
            f"attention {name}",
            lambda m, f, *x: f.scaled_dot_product_attention(*x, **words),
            shapes,
        )

    made = [
        attend("plain"),
        attend("scale", scale=0.3),
        attend("causal", is_causal=True),
        attend("causal of fewer keys", ((2, 5, 4), (2, 3, 4), (2, 3, 2)), is_causal=True),
        attend("matrices", ((3, 4), (2, 4), (2, 5))),
        attend("mask of bool", (*HEADS, bools(MASK))),
        attend("mask of numbers", (*HEADS, (2, 1, 3, 4))),
        attend("groups", ((2, 4, 3, 4), (2, 2, 5, 4), (2, 2, 5, 3)), enable_gqa=True),
        attend(
            "groups of one head, causal",
            ((1, 3, 4, 2), (1, 1, 4, 2), (1, 1, 4, 2)),
            enable_gqa=True,
            is_causal=True,
        ),
        attend("without a batch", ((0, 2, 3, 4), (0, 2, 4, 4), (0, 2, 4, 3))),
        Case(
            "attention strided",
            lambda m, f, x: f.scaled_dot_product_attention(*(one.transpose(1, 2) for one in x)),
            ((3, 2, 3, 2, 4),),
        ),
        Case(
            "attention mask of -inf",
            lambda m, f, q, k, v, mask: f.scaled_dot_product_attention(
                q, k, v, m.where(mask, 0.5, -INF).to(q.dtype)
            ),
            (*HEADS, bools(MASK)),
        ),
    ]

    def heads(name: str, *shapes: Any, **words: Any) -> Case:
        def call(m: Any, f: Any, *x: Any) -> Any:
            masks = {
                one: words[one](m) for one in ("attn_mask", "key_padding_mask") if one in words
            }
            rest = {one: value for one, value in words.items() if one not in masks}
            bias = rest.pop("bias", False)
            extra = (x[7], x[8]) if bias else (None, None)
            width = x[0].shape[-1]
            found = f.multi_head_attention_forward(
                x[0], x[1], x[2], width, 2, x[3], x[4], *extra,
                rest.pop("add_zero_attn", False), 0.0, x[5], x[6], **rest, **masks,
            )  # fmt: skip
            return found if found[1] is not None else found[0]

        return Case(f"heads {name}", call, shapes, ("float32",), low=-1.0, high=1.0)

    packed = ((12, 4), (12,), (4, 4), (4,))
    inputs = ((3, 2, 4), (5, 2, 4), (5, 2, 4))
    see = [[0, 1, 0, 0, 0], [0, 0, 1, 1, 0], [1, 0, 0, 0, 0]]
    pad = [[0, 0, 0, 0, 1], [0, 0, 0, 1, 1]]
    made += [
        heads("plain", *inputs, *packed),
        heads("each", *inputs, *packed, average_attn_weights=False),
        heads("without weights", *inputs, *packed, need_weights=False),
        heads("masks", *inputs, *packed, attn_mask=bools(see), key_padding_mask=bools(pad)),
        heads(
            "masks without weights",
            *inputs,
            *packed,
            attn_mask=bools(see),
            key_padding_mask=bools(pad),
            need_weights=False,
        ),
        heads(
            "more places",
            *inputs,
            *packed,
            (1, 1, 4),
            (1, 1, 4),
            attn_mask=bools(see),
            key_padding_mask=bools(pad),
            add_zero_attn=True,
            bias=True,
        ),
        heads("no batch", (3, 4), (5, 4), (5, 4), *packed),
    ]

    def of_itself(m: Any, f: Any, x: Any, *rest: Any, **words: Any) -> Any:
        mask = m.ones(3, 3).triu(1).bool()
        return f.multi_head_attention_forward(
            x, x, x, 4, 2, rest[0], rest[1], None, None, False, 0.0, rest[2], rest[3],
            attn_mask=mask, is_causal=True, **words,
        )  # fmt: skip

    def separate(m: Any, f: Any, q: Any, k: Any, v: Any, *rest: Any) -> Any:
        return f.multi_head_attention_forward(
            q, k, v, 4, 2, None, rest[3], None, None, False, 0.0, rest[4], None,
            use_separate_proj_weight=True, q_proj_weight=rest[0], k_proj_weight=rest[1],
            v_proj_weight=rest[2],
        )  # fmt: skip

    made += [
        Case("heads of itself", of_itself, ((3, 2, 4), *packed), ("float32",)),
        Case(
            "heads causal",
            lambda m, f, *x: of_itself(m, f, *x, need_weights=False)[0],
            ((3, 2, 4), *packed),
            ("float32",),
        ),
        Case(
            "heads with projections of their own",
            separate,
            ((3, 2, 4), (5, 2, 3), (5, 2, 2), (4, 4), (4, 3), (4, 2), (12,), (4, 4)),
            ("float32",),
        ),
        Case(
            "heads of one key",
            lambda m, f, x, y, *rest: f.multi_head_attention_forward(
                x, y, y, 4, 2, rest[0], rest[1], None, None, False, 0.0, rest[2], rest[3]
            ),
            ((3, 2, 4), (5, 2, 4), *packed),
            ("float32",),
        ),
    ]
    return made


def others() -> list[Case]:
    """Padding, and lookups that change their tables."""
    made = [
        Case(
            f"pad {mode}",
            lambda m, f, x, mode=mode: f.pad(x, (1, 2), mode),
            ((2, 3, 4),),
            ("float32",),
        )
        for mode in ("constant", "reflect", "replicate", "circular")
    ]
    made += [
        Case("pad value", lambda m, f, x: f.pad(x, (1, -1, 0, 2), value=2.5), ((2, 3, 4),)),
        Case(
            "pad of images",
            lambda m, f, x: f.pad(x, (1, 2, 2, 0), "reflect"),
            ((1, 2, 3, 4),),
            ("float32",),
        ),
    ]
    index = ints(1, 3, 1)
    for norm in (2.0, 1.0, INF):
        made.append(
            Case(
                f"embedding max_norm {norm}",
                lambda m, f, i, w, norm=norm: renormalized(
                    m, f, i, w, "embedding", max_norm=1.5, norm_type=norm
                ),
                (index, (5, 3)),
                ("float32",),
            )
        )
    return made


def cases() -> list[Case]:
    """All."""
    return [*activations(), *layers(), *norms(), *attention(), *others()]
