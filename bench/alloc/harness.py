"""What the Python benchmarks of allocators share: the scenarios, Genesis through ctypes, tables.

The libraries are looked for in ``build-gpu`` and ``build``; ``BENCH_LIBRARY`` names another
``libgenesis.so``, whose build folder then has the scenarios, too.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
import re
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
GIB = 1 << 30


def library_path() -> Path:
    """Where libgenesis.so is."""
    named = os.environ.get("BENCH_LIBRARY")
    paths = [Path(named)] if named else [ROOT / d / "libgenesis.so" for d in ("build-gpu", "build")]
    for path in paths:
        if path.exists():
            return path.resolve()
    sys.exit(f"no libgenesis.so in {', '.join(map(str, paths))}: build it, or set BENCH_LIBRARY")


# ---- scenarios ----


class Step(ctypes.Structure):
    """struct bench_step of scenarios.h."""

    _fields_ = [("slot", ctypes.c_uint64), ("nbytes", ctypes.c_uint64)]


class _ScenarioStructure(ctypes.Structure):
    """struct bench_scenario of scenarios.h."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("title", ctypes.c_char_p),
        ("steps", ctypes.POINTER(Step)),
        ("step_count", ctypes.c_size_t),
        ("slot_count", ctypes.c_size_t),
        ("alloc_count", ctypes.c_size_t),
        ("first_step_count", ctypes.c_size_t),
        ("budget_bytes", ctypes.c_uint64),
        ("peak_bytes", ctypes.c_uint64),
        ("group", ctypes.c_int),
    ]


@dataclasses.dataclass
class Scenario:
    """One scenario: the steps as a ctypes array, and what there is to know about them."""

    name: str
    title: str
    steps: ctypes.Array
    slot_count: int
    alloc_count: int
    first_step_count: int
    budget_bytes: int
    group: int

    def peak_bytes(self) -> int:
        """The most that is live at once, as asked for."""
        slots = [0] * self.slot_count
        live = peak = 0
        for step in self.steps:
            live += step.nbytes - slots[step.slot]
            slots[step.slot] = step.nbytes
            peak = max(peak, live)
        return peak

    def cut(self, step_count: int) -> Scenario:
        """The same with the first steps only."""
        steps = (Step * step_count)(*self.steps[:step_count])
        allocs = sum(step.nbytes != 0 for step in steps)
        return dataclasses.replace(self, steps=steps, alloc_count=allocs)

    def sizes(self) -> tuple[list[int], list[int]]:
        """The sizes, and how many blocks of each are live at once at most."""
        live: dict[int, int] = {}
        most: dict[int, int] = {}
        slots: dict[int, int] = {}
        for step in self.steps:
            old = slots.pop(step.slot, 0)
            if old:
                live[old] -= 1
            if step.nbytes:
                slots[step.slot] = step.nbytes
                live[step.nbytes] = live.get(step.nbytes, 0) + 1
                most[step.nbytes] = max(most.get(step.nbytes, 0), live[step.nbytes])
        return list(most), list(most.values())


GROUPS = ("one size", "variable", "transformer", "pressure", "other")


