"""Memory formats, copies that do not block, types and properties on a GPU."""

import genesis


def formats():
    x = genesis.arange(120).reshape(2, 3, 4, 5).float()
    y = x.to("cuda", non_blocking=True, memory_format=genesis.channels_last)
    assert y.stride() == (60, 1, 15, 3) and y.tolist() == x.tolist()
    assert x.cuda(memory_format=genesis.channels_last).stride() == y.stride()
    assert y.cpu(non_blocking=True).tolist() == x.tolist()
    assert (y + y.contiguous()).tolist() == (x * 2).tolist()


def orders():
    x = genesis.arange(24).reshape(2, 3, 4).float().permute(2, 0, 1)
    there = x.cuda()
    assert there.stride() == x.stride() and there.tolist() == x.tolist()
    assert there.cpu().stride() == x.stride() and there.double().cpu().tolist() == x.tolist()
    part = there[::2]
    for made in (part.clone(), part.half(), genesis.zeros_like(part), part.cpu()):
        assert made.stride() == (1, 6, 2)
    assert part.cpu().tolist() == x[::2].tolist() == part.clone().tolist()
    assert (part.double() + there[1::2].clone()).tolist() == (x[::2] + x[1::2]).tolist()
    leaf = x.detach().requires_grad_()
    (leaf.cuda() * 2).sum().backward()
    assert leaf.grad.device.type == "cpu" and (leaf.grad == 2).all()


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


for part in (formats, orders, copies, types, properties):
    part()
    print(part.__name__)
