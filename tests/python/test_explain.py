"""genesis.explain: which kernels operations became, why, and the bytes that they move."""

import re
import threading

import pytest

import genesis

ROWS, COLUMNS = 64, 1000
BYTES = 4 * ROWS * COLUMNS


def one(shape=(ROWS, COLUMNS)):
    x = genesis.ones(*shape)
    genesis.flush()
    return x


def explained(function, *arguments, **words):
    return genesis.explain(function, *arguments, **words)


def test_a_chain_is_one_kernel(capsys):
    found = explained(lambda x: (x + 1) * 2, one())
    (work,) = found.works
    assert work.kind == "elementwise" and work.operations == ["add", "multiply"]
    assert work.shape == (ROWS, COLUMNS) and work.device == "cpu" and work.launches == []
    assert (work.bytes_read, work.bytes_written, found.bytes_moved) == (BYTES, BYTES, 2 * BYTES)
    assert [given.get("number") for given in work.inputs] == [None, 1.0, 2.0]
    assert found.result.tolist()[0][0] == 4
    shown = capsys.readouterr().out
    assert shown.startswith("  1. elementwise: add, multiply of 64 x 1000\n")
    assert shown.endswith("1 kernel, 512 KB moved\n")
    assert repr(found) == "<Explanation: 1 kernel, 512 KB moved>"


def test_rows_are_one_kernel():
    def norm(x):
        apart = x - x.mean(-1, keepdim=True)
        return apart * ((apart * apart).mean(-1, keepdim=True) + 1e-5).rsqrt()

    (work,) = explained(norm, one()).works
    assert work.kind == "rows"
    assert work.operations == ["mean", "subtract", "multiply", "mean", "add", "rsqrt", "multiply"]
    assert (work.bytes_read, work.bytes_written) == (BYTES, BYTES)


def test_bytes_of_what_is_broadcast_count_once():
    (work,) = explained(lambda x, w: x * w, one(), one((COLUMNS,))).works
    assert work.bytes_read == BYTES + 4 * COLUMNS


def test_why_a_fusion_ended(capsys):
    x = one()
    weight = one((COLUMNS, 30))
    found = explained(lambda: ((x * 2) @ weight).exp())
    assert [work.kind for work in found.works] == ["elementwise", "product", "elementwise"]
    assert found.works[1].shape == (ROWS, 30, COLUMNS)
    assert found.works[1].bytes_read == BYTES + 4 * COLUMNS * 30
    shown = capsys.readouterr().out
    assert "why: its bytes are needed, by product (2)" in shown
    assert "product (64 x 1000) @ (1000 x 30)" in shown
    assert found.works[2].why is not None


@pytest.mark.parametrize(
    ("function", "kinds"),
    [
        (lambda x: (x * 2).sum(0), ["rows"]),
        (lambda x: (x * 2).prod(0), ["prod"]),
        (lambda x: x[:8].softmax(1), ["softmax"]),
        (lambda x: x.softmax(1), ["rows"]),
        (lambda x: x.cumsum(1), ["scan"]),
        (lambda x: x.sort(dim=1), ["sort"]),
        (lambda x: x.max(dim=1), ["extreme"]),
        (lambda x: x[genesis.tensor([1, 2])], ["gather"]),
        (lambda x: genesis.rand(300), ["random"]),
        (lambda x: genesis.randperm(300), ["permutation"]),
        (lambda x: genesis.full((1000,), 3.0), ["fill"]),
        (lambda x: x[0, :3].exp(), ["at once"]),
        (lambda x: x.nonzero(), ["elementwise", "nonzero"]),
        (
            lambda x: genesis.bincount(genesis.zeros(500).long()),
            ["fill", "elementwise", "range", "count"],
        ),
        (lambda x: None, []),
    ],
)
def test_kinds(function, kinds):
    assert [work.kind for work in explained(function, one()).works] == kinds


def test_places_that_are_written():
    x = one()

    def write():
        x[genesis.tensor([1, 2])] = 5.0

    (work,) = explained(write).works
    assert work.kind == "scatter" and work.bytes_written == 2 * 4 * COLUMNS


