"""Losses."""

from __future__ import annotations

from genesis.nn import functional as F  # noqa: N812
from genesis.nn.modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from genesis import Tensor

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


def _reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The word for how a loss is reduced; the older arguments say it if they are given."""
    if size_average is None and reduce is None:
        return reduction
    import warnings

    word = "none" if reduce is False else "sum" if size_average is False else "mean"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{word}' instead.",
        stacklevel=4,
    )
    return word


class _Loss(Module):
    """What all losses have."""

    reduction: str

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.reduction = _reduction(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    """And a weight, which is a buffer."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class BCELoss(_WeightedLoss):
    """The cross entropy of two classes: the input is the probability of the second one.

    Parameters
    ----------
    weight : Tensor, optional
        It broadcasts with the elements.
    size_average, reduce : bool, optional
        Deprecated: reduction says it.
    reduction : str
        ``"none"``, ``"mean"`` or ``"sum"`` of the elements' losses.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.BCELoss()(genesis.full((3,), 0.5), genesis.ones(3))
    tensor(0.6931)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_WeightedLoss):
    """The cross entropy of two classes: sigmoid of the input is the probability of the second one.

    Parameters
    ----------
    weight : Tensor, optional
        It broadcasts with the elements.
    size_average, reduce : bool, optional
        Deprecated: reduction says it.
    reduction : str
        ``"none"``, ``"mean"`` or ``"sum"`` of the elements' losses.
    pos_weight : Tensor, optional
        A weight of targets that are 1.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.BCEWithLogitsLoss()(genesis.zeros(3), genesis.ones(3))
    tensor(0.6931)
    """

    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return F.binary_cross_entropy_with_logits(
            input, target, weight=self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class CosineEmbeddingLoss(_Loss):
    """1 less the cosine where the target is 1; what the cosine is above the margin where it is -1.

    Parameters
    ----------
    margin : float
        How far apart is far enough.
    size_average, reduce : bool, optional
        Deprecated: reduction says it.
    reduction : str
        ``"none"``, ``"mean"`` or ``"sum"`` of the elements' losses.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.ones(2, 3)
    >>> genesis.nn.CosineEmbeddingLoss()(x, x, genesis.tensor([1, -1]))
    tensor(0.5000)
    """

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return F.cosine_embedding_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class CrossEntropyLoss(_WeightedLoss):
    """The negative logarithm of softmax of the input at the class of each row.

    Parameters
    ----------
    weight : Tensor, optional
        A number for each class.
    size_average, reduce : bool, optional
        Deprecated: reduction says it.
    ignore_index : int
        A class whose rows do not count.
    reduction : str
        ``"none"``, ``"mean"`` or ``"sum"`` of the elements' losses.
    label_smoothing : float
        The share of the target that goes to all classes, from 0 to 1.

    Examples
    --------
    >>> import genesis
    >>> loss = genesis.nn.CrossEntropyLoss()
    >>> loss(genesis.zeros(3, 4), genesis.tensor([0, 1, 2]))
    tensor(1.3863)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            reduction=self.reduction,
        )


class GaussianNLLLoss(_Loss):
    """The negative logarithm of a normal distribution's density at the target.

    Parameters
    ----------
    full : bool
        Whether parts that do not depend on the input are added.
    eps : float
        The least variance.
    reduction : str
        ``"none"``, ``"mean"`` or ``"sum"`` of the elements' losses.

    Examples
    --------
    >>> import genesis
    >>> one = genesis.ones(2)
    >>> genesis.nn.GaussianNLLLoss()(one, genesis.zeros(2), one)
    tensor(0.5000)
    """

    def __init__(
        self,
        *,
        full: bool = False,
        eps: float = 1e-06,
        reduction: str = "mean",
    ) -> None:
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        """Compute the loss."""
        return F.gaussian_nll_loss(
            input, target, var, full=self.full, eps=self.eps, reduction=self.reduction
        )