def scenarios(shrink: int = 1) -> list[Scenario]:
    """All scenarios; `shrink` divides every size, for devices that are too small for them."""
    build = library_path().parent
    library = ctypes.CDLL(str(build / "bench" / "alloc" / "libbench_scenarios.so"))
    library.bench_scenario_get.restype = ctypes.POINTER(_ScenarioStructure)
    library.bench_scenario_get.argtypes = [ctypes.c_size_t]
    found = []
    while pointer := library.bench_scenario_get(len(found)):
        raw = pointer.contents
        steps = (Step * raw.step_count)()
        ctypes.memmove(steps, raw.steps, ctypes.sizeof(steps))
        for step in steps if shrink > 1 else ():
            step.nbytes = -(-step.nbytes // shrink)
        found.append(
            Scenario(
                name=raw.name.decode(),
                title=raw.title.decode(),
                steps=steps,
                slot_count=raw.slot_count,
                alloc_count=raw.alloc_count,
                first_step_count=raw.first_step_count,
                budget_bytes=raw.budget_bytes // shrink,
                group=raw.group,
            )
        )
    return found


# ---- Genesis ----

_TYPES = {
    "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_size_t,
    "double": ctypes.c_double,
    "bool": ctypes.c_bool,
    "gn_memory_strategy": ctypes.c_int,
}


def _structure(name: str) -> type[ctypes.Structure]:
    """A structure of genesis/memory.h, read from there, so that the two cannot differ."""
    text = (ROOT / "include" / "genesis" / "memory.h").read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    found = re.search(rf"typedef struct {name} \{{(.*?)\}} {name};", text, re.DOTALL)
    if not found:
        sys.exit(f"no structure {name} in genesis/memory.h")
    fields = [field.split() for field in found.group(1).split(";") if field.strip()]
    return type(name, (ctypes.Structure,), {"_fields_": [(n, _TYPES[t]) for t, n in fields]})


Config = _structure("gn_memory_config")
Statistics = _structure("gn_memory_statistics")
Compaction = _structure("gn_memory_compaction")


class GenesisError(RuntimeError):
    """A call of the library failed; the text is its own."""


class Genesis:
    """The manager of one device, through the exported C functions."""

    OUT_OF_MEMORY = 3

    def __init__(self, device: str = "cuda") -> None:
        self.path = library_path()
        self.library = ctypes.CDLL(str(self.path))
        self.library.gn_error_detail.restype = ctypes.c_char_p
        self.library.gn_memory_manager_get_policy.restype = ctypes.c_char_p
        self.library.gn_memory_manager_get_policy.argtypes = [ctypes.c_void_p]
        p, size = ctypes.c_void_p, ctypes.c_size_t
        for name, arguments in {
            "gn_memory_alloc": [p, size, p, p],
            "gn_memory_free": [p, p],
            "gn_memory_block_alloc": [p, size, p, p],
            "gn_memory_block_free": [p],
            "gn_memory_trim": [p, size, p],
            "gn_memory_warm_up": [p, size, p, p],
            "gn_memory_compact": [p, p],
            "gn_memory_configure": [p, p],
            "gn_memory_get_config": [p, p],
            "gn_memory_get_statistics": [p, p],
            "gn_memory_reset_peaks": [p],
            "gn_device_get_memory_info": [p, p, p],
        }.items():
            getattr(self.library, name).argtypes = arguments
        self.device = ctypes.c_void_p()
        self.manager = ctypes.c_void_p()
        kind = {"cpu": 0, "cuda": 1}[device]
        self.check(self.library.gn_device_get(kind, 0, ctypes.byref(self.device)))
        self.check(self.library.gn_memory_manager_get(self.device, ctypes.byref(self.manager)))

    def check(self, status: int) -> None:
        """Raise what went wrong."""
        if status != 0:
            raise GenesisError(self.library.gn_error_detail().decode())

    @property
    def policy(self) -> str:
        """The policy in force."""
        return self.library.gn_memory_manager_get_policy(self.manager).decode()

    @property
    def total_bytes(self) -> int:
        """Of the device."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.check(
            self.library.gn_device_get_memory_info(
                self.device, ctypes.byref(free), ctypes.byref(total)
            )
        )
        return total.value

    def configure(self, **changes: float) -> None:
        """Change some values of the configuration."""
        config = Config()
        self.check(self.library.gn_memory_get_config(self.manager, ctypes.byref(config)))
        for name, value in changes.items():
            setattr(config, name, value)
        self.check(self.library.gn_memory_configure(self.manager, ctypes.byref(config)))

    def limit(self, nbytes: int) -> None:
        """Limit the memory that may be reserved; 0 lifts the limit."""
        self.configure(memory_fraction=min(1.0, nbytes / self.total_bytes) if nbytes else 1.0)

    def statistics(self) -> Statistics:
        """A reading of the counters."""
        statistics = Statistics()
        self.check(self.library.gn_memory_get_statistics(self.manager, ctypes.byref(statistics)))
        return statistics

    def trim(self) -> None:
        """Give back everything idle, and forget the peaks."""
        self.check(self.library.gn_memory_trim(self.manager, 0, None))
        self.check(self.library.gn_memory_reset_peaks(self.manager))

    def warm_up(self, sizes: list[int], counts: list[int]) -> None:
        """Fill the device's cache."""
        array = ctypes.c_size_t * len(sizes)
        self.check(
            self.library.gn_memory_warm_up(self.manager, len(sizes), array(*sizes), array(*counts))
        )

    def compact(self) -> Compaction:
        """Give back every byte that is not needed."""
        report = Compaction()
        self.check(self.library.gn_memory_compact(self.manager, ctypes.byref(report)))
        return report

    def alloc(self, nbytes: int, by_handle: bool) -> ctypes.c_void_p | None:
        """A block by its address or handle; None if the memory is exhausted."""
        block = ctypes.c_void_p()
        function = self.library.gn_memory_block_alloc if by_handle else self.library.gn_memory_alloc
        status = function(self.manager, nbytes, None, ctypes.byref(block))
        if status == self.OUT_OF_MEMORY:
            return None
        self.check(status)
        return block

    def free(self, block: ctypes.c_void_p, by_handle: bool) -> None:
        """Free a block."""
        if by_handle:
            self.check(self.library.gn_memory_block_free(block))
        else:
            self.check(self.library.gn_memory_free(self.manager, block))


def driver_path() -> str:
    """The CUDA driver that Genesis is told to use."""
    named = os.environ.get("GENESIS_CUDA_DRIVER", "libcuda.so.1")
    if re.fullmatch(r"\w+", named):
        return str(library_path().parent / f"libgenesis_{named}.so")
    return named


# ---- figures ----


def median(values: list[float]) -> float:
    """The median."""
    return statistics.median(values)


def ratio(theirs: list[float], ours: list[float]) -> float:
    """The median of the ratios of values from the same rounds."""
    return statistics.median(a / b for a, b in zip(theirs, ours, strict=True))


def print_row(cells: list[str]) -> None:
    """One line of a table in Markdown."""
    print("| " + " | ".join(cells) + " |", flush=True)


def print_head(cells: list[str]) -> None:
    """The first two lines of a table."""
    print_row(cells)
    print("|" + "---|" * len(cells), flush=True)
