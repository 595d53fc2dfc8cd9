"""Learning rate schedulers with random arguments, in PyTorch and in Genesis.

    python tests/ops/schedulers_suite.py [--cases N] [--seed N]

Makes N random schedulers: of every kind of PyTorch's, also chained, one after the other, and in
each other, for optimizers with one to three groups, with rates that are numbers or tensors. Each
is run for 60 steps in both. Rates, momenta, states, warnings and errors are compared. In the
middle the state goes on in another scheduler, and in one of the other package. PyTorch (tested with
2.15) must be installed, which the test environment has not. The exit status says whether all
differences are KNOWN.
"""

from __future__ import annotations

import argparse
import copy
import pickle
import random
import re
import sys
from collections import Counter

import torch
from optimizers_suite import World, converted, difference, plain, seen, watched

import genesis

STEPS = 60

# Differences that are meant: what is in the text, and why.
KNOWN = [("cannot be converted to type float without overflow", "a rate beyond float32")]


class Factor:
    """A function that is an object, whose attributes are saved."""

    def __init__(self, base):
        self.base = base

    def __call__(self, epoch):
        return self.base**epoch


def halved(epoch):
    return 1 / (1 + 0.1 * epoch)


def falling(x):
    return 1 / (1 + x)


# ---- random arguments ----


def simple_recipe(chance, groups):
    """A kind, its arguments, and its options."""

    def each(make):
        return [make() for _ in range(groups)] if chance.random() < 0.4 else make()

    def function():
        return chance.choice([Factor(chance.uniform(0.8, 1.1)), halved])

    kinds = {
        "LambdaLR": lambda: {"lr_lambda": each(function)},
        "MultiplicativeLR": lambda: {"lr_lambda": each(function)},
        "StepLR": lambda: {"step_size": chance.randint(1, 20), "gamma": chance.uniform(0.1, 1.2)},
        "MultiStepLR": lambda: {
            "milestones": [chance.randint(0, 50) for _ in range(chance.randint(0, 5))],
            "gamma": chance.uniform(0.1, 1),
        },
        "ConstantLR": lambda: {
            "factor": chance.choice([1.0, chance.uniform(0.1, 1)]),
            "total_iters": chance.randint(0, 30),
        },
        "LinearLR": lambda: {
            "start_factor": chance.uniform(0.1, 1),
            "end_factor": chance.uniform(0, 1),
            "total_iters": chance.randint(1, 40),
        },
        "ExponentialLR": lambda: {"gamma": chance.uniform(0.7, 1.05)},
        "PolynomialLR": lambda: {
            "total_iters": chance.randint(1, 70),
            "power": chance.choice([0.0, 1.0, 2, chance.uniform(0.2, 3)]),
        },
        "CosineAnnealingLR": lambda: {
            "T_max": chance.randint(1, 70),
            "eta_min": chance.choice([0.0, chance.uniform(0, 0.1)]),
        },
        "CosineAnnealingWarmRestarts": lambda: {
            "T_0": chance.randint(1, 20),
            "T_mult": chance.randint(1, 3),
            "eta_min": chance.choice([0, 0.01]),
        },
        "CyclicLR": lambda: {
            "base_lr": each(lambda: chance.uniform(0, 0.1)),
            "max_lr": each(lambda: chance.uniform(0.1, 1)),
            "step_size_up": chance.randint(1, 10),
            "step_size_down": chance.choice([None, chance.randint(1, 10)]),
            "mode": chance.choice(["triangular", "triangular2", "exp_range"]),
            "gamma": chance.uniform(0.8, 1),
            "scale_fn": chance.choice([None, None, falling, Factor(0.9)]),
            "scale_mode": chance.choice(["cycle", "iterations"]),
            "cycle_momentum": chance.random() < 0.7,
            "base_momentum": each(lambda: chance.uniform(0.5, 0.8)),
        },
        "OneCycleLR": lambda: {
            "max_lr": each(lambda: chance.uniform(0.1, 1)),
            **chance.choice(
                [{"total_steps": chance.randint(3, 70)}, {"epochs": 8, "steps_per_epoch": 8}]
            ),
            "pct_start": chance.uniform(0.1, 0.6),
            "anneal_strategy": chance.choice(["cos", "linear"]),
            "cycle_momentum": chance.random() < 0.7,
            "div_factor": chance.uniform(2, 30),
            "final_div_factor": chance.uniform(2, 1e4),
            "three_phase": chance.random() < 0.4,
        },
        "SWALR": lambda: {
            "swa_lr": each(lambda: chance.uniform(0.001, 0.5)),
            "anneal_epochs": chance.randint(0, 30),
            "anneal_strategy": chance.choice(["cos", "linear"]),
        },
        "ReduceLROnPlateau": lambda: {
            "mode": chance.choice(["min", "max"]),
            "factor": chance.uniform(0.1, 0.9),
            "patience": chance.randint(0, 5),
            "threshold": chance.choice([1e-4, 0.1]),
            "threshold_mode": chance.choice(["rel", "abs"]),
            "cooldown": chance.randint(0, 3),
            "min_lr": each(lambda: chance.uniform(0, 0.01)),
            "eps": chance.choice([1e-8, 1e-3]),
        },
    }
    kind = chance.choice(list(kinds))
    return kind, kinds[kind]()


