"""Optimizers: results of 20 steps beside PyTorch's (record_optim.py), states, groups, hooks."""

from __future__ import annotations

import copy
import json
import pickle
import re
import warnings
from pathlib import Path

import optim_cases as cases
import pytest
from conftest import run_script, simulate_script

import genesis
from genesis import optim

RECORDED = json.loads(Path(__file__).with_name("optim_recorded.json").read_text())
TOLERANCES = {"float32": 1e-6, "float64": 1e-12, "bfloat16": 1e-3}


def raises(kind, words, call, *args, **options):
    """The error that a call ends with."""
    with pytest.raises(kind, match=re.escape(words)):
        call(*args, **options)


def flat(params):
    """All elements."""
    wide = [p.detach().to(dtype=genesis.float64, device="cpu") for p in params]
    return [x for one in wide for x in one.reshape(-1).tolist()]


def parameter(*values, dtype=genesis.float32):
    """A parameter with a gradient of its own values."""
    made = genesis.tensor(values, dtype=dtype, requires_grad=True)
    made.grad = made.detach().clone()
    return made


ALL = {
    "SGD": {"lr": 0.1, "momentum": 0.9},
    "Adam": {"amsgrad": True},
    "AdamW": {},
    "NAdam": {},
    "RAdam": {},
    "Adamax": {},
    "RMSprop": {"momentum": 0.5, "centered": True},
    "Adagrad": {},
    "Adadelta": {},
    "ASGD": {},
    "Rprop": {},
    "Adafactor": {},
    "Lion": {},
    "Muon": {},
}


def make(name, params, **more):
    """An optimizer by its name."""
    return getattr(optim, name)(params, **{**ALL[name], **more})


# ---- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", list(cases.OPTIMIZERS))
def test_values_of_twenty_steps(name, dtype):
    """PyTorch's, and the same states by name. NAdam's product of momenta is a float32."""
    optimizer, params = cases.run(genesis, name, getattr(genesis, dtype))
    tolerance = TOLERANCES[dtype]
    if name.startswith("nadam") and dtype == "float64":
        tolerance = 1e-8
    for got, right in zip(flat(params), RECORDED["optimizers"][name][dtype], strict=True):
        assert got == pytest.approx(right, rel=tolerance, abs=tolerance)
    states = {str(k): sorted(v) for k, v in optimizer.state_dict()["state"].items()}
    assert states == RECORDED["states"][name]


