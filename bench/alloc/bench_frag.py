"""How much memory a peer can still hand out once its memory is fragmented.

Budget 16 GiB. Phase 1: fill the budget with blocks of mixed sizes. Phase 2: free every other block.
Phase 3: find the largest single block that still succeeds, by bisection in steps of 64 MiB. The
score is that block over the bytes that are free; the second score counts a live block in whole
2 MiB pages.

Each peer runs in a process of its own, in turns. Genesis runs with tensors, by handle and by
pointer; its rows "after compact" are phase 3 again after gn_memory_compact().
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable

from harness import GIB, MIB, Genesis, median, print_head, print_row

PEERS = (
    "torch",
    "torch-expandable",
    "cupy",
    "genesis-tensor",
    "genesis-handle",
    "genesis-pointer",
)
MIXES = {"2..64 MiB": 21, "1 KiB..64 MiB": 10}
PAGE = 2 * MIB
STEP = 64 * MIB


class Peer:
    """One allocator under a budget. alloc() gives None when the memory is exhausted."""

    alloc: Callable[[int], object]
    free: Callable[[object], None]
    empty: Callable[[], None]
    compact: Callable[[], object] | None = None


def torch_peer(budget: int) -> Peer:
    """PyTorch's tensors."""
    import torch

    torch.zeros(1, device="cuda")
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(budget / total)

    def alloc(nbytes: int) -> object:
        try:
            return torch.empty(nbytes, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            return None

    peer = Peer()
    peer.alloc, peer.free, peer.empty = alloc, lambda block: None, torch.cuda.empty_cache
    return peer


def cupy_peer(budget: int) -> Peer:
    """CuPy's default pool."""
    import cupy

    pool = cupy.get_default_memory_pool()
    pool.set_limit(size=budget)

    def alloc(nbytes: int) -> object:
        try:
            return cupy.cuda.alloc(nbytes)
        except cupy.cuda.memory.OutOfMemoryError:
            return None

    peer = Peer()
    peer.alloc, peer.free, peer.empty = alloc, lambda block: None, pool.free_all_blocks
    return peer


def genesis_peer(budget: int, by_handle: bool) -> Peer:
    """Genesis through its C functions."""
    genesis = Genesis("cuda")
    genesis.limit(budget)
    peer = Peer()
    peer.alloc = lambda nbytes: genesis.alloc(nbytes, by_handle)
    peer.free = lambda block: genesis.free(block, by_handle)
    peer.empty = genesis.trim
    peer.compact = genesis.compact
    return peer


def tensor_peer(budget: int) -> Peer:
    """Genesis' tensors."""
    import genesis

    total = genesis.cuda.get_device_properties(0).total_memory
    genesis.cuda.set_memory_fraction(budget / total)

    def alloc(nbytes: int) -> object:
        try:
            return genesis.empty(nbytes, dtype=genesis.uint8, device="cuda")
        except genesis.OutOfMemoryError:
            return None

    peer = Peer()
    peer.alloc, peer.free, peer.empty = alloc, lambda block: None, genesis.empty_cache
    peer.compact = lambda: genesis.memory_manager.compact()
    return peer


def open_peer(name: str, budget: int) -> Peer:
    """The peer of this name."""
    if name.startswith("torch"):
        if name == "torch-expandable":
            os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
        return torch_peer(budget)
    if name == "cupy":
        return cupy_peer(budget)
    if name == "genesis-tensor":
        return tensor_peer(budget)
    return genesis_peer(budget, name == "genesis-handle")


def largest_block(peer: Peer, free_bytes: int) -> int:
    """The largest multiple of 64 MiB that can be had."""
    low, high = 0, free_bytes // STEP
    while low < high:
        middle = (low + high + 1) // 2
        block = peer.alloc(middle * STEP)
        if block is None:
            high = middle - 1
        else:
            low = middle
            peer.free(block)
            block = None
    return low * STEP


def measure(peer: Peer, budget: int, lowest: int) -> dict[str, float]:
    """The three phases."""
    source = random.Random(7)
    live: list[tuple[object, int]] | None = []
    filled = 0
    seconds = 0.0
    while filled <= budget:
        nbytes = int(2 ** source.uniform(lowest, 26))
        start = time.perf_counter()
        block = peer.alloc(nbytes)
        if block is None:  # the search for room is not filling
            break
        seconds += time.perf_counter() - start
        live.append((block, nbytes))
        filled += nbytes
    block = None
    count = len(live)
    kept = live[::2]
    for freed, _ in live[1::2]:
        peer.free(freed)
    freed = live = None
    free_bytes = budget - sum(nbytes for _, nbytes in kept)
    page_bytes = budget - sum(-(-nbytes // PAGE) * PAGE for _, nbytes in kept)
    result = {"filled": filled / budget, "fill_us": seconds * 1e6 / max(count, 1)}
    largest = largest_block(peer, free_bytes)
    result |= {"score": largest / free_bytes, "page_score": largest / max(page_bytes, 1)}
    if peer.compact:
        start = time.perf_counter()
        report = peer.compact()
        result["compact_ms"] = (time.perf_counter() - start) * 1e3
        result["folded_pages"] = report.folded_pages
        largest = largest_block(peer, free_bytes)
        result["compact_score"] = largest / free_bytes
        result["compact_page_score"] = largest / max(page_bytes, 1)
    for block, _ in kept:
        peer.free(block)
    block = kept = None
    peer.empty()
    return result


def run_child(name: str, budget: int) -> dict[str, dict[str, float]] | None:
    """Measure one peer in a process of its own."""
    command = [sys.executable, __file__, "--peer", name, "--budget", str(budget)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        print(f"left out: {name}: {last}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def print_peer(mix: str, name: str, runs: list[dict[str, float]]) -> None:
    """The rows of one peer."""

    def cell(key: str, form: str) -> str:
        return format(median([run[key] for run in runs]), form)

    common = [mix, name, cell("filled", ".1%"), cell("fill_us", ".1f")]
    print_row([*common, cell("score", ".1%"), cell("page_score", ".1%"), ""])
    if "compact_ms" in runs[0]:
        scores = [cell("compact_score", ".1%"), cell("compact_page_score", ".1%")]
        note = f"{cell('compact_ms', '.1f')} ms, {cell('folded_pages', '.0f')} pages folded"
        print_row([mix, f"{name}, after compact", "", "", *scores, note])


def main() -> None:
    """Print the table, or measure one peer as a child."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", choices=PEERS, help="measure this one here, and print JSON")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)
    parser.add_argument("--budget", type=int, default=16 * GIB)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.peer:
        peer = open_peer(arguments.peer, arguments.budget)
        results = {mix: measure(peer, arguments.budget, low) for mix, low in MIXES.items()}
        print(json.dumps(results))
        return
    runs: dict[str, list[dict[str, dict[str, float]]]] = {name: [] for name in arguments.peers}
    for _ in range(arguments.rounds):
        for name in arguments.peers:
            result = run_child(name, arguments.budget)
            if result:
                runs[name].append(result)
    print(
        "The largest block that succeeds with every other block freed, over the free bytes; "
        f"budget {arguments.budget / GIB:g} GiB. Medians of {arguments.rounds} alternating runs.\n"
    )
    print_head(
        ["sizes", "peer", "filled", "us per block while filling", "of the free bytes"]
        + ["of the free 2 MiB pages", "compaction"]
    )
    for mix in MIXES:
        for name, results in runs.items():
            if results:
                print_peer(mix, name, [result[mix] for result in results])


if __name__ == "__main__":
    main()
