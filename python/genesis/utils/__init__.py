"""Helpers for programs that train: checkpoint."""

from genesis.utils import checkpoint

__all__ = ["checkpoint"]
