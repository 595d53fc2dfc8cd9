"""Optimizers on a GPU, or on the simulated one: values, capturable steps, scaling, graphs.

python device_optim.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

import optim_cases as cases

import genesis

RECORDED = json.loads((Path(__file__).parents[1] / "python" / "optim_recorded.json").read_text())
NAMES = ["sgd nesterov", "adamw amsgrad", "nadam all", "radam", "rmsprop all", "adagrad all"]
CAPTURABLE = ["adamw amsgrad", "nadam all", "radam", "radam all", "adamax all", "adadelta all"]
CAPTURABLE += ["asgd all", "rprop all"]
wrong = 0


def check(words: str, is_right: bool) -> None:
    """Count and say what is wrong."""
    global wrong
    if not is_right:
        wrong += 1
        print("wrong:", words, flush=True)


def flat(params: list) -> list[float]:
    """All elements."""
    return [x for p in params for x in p.detach().double().cpu().reshape(-1).tolist()]


def is_near(params: list, name: str, tolerance: float) -> bool:
    """Whether PyTorch has the same."""
    right = RECORDED["optimizers"][name]["float32"]
    return all(
        abs(a - b) <= tolerance * max(1, abs(b)) for a, b in zip(flat(params), right, strict=True)
    )


def values() -> None:
    """Of 20 steps. Muon's products are bfloat16 there."""
    for name in NAMES:
        _, params = cases.run(genesis, name, genesis.float32, "cuda")
        check(name, is_near(params, name, 1e-6))
    _, params = cases.run(genesis, "muon", genesis.float32, "cuda")
    check("muon", is_near(params, "muon", 2e-2))
    for name in CAPTURABLE:
        optimizer, params = cases.run(genesis, name, genesis.float32, "cuda", capturable=True)
        check(f"{name}, capturable", is_near(params, name, 1e-6))
        state = optimizer.state[params[0]]
        check(f"{name}: where it counts", state["step"].device.type == "cuda")
        check(f"{name}: how many", state["step"].item() == cases.STEPS)


def loading() -> None:
    """What counts steps goes to one device, wherever a file had it."""
    for kind in ("NAdam", "ASGD"):
        x = genesis.ones(3, device="cuda", requires_grad=True)
        x.grad = genesis.ones(3, device="cuda")
        first = getattr(genesis.optim, kind)([x], lr=0.1)
        first.step()
        for place in ("cpu", "cuda"):
            saved = first.state_dict()
            for name, one in saved["state"][0].items():
                saved["state"][0][name] = one if name == "step" else one.to(place)
            again = getattr(genesis.optim, kind)([x], lr=0.1)
            again.load_state_dict(saved)
            again.step()
            check(f"{kind}: goes on from {place}", again.state[x]["step"].item() == 2)


def scaling() -> None:
    """The device decides whether there is a step."""
    for kind, options in (("AdamW", {"fused": True}), ("SGD", {"momentum": 0.9}), ("Adam", {})):
        x = genesis.tensor([1.0, 2.0], device="cuda", requires_grad=True)
        optimizer = getattr(genesis.optim, kind)([x], **options)
        for found in (1.0, 0.0):
            x.grad = genesis.tensor([512.0, 1024.0], device="cuda")
            optimizer.step(
                grad_scale=genesis.tensor(512.0, device="cuda"),
                found_inf=genesis.tensor(found, device="cuda"),
            )
            check(f"{kind}: found {found}", (x.tolist() == [1, 2]) == (found == 1))
        check(f"{kind}: the gradient", x.grad.tolist() == [1, 2])
        if kind != "SGD":
            check(f"{kind}: steps", optimizer.state[x]["step"].item() == 1)


def longest() -> None:
    """All options at once, with tensors in the place of numbers: the longest programs."""
    kinds = {
        "NAdam": {"capturable": True, "decoupled_weight_decay": True},
        "RAdam": {"capturable": True, "decoupled_weight_decay": True},
        "AdamW": {"capturable": True, "amsgrad": True},
        "RMSprop": {"capturable": True, "centered": True, "momentum": 0.5},
    }
    for kind, options in kinds.items():
        made = []
        for device in ("cpu", "cuda"):
            x = genesis.ones(3, device=device, requires_grad=True)
            x.grad = genesis.full((3,), 8.0, device=device)
            optimizer = getattr(genesis.optim, kind)(
                [x], lr=genesis.tensor(0.125, device=device), maximize=True, **options
            )
            group = optimizer.param_groups[0]
            for name, value in (("eps", 1e-3), ("weight_decay", 0.25), ("momentum_decay", 0.125)):
                if name in group or name == "weight_decay":
                    group[name] = genesis.tensor(value, device=device)
            if "betas" in group:
                group["betas"] = tuple(genesis.tensor(b, device=device) for b in (0.875, 0.96875))
            for _ in range(7):
                optimizer.step(
                    grad_scale=genesis.tensor(1.0, device=device),
                    found_inf=genesis.tensor(0.0, device=device),
                )
            made.append(flat([x]))
        near = all(abs(a - b) < 1e-5 for a, b in zip(*made, strict=True))
        check(f"{kind} with tensors: {made}", near)


def graphs() -> None:
    """A captured step is replayed with another rate, and counts its steps."""
    rate = genesis.tensor(0.5, device="cuda")
    x = genesis.tensor([1.0, -2.0], device="cuda", requires_grad=True)
    y = genesis.tensor([1.0, -2.0], requires_grad=True)
    x.grad = genesis.tensor([0.25, 0.5], device="cuda")
    y.grad = genesis.tensor([0.25, 0.5])
    optimizer = genesis.optim.AdamW([x], lr=rate, capturable=True)
    other = genesis.optim.AdamW([y], lr=0.5)
    optimizer.step()
    other.step()
    graph = genesis.cuda.CUDAGraph()
    with genesis.cuda.graph(graph):
        optimizer.step()
    for lr in (0.5, 0.125):
        rate.fill_(lr)
        other.param_groups[0]["lr"] = lr
        graph.replay()
        other.step()
    near = all(abs(a - b) < 1e-6 for a, b in zip(flat([x]), flat([y]), strict=True))
    check(f"a graph: {flat([x])} and not {flat([y])}", near)
    check("a graph's steps", optimizer.state[x]["step"].item() == 3)
    plain = genesis.optim.Adam([x])
    plain.step()
    try:
        with genesis.cuda.graph(genesis.cuda.CUDAGraph()):
            plain.step()
        check("a step that the host counts was captured", False)
    except RuntimeError as error:
        check(f"words: {error}", "capturable is False" in str(error))


def clipping() -> None:
    """By norm and by value; the norms of both devices."""
    from genesis.nn.utils import clip_grad_norm_, clip_grad_value_

    a = genesis.zeros(2, device="cuda", requires_grad=True)
    b = genesis.zeros(1, requires_grad=True)
    a.grad, b.grad = genesis.tensor([2.0, 3.0], device="cuda"), genesis.tensor([6.0])
    norm = clip_grad_norm_([a, b], 3.5)
    check(f"a norm of two devices: {norm}", norm.item() == 7 and norm.device.type == "cuda")
    check("clipped", abs(b.grad.item() - 3) < 1e-5 and abs(a.grad[0].item() - 1) < 1e-5)
    clip_grad_value_([a, b], 1.25)
    check("by value", b.grad.item() == 1.25 and a.grad[1].item() == 1.25)


def main() -> None:
    """All of it."""
    values()
    loading()
    scaling()
    longest()
    graphs()
    clipping()
    print(f"optimizers: {wrong} wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