def test_what_rests_is_said(capsys):
    """The gradient of a GELU needs its input, which is computed again from the product's result."""
    x = genesis.ones(1024, 1024, requires_grad=True)
    weight = genesis.ones(1024, 1024)
    genesis.flush()

    def layer():
        return genesis.gelu((x @ weight) * 2).sum()

    found = explained(layer)
    (work,) = (work for work in found.works if work.resting)
    assert (work.resting, work.resting_bytes) == (1, 4 << 20)
    assert (
        "  3. not stored: 1 value of 4.194 MB, computed again in the backward pass\n"
        in capsys.readouterr().out
    )


def test_forward_and_backward():
    x = genesis.ones(ROWS, COLUMNS, requires_grad=True)

    def step():
        loss = (x * x).sum()
        loss.backward()
        return loss

    found = explained(step)
    assert len(found.works) >= 2 and x.grad is not None
    with_steps = [work for work in found.works if work.steps]
    assert all(
        value < len(work.inputs) + len(work.steps)
        for work in with_steps
        for step in work.steps
        for value in step.get("in", [])
    )


def test_an_error_ends_it(capsys):
    def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        explained(fail)
    assert capsys.readouterr().out == ""
    assert len(explained(lambda x: x + 1, one()).works) == 1


def test_not_inside_itself():
    with pytest.raises(ValueError, match="explaining already"):
        explained(lambda: explained(lambda: 1))
    assert explained(lambda: 1).works == []


def test_other_threads_are_not_noted():
    begin, end = threading.Event(), threading.Event()

    def work():
        begin.wait()
        (one() * 3).sum().item()
        end.set()

    thread = threading.Thread(target=work)
    thread.start()

    def both(x):
        begin.set()
        end.wait()
        return x + 1

    assert [w.operations for w in explained(both, one()).works] == [["add"]]
    thread.join()


def test_words_and_positions_are_passed_on():
    assert explained(lambda x, *, by: x * by, one(), by=3).works[0].operations == ["multiply"]


def test_pending_work_of_before_is_not_shown():
    x = one()
    before = x * 7
    assert explained(lambda: x + 1).works[0].operations == ["add"]
    assert before.tolist()[0][0] == 7


def test_the_picture(tmp_path):
    found = explained(lambda x: (((x * 2) @ x.T).softmax(-1) + 1).sum(), one())
    text = found.to_graphviz()
    assert text.startswith("digraph {") and text.count("subgraph") == len(found.works)
    assert text.count("{") == text.count("}")
    assert '[label="multiply 2\\nfloat32"]' in text
    nodes = set(re.findall(r"^ *(\w+) \[", text, re.MULTILINE)) - {"node"}
    ends = set(re.findall(r"(\w+) -> (\w+);", text))
    assert {end for pair in ends for end in pair} <= nodes
    # What the product writes, the next one reads: one chain of memory.
    assert any(a.startswith("m1") and b.startswith("w2") for a, b in ends)
    found.save(str(tmp_path / "picture.gv"))
    assert (tmp_path / "picture.gv").read_text().rstrip() == text


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(-3, "int8"), (200, "uint8"), (-70000, "int64"), (2**63, "uint64"), (0.5, "float64")],
)
def test_numbers_of_every_type(value, dtype):
    x = genesis.ones(ROWS, COLUMNS, dtype=getattr(genesis, dtype))
    genesis.flush()
    (work,) = explained(lambda: x * value).works
    assert [given["number"] for given in work.inputs if "number" in given] == [value]


def test_on_a_gpu(fresh, build):
    """Kernels have names, and copies are works of their own."""
    driver = build / "libgenesis_sim.so"
    if not driver.exists():
        pytest.skip("the build has no simulator")
    finished = fresh(GPU, GENESIS_CUDA_DRIVER=str(driver))
    assert not finished.stderr, finished.stderr


GPU = """
import genesis
x = genesis.ones(64, 100, device="cuda")
genesis.flush()
found = genesis.explain(lambda: ((x * 2).exp().sum(1) + 1).cpu())
for work in found.works:
    assert work.device == "cuda:0", work
assert found.works[-1].kind == "copy" and found.works[0].launches, found.works
found = genesis.explain(lambda: x @ x.T)
assert found.works[0].launches, found.works
"""
