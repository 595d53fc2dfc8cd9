"""The memory manager at work: warm-up, blocks, batches, mistakes, statistics, and giving back.

    python examples/manager.py [PAGE]

Runs on the first GPU, or on the CPU where there is none. All of it is recorded; where a page is
named, the timeline is written there.
"""

import argparse

import genesis
from genesis import memory_profiler

KIB, MIB = 1 << 10, 1 << 20


def demonstrate() -> None:
    """Allocate, use, misuse and free memory, and show the books."""
    manager = genesis.memory_manager
    properties = genesis.cuda.get_device_properties(manager.device)
    print(f"genesis {genesis.__version__} on {properties.name}, policy {manager.policy}")

    with memory_profiler.annotate("warm-up"):
        manager.warmup_cache([64 * KIB, MIB], [64, 8])  # sizes, and how many of each
    print(f"warmed up: {manager.statistics()['cached_bytes'] / MIB:.1f} MiB are ready")

    stream = genesis.cuda.Stream(manager.device)
    addresses = manager.allocate_batch([4096, MIB, 64 * MIB], stream)  # all or nothing
    for what, mistake in {
        "a wrong size": lambda: manager.free_memory(addresses[0], 4095),
        "a foreign address": lambda: manager.free_memory(0x1234),
        "more than there is": lambda: manager.allocate_memory(2**46),
    }.items():
        try:
            mistake()
        except (ValueError, genesis.OutOfMemoryError) as error:
            print(f"{what} is refused: {error}")
    for address in addresses:
        manager.free_memory(address)  # at once, also while work of the stream uses it

    with manager.performance_context() as perf, memory_profiler.annotate("small blocks"):
        for _ in range(1000):
            manager.free_memory(manager.allocate_memory(10_000))
    stats = perf.stats
    print(f"{stats.total_allocations} allocations, {stats.cache_hit_rate:.1%} from the caches")

    blocks = [manager.allocate_block(64 * KIB) for _ in range(64)]  # by handle
    for place, block in enumerate(blocks):
        if place % 4 != place // 32:  # a few are left on each page, none at the same place
            block.free()
    print(f"before: {manager.statistics()['reserved_bytes'] / MIB:.1f} MiB are reserved")
    report = manager.compact()  # nobody may submit work on this memory meanwhile
    folded = report.folded_pages if report.can_fold else "none, which this policy cannot"
    print(f"compact: {report.released_bytes / MIB:.1f} MiB went back; pages folded: {folded}")
    blocks.clear()  # a lost handle frees its block
    manager.trim()
    print(genesis.cuda.memory_summary(manager.device, abbreviated=True))


def main() -> None:
    """Do it all while memory is recorded."""
    parser = argparse.ArgumentParser(description="The memory manager at work.")
    parser.add_argument("page", nargs="?", help="a file for the timeline of its memory, as HTML")
    page = parser.parse_args().page
    with memory_profiler.record():
        demonstrate()
    if page is not None:
        memory_profiler.get_timeline().to_html(page)
        print(f"what happened to memory, as a page for the browser: {page}")


if __name__ == "__main__":
    main()
