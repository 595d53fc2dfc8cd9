"""What goes wrong on the simulated GPU, on purpose: each failure is an exception, and all goes on.

python tests/sim/sim_failures.py [SECTION ...]

The kernel cache that GENESIS_KERNEL_CACHE_DIR names is cleared. `lost` is the end of its process,
and runs only where it is asked for.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading

import genesis
from genesis import cuda

COMPILATION = 6  # NVRTC_ERROR_COMPILATION
OUT_OF_MEMORY, INVALID_IMAGE, OUT_OF_RESOURCES = 2, 200, 701  # CUDA_ERROR_...


def simulator():
    """The library that stands for the driver: sim/control.h says what it can be asked."""
    cuda.set_device(0)
    return ctypes.CDLL(os.environ["GENESIS_CUDA_DRIVER"], mode=os.RTLD_NOLOAD)


def fail(function, result, always=False):
    """Make the next call of a function fail, or every one."""
    SIMULATOR.sim_control_fail(function.encode(), 1, result, int(always))


def refuse(text):
    """Make kernels with this in their text not compile."""
    SIMULATOR.sim_control_refuse(text.encode())


def heal():
    """Nothing fails any more."""
    SIMULATOR.sim_control_fail(None, 0, 0, 0)
    SIMULATOR.sim_control_refuse(None)


def forget():
    """All kernels are compiled again."""
    cuda.clear_kernel_cache()


def failures(work):
    """What a function gives, and how many programs were taken apart for it."""
    before = cuda.get_kernel_fusion_failures()
    result = work()
    return result, cuda.get_kernel_fusion_failures() - before


def raises(text, call, kind=RuntimeError):
    """Check that a call fails with a sentence."""
    try:
        call()
    except kind as error:
        assert text in str(error), error
        return
    raise AssertionError(f"nothing was raised: {text}")


def numbers(*shape):
    """A tensor on the GPU, of 1, 2, 3, ..."""
    count = 1
    for size in shape:
        count *= size
    return genesis.arange(1, count + 1, device="cuda").float().reshape(shape)


# ---- kernels ------------------------------------------------------------------------------------


def programs():
    """Operations that cannot be one kernel run one by one, whatever is kept of them."""
    forget()
    x = numbers(5, 7)
    cuda.synchronize()
    refuse("multiply_add")
    plain = x.tolist()
    y, count = failures(lambda: (x * 2 + 1).relu().tolist())
    assert count == 1 and y == [[2 * one + 1 for one in row] for row in plain]
    doubled = x * 2
    more = doubled + 1  # both are wanted
    last, count = failures(lambda: (more - doubled).tolist())
    assert count == 1 and last == [[1.0] * 7] * 5
    (a, b), count = failures(lambda: (doubled.tolist(), more.tolist()))
    assert count == 0 and a[1][1] == 18 and b[1][1] == 19
    z = x.clone()
    _, count = failures(lambda: z.copy_(z * 2 + 1))  # into memory that is there, and is read
    assert count == 1 and z.tolist() == y
    odd = genesis.zeros(7, 5, device="cuda")
    _, count = failures(lambda: odd.T.copy_(x * 2 + 1))
    assert count == 1 and odd.T.tolist() == y
    mixed, count = failures(lambda: (x.half() * 2 + x.long()).tolist())
    assert count == 1 and mixed == [[3 * one for one in row] for row in plain]
    chain = x
    for _ in range(40):  # more than a program has
        chain = chain * 1 + 1
    result, count = failures(chain.tolist)
    assert count >= 1 and result == [[one + 40 for one in row] for row in plain]
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        w = x * 2 + 1
    graph.replay()
    assert w.tolist() == y


def folds():
    """A reduction or softmax that cannot take along what comes before it does without."""
    forget()
    x = numbers(6, 9)
    expected = (x.sum(dim=1) * 2).tolist(), x.softmax(dim=1).tolist(), x.amax(dim=0).tolist()
    (x * 2).tolist()  # by itself it is compiled already
    refuse("multiply_")
    total, count = failures(lambda: (x * 2).sum(dim=1).tolist())
    assert count == 1 and total == expected[0]
    soft, count = failures(lambda: (x * 1).softmax(dim=1).tolist())
    assert count == 1 and soft == expected[1]
    pending = x * 1 + 0  # refused with the fold, and then by itself
    most, count = failures(lambda: pending.amax(dim=0).tolist())
    assert count == 2 and most == expected[2]
    assert failures(pending.tolist) == (x.tolist(), 0)


def loading():
    """The driver does not take a kernel: from the disk, from the compiler, when it is launched."""
    x = numbers(11)
    double = [2 * one + 1 for one in x.tolist()]
    for function, result, fallbacks in [
        ("nvrtcCompileProgram", COMPILATION, 1),
        ("cuModuleLoadData", INVALID_IMAGE, 1),
        ("cuModuleGetFunction", INVALID_IMAGE, 1),
        ("cuLaunchKernelEx", OUT_OF_RESOURCES, 1),
        ("cuModuleLoadData", OUT_OF_MEMORY, 0),  # idle memory is given back first
    ]:
        forget()
        fail(function, result)
        done, count = failures(lambda: (x * 2 + 1).tolist())
        assert done == double and count == fallbacks, function
        if result == COMPILATION:  # which is not tried again
            done, count = failures(lambda: (x * 2 + 1).tolist())
            assert done == double and count == 1
            forget()
        done, count = failures(lambda: (x * 2 + 1).tolist())  # and then it is one kernel
        assert done == double and count == 0, function
    fail("cuModuleLoadData", OUT_OF_MEMORY, always=True)
    forget()
    raises("multiply_add_kernel cannot be loaded", (x * 2 + 1).tolist, genesis.OutOfMemoryError)
    heal()


def alone():
    """An operation that cannot be done at all raises, changes nothing, and works once it can."""
    x, places, mask = numbers(6, 5), genesis.tensor([3, 0], device="cuda"), numbers(6, 5) > 7
    whole = genesis.arange(30, device="cuda").reshape(6, 5)
    rows, out = numbers(6, 5), genesis.zeros(6, 5, device="cuda")
    done = out.tolist()
    calls = {
        "multiply_kernel": lambda: (x * 2 + 1).tolist(),
        "exp_kernel": lambda: x.exp().tolist(),
        "sum_kernel": lambda: (x - 1).sum(dim=1).tolist(),
        "softmax_kernel": lambda: (x - 1).softmax(dim=1).tolist(),
        "index_get": lambda: x[places].tolist(),
        "index_set": lambda: out.index_put_((places,), x[0]),
        "index_add": lambda: out.index_add_(0, places, x[:2]),
        "mask": lambda: x[mask].tolist(),
        "copy_kernel": lambda: x.T.contiguous().tolist(),
        "cumsum": lambda: x.cumsum(dim=1).tolist(),
        "cummax": lambda: x.cummax(dim=1).values.tolist(),
        "arg": lambda: x.argmax(dim=1).tolist(),
        "sort": lambda: x.sort(dim=1, descending=True)[0].tolist(),
        "uniform": lambda: genesis.rand(9, device="cuda").tolist(),
        "matmul": lambda: (whole @ whole.T).tolist(),
        "add_kernel": lambda: rows.add_(1),
    }
    cuda.synchronize()
    before = x.tolist(), whole.tolist(), rows.tolist()
    for name, call in calls.items():
        forget()
        fail("nvrtcCompileProgram", COMPILATION, always=True)
        raises("kernel", call)
        raises("does not compile", call)  # it has not become worse
        assert (x.tolist(), whole.tolist(), rows.tolist()) == before, name
        assert out.tolist() == done, name
        heal()
        raises("does not compile", call)  # as it did before
        forget()
        call()
        if name in ("index_set", "index_add"):
            assert out.tolist() != done
            done = out.tolist()
    assert rows.tolist() == [[one + 1 for one in row] for row in before[2]]


def names():
    """The exception says which operation it is, and shows the compiler's words."""
    x = numbers(3)
    forget()
    refuse("tanh_")
    raises("kernel tanh_kernel does not compile for sm_", x.tanh().tolist)
    raises("a test wants no such text", x.tanh().tolist)
    y = x.tanh() * 2 + 1  # the others have run, and wait for it
    raises("tanh_kernel", y.tolist)
    raises("tanh_kernel", genesis.flush)
    heal()
    forget()
    assert y.tolist() == (x.tanh() * 2 + 1).tolist()
    genesis.flush()


