"""Random list programs (genesis/list.h) beside NumPy, bit for bit; and norms of lists.

    python list_programs.py DEVICE FIRST COUNT

A program has random steps, types and shapes: none, one and many elements, views that are not
aligned, transposed tensors, one tensor at two places, entries that cannot be computed together,
numbers that are tensors, places of one element, and `skip`. Values are computed in float32, or in
float64 where an entry has it, so that NumPy gives the same bits.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy

import genesis
from genesis import _C

FLOATS = ["float32", "float32", "bfloat16", "float16", "float64"]
SIZES = [(), (1,), (3,), (0,), (4, 5), (257,), (31, 33), (1000,), (64, 65), (5000,), (70001,)]
UNARY = {
    "negative": numpy.negative,
    "absolute": numpy.abs,
    "square": numpy.square,
    "sqrt": lambda x: numpy.sqrt(numpy.abs(x)),
}
BINARY = {
    "add": numpy.add,
    "subtract": numpy.subtract,
    "multiply": numpy.multiply,
    "divide": numpy.divide,
    "maximum": numpy.maximum,
    "minimum": numpy.minimum,
    "greater": numpy.greater,
    "less_equal": numpy.less_equal,
}
EXACT_NORMS = [float("inf"), -float("inf"), 0.0]
NORMS = [2.0, 1.0, 3.0, 0.5, -1.0, *EXACT_NORMS]


def wide(tensor: Any) -> numpy.ndarray:
    """The elements of a tensor, halves as float32."""
    near = tensor.cpu()
    return near.to(genesis.float32).numpy() if near.dtype is genesis.bfloat16 else near.numpy()


def rounded(values: numpy.ndarray, dtype: Any) -> numpy.ndarray:
    """Values as a type has them."""
    with numpy.errstate(over="ignore"):
        if dtype is not genesis.bfloat16:
            return values.astype(str(dtype).split(".")[-1])
    near = genesis.tensor(numpy.ascontiguousarray(values)).to(dtype).to(genesis.float32).numpy()
    return near.reshape(values.shape)


class Program:
    """Steps, and entries to run them on; `random` decides everything."""

    def __init__(self, seed: int, device: str) -> None:
        self.random = random.Random(seed)
        self.numbers_of = numpy.random.default_rng(seed)
        self.device = device
        self.place_count = self.random.randrange(1, 6)
        self.single = [self.place_count > 1 and self.random.random() < 0.15 for _ in range(8)]
        self.single[self.random.randrange(self.place_count)] = False
        kinds = [self.random.choice(FLOATS) for _ in range(self.place_count)]
        self.entries = [self.entry(kinds) for _ in range(self.random.choice([1, 2, 9, 40]))]
        self.numbers = [self.number() for _ in range(self.random.randrange(4))]
        self.steps_make()
        self.skip = self.random.choice([None, None, None, 0.0, 1.0, float("nan")])

    def fresh(self, *shape: int) -> numpy.ndarray:
        return self.numbers_of.uniform(-2, 2, shape).astype(numpy.float32)

    def tensor(self, shape: tuple[int, ...], kind: str) -> Any:
        """A tensor of a shape: in memory of its own, or a view."""
        dtype, way = getattr(genesis, kind), self.random.random()
        if way < 0.15:  # not aligned to more than an element
            count = int(numpy.prod(shape))
            flat = genesis.tensor(self.fresh(count + 1)).to(dtype).to(self.device)
            return flat[1:].reshape(shape)
        if way < 0.25 and len(shape) == 2:
            made = genesis.tensor(self.fresh(shape[0], 2 * shape[1])).to(dtype).to(self.device)
            return made[:, ::2]
        return genesis.tensor(self.fresh(*shape)).to(dtype).to(self.device)

    def entry(self, kinds: list[str]) -> list[Any]:
        shape = self.random.choice(SIZES)
        if self.random.random() < 0.1:
            kinds = [self.random.choice(FLOATS) for _ in kinds]
        is_transposed = len(shape) == 2 and self.random.random() < 0.2
        made = []
        for place, kind in enumerate(kinds):
            if self.single[place]:
                made.append(self.tensor(self.random.choice([(), (1,)]), kind))
            elif is_transposed:
                made.append(self.tensor(shape[::-1], kind).T)
            else:
                made.append(self.tensor(shape, kind))
        twins = [p for p in range(1, len(kinds)) if not self.single[p] and not self.single[0]]
        if twins and self.random.random() < 0.05:
            made[self.random.choice(twins)] = made[0]
        return made

    def number(self) -> Any:
        value = self.random.uniform(-2, 2)
        if self.random.random() < 0.3:
            kind = self.random.choice(["float32", "float64", "int64"])
            tensor = genesis.tensor(numpy.array(value).astype(kind)).to(self.device)
            return tensor.reshape(1) if self.random.random() < 0.5 else tensor
        return value

    def steps_make(self) -> None:
        known = self.place_count + len(self.numbers)
        tests: set[int] = set()
        self.steps: list[tuple] = []
        for _ in range(self.random.randrange(1, 12)):
            values = [v for v in range(known) if v not in tests]
            chance = self.random.random()
            if chance < 0.2:
                name = self.random.choice(list(UNARY))
                step = (name, self.random.choice(values))
                if name == "sqrt":
                    self.steps.append(("absolute", step[1]))
                    step = (name, known)
                    known += 1
            elif chance < 0.3 and tests:
                step = (
                    "where",
                    self.random.choice(sorted(tests)),
                    *self.random.choices(values, k=2),
                )
            else:
                name = self.random.choice(list(BINARY))
                step = (name, *self.random.choices(values, k=2))
                if name in ("greater", "less_equal"):
                    tests.add(known)
            self.steps.append(step)
            known += 1
        places = [p for p in range(self.place_count) if not self.single[p]]
        self.random.shuffle(places)
        self.stores = [
            (self.random.randrange(self.place_count, known), p)
            for p in places[: self.random.randrange(1, len(places) + 1)]
        ]

    # ---- the reference ----

    def expected(self, entry: list[Any]) -> list[numpy.ndarray]:
        """What an entry's tensors become."""
        is_double = any(
            t.dtype is genesis.float64 for p, t in enumerate(entry) if not self.single[p]
        )
        computing = numpy.float64 if is_double else numpy.float32
        values = [wide(t).reshape(()) if self.single[p] else wide(t) for p, t in enumerate(entry)]
        values += [wide(n).reshape(()) if not isinstance(n, float) else n for n in self.numbers]
        scalar = [self.single[p] for p in range(self.place_count)] + [True] * len(self.numbers)
        for name, *operands in self.steps:
            is_scalar = all(scalar[i] for i in operands)
            kind = numpy.float64 if is_scalar else computing
            taken = [
                numpy.asarray(values[i]).astype(numpy.bool_ if name == "where" and k == 0 else kind)
                for k, i in enumerate(operands)
            ]
            with numpy.errstate(all="ignore"):
                call = numpy.where if name == "where" else UNARY.get(name) or BINARY[name]
                values.append(numpy.asarray(call(*taken)))
            scalar.append(is_scalar)
        made = [wide(t) for t in entry]
        is_skipped = self.skip is not None and self.skip != 0
        for value, place in [] if is_skipped else self.stores:
            shape = made[place].shape
            whole = numpy.broadcast_to(numpy.asarray(values[value]), shape)
            if whole.dtype == numpy.bool_:
                whole = whole.astype(computing)
            made[place] = rounded(whole, entry[place].dtype)
        return made

    def check(self) -> str | None:
        """What is wrong; None: nothing."""
        wanted = [self.expected(entry) for entry in self.entries]
        places = tuple(tuple(e[p] for e in self.entries) for p in range(self.place_count))
        skip = self.skip if self.skip is None else genesis.tensor([self.skip], device=self.device)
        singles = sum(1 << p for p in range(self.place_count) if self.single[p])
        try:
            _C._list_elementwise(
                places, tuple(self.steps), tuple(self.stores), tuple(self.numbers), skip, singles
            )
        except ValueError as error:  # both places of one tensor are written to
            return None if "share memory" in str(error) and self.is_shared() else str(error)
        for e, (entry, right) in enumerate(zip(self.entries, wanted, strict=True)):
            for p, (tensor, array) in enumerate(zip(entry, right, strict=True)):
                twin = [q for q, other in enumerate(entry) if other is tensor]
                written = [q for q in twin if q in [place for _, place in self.stores]]
                array = right[written[0]] if written else array
                if not numpy.array_equal(wide(tensor), array, equal_nan=True):
                    return f"entry {e}, place {p} of {[t.dtype for t in entry]}: {tensor.shape}"
        return None

    def is_shared(self) -> bool:
        written = [place for _, place in self.stores]
        return any(len({id(entry[p]) for p in written}) < len(written) for entry in self.entries)


