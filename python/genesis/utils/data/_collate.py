"""Samples become a batch: tensors with one more dimension, in the containers of the samples."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import genesis
from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    CollateMap = dict[type | tuple[type, ...], Callable[..., Any]]

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

_MESSAGE = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def _numpy_kind(value: Any) -> str:
    """'array' or 'number' for what NumPy has, without importing it; else ''."""
    module = type(value).__module__
    if module != "numpy" and not any(one.__module__ == "numpy" for one in type(value).__mro__):
        return ""
    import numpy

    if isinstance(value, numpy.ndarray):
        return "array"
    return "number" if isinstance(value, (numpy.bool_, numpy.number)) else ""


def default_convert(data: Any) -> Any:
    """NumPy's arrays become tensors, in containers as well; everything else stays what it is.

    What a :class:`DataLoader` does to a sample where it makes no batches.

    Examples
    --------
    >>> import numpy
    >>> from genesis.utils.data import default_convert
    >>> default_convert([numpy.array([0, 1]), "a", 2])
    [tensor([0, 1]), 'a', 2]
    """
    if isinstance(data, (_C.Tensor, str, bytes)):
        return data
    kind = _numpy_kind(data)
    if kind:
        is_text = kind == "array" and data.dtype.kind in "SUO"
        return data if is_text else genesis.as_tensor(data)
    if isinstance(data, Mapping):
        return mapping_like(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(one) for one in data))
    if isinstance(data, tuple):
        return [default_convert(one) for one in data]
    if isinstance(data, Sequence):
        return sequence_like(data, [default_convert(one) for one in data])
    return data


def mapping_like(one: Any, made: dict[Any, Any]) -> Any:
    """A mapping of the class of another one, with that one's other attributes."""
    if type(one) is dict:
        return made
    try:
        if isinstance(one, MutableMapping):
            clone = copy.copy(one)
            clone.update(made)
            return clone
        return type(one)(made)  # type: ignore[call-arg]
    except TypeError:  # that class is made in another way
        return made


def sequence_like(one: Any, made: list[Any]) -> Any:
    if type(one) is list:
        return made
    try:
        if isinstance(one, MutableSequence):
            clone = copy.copy(one)
            for place, value in enumerate(made):
                clone[place] = value
            return clone
        return type(one)(made)  # type: ignore[call-arg]
    except TypeError:
        return made


def collate(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Put samples together: functions by classes say how, and containers are gone through.

    Parameters
    ----------
    batch : list
        The samples, all like the first one.
    collate_fn_map : dict, optional
        From a class, or a tuple of classes, to ``function(batch, *, collate_fn_map)``.
    """
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        if kind in collate_fn_map:
            return collate_fn_map[kind](batch, collate_fn_map=collate_fn_map)
        for known, function in collate_fn_map.items():
            if isinstance(first, known):
                return function(batch, collate_fn_map=collate_fn_map)
    found = _numpy_kind(first)
    if found == "array":
        if first.dtype.kind in "SUO":
            raise TypeError(_MESSAGE.format(first.dtype))
        return collate([_C.as_tensor(one) for one in batch], collate_fn_map=collate_fn_map)
    if found == "number":
        return _C.as_tensor(list(batch))
    if isinstance(first, Mapping):
        made = {
            key: collate([one[key] for one in batch], collate_fn_map=collate_fn_map)
            for key in first
        }
        return mapping_like(first, made)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        columns = zip(*batch, strict=True)
        return kind(*(collate(one, collate_fn_map=collate_fn_map) for one in columns))
    if isinstance(first, Sequence):
        count = len(first)
        if any(len(one) != count for one in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = zip(*batch, strict=True)
        made_list = [collate(one, collate_fn_map=collate_fn_map) for one in columns]
        return made_list if isinstance(first, tuple) else sequence_like(first, made_list)
    raise TypeError(_MESSAGE.format(kind))


def _collate_tensors(batch: Any, **_: Any) -> _C.Tensor:
    return genesis.stack(list(batch), 0)


def _collate_floats(batch: Any, **_: Any) -> _C.Tensor:
    return _C.tensor(list(batch), dtype=_C.float64)


def _collate_integers(batch: Any, **_: Any) -> _C.Tensor:
    return _C.tensor(list(batch))


def _collate_texts(batch: Any, **_: Any) -> Any:
    return batch


default_collate_fn_map: CollateMap = {
    _C.Tensor: _collate_tensors,
    float: _collate_floats,
    int: _collate_integers,
    str: _collate_texts,
    bytes: _collate_texts,
}


def default_collate(batch: Any) -> Any:
    """Samples as a batch: what a :class:`DataLoader` does if it is told nothing else.

    Tensors, arrays of NumPy and numbers become tensors with one more dimension, the first; texts
    stay lists; dicts, lists, tuples and named tuples are gone through.

    Examples
    --------
    >>> from genesis.utils.data import default_collate
    >>> default_collate([(0, "a"), (1, "b")])
    [tensor([0, 1]), ('a', 'b')]
    >>> default_collate([{"x": 0.5}, {"x": 1.5}])
    {'x': tensor([0.5000, 1.5000], dtype=genesis.float64)}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
