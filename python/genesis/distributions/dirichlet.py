"""Dirichlet, where PyTorch has it."""

from genesis.distributions.gamma import Dirichlet

__all__ = ["Dirichlet"]
