"""Random row programs: the same bits fused and unfused, and close to the CPU on a GPU.

    python row_programs.py DEVICE FIRST COUNT [small]

A program is Python text: elementwise operations on full, row and column values, reductions of rows,
sums of columns, conversions; some programs have gradients. It runs with fusion and without it, and
all results must have the same bits. On a GPU it runs on the CPU as well: integers must be equal,
others close, in units of the least exact type that the program has. `small` leaves long rows out.
What fails is printed as text that can be run.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy

import genesis

WIDTHS = [2, 3, 31, 32, 33, 64, 100, 255, 1000, 1023, 1024, 1025, 2049, 4096, 5000]
LONG_WIDTHS = [12288, 50257, 200_003]
ODD_WIDTHS = [0, 1]
ELEMENTS_MOST, LONG_ELEMENTS_MOST = 1 << 16, 1 << 19
FLOATS = ["float32", "float32", "bfloat16", "float16", "float64"]
INTEGERS = ["int32", "int64", "uint8"]
ROUNDING = {"float64": 2.0**-50, "float32": 2.0**-21, "float16": 2.0**-10, "bfloat16": 2.0**-7}

UNARY = ["tanh", "sigmoid", "relu", "sin", "cos", "abs", "square", "neg", "gelu", "silu"]
TAME = {"tanh": 1, "sigmoid": 1, "sin": 1, "cos": 1}  # the largest value that they give


class Value:
    """A name, how it spreads over rows, its type, and about the largest number in it."""

    def __init__(self, name: str, kind: str, dtype: str, bound: float) -> None:
        self.name, self.kind, self.dtype, self.bound = name, kind, dtype, bound


class Program:
    """The text of a program, and what it needs to run."""

    def __init__(self, seed: int, is_small: bool) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.lines: list[str] = []
        self.values: list[Value] = []
        self.is_integer = self.random.random() < 0.15
        self.has_gradients = not self.is_integer and self.random.random() < 0.35
        self.types = INTEGERS if self.is_integer else FLOATS
        self.shape_choose(is_small)
        self.body_make()

    # ---- shapes and inputs ----

    def shape_choose(self, is_small: bool) -> None:
        chance, most = self.random.random(), ELEMENTS_MOST
        widths = WIDTHS
        if chance < 0.04:
            widths = ODD_WIDTHS
        elif chance < 0.12 and not is_small:
            widths, most = LONG_WIDTHS, LONG_ELEMENTS_MOST
        elif is_small:
            widths, most = [w for w in WIDTHS if w <= 1025], 6000
        width = self.random.choice(widths)
        rows = max(
            1, min(self.random.choice([1, 2, 3, 7, 16, 33, 129, 700]), most // max(width, 1))
        )
        self.row_ndim = 1
        columns, outer = [width], [rows]
        if self.random.random() < 0.2 and width % 4 == 0:
            columns, self.row_ndim = [4, width // 4], 2
        if self.random.random() < 0.3 and rows % 3 == 0:
            outer = [3, rows // 3]
        self.outer, self.columns = outer, columns
        self.dims = tuple(range(-self.row_ndim, 0))

    def shape_of(self, kind: str) -> list[int]:
        ones = [1] * self.row_ndim
        return {
            "full": self.outer + self.columns,
            "row": self.outer + ones,
            "column": self.columns,
        }[kind]

    def input_make(self, kind: str) -> None:
        dtype = self.random.choice(self.types)
        shape = self.shape_of(kind)
        layout = self.random.random() if kind == "full" else 1.0
        name = f"v{len(self.values)}"
        made = f"new({shape}, '{dtype}')"
        if layout < 0.12:  # each second element of longer rows
            made = f"new({[*shape[:-1], 2 * shape[-1]]}, '{dtype}')[..., ::2]"
        elif layout < 0.2:  # rows with gaps
            made = f"new({[*shape[:-1], shape[-1] + 3]}, '{dtype}')[..., 1 : 1 + {shape[-1]}]"
        elif layout < 0.26:
            made = f"new({shape[::-1]}, '{dtype}').permute({list(range(len(shape)))[::-1]})"
        elif layout < 0.32:
            made = f"new({[1, *shape[1:]]}, '{dtype}').expand({shape})"
        if self.has_gradients and self.random.random() < 0.7:
            made = f"leaf({made})"
        self.lines.append(f"{name} = {made}")
        self.values.append(Value(name, kind, dtype, 9 if self.is_integer else 1))

    # ---- operations ----

    def pick(self, kinds: tuple[str, ...]) -> Value:
        """One of the values of some kinds: later ones more often."""
        fitting = [v for v in self.values if v.kind in kinds]
        return fitting[min(int(self.random.random() ** 0.5 * len(fitting)), len(fitting) - 1)]

    def add(self, text: str, kind: str, dtype: str, bound: float) -> Value:
        name = f"v{len(self.values)}"
        self.lines.append(f"{name} = {text}")
        made = Value(name, kind, dtype, bound)
        self.values.append(made)
        if bound > 6 and not self.is_integer:  # so that halves stay in range
            return self.add(f"{name}.tanh()", kind, dtype, 1)
        return made

    def unary(self) -> None:
        x = self.pick(("full", "row", "column"))
        if self.is_integer:
            name = self.random.choice(["abs", "neg", "square"])
            if x.dtype == "uint8" and name != "square":
                name = "square"
        else:
            name = self.random.choice(UNARY)
        bound = TAME.get(name, x.bound * x.bound if name == "square" else x.bound)
        self.add(f"{x.name}.{name}()", x.kind, x.dtype, bound)

    def number(self) -> None:
        x = self.pick(("full", "row", "column"))
        if self.is_integer:
            text = self.random.choice(["{} + 3", "{} * 2", "5 - {}", "{}.clamp(2, 7)"])
        else:
            text = self.random.choice(
                ["{} + 0.5", "{} * 0.75", "1.5 - {}", "{} / 3.0", "{}.clamp(-0.7, 0.8)"]
                + ["({} * 0.25).exp()", "({}.abs() + 0.1).rsqrt()", "({}.abs() + 0.5).log()"]
            )
        bound = 4 if "exp" in text or "rsqrt" in text or "log" in text else x.bound * 2 + 2
        self.add(text.format(x.name), x.kind, x.dtype, bound)

    def binary(self) -> None:
        x, y = self.pick(("full", "row")), self.pick(("full", "row", "column"))
        if self.random.random() < 0.5:
            x, y = y, x
        kinds = {x.kind, y.kind}
        kind = x.kind if len(kinds) == 1 else "full"
        dtype = joined(x.dtype, y.dtype)
        texts = ["{} + {}", "{} - {}", "{} * {}", "genesis.maximum({}, {})"]
        if not self.is_integer:
            texts += ["{} / ({}.abs() + 0.5)", "genesis.where({} > 0.25, {}, 0.5)"]
        if dtype != x.dtype and dtype != y.dtype:
            texts = texts[:3]
        text = self.random.choice(texts)
        if "where" in text:  # on the CPU and a GPU alike: an input that nothing was done with
            first = next(v for v in self.values if v.kind in ("full", "column"))
            kind = "full" if "full" in (first.kind, y.kind) or first.kind != y.kind else y.kind
            self.add(text.format(first.name, y.name), kind, y.dtype, y.bound)
            return
        bound = (
            x.bound * y.bound
            if " * " in text
            else 2 * x.bound
            if "/" in text
            else x.bound + y.bound
        )
        self.add(text.format(x.name, y.name), kind, dtype, bound)

    def convert(self) -> None:
        x = self.pick(("full", "row"))
        dtype = self.random.choice(self.types)
        self.add(f"{x.name}.to(genesis.{dtype})", x.kind, dtype, x.bound)

    def reduce(self) -> None:
        x = self.pick(("full", "full", "row"))
        if x.kind == "row":
            x = self.pick(("full",))
        name = self.random.choice(["sum", "sum", "mean", "amax", "amin"])
        if self.is_integer:
            name = self.random.choice(["sum", "amax", "amin", "any"])
        width = int(numpy.prod(self.columns))
        if width == 0 and name != "sum":
            name = "sum"
        dtype = x.dtype
        if self.is_integer and name == "sum":
            dtype = "int64"
        text = f"{x.name}.{name}({self.dims}, keepdim=True)"
        if name == "any":
            text = f"({x.name} > 4).sum({self.dims}, keepdim=True)"
            dtype = "int64"
        if name == "sum" and not self.is_integer:
            scaled = f"({x.name} * {1 / max(width, 1)!r})"
            text = f"{scaled}.sum({self.dims}, keepdim=True)"
        self.add(text, "row", dtype, x.bound)

    def columns_sum(self) -> None:
        x = self.pick(("full",))
        rows = int(numpy.prod(self.outer))
        dims = tuple(range(len(self.outer)))
        scale = "" if self.is_integer else f" * {1 / rows!r}"
        dtype = "int64" if self.is_integer else x.dtype
        self.add(f"({x.name}{scale}).sum({dims})", "column", dtype, x.bound)

    def norm(self) -> None:
        x = self.pick(("full",))
        if self.is_integer or int(numpy.prod(self.columns)) == 0:
            return self.reduce()
        rows = f"{self.dims}, keepdim=True"
        apart = self.add(f"{x.name} - {x.name}.mean({rows})", "full", x.dtype, 2).name
        text = f"{apart} * (({apart} * {apart}).mean({rows}) + 0.1).rsqrt()"
        self.add(text, "full", x.dtype, 4)
        return None

    def softmax(self) -> None:
        x = self.pick(("full",))
        if self.is_integer or int(numpy.prod(self.columns)) == 0:
            return self.reduce()
        rows = f"{self.dims}, keepdim=True"
        powers = self.add(f"({x.name} - {x.name}.amax({rows})).exp()", "full", x.dtype, 1).name
        self.add(f"{powers} / {powers}.sum({rows})", "full", x.dtype, 1)
        return None

    def write(self) -> None:
        """Something is written in place, into a value that is no leaf."""
        x = self.pick(("full",))
        if self.has_gradients or "expand" in self.text:
            return self.unary()
        self.lines.append(f"{x.name}.mul_({'2' if self.is_integer else '0.9'})")
        return None

    def body_make(self) -> None:
        for kind in ["full"] * self.random.choice([1, 2, 3]) + ["row", "column"]:
            self.input_make(kind)
        inputs = len(self.values)
        steps = [self.unary, self.number, self.binary, self.binary, self.reduce, self.reduce]
        steps += [self.convert, self.columns_sum, self.norm, self.softmax]
        if self.random.random() < 0.2:
            steps.append(self.write)
        for _ in range(self.random.randrange(4, 16)):
            self.random.choice(steps)()
        made = [v for v in self.values[inputs:] if self.random.random() < 0.5]
        if self.values[-1] not in made:
            made.append(self.values[-1])
        gone = [v.name for v in self.values[inputs:] if v not in made]
        gone += [v.name for v in self.values[:inputs] if self.random.random() < 0.6]
        if self.has_gradients:
            self.lines.append(f"losses = [{', '.join(v.name for v in made)}]")
        if gone and self.random.random() < 0.8:
            self.lines.append(f"del {', '.join(gone)}")
        if self.has_gradients:
            self.lines.append("backward(losses)")
        self.lines.append(f"results = [{', '.join(v.name for v in made)}]")
        self.tolerance = max(
            (ROUNDING[v.dtype] for v in self.values if v.dtype in ROUNDING), default=0.0
        )

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    # ---- running ----

    def run(self, device: str) -> list[Any]:
        """The results, and gradients, as arrays."""
        numbers = numpy.random.default_rng(self.seed)
        leaves: list[Any] = []

        def new(shape: list[int], dtype: str) -> Any:
            if dtype.startswith("float") or dtype == "bfloat16":
                values = numbers.uniform(-1, 1, shape).astype(numpy.float32)
            else:
                values = numbers.integers(0, 9, shape).astype(dtype)
            return genesis.tensor(values).to(getattr(genesis, dtype)).to(device)

        def leaf(tensor: Any) -> Any:
            leaves.append(tensor.detach().requires_grad_())
            return leaves[-1]

        def backward(results: list[Any]) -> None:
            total = None
            for result in results:
                if result.requires_grad:
                    one = (result * result).mean().to(genesis.float32)
                    total = one if total is None else total + one
            if total is not None and total.numel():
                total.backward()

        names = {"genesis": genesis, "new": new, "leaf": leaf, "backward": backward}
        exec(compile(self.text, f"<program {self.seed}>", "exec"), names)
        made = [r.detach() for r in names["results"]]
        made += [x.grad for x in leaves if x.grad is not None]
        if self.random.random() < 0.5:
            genesis.flush()
        return [(str(x.dtype), bits(x)) for x in made]


def joined(one: str, other: str) -> str:
    """The type of an operation on two types."""
    return str(genesis.promote_types(getattr(genesis, one), getattr(genesis, other))).split(".")[-1]


def bits(x: Any) -> numpy.ndarray:
    """The elements as the least type of NumPy's that has them all."""
    near = x.cpu()
    return near.to(genesis.float32).numpy() if near.dtype is genesis.bfloat16 else near.numpy()


