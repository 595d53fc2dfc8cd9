"""Pruning: elements or channels of a parameter are held at 0, by a mask.

A pruned parameter ``weight`` becomes a parameter ``weight_orig``, which is trained, and a buffer
``weight_mask``; before each ``forward`` a hook makes ``weight`` their product.
"""

from __future__ import annotations

from collections.abc import Iterable

from genesis import _C
from genesis._grad_mode import no_grad
from genesis.nn.utils.convert import parameters_to_vector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


def _hooks(module: Any, name: str | None = None) -> list[Any]:
    """The numbers of the pruning hooks of a parameter, or of all."""
    return [
        number
        for number, hook in module._forward_pre_hooks.items()
        if isinstance(hook, BasePruningMethod) and name in (None, hook._tensor_name)
    ]


class BasePruningMethod:
    """The base of all ways to prune: a hook before ``forward``.

    A class of one's own has :meth:`compute_mask` and ``PRUNING_TYPE``, which says what a mask is
    computed of where there is one already: ``"unstructured"``, the elements that are left,
    ``"structured"``, the channels of its ``dim`` that are left, or ``"global"``, everything.
    """

    PRUNING_TYPE: str
    _tensor_name: str | None = None

    def compute_mask(self, t: _C.Tensor, default_mask: _C.Tensor) -> _C.Tensor:
        """The mask of a tensor, in which what the default mask has as 0 stays 0."""
        raise NotImplementedError

    def __call__(self, module: Any, args: Any) -> None:
        """Before ``forward``."""
        setattr(module, str(self._tensor_name), self.apply_mask(module))

    def apply_mask(self, module: Any) -> _C.Tensor:
        """The parameter with its mask."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, name + "_orig")
        return getattr(module, name + "_mask").to(original.dtype) * original

    @classmethod
    def apply(
        cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> Any:
        """Prune a parameter of a module, by the size of its elements or of the scores."""
        method = cls(*args, **kwargs)
        method._tensor_name = name
        numbers, original = _hooks(module, name), getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, "
                f"got {scores.shape} vs {original.shape}"
            )
        if not numbers:
            with no_grad():
                mask = method.compute_mask(scores.detach(), _C.ones_like(original).detach())
            del module._parameters[name]
            module.register_parameter(name + "_orig", original)
        else:
            before = module._forward_pre_hooks[numbers[0]]
            if not isinstance(before, PruningContainer):
                before = PruningContainer(before)
            together = PruningContainer(*before, method)
            with no_grad():
                default = getattr(module, name + "_mask").detach().clone()
                mask = together.compute_mask(scores.detach(), default)
            del module._forward_pre_hooks[numbers[0]]
            method = together  # type: ignore[assignment]
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: _C.Tensor, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """A pruned tensor, without a module."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError(
                "importance_scores should have the same shape as tensor t, got "
                f"{scores.shape} vs {t.shape}"
            )
        default_mask = _C.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=default_mask)

    def remove(self, module: Any) -> None:
        """Make the parameter an ordinary one again, with its mask applied."""
        name = self._tensor_name
        weight = self.apply_mask(module).detach()
        if hasattr(module, str(name)):
            delattr(module, str(name))
        original = module._parameters.pop(f"{name}_orig")
        original.data = weight
        del module._buffers[f"{name}_mask"]
        setattr(module, str(name), original)


class PruningContainer(BasePruningMethod):
    """Ways to prune a parameter, one after the other."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add one behind the others."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: _C.Tensor, default_mask: _C.Tensor) -> _C.Tensor:
        """What the last one makes of the elements that are left."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(t.dtype)
        kind, places = method.PRUNING_TYPE, [slice(None)] * t.ndim
        left: Any
        if kind == "unstructured":
            left = mask == 1
        elif kind == "structured":
            dim = getattr(method, "dim", None)
            if dim is None:
                raise AttributeError(f"Pruning methods of PRUNING_TYPE {kind!r} need a dim")
            dim = dim % t.ndim
            others = [one for one in range(t.ndim) if one != dim]
            places[dim] = mask.sum(dim=others) != 0  # type: ignore[call-overload]
            left = tuple(places)
        elif kind == "global":
            left = tuple(places)
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {kind}")
        made = mask.clone()
        made[left] = method.compute_mask(t[left], default_mask=mask[left]).to(mask.dtype)
        return made


# ---- amounts ----


def _amount_check(amount: Any) -> None:
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (isinstance(amount, float) and amount > 1.0):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
            "integer"
        )


def _count(amount: Any, size: int) -> int:
    """How many of so many are pruned."""
    if isinstance(amount, float):
        return round(amount * size)
    if amount > size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to prune={size}"
        )
    return int(amount)


def _channels_check(t: _C.Tensor, dim: int) -> int:
    if t.ndim <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of "
            f"shape {t.shape} with {t.ndim} dims"
        )
    if not -t.ndim <= dim < t.ndim:
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")
    return dim % t.ndim


# ---- ways to prune ----


class Identity(BasePruningMethod):
    """Prunes nothing, and makes the mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: _C.Tensor, default_mask: _C.Tensor) -> _C.Tensor:
        """The mask as it is."""
        return default_mask


class CustomFromMask(BasePruningMethod):
    """Prunes by a mask that is given."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: _C.Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: _C.Tensor, default_mask: _C.Tensor) -> _C.Tensor:
        """Both masks together."""
        return default_mask * self.mask.to(default_mask.dtype)


