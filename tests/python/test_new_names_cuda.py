"""Names of genesis.cuda that PyTorch's users miss: on the simulated GPU, or a stand-in for CUDA."""

from __future__ import annotations

import shutil
import subprocess

import pytest

import genesis

NVTX = """
#include <stdio.h>
static int depth;
static void say(const char *what, const char *text)
{
    FILE *log = fopen(LOG, "a");
    fprintf(log, "%s %s\\n", what, text);
    fclose(log);
}
int nvtxRangePushA(const char *text) { say("push", text); return depth++; }
int nvtxRangePop(void) { say("pop", "-"); return --depth; }
void nvtxMarkA(const char *text) { say("mark", text); }
"""

NVML = """
#include <string.h>
struct rates { unsigned gpu, memory; };
static int is_ready;
int nvmlInit_v2(void) { is_ready = 1; return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **handle)
{
    *handle = (void *)42;
    return !is_ready || strcmp(bus, "0000:02:00.0") != 0 ? 6 : 0;
}
int nvmlDeviceGetUtilizationRates(void *handle, struct rates *rates)
{
    rates->gpu = 37;
    return handle != (void *)42;
}
"""


@pytest.fixture
def library(tmp_path):
    """Compile a stand-in for a library of NVIDIA's; gives its path."""

    def build(source: str, *options: str) -> str:
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("there is no C compiler")
        path = tmp_path / "libstandin.so"
        command = [compiler, "-shared", "-fPIC", "-x", "c", "-o", path, *options, "-"]
        subprocess.run(command, input=source, text=True, check=True)
        return str(path)

    return build


def test_whether_cuda_has_started(fresh, fake_driver):
    fresh(
        """
import os, genesis
from genesis import cuda
assert not cuda.is_initialized() and not cuda.is_current_stream_capturing()
assert cuda.is_available() and cuda.device_count() == 2
assert not cuda.is_initialized()  # counting starts no device
cuda.synchronize(0)
assert cuda.is_initialized() and not cuda.is_current_stream_capturing()
child = os.fork()
if child == 0:
    os._exit(cuda.is_initialized())  # a child cannot use what its parent started
assert os.waitpid(child, 0)[1] == 0
assert cuda.is_bf16_supported() and cuda.is_bf16_supported(including_emulation=False)
assert cuda.can_device_access_peer(0, 1) and cuda.can_device_access_peer("cuda:1", "cuda:0")
assert not cuda.can_device_access_peer(0, 0) and not cuda.can_device_access_peer(0, "cpu")
try:
    cuda.can_device_access_peer(0, 7)
    raise SystemExit("there is no such device")
except genesis.InvalidDeviceError:
    pass
""",
        GENESIS_CUDA_DRIVER=fake_driver,
    )


def test_a_driver_that_does_not_know_peers(fresh, fake_driver):
    fresh(
        "from genesis import cuda\nassert not cuda.can_device_access_peer(0, 1)",
        GENESIS_CUDA_DRIVER=fake_driver,
        FAKE_CUDA_MISSING="cuDeviceCanAccessPeer",
    )


def test_without_cuda():
    if genesis.cuda.is_available():
        pytest.skip("there is a GPU")
    assert not genesis.cuda.is_initialized() and not genesis.cuda.is_bf16_supported()
    assert not genesis.cuda.is_current_stream_capturing()
    with pytest.raises(RuntimeError):
        genesis.cuda.MemPool()
    with pytest.raises(RuntimeError):
        genesis.cuda.utilization()


def test_the_state_of_the_generator():
    state = genesis.cuda.get_rng_state()
    first = genesis.rand(5)
    genesis.cuda.set_rng_state(state, device="cuda")
    assert genesis.equal(genesis.rand(5), first)
    genesis.set_rng_state(state)
    assert genesis.equal(genesis.cuda.get_rng_state("cuda"), state)
    with pytest.raises(ValueError, match="the state of a generator is"):
        genesis.cuda.set_rng_state(genesis.zeros(3))


def test_a_capture_is_seen(simulated_memory):
    simulated_memory("""
x, graph, seen = genesis.ones(4, device="cuda"), genesis.cuda.CUDAGraph(), []
with genesis.cuda.graph(graph):
    seen.append(genesis.cuda.is_current_stream_capturing())
    y = x + 1
seen.append(genesis.cuda.is_current_stream_capturing())
assert seen == [True, False]
graph.replay()
assert y.tolist() == [2.0] * 4
""")