class HingeEmbeddingLoss(_Loss):
    """The input where the target is 1; what it lacks to the margin where it is -1.

    Parameters
    ----------
    margin : float
        How far apart is far enough.
    size_average, reduce : bool, optional
        Deprecated: reduction says it.
    reduction : str
        ``"none"``, ``"mean"`` or ``"sum"`` of the elements' losses.

    Examples
    --------
    >>> import genesis
    >>> target = genesis.tensor([1.0, -1.0])
    >>> genesis.nn.HingeEmbeddingLoss()(genesis.zeros(2), target)
    tensor(0.5000)
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class HuberLoss(_Loss):
    """Half the square of input - target, and a line where its size is above delta.

    Parameters
    ----------
    reduction : str
        ``"none"``, ``"mean"`` or ``"sum"`` of the elements' losses.
    delta : float
        Where the parabola ends.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.HuberLoss()(genesis.full((3,), 2.0), genesis.zeros(3))
    tensor(1.5000)
    """

    def __init__(
        self,
        reduction: str = "mean",
        delta: float = 1.0,
    ) -> None:
        super().__init__(None, None, reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return F.huber_loss(input, target, delta=self.delta, reduction=self.reduction)


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence: the input has logarithms of probabilities.

    Parameters
    ----------
    size_average, reduce : bool, optional
        Deprecated: reduction says it.
    reduction : str
        ``"none"``, ``"mean"``, ``"sum"``, or ``"batchmean"``: the sum over the first size.
    log_target : bool
        Whether targets are logarithms of probabilities, too.

    Examples
    --------
    >>> import genesis
    >>> loss = genesis.nn.KLDivLoss(reduction="batchmean")
    >>> loss(genesis.tensor([[0.5, 0.5]]).log(), genesis.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return F.kl_div(input, target, log_target=self.log_target, reduction=self.reduction)


class L1Loss(_Loss):
    """The size of input - target.

    Parameters
    ----------
    size_average, reduce : bool, optional
        Deprecated: reduction says it.
    reduction : str
        ``"none"``, ``"mean"`` or ``"sum"`` of the elements' losses.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.L1Loss()(genesis.ones(3), genesis.zeros(3))
    tensor(1.)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """The square of input - target.

    Parameters
    ----------
    size_average, reduce : bool, optional
        Deprecated: reduction says it.
    reduction : str
        ``"none"``, ``"mean"`` or ``"sum"`` of the elements' losses.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.MSELoss()(genesis.ones(3), genesis.zeros(3))
    tensor(1.)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return F.mse_loss(input, target, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """What the larger input lacks to be so by the margin: the first one where the target is 1.

    Parameters
    ----------
    margin : float
        How far apart is far enough.
    size_average, reduce : bool, optional
        Deprecated: reduction says it.
    reduction : str
        ``"none"``, ``"mean"`` or ``"sum"`` of the elements' losses.

    Examples
    --------
    >>> import genesis
    >>> one = genesis.ones(2)
    >>> genesis.nn.MarginRankingLoss()(one, 2 * one, one)
    tensor(1.)
    """

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return F.margin_ranking_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The cross entropy of two classes for each label, the mean over the labels of a row.

    Parameters
    ----------
    weight : Tensor, optional
        A number for each label.
    size_average, reduce : bool, optional
        Deprecated: reduction says it.
    reduction : str
        ``"none"``, ``"mean"`` or ``"sum"`` of the elements' losses.

    Examples
    --------
    >>> import genesis
    >>> loss = genesis.nn.MultiLabelSoftMarginLoss()
    >>> loss(genesis.zeros(1, 2), genesis.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return F.multilabel_soft_margin_loss(
            input, target, weight=self.weight, reduction=self.reduction
        )


class MultiMarginLoss(_WeightedLoss):
    """What the input at a row's class lacks to be larger than the others by the margin.

    Parameters
    ----------
    p : int
        1 or 2: the power of what lacks.
    margin : float
        How far apart is far enough.
    weight : Tensor, optional
        A number for each class.
    size_average, reduce : bool, optional
        Deprecated: reduction says it.
    reduction : str
        ``"none"``, ``"mean"`` or ``"sum"`` of the elements' losses.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.MultiMarginLoss()(genesis.tensor([[0.5, 1.0, 0.0]]), genesis.tensor([1]))
    tensor(0.1667)
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return F.multi_margin_loss(
            input,
            target,
            weight=self.weight,
            p=self.p,
            margin=self.margin,
            reduction=self.reduction,
        )


