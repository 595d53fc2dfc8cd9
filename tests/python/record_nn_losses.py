"""Records what PyTorch gives for the calls of nn_loss_cases.py: nn_losses.json.

python tests/python/record_nn_losses.py      (with PyTorch, on a CPU)
"""

from __future__ import annotations

import json
import pathlib
import warnings

import nn_loss_cases
import torch


def rounded(tensor: torch.Tensor) -> list:
    """Elements with as many digits as a test compares."""
    return [float(f"{value:.6g}") for value in tensor.double().reshape(-1).tolist()]


def main() -> None:
    """Writes the file."""
    warnings.simplefilter("ignore")
    found = {}
    for case in nn_loss_cases.cases():
        made = nn_loss_cases.run(case, torch)
        found[case.key] = [[list(one.shape), rounded(one)] for one in made]
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in found.items()]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    pathlib.Path(__file__).with_name("nn_losses.json").write_text(text)


if __name__ == "__main__":
    main()
