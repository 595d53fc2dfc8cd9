"""Initial weights for the training scripts, as a file that every library reads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping


def weights_write(shapes: Mapping[str, Any], path: Path) -> None:
    """Write random weights for the names and shapes of a state_dict: small ones, like its layers'.

    One-dimensional weights are 1 with little noise, biases 0 with little noise. Names that do not
    end with weight or bias are left out: buffers begin as they are.
    """
    rng = np.random.default_rng(42)
    arrays = {}
    for name, shape in sorted(shapes.items()):
        kind = name.rpartition(".")[2]
        if kind not in ("weight", "bias"):
            continue
        noise = rng.standard_normal(shape)
        fan = int(np.prod(shape[1:])) if len(shape) > 1 else 1
        if kind == "bias" or len(shape) == 1:
            value = 0.02 * noise + (kind == "weight")
        else:
            value = noise / np.sqrt(fan)
        arrays[name] = value.astype(np.float32)
    np.savez(path, **arrays)


if __name__ == "__main__":
    sys.exit("weights.py is used by tests/python/test_scripts.py and record_scripts.py")
