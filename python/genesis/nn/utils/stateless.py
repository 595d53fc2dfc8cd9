"""functional_call() under its older name."""

from __future__ import annotations

from genesis.func import functional_call

__all__ = ["functional_call"]
