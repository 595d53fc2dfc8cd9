"""Processes that put Genesis under frameworks, work, and end: none may crash, in any order.

    python tests/adapter_cycles.py [COUNT [AT_ONCE]]

Each process imports Genesis, PyTorch, CuPy and Numba (a random subset of them, in a random order),
enables the adapters in another order, works a little, and ends in one of several ways, often with
arrays still alive. A GPU is needed. The exit status says whether all ended as they should.
"""

from __future__ import annotations

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

IMPORTS = {"torch": "import torch", "cupy": "import cupy", "numba": "import numba.cuda"}
WORK = {
    "torch": """
x = torch.randn(300, 300, device="cuda")
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    y = (x @ x).sum()
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


def program(seed: int) -> tuple[str, str, int]:
    """A program, what it is, and the exit status that it should have."""
    choose = random.Random(seed)
    names = choose.sample(sorted(IMPORTS), choose.choice((1, 1, 2, 3)))
    imports = ["import genesis", *(IMPORTS[name] for name in names)]
    choose.shuffle(imports)
    enables = [f"adapters.get({name!r}).enable()" for name in choose.sample(names, len(names))]
    works = [WORK[name] for name in choose.sample(names, len(names))]
    how = choose.choice(sorted(ENDS))
    end, status = ENDS[how]
    lines = ["import numpy", *imports, "from genesis import adapters", *enables, *works, end]
    return "\n".join(lines), f"{'; '.join(imports)}: ends {how}", status


def run(seed: int) -> str:
    """Run the program of a seed; what was wrong with it, or nothing."""
    text, what, status = program(seed)
    finished = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=300
    )
    if finished.returncode == status:
        return ""
    return f"seed {seed}: {what}: {finished.returncode}, not {status}\n{finished.stderr}"


def main() -> int:
    """Run them all."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    at_once = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    with ThreadPoolExecutor(at_once) as workers:
        wrong = [told for told in workers.map(run, range(count)) if told]
    print("\n".join(wrong[:10]))
    print(f"{count} processes, {len(wrong)} ended as they should not")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