def recipe_of(chance, groups, depth=0):
    roll = chance.random()
    if depth == 2 or roll < 0.6:
        kind, options = simple_recipe(chance, groups)
        if depth and kind == "ReduceLROnPlateau" and chance.random() < 0.9:
            return "ExponentialLR", {"gamma": 0.9}
        return kind, options
    inner = [recipe_of(chance, groups, depth + 1) for _ in range(chance.randint(1, 3))]
    if roll < 0.75:
        return "ChainedScheduler", inner
    marks = sorted(chance.sample(range(1, 50), len(inner) - 1))
    return "SequentialLR", inner, marks


class Case:
    """Choices that both worlds have in common."""

    def __init__(self, seed):
        chance = random.Random(seed)
        self.seed = seed
        self.rates = [chance.uniform(0.01, 1) for _ in range(chance.randint(1, 3))]
        self.kind = chance.choice(["SGD", "SGD", "Adam", "Adagrad"])
        self.is_tensor = chance.random() < 0.2
        self.recipe = recipe_of(chance, len(self.rates))
        self.middle = chance.randint(1, STEPS - 5)
        self.has_epochs = chance.random() < 0.2
        self.is_early = chance.random() < 0.2
        self.overridden = chance.random() < 0.1
        self.epochs = [chance.randint(0, 50) for _ in range(STEPS)]
        self.metrics = [chance.choice([1.0, chance.uniform(0, 2)]) for _ in range(STEPS)]

    def __repr__(self):
        return f"seed {self.seed}: {self.kind}{self.rates} {self.recipe}"

    def optimizer(self, world):
        package = world.package
        groups = []
        for i, rate in enumerate(self.rates):
            lr = package.tensor(rate, dtype=package.float64) if self.is_tensor else rate
            groups.append({"params": [package.ones(i + 1, requires_grad=True)], "lr": lr})
        options = {"momentum": 0.9} if self.kind == "SGD" else {}
        return getattr(package.optim, self.kind)(groups, lr=0.1, **options)

    def scheduler(self, world, optimizer, recipe=None):
        recipe = copy.deepcopy(recipe or self.recipe)
        kinds = world.package.optim.lr_scheduler
        if recipe[0] == "ChainedScheduler":
            several = [self.scheduler(world, optimizer, one) for one in recipe[1]]
            return kinds.ChainedScheduler(several)
        if recipe[0] == "SequentialLR":
            several = [self.scheduler(world, optimizer, one) for one in recipe[1]]
            return kinds.SequentialLR(optimizer, several, milestones=list(recipe[2]))
        kinds = world.package.optim.swa_utils if recipe[0] == "SWALR" else kinds
        return getattr(kinds, recipe[0])(optimizer, **recipe[1])


# ---- what is seen of it ----


def rates_of(optimizer):
    wanted = ("lr", "momentum", "betas", "initial_lr", "max_lr", "min_lr", "swa_lr")
    return [
        {key: seen(group[key]) for key in wanted if key in group}
        for group in optimizer.param_groups
    ]


def state_of(scheduler):
    made = seen(scheduler.state_dict())
    return simplified(made)


