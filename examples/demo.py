"""What Genesis does today: devices, streams, and memory in which every block is accounted for.

Runs on the first GPU, or on the CPU where there is none.
"""

import genesis


def main() -> None:
    """Allocate, use, misuse and free memory, and show the books."""
    where = "cuda" if genesis.cuda.is_available() else "cpu"
    properties = genesis.cuda.get_device_properties(where)
    print(f"genesis {genesis.__version__} on {properties.name}")

    manager = genesis.memory_manager
    sizes = [4096, 1 << 20, 64 << 20]
    with genesis.cuda.stream(genesis.cuda.Stream(device=where)) as stream:
        blocks = [manager.allocate_memory(size, stream) for size in sizes]
        done = stream.record_event()
    done.synchronize()
    stats = manager.memory_stats()
    print(f"allocated: {stats['allocated'] / 2**20:.1f} MiB in {len(blocks)} blocks")

    for what, mistake in {
        "a wrong size": lambda: manager.free_memory(blocks[0], 4095),
        "a foreign address": lambda: manager.free_memory(0x1234),
        "an absurd size": lambda: manager.allocate_memory(2**63),
        "more than there is": lambda: manager.allocate_memory(2**46),
    }.items():
        try:
            mistake()
        except (ValueError, genesis.OutOfMemoryError) as error:
            print(f"{what} is refused: {error}")

    for address in blocks:
        manager.free_memory(address)
    statistics = manager.get_statistics()
    print(f"peak: {statistics.peak_memory_usage / 2**20:.1f} MiB, live: {statistics.live_blocks}")


if __name__ == "__main__":
    main()
