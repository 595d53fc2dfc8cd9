"""PyTorch's own samples of its optimizers, given to PyTorch and to Genesis.

    python tests/ops/optimizers_suite.py [--verbose] [PATTERN ...]

Takes each entry of PyTorch's database of optimizers that has a namesake here, with each set of its
arguments, and runs the scenarios below in both with the same parameters and gradients. What a
scenario sees (parameters, states, groups, texts, warnings, errors) is compared. PATTERN is a glob
of names. PyTorch (tested with 2.15) and expecttest must be installed, which the test environment
has not. The exit status says whether all differences are KNOWN.

Values in float32 and float64 are PyTorch's; in the half types they may be as far from PyTorch's in
float64 as PyTorch's own are, or as rounding explains.
"""

from __future__ import annotations

import argparse
import copy
import fnmatch
import io
import math
import pickle
import re
import sys
import warnings
from collections import Counter
from importlib import import_module

import torch
from torch.testing._internal.common_optimizers import OptimizerErrorEnum, optim_db

import genesis

STEPS = 20
SHAPES = [(5,), (), (3, 4), (2, 3, 5), (1,), (0,), (17, 3), (3, 0, 2), (33,)]
MATRICES = [(3, 4), (1, 1), (17, 3), (8, 8), (1, 7)]
DTYPES = ["float32", "float64", "float16", "bfloat16"]
WAYS = [  # arguments beside those of the database, for optimizers that have them
    {"foreach": True},
    {"foreach": False},
    {"fused": True},
    {"differentiable": True},
    {"lr": "tensor"},
]
EXACT = {"float64": 1e-6, "float32": 2e-5}  # numbers that are tensors are float32
TOLERANCE = dict(EXACT)

# Differences that are meant: optimizer, scenario, what is in the text, and why.
KNOWN: list[tuple[str, str, str, str]] = [
    ("*", "mistakes", "but got genesis.FloatTensor", "the name of the class"),
    ("*", "mistakes", "with size: ", "a shape is a tuple"),
    ("ASGD|NAdam", "loading|crossing", "dtype", "numbers keep their type, halves would round them"),
    ("SGD", "groups", "expected Tensor as element 0", "fused, PyTorch wants every gradient"),
    ("LBFGS", "*", r"'al'", "what a step needs alone is not kept"),
    ("LBFGS", "crossing", r"'t'\]: .*, here [01]\.", "a distance is a float"),
    ("LBFGS", "copies", "no attribute '_params'", "PyTorch's copies cannot step"),
    ("LBFGS", "schedulers", "1.3229", "PyTorch's state has the rate itself, which changes"),
    ("*", "closures", "Converting a tensor with requires_grad", "float() of a loss is no mistake"),
]


class World:
    """PyTorch or Genesis, and how a tensor of PyTorch comes there."""

    def __init__(self, package, is_wide=False):
        self.package, self.is_ours, self.is_wide = package, package is genesis, is_wide

    def tensor(self, value):
        value = value.clone()
        if self.is_wide and value.is_floating_point():
            value = value.double()
        return genesis.from_dlpack(value).clone() if self.is_ours else value

    def value(self, value):
        """An argument: tensors are of this world."""
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, (list, tuple)):
            return type(value)(self.value(one) for one in value)
        return value


def random_of(shape, dtype, seed, is_strided=True):
    source = torch.Generator().manual_seed(seed)
    made = torch.randn(shape, generator=source, dtype=torch.float64)
    if len(shape) > 1 and seed % 2 and is_strided:
        made = made.mT.contiguous().mT  # other strides
    return made.to(getattr(torch, dtype))