def threads():
    """Several threads need what cannot be one kernel."""
    forget()
    x = numbers(1000)
    cuda.synchronize()
    refuse("multiply_add")
    shared = x * 2 + 1
    results, expected = [], [2 * one + 1 for one in x.tolist()]

    def work():
        results.append((shared + 1 - 1).tolist())
        results.append(shared.tolist())

    every = [threading.Thread(target=work) for _ in range(4)]
    for one in every:
        one.start()
    for one in every:
        one.join()
    assert len(results) == 8 and all(one == expected for one in results)


def cached():
    """Kernels that may come from a disk: what is there does not matter."""
    far = numbers(6, 40)
    near = far.cpu()
    for call in (
        lambda x: x * 2 + 1,
        lambda x: (x - 1).sum(dim=1),
        lambda x: x[x > 7],
        lambda x: x.flip(1).sort(dim=1)[0],
        lambda x: x.cumsum(dim=1),
    ):
        assert call(far).tolist() == call(near).tolist()


# ---- memory, and the device ---------------------------------------------------------------------


def bound(spare):
    """Let the device have so many bytes left from now on; gives how many it had in all."""
    cuda.synchronize()
    cuda.empty_cache("cuda")
    free, total = genesis._C.memory_info("cuda:0")
    assert SIMULATOR.sim_control_memory(ctypes.c_size_t(total - free + spare))
    return total


def widen(total):
    """Let it have them again."""
    assert SIMULATOR.sim_control_memory(ctypes.c_size_t(total))


