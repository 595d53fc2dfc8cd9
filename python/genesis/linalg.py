"""Linear algebra. Most functions are rows of the table of operations, computed in C."""

from __future__ import annotations

from typing import Any

from genesis._C import _LinAlgError as LinAlgError
from genesis._linalg import *  # noqa: F403
from genesis._linalg import __all__ as _rows

__all__ = ["LinAlgError", *_rows]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in ("eig", "eigvals"):
        raise AttributeError(
            f"module 'genesis.linalg' has no {name}: eigenvalues of matrices that are not "
            "symmetric are complex numbers, which tensors do not have; symmetric matrices have "
            "eigh and eigvalsh"
        )
    raise AttributeError(f"module 'genesis.linalg' has no attribute {name!r}")
