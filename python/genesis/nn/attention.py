"""Which way scaled_dot_product_attention() is computed: there is one, and the switches are kept."""

from __future__ import annotations

from contextlib import contextmanager
from enum import IntEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(IntEnum):
    """PyTorch's ways to compute attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(
    backends: SDPBackend | Sequence[SDPBackend], set_priority: bool = False
) -> Iterator[None]:
    """Set the switches of ``genesis.backends.cuda`` for the time of a block.

    Attention is computed in the same way whatever they say.

    Parameters
    ----------
    backends : SDPBackend or sequence of SDPBackend
        Which are on.
    set_priority : bool
        Accepted: there is no choice.

    Examples
    --------
    >>> import genesis
    >>> from genesis.nn.attention import SDPBackend, sdpa_kernel
    >>> with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
    ...     genesis.backends.cuda.mem_efficient_sdp_enabled()
    False
    """
    from genesis.backends.cuda import sdp_kernel

    given = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not given or not all(isinstance(one, SDPBackend) for one in given):
        raise TypeError(f"sdpa_kernel: an SDPBackend or a list of them, not {backends!r}")
    with sdp_kernel(
        enable_flash=SDPBackend.FLASH_ATTENTION in given,
        enable_math=SDPBackend.MATH in given,
        enable_mem_efficient=SDPBackend.EFFICIENT_ATTENTION in given,
        enable_cudnn=SDPBackend.CUDNN_ATTENTION in given,
    ):
        yield
