"""Samples that have no gradient yet, though PyTorch has one, and what is said instead.

A test expects that: what begins to work is to be taken out of here.
"""

from __future__ import annotations

import re

GAPS = [
    # A function made of others, in place: its rules have saved what is overwritten.
    (
        r"^Tensor\.((fmax|fmin|float_power|clamp_min|clamp_max|cumprod|copysign)_\b"
        r"|gelu_.* of gelu_tanh|(clamp|clip)_\b)",
        "changed by an operation in place",
    ),
    (r"^Tensor\.(t|transpose|swapdims|swapaxes|squeeze|unsqueeze)_ ", "a view in place has no"),
]

# Said of some functions where a leaf is expanded: which of them make such views is theirs to know.
EXPANDED = "a view of an expanded tensor has no gradient yet"


def gap_of(title: str) -> str | None:
    """What is said of a case; None: it has a gradient."""
    for pattern, words in GAPS:
        if re.search(pattern, title):
            return words
    return None


def is_expanded_gap(title: str, error: RuntimeError) -> bool:
    """Whether a failure is the other one."""
    return title.endswith(", expanded") and EXPANDED in str(error)
