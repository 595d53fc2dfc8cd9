"""Laplace, where PyTorch has it."""

from genesis.distributions.exponential import Laplace

__all__ = ["Laplace"]
