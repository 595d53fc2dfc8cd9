"""Small random mistakes in src/, each of which a test must find.

    make coverage                           once: which test reaches which line
    nice python tools/mutate.py [--count 200] [--seed 1] [--only "src/memory/*"] [--hours 2]

A mutation changes one place of one C file: a comparison or its bound, an operator, a constant by
one, a condition, a call or an assignment that goes away, two arguments that change places. In a
copy of the tree (build-mutate/tree-0, one for each job) the file is built again, and the tests that
reach the line run, the shortest first, until one fails: the mutation is found. A crash counts as
found, and so does a test that hangs, or uses more than ten times the processor's time that it
should. A test that finds its first mutation must then pass without it; one that does not is left
out. A mutation that does not compile, or with which the compiler makes the same code, is none:
another one is drawn.

What is drawn depends on the seed and on the text of the lines: a change elsewhere in the tree does
not change it. Outcomes are kept in build-mutate/outcomes.json, so a run that ended early goes on
where it was. What survives is written to tests/survivors.md. There a person writes behind
"equivalent:" why a survivor is no mistake. The program keeps these reasons, and exits with 1 while
more than 5 % survive without one.

    python tools/mutate.py --jobs 2         so many at a time
    python tools/mutate.py --again KEY ...  these once more, after a test was added
    python tools/mutate.py --at FILE:LINE   every mutation of a line
    python tools/mutate.py --list           what is drawn, without trying it
    python tools/mutate.py --write          tests/survivors.md, from what is known
"""

from __future__ import annotations

import argparse
import concurrent.futures
import fnmatch
import hashlib
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from coverage import ROOT, ctest_tests, pytest_tests, result_load, test_run  # noqa: E402

WORK = ROOT / "build-mutate"
TREE = WORK / "tree-0"  # of this process: job_start() gives each job its own
BUILD = TREE / "build"
OUTCOMES = WORK / "outcomes.json"
SURVIVORS = ROOT / "tests" / "survivors.md"
ALLOWED = 5  # percent that may survive without a reason
BUDGET = 240  # seconds of tests for one mutation
FILE_TESTS = 25  # for a line that no test is known to reach: the shortest that reach the file
# The same text for several processors, and the extension, whose tests are in Python.
LEFT_OUT = ["src/ops/cpu/loops_*", "src/ops/cpu/tiles_*", "src/python/*"]

SWAPS = {
    "<": ["<=", ">="],
    "<=": ["<", ">"],
    ">": [">=", "<="],
    ">=": [">", "<"],
    "==": ["!="],
    "!=": ["=="],
    "&&": ["||"],
    "||": ["&&"],
    "+": ["-"],
    "-": ["+"],
    "*": ["/"],
    "/": ["*"],
    "%": ["*"],
    "&": ["|"],
    "|": ["&"],
    "<<": [">>"],
    ">>": ["<<"],
    "+=": ["-="],
    "-=": ["+="],
}
OPERATOR = re.compile(
    r"(?<= )(" + "|".join(re.escape(o) for o in sorted(SWAPS, key=len)[::-1]) + r")(?= )"
)
NUMBER = re.compile(r"(?<![\w.])(\d+)(?=[uUlL]*(?![\w.]))")
CONDITION = re.compile(r"^(\s*(?:\} else )?if \()(.*)(\)(?: \{)?)$")
NEGATION = re.compile(r"(?<![\w)])!(?=[\w(])")
CALL_ALONE = re.compile(r"^\s+(?:GN_TRY\()?[a-z_][\w>.\[\]-]*\(.*\);$")
ASSIGNMENT = re.compile(r"^\s+\*?[a-z_][\w>.\[\]-]* [-+|&^]?= .*;$")
JUMP = re.compile(r"^\s+(break|continue);$")
TRUTH = re.compile(r"^(\s+return )(true|false);$")
TWO_ARGUMENTS = re.compile(r"\b([a-z_]\w*)\(([^(),\"']+), ([^(),\"']+)\)")
NOT_CODE = re.compile(r"assert|^\s*#|^\s*\*|gni_log\(|^\s*(//|/\*)|^[a-z]")


