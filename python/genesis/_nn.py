"""The functions of neural networks that the table of operations has: genesis.nn.functional."""

from genesis import _C

__all__ = sorted(name for name in vars(_C._nn) if not name.startswith("_"))

globals().update({name: getattr(_C._nn, name) for name in __all__})
