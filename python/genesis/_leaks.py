"""Memory that nobody gives back: which blocks, where they were allocated, and what holds them.

While debugging is on, every allocation remembers its stack. A check compares what is alive with
what was alive before, and looks for the Python objects that own blocks: those that only a reference
cycle keeps alive are named as such, and those that a view keeps alive, too.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from genesis import _C, _memory, _sites, memory_profiler
from genesis._memory import counted, format_size
from genesis._recording import Frame

PYTHON_FRAMES = 16
C_FRAMES = 16
ALL_FRAMES = (PYTHON_FRAMES, C_FRAMES)

# What identifies an allocation: its manager, its address, and its number there.
_Key = tuple[int, int, int]


class Leak(NamedTuple):
    """A block that is still alive.

    Attributes
    ----------
    size : int
        Bytes, as they were asked for.
    location : str
        ``"file:line (function)"`` of whoever allocated it.
    address : int
    stack : tuple of Frame
        Innermost first: ``name``, ``filename`` and ``line``.
    age : float or None
        Seconds since the allocation; None where that is not known.
    device : str
    held_by : str
        What keeps it alive, as far as that is known: ``"a reference cycle (Node)"``, ``"a view in
        a list"``, ``"the variable weights of __main__"``, ``"a __main__.Model"``, ``"the gradient
        of ExpBackward0, step (train.py:7)"``.
    """

    size: int
    location: str
    address: int
    stack: tuple[Frame, ...] = ()
    age: float | None = None
    device: str = ""
    held_by: str = ""


class Leaks(list[Leak]):
    """The blocks that a check has found, the largest first; ``summary()`` groups them by site.

    Examples
    --------
    >>> from genesis._leaks import Leaks
    >>> Leaks().summary()
    'no leaks'
    """

    def summary(self) -> str:
        """The leaks as text for people, those of one place together."""
        if not self:
            return "no leaks"
        groups: dict[tuple[Any, ...], list[Leak]] = {}
        for leak in self:
            groups.setdefault((leak.device, leak.stack, leak.held_by), []).append(leak)
        total = sum(leak.size for leak in self)
        lines = [f"{counted(len(self), 'block')} leaked, {format_size(total)}:"]
        for group in sorted(groups.values(), key=lambda one: -sum(leak.size for leak in one)):
            lines += _group_lines(group)
        if not all(leak.location for leak in self):
            lines.append("places are known from genesis.enable_memory_debugging() on")
        return "\n".join(lines)


def _group_lines(group: list[Leak]) -> list[str]:
    first = group[0]
    ages = [leak.age for leak in group if leak.age is not None]
    line = f"  {format_size(sum(leak.size for leak in group))} in {counted(len(group), 'block')}"
    line += f" on {first.device}, allocated at {first.location or 'a place that is not known'}"
    lines = [line]
    if ages:
        oldest, newest = max(ages), min(ages)
        spread = f"{newest:.3g} to {oldest:.3g}" if oldest > newest else f"{oldest:.3g}"
        lines.append(f"    {spread} seconds ago; the first at {first.address:#x}")
    if first.held_by:
        lines.append(f"    held by {first.held_by}")
    lines += [f"      {frame}" for frame in first.stack]
    return lines


# ---- what is alive ------------------------------------------------------------------------------


def _living() -> dict[_Key, tuple[_C.MemoryManager, dict[str, Any]]]:
    """Every living block of every manager that was used."""
    return {
        (manager.number, block["address"], block["number"]): (manager, block)
        for manager in _memory.used_managers()
        for block in manager.blocks()
        if block["state"] == "live"
    }


def _owners_in(objects: Iterable[Any]) -> dict[int, tuple[str, Any]]:
    """Blocks that Python objects own: the address, whether a view is between, and the holder."""
    found: dict[int, tuple[str, Any]] = {}
    for one in objects:
        if type(one) is memoryview:
            owner = _owner_of_view(one)
            if owner is not None:
                found.setdefault(owner._place, ("view", None))
            continue
        for place, kind in _blocks_of(gc.get_referents(one)):
            if kind == "view" or place not in found:
                found[place] = (kind, one)
    return found


def _blocks_of(objects: Iterable[Any]) -> Iterator[tuple[int, str]]:
    """The blocks among some objects, directly, through a view, or in what is not tracked."""
    for one in objects:
        kind = type(one)
        if kind is _C.MemoryBlock or isinstance(one, _C.Tensor):
            yield one._place, "object"
        elif kind is memoryview:
            owner = _owner_of_view(one)
            if owner is not None:
                yield owner._place, "view"
        elif kind in (dict, tuple) and not gc.is_tracked(one):
            # The collector does not know of these as long as they hold nothing that it tracks.
            yield from _blocks_of(gc.get_referents(one))


def _owner_of_view(view: memoryview) -> _C.MemoryBlock | None:
    try:
        owner = view.obj
    except ValueError:  # released
        return None
    return owner if type(owner) is _C.MemoryBlock else None


def _cycles() -> dict[int, str]:
    """Blocks that only reference cycles keep alive; they stay as they are."""
    flags = gc.get_debug()
    kept = gc.garbage[:]
    gc.garbage.clear()
    try:
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        garbage = gc.garbage[:]
    finally:
        gc.set_debug(flags)
        gc.garbage[:] = kept
    known = {id(one): one for one in garbage}
    return {
        place: f"a reference cycle ({_cycle_names(holder, known)})"
        for place, (_, holder) in _owners_in(garbage).items()
    }


def _cycle_names(holder: Any, garbage: dict[int, Any]) -> str:
    """The types along the shortest way from an object back to itself; or just its own."""
    ways: dict[int, tuple[Any, Any]] = {}  # an object, and the one before it
    queue = deque([holder])
    while queue:
        one = queue.popleft()
        for referred in gc.get_referents(one):
            if referred is holder:
                names = [type(holder).__qualname__]
                while one is not holder:
                    names.append(type(one).__qualname__)
                    one = ways[id(one)][1]
                return _cycle_text([names[0], *reversed(names[1:])])
            if id(referred) in garbage and id(referred) not in ways:
                ways[id(referred)] = (referred, one)
                queue.append(referred)
    return type(holder).__qualname__


def _cycle_text(names: list[str]) -> str:
    """A cycle is the same wherever it begins."""
    if len(names) == 1:
        return names[0]
    names = min(names[i:] + names[:i] for i in range(len(names)))
    return " -> ".join([*names, names[0]])


def _holders() -> dict[int, str]:
    """Blocks that reachable Python objects own, and what refers to these."""
    holders = {}
    modules = {id(vars(one)): name for name, one in sys.modules.items() if hasattr(one, "__dict__")}
    for place, (kind, one) in _owners_in(gc.get_objects()).items():
        what = "" if one is None else _holder_name(one, place, modules)
        if kind == "view":
            what = f"a view in {what}" if what else "a view (memoryview)"
        holders[place] = what
    return holders


def _graphs() -> dict[int, str]:
    """Blocks of values that graphs have saved for gradients."""
    return {
        address: f"the gradient of {node.name()}" + (f", {node.location}" if node.location else "")
        for node in _C._listed_nodes()
        for _, _, address, _ in node._saved()
    }


def _holder_name(one: Any, place: int, modules: dict[int, str]) -> str:
    """What people call an object that refers to a block, or to a view of it."""
    if type(one) is not dict:
        name, module = type(one).__qualname__, type(one).__module__
        return f"a {name}" if module == "builtins" else f"a {module}.{name}"
    for key, value in one.items():
        if any(found == place for found, _ in _blocks_of([value])):
            if id(one) in modules:
                return f"the variable {key} of {modules[id(one)]}"
            return f"a dict, under {key!r}"
    return "a dict"


# ---- checking -----------------------------------------------------------------------------------

_before: dict[_Key, Any] | None = None  # what was alive when debugging was enabled
_is_reported_at_exit = False
_is_traced = False  # GENESIS_DEBUG=trace, which holds to the end


def enable(enabled: bool = True, report_at_exit: bool = False, stacks: str = "python") -> None:
    """See genesis.enable_memory_debugging()."""
    global _before
    frames = {"python": (PYTHON_FRAMES, 0), "all": ALL_FRAMES}
    if stacks not in frames:
        raise ValueError(f"stacks is 'python' or 'all', not {stacks!r}")
    if enabled:
        _before = dict.fromkeys(_living())
        memory_profiler.want_stacks(ALL_FRAMES if _is_traced else frames[stacks])
    else:
        _before = None
        memory_profiler.want_stacks(ALL_FRAMES if _is_traced else None)
    _set_report_at_exit(_is_traced or (enabled and report_at_exit))


def _set_report_at_exit(is_wanted: bool) -> None:
    global _is_reported_at_exit
    if is_wanted and not _is_reported_at_exit:
        atexit.register(_report_at_exit, os.getpid())
    elif not is_wanted:
        atexit.unregister(_report_at_exit)
    _is_reported_at_exit = is_wanted


def check(before: dict[_Key, Any] | None = None) -> Leaks:
    """See genesis.check_memory_leaks()."""
    known = before if before is not None else _before
    cycles = _cycles()
    holders = _holders()
    living = _living()
    graphs = _graphs()
    new = [key for key in living if known is None or key not in known]
    _sites.resolve({living[key][1]["site"] for key in new})
    leaks = Leaks()
    for key in new:
        manager, block = living[key]
        place = block["address"]
        leaks.append(
            _leak(manager, block, cycles.get(place) or holders.get(place) or graphs.get(place, ""))
        )
    leaks.sort(key=lambda leak: (-leak.size, leak.address))
    return leaks


def _leak(manager: _C.MemoryManager, block: dict[str, Any], held_by: str) -> Leak:
    age = block["age_ns"]
    return Leak(
        size=block["requested"],
        location=_sites.location_of(block["site"]),
        address=block["address"],
        stack=_sites.stack_of(block["site"]),
        age=age / 1e9 if age is not None else None,
        device=str(manager.device) + (" (pinned)" if manager.is_pinned else ""),
        held_by=held_by,
    )


class leak_scope:  # noqa: N801 - used like a function
    """Find what a ``with`` block leaves alive: ``leaks`` afterwards.

    Examples
    --------
    >>> import genesis
    >>> with genesis.leak_scope() as scope:
    ...     block = genesis.memory_manager.allocate_block(100)
    >>> [leak.size for leak in scope.leaks]
    [100]
    >>> del block
    """

    def __init__(self) -> None:
        self.leaks = Leaks()

    def __enter__(self) -> leak_scope:
        self._is_first = memory_profiler.wanted_stacks() is None
        if self._is_first:
            memory_profiler.want_stacks((PYTHON_FRAMES, 0))
        self._before = dict.fromkeys(_living())
        return self

    def __exit__(self, *exception: object) -> None:
        self.leaks = check(self._before)
        if self._is_first:
            memory_profiler.want_stacks(None)


# ---- at exit ------------------------------------------------------------------------------------


def _report_at_exit(process: int) -> None:
    """Tell what nobody owns any more; objects that are still reachable go with the interpreter."""
    if os.getpid() != process:  # a forked child has what it inherited
        return
    leaks = Leaks(leak for leak in check() if not leak.held_by or "cycle" in leak.held_by)
    for line in leaks.summary().splitlines() if leaks else ():
        print(f"genesis: warning: leak: {line}", file=sys.stderr)


def report_at_exit() -> None:
    """For GENESIS_DEBUG=trace: the library records from its start on."""
    global _is_traced
    _is_traced = True
    memory_profiler.want_stacks(ALL_FRAMES)
    _set_report_at_exit(True)
