"""Which lines and branches of src/ the tests reach, and which test reaches them.

    make coverage [TESTS="test_base test_jit.*"]

builds in build-coverage with gcc's --coverage, runs each program of ctest and each file of pytest
by itself, and prints the branch coverage of every layer, with the files that have most branches
that nothing takes. What was run on this build before is not run again. The result is
build-coverage/coverage.json, from which tools/mutate.py learns what to run for a line:

    {"tests": {name: {"seconds": s, "passed": true, "lines": {file: [line, ...]},
                      "branches": {file: {line: [count, ...]}}}}}

Not counted: branches in a line with an assert, and those that only an exception of C++ takes; and
src/memory/valid.c, the walker over the pool's invariants, whose branches are taken when one is
broken. Headers of src/ count as tests use them, too.

    python tools/coverage.py report [FILE ...]    the branches that nothing takes, by line
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build-coverage"
RESULT = BUILD / "coverage.json"
PYTHON = ROOT / ".venv" / "bin" / "python"
LAYERS = ["adapter", "base", "device", "memory", "jit", "tensor", "ops", "python"]
LEAST = {"base": 92, "device": 92, "memory": 92, "jit": 92}  # percent of the branches
WALKERS = ["src/memory/valid.c"]
NOT_COUNTED = re.compile(r"\bassert\s*\(|_Static_assert|GNI_ASSERT")


# ---- what there is to run ----


def ctest_tests(build: Path) -> dict[str, dict]:
    """The programs of ctest: command, environment, directory and time limit by name."""
    listed = subprocess.run(
        ["ctest", "--test-dir", build, "--show-only=json-v1", "-LE", "gpu"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = {}
    for test in json.loads(listed.stdout)["tests"]:
        properties = {one["name"]: one["value"] for one in test.get("properties", [])}
        found[test["name"]] = {
            "command": test["command"],
            "environment": dict(
                one.split("=", 1) for one in properties.get("ENVIRONMENT", []) if "=" in one
            ),
            "directory": properties.get("WORKING_DIRECTORY", str(build)),
            "timeout": properties.get("TIMEOUT", 300),
            "good": (0, 77),  # 77: there is nothing to test here
            "must_say": properties.get("PASS_REGULAR_EXPRESSION"),
        }
    return found


def pytest_tests(build: Path) -> dict[str, dict]:
    """The files of pytest, with the package of a build."""
    found = {}
    for file in sorted((ROOT / "tests" / "python").glob("test_*.py")):
        found[file.stem + ".py"] = {
            "command": [
                *(str(PYTHON), "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"),
                *("-m", "not gpu", str(file)),
            ],
            "environment": {"PYTHONPATH": str(build / "python")},
            "directory": str(ROOT),
            "timeout": 900,
            "good": (0, 5),  # 5: all tests of the file need a GPU, or a package that is not here
            "must_say": None,
        }
    return found


def test_run(
    test: dict, timeout: float, processor_seconds: int = 0, **environment: str
) -> tuple[bool, float]:
    """Whether a test passes, and how long it takes. What runs too long does not pass."""
    start = time.monotonic()

    def limit() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's job in the background ignores it
        if processor_seconds:
            resource.setrlimit(resource.RLIMIT_CPU, (processor_seconds, processor_seconds))

    process = subprocess.Popen(
        test["command"],
        cwd=test["directory"],
        env=os.environ | test["environment"] | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        preexec_fn=limit,
    )
    try:
        said = process.communicate(timeout=timeout)[0]
        passed = process.returncode in test["good"]
        if test["must_say"]:
            passed = any(re.search(one, said, re.DOTALL) for one in test["must_say"])
    except subprocess.TimeoutExpired:
        passed = False
    finally:
        try:  # a test's own children are in its session
            os.killpg(process.pid, 9)
        except ProcessLookupError:
            pass
        process.wait()
    return passed, time.monotonic() - start


# ---- coverage of one test ----


def notes_find() -> list[Path]:
    """What the compiler noted about each object of src/, and of tests, which use its headers."""
    return sorted([*(BUILD / "src").rglob("*.gcno"), *(BUILD / "tests").rglob("*.gcno")])


def coverage_read(folder: Path, notes: list[Path]) -> tuple[dict, dict]:
    """The lines that ran, and the counts of branches, of what a test left in a folder."""
    lines: dict[str, set[int]] = {}
    branches: dict[str, dict[int, list[int]]] = {}
    data, tests = [], str(folder / (BUILD / "tests").relative_to("/"))
    for note in notes:
        place = folder / note.relative_to("/")
        if place.with_suffix(".gcda").exists():
            if not place.exists():
                place.symlink_to(note)
            data.append(place.with_suffix(".gcda"))
    for start in range(0, len(data), 40):
        printed = subprocess.run(
            [
                "gcov",
                "--json-format",
                "--branch-probabilities",
                "--branch-counts",
                "--stdout",
                *data[start : start + 40],
            ],
            capture_output=True,
            text=True,
            cwd=folder,
            check=False,
        ).stdout
        for document in printed.splitlines():
            if not document.startswith("{"):
                continue
            one = json.loads(document)
            is_test = one["data_file"].startswith(tests)
            for file in one["files"]:
                path = os.path.relpath(file["file"], ROOT)
                if not path.startswith("src/") or (is_test and path.endswith(".c")):
                    continue
                for line in file["lines"]:
                    number = line["line_number"]
                    if line["count"] > 0:
                        lines.setdefault(path, set()).add(number)
                    counts = [one["count"] for one in line["branches"] if not one["throw"]]
                    merge(branches.setdefault(path, {}), number, counts)
    return {path: sorted(some) for path, some in lines.items()}, branches


def merge(to: dict, number, counts: list[int]) -> None:
    """Add the counts of a line's branches to those that are known."""
    if not counts:
        return
    known = to.get(number)
    if known is None or len(known) < len(counts):
        known = (known or []) + [0] * (len(counts) - len(known or []))
    to[number] = [a + b for a, b in zip(known, counts + [0] * len(known), strict=False)]


