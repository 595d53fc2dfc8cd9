"""Writes distributions.json: densities and divergences under PyTorch, whose Python runs it."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from distribution_cases import CASES, results


def main() -> None:
    lines = [f"{json.dumps(name)}: {json.dumps(results(torch, name))}" for name in CASES]
    path = Path(__file__).with_name("distributions.json")
    path.write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