# ---- mutations ----


def code_lines(text: str) -> list[str]:
    """The lines with comments and strings replaced by spaces, so that columns stay."""

    def blank(match: re.Match) -> str:
        return re.sub(r"[^\n]", " ", match.group())

    pattern = r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
    return re.sub(pattern, blank, text, flags=re.DOTALL).split("\n")


def line_mutations(line: str, code: str) -> list[tuple[str, str]]:
    """What can be done to a line: (kind, the line afterwards)."""
    if NOT_CODE.search(code) or not code.strip():
        return []
    found = []
    for match in OPERATOR.finditer(code):
        for other in SWAPS[match.group()]:
            found.append(("operator", line[: match.start()] + other + line[match.end() :]))
    for match in NUMBER.finditer(code):
        number = int(match.group(), 8 if re.fullmatch("0[0-7]+", match.group()) else 10)
        for other in {number + 1, abs(number - 1)} - {number}:
            found.append(("constant", line[: match.start()] + str(other) + line[match.end() :]))
    if match := CONDITION.match(code):
        begin, end = match.span(2)
        found.append(("condition", f"{line[:begin]}!({line[begin:end]}){line[end:]}"))
    for match in NEGATION.finditer(code):
        found.append(("condition", line[: match.start()] + line[match.end() :]))
    if CALL_ALONE.match(code) or ASSIGNMENT.match(code) or JUMP.match(code):
        indent = line[: len(line) - len(line.lstrip())]
        found.append(("statement", indent + ";"))
    if match := TRUTH.match(code):
        other = "false" if match.group(2) == "true" else "true"
        found.append(("result", f"{match.group(1)}{other};"))
    for match in TWO_ARGUMENTS.finditer(code):
        name, first, second = match.groups()
        if name not in ("sizeof", "if", "while", "for", "switch") and first != second:
            new = f"{name}({second}, {first})"
            found.append(("arguments", line[: match.start()] + new + line[match.end() :]))
    return [one for one in found if one[1] != line]


def mutations_draw(seed: int, only: list[str]) -> list[dict]:
    """All mutations, in the order in which the seed draws them."""
    drawn = []
    for path in sorted((ROOT / "src").rglob("*.c")):
        name = str(path.relative_to(ROOT))
        if only and not any(fnmatch.fnmatch(name, one) for one in only):
            continue
        if any(fnmatch.fnmatch(name, one) for one in LEFT_OUT):
            continue
        text = path.read_text()
        lines, codes = text.split("\n"), code_lines(text)
        seen: dict[str, int] = {}
        for number, (line, code) in enumerate(zip(lines, codes, strict=True), 1):
            for kind, after in line_mutations(line, code):
                # Equal lines of a file are told apart by their order.
                same = f"{name}\n{line}\n{after}"
                seen[same] = seen.get(same, 0) + 1
                digest = hashlib.sha256(f"{same}\n{seen[same]}".encode()).hexdigest()
                drawn.append(
                    {
                        "key": digest[:12],
                        "file": name,
                        "line": number,
                        "kind": kind,
                        "before": line.strip(),
                        "after": after.strip(),
                        "text": after,
                        "rank": hashlib.sha256(f"{seed} {digest}".encode()).hexdigest(),
                    }
                )
    return sorted(drawn, key=lambda one: one["rank"])


def one_of_each_line(drawn: list[dict]) -> list[dict]:
    """The first mutation of each line: one with many operators is drawn no more often."""
    seen, firsts = set(), []
    for one in drawn:
        place = (one["file"], one["line"])
        if place not in seen:
            seen.add(place)
            firsts.append(one)
    return firsts


# ---- the copy ----


def run(*command, **keywords) -> subprocess.CompletedProcess:
    """Run a program and keep what it says."""
    return subprocess.run(command, capture_output=True, text=True, check=False, **keywords)


