"""Genesis's memory manager beside PyTorch's and the driver's, from C++, on a GPU.

Builds torch_peer.cpp as an extension of PyTorch and prints tables in Markdown. The peers take turns
in every round, and a ratio is the median of the ratios within the rounds. ``--without-torch``
leaves PyTorch out, to check the rest on a machine without it (with ``GENESIS_CUDA_DRIVER=sim`` and
``--shrink 64`` also without a GPU, where no figure means anything).
"""

from __future__ import annotations

import argparse
import ctypes
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import (
    GIB,
    GROUPS,
    MIB,
    ROOT,
    Genesis,
    Scenario,
    driver_path,
    median,
    print_head,
    print_row,
    ratio,
    scenarios,
)

HERE = Path(__file__).resolve().parent
TORCH, POINTER, HANDLE, DRIVER = range(4)
NAMES = ("PyTorch", "Genesis pointer", "Genesis handle", "cuMemAllocAsync")
TARGETS = {"one size": 12, "variable": 10, "transformer": 10, "pressure": 10}
TABLES = ("scenarios", "threads", "misses", "warm-up")
THREADS_TARGET = 40  # at 8 threads
OWN_PAIRS = 10  # of ours, for each of the others'
RESERVED_TARGET = 1.1  # times PyTorch's peak, at most


def build(with_torch: bool) -> ctypes.CDLL:
    """Compile torch_peer.cpp and load it."""
    source = HERE / "torch_peer.cpp"
    includes = [str(ROOT / "include"), str(HERE)]
    if with_torch:
        from torch.utils.cpp_extension import load

        os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "9.0")
        module = load(
            "genesis_torch_peer",
            [str(source)],
            extra_cflags=["-O2"],
            extra_include_paths=includes,
            with_cuda=True,
            verbose=False,
        )
        return ctypes.CDLL(module.__file__)
    folder = tempfile.mkdtemp(prefix="genesis-peer-")
    target = f"{folder}/peer.so"
    flags = ["-std=c++17", "-O2", "-DPEER_WITHOUT_TORCH", "-fPIC", "-shared", "-pthread"]
    command = [os.environ.get("CXX", "c++"), *flags, *(f"-I{i}" for i in includes)]
    subprocess.run([*command, str(source), "-o", target, "-ldl"], check=True)
    return ctypes.CDLL(target)