POOLS = """
from genesis import cuda
def place(tensor):
    return tensor.data_ptr()
outside = genesis.ones(1 << 16, device=DEVICE)
pool = cuda.MemPool(device=DEVICE)
assert pool.device == outside.device and pool.id != cuda.MemPool(device=DEVICE).id
with cuda.use_mem_pool(pool):
    x = genesis.ones(1 << 16, device=DEVICE)
inside = place(x)
del x
# What is free in the pool is not for others, and what others have freed not for the pool.
free = place(outside)
del outside
others = [genesis.ones(1 << 16, device=DEVICE) for _ in range(8)]
assert inside not in map(place, others)
del others
with cuda.use_mem_pool(pool, DEVICE):
    again = genesis.ones(1 << 16, device=DEVICE)
    more = genesis.ones(1 << 16, device=DEVICE)
assert place(again) == inside and free != place(more)
try:
    with cuda.use_mem_pool(pool):
        raise KeyError
except KeyError:
    after = genesis.ones(1 << 16, device=DEVICE)
    assert place(after) != inside
del pool  # tensors outlive it
assert again.sum().item() == more.sum().item() == 1 << 16
del again, more, after
for wrong, error in (
    (lambda: cuda.MemPool(object(), device=DEVICE), TypeError),
    (lambda: cuda.use_mem_pool(object()), TypeError),
    (lambda: cuda.use_mem_pool(cuda.MemPool(device=DEVICE), OTHER), ValueError),
):
    try:
        wrong()
        raise SystemExit("a mistake was not seen")
    except error:
        pass
"""


def test_pools_on_the_simulator(simulated_memory):
    simulated_memory(POOLS.replace("DEVICE", "'cuda'").replace("OTHER", "'cpu'"))


def test_a_pool_of_pending_results(simulated_memory):
    """A result that waits when the block ends is computed in the pool's memory."""
    simulated_memory("""
from genesis import cuda
x, pool = genesis.ones(1 << 16, device="cuda"), cuda.MemPool()
before = x + 1
with cuda.use_mem_pool(pool):
    y = x * 3
address = y.data_ptr()
del y
assert before.data_ptr() != address
with cuda.use_mem_pool(pool):
    z = x * 5
assert z.data_ptr() == address and z[0].item() == 5 and before[0].item() == 2
""")


def test_memory_by_its_address(simulated_memory):
    simulated_memory("""
from genesis import cuda
before = cuda.memory_allocated()
side = cuda.Stream()
places = [cuda.caching_allocator_alloc(1000), cuda.caching_allocator_alloc(5000, 0, side),
          cuda.caching_allocator_alloc(5000, "cuda", side.cuda_stream),
          cuda.caching_allocator_alloc(100, "cpu")]
assert len({*places}) == 4 and cuda.memory_allocated() >= before + 11000
for place in places:
    cuda.caching_allocator_delete(place)
assert cuda.memory_allocated() == before
for wrong in (places[0], 12345):
    try:
        cuda.caching_allocator_delete(wrong)
        raise SystemExit("freed twice")
    except ValueError as error:
        assert str(error) == f"caching_allocator_delete: {wrong:#x} is not allocated"
""")


def test_nvtx(library, tmp_path, fresh):
    log = tmp_path / "log"
    path = library(NVTX, f'-DLOG="{log}"')
    fresh(f"""
from genesis.cuda import nvtx
from genesis import _nvtx
_nvtx._FILE = {path!r}
assert nvtx is _nvtx and nvtx.range_push("one") == 0 and nvtx.range_push("two") == 1
assert nvtx.range_pop() == 1 and nvtx.range_pop() == 0
nvtx.mark("now")
try:
    with nvtx.range("step {{}} of {{of}}", 7, of=9):
        raise KeyError
except KeyError:
    pass
""")
    expected = ["push one", "push two", "pop -", "pop -", "mark now", "push step 7 of 9", "pop -"]
    assert log.read_text().splitlines() == expected


def test_nvtx_without_its_library(fresh):
    fresh("""
from genesis.cuda import nvtx
from genesis import _nvtx
_nvtx._FILE = "libthere_is_none.so"
assert nvtx.range_push("one") == nvtx.range_pop() == -2 and nvtx.mark("x") is None
with nvtx.range("x"):
    pass
""")


def test_utilization(library, fresh, fake_driver):
    path = library(NVML)
    fresh(
        f"""
from genesis import cuda, _nvml
_nvml._FILE = "libthere_is_none.so"
def refused(error, words, *device):
    try:
        cuda.utilization(*device)
    except error as caught:
        assert words in str(caught), caught
    else:
        raise SystemExit("a mistake was not seen")
refused(RuntimeError, "utilization: NVML cannot be loaded: libthere_is_none")
_nvml._FILE = {path!r}
assert cuda.utilization(1) == 37 == cuda.utilization("cuda:1")
refused(RuntimeError, "nvmlDeviceGetHandleByPciBusId_v2 failed with error 6", 0)
refused(ValueError, "is a CUDA device", "cpu")
""",
        GENESIS_CUDA_DRIVER=fake_driver,
    )
