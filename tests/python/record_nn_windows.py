"""Records what PyTorch gives for the calls of nn_window_cases.py: nn_windows.json.

python tests/python/record_nn_windows.py      (with PyTorch, on a CPU)
"""

from __future__ import annotations

import json
import pathlib
import warnings

import nn_window_cases
import torch


def main() -> None:
    """Writes the file."""
    warnings.simplefilter("ignore")
    lines = []
    for case in nn_window_cases.cases():
        made = [
            [shape, [float(f"{value:.6g}") for value in values]]
            for shape, values in nn_window_cases.run(case, torch)
        ]
        lines.append(f"{json.dumps(case.key)}: {json.dumps(made, separators=(',', ':'))}")
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    pathlib.Path(__file__).with_name("nn_windows.json").write_text(text)


if __name__ == "__main__":
    main()