@pytest.mark.parametrize("name", ["plain", "wolfe", "wolfe short"])
def test_lbfgs(name):
    """The losses of PyTorch."""
    losses = cases.lbfgs_losses(genesis, name)
    assert losses == pytest.approx(RECORDED["lbfgs"][name], rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("capturable", [False, True])
def test_the_average_of_asgd(capturable):
    """It is the parameter itself up to t0, and then the mean of what comes."""
    x = genesis.tensor([1.0, -2.0], dtype=genesis.float64, requires_grad=True)
    optimizer = optim.ASGD([x], lr=0.5, lambd=0.1, alpha=0.5, t0=2, capturable=capturable)
    right, rate, weight, mean = [1.0, -2.0], 0.5, 1.0, [0.0, 0.0]
    for step in range(1, 7):
        grads = [0.3 * step, -0.2]
        x.grad = genesis.tensor(grads, dtype=genesis.float64)
        optimizer.step()
        right = [a * (1 - 0.1 * rate) - rate * g for a, g in zip(right, grads, strict=True)]
        mean = [m + (a - m) * weight for m, a in zip(mean, right, strict=True)]
        rate, weight = 0.5 / (1 + 0.1 * 0.5 * step) ** 0.5, 1 / max(1, step - 2)
        state = optimizer.state[x]
        assert x.tolist() == pytest.approx(right, rel=1e-6)
        assert state["ax"].tolist() == pytest.approx(mean, rel=1e-6)
        assert state["eta"].item() == pytest.approx(rate) and state["step"].item() == step
        assert state["mu"].item() == pytest.approx(weight)


def test_the_sizes_of_rprop():
    """They grow while a sign stays, and shrink when it changes, within bounds."""
    x = genesis.tensor([1.0, 1.0, 1.0], requires_grad=True)
    optimizer = optim.Rprop([x], lr=0.1, etas=(0.5, 2.0), step_sizes=(0.04, 0.3))
    sizes = []
    for grads in ([1, 1, 0], [1, -1, 0], [1, -1, 1], [1, 1, 1], [1, 1, -1]):
        x.grad = genesis.tensor(grads, dtype=genesis.float32)
        optimizer.step()
        sizes.append([round(one, 4) for one in optimizer.state[x]["step_size"].tolist()])
    assert sizes == [
        *([0.1, 0.1, 0.1], [0.2, 0.05, 0.1], [0.3, 0.05, 0.1], [0.3, 0.04, 0.2], [0.3, 0.04, 0.1]),
    ]
    assert optimizer.state[x]["prev"].tolist() == [1, 1, 0]
    assert x.tolist() == pytest.approx([1 - 1.2, 1 - 0.1 + 0.05 - 0.04, 1 - 0.1 - 0.2])


def test_lion():
    """By its formula; PyTorch has none."""
    x = genesis.tensor([1.0, -2.0, 3.0], dtype=genesis.float64, requires_grad=True)
    optimizer = optim.Lion([x], lr=0.1, betas=(0.9, 0.8), weight_decay=0.5)
    right, momentum = [1.0, -2.0, 3.0], [0.0, 0.0, 0.0]
    for step in range(20):
        grads = [(-1) ** step * 0.3, 0.2 - 0.1 * step, 0.0]
        x.grad = genesis.tensor(grads, dtype=genesis.float64)
        optimizer.step()
        for i, grad in enumerate(grads):
            mixed = 0.9 * momentum[i] + 0.1 * grad
            sign = (mixed > 0) - (mixed < 0)
            right[i] = right[i] * (1 - 0.1 * 0.5) - 0.1 * sign
            momentum[i] = 0.8 * momentum[i] + 0.2 * grad
    assert x.tolist() == pytest.approx(right, rel=1e-12)
    assert optimizer.state[x]["exp_avg"].tolist() == pytest.approx(momentum, rel=1e-12)


@pytest.mark.parametrize("name", [n for n in cases.OPTIMIZERS if "all" in n or "nesterov" in n])
def test_strided_parameters(name):
    """Parameters that are views of others get the same values."""
    kind, options = cases.OPTIMIZERS[name]
    values = cases.numbers((6, 8), "strided")
    whole = genesis.tensor(values)
    plain = whole[::2, ::2].clone().requires_grad_()
    view = whole[::2, ::2].requires_grad_()
    for param in (plain, view):
        optimizer = getattr(optim, kind)([param], **options)
        for step in range(3):
            param.grad = genesis.tensor(cases.numbers((4, 3), f"gradient {step}")).T
            optimizer.step()
    assert view.tolist() == plain.tolist()


@pytest.mark.parametrize("name", ["SGD", "AdamW", "Adagrad"])
def test_empty_parameters(name):
    """A parameter without elements has nothing to be changed."""
    empty = genesis.zeros(0, 3, requires_grad=True)
    empty.grad = genesis.zeros(0, 3)
    other = parameter(1.0)
    optimizer = make(name, [empty, other])
    optimizer.step()
    assert empty.shape == (0, 3)
    assert other.item() != 1


def test_many_small_steps_are_one_call():
    """Parameters of several types in one group."""
    params = [parameter(1.0, 2.0, dtype=t) for t in (genesis.float32, genesis.float64)]
    params.append(parameter(1.0, 2.0, dtype=genesis.bfloat16))
    optimizer = optim.AdamW(params, lr=0.5)
    optimizer.step()
    for param in params:
        assert flat([param]) == pytest.approx([0.495, 1.49], rel=1e-2)
        assert optimizer.state[param]["exp_avg"].dtype is param.dtype


# ---- rates, scaling and skipping ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["SGD", "Adam", "NAdam", "RAdam", "Adadelta", "Muon", "Lion"])
def test_rates_that_are_tensors(name):
    """The same as with a number."""
    made = []
    for lr in (0.125, genesis.tensor(0.125)):
        x = genesis.tensor([[1.0, -2.0], [0.5, 3.0]], requires_grad=True)
        optimizer = make(name, [x], lr=lr)
        for _ in range(3):
            x.grad = x.detach() * 0.5
            optimizer.step()
        made.append(x.tolist())
    assert made[0] == made[1]


def test_betas_that_are_tensors():
    """The same as with numbers."""
    made = []
    for betas in ((0.75, 0.875), (genesis.tensor(0.75), genesis.tensor([0.875]))):
        x = parameter(1.0, -2.0)
        optimizer = optim.Adam([x], lr=0.1, betas=betas)
        for _ in range(3):
            optimizer.step()
        made.append(x.tolist())
    assert made[0] == made[1]


@pytest.mark.parametrize("name", [n for n in ALL if n != "Adafactor"])
def test_found_inf_skips_all(name):
    """Nothing changes: no parameter, no state, no count of steps."""
    x = genesis.tensor([[1.0, -2.0], [0.5, 3.0]], requires_grad=True)
    x.grad = genesis.tensor([[float("inf"), 1.0], [1.0, 1.0]])
    optimizer = make(name, [x])
    optimizer.step(found_inf=genesis.tensor(1.0))
    assert x.tolist() == [[1.0, -2.0], [0.5, 3.0]]
    assert optimizer.state[x].get("step", genesis.tensor(0.0)).item() == 0
    x.grad = genesis.ones(2, 2)
    optimizer.found_inf = genesis.tensor(0.0)  # as a GradScaler does it
    optimizer.step()
    del optimizer.found_inf
    again = genesis.tensor([[1.0, -2.0], [0.5, 3.0]], requires_grad=True)
    again.grad = genesis.ones(2, 2)
    make(name, [again]).step()
    assert x.tolist() == again.tolist()


@pytest.mark.parametrize("name", [n for n in ALL if n != "Adafactor"])
def test_grad_scale_divides(name):
    """Gradients are divided before, and stay so."""
    made = []
    for scale in (None, 1024.0):
        x = genesis.tensor([[1.0, -2.0], [0.5, 3.0]], requires_grad=True)
        optimizer = make(name, [x])
        for step in range(3):
            x.grad = genesis.full((2, 2), 0.5 + step) * (scale or 1)
            optimizer.step(grad_scale=None if scale is None else genesis.tensor(scale))
            assert x.grad[0, 0].item() == 0.5 + step
        made.append(x.tolist())
    assert made[0] == made[1]


def test_fused_supports_scaling():
    """What a GradScaler asks."""
    x = parameter(1.0)
    fused = optim.AdamW([x], fused=True)
    for one in (fused, copy.deepcopy(fused)):
        assert getattr(one, "_step_supports_amp_scaling", False)
    assert not getattr(optim.AdamW([x]), "_step_supports_amp_scaling", False)


# ---- gradients through steps --------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in ALL if n not in ("Adafactor", "Muon")])
def test_differentiable(name):
    """The gradient of a loss behind two steps, beside finite differences."""

    def loss(begin):
        x = begin.clone()
        optimizer = make(name, [x], lr=0.1, differentiable=True)
        for _ in range(2):
            x.retain_grad()
            x.grad = x.clone() ** 3
            optimizer.step()
        return (x * x).sum()

    begin = genesis.tensor([0.7, -1.1], dtype=genesis.float64, requires_grad=True)
    (grad,) = genesis.autograd.grad(loss(begin), begin)
    for i in range(2):
        ends = []
        for by in (1e-5, -1e-5):
            moved = begin.detach().clone().requires_grad_()
            moved.data[i] += by
            ends.append(loss(moved).item())
        if name != "Lion":  # its steps do not depend on the size of gradients
            assert grad[i].item() == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4)


