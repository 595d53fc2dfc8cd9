"""Linear algebra. Most functions are rows of the table of operations, computed in C."""

from genesis._linalg import *  # noqa: F403
from genesis._linalg import __all__ as _rows

__all__ = [*_rows]  # noqa: PLE0604
