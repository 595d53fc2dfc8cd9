"""One program over many tensors; the random programs are tests/ops/list_programs.py."""

import os

import pytest
from conftest import run_script, simulate_script

import genesis
from genesis import _C

PROGRAMS = int(os.environ.get("LIST_PROGRAMS", "200"))
FIRST = os.environ.get("LIST_PROGRAMS_FIRST", "0")


def test_random_programs_on_the_cpu():
    """The bits of NumPy."""
    finished = run_script("list_programs.py", "cpu", FIRST, str(PROGRAMS))
    assert f"{PROGRAMS} programs, 0 wrong" in finished.stdout


def test_random_programs_on_the_simulated_gpu():
    """The same; each finding of the simulator is fatal."""
    count = str(min(max(PROGRAMS // 8, 1), 300))
    finished = simulate_script(
        "list_programs.py",
        "cuda",
        FIRST,
        count,
        SIM_GPU_SCHEDULE="random",
        SIM_GPU_LANES="random",
        SIM_GPU_FINDINGS="abort",
    )
    assert f"{count} programs, 0 wrong" in finished.stdout


@pytest.mark.gpu
def test_random_programs_on_the_gpu():
    """The same on a real one."""
    finished = run_script("list_programs.py", "cuda", FIRST, str(PROGRAMS))
    assert f"{PROGRAMS} programs, 0 wrong" in finished.stdout


@pytest.mark.parametrize(
    ("places", "steps", "stores", "words"),
    [
        ((1,), (), (), "a place is a tuple"),
        (((1,),), (), (), "is not a Tensor"),
        (((),), (("add",),), (), "operand 0"),
        (((),), (("plus", 0, 0),), (), "no operation 'plus'"),
        (((),), (3,), (), "a step is a tuple"),
        (((),), (), (3,), "a store is a tuple"),
        ((), (), (), "1 to 8 places"),
        (((),) * 9, (), (), "9 places are more than 8"),
    ],
)
def test_what_is_no_program(places, steps, stores, words):
    """An error that says what is wrong."""
    with pytest.raises((TypeError, ValueError), match=words):
        _C._list_elementwise(places, steps, stores, (), None, 0)


def test_numbers_that_are_none():
    """A number is a number, or a tensor of one element."""
    x = genesis.ones(3)
    for number, kind in (("1", TypeError), (genesis.ones(2), ValueError)):
        with pytest.raises(kind, match="number"):
            _C._list_elementwise(((x,),), (("add", 0, 1),), ((2, 0),), (number,), None, 0)
    assert x.tolist() == [1, 1, 1]
