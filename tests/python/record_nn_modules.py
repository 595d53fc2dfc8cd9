"""Records what PyTorch gives for the calls of nn_module_cases.py, in two files.

python tests/python/record_nn_modules.py      (with PyTorch, on a CPU)
"""

from __future__ import annotations

import json
import pathlib
import warnings
from typing import Any

import nn_module_cases
import torch


def rounded(value: Any) -> Any:
    """Numbers with as many digits as a test compares."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def record(name: str, cases: list[nn_module_cases.Case]) -> None:
    """Writes a file."""
    lines = []
    for case in cases:
        found = nn_module_cases.Run(case, torch).results()
        lines.append(f"{json.dumps(case.key)}: {json.dumps(rounded(found))}")
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    pathlib.Path(__file__).with_name(name).write_text(text)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    record("nn_recurrent.json", nn_module_cases.recurrent())
    record("nn_attention.json", nn_module_cases.attention())