def tree_make() -> None:
    """Copy the tree, configure it and build it. Warnings pass, since mutations cause them."""
    TREE.mkdir(parents=True, exist_ok=True)
    listed = run("git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard").stdout.split("\n")
    wanted = {name for name in listed if name and (ROOT / name).is_file()}
    for name in wanted:
        to, source = TREE / name, ROOT / name
        if not to.exists() or to.read_bytes() != source.read_bytes():
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, to)
            os.utime(to)
    kept = run("git", "-C", str(ROOT), "ls-files").stdout
    for folder in ("src", "sim", "tests", "python"):
        for path in (TREE / folder).rglob("*"):
            name = str(path.relative_to(TREE))
            if path.is_file() and name not in wanted and "__pycache__" not in name and kept:
                path.unlink()
    environment = TREE / ".venv"
    if not environment.exists():
        environment.symlink_to(ROOT / ".venv")
    if not (BUILD / "build.ninja").exists():
        made = run(
            *("cmake", "-S", str(TREE), "-B", str(BUILD), "-G", "Ninja"),
            "-DCMAKE_BUILD_TYPE=Mutate",
            f"-DPython3_EXECUTABLE={ROOT}/.venv/bin/python",
        )
        if made.returncode:
            sys.exit(made.stderr)
    made = run("ninja", "-C", str(BUILD))
    if made.returncode:
        sys.exit(made.stdout[-3000:])


def object_of(name: str) -> str:
    """The object of a file, as ninja calls it."""
    listed = run("ninja", "-C", str(BUILD), "-t", "query", str(TREE / name)).stdout
    return next((one.strip() for one in listed.split("\n") if one.strip().endswith(".c.o")), "")


def code_of(path: Path) -> bytes:
    """What the compiler made, without where it made it."""
    return (
        run("objdump", "-drs", "--no-show-raw-insn", str(path)).stdout.split("\n", 3)[-1].encode()
    )


# ---- tests ----


def test_text(test: str) -> str:
    """The source of a file of pytest; nothing for a program of ctest."""
    path = ROOT / "tests" / "python" / test
    return path.read_text() if path.is_file() else ""


class Tests:
    """What to run for a line."""

    def __init__(self) -> None:
        self.known = result_load()["tests"]
        self.found = ctest_tests(BUILD) | pytest_tests(BUILD)
        self.kills: dict[str, dict[str, int]] = {}
        self.sound: set[str] = set()
        self.lines = {
            name: {path: set(some) for path, some in test["lines"].items()}
            for name, test in self.known.items()
            if test["passed"] and name in self.found
        }

    def reaching(self, name: str, line: int, text: list[str]) -> list[str]:
        """The tests that reach a line: those first that are short, or found something there."""
        # A statement of several lines is counted at its first or last one.
        begin = line
        while begin > 1 and not re.search(r"[;{}:]\s*$|^\s*$", text[begin - 2]):
            begin -= 1
        end = line
        while end < len(text) and not re.search(r"[;{}]\s*$", text[end - 1]):
            end += 1
        wanted = set(range(begin, end + 1))
        some = [test for test, lines in self.lines.items() if wanted & lines.get(name, set())]
        if not some:  # a table, a constant, or what nothing reaches
            some = [test for test, lines in self.lines.items() if name in lines]
            if not some:  # a file without code: the tests of Python that name it
                some = [test for test in self.found if name in test_text(test)]
            return sorted(some, key=self.seconds)[:FILE_TESTS]
        kills = self.kills.get(name, {})
        return sorted(some, key=lambda one: self.seconds(one) / (1 + 4 * kills.get(one, 0)))

    def seconds(self, test: str) -> float:
        """How long a test takes; a guess where `make coverage` did not run it."""
        return self.known[test]["seconds"] if test in self.known else 10

    def run(self, test: str) -> str:
        """Build and run one test; gives why it fails, or nothing."""
        what = self.found[test]
        program = next((one for one in what["command"] if one.startswith(str(BUILD))), None)
        if program is None:
            targets = ["genesis", "genesis_python", "genesis_sim"]
        else:
            targets = [os.path.relpath(program, BUILD)]
        made = run("ninja", "-C", str(BUILD), *targets)
        if made.returncode:
            return "does not link: " + made.stdout[-200:]
        # The processor's time does not depend on what else the machine does; who hangs uses none.
        usual = self.seconds(test)
        limit = 120 + 30 * usual
        passed, seconds = test_run(what, limit, int(20 + 10 * usual))
        if passed:
            return ""
        return "hangs" if seconds >= limit else "fails"


