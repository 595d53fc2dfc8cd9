"""Modules that hold others, in order or by name."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import chain

from genesis.nn.modules.module import Module, indented

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import ItemsView, Iterator, KeysView, ValuesView
    from typing import Any, Self

__all__ = ["ModuleDict", "ModuleList", "Sequential"]


class _Ordered(Module):
    """Modules whose names are their places."""

    def _key(self, index: int) -> str:
        """The name of a place; a negative one counts from the end."""
        place, size = operator.index(index), len(self._modules)
        if not -size <= place < size:
            raise IndexError(f"index {place} is out of range")
        return list(self._modules)[place]

    def _renumber(self) -> None:
        modules = {str(place): one for place, one in enumerate(self._modules.values())}
        self._modules = modules

    def _insert(self, index: int, module: Module) -> None:
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._modules = {str(place): one for place, one in enumerate(modules)}

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]
        for name in names:
            delattr(self, name)
        self._renumber()

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def append(self, module: Module) -> Self:
        """Put a module behind the others."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: int | slice) -> Any:
        """Remove a module; gives it."""
        module = self[key]  # type: ignore[index]
        del self[key]
        return module


class Sequential(_Ordered):
    """Modules that are called one after the other, each with the output of the one before.

    Parameters
    ----------
    *args : Module
        The modules; or one OrderedDict of them, by their names.

    Examples
    --------
    >>> from genesis import nn
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.Flatten())
    >>> model.append(nn.Identity())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): Flatten(start_dim=1, end_dim=-1)
      (2): Identity()
    )
    >>> model[1:]
    Sequential(
      (1): Flatten(start_dim=1, end_dim=-1)
      (2): Identity()
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        is_named = len(args) == 1 and isinstance(args[0], OrderedDict)
        items = args[0].items() if is_named else ((str(i), one) for i, one in enumerate(args))
        for name, module in items:
            self.add_module(name, module)

    def forward(self, input: Any) -> Any:
        """Call the modules one after the other."""
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def insert(self, index: int, module: Module) -> Self:
        """Put a module at a place; those from there on move."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        self._insert(index, module)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Put modules behind the others."""
        for module in list(sequential):
            self.append(module)
        return self

    def _checked(self, other: Any) -> Any:
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects of Sequential class, "
                f"but {type(other)} is given."
            )
        return other

    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self, *self._checked(other))

    def __iadd__(self, other: Any) -> Self:
        return self.extend(self._checked(other))

    def _times(self, count: Any) -> int:
        if not isinstance(count, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(count)}")
        if count <= 0:
            raise ValueError(f"Non-positive multiplication factor {count} for {type(self)}")
        return count

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*list(self) * self._times(other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        return self.extend(list(self) * (self._times(other) - 1))


class ModuleList(_Ordered):
    """Modules in a list.

    Parameters
    ----------
    modules : iterable of Module, optional
        The modules.

    Examples
    --------
    >>> from genesis import nn
    >>> layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    >>> layers
    ModuleList(
      (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
    )
    >>> len(layers), layers[-1]
    (3, Linear(in_features=2, out_features=2, bias=True))
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._key(index)]

    def insert(self, index: int, module: Module) -> None:
        """Put a module before the one at a place."""
        self._insert(index, module)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Put modules behind the others."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"ModuleList.extend should be called with an iterable, but got "
                f"{type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        runs: list[list[Any]] = []  # text, first place, last place
        for place, module in enumerate(self):
            text = repr(module)
            if runs and runs[-1][0] == text:
                runs[-1][2] = place
            else:
                runs.append([text, place, place])
        lines = [
            f"({first}): {text}"
            if first == last
            else f"({first}-{last}): {last - first + 1} x {text}"
            for text, first, last in runs
        ]
        body = "\n  " + "\n  ".join(map(indented, lines)) + "\n" if lines else ""
        return f"{self._get_name()}({body})"

    # As in PyTorch, it has no forward of its own: calling it is an error.


def pairs(values: Any, owner: str) -> Iterable[tuple[str, Any]]:
    """Keys and values of a mapping, or of a sequence of pairs."""
    if not isinstance(values, Iterable):
        raise TypeError(
            f"{owner}.update should be called with an iterable of key/value pairs, but got "
            f"{type(values).__name__}"
        )
    if isinstance(values, Mapping) or hasattr(values, "keys"):
        return list(values.items())  # type: ignore[attr-defined]
    found = []
    for place, one in enumerate(values):
        if not isinstance(one, Iterable):
            raise TypeError(
                f"{owner} update sequence element #{place} should be Iterable; is "
                f"{type(one).__name__}"
            )
        if len(one) != 2:  # type: ignore[arg-type]
            raise ValueError(
                f"{owner} update sequence element #{place} has length {len(one)}; 2 is required"  # type: ignore[arg-type]
            )
        found.append(tuple(one))
    return found


class ModuleDict(Module):
    """Modules by name, in the order in which they were put in.

    Parameters
    ----------
    modules : mapping or iterable of pairs, optional
        Names and modules.

    Examples
    --------
    >>> from genesis import nn
    >>> choices = nn.ModuleDict({"linear": nn.Linear(2, 3), "none": nn.Identity()})
    >>> choices["none"]
    Identity()
    >>> list(choices)
    ['linear', 'none']
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Remove a module; gives it."""
        return self._modules.pop(key)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Any]:
        """The names and the modules."""
        return self._modules.items()

    def values(self) -> ValuesView[Any]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Put modules in, by name: of a mapping, or a sequence of pairs."""
        for key, module in pairs(modules, "ModuleDict"):
            self[key] = module
