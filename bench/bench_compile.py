"""How long NVRTC takes for kernels that nobody has compiled before, beside an empty kernel.

    python bench/bench_compile.py [--count 60] [--architecture 90] [--keep DIRECTORY]

Random expressions of 6 operations (sin, cos, tanh, exp, sigmoid and others), of four types, by
themselves, summed as a whole, and summed by rows. The simulated GPU makes their texts, which
GENESIS_KERNEL_SOURCE_DIR keeps; NVRTC, which needs no GPU, compiles each by itself. Each time is
divided by that of an empty kernel that was compiled just before and after: machines differ, and are
shared. Prints the ratios, the bytes of the texts and of the machine code.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

EMPTY = b'extern "C" __global__ void empty() {}\n'
OPTIONS = [b"--fmad=false"]
NAMES = ("libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so")


def expressions(count: int) -> None:
    """Compute random expressions, so that their kernels are made."""
    import genesis

    operations = [
        lambda x, y: x + y,
        lambda x, y: x * y,
        lambda x, y: x - y,
        lambda x, y: x / (y * y + 1),
        lambda x, y: x.sin(),
        lambda x, y: x.cos(),
        lambda x, y: x.tanh(),
        lambda x, y: x.exp(),
        lambda x, y: x.sigmoid(),
        lambda x, y: (x * x + 1).log(),
        lambda x, y: x.maximum(y),
        lambda x, y: x.abs().sqrt(),
        lambda x, y: x.relu(),
    ]
    choice = random.Random(1)
    for number in range(count):
        dtype = [genesis.float32, genesis.float16, genesis.bfloat16, genesis.float64][number % 4]
        x, y = (genesis.ones(1000, device="cuda", dtype=dtype) for _ in range(2))
        made = x
        for _ in range(6):
            made = choice.choice(operations)(made, y)
        form = number // 4 % 3
        made = made if form == 0 else made.sum() if form == 1 else made.view(10, 100).sum(1)
        made.cpu()


def texts_make(count: int, directory: str) -> list[Path]:
    """Texts of kernels, in files of a directory."""
    package = Path(__file__).resolve().parents[1] / "build"
    environment = os.environ | {
        "GENESIS_CUDA_DRIVER": str(package / "libgenesis_sim.so"),
        "GENESIS_KERNEL_SOURCE_DIR": directory,
        "GENESIS_KERNEL_CACHE_DIR": directory + "/cache",
        "PYTHONPATH": str(package / "python"),
    }
    command = [sys.executable, __file__, "--make", str(count)]
    subprocess.run(command, env=environment, check=True)
    return sorted(path for path in Path(directory).glob("*.cu") if "copy" not in path.name)


class Nvrtc:
    """NVRTC as a program of its own would call it."""

    def __init__(self, architecture: int) -> None:
        for name in NAMES:
            try:
                self.library = ctypes.CDLL(name)
                break
            except OSError:
                continue
        else:
            sys.exit("there is no NVRTC")
        self.options = [b"--gpu-architecture=sm_%d" % architecture, *OPTIONS]

    def compile(self, text: bytes) -> tuple[float, int]:
        """Seconds, and bytes of machine code."""
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        options = (ctypes.c_char_p * len(self.options))(*self.options)
        start = time.perf_counter()
        self.library.nvrtcCreateProgram(ctypes.byref(program), text, b"kernel.cu", 0, None, None)
        failed = self.library.nvrtcCompileProgram(program, len(options), options)
        took = time.perf_counter() - start
        if failed:
            sys.exit(f"this does not compile:\n{text.decode()}")
        self.library.nvrtcGetCUBINSize(program, ctypes.byref(size))
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        return took, size.value


def main() -> None:
    """Make texts, compile them, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--architecture", type=int, default=90)
    parser.add_argument("--keep", metavar="DIRECTORY")
    parser.add_argument("--make", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make is not None:
        expressions(given.make)
        return
    with tempfile.TemporaryDirectory() as scratch:
        paths = texts_make(given.count, given.keep or scratch)
        nvrtc = Nvrtc(given.architecture)
        nvrtc.compile(EMPTY)
        rows = []
        for path in paths:
            text = path.read_bytes()
            rounds = [(nvrtc.compile(EMPTY)[0], nvrtc.compile(text)) for _ in range(3)]
            empty = min(one for one, _ in rounds)
            took, code = min(made for _, made in rounds)
            rows.append((took / empty, took * 1e3, len(text), code, path.stem.rpartition("_")[0]))
    rows.sort()
    print("| ratio | ms | bytes of text | of machine code | kernel |\n|---|---|---|---|---|")
    for ratio, took, text, code, name in [*rows[:: max(1, len(rows) // 10)], rows[-1]]:
        print(f"| {ratio:.1f} | {took:.0f} | {text} | {code} | {name} |")
    print(
        f"\n{len(rows)} kernels: median {median(row[0] for row in rows):.1f} times an empty one, "
        f"worst {rows[-1][0]:.1f}; text at most {max(row[2] for row in rows)} bytes"
    )


if __name__ == "__main__":
    main()
