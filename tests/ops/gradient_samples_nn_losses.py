"""Samples of genesis.nn.functional: losses."""

from __future__ import annotations

from typing import Any

from gradient_sample import Sample, leaf

import genesis

SAMPLES: list[Sample] = []


def add(name: str, *arguments: Any, is_tied: bool = True, **keywords: Any) -> None:
    """A sample of a loss."""
    SAMPLES.append(Sample(f"nn.functional.{name}", arguments, keywords, is_tied=is_tied))


CLASSES = genesis.tensor([2, 0, 1])
MANY = genesis.tensor([[2, 0], [1, 1]])
SIGNS = genesis.tensor([1.0, -1.0, -1.0], dtype=genesis.float64)
WEIGHT = genesis.tensor([0.5, 1.5, 0.7, 1.1], dtype=genesis.float64)
X, Y = leaf(3, 4), leaf(3, 4, seed=1)
CHANCE = leaf(3, 4, low=0.1, high=0.9, seed=2)

add("cross_entropy", X, CLASSES)
add("cross_entropy", X, CLASSES, weight=WEIGHT, label_smoothing=0.2, reduction="none")
add("cross_entropy", X, CLASSES, ignore_index=1, reduction="sum", label_smoothing=0.1)
add("cross_entropy", leaf(2, 4, 2), MANY, weight=WEIGHT)
add("cross_entropy", X, CHANCE, label_smoothing=0.1, weight=WEIGHT)
add("nll_loss", X, CLASSES, weight=WEIGHT)
add("nll_loss", leaf(2, 4, 2), MANY, reduction="none")
add("multi_margin_loss", X, CLASSES, p=2)
add("multilabel_margin_loss", X, genesis.tensor([[2, 0, -1, 1], [1, -1, -1, -1], [3, 1, 0, -1]]))
add("multilabel_margin_loss", leaf(4), genesis.tensor([0, 2, -1, 0]), reduction="none")
add("multilabel_soft_margin_loss", X, CHANCE, weight=WEIGHT)
add("mse_loss", X, Y)
add("mse_loss", X, leaf(4, seed=1), reduction="none")
add("l1_loss", X, Y)
add("smooth_l1_loss", X, Y, beta=0.5)
add("huber_loss", X, Y, delta=0.7)
add("binary_cross_entropy", leaf(3, 4, low=0.1, high=0.9), CHANCE, weight=WEIGHT)
add("binary_cross_entropy_with_logits", X, CHANCE, weight=WEIGHT, pos_weight=WEIGHT)
add("soft_margin_loss", leaf(3), SIGNS)
add("kl_div", X, CHANCE, reduction="batchmean")
add("kl_div", X, Y, log_target=True)
add("poisson_nll_loss", X, leaf(3, 4, low=0.2, high=3.0), full=True)
add("poisson_nll_loss", leaf(3, 4, low=0.2, high=3.0), CHANCE, log_input=False)
add("gaussian_nll_loss", X, Y, leaf(3, 1, low=0.2, high=2.0), full=True)
add("cosine_embedding_loss", X, Y, SIGNS, margin=-0.9)
add("margin_ranking_loss", leaf(3), leaf(3, seed=1), SIGNS, margin=0.3)
add("hinge_embedding_loss", leaf(3), SIGNS, margin=2.0)
for p in (1, 2, 3):
    add("triplet_margin_loss", X, Y, leaf(3, 4, seed=2), p=p, margin=2.5)
add("triplet_margin_loss", X, Y, leaf(3, 4, seed=2), swap=True, margin=2.5)
for swap in (False, True):
    add("triplet_margin_with_distance_loss", X, Y, leaf(3, 4, seed=2), swap=swap, margin=2.5)