def norms_check(seed: int, device: str) -> str | None:
    """Norms of each tensor and of all, beside NumPy in float64."""
    program = Program(seed, device)
    tensors = tuple(t for entry in program.entries for t in entry)
    order = program.random.choice(NORMS)
    arrays = [wide(t).astype(numpy.float64).ravel() for t in tensors]
    if order == -float("inf"):
        kept = [i for i, a in enumerate(arrays) if a.size]
        tensors, arrays = tuple(tensors[i] for i in kept), [arrays[i] for i in kept]
    with numpy.errstate(divide="ignore"):
        each = [numpy.linalg.norm(a, order) if a.size else 0.0 for a in arrays]
        joined = numpy.concatenate(arrays) if arrays else numpy.zeros(0)
        whole = numpy.linalg.norm(joined, order) if joined.size else 0.0
    if order < 0 and order != -float("inf") and any(a.size == 0 for a in arrays):
        return None  # a power of no sum: infinite
    made = wide(_C._list_norm(tensors, order, False))
    total = wide(_C._list_norm(tensors, order, True))
    tolerance = 1e-12 if any(t.dtype is genesis.float64 for t in tensors) else 1e-6
    for got, want in ((made, numpy.array(each)), (total, numpy.array(whole))):
        if not numpy.allclose(got, want, rtol=tolerance, atol=0):
            return f"norm {order}: {got} and not {want}"
    again = wide(_C._list_norm(tensors, order, True))
    return None if again.tobytes() == total.tobytes() else f"norm {order} has other bits again"


def main() -> None:
    """Run programs; what is wrong is printed."""
    device, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    wrong = 0
    for seed in range(first, first + count):
        program = Program(seed, device)
        found = program.check() or norms_check(seed, device)
        if found is not None:
            wrong += 1
            print(f"seed {seed}: {found}\n{program.steps} {program.stores} {program.numbers}")
            print(f"single {program.single}, skip {program.skip}\n", flush=True)
            if wrong == 5:
                break
    print(f"{count} programs, {wrong} wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
