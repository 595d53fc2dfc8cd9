"""Writes scripts.json: losses of the training scripts under PyTorch, whose Python runs it.

A script is run without weights first, to learn the names and shapes of its model.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPTS = Path(__file__).parents[1] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from weights import weights_write  # noqa: E402

MODELS = {
    "train_mlp": "MLP()",
    "train_cnn": "Net()",
    "train_gpt": "GPT(GPTConfig())",
    "train_policy": "Agent()",
    "train_graph": "Net()",
}


def shapes_of(name: str) -> dict[str, list[int]]:
    code = (
        f"import sys, json; sys.path.insert(0, {str(SCRIPTS)!r}); from {name} import *\n"
        f"state = {MODELS[name]}.state_dict()\n"
        "print(json.dumps({key: list(value.shape) for key, value in state.items()}))"
    )
    return json.loads(subprocess.check_output([sys.executable, "-c", code]))


def main() -> None:
    recorded = {}
    for name in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            weights = Path(folder) / "weights.npz"
            weights_write(shapes_of(name), weights)
            out = Path(folder) / "out.json"
            command = [sys.executable, str(SCRIPTS / f"{name}.py"), "--weights", str(weights)]
            command += ["--out", str(out), *sys.argv[1:]]
            subprocess.run(command, check=True, cwd=folder, env={**os.environ})
            made = json.loads(out.read_text())
        for key in ("losses", "norms"):
            made[key] = [round(value, 5) for value in made[key]]
        made["test_loss"] = round(made["test_loss"], 5)
        recorded[name] = made
    lines = [f"{json.dumps(name)}: {json.dumps(made)}" for name, made in recorded.items()]
    path = Path(__file__).with_name("scripts.json")
    path.write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