class _ByScores(BasePruningMethod):
    """Prunes the elements with the lowest scores."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        _amount_check(amount)
        self.amount = amount

    def _scores(self, t: _C.Tensor) -> _C.Tensor:
        raise NotImplementedError

    def compute_mask(self, t: _C.Tensor, default_mask: _C.Tensor) -> _C.Tensor:
        """The mask without them."""
        count = _count(self.amount, t.numel())
        made = default_mask.clone()
        if count:
            places = self._scores(t).reshape(-1).topk(count, largest=False)[1]
            made = made.reshape(-1).index_fill(0, places, 0).reshape(made.shape)
        return made


class RandomUnstructured(_ByScores):
    """Prunes elements at random: an amount of them, or a fraction."""

    def _scores(self, t: _C.Tensor) -> _C.Tensor:
        return _C.empty_like(t, dtype=_C.float32).uniform_()


class L1Unstructured(_ByScores):
    """Prunes the elements with the smallest absolute values."""

    def _scores(self, t: _C.Tensor) -> _C.Tensor:
        return t.abs()


class _OfChannels(BasePruningMethod):
    """Prunes the channels of a dimension with the lowest scores."""

    PRUNING_TYPE = "structured"
    amount: float
    dim: int

    def _scores(self, t: _C.Tensor, dim: int) -> _C.Tensor:
        raise NotImplementedError

    def compute_mask(self, t: _C.Tensor, default_mask: _C.Tensor) -> _C.Tensor:
        """The mask without them."""
        dim = _channels_check(t, self.dim)
        count = _count(self.amount, t.shape[dim])
        if not count:
            return default_mask.clone()
        places = self._scores(t, dim).topk(count, largest=False)[1]
        return default_mask.index_fill(dim, places, 0)


class RandomStructured(_OfChannels):
    """Prunes channels at random."""

    def __init__(self, amount: float, dim: int = -1) -> None:
        _amount_check(amount)
        self.amount, self.dim = amount, dim

    def _scores(self, t: _C.Tensor, dim: int) -> _C.Tensor:
        return _C.empty((t.shape[dim],), dtype=_C.float32, device=t.device).uniform_()


class LnStructured(_OfChannels):
    """Prunes the channels with the smallest norms of order n."""

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        _amount_check(amount)
        self.amount, self.n, self.dim = amount, n, dim

    def _scores(self, t: _C.Tensor, dim: int) -> _C.Tensor:
        return t.norm(p=self.n, dim=[one for one in range(t.ndim) if one != dim])


# ---- functions ----


def identity(module: Any, name: str) -> Any:
    """Give a parameter a mask of ones."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: float) -> Any:
    """Prune elements of a parameter at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: float, importance_scores: Any = None) -> Any:
    """Prune the elements of a parameter with the smallest absolute values.

    Parameters
    ----------
    module : Module
        Whose parameter it is; the same is given back.
    name : str
        The parameter.
    amount : int or float
        How many elements, or which part of them.
    importance_scores : Tensor, optional
        What is compared in the place of the parameter.

    Examples
    --------
    >>> import genesis
    >>> from genesis.nn.utils import prune
    >>> layer = prune.l1_unstructured(genesis.nn.Linear(4, 2), "weight", amount=0.5)
    >>> (layer.weight == 0).sum().item(), sorted(layer.state_dict())
    (4, ['bias', 'weight_mask', 'weight_orig'])
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: float, dim: int) -> Any:
    """Prune channels of a parameter at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any, name: str, amount: float, n: Any, dim: int, importance_scores: Any = None
) -> Any:
    """Prune the channels of a parameter with the smallest norms of order n."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: _C.Tensor) -> Any:
    """Prune a parameter by a mask."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prune the elements of several parameters as those of one.

    Parameters
    ----------
    parameters : list of tuple
        Pairs of a module and the name of a parameter.
    pruning_method : class
        Such as :class:`L1Unstructured`.
    importance_scores : dict, optional
        From pairs to what is compared in the place of the parameter.
    kwargs :
        Arguments of the class, such as ``amount``.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    pairs, scores = list(parameters), {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores should be of type dict")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    tensors = [getattr(module, name).detach() for module, name in pairs]
    masks = [
        getattr(module, f"{name}_mask", _C.ones_like(tensor))
        for (module, name), tensor in zip(pairs, tensors, strict=True)
    ]
    compared = [
        scores.get(pair, tensor).detach() for pair, tensor in zip(pairs, tensors, strict=True)
    ]
    mask = PruningContainer(method).compute_mask(
        parameters_to_vector(compared), parameters_to_vector(masks)
    )
    start = 0
    for (module, name), tensor in zip(pairs, tensors, strict=True):
        part = mask[start : start + tensor.numel()].reshape(tensor.shape)
        custom_from_mask(module, name, part)
        start += tensor.numel()


def remove(module: Any, name: str) -> Any:
    """Make a pruned parameter an ordinary one, with zeros where its mask had them.

    Examples
    --------
    >>> import genesis
    >>> from genesis.nn.utils import prune
    >>> layer = prune.random_unstructured(genesis.nn.Linear(2, 2), "weight", amount=3)
    >>> layer = prune.remove(layer, "weight")
    >>> (layer.weight == 0).sum().item(), prune.is_pruned(layer)
    (3, False)
    """
    numbers = _hooks(module, name)
    if not numbers:
        raise ValueError(
            f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
        )
    module._forward_pre_hooks[numbers[0]].remove(module)
    del module._forward_pre_hooks[numbers[0]]
    return module


def is_pruned(module: Any) -> bool:
    """Whether a parameter of a module, or of one in it, is pruned."""
    return any(_hooks(one) for one in module.modules())
