"""What type checkers must accept: everyday calls, by PyTorch's names and by NumPy's."""

import numpy as np

import genesis
from genesis import Tensor

x = genesis.ones(2, 3)
y = genesis.zeros((2, 3), dtype=genesis.float32)

total: Tensor = genesis.add(x, y, alpha=2)
total = x.add(1.5).sub_(y, alpha=0.5)
total = genesis.add(2, x)
total = genesis.div(x, y, rounding_mode="floor")
total = x.round(decimals=2)
total = genesis.gelu(x, approximate="tanh")
total = x.sum(axis=0, keepdims=True)
total = x.sum(0)
total = x.mean((0, 1), keepdim=True, dtype=genesis.float64)
total = genesis.amax(x, dim=-1)
total = x.clamp(min=0).clamp_(max=y)
total = genesis.addcmul(x, x, y, value=2)
total = genesis.maximum(x, np.ones((2, 3)))
total = genesis.where(x > 0, x, 0)
total = x.view(3, 2).view((6,)).reshape(-1)
total = x.view(genesis.int32)
total = x[0, :1] @ y.T[:1]
total = -(x**2) / 3 + x % 2
number: float = x.sum().item()
shape: tuple[int, ...] = x.shape
name: str = x.dtype.name
live: int = genesis.memory_stats().allocated_bytes
is_there: bool = genesis.cuda.is_available()
values = genesis.sort(x, dim=0).values
genesis.save({"x": x}, "x.safetensors")
w = genesis.rand(2, 3, requires_grad=True)
(w * x).sum().backward(retain_graph=True)
gradient: Tensor | None = w.grad
w.grad = None
gradients: tuple[Tensor | None, ...] = genesis.autograd.grad(w.sum(), [w], create_graph=True)
with genesis.no_grad(), genesis.set_grad_enabled(True):
    total = w.detach().requires_grad_()