class Case:
    """An optimizer of one world, with its parameters, for a set of arguments."""

    def __init__(self, world, info, options, dtype="float32", shapes=None):
        self.world, self.info, self.dtype = world, info, dtype
        self.kind = getattr(world.package.optim, info.name)
        self.options = dict(options)
        self.shapes = shapes or (MATRICES if info.name == "Muon" else SHAPES)
        if info.name in ("Adafactor", "LBFGS"):  # what PyTorch's fail with
            self.shapes = [shape for shape in self.shapes if 0 not in shape]
        self.params = self.some_params(0)

    def some_params(self, seed, shapes=None):
        shapes = shapes or self.shapes
        has_strides = self.info.name != "LBFGS" and not self.options.get("fused")
        values = [
            random_of(shape, self.dtype, seed + i, has_strides) for i, shape in enumerate(shapes)
        ]
        made = [self.world.tensor(one).requires_grad_() for one in values]
        if self.options.get("differentiable"):  # a leaf cannot be changed by recorded operations
            made = [one.clone() for one in made]
            for one in made:
                one.retain_grad()
        return made

    def make(self, params=None, **more):
        options = {key: self.world.value(one) for key, one in {**self.options, **more}.items()}
        return self.kind(self.params if params is None else params, **options)

    def gradients(self, step, params=None, skipped=()):
        for i, param in enumerate(self.params if params is None else params):
            made = random_of(tuple(param.shape), self.dtype, 1000 * (step + 1) + i)
            if i in skipped:
                param.grad = None
                continue
            like = torch.empty_strided(tuple(param.shape), param.stride(), dtype=made.dtype)
            param.grad = self.world.tensor(
                like.copy_(made)
            )  # fused, PyTorch takes no other strides

    def closure(self, optimizer, params=None):
        params = self.params if params is None else params

        def call():
            optimizer.zero_grad()
            loss = sum(((one - 0.5) ** 2).sum() for one in params if one.numel())
            loss.backward()
            return loss

        return call

    def step(self, optimizer, number=0, params=None, skipped=()):
        if self.info.step_requires_closure:
            return optimizer.step(self.closure(optimizer, params))
        self.gradients(number, params, skipped)
        return optimizer.step()

    def steps(self, optimizer, first=0, last=STEPS, params=None, skipped=()):
        for number in range(first, last):
            self.step(optimizer, number, params, skipped)


# ---- what a scenario sees ----


class Seen:
    """A tensor of any world, as PyTorch's."""

    def __init__(self, tensor):
        self.needs_gradient = tensor.requires_grad
        tensor = tensor.detach().clone()
        if isinstance(tensor, genesis.Tensor):
            tensor = torch.from_dlpack(tensor)
        self.tensor, self.dtype = tensor, str(tensor.dtype)[6:]

    def __repr__(self):
        return f"{self.dtype}{tuple(self.tensor.shape)}"


