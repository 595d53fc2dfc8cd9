"""What ``import genesis`` costs over bare Python: medians of interleaved fresh interpreters."""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
import sys
import time

ROUNDS = 21


def milliseconds(code: str) -> float:
    """The wall time of one fresh interpreter that runs the code."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return (time.perf_counter() - start) * 1e3


def main() -> None:
    """Print the table."""
    codes = {"bare Python": "pass", "import genesis": "import genesis"}
    if importlib.util.find_spec("numpy"):
        codes["import numpy"] = "import numpy"
    times: dict[str, list[float]] = {name: [] for name in codes}
    for _ in range(ROUNDS):
        for name, code in codes.items():
            times[name].append(milliseconds(code))
    bare = statistics.median(times["bare Python"])
    print("| program | ms | more than bare Python, ms |\n|---|---|---|")
    for name, values in times.items():
        median = statistics.median(values)
        print(f"| {name} | {median:.1f} | {median - bare:.1f} |")


if __name__ == "__main__":
    main()
