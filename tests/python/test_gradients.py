"""The gradient of every function: checked, or none with a reason. tests/ops/gradient_*.py"""

import gradient_list
import gradient_none
import pytest
from conftest import run_script, simulate_script
from gradient_sample import calls_of, case_make, cases_of
from gradient_samples import SAMPLES, covered

import genesis
from genesis.autograd import gradcheck, gradgradcheck

NAMES = [str(sample) for sample in SAMPLES]


# ---- the list ----


def test_every_function_has_samples_or_a_reason():
    """A new function is added to gradient_samples_*.py, or to gradient_none.py with why."""
    assert gradient_list.missing() == []


def test_the_list_is_printed():
    lines = run_script("gradient_list.py").stdout.splitlines()
    assert len(lines) == len(gradient_list.names())
    assert "genesis.heaviside: none: PyTorch has none: an error here" in lines
    assert any(line.startswith("Tensor.exp_: ") and line.endswith(" samples") for line in lines)


def test_a_new_function_is_noticed(monkeypatch):
    monkeypatch.setattr(genesis, "brand_new", lambda x: x, raising=False)
    assert gradient_list.missing() == ["genesis.brand_new"]
    assert "genesis.brand_new: MISSING" in gradient_list.lines()


def test_nothing_has_samples_and_a_reason():
    assert not {*covered()} & {*gradient_none.reasons()}
    known = {*gradient_list.names()}
    for words in gradient_none.NONE.values():
        for word in words.split():
            assert {word, f"genesis.{word}", f"Tensor.{word}"} & known, f"{word}: there is none"


FLAT = [reason for reason in gradient_none.NONE if reason.startswith(("comparisons", "integers"))]


@pytest.mark.parametrize("reason", FLAT)
def test_results_without_floating_numbers_need_no_gradient(reason):
    x = genesis.ones(3, requires_grad=True)
    tried = 0
    for word in gradient_none.NONE[reason].split():
        call = getattr(genesis, word, None)
        for arguments in ((x,), (x, x.detach())):
            try:
                made = call(*arguments)
            except (TypeError, ValueError):
                continue
            for one in made if isinstance(made, tuple) else (made,):
                if isinstance(one, genesis.Tensor):
                    tried += 1
                    assert not one.requires_grad, word
    assert tried > 3


@pytest.mark.parametrize("name", gradient_none.NONE["PyTorch has none: an error here"].split())
def test_what_has_no_gradient_says_so(name):
    x = genesis.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="has no gradient"):
        getattr(genesis, name)(x, x)


# ---- the samples ----


@pytest.mark.parametrize("sample", SAMPLES, ids=NAMES)
def test_gradients_are_those_of_differences(sample):
    for what, layout in cases_of(sample):
        case = case_make(sample, what, layout)
        genesis.manual_seed(1)
        try:
            assert gradcheck(case.function, case.leaves)
            assert gradgradcheck(case.function, case.leaves)
        except RuntimeError as error:
            raise AssertionError(case.what) from error


def test_a_view_of_an_expanded_leaf():
    """Its gradient is where the view is, though all places of a column are one element."""
    x = genesis.ones(1, 3).expand(4, 3).requires_grad_()
    (x[2] * 2 + x.select(0, 3)[::2].sum() + x.narrow(0, 1, 2).diagonal().sum()).sum().backward()
    assert x.grad.tolist() == [[0, 0, 0], [3, 0, 0], [2, 5, 2], [3, 0, 3]]
    with pytest.raises(RuntimeError, match="a view of an expanded tensor has no gradient yet"):
        x.as_strided((2,), (1,))


def test_samples_have_different_names():
    assert len({*NAMES}) == len(NAMES)


