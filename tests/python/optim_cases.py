"""The optimizers and schedulers whose results are compared with PyTorch's, for both sides.

record_optim.py runs them with PyTorch and writes optim_recorded.json; test_optim.py and
test_lr_scheduler.py run them with Genesis. ``package`` is one or the other.
"""

from __future__ import annotations

import random
from typing import Any

STEPS = 20
SHAPES = [(2, 3), (4,), ()]
MATRICES = [(4, 3), (3, 5)]
LATE = 3  # the last parameter has no gradient in the first steps

# A name, the arguments, and whether parameters are matrices.
OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("SGD", {"lr": 0.1}),
    "sgd momentum": ("SGD", {"lr": 0.1, "momentum": 0.9}),
    "sgd dampening": (
        "SGD",
        {"lr": 0.1, "momentum": 0.8, "dampening": 0.3, "weight_decay": 0.05, "maximize": True},
    ),
    "sgd nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    "adam": ("Adam", {"lr": 0.05}),
    "adam all": (
        "Adam",
        {
            "lr": 0.05,
            "betas": (0.8, 0.95),
            "eps": 1e-3,
            "weight_decay": 0.1,
            "amsgrad": True,
            "maximize": True,
        },
    ),
    "adam decoupled": (
        "Adam",
        {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True},
    ),
    "adamw": ("AdamW", {"lr": 0.05}),
    "adamw amsgrad": ("AdamW", {"lr": 0.05, "weight_decay": 0.2, "amsgrad": True}),
    "nadam": ("NAdam", {"lr": 0.05}),
    "nadam all": (
        "NAdam",
        {"lr": 0.05, "betas": (0.8, 0.95), "weight_decay": 0.1, "momentum_decay": 0.1},
    ),
    "nadam decoupled": (
        "NAdam",
        {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True},
    ),
    "radam": ("RAdam", {"lr": 0.05}),
    "radam all": ("RAdam", {"lr": 0.05, "betas": (0.8, 0.9), "weight_decay": 0.1, "eps": 1e-2}),
    "radam decoupled": (
        "RAdam",
        {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True},
    ),
    "adamax": ("Adamax", {"lr": 0.05}),
    "adamax all": (
        "Adamax",
        {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-2, "weight_decay": 0.1, "maximize": True},
    ),
    "rmsprop": ("RMSprop", {"lr": 0.01}),
    "rmsprop momentum": ("RMSprop", {"lr": 0.01, "momentum": 0.5, "weight_decay": 0.1}),
    "rmsprop centered": ("RMSprop", {"lr": 0.01, "alpha": 0.9, "centered": True, "eps": 1e-2}),
    "rmsprop all": (
        "RMSprop",
        {"lr": 0.01, "alpha": 0.9, "centered": True, "momentum": 0.3, "maximize": True},
    ),
    "adagrad": ("Adagrad", {"lr": 0.1}),
    "adagrad all": (
        "Adagrad",
        {
            "lr": 0.1,
            "lr_decay": 0.1,
            "weight_decay": 0.1,
            "initial_accumulator_value": 0.5,
            "eps": 1e-3,
            "maximize": True,
        },
    ),
    "adadelta": ("Adadelta", {}),
    "adadelta all": (
        "Adadelta",
        {"lr": 0.5, "rho": 0.8, "eps": 1e-3, "weight_decay": 0.1, "maximize": True},
    ),
    "asgd": ("ASGD", {"lr": 0.1}),
    "asgd all": (
        "ASGD",
        {"lr": 0.1, "lambd": 0.2, "alpha": 0.5, "t0": 4, "weight_decay": 0.1, "maximize": True},
    ),
    "rprop": ("Rprop", {"lr": 0.05}),
    "rprop all": (
        "Rprop",
        {"lr": 0.05, "etas": (0.4, 1.5), "step_sizes": (0.04, 0.2), "maximize": True},
    ),
    "adafactor": ("Adafactor", {"lr": 0.05}),
    "adafactor all": (
        "Adafactor",
        {"lr": 0.05, "d": 1.5, "weight_decay": 0.1, "eps": (1e-4, 1e-2), "maximize": True},
    ),
    "muon": ("Muon", {"lr": 0.05}),
    "muon adamw": ("Muon", {"lr": 0.05, "nesterov": False, "adjust_lr_fn": "match_rms_adamw"}),
    "muon spectral": (
        "Muon",
        {
            "lr": 0.05,
            "momentum": 0.8,
            "weight_decay": 0.0,
            "adjust_lr_fn": "spectral_unclamped",
            "ns_steps": 3,
        },
    ),
}


def numbers(shape: tuple[int, ...], seed: str) -> Any:
    """Numbers in a shape, as lists; they are bfloat16s."""
    source = random.Random(seed)
    if not shape:
        return round(source.uniform(-2, 2) * 64) / 64
    return [numbers(shape[1:], f"{seed}-{i}") for i in range(shape[0])]


def run(
    package: Any, name: str, dtype: Any, device: str = "cpu", after: Any = None, **more: Any
) -> tuple[Any, list[Any]]:
    """An optimizer after its steps, and the parameters. `after` is called after each step."""
    kind, options = OPTIMIZERS[name]
    shapes = MATRICES if kind == "Muon" else SHAPES
    params = [
        package.tensor(
            numbers(shape, f"weight {i}"), dtype=dtype, device=device, requires_grad=True
        )
        for i, shape in enumerate(shapes)
    ]
    optimizer = getattr(package.optim, kind)(params, **options, **more)
    for step in range(STEPS):
        optimizer.zero_grad()
        for i, (param, shape) in enumerate(zip(params, shapes, strict=True)):
            if i + 1 < len(shapes) or step >= LATE:
                given = numbers(shape, f"gradient {i} {step}")
                param.grad = package.tensor(given, dtype=dtype, device=device)
        optimizer.step()
        if after is not None:
            after(optimizer)
    return optimizer, params