def same_bits(one: numpy.ndarray, other: numpy.ndarray) -> bool:
    if one.dtype.kind != "f":
        return numpy.array_equal(one, other)
    whole = {2: "u2", 4: "u4", 8: "u8"}[one.dtype.itemsize]
    equal = one.view(whole) == other.view(whole)
    return bool((equal | (numpy.isnan(one) & numpy.isnan(other))).all())


def is_close(one: numpy.ndarray, other: numpy.ndarray, tolerance: float) -> bool:
    if one.dtype.kind != "f":
        return numpy.array_equal(one, other)
    near, far = one.astype(numpy.float64), other.astype(numpy.float64)
    both = numpy.isfinite(near) & numpy.isfinite(far)
    scale = numpy.abs(near[both]).max(initial=0.01)
    apart = numpy.abs(near - far)[both].max(initial=0.0)
    return (
        numpy.array_equal(numpy.isnan(near), numpy.isnan(far)) and apart <= tolerance * 64 * scale
    )


def check(seed: int, device: str, is_small: bool) -> str | None:
    """What is wrong with a program; None: nothing."""
    program = Program(seed, is_small)
    genesis.set_fusion(True)
    fused = program.run(device)
    genesis.set_fusion(False)
    unfused = program.run(device)
    genesis.set_fusion(True)
    for i, (one, other) in enumerate(zip(fused, unfused, strict=True)):
        if one[0] != other[0] or one[1].shape != other[1].shape or not same_bits(one[1], other[1]):
            return f"result {i} differs without fusion\n{program.text}"
    if device == "cpu":
        return None
    near = program.run("cpu")
    for i, (one, other) in enumerate(zip(fused, near, strict=True)):
        if not is_close(other[1], one[1], program.tolerance):
            return f"result {i} differs on the CPU\n{program.text}"
    return None


def main() -> None:
    device, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    wrong = 0
    for seed in range(first, first + count):
        found = check(seed, device, "small" in sys.argv[4:])
        if found is not None:
            wrong += 1
            print(f"seed {seed}: {found}\n", flush=True)
            if wrong == 10:
                break
    refused = genesis.cuda.get_kernel_fusion_failures()
    print(f"{count} programs, {wrong} wrong, {refused} refused")
    sys.exit(wrong > 0 or refused > 0)


if __name__ == "__main__":
    main()
