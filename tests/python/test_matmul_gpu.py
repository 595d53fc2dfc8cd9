"""Matrix products on the simulated GPU: by our kernel, and by a stand-in for cuBLASLt."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from conftest import BUILD, script_find

SIMULATOR, WITH_BLAS = BUILD / "libgenesis_sim.so", BUILD / "libgenesis_sim_blas.so"
PRELUDE = f"""
import ctypes, os
import genesis

fake = ctypes.CDLL({str(WITH_BLAS)!r})

def count(name):
    return fake.fake_cublaslt_count(("cublasLt" + name).encode())

def fail(order=None):
    if order is None:
        os.environ.pop("FAKE_CUBLASLT_FAIL", None)
    else:
        os.environ["FAKE_CUBLASLT_FAIL"] = "cublasLt" + order

def raises(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)

a = genesis.rand(33, 150)
g = a.cuda()
near = a @ a.T

def check(made):
    assert genesis.allclose(made.cpu(), near, rtol=1e-5), (made.cpu() - near).abs().max()
"""


@pytest.fixture
def gpu(fresh):
    """Run code beside the stand-in for cuBLASLt."""
    if not WITH_BLAS.exists():
        pytest.skip("the build has no simulator")
    return lambda code, **environment: fresh(
        PRELUDE + code, GENESIS_CUDA_DRIVER=str(WITH_BLAS), **environment
    )


@pytest.mark.parametrize(
    ("driver", "schedule", "sections"),
    [
        (SIMULATOR, "eager", ["floats", "sums"]),
        (SIMULATOR, "random", ["streams"]),
        (WITH_BLAS, "eager", ["floats", "integers", "batches", "layouts"]),
        (WITH_BLAS, "eager", ["outputs", "sums", "errors", "streams", "precision"]),
    ],
)
def test_products_are_those_of_the_cpu(driver, schedule, sections):
    if not driver.exists():
        pytest.skip("the build has no simulator")
    finished = subprocess.run(
        [sys.executable, script_find("device_matmul.py"), *sections],
        env=os.environ
        | {
            "GENESIS_CUDA_DRIVER": str(driver),
            "GENESIS_KERNEL_CACHE_DIR": str(BUILD / "kernels"),
            "SIM_GPU_SCHEDULE": schedule,
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert [line for line in finished.stdout.splitlines() if line[0] != " "] == sections
    assert not finished.stderr


def test_a_plan_is_made_once(gpu):
    gpu("""
for _ in range(50):
    check(g @ g.T)
assert count("MatmulAlgoGetHeuristic") == 1 and count("Matmul") == 50 and count("Create") == 1
check((g * 1) @ g.T)  # elsewhere, and aligned as well
assert count("MatmulAlgoGetHeuristic") == 1
shifted = genesis.zeros(33 * 150 + 1, device="cuda")[1:].reshape(33, 150)
shifted.copy_(g)
check(shifted @ g.T)  # aligned to 4 bytes
assert count("MatmulAlgoGetHeuristic") == 2
genesis.set_float32_matmul_precision("high")
assert genesis.get_float32_matmul_precision() == "high"
g @ g.T
assert count("MatmulAlgoGetHeuristic") == 3
g.half() @ g.T.half()
assert count("MatmulAlgoGetHeuristic") == 4
""")


def test_the_choice_of_an_algorithm_is_listed(gpu, tmp_path):
    code = """
(genesis.rand(128, 150).cuda() @ genesis.rand(150, 96).cuda()).cpu()
(one,) = genesis.cuda.tuning_choices()
assert one.kernel == "matmul" and len(one.candidates) == 3
sizes = "float32 rows=128 columns=96 inner=150 batch=1 layout="
assert one.problem.startswith(sizes), one.problem
assert all(list(c.values) == ["algorithm", "workspace"] for c in one.candidates)
"""
    gpu(code, GENESIS_AUTOTUNE="max", GENESIS_KERNEL_CACHE_DIR=str(tmp_path / "cache"))


def test_operands_that_lie_well_are_not_copied(gpu):
    gpu("""
statistics = lambda: genesis.memory_stats(device="cuda").num_allocs
square = genesis.rand(8, 8, device="cuda")
views = [square, square.T, square[:4], square[:, :4], square[1:5, 2:6], square[:, 2:3], square[:1]]
for x in views:
    for y in views:
        if x.shape[1] == y.shape[0]:
            x @ y
            before = statistics()
            x @ y
            assert statistics() == before + 1, (x.shape, y.shape)
pairs = genesis.rand(3, 8, 4, device="cuda")
pairs @ pairs.mT
before, calls = statistics(), count("Matmul")
pairs @ pairs.mT
assert statistics() == before + 1 and count("Matmul") == calls + 1
before = statistics()
square[::2, ::2] @ square[:4]
assert statistics() == before + 2  # the copy and the result
""")


def test_large_batches_are_several_calls(gpu):
    gpu("""
x = genesis.rand(65537, 1, 2)
before = count("Matmul")
made = x.cuda() @ x.mT.cuda()
assert count("Matmul") == before + 2
assert genesis.allclose(made.cpu(), x @ x.mT)
y = genesis.rand(3, 1, 2, 4)
z = genesis.rand(5, 4, 2)
before = count("Matmul")
made = y.cuda() @ z.cuda()
assert count("Matmul") == before + 3
assert genesis.allclose(made.cpu(), y @ z)
""")


def test_batches_that_lie_unevenly_are_copied_into_one_call(gpu):
    gpu("""
