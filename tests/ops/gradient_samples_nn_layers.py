"""Samples of genesis.nn.functional: layers, norms, dropout, attention."""

from __future__ import annotations

from typing import Any

from gradient_sample import Sample, leaf

import genesis

F = genesis.nn.functional


def seeded(call: Any) -> Any:
    """A function that draws the same random numbers in each call."""

    def function(*given: Any) -> Any:
        genesis.manual_seed(3)
        return call(*given)

    return function


def drops(name: str, shape: tuple[int, ...], **words: Any) -> Sample:
    """A dropout with half of the elements."""
    call = getattr(F, name)
    return Sample(
        f"nn.functional.{name}",
        (leaf(*shape),),
        {},
        seeded(lambda x: call(x * 2, 0.5, True, **words)),
        " ".join(words),
    )


INDEX = genesis.tensor([[1, 4, 1], [0, 2, 4]])
OFFSETS = genesis.tensor([0, 2, 2])
MASK = genesis.tensor([[True, False, True], [False, False, False]])


def running(x: Any) -> Any:
    """A mean and a variance of two channels."""
    made = genesis.tensor([[0.1, -0.2], [0.7, 1.5]], dtype=x.dtype, device=x.device)
    return made[0], made[1]


HEADS = (leaf(2, 2, 3), leaf(2, 3, 3, seed=1), leaf(2, 3, 2, seed=2))
PACKED = (leaf(12, 4, seed=3), leaf(12, seed=4), leaf(4, 4, seed=5), leaf(4, seed=6))


def bags(label: str, *rest: Any, **words: Any) -> Sample:
    """Lookups of bags."""
    return Sample(
        "nn.functional.embedding_bag",
        (leaf(5, 2), *rest),
        {},
        lambda w, *more: F.embedding_bag(
            INDEX.to(w.device), w, per_sample_weights=more[0] if more else None, **words
        ),
        label,
        is_tied=False,
    )


def heads(label: str, **words: Any) -> Sample:
    """Attention with its projections."""
    return Sample(
        "nn.functional.multi_head_attention_forward",
        (leaf(3, 1, 4), leaf(2, 1, 4, seed=1), leaf(2, 1, 4, seed=2), *PACKED),
        {},
        lambda q, k, v, w, b, out_w, out_b: F.multi_head_attention_forward(
            q, k, v, 4, 2, w, b, None, None, False, 0.0, out_w, out_b, **words
        )[0],
        label,
        is_plain=True,
    )


SAMPLES: list[Sample] = [
    Sample("nn.functional.linear", (leaf(4, 3), leaf(2, 3, seed=1), leaf(2, seed=2)), {}),
    Sample("nn.functional.linear", (leaf(2, 4, 3), leaf(3, seed=1)), {}),
    Sample(
        "nn.functional.bilinear",
        (leaf(2, 3), leaf(2, 2, seed=1), leaf(2, 3, 2, seed=2), leaf(2, seed=3)),
        {},
    ),
    Sample("nn.functional.normalize", (leaf(3, 4),), {}),
    Sample("nn.functional.normalize", (leaf(3, 4),), {"p": 3.0, "dim": 0}),
    Sample("nn.functional.pairwise_distance", (leaf(3, 4), leaf(3, 4, seed=1)), {}),
    Sample("nn.functional.pdist", (leaf(4, 3),), {}, is_tied=False),
    Sample(
        "nn.functional.embedding",
        (leaf(5, 3),),
        {},
        lambda w: F.embedding(INDEX.to(w.device), w),
        is_tied=False,
    ),
    *(bags(mode, mode=mode) for mode in ("sum", "mean", "max")),
    bags("weights", leaf(2, 3, seed=1), mode="sum"),
    bags("padding", mode="mean", padding_idx=4),
    # norms
    Sample(
        "nn.functional.layer_norm",
        (leaf(3, 4), (4,), leaf(4, seed=1), leaf(4, seed=2)),
        {"eps": 0.1},
        lambda x, shape, w, b: F.layer_norm(x, shape, w, b, 0.1),
    ),
    Sample("nn.functional.layer_norm", (leaf(2, 3, 2), (3, 2)), {}),
    Sample("nn.functional.rms_norm", (leaf(3, 4), (4,), leaf(4, seed=1)), {}),
    Sample("nn.functional.group_norm", (leaf(2, 4, 2), 2, leaf(4, seed=1), leaf(4, seed=2)), {}),
    Sample("nn.functional.local_response_norm", (leaf(2, 4, 2), 3), {"alpha": 0.5}),
    Sample(
        "nn.functional.batch_norm",
        (leaf(3, 2, 2), leaf(2, seed=1), leaf(2, seed=2)),
        {},
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True, eps=0.1),
        "training",
    ),
    Sample(
        "nn.functional.batch_norm",
        (leaf(3, 2), leaf(2, seed=1), leaf(2, seed=2)),
        {},
        lambda x, w, b: F.batch_norm(x, *running(x), w, b),
        "evaluation",
    ),
    Sample(
        "nn.functional.instance_norm",
        (leaf(2, 2, 3), leaf(2, seed=1), leaf(2, seed=2)),
        {},
        lambda x, w, b: F.instance_norm(x, None, None, w, b, eps=0.1),
    ),
    # dropout
    drops("dropout", (3, 4)),
    drops("dropout1d", (2, 3, 2)),
    drops("dropout2d", (2, 3, 2, 1)),
    drops("dropout3d", (2, 2, 1, 2)),
    drops("alpha_dropout", (3, 4)),
    drops("feature_alpha_dropout", (2, 3, 2)),
    drops("dropout", (2, 3), inplace=True),
    # attention
    Sample("nn.functional.scaled_dot_product_attention", HEADS, {}),
    Sample(
        "nn.functional.scaled_dot_product_attention", HEADS, {"is_causal": True}, None, "causal"
    ),
    Sample("nn.functional.scaled_dot_product_attention", HEADS, {"attn_mask": MASK}, None, "mask"),
    Sample("nn.functional.scaled_dot_product_attention", (*HEADS, leaf(2, 2, 3, seed=3)), {}),
    Sample(
        "nn.functional.scaled_dot_product_attention",
        (leaf(2, 2, 2), leaf(1, 3, 2, seed=1), leaf(1, 3, 2, seed=2)),
        {"enable_gqa": True, "scale": 0.4},
    ),
    Sample(
        "nn.functional.scaled_dot_product_attention",
        HEADS,
        {},
        seeded(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=0.4)),
        "dropout",
    ),
    heads("weights"),
    heads("flat", need_weights=False),
]