def seen(value):
    """A value without what belongs to one world."""
    if isinstance(value, (torch.Tensor, genesis.Tensor)):
        return Seen(value)
    if isinstance(value, dict):
        return {key: seen(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(seen, value)]
    if isinstance(value, (torch.dtype, genesis.dtype)):
        return str(value).split(".")[-1]
    if isinstance(value, str):
        return plain(value)
    return value


def plain(text):
    return re.sub(r"torch(?!\.org)", "genesis", text).replace("genesis.Size", "").strip()


def state_of(optimizer):
    return seen(optimizer.state_dict())


def difference(theirs, ours, exact, where=""):
    """What differs between what two worlds have seen, or None."""
    if isinstance(theirs, Seen) and isinstance(ours, Seen):
        return tensor_difference(theirs, ours, exact, where)
    if type(theirs) is not type(ours) and not (is_number(theirs) and is_number(ours)):
        return f"{where}: {theirs!r}, here {ours!r}"
    if isinstance(theirs, dict):
        if ("error" in theirs) != ("error" in ours):
            return f"{where}: {theirs!r:.200}, here {ours!r:.200}"
        if set(theirs) != set(ours):
            only = f"only there {sorted(map(str, set(theirs) - set(ours)))}"
            return f"{where}: keys: {only}, only here {sorted(map(str, set(ours) - set(theirs)))}"
        if list(theirs) != list(ours):
            return f"{where}: order of keys: {list(theirs)}, here {list(ours)}"
        places = list(theirs)
    elif isinstance(theirs, list):
        if len(theirs) != len(ours):
            return f"{where}: {theirs!r}, here {ours!r}"
        places = list(range(len(theirs)))
    else:
        is_same = theirs == ours or (theirs != theirs and ours != ours)
        if is_number(theirs) and is_number(ours):
            is_same = is_same or math.isclose(theirs, ours, rel_tol=1e-6, abs_tol=1e-9)
            is_same = is_same and (type(theirs) is type(ours))
        return None if is_same else f"{where}: {theirs!r}, here {ours!r}"
    has_exact = isinstance(exact, type(theirs)) and len(exact) == len(theirs)
    for place in places:
        other = exact[place] if has_exact and (isinstance(exact, list) or place in exact) else None
        found = difference(theirs[place], ours[place], other, f"{where}[{place!r}]")
        if found:
            return found
    return None


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def tensor_difference(theirs, ours, exact, where):
    for what in ("dtype", "needs_gradient"):
        if getattr(theirs, what) != getattr(ours, what):
            return f"{where}: {what} {getattr(theirs, what)}, here {getattr(ours, what)}"
    if theirs.tensor.shape != ours.tensor.shape:
        return f"{where}: {theirs!r}, here {ours!r}"
    one, two = theirs.tensor.double(), ours.tensor.double()
    most = TOLERANCE.get(theirs.dtype, 0)
    if theirs.dtype in ("float16", "bfloat16") and isinstance(exact, Seen):
        right = exact.tensor.double()
        rounding = torch.finfo(theirs.tensor.dtype).eps
        as_far = (one - right).abs().nan_to_num(0, 0)
        as_far = as_far.max() if as_far.numel() else 0
        is_right = (two - right).abs() <= 4 * rounding * (1 + right.abs()) + 1.5 * as_far
        is_right |= two.isnan() & (one.isnan() | right.isnan()) | (one == two)
    else:
        is_right = torch.isclose(two, one, most, most / 10, equal_nan=True)
    if is_right.all():
        return None
    at = tuple((~is_right).nonzero()[0].tolist())
    count = f"{int((~is_right).sum())} of {is_right.numel()}, at {at}"
    return f"{where}: values: {count} {one[at].item()!r}, here {two[at].item()!r}"


def watched(call):
    """What a call gives, with its warnings and its error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = {"gives": seen(call())}
        except Exception as error:
            made = {"error": [type(error).__name__, plain(str(error))]}
    told = [[one.category.__name__, plain(str(one.message))] for one in caught]
    return {**made, "warnings": [one for one in told if "deprecat" not in one[1]]}


# ---- scenarios: each gives what it sees ----


def values(case):
    """20 steps."""
    optimizer = case.make()
    case.step(optimizer)
    first = seen(case.params)
    case.steps(optimizer, 1)
    return {"first": first, "last": seen(case.params), "state": state_of(optimizer)}


def structure(case):
    """States before and after a step, defaults, texts."""
    optimizer = case.make()
    before = state_of(optimizer)
    case.step(optimizer)
    text = plain(repr(optimizer))
    made = {"before": before, "text": text, "defaults": seen(optimizer.defaults)}
    return {**made, "kinds": kinds(optimizer.state_dict())}


def kinds(value):
    if isinstance(value, dict):
        return {"kind": type(value).__name__, **{key: kinds(one) for key, one in value.items()}}
    return type(value).__name__


def groups(case):
    """Groups with options of their own, one that is added, and parameters without gradient."""
    if case.info.name == "LBFGS":
        return watched(lambda: case.make([{"params": case.params}, {"params": case.params}]))
    params = case.params
    given = [
        {"params": params[:2], "lr": 0.5},
        {"params": iter(params[2:4]), "weight_decay": 0.25},
    ]
    optimizer = case.make(given)
    case.steps(optimizer, 0, 3, params[:4], skipped=(1, 2))
    optimizer.add_param_group({"params": params[4], "lr": 0.125})
    case.steps(optimizer, 3, 6, params[:5], skipped=(0,))
    case.steps(optimizer, 6, 9, params[:5])
    return {"params": seen(params), "state": state_of(optimizer)}


def names(case):
    """Parameters with names."""
    named = [(f"p{i}", one) for i, one in enumerate(case.params)]
    optimizer = case.make(iter(named))
    case.step(optimizer)
    other = case.make()
    other.load_state_dict(optimizer.state_dict())
    return {"state": state_of(optimizer), "loaded": state_of(other)}


def changed_options(case):
    """Options of groups that change between steps."""
    optimizer = case.make()
    for number in range(6):
        for group in optimizer.param_groups:
            group["lr"] = 0.01 * (number + 1)
            if number == 3 and "weight_decay" in group:
                group["weight_decay"] = 0.3
            if number == 4 and case.info.name == "SGD" and not group["nesterov"]:
                group["momentum"] = 0.5
            if number == 2 and "maximize" in group:
                group["maximize"] = not group["maximize"]
        case.step(optimizer, number)
    return {"params": seen(case.params), "state": state_of(optimizer)}


def loading(case):
    """A state that goes on in another optimizer; from a file's text, too."""
    optimizer = case.make()
    case.steps(optimizer, 0, 4)
    saved = optimizer.state_dict()
    others = [case.world.tensor(seen(one).tensor).requires_grad_() for one in case.params]
    other = case.make(others, lr=0.9)
    other.load_state_dict(copy.deepcopy(saved))
    case.steps(optimizer, 4, 8)
    case.steps(other, 4, 8, others)
    return {"one": state_of(optimizer), "other": state_of(other), "params": seen(others)}


def crossing(case):
    """A state of PyTorch's goes on here, and one of ours there."""
    wide = case.world.is_wide
    theirs = Case(World(torch, wide), case.info, case.options, case.dtype, case.shapes)
    source = theirs.make()
    theirs.steps(source, 0, 4)
    params = [case.world.tensor(one.detach()).requires_grad_() for one in theirs.params]
    optimizer = case.make(params)
    optimizer.load_state_dict(converted(source.state_dict(), case.world))
    case.steps(optimizer, 4, 8, params)
    back = theirs.make([torch.zeros_like(one).requires_grad_() for one in theirs.params])
    back.load_state_dict(converted(optimizer.state_dict(), World(torch)))
    theirs.steps(back, 8, 10, list(back.param_groups[0]["params"]))
    return {"params": seen(params), "state": state_of(optimizer), "back": state_of(back)}


def converted(value, world):
    if isinstance(value, (torch.Tensor, genesis.Tensor)):
        return world.tensor(Seen(value).tensor)
    if isinstance(value, dict):
        return {key: converted(one, world) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(converted(one, world) for one in value)
    return value


def copies(case):
    """deepcopy and pickle, after some steps."""
    optimizer = case.make()
    case.steps(optimizer, 0, 3)
    twin = copy.deepcopy(optimizer)
    file = io.BytesIO(pickle.dumps(optimizer))
    read = pickle.load(file)
    made = {}
    for name, one in (("twin", twin), ("read", read)):
        params = one.param_groups[0]["params"]
        is_own = all(a is not b for a, b in zip(params, case.params, strict=True))
        case.steps(one, 3, 6, params)
        made[name] = {"params": seen(params), "state": state_of(one), "own": is_own}
    return {**made, "before": seen(case.params)}


def closures(case):
    """A step that is given a closure, and what it gives."""
    optimizer = case.make()
    grad_modes = []

    def call():
        grad_modes.append(case.world.package.is_grad_enabled())
        return case.closure(optimizer)()

    losses = [float(optimizer.step(call)) for _ in range(4)]
    rounded = [f"{loss:.3g}" if abs(loss) > 1e-9 else "0" for loss in losses]
    return {"losses": rounded, "modes": sorted(set(grad_modes)), "params": seen(case.params)}


def gradients(case):
    """zero_grad, and that steps leave gradients as they are."""
    optimizer = case.make()
    case.gradients(0, skipped=(1,))
    if not case.info.step_requires_closure:
        optimizer.step()
    made = {"kept": seen([one.grad for one in case.params])}
    grads = [one.grad for one in case.params]
    optimizer.zero_grad(set_to_none=False)
    made["zeros"] = seen([one.grad for one in case.params])
    made["same"] = all(one.grad is two for one, two in zip(case.params, grads, strict=True))
    optimizer.zero_grad()
    made["none"] = seen([one.grad for one in case.params])
    optimizer.zero_grad(False)
    return made


def without_gradients(case):
    """A step of nothing."""
    if case.info.step_requires_closure:
        return None
    optimizer = case.make()
    made = {"gives": watched(optimizer.step), "state": state_of(optimizer)}
    optimizer.zero_grad()
    return made


def hooks(case):
    """The calls of hooks, in their order."""
    said = []
    optimizer = case.make()
    module = import_module(f"{case.world.package.__name__}.optim.optimizer")
    first = module.register_optimizer_step_pre_hook(
        lambda *given: said.append(f"all before {len(given)} {len(given[1])} {given[2]}")
    )
    last = module.register_optimizer_step_post_hook(
        lambda *given: said.append(f"all after {len(given)} {len(given[1])} {given[2]}")
    )
    optimizer.register_step_pre_hook(lambda *given: said.append("before"))
    handle = optimizer.register_step_post_hook(lambda *given: said.append("after"))
    optimizer.register_state_dict_pre_hook(lambda one: said.append("state before"))
    optimizer.register_state_dict_post_hook(lambda one, state: said.append(f"state {len(state)}"))
    optimizer.register_load_state_dict_pre_hook(lambda one, state: said.append("load before"))
    optimizer.register_load_state_dict_post_hook(lambda one: said.append("load after"))
    optimizer.register_state_dict_pre_hook(lambda one: said.append("first"), prepend=True)
    case.step(optimizer)
    optimizer.load_state_dict(optimizer.state_dict())
    handle.remove()
    case.step(optimizer)
    first.remove()
    last.remove()
    case.step(optimizer)
    return said


def schedulers(case):
    """Schedulers of the database beside the optimizer."""
    made = []
    for number, sorts in enumerate(case.info.scheduler_inputs):
        case.params = case.some_params(number)
        optimizer = case.make()
        kinds_of = case.world.package.optim.lr_scheduler
        sorts = sorts if isinstance(sorts, (list, tuple)) else [sorts]
        several = [in_world(one, kinds_of)(optimizer) for one in sorts]
        for step in range(12):
            case.step(optimizer, step)
            for one in several:
                is_plateau = type(one).__name__ == "ReduceLROnPlateau"
                one.step(1.0) if is_plateau else one.step()
        made.append([seen(case.params), seen([group["lr"] for group in optimizer.param_groups])])
    return made


def in_world(function, kinds_of):
    """A function of the database with the schedulers of a world."""
    scope = {**function.__globals__}
    scope.update({name: getattr(kinds_of, name) for name in kinds_of.__all__ if name in scope})
    return type(function)(function.__code__, scope, None, None, function.__closure__)


SCENARIOS = [
    values,
    structure,
    groups,
    names,
    changed_options,
    loading,
    crossing,
    copies,
    closures,
    gradients,
    without_gradients,
    hooks,
    schedulers,
]


# ---- mistakes ----


def mistakes(info, world):
    """What the database's wrong arguments lead to."""
    kind = getattr(world.package.optim, info.name)
    parameter = world.package.nn.Parameter
    torch.manual_seed(1)

    def given(value):
        if isinstance(value, torch.Tensor):
            made = world.tensor(value.detach())
            made = parameter(made) if isinstance(value, torch.nn.Parameter) else made
            if value.grad is not None:
                made.requires_grad_()
                made.grad = world.tensor(value.grad)
            return known_tensors.setdefault(id(value), made)
        if isinstance(value, dict):
            return {key: given(one) for key, one in value.items()}
        if isinstance(value, (list, tuple, set)):
            return type(value)(given(one) for one in value)
        return value

    made = {}
    for mistake in info.optim_error_inputs_func("cpu", torch.float32):
        known_tensors = {}
        sample = mistake.optimizer_error_input
        tensors = sample.params if isinstance(sample.params, list) else []
        if any(isinstance(one, torch.Tensor) and one.is_complex() for one in tensors):
            continue
        params = sample.params
        if params is None:
            params = [torch.nn.Parameter(torch.randn(2, 3))]

        def run(params=params, sample=sample, mistake=mistake, given=given):
            optimizer = kind(given(params), **given(sample.kwargs))
            if mistake.error_on is OptimizerErrorEnum.STEP_ERROR:
                optimizer.step()
            return "made"

        made[sample.desc] = watched(run)
    return made


# ---- all of it ----


def inputs_of(info):
    """(text, options) of the database, and with the arguments of WAYS."""
    for dtype in DTYPES[:2] if info.name == "LBFGS" else DTYPES:  # which halves lead astray
        samples = info.optim_inputs_func("cpu", getattr(torch, dtype))
        if info.name == "LBFGS":  # the search goes on where there is no end to it
            samples = [one for one in samples if one.desc != "maximize_strong_wolfe"]
        for sample in samples:
            yield dtype, sample.desc, sample.kwargs
        names_of = set(sample_names(info))
        for way in WAYS:
            if not set(way) <= names_of or not set(way) <= {*info.supported_impls, "fused", "lr"}:
                continue
            if "fused" in way and "cpu" not in info.supports_fused_on:
                continue
            options = dict(samples[-1].kwargs)
            options.update(
                {k: torch.tensor(0.01) if one == "tensor" else one for k, one in way.items()}
            )
            yield dtype, f"{samples[-1].desc}, {way}", options


def sample_names(info):
    code = info.optim_cls.__init__.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def compare(info, scenario, dtype, options):
    """What differs in a scenario, or None."""

    def run(world):
        return watched(lambda: scenario(Case(world, info, options, dtype)))

    is_rough = info.name == "Muon"  # products of bfloat16, whose sums are rounded in another order
    TOLERANCE.update({"float64": 2e-3, "float32": 2e-3} if is_rough else EXACT)
    theirs, ours = run(World(torch)), run(World(genesis))
    exact = None
    if dtype in ("float16", "bfloat16"):
        exact = run(World(torch, is_wide=True))
    return difference(theirs, ours, exact)


def known(name, scenario, text):
    for names_of, scenarios, what, why in KNOWN:
        is_named = any(fnmatch.fnmatch(name, one) for one in names_of.split("|"))
        is_named = is_named and (scenarios == "*" or scenario in scenarios.split("|"))
        if is_named and re.search(what, text):
            return why
    return None


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--verbose", action="store_true", help="every difference, not 3 of a kind")
    options = parser.parse_args()
    torch.set_num_threads(1)
    total: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    missing = []

    def say(name, scenario, text, where):
        total["compared"] += 1
        if not text:
            total["same"] += 1
            return
        why = known(name, scenario, text)
        if why is not None:
            reasons[why, name] += 1
            return
        total["different"] += 1
        shown[scenario] += 1
        if options.verbose or shown[scenario] <= 3:
            print(f"{name}, {scenario}: {text[:400]}\n    {where}", flush=True)

    for info in optim_db:
        if not any(fnmatch.fnmatch(info.name, pattern) for pattern in options.patterns):
            continue
        if not hasattr(genesis.optim, info.name):
            missing.append(info.name)
            continue
        shown: Counter[str] = Counter()
        for dtype, text, arguments in inputs_of(info):
            for scenario in SCENARIOS:
                few = (values,) if "differentiable" in arguments else (values, loading, crossing)
                if (dtype != "float32" or len(few) == 1) and scenario not in few:
                    continue
                found = compare(info, scenario, dtype, arguments)
                say(info.name, scenario.__name__, found, f"{dtype}, {text}: {arguments}")
        theirs, ours = mistakes(info, World(torch)), mistakes(info, World(genesis))
        for text in theirs:
            say(info.name, "mistakes", difference(theirs[text], ours[text], None), text)
    for (why, name), count in sorted(reasons.items()):
        print(f"known: {name}: {why} ({count})")
    print(f"no namesake: {' '.join(missing) or 'none'}")
    print(dict(total))
    return int(total["different"] > 0)


if __name__ == "__main__":
    sys.exit(main())
