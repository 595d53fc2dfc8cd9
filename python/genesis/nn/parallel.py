"""DataParallel, for programs that wrap their model in it: one device computes."""

from __future__ import annotations

from genesis import _C
from genesis.nn.modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["DataParallel", "data_parallel"]


def _device_of(given: Any, output_device: Any) -> _C.device | None:
    """The first of the devices; None: where the model and the inputs are."""
    devices = list(given) if given is not None else []
    if len(devices) > 1:
        import warnings

        warnings.warn(
            f"DataParallel computes on one device, {devices[0]!r}, and not on all of {devices}: "
            "results are the same",
            stacklevel=3,
        )
    first = devices[0] if devices else output_device
    if first is None:
        return None
    return _C.device("cuda", first) if isinstance(first, int) else _C.device(first)


def _moved(one: Any, device: _C.device | None) -> Any:
    """Tensors inside of lists, tuples and dictionaries on another device."""
    if device is None:
        return one
    if isinstance(one, _C.Tensor):
        return one.to(device)
    if isinstance(one, tuple) and hasattr(one, "_fields"):
        return type(one)(*(_moved(item, device) for item in one))
    if isinstance(one, (list, tuple)):
        return type(one)(_moved(item, device) for item in one)
    if isinstance(one, dict):
        return type(one)((key, _moved(item, device)) for key, item in one.items())
    return one


class DataParallel(Module):
    """Call a module, whose parameters have names that begin with ``module.``.

    PyTorch divides each batch among GPUs. Here one device computes the whole batch: the first of
    `device_ids`, or the one where the module is.

    Parameters
    ----------
    module : Module
        What computes.
    device_ids : sequence, optional
        The devices; with more than one there is a warning.
    output_device : optional
        The device if there are no `device_ids`.
    dim : int
        Accepted; nothing is divided.

    Examples
    --------
    >>> import genesis
    >>> model = genesis.nn.DataParallel(genesis.nn.Linear(2, 3))
    >>> model(genesis.ones(1, 2)).shape, list(model.state_dict())
    ((1, 3), ['module.weight', 'module.bias'])
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.module = module
        self.dim = dim
        self._device = _device_of(device_ids, output_device)
        self.device_ids = [] if self._device is None else [self._device.index]
        if self._device is not None:
            module.to(self._device)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.module(*_moved(inputs, self._device), **_moved(kwargs, self._device))


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call a module as :class:`DataParallel` does.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.parallel.data_parallel(genesis.nn.ReLU(), genesis.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    device = _device_of(device_ids, output_device)
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*_moved(given, device), **_moved(module_kwargs or {}, device))
