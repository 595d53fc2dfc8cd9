"""Modules that hold parameters, in order or by name."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping

from genesis import _C
from genesis.nn.modules.container import pairs
from genesis.nn.modules.module import Module
from genesis.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, KeysView
    from typing import Any, Self

__all__ = ["ParameterDict", "ParameterList"]


def _as_parameter(value: Any) -> Any:
    is_plain = isinstance(value, _C.Tensor) and not isinstance(value, Parameter)
    return Parameter(value) if is_plain else value


def _line(key: Any, value: Any) -> str:
    """A line of repr()."""
    if not isinstance(value, _C.Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    sizes = "x".join(map(str, value.shape))
    place = f" ({value.device})" if value.device.type == "cuda" else ""
    return f"  ({key}): {kind} containing: [{value.dtype} of size {sizes}{place}]"


class ParameterList(Module):
    """Parameters in a list. Tensors that are put in become parameters; other objects stay.

    Parameters
    ----------
    values : iterable, optional
        What is put in.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.ParameterList([genesis.ones(2, 3), genesis.ones(4)])
    ParameterList(
        (0): Parameter containing: [genesis.float32 of size 2x3]
        (1): Parameter containing: [genesis.float32 of size 4]
    )
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _key(self, index: int) -> str:
        place = operator.index(index)
        if not -self._size <= place < self._size:
            raise IndexError(f"index {place} is out of range")
        return str(place % self._size)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(self[place] for place in range(self._size)[index])
        return getattr(self, self._key(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._key(index), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[place] for place in range(self._size)])

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def append(self, value: Any) -> Self:
        """Put a value behind the others."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Put values behind the others."""
        if not isinstance(values, Iterable) or isinstance(values, _C.Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got "
                f"{type(values).__name__}"
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        """What is in it, line by line."""
        return "\n".join(_line(place, value) for place, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """Refuse it: there is nothing to compute."""
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """Parameters by name. Tensors that are put in become parameters; other objects stay.

    Parameters
    ----------
    parameters : mapping or iterable of pairs, optional
        What is put in.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.ParameterDict({"left": genesis.ones(2, 3)})
    ParameterDict(  (left): Parameter containing: [genesis.float32 of size 2x3])
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._checked(key))

    def _checked(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}')"
            )
        return key

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, self._checked(key), _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Another dict of the same parameters."""
        return ParameterDict(list(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """What is under a name; where nothing is, `default` is put there."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove everything."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove what is under a name; gives it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove what was put in last; gives its name and it."""
        if not self._keys:
            raise KeyError("popitem(): ParameterDict is empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """What is under a name, or else `default`."""
        return self[key] if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Another dict with these names, and `default` under each."""
        return ParameterDict([(key, default) for key in keys])

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The names and what is under them."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """What is in it."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Put values in, by name; of a mapping that is no OrderedDict in the order of names."""
        from collections import OrderedDict

        found = pairs(parameters, "ParameterDict")
        is_sorted = isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict)
        for key, value in sorted(found, key=lambda one: one[0]) if is_sorted else found:
            self[key] = value

    def extra_repr(self) -> str:
        """What is in it, line by line."""
        return "\n".join(_line(key, value) for key, value in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """Refuse it: there is nothing to compute."""
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: ParameterDict) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        made = other.copy()
        made.update(self)
        return made

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self