def mutation_look(one: dict, tests: Tests) -> dict:
    """Make a mutation in the copy, look for a test that fails, and take it back."""
    path = TREE / one["file"]
    before = path.read_text()
    lines = before.split("\n")
    text = lines[:]
    text[one["line"] - 1] = one["text"]
    built = object_of(one["file"])
    if not built:
        return {"outcome": "same code", "by": "not compiled here"}
    plain = code_of(BUILD / built)
    path.write_text("\n".join(text))
    try:
        made = run("ninja", "-C", str(BUILD), built)
        if made.returncode:
            return {"outcome": "same code", "by": "does not compile"}
        if code_of(BUILD / built) == plain:
            return {"outcome": "same code", "by": "the compiler"}
        spent, ran = 0.0, 0
        for test in tests.reaching(one["file"], one["line"], lines):
            begin = time.monotonic()
            why = tests.run(test)
            ran += 1
            if why:
                return {"outcome": "found", "by": f"{test} {why}", "test": test}
            spent += time.monotonic() - begin
            if spent > BUDGET:
                break
        return {
            "outcome": "survives",
            "by": f"{ran} tests" + (", not all" if spent > BUDGET else ""),
        }
    finally:
        path.write_text(before)
        run("ninja", "-C", str(BUILD), built)


def mutation_try(one: dict, tests: Tests) -> dict:
    """What becomes of a mutation, by tests that pass without it."""
    while True:
        outcome = mutation_look(one, tests)
        test = outcome.pop("test", None)
        if test is None:
            return outcome
        if test in tests.sound or not tests.run(test):
            tests.sound.add(test)
            kills = tests.kills.setdefault(one["file"], {})
            kills[test] = kills.get(test, 0) + 1
            return outcome
        print(f"{test} fails without a mutation: it is left out", file=sys.stderr, flush=True)
        tests.lines.pop(test, None)
        del tests.found[test]


# ---- jobs ----

TESTS: Tests | None = None


def job_start(numbers) -> None:
    """Take a number, make the copy of that number, and learn the tests."""
    global TREE, BUILD, TESTS
    TREE = WORK / f"tree-{numbers.get()}"
    BUILD = TREE / "build"
    tree_make()
    TESTS = Tests()


def job_try(one: dict) -> dict:
    """A mutation, in the copy of this job."""
    return mutation_try(one, TESTS)


def mutations_try(drawn: list[dict], options: argparse.Namespace, outcomes: dict) -> None:
    """Try mutations in the order in which they are drawn, until enough are known."""
    end = time.monotonic() + 3600 * options.hours
    numbers = multiprocessing.Queue()
    for number in range(options.jobs):
        numbers.put(number)
    known = real = 0  # how many of `drawn` are begun or known, and how many of them count
    running: dict[concurrent.futures.Future, dict] = {}
    with concurrent.futures.ProcessPoolExecutor(
        options.jobs, initializer=job_start, initargs=(numbers,)
    ) as pool:
        while True:
            while known < len(drawn) and real < options.count and len(running) < options.jobs:
                one = drawn[known]
                if one["key"] in outcomes and one["key"] not in options.again:
                    real += outcomes[one["key"]]["outcome"] != "same code"
                elif time.monotonic() < end:
                    running[pool.submit(job_try, one)] = one
                    real += 1
                else:
                    break
                known += 1
            if not running:
                return
            done = concurrent.futures.wait(running, return_when="FIRST_COMPLETED").done
            for future in done:
                one = running.pop(future)
                outcome = outcomes[one["key"]] = future.result()
                real -= outcome["outcome"] == "same code"
                OUTCOMES.write_text(json.dumps(outcomes, indent=1))
                print(described(one, outcome), flush=True)


