"""Mixed precision: operations in half precision where that is safe.

>>> import genesis
>>> from genesis.amp import GradScaler, autocast
>>> weight = genesis.ones(2, 2, requires_grad=True)
>>> with autocast("cpu", dtype=genesis.bfloat16):
...     y = genesis.ones(2, 2) @ weight
>>> y.dtype
genesis.bfloat16
>>> y.sum().backward()
>>> weight.grad.dtype
genesis.float32

Which operations are converted is listed in ``src/autograd/autocast_policies.c``: PyTorch's lists.
"""

from __future__ import annotations

from genesis.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from genesis.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
