"""Kernels that are measured or compiled ahead, and storage by shape, on the simulated GPU."""

import json
import re

import pytest
from conftest import BUILD, PLACES, memory_runner


@pytest.fixture
def gpu(fresh):
    """Run code in a fresh interpreter on the simulated GPU."""
    return memory_runner(fresh, "sim")


def lines_of(finished):
    return [re.sub(r"\d+\.\d+ms$", "TIME", line) for line in finished.stdout.splitlines()]


# ---- enable_profiling ---------------------------------------------------------------------------


def test_each_kernel_is_printed_after_it_has_run(gpu):
    finished = gpu("""
cuda.enable_profiling(True)
x = genesis.tensor([[1, 2], [3, 4]], device="cuda")
y = genesis.matmul(x, x)
print("submitted")
cuda.synchronize()
print("waited")
z = (y.float() * 2 + 1).sum().item()
print("read")
w = y + 1
cuda.enable_profiling(False)
print("off")
(y * 3).cpu()
""")
    assert lines_of(finished) == [
        "submitted",
        "matmul_kernel: TIME",
        "waited",
        "multiply_add_sum_kernel: TIME",
        "read",
        "add_kernel: TIME",
        "off",
    ]


def test_what_still_runs_at_the_end_is_printed(gpu):
    finished = gpu("""
cuda.enable_profiling()
x = genesis.ones(3, device="cuda") * 2
""")
    assert lines_of(finished) == ["copy_kernel: TIME", "multiply_kernel: TIME"]


def test_short_kernels_have_a_time():
    from genesis._profiling import _format_ms

    assert [_format_ms(t) for t in (0.15, 12.3456, 0.0021)] == ["0.15ms", "12.35ms", "0.0021ms"]


def test_threads_that_launch_and_wait_do_not_lock_each_other_out(gpu):
    gpu("""
cuda.enable_profiling(True)
sys.stdout = io.StringIO()
with cuda.profiler() as profile:
    def work(index):
        with cuda.stream():
            for i in range(20):
                assert (genesis.ones(10, device="cuda") * (i + 2)).sum().item() == 10 * (i + 2)
    run_threads(4, work)
assert sum(event.name == "multiply_sum_kernel" for event in profile.events) == 80, profile.stats()
assert profile.lost == 0
""")


def test_a_forked_child_does_not_measure(gpu):
    finished = gpu("""
cuda.enable_profiling(True)
x = genesis.ones(3, device="cuda") * 2
cuda.synchronize()
y = x + 1
genesis.flush()
if os.fork() == 0:
    sys.exit(0)
os.wait()
""")
    assert lines_of(finished) == [f"{name}_kernel: TIME" for name in ("copy", "multiply", "add")]


# ---- profiler -----------------------------------------------------------------------------------


def test_a_profiler_has_what_runs_inside_it(gpu):
    finished = gpu("""
before = genesis.ones(100, device="cuda") * 3
with cuda.profiler() as outer:
    x = before + 1
    genesis.flush()
    with cuda.profiler() as inner:
        for _ in range(3):
            (x * 2).sum().item()
        kept = x.exp()
    y = x - 1
after = y * 5
genesis.flush()
names = [event.name for event in outer.events]
assert names == ["add_kernel"] + ["multiply_sum_kernel"] * 3 + ["exp_kernel", "subtract_kernel"]
assert inner.events == outer.events[1:5]
event = inner.events[0]
assert event.device == 0 and event.grid == (1, 1, 1) and event.block[0] >= 32
assert event.submitted_ns <= event.start_ns <= time.monotonic_ns()
first, second = inner.stats()
assert first.name == "multiply_sum_kernel" and first.count == 3 and second.count == 1
assert first.min <= first.mean <= first.max and abs(first.total - 3 * first.mean) < 1e-9
assert [one.name for one in outer.stats("name")] == sorted({*names})
assert outer.stats("count")[0].count == 3
assert inner.lost == outer.lost == 0 and len(inner.events) == 4
raises(ValueError, "'total'", inner.stats, "speed")
with inner:
    raises(RuntimeError, "active already", inner.__enter__)
    (x * 2).sum().item()
assert len(inner.events) == 5
print(inner)
""")
    lines = finished.stdout.splitlines()
    assert lines[0].split() == [
        "kernel",
        "count",
        "total",
        "ms",
        "mean",
        "ms",
        "min",
        "ms",
        "max",
        "ms",
    ]
    assert re.match(r"multiply_sum_kernel +4( +\d+\.\d{4}){4}$", lines[1])
    assert len(lines) == 3


def test_a_profiler_ends_with_an_exception(gpu):
    gpu("""
profile = cuda.profiler()
def work():
    with profile:
        genesis.ones(3, device="cuda").sum().item()
        raise KeyError("mine")
raises(KeyError, "mine", work)
assert len(profile.events) == 2
genesis.ones(3, device="cuda").sum().item()
assert len(profile.events) == 2
""")


