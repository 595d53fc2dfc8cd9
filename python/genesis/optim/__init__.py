"""Optimizers: what changes parameters by their gradients."""

__all__: list[str] = []
