"""OneHotCategorical, where PyTorch has it."""

from genesis.distributions.categorical import OneHotCategorical

__all__ = ["OneHotCategorical"]
