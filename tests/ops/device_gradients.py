"""Gradients on a GPU, real or simulated, beside those on the CPU, which differences have checked.

    python tests/ops/device_gradients.py [few | all | PART/PARTS] [name ...]

`few`: a sample of each rule, and first gradients; elementwise ones together, since the simulated
GPU takes half a second for a kernel. `all`: every sample in every form and layout, and the
gradients of gradients; 1/4 is a quarter of them.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from gradient_sample import Case, Sample, case_make, cases_of, leaves_of
from gradient_samples import SAMPLES, one_of_each

import genesis
from genesis.autograd import grad

if TYPE_CHECKING:
    from collections.abc import Iterator

NEAR = 1e-9
GROUP = 6  # samples that are computed together


def weighted(results: Any, device: str) -> Any:
    """A sum in which every element of the results that need a gradient counts; None: none does."""
    parts = results if isinstance(results, tuple | list) else (results,)
    total = None
    for one in parts:
        if one.requires_grad and one.numel() > 0:
            weights = (genesis.arange(one.numel(), device=one.device).double() * 0.37 + 0.2).sin()
            part = (one * weights.reshape(one.shape)).sum().to(device)
            total = part if total is None else total + part
    return total


def numbers(results: Any) -> list[list[float]]:
    """Elements, to be compared."""
    parts = results if isinstance(results, tuple | list) else (results,)
    return [[] if one is None else one.detach().reshape(-1).tolist() for one in parts]


def all_of(cases: list[Case], device: str, is_twice: bool) -> list[list[float]]:
    """The results of cases, their gradients, and the gradients of those."""
    results = [case.function(*case.leaves) for case in cases]
    leaves = [one for case in cases for one in case.leaves]
    made = [row for one in results for row in numbers(one)] if is_twice else []
    totals = [total for one in results if (total := weighted(one, device)) is not None]
    if not totals:
        return made
    total = sum(totals[1:], start=totals[0])
    first = grad(total, leaves, create_graph=is_twice, allow_unused=True)
    made += numbers(first)
    if is_twice:
        total = weighted(tuple(one for one in first if one is not None), device)
        if total is not None:
            made += numbers(grad(total, leaves, allow_unused=True))
    return made


def is_near(x: float, y: float) -> bool:
    """Whether two elements are the same, but for the last places."""
    return x == y or (x != x and y != y) or abs(x - y) <= NEAR * max(1, abs(x))


def check(title: str, near: list[list[float]], far: list[list[float]]) -> None:
    """Rows of the CPU and of the GPU."""
    assert len(near) == len(far), title
    for place, (one, other) in enumerate(zip(near, far, strict=True)):
        assert len(one) == len(other), (title, place)
        for i, (x, y) in enumerate(zip(one, other, strict=True)):
            assert is_near(x, y), (title, place, i, x, y)


def compare(what: list[tuple[Sample, str, str]], is_twice: bool) -> None:
    """Samples in a form and a layout, computed together on each device."""
    rows = []
    for device in ("cpu", "cuda"):
        cases = [case_make(sample, form, layout, device) for sample, form, layout in what]
        genesis.manual_seed(1)
        rows.append(all_of(cases, device, is_twice))
    check(", ".join(f"{form} of {sample}, {layout}" for sample, form, layout in what), *rows)


def is_elementwise(sample: Sample) -> bool:
    """Whether a sample can be one kernel with others: its operands have the same shape."""
    shapes = {one.shape for one in leaves_of(sample.arguments)}
    return shapes == {(2, 3)} and sample.call is None and not sample.keywords


def groups(samples: list[Sample]) -> Iterator[list[tuple[Sample, str, str]]]:
    """Samples in their first form, elementwise ones several at a time."""
    together: list[tuple[Sample, str, str]] = []
    for sample in samples:
        one = (sample, *next(cases_of(sample)))
        if not is_elementwise(sample):
            yield [one]
            continue
        together.append(one)
        if len(together) == GROUP:
            yield together
            together = []
    if together:
        yield together


def few(names: list[str]) -> int:
    """A sample of each function."""
    chosen = [one for one in one_of_each() if not names or one.name in names]
    count = 0
    for group in groups(chosen):
        compare(group, is_twice=False)
        count += len(group)
    return count


def every(names: list[str], part: int = 1, parts: int = 1) -> int:
    """All of them, or a part."""
    count = 0
    for sample in SAMPLES[part - 1 :: parts]:
        if names and sample.name not in names:
            continue
        for form, layout in cases_of(sample):
            try:
                compare([(sample, form, layout)], is_twice=True)
            except RuntimeError as error:
                raise AssertionError(f"{form} of {sample}, {layout}") from error
            count += 1
    return count


if __name__ == "__main__":
    mode, *wanted = sys.argv[1:] or ["few"]
    part, _, parts = ("1/1" if mode == "all" else mode).partition("/")
    done = few(wanted) if mode == "few" else every(wanted, int(part), int(parts))
    assert done > 0
    print(f"{done} samples")
