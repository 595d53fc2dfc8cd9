"""What the Python tests share: where things are, and how to ask a fresh interpreter something."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import genesis

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(genesis._C.__file__).resolve().parents[2]
FAKE = BUILD / "tests" / "fake" / "libgenesis_fake.so"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a GPU where there is none, saying why."""
    gpu = [item for item in items if item.get_closest_marker("gpu")]
    if gpu and not genesis.cuda.is_available():
        reason = "no GPU"
        try:
            genesis.cuda.set_device(0)
        except RuntimeError as error:
            reason = str(error)
        for item in gpu:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture
def build() -> Path:
    """The build directory that the imported package comes from."""
    return BUILD


@pytest.fixture
def fresh():
    """Run Python code in a fresh interpreter; gives the finished process, checked unless told."""

    def run(code: str, check: bool = True, **environment: str) -> subprocess.CompletedProcess:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("GENESIS_")}
        finished = subprocess.run(
            [sys.executable, "-c", code],
            env=kept | environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert not check or finished.returncode == 0, finished.stderr
        return finished

    return run


@pytest.fixture
def fake_driver() -> str:
    """The path of a stand-in for the CUDA driver with two small devices."""
    if not FAKE.exists():
        pytest.skip("the build has no tests")
    return str(FAKE)
