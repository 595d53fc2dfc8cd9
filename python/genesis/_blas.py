"""Where this environment keeps OpenBLAS; asked once, by the first large matrix product."""

from __future__ import annotations

import glob
import os
import site
import sysconfig

__all__ = ["files"]

# The wheel that the package depends on, and the copy that NumPy brings along.
_PATTERNS = (
    os.path.join("scipy_openblas32", "lib", "libscipy_openblas*.so"),
    os.path.join("numpy.libs", "libscipy_openblas64_*.so"),
)


def files() -> list[str]:
    """Files that may be OpenBLAS, the best first.

    Only where packages are installed: never the current directory, which may be on sys.path.

    Examples
    --------
    >>> from genesis import _blas
    >>> all(path.endswith(".so") for path in _blas.files())
    True
    """
    paths = sysconfig.get_paths()
    everywhere = [paths["purelib"], paths["platlib"], *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        everywhere.append(site.getusersitepackages())
    roots = dict.fromkeys(everywhere)
    found = [
        path
        for pattern in _PATTERNS
        for root in roots
        for path in sorted(glob.glob(os.path.join(glob.escape(root), pattern)))
    ]
    return list(dict.fromkeys(found))[:8]