def test_a_differentiable_rate():
    """The rate has a gradient, too."""
    lr = genesis.tensor(0.1, dtype=genesis.float64, requires_grad=True)
    x = genesis.tensor([2.0], dtype=genesis.float64, requires_grad=True).clone()
    x.retain_grad()
    x.grad = genesis.tensor([3.0], dtype=genesis.float64)
    optim.SGD([x], lr=lr, differentiable=True).step()
    x.sum().backward()
    assert lr.grad.item() == pytest.approx(-3.0)


# ---- groups -------------------------------------------------------------------------------------


def test_groups_with_options_of_their_own():
    """Each has its rate and its kind of step."""
    a, b, c = parameter(1.0), parameter(1.0), parameter(1.0)
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5, "momentum": 0.9}], lr=0.1)
    optimizer.add_param_group({"params": iter([c]), "maximize": True})
    optimizer.step()
    optimizer.step()
    assert a.item() == pytest.approx(0.8)
    assert b.item() == pytest.approx(1 - 0.5 - 0.5 * 1.9)
    assert c.item() == pytest.approx(1.2)
    assert "momentum_buffer" in optimizer.state[b]
    assert not optimizer.state.get(a)


def test_generators_and_names():
    """Parameters come from a generator, and have names if all have."""
    a, b = parameter(1.0), parameter(2.0)
    optimizer = optim.Adam(p for p in (a, b))
    assert optimizer.param_groups[0]["params"] == [a, b] or len(optimizer.param_groups) == 1
    named = optim.Adam([("a", a), ("b", b)])
    assert named.param_groups[0]["param_names"] == ["a", "b"]
    assert named.state_dict()["param_groups"][0]["param_names"] == ["a", "b"]
    raises(ValueError, "with/without names", optim.Adam, [("a", a), b])
    raises(ValueError, "without names", named.add_param_group, {"params": [parameter(1.0)]})


