"""What the scenarios of programs_suite.py have in common: their table, and how values are shown."""

from __future__ import annotations

import dataclasses
from collections import deque, namedtuple

import numpy as np

SCENARIOS = {}


def scenario(function):
    """A function of a world: what it gives is compared, line by line."""
    SCENARIOS[function.__name__] = function
    return function


Pair = namedtuple("Pair", ["first", "second"])


@dataclasses.dataclass
class Record:
    x: object


def shown(value):
    """The value, with the names of containers' classes."""
    if isinstance(value, dict):
        made = {key: shown(one) for key, one in value.items()}
        return {"class": type(value).__name__, "items": made}
    if isinstance(value, (list, tuple, deque)):
        return [type(value).__name__, *map(shown, value)]
    if isinstance(value, np.ndarray):
        return f"array {value.dtype} {value.tolist()}"
    return type(value).__name__ if type(value) in (object, Record) else value
