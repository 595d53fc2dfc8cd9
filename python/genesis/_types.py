"""What functions return that needs more than a dict. Imported when it is first needed."""

from __future__ import annotations

from typing import NamedTuple


class DeviceProperties(NamedTuple):
    """What a device is. Sizes are in bytes, rates in kHz."""

    name: str
    uuid: str
    pci_bus_id: str
    total_memory: int
    major: int
    minor: int
    multi_processor_count: int
    warp_size: int
    max_threads_per_block: int
    max_threads_per_multi_processor: int
    registers_per_multi_processor: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multi_processor: int
    l2_cache_size: int
    clock_rate_khz: int
    memory_clock_rate_khz: int
    memory_bus_width_bits: int
    is_integrated: bool
    has_virtual_memory: bool
    has_stream_ordered_memory: bool


class AllocationStatistics(NamedTuple):
    """What a memory manager has done and holds. Sizes are in bytes."""

    total_allocations: int
    total_freed: int
    failed_allocations: int
    refused_frees: int
    live_blocks: int
    current_memory_usage: int
    peak_memory_usage: int
