"""Where the packages of this environment keep libraries that are no modules of Python."""

from __future__ import annotations

import glob
import os
import site
import sysconfig

__all__ = ["openblas", "roots"]

# The wheel that the package depends on, and the copy that NumPy brings along.
_OPENBLAS = (
    os.path.join("scipy_openblas32", "lib", "libscipy_openblas*.so"),
    os.path.join("numpy.libs", "libscipy_openblas64_*.so"),
)


def roots() -> list[str]:
    """Where packages are installed: never the current directory, which may be on sys.path.

    Examples
    --------
    >>> import sysconfig
    >>> from genesis import _wheels
    >>> sysconfig.get_path("purelib") in _wheels.roots()
    True
    """
    paths = sysconfig.get_paths()
    everywhere = (paths["purelib"], paths["platlib"], *site.getsitepackages())
    found = dict.fromkeys((*everywhere, site.getusersitepackages()))
    return [path for path in found if path.startswith("/")]  # PYTHONUSERBASE may be relative


def openblas() -> list[str]:
    """Files that may be OpenBLAS, the best first; asked once, by the first matrix product.

    Examples
    --------
    >>> from genesis import _wheels
    >>> all(path.endswith(".so") for path in _wheels.openblas())
    True
    """
    return [
        path
        for pattern in _OPENBLAS
        for root in roots()
        for path in sorted(glob.glob(os.path.join(glob.escape(root), pattern)))
    ]
