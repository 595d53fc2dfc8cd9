"""Random numbers: tensors of them, and the generator that they come from."""

from __future__ import annotations

from genesis import _C
from genesis._tensor import shape_of
from genesis._tensor_calls import publish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "bernoulli",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "multinomial",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "seed",
    "set_rng_state",
]


def manual_seed(seed: int) -> _C.Generator:
    """Begin the sequence of random numbers that belongs to a seed; the default generator.

    Examples
    --------
    >>> import genesis
    >>> genesis.manual_seed(3).initial_seed()
    3
    """
    return _C.default_generator.manual_seed(seed)


def seed() -> int:
    """Begin a sequence that nobody knows before, and give its seed.

    Examples
    --------
    >>> import genesis
    >>> genesis.seed() == genesis.initial_seed()
    True
    """
    return _C.default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator began with.

    Examples
    --------
    >>> import genesis
    >>> _ = genesis.manual_seed(3)
    >>> genesis.initial_seed()
    3
    """
    return _C.default_generator.initial_seed()


def get_rng_state() -> _C.Tensor:
    """Where the default generator is in its sequence, as a tensor of bytes.

    Examples
    --------
    >>> import genesis
    >>> state = genesis.get_rng_state()
    >>> first = genesis.rand(3)
    >>> genesis.set_rng_state(state)
    >>> genesis.equal(first, genesis.rand(3))
    True
    """
    return _C.default_generator.get_state()


def set_rng_state(state: _C.Tensor) -> None:
    """Go on from where the default generator was.

    Examples
    --------
    >>> import genesis
    >>> genesis.set_rng_state(genesis.get_rng_state())
    """
    _C.default_generator.set_state(state)


def rand(
    *shape: Any,
    size: Any = None,
    generator: _C.Generator | None = None,
    dtype: Any = None,
    device: Any = None,
) -> _C.Tensor:
    """Random numbers from 0 to before 1, all as likely.

    Examples
    --------
    >>> import genesis
    >>> bool((genesis.rand(1000) < 1).all())
    True
    """
    return _C._fill_uniform(_C._empty(shape_of(shape, size), dtype, device), generator)


def randn(
    *shape: Any,
    size: Any = None,
    generator: _C.Generator | None = None,
    dtype: Any = None,
    device: Any = None,
) -> _C.Tensor:
    """Random numbers with mean 0 and variance 1, normally distributed.

    Examples
    --------
    >>> import genesis
    >>> genesis.randn(2, 3).shape
    (2, 3)
    """
    return _C._fill_normal(_C._empty(shape_of(shape, size), dtype, device), generator)


def rand_like(
    input: _C.Tensor,
    dtype: Any = None,
    device: Any = None,
    *,
    generator: _C.Generator | None = None,
) -> _C.Tensor:
    """Random numbers from 0 to before 1 in the same shape.

    Examples
    --------
    >>> import genesis
    >>> genesis.rand_like(genesis.zeros(2, 3)).shape
    (2, 3)
    """
    place = device or input.device
    return rand(input.shape, generator=generator, dtype=dtype or input.dtype, device=place)


def randn_like(
    input: _C.Tensor,
    dtype: Any = None,
    device: Any = None,
    *,
    generator: _C.Generator | None = None,
) -> _C.Tensor:
    """Normally distributed random numbers in the same shape.

    Examples
    --------
    >>> import genesis
    >>> genesis.randn_like(genesis.zeros(2, 3)).shape
    (2, 3)
    """
    place = device or input.device
    return randn(input.shape, generator=generator, dtype=dtype or input.dtype, device=place)


def randint(
    low: int = 0,
    high: Any = None,
    size: Any = None,
    *,
    generator: _C.Generator | None = None,
    dtype: Any = None,
    device: Any = None,
) -> _C.Tensor:
    """Random integers from `low` (0 if it is left out) to before `high`.

    Examples
    --------
    >>> import genesis
    >>> genesis.randint(3, 4, (2,))
    tensor([3, 3])
    """
    if size is None:
        low, high, size = 0, low, high
    if size is None:
        raise TypeError("randint: the size must be given")
    made = _C._empty(size, dtype or _C.int64, device)
    return _C._fill_integers(made, low, high, generator)


def randint_like(
    input: _C.Tensor,
    low: int = 0,
    high: Any = None,
    *,
    generator: _C.Generator | None = None,
    dtype: Any = None,
    device: Any = None,
) -> _C.Tensor:
    """Random integers in the same shape and dtype; one number is the end.

    Examples
    --------
    >>> import genesis
    >>> genesis.randint_like(genesis.zeros(2), 3, 4)
    tensor([3., 3.])
    """
    low, high = (0, low) if high is None else (low, high)
    made = _C._empty(input.shape, dtype or input.dtype, device or input.device)
    return _C._fill_integers(made, low, high, generator)


def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: _C.Generator | None = None,
    dtype: Any = None,
    device: Any = None,
) -> _C.Tensor:
    """Normally distributed random numbers, each with a mean and a standard deviation.

    Without a size these are tensors, whose shape the result has.

    Examples
    --------
    >>> import genesis
    >>> genesis.normal(genesis.tensor([5.0, 7.0]), 0.0)
    tensor([5., 7.])
    """
    if not (bool((std >= 0).all()) if isinstance(std, _C.Tensor) else std >= 0):
        raise ValueError("normal: a standard deviation is not negative")
    if size is None:
        like = mean + std  # broadcast
        if not isinstance(like, _C.Tensor):
            raise TypeError("normal: where mean and std are numbers there must be a size")
        dtype, device, size = like.dtype, like.device, like.shape
    return randn(size=size, generator=generator, dtype=dtype, device=device) * std + mean


def _check_chances(p: Any) -> None:
    """Chances are from 0 to 1. While a graph is captured those of a tensor cannot be read."""
    if not isinstance(p, _C.Tensor):
        is_right = 0 <= p <= 1
    elif p.device.type == "cuda" and _C.current_stream(p.device).is_capturing:
        is_right = True
    else:
        is_right = ((p >= 0) & (p <= 1)).all().item()
    if not is_right:
        raise ValueError(f"a chance is from 0 to 1, not {p!r}")


def bernoulli_(
    self: _C.Tensor, p: Any = 0.5, *, generator: _C.Generator | None = None
) -> _C.Tensor:
    """Fill it with ones, each with a probability, and zeros.

    Examples
    --------
    >>> import genesis
    >>> genesis.empty(3).bernoulli_(1.0)
    tensor([1., 1., 1.])
    """
    _check_chances(p)
    return self.copy_(rand(self.shape, generator=generator, device=self.device) < p)


def bernoulli(input: _C.Tensor, *, generator: _C.Generator | None = None) -> _C.Tensor:
    """Ones, each with the probability that an element is, and zeros.

    Examples
    --------
    >>> import genesis
    >>> genesis.bernoulli(genesis.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    return bernoulli_(_C._empty(input.shape, input.dtype, input.device), input, generator=generator)


def exponential_(
    self: _C.Tensor, lambd: float = 1.0, *, generator: _C.Generator | None = None
) -> _C.Tensor:
    """Fill it with random numbers whose logarithm of the probability falls by `lambd`.

    Examples
    --------
    >>> import genesis
    >>> bool((genesis.empty(1000).exponential_() >= 0).all())
    True
    """
    if not lambd > 0:
        raise ValueError(f"exponential_: lambd is above 0, not {lambd}")
    chance = rand(self.shape, generator=generator, dtype=_C.float64, device=self.device)
    return self.copy_((-chance).log1p() / -lambd)


def multinomial(
    input: _C.Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: _C.Generator | None = None,
) -> _C.Tensor:
    """Random places of a vector, or of each row, as likely as the elements there are large.

    Examples
    --------
    >>> import genesis
    >>> genesis.multinomial(genesis.tensor([0.0, 1.0]), 3, replacement=True)
    tensor([1, 1, 1])
    """
    if input.ndim not in (1, 2) or not input.dtype.is_floating_point or num_samples < 1:
        raise ValueError(
            f"multinomial: {num_samples} places of floating numbers with 1 or 2 dimensions, not of "
            f"{input.dtype} and shape {input.shape}"
        )
    weights = input.double()
    possible = (weights > 0).sum(-1).amin().item()
    if not bool((weights >= 0).all() & weights.isfinite().all()) or possible < 1:
        raise ValueError("multinomial: elements are finite and not negative, and one is above 0")
    if not replacement:
        if num_samples > possible:
            raise ValueError(
                f"multinomial: {num_samples} samples without replacement need as many elements "
                f"above 0, not {possible}"
            )
        # The smallest of times that are exponentially distributed, at these rates.
        times = _C._empty(input.shape, _C.float64, input.device).exponential_(generator=generator)
        return (times / weights).topk(num_samples, largest=False).indices
    ends = weights.cumsum(-1)
    shape = (*input.shape[:-1], num_samples)
    chance = rand(shape, generator=generator, dtype=_C.float64, device=input.device)
    return _C._searchsorted(ends / ends[..., -1:], chance, True)


def randperm(
    n: int, *, generator: _C.Generator | None = None, dtype: Any = None, device: Any = None
) -> _C.Tensor:
    """The numbers from 0 to n - 1 in random order.

    Examples
    --------
    >>> import genesis
    >>> sorted(genesis.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    made = _C._permutation(n, generator, device)
    return made if dtype is None else made.to(dtype)


def uniform_(
    self: _C.Tensor, low: float = 0.0, high: float = 1.0, *, generator: _C.Generator | None = None
) -> _C.Tensor:
    """Fill it with random numbers from `low` to before `high`, all as likely.

    Examples
    --------
    >>> import genesis
    >>> bool((genesis.empty(1000).uniform_(2, 3) >= 2).all())
    True
    """
    if not low <= high:
        raise ValueError(f"uniform_: there is no number from {low} to before {high}")
    _C._fill_uniform(self, generator)
    if (low, high) == (0.0, 1.0):
        return self
    made = _C.lerp(low, high, self)  # their difference may be more than a number can be
    return _C.where(made < high, made, low, out=self)  # rounding may have made it `high`


def normal_(
    self: _C.Tensor, mean: float = 0.0, std: float = 1.0, *, generator: _C.Generator | None = None
) -> _C.Tensor:
    """Fill it with normally distributed random numbers.

    Examples
    --------
    >>> import genesis
    >>> genesis.empty(2, 3).normal_(0, 0.02).shape
    (2, 3)
    """
    if not std >= 0:
        raise ValueError(f"normal_: a standard deviation is not negative: {std}")
    _C._fill_normal(self, generator)
    return self if (mean, std) == (0.0, 1.0) else self.mul_(std).add_(mean)


def random_(
    self: _C.Tensor,
    low: int = 0,
    high: int | None = None,
    *,
    generator: _C.Generator | None = None,
) -> _C.Tensor:
    """Fill it with random integers from `low` to before `high`; one number is the end.

    Without any they are all that the type has from 0 on, or that it counts exactly.

    Examples
    --------
    >>> import genesis
    >>> bool((genesis.empty(1000).random_(10) < 10).all())
    True
    """
    if high is None:
        low, high = 0, low or _COUNTS[self.dtype.name]
    return _C._fill_integers(self, low, high, generator)


# How many integers from 0 on a type has, or counts without a gap.
_COUNTS = {
    "bool": 2,
    "uint8": 1 << 8,
    "uint16": 1 << 16,
    "uint32": 1 << 32,
    "uint64": (1 << 64) - 1,
    "int8": 1 << 7,
    "int16": 1 << 15,
    "int32": 1 << 31,
    "int64": (1 << 63) - 1,
    "float16": 1 << 11,
    "bfloat16": 1 << 8,
    "float32": 1 << 24,
    "float64": 1 << 53,
}

publish(
    globals(),
    __all__,
    methods=(
        *("bernoulli", "bernoulli_", "exponential_", "multinomial", "normal_", "random_"),
        "uniform_",
    ),
)
