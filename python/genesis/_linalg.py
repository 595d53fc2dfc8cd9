"""The functions of linear algebra that the table of operations has: genesis.linalg."""

from genesis import _C

__all__ = sorted(name for name in vars(_C._linalg) if not name.startswith("_"))

globals().update({name: getattr(_C._linalg, name) for name in __all__})
