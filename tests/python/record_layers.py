"""Writes what PyTorch gives for the calls of layer_cases.py into layer_results.json.

python tests/python/record_layers.py    (with a Python that has torch)
"""

from __future__ import annotations

import json
from pathlib import Path

import layer_cases
import torch


def short(values: list[float], digits: int) -> list[float | str]:
    """Numbers with as many digits as their type has; JSON has none for what is not finite."""
    made: list[float | str] = []
    for one in values:
        number = float(f"{one:.{digits}g}")
        made.append(str(number) if number != number or abs(number) == float("inf") else number)
    return made


def main() -> None:
    """All of them."""
    found = {}
    for case in layer_cases.cases():
        for kind in case.kinds:
            digits = 6 if kind == "float32" else 4
            results = layer_cases.run(torch, case, kind)
            found[f"{case.name} {kind}"] = {
                name: [*map(int, values)] if name.startswith("shape") else short(values, digits)
                for name, values in results.items()
            }
    lines = []
    for name, one in found.items():
        values = json.dumps(one, separators=(",", ":")).replace(".0,", ",").replace(".0]", "]")
        lines.append(f"{json.dumps(name)}:{values}")
    path = Path(__file__).with_name("layer_results.json")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(found)} results of PyTorch {torch.__version__}, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
