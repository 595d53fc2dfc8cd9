"""Four ways to lose memory, and how each is found.

    python examples/leaks.py

Runs on the first GPU, or on the CPU where there is none. docs/observability.md walks through it.
"""

from __future__ import annotations

import genesis
from genesis.ndarray.cuda_memory_manager import CUDAMemoryManager

MIB = 1 << 20
manager = genesis.memory_manager
host = CUDAMemoryManager("cpu")  # views are for memory that the host can read


class Node:
    """A part of a tree that knows its parent, which knows it."""

    def __init__(self, parent: Node | None = None) -> None:
        self.parent = parent
        self.children: list[Node] = []
        self.data = manager.allocate_block(2 * MIB)
        if parent is not None:
            parent.children.append(self)


class Loader:
    """Reads records, and remembers their names: as views, which keep all of the record."""

    def __init__(self) -> None:
        self.names: list[memoryview] = []

    def read(self) -> None:
        """Read one record."""
        record = host.allocate_block(MIB)
        self.names.append(memoryview(record)[:16])


def scratch() -> int:
    """Work space for a step, by address."""
    return manager.allocate_memory(3 * MIB)


def step(loader: Loader) -> None:
    """One step of a program that runs for days."""
    scratch()  # nobody frees it
    Node(parent=Node())  # nobody refers to them but they themselves
    loader.read()


def main() -> None:
    """Lose memory, look for it, repair it, look again."""
    genesis.enable_memory_debugging()
    loader = Loader()
    for _ in range(3):
        step(loader)
    leaks = genesis.check_memory_leaks()
    print(leaks.summary())

    for leak in leaks:
        if leak.location.endswith("(scratch)"):
            manager.free_memory(leak.address)
    loader.names = [bytes(name) for name in loader.names]  # copies
    with genesis.leak_scope() as scope:
        pass  # a step that is repaired
    print("a repaired step:", scope.leaks.summary())


if __name__ == "__main__":
    main()
