"""Prints which functions have a gradient that is checked, and which have none and why.

python tests/ops/gradient_list.py

It ends with status 1 if there is a function that has neither.
"""

from __future__ import annotations

import importlib
import sys
import types

from gradient_none import OWN, reasons
from gradient_samples import covered

import genesis

# Modules of functions beside genesis itself.
SPACES = ("nn.functional", "linalg")


def space_names() -> list[str]:
    """The functions of these modules."""
    made = []
    for space in SPACES:
        module = importlib.import_module(f"genesis.{space}")
        made += [
            f"genesis.{space}.{name}"
            for name in sorted(module.__all__)
            if getattr(module, name) is not getattr(genesis, name, None)
        ]
    return made


def names() -> list[str]:
    """Every public function, and everything that a tensor has."""
    functions = {
        name
        for name in {*genesis.__all__, *vars(genesis)}
        if not name.startswith("_")
        and callable(getattr(genesis, name))
        and not isinstance(getattr(genesis, name), type | types.ModuleType)
    }
    made = [f"genesis.{name}" for name in sorted(functions)]
    made += space_names()
    return made + [f"Tensor.{name}" for name in sorted(dir(genesis.Tensor))]


def missing() -> list[str]:
    """Those that have neither samples nor a reason."""
    known = {*covered(), *reasons(), *OWN.split()}
    return [name for name in names() if name not in known]


def lines() -> list[str]:
    """A line for each."""
    samples, none = covered(), reasons()
    made = []
    for name in names():
        if name in samples:
            made.append(f"{name}: {samples[name]} sample{'s' if samples[name] > 1 else ''}")
        elif name in OWN.split():
            made.append(f"{name}: a test of its own")
        else:
            made.append(f"{name}: {'none: ' + none[name] if name in none else 'MISSING'}")
    return made


if __name__ == "__main__":
    print("\n".join(lines()))
    sys.exit(1 if missing() else 0)