def simplified(value):
    if isinstance(value, dict):
        return {key: simplified(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, list):
        return [simplified(one) for one in value]
    return plain(repr(value)) if callable(value) else value


def step(case, scheduler, number):
    if type(scheduler).__name__ == "ReduceLROnPlateau":
        return scheduler.step(case.metrics[number])
    if case.has_epochs and case.recipe[0] not in ("ChainedScheduler", "SequentialLR"):
        return scheduler.step(case.epochs[number])
    return scheduler.step()


def run(case, world):
    """All that is seen in 60 steps."""
    optimizer = case.optimizer(world)
    for group in optimizer.param_groups:
        for param in group["params"]:
            param.grad = world.package.ones_like(param)
    made = {"defaults": seen(optimizer.defaults)}
    scheduler = case.scheduler(world, optimizer)
    made["begin"] = {"rates": rates_of(optimizer), "state": state_of(scheduler)}
    if case.overridden:
        original = optimizer.step
        optimizer.step = lambda *given: original(*given)
    rows = made["rows"] = []
    for number in range(STEPS):
        if number == case.middle:
            saved = converted(optimizer.state_dict(), world), copy.deepcopy(scheduler.state_dict())
        if not (case.is_early and number == 0):
            optimizer.step()
        told = watched(lambda number=number: step(case, scheduler, number))
        row = {"told": told, "rates": rates_of(optimizer), "last": seen(scheduler.get_last_lr())}
        rows.append(
            {**row, "epoch": scheduler.last_epoch if hasattr(scheduler, "last_epoch") else None}
        )
        if "error" in told:
            return made
    made["end"] = state_of(scheduler)
    made["outside"] = watched(scheduler.get_lr)
    other = case.optimizer(world)
    again = case.scheduler(world, other)
    other.load_state_dict(saved[0])
    again.load_state_dict(saved[1])
    for number in range(case.middle, STEPS):
        other.step()
        watched(lambda number=number: step(case, again, number))
    made["resumed"] = {"rates": rates_of(other), "state": state_of(again)}
    return made


def crossed(case, world, source):
    """The state of one world's scheduler goes on in another's."""
    first = case.optimizer(source)
    scheduler = case.scheduler(source, first)
    for number in range(case.middle):
        first.step()
        step(case, scheduler, number)
    optimizer = case.optimizer(world)
    other = case.scheduler(world, optimizer)
    optimizer.load_state_dict(converted(first.state_dict(), world))
    other.load_state_dict(converted(scheduler.state_dict(), world))
    for number in range(case.middle, STEPS):
        optimizer.step()
        step(case, other, number)
    return {"rates": rates_of(optimizer), "last": seen(other.get_last_lr())}


def pickled(case, world):
    optimizer = case.optimizer(world)
    scheduler = case.scheduler(world, optimizer)
    made = []
    for one in (copy.deepcopy(scheduler), pickle.loads(pickle.dumps(scheduler))):
        for number in range(10):
            one.optimizer.step()
            step(case, one, number)
        made.append([rates_of(one.optimizer), one.optimizer is optimizer])
    return made


# A step that was replaced is noticed by PyTorch alone; the other text names no version of PyTorch.
NOT_SAID = "`optimizer.step()` has been overridden"
SHORTER = "Detected call of `lr_scheduler.step()` before `optimizer.step()`."


def unsaid(value):
    """What was seen without the warnings that are meant to differ."""
    if isinstance(value, dict):
        return {key: unsaid(one) for key, one in value.items()}
    if isinstance(value, list):
        kept = [one for one in value if not (is_warning(one) and NOT_SAID in one[-1])]
        return [
            one[:-1] + [SHORTER] if is_warning(one) and SHORTER in one[-1] else unsaid(one)
            for one in kept
        ]
    return value


def is_warning(value):
    return isinstance(value, list) and "UserWarning" in value[:2] and isinstance(value[-1], str)


def compare(case):
    theirs, ours = World(torch), World(genesis)
    made = [unsaid(watched(lambda world=world: run(case, world))) for world in (theirs, ours)]
    found = difference(*made, None)
    if found or "error" in made[0]:
        return found
    made = [unsaid(watched(lambda world=world: pickled(case, world))) for world in (theirs, ours)]
    found = difference(*made, None)
    if found:
        return f"pickled: {found}"
    right = watched(lambda: crossed(case, theirs, theirs))
    for world, source in ((theirs, ours), (ours, theirs)):
        got = watched(lambda world=world, source=source: crossed(case, world, source))
        found = difference({**right, "warnings": []}, {**got, "warnings": []}, None)
        if found:
            return f"crossed to {world.package.__name__}: {found}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    total: Counter[str] = Counter()
    for seed in range(options.seed, options.seed + options.cases):
        case = Case(seed)
        found = compare(case)
        why = next((why for what, why in KNOWN if found and re.search(what, found)), None)
        kind = "same" if not found else f"known: {why}" if why else "different"
        total[kind] += 1
        if kind == "different" and total[kind] <= 20:
            print(f"{found[:500]}\n    {case}", flush=True)
    print(dict(total))
    return int(total["different"] > 0)


if __name__ == "__main__":
    sys.exit(main())
