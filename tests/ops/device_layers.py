"""Layers on a GPU, real or simulated, beside the CPU: the same random numbers, the same results.

python tests/ops/device_layers.py
"""

from __future__ import annotations

from typing import Any

import genesis
import genesis.nn.functional as F  # noqa: N812


def both(call: Any) -> None:
    """A call on both devices, with tensors that it makes for one."""
    found = []
    for device in ("cpu", "cuda"):
        genesis.manual_seed(7)
        found.append(call(device).cpu().float())
    apart = (found[0] - found[1]).abs().max().item()
    assert apart < 2e-5, apart


def drawn(device: str) -> Any:
    """A dropout."""
    return F.dropout(genesis.ones(33, 7, device=device), 0.4)


def attended(device: str) -> Any:
    """Attention with everything that draws or compares."""
    q = genesis.rand(2, 5, 4).to(device)
    return F.scaled_dot_product_attention(q, q, q, dropout_p=0.3, is_causal=True)


def normalized(device: str) -> Any:
    """A norm in training, and what it leaves behind."""
    x = genesis.rand(3, 2, 5).to(device)
    mean, var = genesis.zeros(2, device=device), genesis.ones(2, device=device)
    made = F.batch_norm(x, mean, var, training=True)
    return genesis.cat([made.flatten(), mean, var])


def looked_up(device: str) -> Any:
    """Bags of rows of a table that is renormalized."""
    weight = genesis.rand(4, 3).to(device)
    index = genesis.tensor([[1, 3], [0, 1]], device=device)
    return F.embedding_bag(index, weight, max_norm=0.8, mode="max", padding_idx=0)


def in_bags(device: str) -> Any:
    """Bags that begin at offsets, some of them empty, and gradients."""
    weight = genesis.rand(6, 3).to(device).requires_grad_()
    shares = genesis.rand(5).to(device).requires_grad_()
    index, starts = (genesis.tensor(one, device=device) for one in ([1, 3, 0, 3, 5], [0, 0, 3, 4]))
    made = [
        F.embedding_bag(index, weight, starts, mode="sum", per_sample_weights=shares),
        F.embedding_bag(index, weight, starts, mode="mean", padding_idx=3),
        F.embedding_bag(index, weight, starts, mode="max", include_last_offset=True),
    ]
    found = genesis.cat(made)
    (found * found).sum().backward()
    return genesis.cat([found.detach().flatten(), weight.grad.flatten(), shares.grad])


def sampled(device: str) -> Any:
    """Images at places, some of them outside: sums of rows on the CPU, single taps elsewhere."""
    image = genesis.rand(2, 9, 4, 5).to(device).requires_grad_()
    grid = (genesis.rand(2, 6, 7, 2) * 2.6 - 1.3).to(device).requires_grad_()
    made = [
        F.grid_sample(image, grid, mode, padding, align_corners=False)
        for mode in ("bilinear", "nearest", "bicubic")
        for padding in ("zeros", "border", "reflection")
    ]
    found = genesis.stack(made)
    (found * found).sum().backward()
    return genesis.cat([one.detach().flatten() for one in (found, image.grad, grid.grad / 10)])


if __name__ == "__main__":
    for one in (drawn, attended, normalized, looked_up, in_bags, sampled):
        both(one)
    print("6 calls")
