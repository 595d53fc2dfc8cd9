"""PyTorch's functions on tensors: computed by PyTorch on the same memory.

Loaded when PyTorch first asks. The rules:

1. Tensors of Genesis among the arguments are shared with PyTorch by DLPack, not copied; what is
   written to them there is seen here.
2. Tensors that come out become tensors of Genesis, again without a copy. PyTorch's own stay as they
   are where they need gradients, or have a dtype, layout or device that Genesis has not.
3. A tensor that was given, as ``out=`` or to be changed in place, comes back as it was given.
4. On a GPU PyTorch computes on its own current stream, which waits for Genesis', which then waits
   for PyTorch's.
"""

from __future__ import annotations

import torch

from genesis import _C, cuda

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Tensor = _C.Tensor

_DTYPES = {
    *(torch.uint16, torch.uint32, torch.uint64),
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
}


class _Sharing:
    """PyTorch's tensors in place of ours for one call, and ours in place of what comes back."""

    def __init__(self) -> None:
        self.given: dict[int, Any] = {}  # by the identity of PyTorch's: what the caller has for it
        self.kept: list[Any] = []  # so that identities stay theirs
        self.devices: set[int] = set()  # GPUs with memory of ours that PyTorch may write to

    def theirs(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            made = torch.from_dlpack(value)
            self.kept.append(made)
            self.given[id(made)] = value
            if made.is_cuda:
                self.devices.add(made.device.index)
            return made
        if isinstance(value, torch.Tensor):
            self.given[id(value)] = value
        elif type(value) in (list, tuple):
            return type(value)(self.theirs(one) for one in value)
        elif type(value) is dict:
            return {name: self.theirs(one) for name, one in value.items()}
        return value

    def ours(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) in self.given:
                return self.given[id(value)]
            is_plain = value.device.type in ("cpu", "cuda") and value.layout == torch.strided
            if not is_plain or value.dtype not in _DTYPES or value.requires_grad:
                return value
            return _C.from_dlpack(value.resolve_neg())
        if type(value) in (list, tuple):
            return type(value)(self.ours(one) for one in value)
        if type(value) is dict:
            return {name: self.ours(one) for name, one in value.items()}
        if hasattr(type(value), "n_sequence_fields"):  # such as torch.return_types.max
            return type(value)(self.ours(one) for one in value)
        return value

    def follow(self) -> None:
        """Let our current streams wait for what PyTorch's were given."""
        for index in self.devices:
            ours, theirs = cuda.current_stream(index), torch.cuda.current_stream(index)
            if ours.cuda_stream != theirs.cuda_stream:
                ours.wait_stream(cuda.ExternalStream(theirs.cuda_stream, device=index))


def function_call(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """What Tensor.__torch_function__ does."""
    if not all(issubclass(one, (Tensor, torch.Tensor)) for one in types):
        return NotImplemented
    sharing = _Sharing()
    try:
        made = func(*sharing.theirs(args), **sharing.theirs(kwargs or {}))
    finally:
        sharing.follow()
    return sharing.ours(made)
