"""Layers, optimizers, autocast, linear algebra and scripts on a real GPU; others simulate it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import run_script

SCRIPTS = Path(__file__).parents[1] / "scripts"
LIMIT = 2e-3


@pytest.mark.gpu
@pytest.mark.parametrize("what", ["autocast", "formats", "layers", "linalg", "optim"])
def test_on_a_gpu(what):
    finished = run_script(f"device_{what}.py")
    assert not finished.stderr, finished.stderr


def translated(text):
    """A script of PyTorch's with other import lines."""
    text = re.sub(r"^import torch$", "import genesis as torch", text, flags=re.MULTILINE)
    return re.sub(r"^(import|from) torch\b", r"\1 genesis", text, flags=re.MULTILINE)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["train_mlp", "train_cnn", "train_gpt"])
def test_scripts_beside_pytorch(name, tmp_path, monkeypatch):
    """The same losses over 50 steps, on one GPU."""
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from weights import weights_write

    shapes = json.loads(Path(__file__).with_name("scripts.json").read_text())[name]["shapes"]
    weights_write(shapes, tmp_path / "weights.npz")
    text = (SCRIPTS / f"{name}.py").read_text()
    losses = []
    for side, own in (("torch", text), ("genesis", translated(text))):
        home = tmp_path / side
        home.mkdir()
        (home / "script.py").write_text(own)
        command = [sys.executable, "script.py", "--weights", str(tmp_path / "weights.npz")]
        finished = subprocess.run(
            [*command, "--out", "out.json"],
            cwd=home,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr[-3000:]
        losses.append(json.loads((home / "out.json").read_text())["losses"])
    apart = max(abs(a - b) for a, b in zip(*losses, strict=True))
    assert len(losses[0]) >= 50 and apart < LIMIT, apart
