"""Numba's own tests of its CUDA target, with and without Genesis under it.

    python tests/adapter/numba_suite.py [AT_ONCE [PATTERN]]

Runs the test files that numba-cuda installs (those that match PATTERN, a glob such as
``cudadrv/*``), each in a process of its own, once with Numba's own memory manager and once with
``NUMBA_CUDA_MEMORY_MANAGER=genesis.adapters.numba``, and compares the outcome of each test. A GPU
is needed. A file that imports a package which is not installed is counted as not runnable, with
the package's name. The exit status says whether each test that passes with Numba's own manager
passes under Genesis, or skips itself as it does under every manager but Numba's own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SECONDS = 120  # for a file

# Runs a module's tests and writes the outcome of each to a file.
RUNNER = """
import importlib, json, sys, unittest
class Result(unittest.TestResult):
    outcomes = {}
    def addSuccess(self, test):
        self.outcomes.setdefault(test.id(), "passed")
    def addFailure(self, test, error):
        self.outcomes[test.id()] = "failed"
    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.outcomes[test.id()] = "failed"
    addError = addFailure
    def addSkip(self, test, reason):
        self.outcomes[test.id()] = "skipped"
    def addExpectedFailure(self, test, error):
        self.outcomes[test.id()] = "passed"
    def addUnexpectedSuccess(self, test):
        self.outcomes[test.id()] = "failed"
try:
    importlib.import_module(sys.argv[1])
except ModuleNotFoundError as error:
    Result.outcomes[sys.argv[1]] = f"not runnable ({error})"
else:
    unittest.defaultTestLoader.loadTestsFromName(sys.argv[1])(Result())
with open(sys.argv[2], "w") as file:
    json.dump(Result.outcomes, file)
"""

# Releases of numba-cuda ask for a name that NumPy 2.5 has dropped.
SITE = 'import numpy; numpy.row_stack = getattr(numpy, "row_stack", numpy.vstack)\n'


def run(module: str, under: bool, site: str) -> dict[str, str]:
    """The outcome of each test of a module."""
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join([site, environment.get("PYTHONPATH", "")])
    if under:
        environment["NUMBA_CUDA_MEMORY_MANAGER"] = "genesis.adapters.numba"
    answer = Path(site, f"{module}.{under}.json")
    command = [sys.executable, "-c", RUNNER, module, str(answer)]
    try:
        finished = subprocess.run(
            command, env=environment, cwd=site, capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return {module: "took too long"}
    if not answer.exists():
        return {module: f"ended with {finished.returncode}"}
    return json.loads(answer.read_text())


def main() -> int:
    """Run all files both ways, and say what differs."""
    import numba_cuda

    at_once = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    pattern = sys.argv[2] if len(sys.argv) > 2 else "cuda[dp]*/*"
    root = Path(numba_cuda.__file__).parent
    modules = sorted(
        ".".join(path.relative_to(root).with_suffix("").parts)
        for path in root.glob(f"numba/cuda/tests/{pattern}.py")
        if path.name.startswith("test_")
    )
    with tempfile.TemporaryDirectory() as site, ThreadPoolExecutor(at_once) as workers:
        Path(site, "sitecustomize.py").write_text(SITE)
        jobs = [(module, under, site) for module in modules for under in (False, True)]
        results = list(workers.map(lambda job: run(*job), jobs))
    own = {name: word for result in results[0::2] for name, word in result.items()}
    ours = {name: word for result in results[1::2] for name, word in result.items()}
    print(f"{len(modules)} files")
    print("Numba's own manager:", dict(Counter(own.values()).most_common()))
    print("under Genesis:      ", dict(Counter(ours.values()).most_common()))
    different = [name for name in sorted(own | ours) if own.get(name) != ours.get(name)]
    for name in different:
        print(f"{name}: {own.get(name)}, under Genesis {ours.get(name)}")
    worse = [name for name in different if own.get(name) == "passed"]
    skipped = sum(ours.get(name) == "skipped" for name in worse)
    print(f"{len(worse) - skipped} passed before only, {skipped} skip themselves under Genesis")
    return 1 if len(worse) > skipped else 0


if __name__ == "__main__":
    sys.exit(main())
