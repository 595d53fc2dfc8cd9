"""Special functions by the names of ``torch.special``; they are the functions of ``genesis``.

Examples
--------
>>> import genesis
>>> genesis.special.expit(genesis.tensor([0.0]))
tensor([0.5000])
"""

from __future__ import annotations

from genesis import (
    digamma,
    erf,
    erfc,
    erfinv,
    exp2,
    expm1,
    log1p,
    log_softmax,
    logit,
    logsumexp,
    polygamma,
    round,
    sinc,
    softmax,
    xlogy,
)
from genesis import digamma as psi
from genesis import lgamma as gammaln
from genesis import sigmoid as expit

__all__ = [
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammaln",
    "log1p",
    "log_softmax",
    "logit",
    "logsumexp",
    "polygamma",
    "psi",
    "round",
    "sinc",
    "softmax",
    "xlogy",
]
