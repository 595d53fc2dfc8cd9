"""A small network learns a function by gradient steps.

    python examples/demo.py [PAGE]

Runs on the first GPU, or on the CPU where there is none; on the simulated GPU, which computes one
element after the other, with a smaller network and fewer steps. The result is checked: the network
must come close to the function. What happened to the memory is printed, its timeline written to
PAGE.
"""

import argparse
import math
import sys
import time
from typing import NamedTuple

import genesis
from genesis import memory_profiler


class Plan(NamedTuple):
    """How much is computed, and how fast it learns."""

    samples: int
    hidden: int
    steps: int
    rate: float


USUAL = Plan(samples=4096, hidden=64, steps=2000, rate=0.05)
SIMULATED = Plan(samples=256, hidden=32, steps=150, rate=0.15)


def progress(step: int, steps: int, loss: float) -> None:
    """Draw the bar, on a terminal again and again."""
    done = 30 * step // steps
    end = "\n" if step == steps else ""
    if sys.stdout.isatty() or step == steps:
        print(
            f"\r[{'#' * done}{'.' * (30 - done)}] step {step:4}, loss {loss:.5f}",
            end=end,
            flush=True,
        )


def train(device: str, plan: Plan) -> float:
    """Fit sin(3 x) on [-1, 1]; gives the largest error on points it has not seen."""
    genesis.manual_seed(1)
    hidden = plan.hidden
    x = genesis.rand(plan.samples, 1, device=device) * 2 - 1
    target = (3 * x).sin()
    w1, b1 = genesis.randn(1, hidden, device=device) * 2, genesis.randn(hidden, device=device)
    w2, b2 = genesis.randn(hidden, 1, device=device) * 0.1, genesis.zeros(1, device=device)

    weights = [weight.requires_grad_() for weight in (w1, b1, w2, b2)]
    speeds = [genesis.zeros_like(weight) for weight in weights]

    for step in range(1, plan.steps + 1):
        rate = plan.rate * (1 + math.cos(math.pi * step / plan.steps)) / 2
        with memory_profiler.annotate("forward"):
            error = (x @ w1 + b1).tanh() @ w2 + b2 - target
            loss = (error * error).mean()
        with memory_profiler.annotate("backward"):
            loss.backward()
        with memory_profiler.annotate("update"), genesis.no_grad():
            for weight, speed in zip(weights, speeds, strict=True):
                speed *= 0.9
                speed -= rate * weight.grad
                weight += speed
                weight.grad = None
        if step % 50 == 0:
            progress(step, plan.steps, loss.item())

    with genesis.no_grad():
        fresh = genesis.linspace(-1, 1, 1001, device=device).reshape(-1, 1)
        guess = (fresh @ w1 + b1).tanh() @ w2 + b2
        return (guess - (3 * fresh).sin()).abs().max().item()


def main() -> None:
    """Train, check, and show the memory."""
    parser = argparse.ArgumentParser(description="A small network learns a function.")
    parser.add_argument("page", nargs="?", help="a file for the timeline of its memory, as HTML")
    page = parser.parse_args().page
    device = "cuda" if genesis.cuda.is_available() else "cpu"
    name = genesis.cuda.get_device_properties(genesis.device(device)).name
    plan = SIMULATED if name == "Genesis simulated GPU" else USUAL
    print(f"genesis {genesis.__version__} on {name}")
    begin = time.perf_counter()
    with memory_profiler.record():
        worst = train(device, plan)
        genesis.flush()
    took = time.perf_counter() - begin
    print(f"{plan.steps} steps in {took:.2f} s; the largest error is {worst:.4f}")
    if not worst < 0.1:  # also where it is not a number
        sys.exit("the network did not learn the function")
    print(genesis.cuda.memory_summary(genesis.device(device), abbreviated=True))
    if page is not None:
        memory_profiler.get_timeline().to_html(page)
        print(f"the timeline of its memory is in {page}")


if __name__ == "__main__":
    main()
