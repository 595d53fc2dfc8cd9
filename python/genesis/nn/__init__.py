"""Neural networks: modules, their parameters, and functions."""

from genesis.nn import functional

__all__ = ["functional"]
