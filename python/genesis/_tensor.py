"""What of tensors is written in Python: text and pickling."""

from __future__ import annotations

from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["set_printoptions"]


class _Print:
    """How tensors become text: set_printoptions() says what each is."""

    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth: int | None = None
    sci_mode: bool | None = None


_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": None},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": None},
    "full": {"precision": 4, "threshold": 1 << 62, "edgeitems": 3, "linewidth": None},
}
_SHOWN = 100_000  # elements beyond which fewer are shown at each end: of many dimensions


def dtype_of(named: Any) -> _C.dtype:
    """A dtype, or the one that a name is for."""
    return named if isinstance(named, _C.dtype) else _C._empty((0,), named, "cpu").dtype


# ---- text ----


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Say how tensors become text; what is not given stays, but `sci_mode`.

    Parameters
    ----------
    precision : int
        Digits behind the point; at first 4.
    threshold : number
        Elements up to which all are shown; at first 1000.
    edgeitems : int
        Elements at each end of a dimension of a larger tensor; at first 3.
    linewidth : int
        Columns of a line, after which rows are broken; at first they are not.
    profile : str
        ``"default"``, ``"short"`` or ``"full"``, before the others are set.
    sci_mode : bool
        Whether numbers have exponents; None: where they need them.

    Examples
    --------
    >>> import genesis
    >>> genesis.set_printoptions(precision=2)
    >>> genesis.tensor([1.23456])
    tensor([1.23])
    >>> genesis.set_printoptions(profile="default")
    """
    if profile is not None and profile not in _PROFILES:
        raise ValueError(
            f"set_printoptions: profile is one of {', '.join(_PROFILES)}, not {profile!r}"
        )
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems}
    given = {
        name: one for name, one in {**given, "linewidth": linewidth}.items() if one is not None
    }
    for name, one in given.items():
        if not one >= (1 if name == "linewidth" else 0):
            raise ValueError(f"set_printoptions: {name} is not negative: {one!r}")
    for name, one in {**_PROFILES.get(profile or "", {}), **given, "sci_mode": sci_mode}.items():
        setattr(_Print, name, one)


def _number_texts(values: list[Any]) -> list[str]:
    """Numbers of one tensor, as wide as each other."""
    from math import isfinite

    if not any(isinstance(value, float) for value in values):
        texts = [str(value) for value in values]
    else:
        finite = [value for value in values if isfinite(value)]
        largest = max((abs(value) for value in finite), default=0.0)
        smallest = min((abs(value) for value in finite if value), default=1.0)
        digits, has_exponents = _Print.precision, _Print.sci_mode
        if has_exponents is None:
            is_wide = largest / smallest > 1e3 and largest >= 1e5
            has_exponents = largest >= 1e8 or smallest < 1e-4 or is_wide
        if has_exponents:
            texts = [f"{value:.{digits}e}" for value in values]
        elif all(value == int(value) for value in finite):
            texts = [f"{value:.0f}." if isfinite(value) else str(value) for value in values]
        else:
            texts = [f"{value:.{digits}f}" if isfinite(value) else str(value) for value in values]
    width = max((len(text) for text in texts), default=0)
    return [text.rjust(width) for text in texts]


def _flat(part: Any) -> list[Any]:
    return [one for item in part for one in _flat(item)] if isinstance(part, list) else [part]


def _edge_of(shape: tuple[int, ...]) -> int:
    """How many items to show at each end of a long dimension."""
    edge, shown = _Print.edgeitems, _SHOWN + 1
    while shown > _SHOWN and edge > 0:
        shown = 1
        for size in shape:
            shown *= size if size <= 2 * edge else 2 * edge
        edge -= 1
    return edge + 1


def _edges(tensor: _C.Tensor, edge: int) -> Any:
    """The elements as lists, without the inner ones of long dimensions; with 0 all."""
    if tensor.ndim == 0:
        return tensor.item()
    length = tensor.shape[0]
    if not edge or length <= 2 * edge:
        return [_edges(tensor[i], edge) for i in range(length)]
    first = [_edges(tensor[i], edge) for i in range(edge)]
    last = [_edges(tensor[i], edge) for i in range(length - edge, length)]
    return [*first, None, *last]


def _lines(part: Any, texts: Any, indent: int) -> str:
    if part is None:
        return "..."
    if not isinstance(part, list):
        return next(texts)
    items = [_lines(item, texts, indent + 1) for item in part]
    if any(isinstance(item, list) for item in part):
        depth = _depth(part)
        return "[" + ("," + "\n" * (depth - 1) + " " * (indent + 1)).join(items) + "]"
    if _Print.linewidth is None:
        return "[" + ", ".join(items) + "]"
    width = max((len(item) for item in items), default=0) + 2
    count = max((_Print.linewidth - indent - 1) // width, 1)
    rows = (", ".join(items[i : i + count]) for i in range(0, len(items), count))
    return "[" + (",\n" + " " * (indent + 1)).join(rows) + "]"


def _depth(part: Any) -> int:
    return (
        1 + max((_depth(item) for item in part if item is not None), default=0)
        if isinstance(part, list)
        else 0
    )


def text_of(tensor: _C.Tensor) -> str:
    """The text of a tensor, as repr() gives it."""
    place, dtype, operation = tensor.device, tensor.dtype, tensor.grad_fn
    is_wanted, tensor = tensor.requires_grad, tensor.detach()
    if place.type != "cpu" and tensor.numel() <= _Print.threshold:
        tensor = tensor.cpu()
    words = ["[]"]
    if tensor.numel():
        part = _edges(tensor, 0 if tensor.numel() <= _Print.threshold else _edge_of(tensor.shape))
        texts = _number_texts([value for value in _flat(part) if value is not None])
        words = [_lines(part, iter(texts), len("tensor("))]
    if tensor.numel() == 0 and tensor.ndim != 1:
        words.append(f"size={tensor.shape}")
    usual = (_C.get_default_dtype(), _C.int64, _C.bool)
    if place.type != "cpu":
        words.append(f"device='{place}'")
    if dtype not in usual or tensor.numel() == 0:
        words.append(f"dtype={dtype}")
    if is_wanted:
        words.append("requires_grad=True" if operation is None else f"grad_fn={operation}")
    return f"tensor({', '.join(words)})"


# ---- pickling ----


def restore(
    data: bytes,
    shape: tuple[int, ...],
    name: str,
    device: str = "cpu",
    requires_grad: bool = False,
) -> _C.Tensor:
    """Make a pickled tensor again, where it was."""
    dtype = dtype_of(name)
    nbytes = dtype.itemsize
    for size in shape:
        nbytes *= size
    if len(data) != nbytes:
        raise ValueError(
            f"a pickled tensor of shape {shape} and {dtype} has {nbytes} bytes, not {len(data)}"
        )
    made = _C._empty(shape, dtype, "cpu")
    _C._set_bytes(made, 0, data)
    return made.to(device=device).requires_grad_(requires_grad)


def reduced(tensor: _C.Tensor) -> tuple[Any, ...]:
    """What pickle writes of a tensor."""
    near = tensor.detach().cpu().contiguous()
    data = _C._bytes_of(near, 0, near.numel())
    what = (data, near.shape, near.dtype.name, str(tensor.device))
    return restore, (*what, True) if tensor.requires_grad else what