# ---- schedulers ----

EPOCHS = 50


def schedulers(package: Any) -> dict[str, Any]:
    """Functions that make a scheduler of an optimizer."""
    kinds = package.optim.lr_scheduler
    return {
        "lambda": lambda o: kinds.LambdaLR(o, [lambda e: 0.95**e, lambda e: 1 / (e + 1)]),
        "multiplicative": lambda o: kinds.MultiplicativeLR(o, lambda e: 1 - 0.5 / (e + 1)),
        "step": lambda o: kinds.StepLR(o, 7, 0.3),
        "multistep": lambda o: kinds.MultiStepLR(o, [3, 3, 10, 40], 0.5),
        "constant": lambda o: kinds.ConstantLR(o, 0.3, 9),
        "linear": lambda o: kinds.LinearLR(o, 0.1, 0.7, 20),
        "exponential": lambda o: kinds.ExponentialLR(o, 0.93),
        "polynomial": lambda o: kinds.PolynomialLR(o, 30, 1.7),
        "cosine": lambda o: kinds.CosineAnnealingLR(o, 12, 0.01),
        "restarts": lambda o: kinds.CosineAnnealingWarmRestarts(o, 5, 2, 0.01),
        "restarts alike": lambda o: kinds.CosineAnnealingWarmRestarts(o, 7),
        "cyclic": lambda o: kinds.CyclicLR(o, 0.01, [0.2, 0.4], 6, 9),
        "cyclic 2": lambda o: kinds.CyclicLR(o, 0.01, 0.4, 4, mode="triangular2"),
        "cyclic range": lambda o: kinds.CyclicLR(o, 0.01, 0.4, 4, mode="exp_range", gamma=0.97),
        "cyclic function": lambda o: kinds.CyclicLR(
            o, 0.01, 0.4, 4, scale_fn=lambda x: 1 / (1 + x), scale_mode="iterations"
        ),
        "onecycle": lambda o: kinds.OneCycleLR(o, 0.3, total_steps=60),
        "onecycle three": lambda o: kinds.OneCycleLR(
            o, [0.3, 0.5], epochs=6, steps_per_epoch=10, three_phase=True, anneal_strategy="linear"
        ),
        "sequential": lambda o: kinds.SequentialLR(
            o,
            [
                kinds.ConstantLR(o, 0.1, 5),
                kinds.ExponentialLR(o, 0.9),
                kinds.CosineAnnealingLR(o, 9),
            ],
            [6, 20],
        ),
        "chained": lambda o: kinds.ChainedScheduler(
            [kinds.ConstantLR(o, 0.1, 5), kinds.ExponentialLR(o, 0.95), kinds.StepLR(o, 9)]
        ),
        "swa": lambda o: package.optim.swa_utils.SWALR(o, [0.05, 0.3], 12),
        "swa linear": lambda o: package.optim.swa_utils.SWALR(o, 0.05, 5, "linear"),
    }


PLATEAUS: dict[str, dict[str, Any]] = {
    "plateau": {"factor": 0.5, "patience": 2, "cooldown": 1, "min_lr": [0.001, 0.002]},
    "plateau max": {"mode": "max", "threshold_mode": "abs", "patience": 1, "threshold": 0.05},
    "plateau abs": {"threshold_mode": "abs", "patience": 3, "factor": 0.2, "eps": 1e-3},
    "plateau rel max": {"mode": "max", "patience": 2, "threshold": 0.1},
}


def metric(epoch: int) -> float:
    """What a scheduler for plateaus looks at."""
    return 1 / (1 + epoch) if epoch < 10 else 0.1 + 0.05 * ((epoch * 7) % 5)


def groups(package: Any) -> Any:
    """An optimizer with two groups."""
    a = package.ones(1, requires_grad=True)
    b = package.ones(1, requires_grad=True)
    return package.optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.2}], lr=0.1, momentum=0.9)


def rates(optimizer: Any, scheduler: Any, step: Any) -> list[list[float]]:
    """Rates and momenta of both groups over the epochs."""
    made = []
    for epoch in range(EPOCHS):
        made.append([float(g[k]) for g in optimizer.param_groups for k in ("lr", "momentum")])
        optimizer.step()
        step(scheduler, epoch)
    return made


def all_rates(package: Any) -> dict[str, list[list[float]]]:
    """The rates of all schedulers."""
    made = {}
    for name, make in schedulers(package).items():
        optimizer = groups(package)
        made[name] = rates(optimizer, make(optimizer), lambda one, _: one.step())
    for name, options in PLATEAUS.items():
        optimizer = groups(package)
        one = package.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        made[name] = rates(optimizer, one, lambda one, epoch: one.step(metric(epoch)))
    return made


# ---- losses of L-BFGS ----

LBFGS: dict[str, dict[str, Any]] = {
    "plain": {"lr": 0.1, "max_iter": 10},
    "wolfe": {"line_search_fn": "strong_wolfe"},
    "wolfe short": {"line_search_fn": "strong_wolfe", "history_size": 3, "max_iter": 5},
}


def lbfgs_losses(package: Any, name: str) -> list[float]:
    """The losses of some steps on Rosenbrock's function in four dimensions, in float64."""
    x = package.tensor([-1.2, 1.0, 0.5, 2.0], dtype=package.float64, requires_grad=True)
    optimizer = package.optim.LBFGS([x], **LBFGS[name])

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (10 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
        loss.backward()
        return loss

    return [float(optimizer.step(closure)) for _ in range(6)]
