"""Learning rate schedulers: rates over 50 epochs beside PyTorch's, saving, and errors."""

from __future__ import annotations

import json
import pickle
import re
import warnings
from pathlib import Path

import optim_cases as cases
import pytest

import genesis
from genesis.optim import lr_scheduler as kinds

RECORDED = json.loads(Path(__file__).with_name("optim_recorded.json").read_text())["rates"]
NAMES = [name for name in RECORDED if "plateau" not in name]


@pytest.fixture(scope="module")
def rates():
    """Of all schedulers."""
    return cases.all_rates(genesis)


@pytest.mark.parametrize("name", list(RECORDED))
def test_rates(name, rates):
    """PyTorch's rates and momenta, which are recorded with 14 digits."""
    assert len(rates[name]) == cases.EPOCHS
    for got, right in zip(rates[name], RECORDED[name], strict=True):
        assert got == pytest.approx(right, rel=1e-12, abs=1e-14)


def raises(kind, words, call, *args, **options):
    """The error that a call ends with."""
    with pytest.raises(kind, match=re.escape(words)):
        call(*args, **options)


def descent(**options):
    """An optimizer with one group."""
    return genesis.optim.SGD([genesis.ones(1, requires_grad=True)], lr=0.1, **options)


@pytest.mark.parametrize("name", NAMES)
def test_a_scheduler_goes_on_where_it_was(name):
    """State dict of scheduler and optimizer, pickled, into fresh ones."""
    make = cases.schedulers(genesis)[name]
    optimizer = cases.groups(genesis)
    scheduler = make(optimizer)
    for _ in range(11):
        optimizer.step()
        scheduler.step()
    saved = pickle.loads(pickle.dumps((optimizer.state_dict(), scheduler.state_dict())))
    other = cases.groups(genesis)
    loaded = make(other)
    other.load_state_dict(saved[0])
    loaded.load_state_dict(saved[1])
    for _ in range(20):
        assert loaded.get_last_lr() == scheduler.get_last_lr()
        for one, two in ((optimizer, scheduler), (other, loaded)):
            one.step()
            two.step()


@pytest.mark.parametrize("name", list(cases.PLATEAUS))
def test_a_plateau_goes_on_where_it_was(name):
    """The same of what looks at a metric."""
    options = cases.PLATEAUS[name]
    both = [kinds.ReduceLROnPlateau(cases.groups(genesis), **options) for _ in range(2)]
    for epoch in range(14):
        both[0].step(cases.metric(epoch))
    both[1].load_state_dict(pickle.loads(pickle.dumps(both[0].state_dict())))
    both[1].optimizer.load_state_dict(both[0].optimizer.state_dict())
    for epoch in range(14, 40):
        for one in both:
            one.step(cases.metric(epoch))
        assert both[0].get_last_lr() == both[1].get_last_lr()


@pytest.mark.parametrize(
    "name",
    ["step", "multistep", "constant", "linear", "exponential", "polynomial", "cosine", "restarts"],
)
def test_an_epoch_that_is_given(name):
    """The rates of the closed form, which are those of the steps."""
    optimizer = cases.groups(genesis)
    scheduler = cases.schedulers(genesis)[name](optimizer)
    optimizer.step()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scheduler.step(9)
    right = [RECORDED[name][9][0], RECORDED[name][9][2]]
    assert scheduler.get_last_lr() == pytest.approx(right, rel=1e-9)


def test_warnings():
    """Of an epoch, of a wrong order, and of get_lr() outside of a step; of nothing else."""
    optimizer = descent()
    scheduler = kinds.ExponentialLR(optimizer, 0.5)
    with pytest.warns(UserWarning, match=r"before `optimizer\.step\(\)`"):
        scheduler.step()
    with pytest.warns(UserWarning, match="epoch parameter"):
        scheduler.step(3)
    with pytest.warns(UserWarning, match="get_last_lr"):
        scheduler.get_lr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer = descent()
        scheduler = kinds.ExponentialLR(optimizer, 0.5)
        optimizer.step()
        kinds.StepLR(optimizer, 2).step()  # a second one: there was a step
        scheduler.step()


def test_rates_that_are_tensors():
    """Are written to, so that a captured graph sees them."""
    rate = genesis.tensor(0.5)
    optimizer = genesis.optim.SGD([genesis.ones(1, requires_grad=True)], lr=rate)
    scheduler = kinds.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is rate
    assert rate.item() == 0.25
    last = scheduler.get_last_lr()[0]
    assert last.item() == 0.25 and last is not rate
    assert optimizer.param_groups[0]["initial_lr"].item() == 0.5


def test_resuming_by_an_epoch():
    """``last_epoch`` needs the initial rates."""
    optimizer = descent()
    raises(KeyError, "param 'initial_lr' is not specified", kinds.StepLR, optimizer, 3, 0.1, 5)
    optimizer.param_groups[0]["initial_lr"] = 1.0
    scheduler = kinds.LambdaLR(optimizer, lambda epoch: epoch, last_epoch=5)
    assert scheduler.get_last_lr() == [6.0]


