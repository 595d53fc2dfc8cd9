"""The adaptive softmax, for very many classes."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import genesis
from genesis import _C
from genesis.nn import functional as F  # noqa: N812
from genesis.nn.modules.container import ModuleList, Sequential
from genesis.nn.modules.linear import Linear
from genesis.nn.modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from genesis import Tensor

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _Output(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """The cross entropy of very many classes, the most frequent ones first, in clusters.

    The head knows the classes of the first cluster and one class for each other cluster; the tail
    has a smaller projection for each of these, which is computed for its own examples alone.

    Parameters
    ----------
    in_features : int
        Features of the input.
    n_classes : int
        How many classes there are.
    cutoffs : sequence of int
        Where the clusters behind the first one begin, ascending.
    div_value : float
        By how much a cluster's projection is smaller than the one before.
    head_bias : bool
        Whether the head has one.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import genesis
    >>> loss = genesis.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0)
    >>> made = loss(genesis.ones(3, 8), genesis.tensor([0, 5, 19]))
    >>> made.output.shape, made.loss.shape, loss.log_prob(genesis.ones(3, 8)).shape
    ((3,), (), (3, 20))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            sorted(set(cutoffs)) != cutoffs
            or cutoffs[0] <= 0
            or cutoffs[-1] > n_classes - 1
            or any(int(one) != one for one in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                "order, where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        options = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for number, (first, end) in enumerate(pairwise(self.cutoffs), 1):
            size = int(in_features // div_value**number)
            self.tail.append(
                Sequential(
                    Linear(in_features, size, bias=False, **options),
                    Linear(size, end - first, bias=False, **options),
                )
            )

    def reset_parameters(self) -> None:
        """Set the parameters to first values, as those of linear maps."""
        self.head.reset_parameters()
        for one in self.tail:
            for layer in one:
                layer.reset_parameters()

    def _check(self, input: Tensor, target: Tensor) -> None:
        if target.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input.dim() != target.dim() + 1:
            raise RuntimeError(
                f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but "
                f"found inputs with size {input.shape}"
            )
        if target.dim() == 1 and input.shape[0] != target.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")

    def forward(self, input_: Tensor, target_: Tensor) -> _Output:
        """Compute the logarithm of each target's probability, and minus the mean of all."""
        self._check(input_, target_)
        input = input_ if target_.dim() > 0 else input_.unsqueeze(0)
        target = target_ if target_.dim() > 0 else target_.unsqueeze(0)
        if target.numel() > 0 and not bool(((target >= 0) & (target < self.n_classes)).all()):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        at_head = target
        output = input.new_zeros(target.shape[0])
        for number, (first, end) in enumerate(pairwise(self.cutoffs)):
            rows = ((target >= first) & (target < end)).nonzero().flatten()
            if rows.numel() == 0:
                continue
            at_head = at_head.index_fill(0, rows, self.shortlist_size + number)
            logs = F.log_softmax(self.tail[number](input.index_select(0, rows)), dim=1)
            own = (target.index_select(0, rows) - first).unsqueeze(1)
            output = output.index_copy(0, rows, logs.gather(1, own).squeeze(1).to(output.dtype))
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, at_head.unsqueeze(1)).squeeze(1)
        loss = -output.mean()
        return _Output(output if target_.dim() > 0 else output.squeeze(0), loss)

    def _all(self, input: Tensor, head: Tensor) -> Tensor:
        logs = F.log_softmax(head, dim=1)
        parts = [logs[:, : self.shortlist_size]]
        for number, cluster in enumerate(self.tail):
            own = logs[:, self.shortlist_size + number].unsqueeze(1)
            parts.append(F.log_softmax(cluster(input), dim=1) + own)
        return genesis.cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """The logarithms of the probabilities of all classes, (N, classes)."""
        return self._all(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The class with the highest probability of each example."""
        head = self.head(input)
        output: _C.Tensor = genesis.argmax(head, dim=1)
        rows = (output >= self.shortlist_size).nonzero().flatten()
        if rows.numel() == 0:
            return output
        logs = self._all(input.index_select(0, rows), head.index_select(0, rows))
        return output.index_copy(0, rows, genesis.argmax(logs, dim=1))
