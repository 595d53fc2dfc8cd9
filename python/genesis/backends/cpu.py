"""What the CPU can do.

Examples
--------
>>> import genesis
>>> genesis.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
True
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """The widest instructions that it has, by PyTorch's names."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return "DEFAULT"
    words = next((line for line in text.splitlines() if line.startswith("flags")), "").split()
    return "AVX512" if "avx512f" in words else "AVX2" if "avx2" in words else "DEFAULT"