def test_functions_that_are_objects_are_saved():
    """Their attributes are; those of functions are not."""

    class Factor:
        def __init__(self, value):
            self.value = value

        def __call__(self, epoch):
            return self.value

    one = kinds.LambdaLR(descent(), Factor(0.5))
    two = kinds.LambdaLR(descent(), Factor(0.25))
    two.load_state_dict(one.state_dict())
    assert two.lr_lambdas[0].value == 0.5
    plain = kinds.LambdaLR(descent(), lambda _: 1)
    assert plain.state_dict()["lr_lambdas"] == [None]
    assert "optimizer" not in plain.state_dict()


def test_betas_are_cycled():
    """Where an optimizer has no momentum, its first beta goes up and down."""
    optimizer = genesis.optim.Adam([genesis.ones(1, requires_grad=True)])
    scheduler = kinds.OneCycleLR(optimizer, 0.1, total_steps=10)
    assert optimizer.param_groups[0]["betas"] == (0.95, 0.999)
    for _ in range(2):
        optimizer.step()
        scheduler.step()
    assert optimizer.param_groups[0]["betas"][0] == pytest.approx(0.85)


def test_warmup():
    """Up along a line, and down along a cosine."""
    optimizer = descent()
    scheduler = genesis.optim.get_cosine_schedule_with_warmup(optimizer, 4, 12)
    found = []
    for _ in range(13):
        found += scheduler.get_last_lr()
        optimizer.step()
        scheduler.step()
    assert found[:5] == pytest.approx([0, 0.025, 0.05, 0.075, 0.1])
    assert found[8] == pytest.approx(0.05)
    assert found[12] == pytest.approx(0)
    pickle.dumps(scheduler.state_dict())


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda o: kinds.StepLR(3, 1), TypeError, "int is not an Optimizer"),
        (lambda o: kinds.LambdaLR(o, [abs, abs]), ValueError, "Expected 1 lr_lambdas, but got 2"),
        (lambda o: kinds.MultiplicativeLR(o, 3), TypeError, "lr_lambda should be a function"),
        (lambda o: kinds.ConstantLR(o, 2), ValueError, "expected to be between 0 and 1"),
        (lambda o: kinds.LinearLR(o, 0), ValueError, "expected to be greater than 0"),
        (lambda o: kinds.LinearLR(o, 1, 2), ValueError, "Ending multiplicative factor"),
        (lambda o: kinds.SequentialLR(o, [], []), ValueError, "at least one scheduler"),
        (
            lambda o: kinds.SequentialLR(o, [kinds.StepLR(o, 1)], [1]),
            ValueError,
            "expects number of schedulers provided to be one more",
        ),
        (
            lambda o: kinds.SequentialLR(o, [kinds.StepLR(descent(), 1)], []),
            ValueError,
            "expects all schedulers to belong to the same optimizer",
        ),
        (
            lambda o: kinds.ChainedScheduler([kinds.ReduceLROnPlateau(o)]),
            ValueError,
            "does not support `ReduceLROnPlateau`",
        ),
        (lambda o: kinds.ChainedScheduler([3]), TypeError, "should have `optimizer`"),
        (lambda o: kinds.ReduceLROnPlateau(o, factor=1.0), ValueError, "Factor should be < 1.0"),
        (lambda o: kinds.ReduceLROnPlateau(o, mode="x"), ValueError, "mode x is unknown!"),
        (
            lambda o: kinds.ReduceLROnPlateau(o, threshold_mode="x"),
            ValueError,
            "threshold mode x is unknown!",
        ),
        (lambda o: kinds.ReduceLROnPlateau(o, min_lr=[0, 0]), ValueError, "expected 1 min_lrs"),
        (lambda o: kinds.CyclicLR(o, [1, 2], 3), ValueError, "base_lr must have the same length"),
        (lambda o: kinds.CyclicLR(o, 1, 3, mode="x"), ValueError, "mode is invalid"),
        (
            lambda o: kinds.CyclicLR(genesis.optim.Adagrad([genesis.ones(1)]), 1, 3),
            ValueError,
            "optimizer must support momentum or beta1",
        ),
        (lambda o: kinds.OneCycleLR(o, 1), ValueError, "You must define either total_steps OR"),
        (lambda o: kinds.OneCycleLR(o, 1, 0), ValueError, "positive integer total_steps"),
        (lambda o: kinds.OneCycleLR(o, 1, 5, pct_start=2), ValueError, "between 0 and 1 pct_start"),
        (
            lambda o: kinds.OneCycleLR(o, 1, 5, anneal_strategy="x"),
            ValueError,
            "anneal_strategy must be one of",
        ),
        (lambda o: kinds.CosineAnnealingWarmRestarts(o, 0), ValueError, "positive integer T_0"),
        (lambda o: kinds.CosineAnnealingWarmRestarts(o, 1, 0), ValueError, "T_mult >= 1"),
        (lambda o: genesis.optim.swa_utils.SWALR(o, 1, -1), ValueError, "anneal_epochs must be"),
        (lambda o: kinds.LRScheduler(o), NotImplementedError, ""),
    ],
)
def test_what_is_not_possible(call, kind, words):
    """PyTorch's words."""
    with pytest.raises(kind, match=re.escape(words) if words else None):
        call(descent(momentum=0.9))


def test_too_many_steps():
    """One cycle has an end."""
    optimizer = descent(momentum=0.9)
    scheduler = kinds.OneCycleLR(optimizer, 1.0, total_steps=3)
    for _ in range(3):
        optimizer.step()
        scheduler.step()
    raises(ValueError, "Tried to step 4 times", scheduler.step)
