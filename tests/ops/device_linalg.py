"""genesis.linalg on a GPU, real or simulated: results and gradients are those of the CPU.

``python tests/ops/device_linalg.py``
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import genesis
from genesis import linalg

if TYPE_CHECKING:
    from collections.abc import Callable

    from genesis import Tensor


def positive(x: Tensor) -> Tensor:
    """A symmetric matrix with eigenvalues of at least 1."""
    return x @ x.mT + genesis.eye(x.shape[-1], dtype=x.dtype, device=x.device)


def svd_product(x: Tensor) -> Tensor:
    """The matrix with the squares of its singular values."""
    u, values, vh = linalg.svd(x)
    return (u * values.unsqueeze(-2) ** 2) @ vh


def eigh_product(x: Tensor) -> Tensor:
    """The matrix with the cubes of its eigenvalues."""
    values, vectors = linalg.eigh(x + x.mT)
    return (vectors * values.unsqueeze(-2) ** 3) @ vectors.mT


CASES: list[Callable[[Tensor], Any]] = [
    lambda x: linalg.cholesky(positive(x)),
    lambda x: linalg.solve(x, x * 2 + 1),
    lambda x: linalg.inv(x),
    lambda x: linalg.det(x),
    lambda x: linalg.slogdet(x).logabsdet,
    lambda x: linalg.qr(x).R ** 2,
    svd_product,
    eigh_product,
    lambda x: linalg.pinv(x),
    lambda x: linalg.lstsq(x, x + 1).solution,
    lambda x: linalg.lu(x).U,
    lambda x: linalg.lu(x).L,
    lambda x: linalg.matrix_exp(x),
    lambda x: linalg.cond(x, 1),
    lambda x: linalg.norm(x, "nuc", (-2, -1)),
    lambda x: linalg.solve_triangular(x, x + 2, upper=True),
    lambda x: genesis.lu_solve(x, *linalg.lu_factor(x + 3)),
    lambda x: linalg.matrix_rank(x)[:, None, None] + x,
]


def main() -> None:
    """Every case, and where what fails is."""
    genesis.manual_seed(0)
    numbers = genesis.randn(2, 3, 3, dtype=genesis.float64) + 2 * genesis.eye(3)
    for number, case in enumerate(CASES):
        found = []
        for device in ("cpu", "cuda"):
            x = numbers.to(device).detach().requires_grad_()
            made = case(x)
            made.sum().backward()
            assert made.device.type == x.grad.device.type == device, number
            found.append((made.detach().cpu(), x.grad.cpu()))
        for one, other in zip(*found, strict=True):
            assert genesis.allclose(one, other, rtol=1e-6, atol=1e-8), (number, one, other)
    side = genesis.cuda.Stream()
    with genesis.cuda.stream(side):  # operands that another stream has made
        x = numbers.cuda() * 2
    side.synchronize()
    assert genesis.allclose(linalg.inv(x).cpu(), linalg.inv(numbers * 2))
    singular = genesis.zeros(2, 2, device="cuda")
    for call in (linalg.inv_ex, linalg.cholesky_ex, linalg.lu_factor_ex):
        assert all(one.device.type == "cuda" for one in call(singular))
        assert call(singular).info == 1
    try:
        linalg.inv(singular)
    except linalg.LinAlgError:
        return
    raise AssertionError("a singular matrix has an inverse")


if __name__ == "__main__":
    main()
