"""Reductions of rows that wait, and are one program with the operations around them.

The random programs are tests/ops/row_programs.py; ROW_PROGRAMS says how many there are.
"""

import os

import numpy
import pytest
from conftest import run_script, simulate_script

import genesis

PROGRAMS = int(os.environ.get("ROW_PROGRAMS", "600"))
FIRST = os.environ.get("ROW_PROGRAMS_FIRST", "0")


def test_random_programs_on_the_cpu():
    """With fusion and without it, all results have the same bits."""
    finished = run_script("row_programs.py", "cpu", FIRST, str(PROGRAMS))
    assert f"{PROGRAMS} programs, 0 wrong, 0 refused" in finished.stdout


def test_random_programs_on_the_simulated_gpu():
    """The same, and close to the CPU; each finding of the simulator is fatal."""
    count = str(min(max(PROGRAMS // 20, 1), 300))
    finished = simulate_script(
        "row_programs.py",
        "cuda",
        FIRST,
        count,
        "small",
        SIM_GPU_SCHEDULE="random",
        SIM_GPU_LANES="random",
        SIM_GPU_FINDINGS="abort",
    )
    assert f"{count} programs, 0 wrong, 0 refused" in finished.stdout


@pytest.mark.gpu
def test_random_programs_on_the_gpu():
    """The same on a real one."""
    count = str(min(max(PROGRAMS // 10, 1), 300))
    finished = run_script("row_programs.py", "cuda", FIRST, count)
    assert f"{count} programs, 0 wrong, 0 refused" in finished.stdout


@pytest.fixture
def many() -> numpy.ndarray:
    """Rows of more memory than is searched for an output that can take it over."""
    return numpy.random.default_rng(0).uniform(-1, 1, (2, 200_003)).astype(numpy.float32)


def test_an_input_that_is_stored_rounded_is_not_written_over(many):
    """A value is not computed into the memory of an input that another output is, rounded."""
    rounded = genesis.tensor(many).to(genesis.bfloat16)
    chosen = genesis.where(rounded > 0.25, genesis.ones(200_003), 0.5)
    genesis.flush()
    near = rounded.to(genesis.float32).numpy()
    assert numpy.abs(near - many).max() < 1 / 128
    assert (chosen.numpy() == numpy.where(near > 0.25, 1, 0.5)).all()


def test_an_input_that_a_later_phase_reads_is_not_written_over():
    """A value of the first phase is not computed into memory that a later phase reads."""
    rng = numpy.random.default_rng(1)
    x, y, z = (rng.uniform(0.5, 1, (64, 5000)).astype(numpy.float32) for _ in range(3))
    first = genesis.tensor(x) * 2.0
    genesis.flush()
    second = genesis.tensor(y).abs() + first * 0.0 + 1.0  # of the first phase
    apart = genesis.tensor(z) - genesis.tensor(z).mean(-1, keepdim=True)
    last = apart + first + second.sum(-1, keepdim=True)
    del first, apart
    genesis.flush()
    expected = z - z.mean(-1, keepdims=True) + 2 * x + (y + 1).sum(-1, keepdims=True)
    assert numpy.abs(second.numpy() - (y + 1)).max() < 1e-6
    assert numpy.abs(last.numpy() / expected - 1).max() < 1e-4


def test_rows_of_a_value_that_is_computed_say_nothing():
    """A sum over all of a tensor that once waited for sums of its rows: these rows are gone."""
    x = genesis.tensor(numpy.arange(1400, dtype=numpy.float32).reshape(700, 2))
    apart = x - x.mean(-1, keepdim=True)
    rows = (apart * apart).mean(-1, keepdim=True)
    guard = genesis.full((2,), 7.0)
    assert rows.sum().item() == 700 * 0.25
    total = (apart * 1.0 + x).mean()
    both = total + (apart * 3.0).sum(-1, keepdim=True).amax()
    assert abs(both.item() - 699.5) < 1e-3
    assert guard.tolist() == [7.0, 7.0]


@pytest.mark.parametrize("shape", [(3, 5), (300, 500), (64, 2000)])
def test_rows_are_written_to_strided_memory(shape):
    """A value of each row goes to a column of a matrix, whatever it is made of."""
    x = numpy.random.default_rng(1).uniform(0.5, 1, shape)
    w = genesis.tensor(x)
    for make, expected in (
        (lambda: w.sum(-1), x.sum(-1)),
        (lambda: w.sum(-1) * 2 + w.amax(-1), x.sum(-1) * 2 + x.max(-1)),
        (lambda: (w / w.amax(-1, keepdim=True)).sum(-1), (x / x.max(-1, keepdims=True)).sum(-1)),
    ):
        t = genesis.zeros(shape[0], 3, dtype=w.dtype)
        t[:, 0] = make()
        t[:, 1:2] = make().unsqueeze(-1)
        genesis.add(make(), 1, out=t[:, 2])
        wanted = numpy.stack([expected, expected, expected + 1], 1)
        numpy.testing.assert_allclose(t.numpy(), wanted, 1e-12)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("rows", "columns"), [(9001, 127), (2749, 768), (1531, 2049), (530, 16384), (19, 64)]
)
def test_sums_of_columns_beside_other_things(rows, columns, dtype, threads, capsys):
    """Chunks of rows, groups of 8 rows in them, tiles: the bits are those of the sums alone."""
    genesis.manual_seed(rows)
    x, g = (genesis.randn(rows, columns).to(getattr(genesis, dtype)) for _ in range(2))
    before = genesis.cpu.get_num_threads()
    found, works = [], []

    def run():
        apart = x - x.mean(-1, keepdim=True)
        scaled = g * apart
        sums = scaled.sum(0), g.sum(0), (scaled + 1).sum(0, keepdim=True)
        back = scaled - scaled.mean(-1, keepdim=True)
        found.append([back, *sums])

    genesis.cpu.set_num_threads(threads)
    try:
        for is_fused in (True, False):
            genesis.set_fusion(is_fused)
            works.append(len(genesis.explain(run).works))
    finally:
        genesis.set_fusion(True)
        genesis.cpu.set_num_threads(before)
    assert works[0] == 1 and works[1] > 5
    found = [[one.to(genesis.float32).numpy().copy() for one in run] for run in found]
    for one, other in zip(*found, strict=True):
        assert (one.view("u4") == other.view("u4")).all()
    whole = (g * (x - x.mean(-1, keepdim=True))).to(genesis.float64).numpy().sum(0)
    scale = 0.05 if dtype == "bfloat16" else 1e-5
    assert abs(found[0][1] - whole).max() <= scale * rows**0.5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [31, 60, 64, 127, 768, 1025, 2000, 4097])
def test_chains_of_steps(columns, dtype):
    """Steps in vector registers: the bits are those of one operation after the other."""
    genesis.manual_seed(columns)
    kind = getattr(genesis, dtype)
    x, y = (genesis.randn(37, columns, dtype=kind) for _ in range(2))
    weight, bias = (genesis.randn(columns, dtype=kind) for _ in range(2))
    wide = genesis.randn(37, columns + 3, dtype=kind)[:, 1:-2]
    found = []
    try:
        for is_fused in (True, False):
            genesis.set_fusion(is_fused)
            mean = x.mean(-1, keepdim=True)
            apart = x - mean
            kept = mean - apart * weight + wide
            twice = kept + kept
            scale = (twice * twice).mean(-1, keepdim=True).rsqrt()
            over = scale / (twice * scale / 3.0 + bias).square()
            back = -(over - apart) * over * (2.0 - over)
            total = back.sum(-1, keepdim=True)
            last = (y + back) * total - y
            found.append([kept, back, total, last, (last * y).sum(-1)])
            genesis.flush()
    finally:
        genesis.set_fusion(True)
    bits = {"float32": "u4", "float64": "u8"}[dtype]
    for one, other in zip(*found, strict=True):
        assert (one.numpy().view(bits) == other.numpy().view(bits)).all()


@pytest.mark.parametrize(("rows", "columns"), [(5501, 768), (1433, 3001), (70003, 60)])
def test_rows_that_come_from_memory(rows, columns):
    """Programs that ask for the next rows ahead, up to the last row of each tensor."""
    genesis.manual_seed(rows)
    x = genesis.randn(rows, columns)
    shifted = genesis.randn(columns).expand(rows, columns)
    found = []
    try:
        for is_fused in (True, False):
            genesis.set_fusion(is_fused)
            apart = x - x.mean(-1, keepdim=True)
            made = apart * (apart * apart).mean(-1, keepdim=True).rsqrt() * shifted
            genesis.flush()
            found.append([made.numpy().view("u4").copy(), made.sum(0).numpy().view("u4").copy()])
    finally:
        genesis.set_fusion(True)
    for one, other in zip(*found, strict=True):
        assert (one == other).all()