def test_cover(name: str, test: dict, notes: list[Path]) -> dict:
    """Run one test, and give what it reached."""
    folder = BUILD / "reached" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    passed, seconds = test_run(test, 3 * test["timeout"], GCOV_PREFIX=str(folder))
    lines, branches = coverage_read(folder, notes)
    shutil.rmtree(folder, ignore_errors=True)
    return {"seconds": round(seconds, 2), "passed": passed, "lines": lines, "branches": branches}


# ---- the whole ----


def result_load() -> dict:
    """What is known of earlier runs."""
    if RESULT.exists():
        return json.loads(RESULT.read_text())
    return {"tests": {}}


def result_write(result: dict) -> None:
    """Keep what is known, whole or not at all."""
    new = RESULT.with_suffix(".new")
    new.write_text(json.dumps(result))
    new.replace(RESULT)


def branches_all(result: dict) -> dict[str, dict[int, list[int]]]:
    """The counts of all tests together."""
    total: dict[str, dict[int, list[int]]] = {}
    for test in result["tests"].values():
        for path, some in test["branches"].items():
            for number, counts in some.items():
                merge(total.setdefault(path, {}), int(number), counts)
    for path, some in total.items():
        text = (ROOT / path).read_text().splitlines() if (ROOT / path).exists() else []
        for number in list(some):
            if number > len(text) or NOT_COUNTED.search(text[number - 1]):
                del some[number]
    return total


def report(result: dict, chosen: list[str]) -> bool:
    """Print how much is reached; false if a layer has less than it must have."""
    total = branches_all(result)
    is_enough = True
    for layer in LAYERS:
        files = {
            p: some
            for p, some in total.items()
            if p.startswith(f"src/{layer}/") and p not in WALKERS
        }
        taken = {p: sum(c > 0 for one in s.values() for c in one) for p, s in files.items()}
        count = {p: sum(len(one) for one in s.values()) for p, s in files.items()}
        if not sum(count.values()):
            continue
        percent = 100 * sum(taken.values()) / sum(count.values())
        is_enough &= percent >= LEAST.get(layer, 0)
        worst = sorted(files, key=lambda p: taken[p] - count[p])[:4]
        named = ", ".join(f"{Path(p).name} {count[p] - taken[p]}" for p in worst)
        print(f"{layer:8} {percent:5.1f} %  of {sum(count.values())} branches; not taken: {named}")
    for path in chosen:
        for number, counts in sorted(total.get(path, {}).items()):
            if 0 in counts:
                text = (ROOT / path).read_text().splitlines()[number - 1].strip()
                print(f"{path}:{number}: {counts.count(0)} of {len(counts)}: {text}")
    return is_enough


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["run", "report"], nargs="?", default="run")
    parser.add_argument("names", nargs="*", help="of tests (regular expressions), or files of src/")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="also what was run before")
    options = parser.parse_args()
    result = result_load()
    if options.action == "report":
        return 0 if report(result, options.names) else 1
    notes = notes_find()
    newest = max(note.stat().st_mtime for note in (BUILD / "src").rglob("*.gcno"))
    if result.get("built") != newest:  # counts of another build are of other lines
        result = {"built": newest, "tests": {}}
    tests = ctest_tests(BUILD) | pytest_tests(BUILD)
    wanted = [
        name
        for name in tests
        if (not options.names or any(re.fullmatch(one, name) for one in options.names))
        and (options.again or name not in result["tests"])
    ]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = {pool.submit(test_cover, name, tests[name], notes): name for name in wanted}
        for future in concurrent.futures.as_completed(running):
            name = running[future]
            found = result["tests"][name] = future.result()
            result_write(result)
            if not found["passed"]:
                print(f"{name}: does not pass in build-coverage", file=sys.stderr)
    return 0 if report(result, []) else 1


if __name__ == "__main__":
    sys.exit(main())
