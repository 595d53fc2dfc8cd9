"""``python -m genesis run``: an unchanged script, with Genesis under the frameworks it uses."""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments; what follows the script is for the script."""
    parser.add_argument(
        "--under",
        default="torch",
        metavar="NAMES",
        help="torch (the default), cupy, numba, or several: torch,cupy",
    )
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)


def _summary() -> str:
    from genesis import _memory
    from genesis._memory_analysis import summary_text

    return "\n\n".join(summary_text(manager) for manager in _memory.used_managers())


def run(arguments: argparse.Namespace) -> int:
    """Enable the adapters, run the script, and tell about its memory on standard error."""
    from genesis import adapters

    names = [name.strip() for name in arguments.under.split(",")]
    if not Path(arguments.script).exists():
        print(f"genesis: there is no file {arguments.script}", file=sys.stderr)
        return 2
    try:
        for name in names:
            adapters.get(name).enable()
    except (ImportError, RuntimeError, ValueError) as error:
        print(f"genesis: {error}", file=sys.stderr)
        return 2
    sys.argv = [arguments.script, *arguments.arguments]
    sys.path[0] = str(Path(arguments.script).resolve().parent)
    try:
        runpy.run_path(arguments.script, run_name="__main__")
    finally:
        print(_summary(), file=sys.stderr)
    return 0