class Peers:
    """The loops of torch_peer.cpp for every peer that is there."""

    def __init__(self, with_torch: bool, with_driver: bool) -> None:
        self.torch = None
        if with_torch:
            import torch

            torch.zeros(1, device="cuda")
            torch.cuda.synchronize()
            self.torch = torch
        self.genesis = Genesis("cuda")
        self.genesis.configure(has_detailed_statistics=True)
        self.library = build(with_torch)
        self.library.peer_error.restype = ctypes.c_char_p
        self.kinds = [POINTER, HANDLE]
        path = os.fsencode(self.genesis.path)
        if self.library.peer_open_genesis(path, self.genesis.manager) != 0:
            sys.exit(self.error())
        if with_torch:
            self.kinds.insert(0, TORCH)
            if self.library.peer_open_torch() != 0:
                sys.exit(self.error())
        if not with_driver:
            return
        if self.library.peer_open_driver(driver_path().encode()) == 0:
            self.kinds.append(DRIVER)
        else:
            print(f"left out: cuMemAllocAsync: {self.error()}", file=sys.stderr)

    def error(self) -> str:
        """What went wrong."""
        return self.library.peer_error().decode()

    def call(self, function: str, kind: int, *arguments: object) -> float:
        """Call a loop; nanoseconds, or NaN where it failed."""
        result = ctypes.c_double(math.nan)
        if getattr(self.library, function)(kind, *arguments, ctypes.byref(result)) != 0:
            print(f"{NAMES[kind]}: {function}: {self.error()[:300]}", file=sys.stderr)
            return math.nan
        return result.value

    def run(self, kind: int, scenario: Scenario) -> float:
        """Nanoseconds per pair."""
        count = ctypes.c_size_t(len(scenario.steps))
        slots = ctypes.c_size_t(scenario.slot_count)
        return self.call("peer_run", kind, scenario.steps, count, slots) / scenario.alloc_count

    def quantile(self, kind: int, scenario: Scenario, part: float) -> float:
        """Nanoseconds that this part of the single steps stays below."""
        count = ctypes.c_size_t(len(scenario.steps))
        slots = ctypes.c_size_t(scenario.slot_count)
        part_double = ctypes.c_double(part)
        return self.call("peer_quantile", kind, scenario.steps, count, slots, part_double)

    def threads(self, kind: int, count: int, nbytes: int, pairs: int) -> float:
        """Nanoseconds of the wall clock per pair, over all threads."""
        arguments = (ctypes.c_size_t(n) for n in (count, nbytes, pairs))
        return self.call("peer_threads", kind, *arguments) / (count * pairs)

    def handoff(self, kind: int, scenario: Scenario) -> float:
        """Nanoseconds per pair where one thread allocates and another frees."""
        count = ctypes.c_size_t(len(scenario.steps))
        return self.call("peer_handoff", kind, scenario.steps, count) / len(scenario.steps)

    def each(self, kind: int, sizes: list[int]) -> list[float]:
        """Nanoseconds of each allocation by itself."""
        times = (ctypes.c_double * len(sizes))()
        array = (ctypes.c_uint64 * len(sizes))(*sizes)
        if self.library.peer_each(kind, array, ctypes.c_size_t(len(sizes)), times) != 0:
            print(f"{NAMES[kind]}: peer_each: {self.error()[:300]}", file=sys.stderr)
            return [math.nan] * len(sizes)
        return list(times)

    def empty(self) -> None:
        """Have every peer give back what it keeps, and forget its peaks."""
        if self.torch:
            self.torch.cuda.synchronize()
            self.torch.cuda.empty_cache()
            self.torch.cuda.reset_peak_memory_stats()
        self.genesis.trim()
        if DRIVER in self.kinds and self.library.peer_trim_driver() != 0:
            print(f"cuMemPoolTrimTo: {self.error()}", file=sys.stderr)

    def limit(self, nbytes: int) -> None:
        """Limit what PyTorch and Genesis may reserve; 0 lifts the limit."""
        self.genesis.limit(nbytes)
        if self.torch:
            total = self.torch.cuda.get_device_properties(0).total_memory
            self.torch.cuda.set_per_process_memory_fraction(nbytes / total if nbytes else 1.0)

    def reserved_peak(self, kind: int) -> int:
        """The peak of reserved bytes since empty()."""
        if kind == TORCH:
            return self.torch.cuda.memory_stats()["reserved_bytes.all.peak"]
        return self.genesis.statistics().reserved_bytes_peak

    def driver_allocations(self, kind: int) -> int:
        """How often the peer has asked the driver for memory since the start."""
        if kind == TORCH:
            return self.torch.cuda.memory_stats()["num_device_alloc"]
        return self.genesis.statistics().driver_alloc_count


def marked(value: float, is_missed: bool, target: str) -> str:
    """A figure for the table, with the target where it is missed."""
    if math.isnan(value):
        return "-"
    return f"**{value:.2f}** (missed: {target})" if is_missed else f"{value:.2f}"