def test_modules_parameters():
    """A module's parameters are those of an optimizer, and become its state's keys."""
    model = genesis.nn.Linear(3, 2)
    optimizer = optim.AdamW(model.parameters(), lr=0.1)
    before = model.weight.detach().clone()
    model(genesis.ones(4, 3)).sum().backward()
    optimizer.step()
    assert not genesis.equal(before, model.weight.detach())
    optimizer.zero_grad()
    assert model.weight.grad is None
    assert set(optimizer.state) == set(model.parameters())


def test_what_is_no_parameter_list():
    """PyTorch's words."""
    x = parameter(1.0)
    raises(ValueError, "optimizer got an empty parameter list", optim.SGD, [])
    raises(TypeError, "should be an iterable of Tensors or dicts", optim.SGD, x)
    raises(TypeError, "optimizer can only optimize Tensors, but one of", optim.SGD, [1.0])
    raises(ValueError, "can't optimize a non-leaf Tensor", optim.SGD, [x * 2])
    optim.SGD([x * 2], differentiable=True)
    optimizer = optim.SGD([x])
    raises(TypeError, "param_group must be a dict", optimizer.add_param_group, [x])
    raises(TypeError, "ordered collections", optimizer.add_param_group, {"params": {x}})
    raises(ValueError, "some parameters appear in more", optimizer.add_param_group, {"params": [x]})
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([x, x])
    with pytest.warns(FutureWarning, match="ordered collections"):
        optim.SGD({x})


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("SGD", {"lr": -1}, "Invalid learning rate: -1"),
        ("SGD", {"momentum": -1}, "Invalid momentum value: -1"),
        ("SGD", {"weight_decay": -1}, "Invalid weight_decay value: -1"),
        ("SGD", {"nesterov": True}, "Nesterov momentum requires a momentum and zero dampening"),
        ("SGD", {"lr": genesis.ones(2)}, "Tensor lr must be 1-element"),
        ("Adam", {"betas": (1.0, 0.9)}, "Invalid beta parameter at index 0: 1.0"),
        ("Adam", {"betas": (0.9, -0.1)}, "Invalid beta parameter at index 1: -0.1"),
        ("Adam", {"betas": (0.9, genesis.tensor(0.9))}, "both floats or both Tensors"),
        ("Adam", {"eps": -1}, "Invalid epsilon value: -1"),
        ("Adam", {"lr": genesis.tensor(0.1), "foreach": True}, "lr as a Tensor is not supported"),
        ("AdamW", {"weight_decay": -1}, "Invalid weight_decay value: -1"),
        ("NAdam", {"momentum_decay": -1}, "Invalid momentum_decay value: -1"),
        ("RMSprop", {"alpha": -1}, "Invalid alpha value: -1"),
        ("Adagrad", {"lr_decay": -1}, "Invalid lr_decay value: -1"),
        ("Adagrad", {"initial_accumulator_value": -1}, "Invalid initial_accumulator_value"),
        ("Adadelta", {"rho": 2}, "Invalid rho value: 2"),
        ("Adafactor", {"beta2_decay": 1}, "beta2_decay should be <= 0 but is: 1"),
        ("Adafactor", {"d": 0.5}, "Clipping threshold d should be >= 1 but is: 0.5"),
        ("Muon", {"momentum": -1}, "momentum should be >= 0 but is: -1"),
        ("Muon", {"adjust_lr_fn": "x"}, "Adjust learning rate function x is not supported"),
        ("Lion", {"betas": (2.0, 0.9)}, "Invalid beta parameter at index 0"),
    ],
)
def test_options_that_are_not_possible(name, options, words):
    """PyTorch's words."""
    x = genesis.ones(2, 2, requires_grad=True)
    raises(ValueError, words, getattr(optim, name), [x], **options)


def test_options_that_exclude_each_other():
    """PyTorch's words."""
    x = parameter(1.0)
    raises(
        RuntimeError,
        "`fused` and `foreach` cannot be `True` together",
        optim.Adam,
        [x],
        fused=True,
        foreach=True,
    )
    raises(
        RuntimeError,
        "`fused` does not support `differentiable`",
        optim.SGD,
        [x],
        fused=True,
        differentiable=True,
    )
    raises(ValueError, "Muon only supports 2D parameters", optim.Muon, [x])
    raises(ValueError, "LBFGS doesn't support", optim.LBFGS, [{"params": [x]}, {"params": []}])
    raises(TypeError, "rate", optim.SGD, [x], rate=0.1)


