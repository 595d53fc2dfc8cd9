"""Which kernels operations become, what broke a fusion and why, and the bytes that each moves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from genesis import _C

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["explain"]

# What is said of a value that rounding or converting makes: of no interest to who reads a kernel.
_QUIET = {"convert", "round"}


class Memory(NamedTuple):
    """Elements that a kernel reads or writes; `nbytes` counts each element once."""

    address: int
    nbytes: int
    dtype: str
    shape: tuple[int, ...]
    is_written: bool


class Work(NamedTuple):
    """One thing that was submitted.

    `kind` is ``"elementwise"``, ``"rows"`` (reductions of rows, with the operations around them),
    ``"at once"`` (few elements), ``"resting"`` (nothing runs) or the name of another operation.
    `operations` are those that became one; `why` says why it ran then. `resting` values, of
    `resting_bytes`, were not stored: the backward pass computes them again.
    """

    kind: str
    operations: list[str]
    why: str | None
    device: str
    shape: tuple[int, ...]
    memory: list[Memory]
    resting: int
    resting_bytes: int
    launches: list[str]
    steps: list[dict[str, Any]]
    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]

    @property
    def bytes_read(self) -> int:
        """The bytes of all that is read."""
        return sum(one.nbytes for one in self.memory if not one.is_written)

    @property
    def bytes_written(self) -> int:
        """The bytes of all that is written."""
        return sum(one.nbytes for one in self.memory if one.is_written)


def _work_of(found: dict[str, Any]) -> Work:
    steps = found.get("steps", [])
    return Work(
        found["kind"],
        [step["op"] for step in steps if step["op"] not in _QUIET] or [found["kind"]],
        found["why"],
        found["device"],
        tuple(found["shape"]),
        [
            Memory(
                one["address"], one["bytes"], one["dtype"], tuple(one["shape"]), one["is_written"]
            )
            for one in found["memory"]
        ],
        found["resting"],
        found["resting_bytes"],
        found["launches"],
        steps,
        found.get("inputs", []),
        found.get("outputs", []),
    )


def _size(nbytes: int) -> str:
    for unit in ("bytes", "KB", "MB"):
        if nbytes < 1000:
            return f"{nbytes:.4g} {unit}"
        nbytes /= 1000  # type: ignore[assignment]
    return f"{nbytes:.4g} GB"


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "1 element"


def _values(one: Work) -> str:
    return f"{one.resting} value{'' if one.resting == 1 else 's'} of {_size(one.resting_bytes)}"


class Explanation:
    """What a function became.

    Attributes
    ----------
    works : list
        In the order in which they were submitted: each has ``kind``, ``operations``, ``why``,
        ``device``, ``shape``, ``memory``, ``bytes_read``, ``bytes_written``, ``resting``,
        ``resting_bytes`` and ``launches``.
    result :
        What the function returned.
    """

    def __init__(self, works: list[Work], result: Any) -> None:
        self.works, self.result = works, result

    @property
    def bytes_moved(self) -> int:
        """The bytes that all of it reads and writes."""
        return sum(one.bytes_read + one.bytes_written for one in self.works)

    def __repr__(self) -> str:
        return f"<Explanation: {self._count()}, {_size(self.bytes_moved)} moved>"

    def _count(self) -> str:
        count = sum(one.kind != "resting" for one in self.works)
        return f"{count} kernel{'' if count == 1 else 's'}"

    def __str__(self) -> str:
        """A paragraph for each work."""
        lines = []
        for place, one in enumerate(self.works, 1):
            lines.append(f"{place:3}. {self._title(one)}")
            if one.kind != "resting":
                lines.append(
                    f"     reads {_size(one.bytes_read)}, writes {_size(one.bytes_written)}"
                    f" on {one.device}{self._names(one)}"
                )
            lines.append(f"     why: {self._why(place - 1)}")
            if one.resting and one.kind != "resting":
                lines.append(
                    f"     not stored: {_values(one)}, computed again in the backward pass"
                )
        lines.append(f"{self._count()}, {_size(self.bytes_moved)} moved")
        return "\n".join(lines)

    @staticmethod
    def _title(one: Work) -> str:
        if one.kind == "product":
            rows, columns, inner = one.shape
            return f"product ({rows} x {inner}) @ ({inner} x {columns})"
        if one.kind == "resting":
            return f"not stored: {_values(one)}, computed again in the backward pass"
        if not one.steps:
            return f"{one.kind} of {_shape(one.shape)}"
        words = ", ".join(one.operations)
        kind = "" if one.kind in one.operations else f"{one.kind}: "
        own = f" into {one.kind}" if not kind and one.operations[-1] != one.kind else ""
        return f"{kind}{words}{own} of {_shape(one.shape)}"

    @staticmethod
    def _names(one: Work) -> str:
        return f" ({', '.join(one.launches)})" if one.launches else ""

    def _why(self, place: int) -> str:
        """The reason, with the work that asked for the bytes, which was submitted next."""
        one = self.works[place]
        if one.kind == "at once":
            return "few elements are computed at once"
        if one.why is None:
            return "it is submitted when it is called"
        behind = self.works[place + 1] if place + 1 < len(self.works) else None
        if one.why == "its bytes are needed" and behind is not None and behind.why is None:
            return f"its bytes are needed, by {behind.kind} ({place + 2})"
        return one.why

    def to_graphviz(self) -> str:
        """Draw the works, with their steps, and the memory between them: Graphviz text."""
        lines = ["digraph {", "  rankdir=TB; node [shape=box];"]
        made: dict[int, str] = {}  # addresses, and the node that wrote there last
        for place, one in enumerate(self.works):
            lines += self._draw(place, one, made)
        return "\n".join([*lines, "}"])

    def _draw(self, place: int, one: Work, made: dict[int, str]) -> list[str]:
        """A box with the steps, and the memory around it, which may be there already."""
        shown, memory = [], {}
        for number, part in enumerate(one.memory):
            if part.is_written or part.address not in made:
                memory[number] = f"m{place}_{number}"
                label = f"{part.dtype} {_shape(part.shape)}\\n{_size(part.nbytes)}"
                shown.append(f'  {memory[number]} [label="{label}", shape=ellipse];')
            else:
                memory[number] = made[part.address]
        box = [f'    label="{place + 1}. {one.kind} of {_shape(one.shape)}";']
        edges = []
        if one.inputs and one.outputs:
            values = [memory.get(given.get("memory")) for given in one.inputs]
            for number, step in enumerate(one.steps):
                own = f"w{place}_{number}"
                numbers = [
                    f"{one.inputs[value]['number']:g}"
                    for value in step["in"]
                    if values[value] is None
                ]
                label = " ".join([step["op"], *numbers]) + f"\\n{step['dtype']}"
                style = ", style=filled" if step["is_row"] else ""
                box.append(f'    {own} [label="{label}"{style}];')
                edges += [f"  {values[value]} -> {own};" for value in step["in"] if values[value]]
                values.append(own)
            for output in one.outputs:
                made_by = values[output["value"]]
                if one.kind not in ("elementwise", "rows"):  # it takes the value, and is last
                    box.append(f'    w{place} [label="{one.kind}"];')
                    edges.append(f"  {made_by} -> w{place};")
                    made_by = f"w{place}"
                if made_by:
                    edges.append(f"  {made_by} -> {memory[output['memory']]};")
        else:
            own = f"w{place}"
            label = "\\n".join(one.operations)
            box.append(f'    {own} [label="{label}"];')
            for number, part in enumerate(one.memory):
                ends = (own, memory[number]) if part.is_written else (memory[number], own)
                edges.append("  {} -> {};".format(*ends))
        made.update({part.address: memory[number] for number, part in enumerate(one.memory)})
        return [*shown, f"  subgraph cluster_{place} {{", *box, "  }", *edges]

    def save(self, path: str) -> None:
        """Write the picture: Graphviz text, or SVG or PNG where ``dot`` is installed."""
        from genesis.autograd.graph import _write

        _write(self.to_graphviz(), path)


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """Call a function, and print which kernels its operations became, and why.

    Elementwise operations wait, and those that are computed together are one kernel, with the
    reductions of rows among them. What is printed says for each kernel which operations it is made
    of, the bytes that it reads and writes, and why it ran then: what broke the fusion.

    Parameters
    ----------
    function : callable
        It is called once. What it leaves pending is computed at its end.
    *args, **kwargs :
        Its arguments.

    Returns
    -------
    Explanation
        ``works``, ``result``, ``bytes_moved``, ``to_graphviz()`` and ``save(path)``.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.ones(1000, 1000)
    >>> found = genesis.explain(lambda x: (x * 2).exp().sum(), x)
      1. sum: multiply, exp of 1000 x 1000
         reads 4 MB, writes 4 bytes on cpu
         why: it is submitted when it is called
    1 kernel, 4 MB moved
    >>> found.works[0].operations
    ['multiply', 'exp']
    """
    _C.flush()  # what waits already is not the function's
    _C._explain_begin()
    try:
        result = function(*args, **kwargs)
        _C.flush()
    except BaseException:
        _C._explain_end()
        raise
    explanation = Explanation([_work_of(one) for one in json.loads(_C._explain_end())], result)
    print(explanation)  # noqa: T201
    return explanation