class NLLLoss(_WeightedLoss):
    """Minus the input at the class of each row: the input has logarithms of probabilities.

    Parameters
    ----------
    weight : Tensor, optional
        A number for each class.
    size_average, reduce : bool, optional
        Deprecated: reduction says it.
    ignore_index : int
        A class whose rows do not count.
    reduction : str
        ``"none"``, ``"mean"`` or ``"sum"`` of the elements' losses.

    Examples
    --------
    >>> import genesis
    >>> loss = genesis.nn.NLLLoss()
    >>> loss(genesis.log_softmax(genesis.zeros(3, 4), 1), genesis.tensor([0, 1, 2]))
    tensor(1.3863)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return F.nll_loss(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class PoissonNLLLoss(_Loss):
    """The negative logarithm of a Poisson distribution's probability of the target.

    Parameters
    ----------
    log_input : bool
        Whether inputs are logarithms.
    full : bool
        Whether parts that do not depend on the input are added.
    size_average, reduce : bool, optional
        Deprecated: reduction says it.
    eps : float
        What is added to an input before its logarithm.
    reduction : str
        ``"none"``, ``"mean"`` or ``"sum"`` of the elements' losses.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.PoissonNLLLoss()(genesis.zeros(2), genesis.ones(2))
    tensor(1.)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-08,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return F.poisson_nll_loss(
            input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class SmoothL1Loss(_Loss):
    """The size of input - target, and a parabola where that is below beta.

    Parameters
    ----------
    size_average, reduce : bool, optional
        Deprecated: reduction says it.
    reduction : str
        ``"none"``, ``"mean"`` or ``"sum"`` of the elements' losses.
    beta : float
        Where the parabola ends; 0: nowhere is one.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.SmoothL1Loss()(genesis.ones(3), genesis.zeros(3))
    tensor(0.5000)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return F.smooth_l1_loss(input, target, beta=self.beta, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """``log(1 + exp(-target input))``: targets are 1 or -1.

    Parameters
    ----------
    size_average, reduce : bool, optional
        Deprecated: reduction says it.
    reduction : str
        ``"none"``, ``"mean"`` or ``"sum"`` of the elements' losses.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.SoftMarginLoss()(genesis.zeros(2), genesis.ones(2))
    tensor(0.6931)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """What the negative lacks to be further from the anchor than the positive by the margin.

    Parameters
    ----------
    margin : float
        How far apart is far enough.
    p : float
        The norm.
    eps : float
        What is added to each difference.
    swap : bool
        Whether the positive's distance to the negative counts where it is less.
    size_average, reduce : bool, optional
        Deprecated: reduction says it.
    reduction : str
        ``"none"``, ``"mean"`` or ``"sum"`` of the elements' losses.

    Examples
    --------
    >>> import genesis
    >>> zero, one = genesis.zeros(1, 2), genesis.ones(1, 2)
    >>> genesis.nn.TripletMarginLoss(margin=2.0)(zero, zero, one)
    tensor(0.5858)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-06,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Compute the loss."""
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """As :class:`TripletMarginLoss`, with a distance of your own.

    Parameters
    ----------
    distance_function : callable, optional
        Gives the distances of two tensors; None: :class:`PairwiseDistance`.
    margin : float
        How far apart is far enough.
    swap : bool
        Whether the positive's distance to the negative counts where it is less.
    reduction : str
        ``"none"``, ``"mean"`` or ``"sum"`` of the elements' losses.

    Examples
    --------
    >>> import genesis
    >>> def city(x, y):
    ...     return (x - y).abs().sum(-1)
    >>> loss = genesis.nn.TripletMarginWithDistanceLoss(distance_function=city, margin=3.0)
    >>> loss(genesis.zeros(1, 2), genesis.zeros(1, 2), genesis.ones(1, 2))
    tensor(1.)
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(
                "TripletMarginWithDistanceLoss: expected margin to be greater than 0, "
                f"got {margin} instead"
            )
        self.distance_function = distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Compute the loss."""
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