# ---- what is written ----


def reasons_read() -> dict[str, str]:
    """What people wrote behind "equivalent:", by key."""
    if not SURVIVORS.exists():
        return {}
    found = re.findall(
        r"^## (\w{12}) .*?^equivalent:(.*?)(?=^## |\Z)", SURVIVORS.read_text(), re.M | re.S
    )
    return {key: " ".join(reason.split()) for key, reason in found}


def survivors_write(drawn: list[dict], outcomes: dict) -> int:
    """Write the file of survivors; gives how many percent have no reason."""
    reasons = reasons_read()
    tried = [
        one for one in drawn if outcomes.get(one["key"], {}).get("outcome") in ("found", "survives")
    ]
    alive = [one for one in tried if outcomes[one["key"]]["outcome"] == "survives"]
    open_ones = [one for one in alive if not reasons.get(one["key"])]
    percent = 100 * len(open_ones) / max(1, len(tried))
    text = [
        "# Mutations that no test finds",
        "",
        "`tools/mutate.py` writes this file, and keeps what a person writes behind `equivalent:`",
        "(why the program does the same, or nothing worse, with the mutation).",
        "",
        f"{len(tried)} mutations: {len(tried) - len(alive)} found, "
        f"{len(alive) - len(open_ones)} equivalent, {len(open_ones)} open ({percent:.1f} %).",
    ]
    for one in sorted(alive, key=lambda one: (one["file"], one["line"])):
        text += [
            "",
            f"## {one['key']} {one['file']}:{one['line']}",
            "",
            "```diff",
            f"-{one['before']}",
            f"+{one['after']}",
            "```",
            "",
            f"equivalent: {reasons.get(one['key'], '')}".rstrip(),
        ]
    SURVIVORS.write_text("\n".join(text) + "\n")
    return percent


def described(one: dict, known: dict) -> str:
    """A mutation and what became of it, in a line."""
    place = f"{known['outcome']:9} {one['key']} {one['file']}:{one['line']}"
    return f"{place}: {one['before']}  ->  {one['after']}  ({known['by']})"


def main() -> int:
    """Try so many mutations."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--hours", type=float, default=24, help="begin no mutation after that")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time")
    parser.add_argument("--again", nargs="*", default=[], help="keys to try once more")
    parser.add_argument("--at", nargs="*", default=[], metavar="FILE:LINE")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--write", action="store_true", help="write the survivors, and try nothing")
    options = parser.parse_args()
    drawn = mutations_draw(options.seed, options.only)
    if options.at:
        drawn = [one for one in drawn if f"{one['file']}:{one['line']}" in options.at]
        tree_make()
        tests = Tests()
        for one in drawn:
            print(described(one, mutation_try(one, tests)), flush=True)
        return 0
    drawn = one_of_each_line(drawn)
    if options.list:
        for one in drawn[: options.count]:
            print(described(one, {"outcome": "", "by": ""}))
        return 0
    outcomes = json.loads(OUTCOMES.read_text()) if OUTCOMES.exists() else {}
    if not options.write:
        mutations_try(drawn, options, outcomes)
    chosen, count = [], 0
    for one in drawn:
        if count < options.count and one["key"] in outcomes:
            chosen.append(one)
            count += outcomes[one["key"]]["outcome"] != "same code"
    percent = survivors_write(chosen, outcomes)
    print(f"{count} mutations, {percent:.1f} % survive without a reason")
    return 0 if percent <= ALLOWED else 1


if __name__ == "__main__":
    sys.exit(main())