# ---- steps --------------------------------------------------------------------------------------


def test_a_closure():
    """Is called with gradients on, and its loss is given back."""
    x = genesis.tensor([2.0], requires_grad=True)
    optimizer = optim.SGD([x], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    with genesis.no_grad():
        assert optimizer.step(closure).item() == 4
    assert x.item() == 1
    assert optimizer.step() is None


def test_parameters_without_gradients():
    """Stay as they are, and have no state; their steps begin later."""
    a, b = parameter(1.0), genesis.tensor([1.0], requires_grad=True)
    optimizer = optim.Adam([a, b], lr=0.1)
    optimizer.step()
    assert b.item() == 1
    assert b not in optimizer.state
    b.grad = genesis.ones(1)
    optimizer.step()
    assert [optimizer.state[p]["step"].item() for p in (a, b)] == [2, 1]
    assert b.item() == pytest.approx(0.9)
    optim.SGD([genesis.ones(2, requires_grad=True)]).step()


def test_steps_leave_gradients_on():
    """Whether operations are recorded stays as it was."""
    x = parameter(1.0)
    optim.SGD([x], lr=0.1).step()
    assert (x * 2).requires_grad
    assert x.requires_grad and x.is_leaf


def test_what_waits_gets_the_value_of_before():
    """A pending operation that reads a parameter or a state."""
    x = parameter(1.0, 2.0)
    optimizer = optim.SGD([x], lr=1.0, momentum=0.5)
    optimizer.step()
    twice, state = x.detach() * 2, optimizer.state[x]["momentum_buffer"] + 0
    optimizer.step()
    assert twice.tolist() == [0, 0]
    assert state.tolist() == [1, 2]


def test_a_backward_pass_through_a_changed_parameter():
    """Is refused, as after each write in place."""
    x = genesis.tensor([3.0], requires_grad=True)
    loss = (x * x).sum()
    x.grad = genesis.ones(1)
    optim.SGD([x], lr=0.1).step()
    with pytest.raises(RuntimeError, match="version"):
        loss.backward()


def test_zero_grad():
    """None, or zeros in the same tensors."""
    a, b = parameter(1.0), parameter(2.0, 3.0, dtype=genesis.bfloat16)
    optimizer = optim.SGD([a, b, genesis.ones(1, requires_grad=True)])
    grads = [a.grad, b.grad]
    optimizer.zero_grad(set_to_none=False)
    assert [grad.tolist() for grad in grads] == [[0], [0, 0]]
    assert a.grad is grads[0]
    optimizer.zero_grad()
    assert a.grad is None and b.grad is None


def test_zero_grad_lets_go_of_graphs():
    """Gradients that can be differentiated become zeros that cannot."""
    x = genesis.tensor([1.0, 2.0], requires_grad=True)
    (x**3).sum().backward(create_graph=True)
    grad = x.grad
    optim.SGD([x], lr=0.1).zero_grad(set_to_none=False)
    assert x.grad is grad and not grad.requires_grad and grad.tolist() == [0, 0]
    (x**2).sum().backward()
    assert x.grad.tolist() == [2, 4] and not x.grad.requires_grad


def test_the_same_memory_twice():
    """An error, and nothing has changed."""
    x = genesis.ones(4)
    a, b = x[:3].requires_grad_(), x[2:].requires_grad_()
    a.grad, b.grad = genesis.ones(3), genesis.ones(2)
    with pytest.raises(ValueError, match="share memory"):
        optim.SGD([a, b], lr=0.1).step()
    assert x.tolist() == [1, 1, 1, 1]


def test_an_error_in_a_later_group_of_steps():
    """Counts of steps differ, and one of the states has another shape: nothing is written."""
    a, b = parameter(1.0), parameter(1.0, 2.0)
    optimizer = optim.Adam([a, b])
    optimizer.step()
    optimizer.state[b]["step"].fill_(5)
    optimizer.state[b]["exp_avg"] = genesis.zeros(3)
    before = a.item()
    with pytest.raises((ValueError, RuntimeError), match="a state of parameter 1 has shape"):
        optimizer.step()
    assert a.item() == before
    assert optimizer.state[a]["step"].item() == 1


def test_lbfgs_goes_on_where_it_was():
    """State dict, pickled; and a step that has nothing to do."""
    made = []
    for is_resumed in (False, True):
        x = genesis.tensor([3.0, -1.0], dtype=genesis.float64, requires_grad=True)
        optimizer = optim.LBFGS([x], lr=0.3, max_iter=3)

        def closure(x=x):
            x.grad = None
            loss = ((x - 1) ** 4).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        if is_resumed:
            saved = pickle.loads(pickle.dumps(optimizer.state_dict()))
            optimizer = optim.LBFGS([x], lr=0.3, max_iter=3)
            optimizer.load_state_dict(saved)
        optimizer.step(closure)
        made.append(x.tolist())
    assert made[0] == made[1]
    still = optim.LBFGS([genesis.ones(1, requires_grad=True)], max_iter=0)
    still.step(lambda: genesis.tensor(1.0))


def test_nothing_is_left():
    """Steps leave no memory behind."""
    x = parameter(*range(1000))
    optimizer = optim.AdamW([x])
    optimizer.step()
    with genesis.leak_scope() as scope:
        for _ in range(50):
            optimizer.step()
    assert not scope.leaks
    assert optimizer.state[x]["step"].item() == 51


# ---- hooks --------------------------------------------------------------------------------------


def test_step_hooks():
    """Before and after, with the arguments; all of them once."""
    calls = []
    x = parameter(1.0)
    optimizer = optim.SGD([x], lr=0.1)
    first = optimizer.register_step_pre_hook(lambda o, a, k: calls.append(("before", o, a[1:], k)))
    after = optimizer.register_step_post_hook(lambda o, a, k: calls.append(("after", x.item())))
    handles = [
        optim.optimizer.register_optimizer_step_pre_hook(lambda *_: calls.append("all before")),
        optim.optimizer.register_optimizer_step_post_hook(lambda *_: calls.append("all after")),
    ]
    optimizer.step()
    assert calls == [
        "all before",
        ("before", optimizer, (), {}),
        ("after", pytest.approx(0.9)),
        "all after",
    ]
    for handle in (first, after, *handles):
        handle.remove()
    calls.clear()
    optimizer.step()
    assert calls == []
    optimizer.register_step_pre_hook(lambda o, a, k: ((o, lambda: 7), k))
    assert optimizer.step() == 7
    optimizer.register_step_pre_hook(lambda o, a, k: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        optimizer.step()


def test_hooks_of_an_optimizer_of_ones_own():
    """A step that calls its base's has its hooks called once."""

    class Twice(optim.SGD):
        def step(self, closure=None):
            super().step(closure)
            return super().step()

    calls = []
    optimizer = Twice([parameter(1.0)], lr=0.1)
    optimizer.register_step_post_hook(lambda *_: calls.append(1))
    optimizer.step()
    assert calls == [1]


def test_state_dict_hooks():
    """Before and after, and in the place of the dict."""
    calls = []
    optimizer = optim.SGD([parameter(1.0)], lr=0.1)
    optimizer.register_state_dict_pre_hook(lambda o: calls.append("before"))
    optimizer.register_state_dict_post_hook(lambda o, d: {**d, "more": 1})
    optimizer.register_state_dict_post_hook(lambda o, d: calls.append("first"), prepend=True)
    saved = optimizer.state_dict()
    assert saved["more"] == 1 and calls == ["before", "first"]
    optimizer.register_load_state_dict_pre_hook(
        lambda o, d: {**d, "param_groups": [{**d["param_groups"][0], "lr": 0.7}]}
    )
    optimizer.register_load_state_dict_post_hook(lambda o: calls.append("loaded"))
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["lr"] == 0.7
    assert calls[-1] == "loaded"


# ---- saving and loading -------------------------------------------------------------------------


def trained(name, steps, seed=0):
    """An optimizer after some steps."""
    params = [
        genesis.tensor(cases.numbers((2, 2), f"{seed} {i}"), requires_grad=True) for i in range(2)
    ]
    optimizer = make(name, params)
    walk(optimizer, params, 0, steps)
    return optimizer, params


def walk(optimizer, params, begin, end):
    """Steps, each with gradients of its own."""
    for step in range(begin, end):
        for i, param in enumerate(params):
            param.grad = genesis.tensor(cases.numbers((2, 2), f"{i} {step}"))
        optimizer.step()


@pytest.mark.parametrize("name", list(ALL))
def test_resuming_gives_the_same_bits(name):
    """State dict, pickled, into a fresh optimizer."""
    optimizer, params = trained(name, 7)
    right = [p.detach().clone() for p in params]
    saved = pickle.loads(pickle.dumps(optimizer.state_dict()))
    walk(optimizer, params, 7, 12)
    other, others = trained(name, 2, seed=1)
    with genesis.no_grad():
        for param, value in zip(others, right, strict=True):
            param.copy_(value)
    other.load_state_dict(saved)
    walk(other, others, 7, 12)
    assert [p.tolist() for p in others] == [p.tolist() for p in params]


def test_the_format_of_a_state_dict():
    """PyTorch's: states by number, groups with numbers of parameters."""
    optimizer, _ = trained("AdamW", 2)
    saved = optimizer.state_dict()
    assert list(saved) == ["state", "param_groups"]
    assert list(saved["state"]) == [0, 1]
    assert list(saved["state"][0]) == ["step", "exp_avg", "exp_avg_sq"]
    assert saved["state"][0]["step"].item() == 2
    assert saved["state"][0]["step"].dtype is genesis.float32
    assert saved["state"][0]["step"].shape == ()
    assert saved["param_groups"] == [
        {
            "lr": 0.001,
            "betas": (0.9, 0.999),
            "eps": 1e-08,
            "weight_decay": 0.01,
            "amsgrad": False,
            "maximize": False,
            "foreach": None,
            "capturable": False,
            "differentiable": False,
            "fused": None,
            "decoupled_weight_decay": True,
            "params": [0, 1],
        }
    ]


def test_loading_copies_and_converts():
    """Tensors become those of the parameter's type, and are nobody else's."""
    optimizer, _ = trained("Adam", 3)
    saved = optimizer.state_dict()
    param = genesis.zeros(2, 2, dtype=genesis.float64, requires_grad=True)
    other = optim.Adam([param, genesis.zeros(2, 2, requires_grad=True)], amsgrad=True)
    other.load_state_dict(saved)
    state = other.state[param]
    assert state["exp_avg"].dtype is genesis.float64
    assert state["step"].dtype is genesis.float32
    state["exp_avg"].fill_(7)
    state["step"].fill_(9)
    assert saved["state"][0]["step"].item() == 3
    twin = optim.Adam([genesis.zeros(2, 2, requires_grad=True) for _ in range(2)], amsgrad=True)
    twin.load_state_dict(saved)
    twin.state[twin.param_groups[0]["params"][0]]["exp_avg"].fill_(5)
    assert saved["state"][0]["exp_avg"].ne(5).all()


@pytest.mark.parametrize("name", ["NAdam", "ASGD", "Muon"])
def test_loading_keeps_numbers_and_options(name):
    """What is one number for a parameter is not rounded to its type; no option is added."""
    param = genesis.ones(2, 2, dtype=genesis.bfloat16, requires_grad=True)
    param.grad = genesis.ones(2, 2, dtype=genesis.bfloat16)
    optimizer = make(name, [param])
    optimizer.step()
    saved = optimizer.state_dict()
    kinds = {key: value.dtype for key, value in optimizer.state[param].items()}
    for _ in range(2):
        optimizer.load_state_dict(copy.deepcopy(saved))
    assert {key: value.dtype for key, value in optimizer.state[param].items()} == kinds
    assert optimizer.state_dict()["param_groups"] == saved["param_groups"]
    assert copy.deepcopy(optimizer).param_groups[0].keys() == optimizer.param_groups[0].keys()


def test_loading_numbers_of_steps():
    """Old states have plain numbers."""
    optimizer, params = trained("Adam", 3)
    saved = optimizer.state_dict()
    for state in saved["state"].values():
        state["step"] = 3
    optimizer.load_state_dict(saved)
    assert optimizer.state[params[0]]["step"].item() == 3
    walk(optimizer, params, 3, 4)
    assert optimizer.state[params[0]]["step"].item() == 4


@pytest.mark.parametrize("name", ["Adafactor", "NAdam", "RAdam", "ASGD"])
def test_loading_states_of_old_versions(name):
    """Options that there were not yet, and plain numbers of steps."""
    param = parameter(1.0, 2.0)
    optimizer = make(name, [param])
    optimizer.step()
    saved = copy.deepcopy(optimizer.state_dict())
    right = copy.deepcopy(optimizer)
    group = saved["param_groups"][0]
    for key in ("foreach", "maximize", "capturable", "differentiable", "decoupled_weight_decay"):
        group.pop(key, None)
    state = saved["state"][0]
    state.update({key: one.item() for key, one in state.items() if one.numel() == 1})
    optimizer.load_state_dict(saved)
    optimizer.step()
    twin = right.param_groups[0]["params"][0]
    twin.grad = param.grad.clone()
    right.step()
    assert twin.tolist() == param.tolist()
    assert optimizer.param_groups[0].keys() == right.param_groups[0].keys()


def test_what_cannot_be_loaded():
    """PyTorch's words; nothing changes."""
    optimizer, params = trained("Adam", 3)
    saved = optimizer.state_dict()
    one = optim.Adam([genesis.zeros(2, 2, requires_grad=True)])
    raises(ValueError, "doesn't match the size", one.load_state_dict, saved)
    both = optim.Adam([{"params": [params[0]]}, {"params": [params[1]]}])
    raises(ValueError, "different number of parameter groups", both.load_state_dict, saved)
    assert not one.state and not both.state
    broken = {"state": {0: {"step": 1}}, "param_groups": saved["param_groups"]}
    optimizer.load_state_dict(broken)
    with pytest.raises((ValueError, TypeError, RuntimeError, KeyError)):
        optim.Adam([params[0]]).load_state_dict({"param_groups": []})


@pytest.mark.parametrize("name", ["SGD", "AdamW", "NAdam"])
def test_copies_and_pickles(name):
    """With parameters of their own, and going on as the first one."""
    optimizer, params = trained(name, 3)
    copied = copy.deepcopy(optimizer)
    pickled = pickle.loads(pickle.dumps(optimizer))
    walk(optimizer, params, 3, 6)
    for other in (copied, pickled):
        own = other.param_groups[0]["params"]
        assert own[0] is not params[0]
        walk(other, own, 3, 6)
        assert [p.tolist() for p in own] == [p.tolist() for p in params]


def test_repr():
    """PyTorch's."""
    text = repr(optim.SGD([parameter(1.0)], lr=0.1))
    assert text == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach: None\n"
        "    fused: None\n    lr: 0.1\n    maximize: False\n    momentum: 0\n    nesterov: False\n"
        "    weight_decay: 0\n)"
    )


# ---- averages -----------------------------------------------------------------------------------


def test_averaged_models():
    """Equal and moving averages, by lists and one by one."""
    utils = optim.swa_utils
    model = genesis.nn.Linear(2, 1)
    kinds = {
        "swa": utils.AveragedModel(model),
        "ema": utils.AveragedModel(model, multi_avg_fn=utils.get_ema_multi_avg_fn(0.75)),
        "swa one": utils.AveragedModel(model, avg_fn=utils.get_swa_avg_fn()),
        "ema one": utils.AveragedModel(model, avg_fn=utils.get_ema_avg_fn(0.75)),
    }
    for value in (1.0, 2.0, 6.0):
        genesis.nn.init.constant_(model.weight, value)
        for one in kinds.values():
            one.update_parameters(model)
    right = {"swa": 3.0, "ema": (1 * 0.75 + 2 * 0.25) * 0.75 + 6 * 0.25}
    for name, one in kinds.items():
        wanted = right[name.split()[0]]
        assert one.module.weight.tolist()[0] == pytest.approx([wanted, wanted])
        assert one.n_averaged.item() == 3
    assert list(kinds["swa"].state_dict()) == ["n_averaged", "module.weight", "module.bias"]
    x = genesis.ones(1, 2)
    assert kinds["swa"](x).tolist() == kinds["swa"].module(x).tolist()
    raises(ValueError, "Invalid decay value 2", utils.get_ema_avg_fn, 2)
    raises(
        AssertionError,
        "Only one of",
        utils.AveragedModel,
        model,
        avg_fn=utils.get_swa_avg_fn(),
        multi_avg_fn=utils.get_swa_multi_avg_fn(),
    )


def test_averaged_buffers():
    """Are copied, or averaged where that is asked for."""
    model = genesis.nn.Module()
    model.register_buffer("mean", genesis.zeros(2))
    model.register_parameter("weight", genesis.nn.Parameter(genesis.ones(1)))
    copied = optim.swa_utils.AveragedModel(model)
    averaged = optim.swa_utils.AveragedModel(model, use_buffers=True)
    for value in (1.0, 3.0):
        model.mean.fill_(value)
        copied.update_parameters(model)
        averaged.update_parameters(model)
    assert copied.module.mean.tolist() == [3, 3]
    assert averaged.module.mean.tolist() == [2, 2]


# ---- the GPU ------------------------------------------------------------------------------------


def test_on_the_simulated_gpu():
    """Values, capturable steps, scaling, and a graph that is replayed."""
    finished = simulate_script("device_optim.py", SIM_GPU_FINDINGS="abort")
    assert "0 wrong" in finished.stdout


@pytest.mark.gpu
def test_on_the_gpu():
    """The same on a real one."""
    finished = run_script("device_optim.py")
    assert "0 wrong" in finished.stdout


def test_no_warnings():
    """Of what everybody does."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer, _ = trained("AdamW", 2)
        scheduler = optim.lr_scheduler.StepLR(optimizer, 1)
        optimizer.step()
        scheduler.step()