def test_forms_of_a_sample():
    (sample,) = (one for one in SAMPLES if str(one) == "sub_[2,3]_[3]")
    assert [*calls_of(sample)] == [
        *("genesis.sub", "Tensor.sub", "Tensor.sub_", "Tensor.sub_ of a view"),
        *("genesis.subtract", "Tensor.subtract", "Tensor.subtract_", "Tensor.subtract_ of a view"),
    ]
    assert [layout for _, layout in cases_of(sample)][:4] == [
        *("plain", "transposed", "strided", "expanded"),
    ]


# ---- on GPUs ----


def test_on_the_simulated_gpu():
    """A sample of each rule; `make soak` runs all of them."""
    finished = simulate_script("device_gradients.py", "few", SIM_GPU_SCHEDULE="random")
    assert not finished.stderr, finished.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("part", range(1, 5))
def test_on_a_gpu(part):
    finished = run_script("device_gradients.py", f"{part}/4")
    assert not finished.stderr, finished.stderr


# ---- what differences in float64 do not show ----


@pytest.mark.parametrize("name", ["float", "half", "bfloat16", "double"])
def test_casts_convert_gradients(name):
    x = genesis.tensor([0.5, 2.0], requires_grad=True)
    made = getattr(x, name)()
    (found,) = genesis.autograd.grad(made, x, genesis.tensor([3.0, 0.25], dtype=made.dtype))
    assert found.dtype == genesis.float32 and found.tolist() == [3, 0.25]


# Where there is no derivative: what PyTorch gives.
KINKS = {
    "abs": (lambda x: x.abs(), [0.0], [0.0]),
    "relu": (lambda x: x.relu(), [0.0], [0.0]),
    "relu6": (lambda x: genesis.relu6(x), [0.0, 6.0], [0.0, 0.0]),
    "clamp": (lambda x: x.clamp(-1, 1), [-1.0, 1.0], [0.0, 0.0]),
    "hardtanh": (lambda x: genesis.hardtanh(x), [-1.0, 1.0], [0.0, 0.0]),
    "amax": (lambda x: x.amax(), [2.0, 1.0, 2.0], [0.5, 0.0, 0.5]),
    "max": (lambda x: x.max(), [2.0, 1.0, 2.0], [0.5, 0.0, 0.5]),
    "max of rows": (lambda x: x.max(0).values, [2.0, 1.0, 2.0], [1.0, 0.0, 0.0]),
    "norm": (lambda x: x.norm(), [0.0, 0.0], [0.0, 0.0]),
    "norm of rows": (lambda x: x.norm(3, 0), [0.0, 0.0], [0.0, 0.0]),
    "norm 1": (lambda x: x.norm(1), [0.0, -2.0], [0.0, -1.0]),
    "norm inf": (lambda x: x.norm(float("inf")), [2.0, -2.0, 1.0], [0.5, -0.5, 0.0]),
    "std": (lambda x: x.std(), [1.0, 1.0], [0.0, 0.0]),
    "cdist": (lambda x: genesis.cdist(x[None], x.detach()[None]), [1.0, 2.0], [0.0, 0.0]),
    "nansum": (lambda x: x.nansum(), [float("nan"), 1.0], [0.0, 1.0]),
    "nanmean": (lambda x: x.nanmean(), [float("nan"), 1.0], [0.0, 1.0]),
    "where": (lambda x: genesis.where(x > 0, x * 2, 0.0), [-1.0, 1.0], [0.0, 2.0]),
    "softmax": (lambda x: x.softmax(0)[1:], [-float("inf"), 1.0], [0.0, 0.0]),
    "prod": (lambda x: x.prod(), [0.0, 2.0, 3.0], [6.0, 0.0, 0.0]),
    "median": (lambda x: x.median(), [2.0, 1.0, 2.0], [0.5, 0.0, 0.5]),
}


@pytest.mark.parametrize("name", KINKS)
def test_gradients_where_there_is_no_derivative(name):
    function, values, wanted = KINKS[name]
    x = genesis.tensor(values, requires_grad=True)
    function(x).sum().backward()
    assert x.grad.tolist() == wanted