heads = genesis.rand(2, 5, 3, 4, 6)
q, k, v = heads.permute(2, 0, 3, 1, 4)
far_q, far_k, far_v = heads.cuda().permute(2, 0, 3, 1, 4)
before = count("Matmul")
made = far_q @ far_k.mT
assert count("Matmul") == before + 1
assert genesis.allclose(made.cpu(), q @ k.mT)
made = made @ far_v
assert count("Matmul") == before + 2
assert genesis.allclose(made.cpu(), q @ k.mT @ v)
far_q[:1] @ far_k.mT  # the matrices of some are shared by others: a copy would not help
assert count("Matmul") == before + 2 + 2
""")


def test_sums_are_one_call(gpu):
    gpu("""
def kernels(call):
    call()
    with genesis.cuda.profiler() as profile:
        made = call()
    check(made - addend)
    return [(one.name, one.count) for one in profile.stats("count")]

ONE = [("cublaslt_matmul_kernel", 1)]
for addend in (genesis.rand(33).cuda(), genesis.rand(33, 33).cuda(), genesis.rand(1, 33).cuda(),
               genesis.rand(33, 40).cuda()[:, :33]):
    assert kernels(lambda: genesis.addmm(addend, g, g.T)) == ONE, addend.shape
square = genesis.rand(33, 33).cuda()
for addend in (genesis.rand(34).cuda()[1:], square[:, :1], square.T):
    assert len(kernels(lambda: genesis.addmm(addend, g, g.T))) == 2, addend.shape
row = genesis.rand(33).cuda()
plans = count("MatmulAlgoGetHeuristic")
for _ in range(5):
    row = row * 1  # elsewhere
    genesis.addmm(row, g, g.T)
assert count("MatmulAlgoGetHeuristic") == plans
half, small = g.half()[:, :64], genesis.full((33,), 2.0**-10).half().cuda()
wide = half.cpu().float()
assert genesis.equal(genesis.addmm(small, half, half.T).cpu(), (wide @ wide.T + 2.0**-10).half())
fail("MatmulAlgoGetHeuristic:15")
addend = genesis.rand(33).cuda()
check(genesis.addmm(addend, g[:, 50:], g[:, 50:].T) + g[:, :50] @ g[:, :50].T - addend)
fail("MatmulDescCreate:3")
raises(genesis.OutOfMemoryError, "cublasLtMatmulDescCreate", lambda: genesis.addmm(addend, g, g.T))
fail("Matmul:13")
raises(RuntimeError, "EXECUTION_FAILED", lambda: genesis.addmm(addend, g, g.T))
fail("Matmul:15")
check(genesis.addmm(addend, g, g.T) - addend)
""")


def test_what_the_library_cannot_is_done_by_our_kernel(gpu):
    gpu("""
fail("MatmulAlgoGetHeuristic:15")
check(g @ g.T)
fail()
check(g @ g.T)
assert count("Matmul") == 0 and count("MatmulAlgoGetHeuristic") == 0  # it is not asked again
fail("Matmul:15")
check(g @ (g * 1).T[:, :])
big = genesis.rand(40, 40)
assert genesis.allclose((big.cuda() @ big.cuda()).cpu(), big @ big)
fail()
big.cuda() @ big.cuda()
assert count("Matmul") == 0
""")
    gpu("""
fail("Create:1")
check(g @ g.T)
fail()
check(g @ g.T)
assert count("Create") == 0 and count("Matmul") == 0
""")
    gpu(
        """
check(g @ g.T)
assert count("Create") == 0
""",
        GENESIS_BLAS="off",
    )


def test_failures_are_exceptions(gpu):
    gpu("""
fail("Matmul:13")
raises(RuntimeError, "cublasLtMatmul failed: CUBLAS_STATUS_EXECUTION_FAILED", lambda: g @ g.T)
fail("Matmul:3")
raises(genesis.OutOfMemoryError, "cublasLtMatmul failed", lambda: g @ g.T)
fail()
check(g @ g.T)
for name, number, kind in (
    ("MatmulDescCreate", 3, genesis.OutOfMemoryError),
    ("MatrixLayoutCreate", 3, genesis.OutOfMemoryError),
    ("MatmulPreferenceCreate", 3, genesis.OutOfMemoryError),
    ("MatmulAlgoGetHeuristic", 14, RuntimeError),
):
    fail(f"{name}:{number}")
    raises(kind, "cublasLt" + name, lambda: g.double() @ g.double().T)
fail()
left = [count(name + "Create") - count(name + "Destroy")
        for name in ("MatmulDesc", "MatrixLayout", "MatmulPreference")]
assert left == [1, 3, 0], left
""")


def test_many_shapes_do_not_pile_up(gpu):
    gpu("""
row = genesis.rand(1, 4200, device="cuda")
for n in range(1, 4200):
    row[:, :n] @ row[:, :1].expand(1, 1) if n == 1 else row[:, :n].T[:1] @ row[:, :n]
assert 0 < count("MatmulDescDestroy") == count("MatmulDescCreate") - 103
check(g @ g.T)
""")
