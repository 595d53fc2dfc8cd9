"""Processes that put Genesis under frameworks, work, and end: none may crash, in any order.

    python tests/adapter/adapter_cycles.py [COUNT [AT_ONCE [SECONDS]]]

Each process imports Genesis, PyTorch, CuPy and Numba (a random subset of them, in a random order),
enables the adapters in another order, works a little, and ends in one of several ways, often with
arrays still alive. A GPU is needed. The exit status says whether all ended as they should.

A fresh process costs what its imports cost, so that most have one framework, and few have PyTorch,
which takes longest: 1000 are meant to take less than 400 s on 16 processors. After SECONDS no
process is started any more, and the report says how many were.
"""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

SUBSETS = {  # of 100 processes
    ("torch",): 12,
    ("cupy",): 34,
    ("numba",): 34,
    ("cupy", "torch"): 5,
    ("numba", "torch"): 5,
    ("cupy", "numba"): 6,
    ("cupy", "numba", "torch"): 4,
}
# A library that starts a thread for each processor when it is imported costs all the others more.
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
IMPORTS = {
    "genesis": "import genesis",
    "torch": "import torch",
    "cupy": "import cupy",
    "numba": "import numba.cuda",
}
WORK = {
    "torch": """
x = torch.randn(300, 300, device="cuda")
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    y = (x @ x if number % 4 == 0 else x + x).sum()
y.record_stream(torch.cuda.current_stream())
assert y.item() == y.item()
""",
    "cupy": """
c = cupy.arange(1000.0)
with cupy.cuda.Stream(non_blocking=True) as stream:
    d = (c * 2).sum()
stream.synchronize()
assert float(d) == 999000
""",
    "numba": """
n = numba.cuda.to_device(numpy.arange(1000.0))
assert n.copy_to_host().sum() == 499500
""",
}
ENDS = {
    "by the end of the program": ("", 0),
    "with everything freed": ("x = y = c = d = n = None", 0),
    "by sys.exit": ("import sys; sys.exit(7)", 7),
    "by an exception": ("raise ZeroDivisionError", 1),
    "with a cycle of references": ("loop = []; loop.append((loop, globals()))", 0),
    "with a thread at work": (
        """
import threading, time
def work():
    while True:
        block = genesis.memory_manager.allocate_memory(1 << 20)
        genesis.memory_manager.free_memory(block)
        time.sleep(0.0001)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.02)
""",
        0,
    ),
    "while recording": (
        "genesis.enable_memory_profiling(True); k = genesis.memory_manager.allocate_memory(5)",
        0,
    ),
}


class Program(NamedTuple):
    """A program, what is in it, and the exit status that it should have."""

    text: str
    imports: tuple[str, ...]
    enables: tuple[str, ...]
    end: str
    status: int


def make_program(number: int, imports: tuple[str, ...], choose: random.Random) -> Program:
    """One that imports in this order."""
    names = sorted(set(imports) - {"genesis"})
    enables = choose.sample(names, len(names))
    works = [WORK[name] for name in choose.sample(names, len(names))]
    how = choose.choice(sorted(ENDS))
    end, status = ENDS[how]
    lines = [
        f"number = {number}",
        "import numpy",
        *(IMPORTS[name] for name in imports),
        "from genesis import adapters",
        *(f"adapters.get({name!r}).enable()" for name in enables),
        *works,
        end,
    ]
    return Program("\n".join(lines), imports, tuple(enables), how, status)


def make_programs(count: int) -> list[Program]:
    """Random ones, the same each time; the orders of imports take turns, so that none is missed."""
    choose = random.Random(0)
    orders = {
        names: itertools.cycle(itertools.permutations(("genesis", *names))) for names in SUBSETS
    }
    subsets = choose.choices(list(SUBSETS), SUBSETS.values(), k=count)
    return [make_program(i, next(orders[names]), choose) for i, names in enumerate(subsets)]


class Outcome(NamedTuple):
    """How a process ended: what was wrong, or nothing, and how long it took."""

    program: Program
    wrong: str
    seconds: float


def run(number: int, program: Program, last_start: float) -> Outcome | None:
    """Run a program, unless it is too late."""
    begin = time.monotonic()
    if begin > last_start:
        return None
    try:
        finished = subprocess.run(
            [sys.executable, "-c", program.text],
            env=os.environ | ONE_THREAD,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        status, told = finished.returncode, finished.stderr
    except subprocess.TimeoutExpired:
        status, told = "a hang", ""
    wrong = ""
    if status != program.status:
        what = f"imports {', '.join(program.imports)}; enables {', '.join(program.enables)}"
        wrong = f"{number}: {what}; ends {program.end}: {status}, not {program.status}\n{told}"
    return Outcome(program, wrong, time.monotonic() - begin)


def report(outcomes: list[Outcome]) -> None:
    """Say what was covered, and what it cost."""
    programs = [one.program for one in outcomes]
    orders = Counter(one.imports for one in programs)
    enables = Counter(one.enables for one in programs)
    ends = Counter((tuple(sorted(one.enables)), one.end) for one in programs)
    print(f"{len(orders)} orders of imports, each {min(orders.values())} times or more")
    print(f"{len(enables)} orders of enabling, each {min(enables.values())} times or more")
    print(f"{len(ends)} of {len(SUBSETS) * len(ENDS)} pairs of frameworks and ends")
    for names in SUBSETS:
        times = [one.seconds for one in outcomes if sorted(one.program.enables) == list(names)]
        if times:
            mean = sum(times) / len(times)
            print(f"{' and '.join(names)}: {len(times)} processes, {mean:.1f} s each")


def main() -> int:
    """Run them all."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    at_once = int(sys.argv[2]) if len(sys.argv) > 2 else os.cpu_count() or 1
    begin = time.monotonic()
    last_start = begin + (float(sys.argv[3]) if len(sys.argv) > 3 else float("inf"))
    with ThreadPoolExecutor(at_once) as workers:
        programs = enumerate(make_programs(count))
        tried = workers.map(lambda one: run(*one, last_start), programs)
        outcomes = [one for one in tried if one is not None]
    wrong = [one.wrong for one in outcomes if one.wrong]
    print("\n".join(wrong[:10]))
    if outcomes:
        report(outcomes)
    print(
        f"{len(outcomes)} of {count} processes in {time.monotonic() - begin:.0f} s, "
        f"{len(wrong)} ended as they should not"
    )
    return 1 if wrong or len(outcomes) < count else 0


if __name__ == "__main__":
    sys.exit(main())
