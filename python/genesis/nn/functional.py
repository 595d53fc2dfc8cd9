"""Functions of neural networks. Most are rows of the table of operations, computed in C."""

from genesis._nn import *  # noqa: F403
from genesis._nn import __all__ as _rows

__all__ = [*_rows]  # noqa: PLE0604
