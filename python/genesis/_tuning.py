"""What was found out about the speed of kernels by measuring them."""

from __future__ import annotations

from typing import NamedTuple

from genesis import _C


class TuningCandidate(NamedTuple):
    """One way to launch a kernel, and how long that took."""

    values: dict[str, int | str]
    """What was chosen between, such as ``{"threads": 512, "blocks": 3}``."""
    milliseconds: float | None
    """The shortest of several runs; None if it could not be run, or there was no time left."""


class TuningChoice(NamedTuple):
    """One class of problems: what was measured for it, and which way is taken."""

    kernel: str
    """What was tuned, such as ``"softmax"``."""
    problem: str
    """The class: the type of the elements, and what is common to the shapes."""
    device: str
    """What it is valid for: the device, the driver and this library."""
    chosen: TuningCandidate
    """What is used."""
    candidates: tuple[TuningCandidate, ...]
    """All that were measured. The first is what is used where nothing is."""

    def __str__(self) -> str:
        lines = [f"{self.kernel}, {self.problem} ({self.device})"]
        for one in self.candidates:
            time = "          -" if one.milliseconds is None else f"{one.milliseconds:8.4f} ms"
            values = " ".join(f"{name}={value}" for name, value in one.values.items())
            lines.append(f"  {'*' if one is self.chosen else ' '} {time}  {values}")
        return "\n".join(lines)


def _candidate(text: str, milliseconds: float) -> TuningCandidate:
    values: dict[str, int | str] = {}
    for item in text.split():
        name, value = item.split("=")
        values[name] = int(value) if value.lstrip("-").isdigit() else value
    return TuningCandidate(values, milliseconds if milliseconds >= 0 else None)


def tuning_choices() -> list[TuningChoice]:
    """List what tuning has found, in this process and in the cache on disk, with all timings.

    :func:`clear_kernel_cache` forgets it.

    Examples
    --------
    >>> import genesis
    >>> for choice in genesis.cuda.tuning_choices():
    ...     assert choice.chosen in choice.candidates
    """
    found = []
    for kernel, problem, device, chosen, candidates in _C.tuning_list():
        made = tuple(_candidate(*one) for one in candidates)
        found.append(TuningChoice(kernel, problem, device, made[chosen], made))
    return sorted(found, key=lambda one: (one.kernel, one.problem, one.device))