def full():
    """A device that is full in the middle of an expression."""
    count = 5 << 18
    x = genesis.full((count,), 3.0, device="cuda", dtype=genesis.uint8)
    near = x[:5].tolist()
    calls = {
        "one": lambda: [x * 2 + 1],
        "two": lambda: (lambda a: [a, a + 1])(x * 2),
        "prologue": lambda: [(x + 1).long().cumsum(dim=0)],
        "mask": lambda: [x[x == 3]],
        "random": lambda: [genesis.rand(count, device="cuda")],
        "copy": lambda: [genesis.zeros(count).cuda()],
    }
    for name, call in calls.items():
        total, made = bound(1 << 20), []

        def work(call=call, made=made):
            made.extend(call())  # it may wait, and fail when its bytes are needed
            for one in made:
                one.data_ptr()

        raises("out of memory", work, genesis.OutOfMemoryError)
        raises("cuda:0", work, genesis.OutOfMemoryError)
        assert x[:5].tolist() == near, name
        widen(total)
        for one in made:  # what has waited is computed once there is memory
            one.data_ptr()
    total = bound(1 << 20)
    many = [x * i for i in range(8)]
    raises("out of memory", genesis.flush, genesis.OutOfMemoryError)
    raises("out of memory", cuda.synchronize, genesis.OutOfMemoryError)
    x = None  # those that wait read it
    widen(total)
    assert [one[-3:].tolist() for one in many] == [[3 * i] * 3 for i in range(8)]


def calls():
    """Each call of the driver fails once, where it can: nothing is changed or lost by that."""
    x, places, mask = numbers(6, 40), genesis.tensor([3, 0], device="cuda"), numbers(6, 40) > 7
    near, side = genesis.ones(6, 40), cuda.Stream()

    def crossing():
        with cuda.stream(side):
            y = x * 2
        return (x + y).tolist()

    def in_place():
        y = x.clone()
        y[places] = x[:2] * 2
        y.add_(x[0])
        return y.tolist()

    every = [
        *(lambda: (x * 2 + 1).tolist(), lambda: [(x - 1).sum(dim=1).tolist(), x.sum().item()]),
        *(lambda: (x - 1).softmax(dim=1).tolist(), lambda: x[places].tolist(), crossing, in_place),
        *(lambda: x[mask].tolist(), lambda: x.cumsum(dim=0).tolist(), lambda: x.unique().tolist()),
        *(
            lambda: x.sort(dim=1)[1].tolist(),
            lambda: (x @ x.T).tolist(),
            lambda: near.cuda().tolist(),
        ),
        lambda: (x + 1).cpu().tolist(),
    ]
    known = x.tolist(), places.tolist(), mask.tolist()
    struck = 0
    for call in every:
        expected = call()
        for nth in range(1, 400):
            cuda.empty_cache("cuda")
            SIMULATOR.sim_control_fail(None, nth, OUT_OF_MEMORY, 0)
            try:
                result = call()
            except RuntimeError as error:
                assert "memory" in str(error), error
                result = None
            is_struck = SIMULATOR.sim_control_fault_count()
            heal()
            assert result is None or result == expected
            assert (x.tolist(), places.tolist(), mask.tolist()) == known
            struck += is_struck
            if not is_struck:
                assert result == expected
                break
        assert call() == expected
    assert struck > 100, struck


def lost():
    """A kernel that faults takes the device with it: every call says so, and the rest goes on."""
    x = numbers(100)
    stream, event, graph = cuda.Stream(), cuda.Event(), cuda.CUDAGraph()
    event.record()
    with cuda.graph(graph):
        captured = x + 1
    cuda.synchronize()
    pending, waiting, near = x * 2 + 1, x * 3 + 1, genesis.ones(3)
    fail("cuLaunchKernelEx", 700)  # CUDA_ERROR_ILLEGAL_ADDRESS
    raises("CUDA_ERROR_ILLEGAL_ADDRESS", pending.tolist, genesis.DeviceLostError)
    heal()
    before = cuda.get_kernel_fusion_failures()
    for call in [
        *(pending.tolist, waiting.tolist, captured.tolist, x.tolist, x.cpu, near.cuda),
        *(cuda.synchronize, stream.synchronize, event.synchronize, graph.replay, cuda.Stream),
        *(genesis.flush, lambda: x.sum().item(), lambda: x[x > 3], lambda: x.sort(), lambda: x @ x),
        *(lambda: x.add_(1), lambda: genesis.rand(3, device="cuda"), lambda: x.softmax(dim=0)),
        lambda: genesis.zeros(1 << 22, device="cuda"),
        lambda: cuda.Kernel("__global__ void k() {}", "k").compile(),
    ]:
        raises("cuda:0 is lost", call, genesis.DeviceLostError)
    assert cuda.get_kernel_fusion_failures() == before  # it is of no use to try again
    assert x.shape == (100,) and str(x.device) == "cuda:0" and x.dtype == genesis.float32
    assert (near * 2).tolist() == [2.0] * 3


SECTIONS = [programs, folds, loading, alone, names, threads, cached, full, calls, lost]

if __name__ == "__main__":
    SIMULATOR = simulator()
    wanted = sys.argv[1:]
    for section in SECTIONS:
        if section.__name__ in wanted or (not wanted and section is not lost):
            section()
            if section is lost:
                break
            heal()
            gc.collect()
            cuda.synchronize()
