"""Records PyTorch's results for test_optim.py and test_lr_scheduler.py into optim_recorded.json.

    /opt/torchenv/bin/python tests/python/record_optim.py

In bfloat16 a step of Genesis computes in float32 and rounds what it stores. PyTorch's fused
optimizers do so, too; what is recorded for all is a step of PyTorch in float32, whose parameters
and states are rounded after each step.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import optim_cases as cases
import torch


def flat(params: list[Any], digits: int) -> list[float]:
    """The elements, shortened."""
    return [
        float(f"{x:.{digits}g}") for p in params for x in p.detach().double().reshape(-1).tolist()
    ]


def rounded(optimizer: Any) -> None:
    """Parameters and states become bfloat16s."""
    for group in optimizer.param_groups:
        for param in group["params"]:
            values = [param.data]
            values += [
                v
                for k, v in optimizer.state[param].items()
                if k not in ("step", "mu_product", "eta", "mu")
            ]
            for value in values:
                if isinstance(value, torch.Tensor):
                    value.copy_(value.bfloat16().float())


def main() -> None:
    """Write the file."""
    made: dict[str, Any] = {"optimizers": {}, "states": {}}
    for name in cases.OPTIMIZERS:
        one = {}
        for kind, digits in (("float32", 8), ("float64", 14)):
            optimizer, params = cases.run(torch, name, getattr(torch, kind))
            one[kind] = flat(params, digits)
            if kind == "float32":
                made["states"][name] = {
                    key: sorted(value) for key, value in optimizer.state_dict()["state"].items()
                }
        _, params = cases.run(torch, name, torch.float32, after=rounded)
        one["bfloat16"] = flat(params, 6)
        made["optimizers"][name] = one
    made["rates"] = {
        name: [[float(f"{x:.14g}") for x in row] for row in rows]
        for name, rows in cases.all_rates(torch).items()
    }
    made["lbfgs"] = {name: cases.lbfgs_losses(torch, name) for name in cases.LBFGS}
    path = Path(__file__).with_name("optim_recorded.json")
    path.write_text(json.dumps(made, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