def test_a_trace_has_kernels_and_memory(gpu, tmp_path):
    path = tmp_path / "trace.json"
    gpu(f"""
from genesis import memory_profiler
with cuda.profiler() as profile, memory_profiler.record():
    x = genesis.ones(1000, device="cuda").exp()
    with cuda.stream():
        y = (x * 2).sum().item()
profile.to_chrome_trace({str(path)!r})
""")
    entries = json.loads(path.read_text())["traceEvents"]
    kernels = [entry for entry in entries if entry.get("cat") == "kernel"]
    assert {entry["name"] for entry in kernels} >= {"multiply_sum_kernel"}
    assert all(entry["ts"] >= entry["args"]["submitted"] >= 0 for entry in kernels)
    assert any(entry["ph"] == "C" and entry["name"] == "live" for entry in entries)
    places = {(entry["pid"], entry["tid"]) for entry in kernels}
    named = [entry for entry in entries if entry["name"] == "thread_name"]
    assert places <= {(entry["pid"], entry["tid"]) for entry in named}


def test_without_cuda_there_is_nothing_to_measure(fresh):
    finished = fresh(
        "import genesis\n"
        "genesis.cuda.enable_profiling(True)\n"
        "with genesis.cuda.profiler() as profile:\n"
        "    assert genesis.ones(3).sum().item() == 3\n"
        "assert profile.events == [] and len(profile.table().splitlines()) == 1\n",
        **PLACES["cpu"],
    )
    assert finished.stdout == finished.stderr == ""


def test_products_of_a_library_are_measured(fresh):
    driver = BUILD / "libgenesis_sim_blas.so"
    if not driver.exists():
        pytest.skip("the build has no simulator")
    fresh(
        """
import genesis
x = genesis.rand(33, 150).cuda()
genesis.flush()
with genesis.cuda.profiler() as profile:
    x @ x.T
(event,) = profile.events
assert event.name == "cublaslt_matmul_kernel" and event.grid == (0, 0, 0), event
""",
        GENESIS_CUDA_DRIVER=str(driver),
    )


# ---- warming up, fusion, starting ---------------------------------------------------------------


def test_common_operations_are_compiled_ahead(fresh, tmp_path):
    finished = fresh(
        """
import sys, genesis
genesis.cuda.warm_up_kernels()
print("---- warm", file=sys.stderr, flush=True)
genesis.cuda.set_kernel_fusion(False)
a = genesis.ones(64, 64, device="cuda")
b = genesis.zeros(64, 64, device="cuda")
a + b, a - b, a * b, a / b, a + 2, a - 2.5, a * 3, a / 7
a.exp(), a.sqrt(), a.relu(), a.tanh(), a.sigmoid()
for dim in (None, 0, 1):
    a.sum(dim), a.mean(dim), a.amax(dim)
assert genesis.ones(3000, device="cuda").sum().item() == 3000
print("---- other", file=sys.stderr, flush=True)
a.log()
""",
        GENESIS_LOG="info",
        GENESIS_CUDA_DRIVER="sim",
        GENESIS_KERNEL_CACHE_DIR=str(tmp_path),
    )
    before, after = finished.stderr.split("---- warm\n")
    assert before.count("was compiled") >= 20
    warm, other = after.split("---- other\n")
    assert warm == ""
    assert "kernel log_kernel was compiled" in other


def test_fusion_is_switched(gpu):
    gpu("""
x = genesis.ones(10, device="cuda")
for enabled, count in ((False, 2), (True, 1)):
    cuda.set_kernel_fusion(enabled)
    assert genesis.get_fusion() is enabled
    with cuda.profiler() as profile:
        (x * 2 + 1).cpu()
    assert len(profile.events) == count, profile.events
""")


def test_cuda_starts_when_asked(fresh):
    code = "import genesis\ngenesis.cuda.enable_lazy_init({})\n"
    fresh(code.format("True"), **PLACES["cpu"])
    finished = fresh(code.format("False"), check=False, **PLACES["cpu"])
    assert finished.returncode == 1 and "RuntimeError" in finished.stderr
    fresh(code.format("False"), **PLACES["sim"])


# ---- storage ------------------------------------------------------------------------------------


def test_storage_and_tensors_by_shape(gpu):
    gpu("""
from genesis.backends import cuda_kernels
from genesis.backends.cuda import CUDAStorage, CUDATensor
assert cuda_kernels.Kernel is cuda.Kernel and cuda_kernels.profiler is cuda.profiler
x = genesis.arange(6.0, device="cuda").reshape(2, 3)
y = CUDATensor(x.shape, x.dtype)
assert type(y) is genesis.Tensor and y.shape == x.shape and y.device == "cuda:0"
assert isinstance(y, CUDATensor) and not isinstance(y.cpu(), CUDATensor)
assert not isinstance(y.data_ptr(), CUDATensor) and CUDATensor(4).shape == (4,)
before = cuda.memory_allocated()
storage = CUDAStorage((2, 3), genesis.int32)
assert cuda.memory_allocated() == before + 512
assert (storage.shape, storage.dtype, storage.device_id) == ((2, 3), genesis.int32, 0)
assert storage.nbytes == 24 and storage.device == "cuda:0"
assert repr(storage) == "CUDAStorage((2, 3), genesis.int32, device_id=0)"
storage.tensor().copy_(x)
fill = cuda.Kernel("__global__ void add(int *x) { x[threadIdx.x] += 10; }", "add")
fill(1, 6, (storage,))
assert genesis.from_dlpack(storage).tolist() == [[10, 11, 12], [13, 14, 15]]
tensor = storage.tensor()
del storage
assert tensor.cpu().sum().item() == 75
raises(RuntimeError, "cuda:7", CUDAStorage, (2,), genesis.float32, 7)
raises(ValueError, "(-1,)", CUDATensor, (-1,))
""")
