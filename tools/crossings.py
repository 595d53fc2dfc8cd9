#!/usr/bin/env python3
"""Counts the calls, and the calls between files, that one expression makes: tools/crossings.c.

    tools/crossings.py [BUILD] [--list]

Builds in BUILD (build-crossings), and prints `calls N` and `crossings N`, with --list after every
call. A crossing is a call from a function of one file to a function of another.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def build(folder: Path) -> Path:
    """Build the program, and return it."""
    if not (folder / "build.ninja").exists():
        options = ("TESTS", "PYTHON", "SIM")
        subprocess.run(
            ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Crossings"]
            + [f"-DGENESIS_{option}=OFF" for option in options],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    subprocess.run(["ninja", "-C", folder, "--quiet", "crossings"], check=True)
    return folder / "crossings"


def places(program: Path, addresses: list[str]) -> dict[str, tuple[str, str]]:
    """Find the function and the file of each address."""
    text = subprocess.run(
        ["addr2line", "-f", "-e", program],
        input="\n".join(addresses),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
    files = [os.path.relpath(line.rsplit(":", 1)[0], ROOT) for line in text[1::2]]
    return dict(zip(addresses, zip(text[0::2], files, strict=False), strict=False))


def main() -> int:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", nargs="?", type=Path, default=ROOT / "build-crossings")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    program = build(arguments.build)
    # Options of the caller's environment must not change what is counted.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GENESIS_")}
    output = subprocess.run(
        [program], capture_output=True, text=True, check=True, env=environment
    ).stdout
    calls = [line.split() for line in output.splitlines()]
    known = places(program, sorted({address for call in calls for address in call}))
    crossings = 0
    for caller, callee in calls:
        is_crossing = known[caller][1] != known[callee][1]
        crossings += is_crossing
        if arguments.list:
            where = ["  {} ({})".format(*known[address]) for address in (caller, callee)]
            print("X" if is_crossing else " ", " ->".join(where))
    print(f"calls {len(calls)}")
    print(f"crossings {crossings}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
