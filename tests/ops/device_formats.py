"""Memory formats, copies that do not block, types and properties on a GPU."""

import genesis


def formats():
    x = genesis.arange(120).reshape(2, 3, 4, 5).float()
    y = x.to("cuda", non_blocking=True, memory_format=genesis.channels_last)
    assert y.stride() == (60, 1, 15, 3) and y.tolist() == x.tolist()
    assert x.cuda(memory_format=genesis.channels_last).stride() == y.stride()
    assert y.cpu(non_blocking=True).tolist() == x.tolist()
    assert (y + y.contiguous()).tolist() == (x * 2).tolist()


def copies():
    pinned = genesis.arange(1000).float().pin_memory()
    assert pinned.is_pinned()
    there = pinned.to("cuda", non_blocking=True)
    back = genesis.empty(1000, pin_memory=True)
    back.copy_(there * 2, non_blocking=True)
    genesis.cuda.synchronize()
    assert back.tolist() == (pinned * 2).tolist()


def types():
    x = genesis.cuda.FloatTensor([1, 2])
    assert x.device.type == "cuda" and isinstance(x, genesis.cuda.FloatTensor)
    assert x.type() == "genesis.cuda.FloatTensor"
    assert x.type(genesis.LongTensor).device.type == "cpu"


def properties():
    found = genesis.cuda.get_device_properties(0)
    assert found.regs_per_multiprocessor == found.registers_per_multi_processor
    assert found.L2_cache_size == found.l2_cache_size and not found.is_multi_gpu_board
    assert genesis.cuda.get_arch_list() == [f"sm_{found.major}{found.minor}"]
    assert genesis.accelerator.current_accelerator().type == "cuda"
    assert genesis.version.cuda.count(".") == 1
    genesis.cuda.init()
    genesis.cuda.set_rng_state_all(genesis.cuda.get_rng_state_all())
    genesis.cuda.reset_max_memory_allocated()
    assert genesis.cuda.max_memory_cached() == genesis.cuda.max_memory_reserved()


for part in (formats, copies, types, properties):
    part()
    print(part.__name__)