class Bench:
    """The tables."""

    def __init__(self, peers: Peers, rounds: int, shrink: int) -> None:
        self.peers = peers
        self.rounds = rounds
        self.shrink = shrink
        self.scenarios = {scenario.name: scenario for scenario in scenarios(shrink)}
        self.missed: list[str] = []

    def speed_up(self, times: dict[int, list[float]], kind: int, target: float, what: str) -> str:
        """PyTorch's time over ours, marked where it is below the target."""
        if TORCH not in times:
            return "-"
        value = ratio(times[TORCH], times[kind])
        is_missed = bool(target) and value < target
        if is_missed:
            self.missed.append(f"{what}, {NAMES[kind]}: {value:.1f}x of {target}x")
        return marked(value, is_missed, f"{target}x")

    def rounds_of(self, measure: object) -> dict[int, list[float]]:
        """The figures of all peers in turns, the first round thrown away."""
        times: dict[int, list[float]] = {kind: [] for kind in self.peers.kinds}
        for number in range(-1, self.rounds):
            for kind in self.peers.kinds:
                figure = measure(kind)
                if number >= 0:
                    times[kind].append(figure)
        return times

    def medians(self, times: dict[int, list[float]], scale: float = 1.0) -> list[str]:
        """A cell for each peer."""
        return [f"{median(times[kind]) * scale:.1f}" if kind in times else "-" for kind in range(4)]

    def peak_reserved(self, scenario: Scenario) -> tuple[dict[int, int], dict[int, float]]:
        """The peak of reserved bytes and GMLake's fragmentation, each peer from empty."""
        reserved, fragmentation = {}, {}
        requested = scenario.peak_bytes()  # by every peer alike
        for kind in self.peers.kinds:
            if kind == DRIVER:
                continue
            self.peers.empty()
            if math.isnan(self.peers.run(kind, scenario)):
                continue
            reserved[kind] = self.peers.reserved_peak(kind)
            fragmentation[kind] = 1 - requested / reserved[kind] if reserved[kind] else math.nan
        return reserved, fragmentation

    def reserved_cells(self, reserved: dict[int, int], what: str) -> list[str]:
        """PyTorch's peak in MiB, the larger of ours, and the ratio."""
        ours = max((reserved[k] for k in (POINTER, HANDLE) if k in reserved), default=0)
        if TORCH not in reserved or not ours:
            return ["-", f"{ours / MIB:.1f}" if ours else "-", "-"]
        value = ours / reserved[TORCH]
        is_missed = value > RESERVED_TARGET
        if is_missed:
            self.missed.append(f"{what}, peak reserved: {value:.2f} of {RESERVED_TARGET}")
        return [
            f"{reserved[TORCH] / MIB:.1f}",
            f"{ours / MIB:.1f}",
            marked(value, is_missed, f"{RESERVED_TARGET}"),
        ]

    def run_counted(self, kind: int, scenario: Scenario, calls: dict[int, list[int]]) -> float:
        """Nanoseconds per pair; notes how often the driver was asked for memory meanwhile."""
        if kind not in calls:
            return self.peers.run(kind, scenario)
        before = self.peers.driver_allocations(kind)
        figure = self.peers.run(kind, scenario)
        calls[kind].append(self.peers.driver_allocations(kind) - before)
        return figure

    def per_thousand(self, calls: list[int] | None, scenario: Scenario) -> str:
        """The median over the rounds but the first, for 1000 pairs."""
        return f"{median(calls[1:]) * 1000 / scenario.alloc_count:.1f}" if calls else "-"

    def table_scenarios(self) -> None:
        """Time, 99.9th percentile and peak of every scenario."""
        print("\nNanoseconds per allocation and free:\n")
        print_head(
            ["scenario", *NAMES]
            + ["PyTorch / pointer", "PyTorch / handle"]
            + [f"99.9 %, {name}" for name in NAMES[:3]]
            + ["peak reserved, PyTorch, MiB", "Genesis, MiB", "Genesis / PyTorch"]
            + [f"1 - requested / reserved, {name}" for name in NAMES[:3]]
            + [f"driver allocations in 1000 pairs, {name}" for name in NAMES[:3]]
        )
        for scenario in self.scenarios.values():
            self.peers.empty()
            self.peers.limit(scenario.budget_bytes)
            reserved, fragmentation = self.peak_reserved(scenario)
            self.peers.empty()
            calls: dict[int, list[int]] = {kind: [] for kind in self.peers.kinds if kind != DRIVER}
            times = self.rounds_of(lambda kind, s=scenario, c=calls: self.run_counted(kind, s, c))
            tails = self.rounds_of(lambda kind, s=scenario: self.peers.quantile(kind, s, 0.999))
            target = TARGETS.get(GROUPS[scenario.group], 0)
            print_row(
                [scenario.title, *self.medians(times)]
                + [self.speed_up(times, k, target, scenario.title) for k in (POINTER, HANDLE)]
                + self.medians(tails)[:3]
                + self.reserved_cells(reserved, scenario.title)
                + [f"{fragmentation[k]:.1%}" if k in fragmentation else "-" for k in range(3)]
                + [self.per_thousand(calls.get(k), scenario) for k in range(3)]
            )
            self.peers.empty()
            self.peers.limit(0)

    def table_threads(self, pairs: int) -> None:
        """Threads that work side by side, and one that allocates for another to free."""
        print("\nNanoseconds of the wall clock per allocation and free, over all threads:\n")
        print_head(["threads", *NAMES, "PyTorch / pointer", "PyTorch / handle"])

        def measure(kind: int, count: int) -> float:
            """Ours has more pairs: else it is over before the system has placed the threads."""
            many = pairs * OWN_PAIRS if kind in (POINTER, HANDLE) else pairs
            return self.peers.threads(kind, count, 4096, many)

        for count in (1, 2, 4, 8):
            times = self.rounds_of(lambda kind, n=count: measure(kind, n))
            target = THREADS_TARGET if count == 8 else 0
            name = f"{count} threads, 4 KiB"
            ratios = [self.speed_up(times, kind, target, name) for kind in (POINTER, HANDLE)]
            print_row([name, *self.medians(times), *ratios])
            self.peers.empty()
        for name in ("same_4k", "variable_32"):
            scenario = self.scenarios[name]
            times = self.rounds_of(lambda kind, s=scenario: self.peers.handoff(kind, s))
            ratios = [self.speed_up(times, kind, 0, "") for kind in (POINTER, HANDLE)]
            title = f"producer and consumer, {scenario.title}"
            print_row([title, *self.medians(times), *ratios])
            self.peers.empty()

    def table_misses(self) -> None:
        """The first allocation of a size: with nothing kept, and with 1 GiB of idle memory kept."""
        print("\nMicroseconds of the first allocation of a size:\n")
        print_head(["size", "kept before", *NAMES, "PyTorch / pointer", "PyTorch / handle"])
        for nbytes in (4 << 10, MIB, 3 * MIB, 24 * MIB, 64 * MIB, 256 * MIB, GIB):
            times: dict[int, list[float]] = {kind: [] for kind in self.peers.kinds}
            for _ in range(self.rounds):
                for kind in self.peers.kinds:
                    self.peers.empty()
                    times[kind] += self.peers.each(kind, [nbytes // self.shrink])
            self.print_misses(nbytes, "nothing", times)
        for nbytes in (4 << 10, MIB, 3 * MIB, 24 * MIB):
            times = {kind: [] for kind in self.peers.kinds}
            for number in range(self.rounds):
                for kind in self.peers.kinds:
                    self.peers.empty()
                    self.peers.each(kind, [GIB // self.shrink])
                    times[kind] += self.peers.each(kind, [nbytes // self.shrink + 512 * number])
            self.print_misses(nbytes, "1 GiB", times)
        self.peers.empty()

    def print_misses(self, nbytes: int, kept: str, times: dict[int, list[float]]) -> None:
        """One row of the table of misses."""
        ratios = [self.speed_up(times, kind, 0, "") for kind in (POINTER, HANDLE)]
        size = f"{nbytes // MIB} MiB" if nbytes >= MIB else f"{nbytes // 1024} KiB"
        print_row([size, kept, *self.medians(times, 1e-3), *ratios])

    def table_warm_up(self) -> None:
        """The first turns of a training loop, from empty caches, and after a warm-up."""
        print("\nMicroseconds of the first two turns of a training loop:\n")
        print_head(["loop", "peer", "warm-up", "first turn", "second turn", "misses in the first"])
        for name in ("accumulation", "variable_length"):
            whole = self.scenarios[name]
            turn = whole.cut(whole.first_step_count)
            for kind in self.peers.kinds:
                self.print_warm_up(turn, kind, False)
                if kind in (POINTER, HANDLE):
                    self.print_warm_up(turn, kind, True)
        self.peers.empty()

    def print_warm_up(self, turn: Scenario, kind: int, is_warmed: bool) -> None:
        """One row: medians over the rounds."""
        times: list[list[float]] = [[], [], []]
        misses = []
        sizes, counts = turn.sizes()
        for _ in range(self.rounds):
            self.peers.empty()
            start = time.perf_counter()
            if is_warmed:
                self.peers.genesis.warm_up(sizes, counts)
            times[0].append((time.perf_counter() - start) * 1e6)
            before = self.peers.genesis.statistics().miss_count
            times[1].append(self.peers.run(kind, turn) * turn.alloc_count / 1e3)
            misses.append(self.peers.genesis.statistics().miss_count - before)
            times[2].append(self.peers.run(kind, turn) * turn.alloc_count / 1e3)
        print_row(
            [turn.title, NAMES[kind]]
            + [f"{median(times[0]):.0f}" if is_warmed else "none"]
            + [f"{median(values):.0f}" for values in times[1:]]
            + [f"{median(misses):.0f}" if kind in (POINTER, HANDLE) else "-"]
        )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--pairs", type=int, default=50000, help="of each thread")
    parser.add_argument("--without-torch", action="store_true")
    parser.add_argument("--shrink", type=int, default=1, help="divides all sizes")
    parser.add_argument("--without-driver", action="store_true")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    arguments = parser.parse_args()
    peers = Peers(not arguments.without_torch, not arguments.without_driver)
    version = f"PyTorch {peers.torch.__version__}" if peers.torch else "without PyTorch"
    print(f"Policy {peers.genesis.policy}, {version}. Medians of {arguments.rounds} rounds.")
    bench = Bench(peers, arguments.rounds, arguments.shrink)
    if "scenarios" in arguments.tables:
        bench.table_scenarios()
    if "threads" in arguments.tables:
        bench.table_threads(arguments.pairs)
    if "misses" in arguments.tables:
        bench.table_misses()
    if "warm-up" in arguments.tables:
        bench.table_warm_up()
    if peers.torch:
        print("\nTargets missed: " + ("; ".join(bench.missed) or "none"))


if __name__ == "__main__":
    main()
