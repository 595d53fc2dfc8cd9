"""Parameters as one vector, and back."""

from __future__ import annotations

from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _check(parameters: list[_C.Tensor]) -> None:
    places = {one.device for one in parameters}
    if len(places) > 1:
        raise TypeError(
            f"Found two parameters on different devices ({' and '.join(map(str, places))}): this "
            "is currently not supported."
        )


def parameters_to_vector(parameters: Iterable[_C.Tensor]) -> _C.Tensor:
    """All elements of parameters, one parameter after the other.

    Examples
    --------
    >>> import genesis
    >>> from genesis.nn.utils import parameters_to_vector
    >>> parameters_to_vector([genesis.ones(2, 1), genesis.zeros(1)])
    tensor([1., 1., 0.])
    """
    listed = list(parameters)
    _check(listed)
    return _C.cat([one.reshape(-1) for one in listed])


def vector_to_parameters(vec: _C.Tensor, parameters: Iterable[_C.Tensor]) -> None:
    """Give parameters the elements of a vector: they become views of it.

    Examples
    --------
    >>> import genesis
    >>> from genesis.nn.utils import vector_to_parameters
    >>> layer = genesis.nn.Linear(2, 1)
    >>> vector_to_parameters(genesis.arange(3.0), layer.parameters())
    >>> layer.weight.data, layer.bias.data
    (tensor([[0., 1.]]), tensor([2.]))
    """
    if not isinstance(vec, _C.Tensor):
        raise TypeError(f"expected genesis.Tensor, but got: {type(vec).__name__}")
    listed = list(parameters)
    _check(listed)
    start = 0
    for one in listed:
        count = one.numel()
        one.data = vec[start : start + count].view(one.shape).data
        start += count
