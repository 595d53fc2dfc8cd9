"""Training scripts that were written for PyTorch, with other import lines and no other change.

Losses are compared with those of PyTorch on the CPU (scripts.json, by record_scripts.py), and a run
that was stopped and resumed with one that was not.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"
RECORDED = json.loads(Path(__file__).with_name("scripts.json").read_text())
LIMIT = 2e-3


def translated(text: str) -> str:
    """A script with other import lines, and no other change."""
    text = re.sub(r"^import torch$", "import genesis as torch", text, flags=re.MULTILINE)
    return re.sub(r"^(import|from) torch\b", r"\1 genesis", text, flags=re.MULTILINE)


@pytest.fixture(scope="module", params=list(RECORDED))
def script(request, tmp_path_factory):
    """Runs a script in a folder, and gives what it wrote."""
    pytest.importorskip("numpy")
    name = request.param
    home = tmp_path_factory.mktemp(name)
    specification = importlib.util.spec_from_file_location("weights", SCRIPTS / "weights.py")
    assert specification is not None and specification.loader is not None
    weights = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(weights)
    weights.weights_write(RECORDED[name]["shapes"], home / "weights.npz")
    path = home / f"{name}.py"
    path.write_text(translated((SCRIPTS / f"{name}.py").read_text()))

    def run(folder: str, *arguments: str) -> dict:
        (home / folder).mkdir(exist_ok=True)
        out = home / folder / "out.json"
        command = [sys.executable, str(path), "--weights", str(home / "weights.npz")]
        finished = subprocess.run(
            [*command, "--out", str(out), *arguments],
            cwd=home / folder,
            env={**os.environ},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr[-3000:]
        return json.loads(out.read_text())

    run.name = name
    run.whole = run("whole")
    return run


def test_losses_are_those_of_pytorch(script):
    recorded, made = RECORDED[script.name], script.whole
    assert made["shapes"] == recorded["shapes"]
    assert len(made["losses"]) == len(recorded["losses"]) == 50
    far = [abs(x - y) for x, y in zip(made["losses"], recorded["losses"], strict=True)]
    assert max(far) < LIMIT, far
    assert made["norms"] == pytest.approx(recorded["norms"], rel=0.05)
    assert abs(made["test_loss"] - recorded["test_loss"]) < 5 * LIMIT


def test_a_resumed_run_gives_the_same_bits(script):
    script("parts", "--stop", "20")
    resumed = script("parts")
    assert resumed == script.whole


def test_only_import_lines_change():
    text = "import torch\nimport torch.nn as nn\nfrom torch import optim\nx = torch.ones(2)\n"
    assert translated(text) == (
        "import genesis as torch\nimport genesis.nn as nn\nfrom genesis import optim\n"
        "x = torch.ones(2)\n"
    )
