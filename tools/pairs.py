#!/usr/bin/env python3
"""Runs benchmarks with two builds in turns, and says which figures got slower.

    tools/pairs.py [--pairs 9] [--build build] [--below 0.97] OLD NEW PROGRAM [ARGUMENT ...]

OLD and NEW are trees that are built. PROGRAM is a Python program of bench/ (NEW's is run with both
libraries) or a program in the build folder, such as bench/alloc/bench_alloc_cpu (each tree's own).
In an ARGUMENT, {BUILD} and {TREE} stand for the build folder and the tree that is measured.

PROGRAM prints Markdown tables. A figure is a cell under a heading that names Genesis and a unit of
time; where no heading of a table names Genesis, every heading with a unit of time counts. A ratio
is OLD's time over NEW's in one pair: above 1 the new build is faster. The medians of the pairs are
printed, the slowest first, and how many of them are below the limit.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

UNIT = re.compile(r"\b(ns|us|ms|s)\b")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def cells_of(line: str) -> list[str]:
    """The cells of a row of a table; a bar inside backquotes is text."""
    guarded = re.sub(r"`[^`]*`", lambda found: found.group().replace("|", "\0"), line.strip())
    return [cell.strip().replace("\0", "|") for cell in guarded.strip("|").split("|")]


def is_figure(heading: str, headings: list[str]) -> bool:
    """Whether a column holds times of Genesis."""
    if "/" in heading or not UNIT.search(heading):
        return False
    has_genesis = any("Genesis" in other for other in headings)
    return "Genesis" in heading or not has_genesis


def figures_of(text: str) -> dict[str, float]:
    """Every time of Genesis in a program's output, by the name of its row and column."""
    figures: dict[str, float] = {}
    heading_line, title, headings = "", "", []
    for line in text.splitlines():
        if not line.startswith("|"):
            headings = []
            if line.strip():
                title = line.strip()[:60]
        elif set(line) <= set("|-: "):
            headings = cells_of(heading_line)
        elif headings:
            cells = cells_of(line)
            columns = [i for i, heading in enumerate(headings) if is_figure(heading, headings)]
            # A ratio and a peer's time vary: the name of a row is what is no number.
            names = [c for i, c in enumerate(cells) if i not in columns and not NUMBER.fullmatch(c)]
            for i in columns:
                if i < len(cells) and (found := NUMBER.match(cells[i])):
                    name = f"{', '.join(names)}: {headings[i]}"
                    name = name if name not in figures else f"{title}: {name}"
                    figures[name] = float(found.group())
        heading_line = line
    return figures


def run_once(tree: Path, new: Path, build: str, command: list[str]) -> dict[str, float]:
    """The figures of one run of a program with the library of a tree."""
    program = command[0]
    is_python = program.endswith(".py")
    words = [sys.executable, str(new / program)] if is_python else [str(tree / build / program)]
    environment = dict(os.environ)
    environment["PYTHONPATH"] = str(tree / build / "python")
    environment["BENCH_LIBRARY"] = str(tree / build / "libgenesis.so")
    place = {"BUILD": str(tree / build), "TREE": str(tree)}
    arguments = [argument.format(**place) for argument in command[1:]]
    finished = subprocess.run(
        words + arguments, env=environment, cwd=tree, capture_output=True, text=True, check=False
    )
    if finished.returncode != 0:
        raise SystemExit(
            f"{' '.join(words)} of {tree} ended with {finished.returncode}:\n"
            f"{finished.stderr[-2000:]}"
        )
    return figures_of(finished.stdout)


def main() -> None:
    """Reads the command line, runs the pairs and prints their medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--build", default="build")
    parser.add_argument("--below", type=float, default=0.97)
    parser.add_argument("--worst", type=int, default=25, help="how many lines are printed")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    chosen = parser.parse_args()
    if not chosen.command:
        parser.error("no program is named")
    old, new = chosen.old.resolve(), chosen.new.resolve()
    runs: dict[str, list[tuple[float, float]]] = {}
    for pair in range(chosen.pairs):
        order = (old, new) if pair % 2 == 0 else (new, old)
        times = {tree: run_once(tree, new, chosen.build, chosen.command) for tree in order}
        for name, time in times[new].items():
            if name in times[old] and time > 0:
                runs.setdefault(name, []).append((times[old][name], time))
    rows = []
    for name, pairs in runs.items():
        ratio = statistics.median(before / after for before, after in pairs)
        rows.append((ratio, name, *(statistics.median(side) for side in zip(*pairs, strict=True))))
    rows.sort()
    if not rows:
        raise SystemExit(f"{chosen.command[0]} printed no figure of Genesis that both builds have")
    print(f"{' '.join(chosen.command)}: {chosen.pairs} pairs\n")
    print("| figure | old | new | old / new |\n|---|---|---|---|")
    for ratio, name, before, after in rows[: chosen.worst]:
        print(f"| {name} | {before:.4g} | {after:.4g} | {ratio:.3f} |")
    mean = math.exp(statistics.fmean(math.log(max(row[0], 1e-9)) for row in rows))
    few = sum(row[0] < chosen.below for row in rows)
    print(f"\n{len(rows)} figures, {few} below {chosen.below}; geometric mean {mean:.3f}.")


if __name__ == "__main__":
    main()
