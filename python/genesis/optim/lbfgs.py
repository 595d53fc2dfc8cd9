"""L-BFGS: a method of Newton's kind that knows curvature from its last steps."""

from __future__ import annotations

import math

from genesis import _C
from genesis._grad_mode import enable_grad, no_grad
from genesis.optim._steps import check_rate
from genesis.optim.optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = ["LBFGS"]


class _Point:
    """A place on the line of a search: how far, the loss, the gradient, and the slope."""

    __slots__ = ("at", "grad", "loss", "slope")

    def __init__(self, at: float, loss: float, grad: Any, slope: float) -> None:
        self.at, self.loss, self.grad, self.slope = at, loss, grad, slope


def _cubic_minimum(a: _Point, b: _Point, low: float, high: float) -> float:
    """Where the cubic through two points with their slopes is least, within bounds."""
    left, right = (a, b) if a.at <= b.at else (b, a)
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.at - b.at)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = math.sqrt(square)
    below = right.slope - left.slope + 2 * d2
    if below == 0:
        return (low + high) / 2.0
    found = right.at - (right.at - left.at) * ((right.slope + d2 - d1) / below)
    return min(max(found, low), high)


class _Search:
    """A search along a line for a point with the strong Wolfe conditions."""

    C1, C2, LEAST = 1e-4, 0.9, 1e-9

    def __init__(self, evaluate: Callable[[float], _Point], start: _Point, most: int) -> None:
        self.evaluate, self.start, self.most = evaluate, start, most
        self.evaluations = 0

    def point(self, at: float) -> _Point:
        """The point at a distance, which is counted."""
        self.evaluations += 1
        return self.evaluate(at)

    def is_too_high(self, point: _Point) -> bool:
        """Whether the loss has not fallen enough."""
        return point.loss > self.start.loss + self.C1 * point.at * self.start.slope

    def is_flat(self, point: _Point) -> bool:
        """Whether the slope is small enough."""
        return abs(point.slope) <= -self.C2 * self.start.slope

    def bracket(self, at: float) -> list[_Point]:
        """A point that will do, or two with one between them; always goes further first."""
        before, point = self.start, self.point(at)
        for i in range(self.most):
            if self.is_too_high(point) or (i > 1 and point.loss >= before.loss):
                return [before, point]
            if self.is_flat(point):
                return [point]
            if point.slope >= 0:
                return [before, point]
            low, high = point.at + 0.01 * (point.at - before.at), point.at * 10
            further = _cubic_minimum(before, point, low, high)
            before, point = point, self.point(further)
        return [self.start, point]

    def inside(self, ends: list[_Point], is_slow: bool) -> tuple[float, bool]:
        """Where to look between two points; and whether the last place was near an end."""
        low, high = sorted(end.at for end in ends)
        at, margin = _cubic_minimum(ends[0], ends[1], low, high), 0.1 * (high - low)
        if min(high - at, at - low) >= margin:
            return at, False
        if is_slow or at >= high or at <= low:
            return (high - margin if abs(at - high) < abs(at - low) else low + margin), False
        return at, True

    def run(self, at: float, size: float) -> _Point:
        """The point that was found. `size` is the largest element of the direction."""
        ends, is_slow = self.bracket(at), False
        ends.sort(key=lambda end: end.loss)  # the lower one first; of two alike the first
        while len(ends) == 2 and self.evaluations <= self.most:
            if abs(ends[1].at - ends[0].at) * size < self.LEAST:
                break
            at, is_slow = self.inside(ends, is_slow)
            point = self.point(at)
            if self.is_too_high(point) or point.loss >= ends[0].loss:
                ends[1] = point
                ends.sort(key=lambda end: end.loss)
                continue
            if self.is_flat(point):
                return point
            if point.slope * (ends[1].at - ends[0].at) >= 0:
                ends[1] = ends[0]
            ends[0] = point
        return ends[0]


class LBFGS(Optimizer):
    """L-BFGS (Liu and Nocedal, 1989), for losses that are not random.

    A step calls its closure several times. There is one group of parameters, on one device.

    Parameters
    ----------
    params : iterable
        Tensors, or pairs of a name and a tensor.
    lr : float or Tensor
        The first distance of a search, or all of them without one.
    max_iter : int
        The most iterations of a step.
    max_eval : int, optional
        The most calls of the closure; 1.25 times `max_iter` without it.
    tolerance_grad : float
        A gradient whose elements are all below ends the step.
    tolerance_change : float
        So does a change of the loss or of the parameters.
    history_size : int
        From how many changes the curvature is known.
    line_search_fn : str, optional
        ``"strong_wolfe"``, or None.
    maximize : bool
        Whether steps go up.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([3.0, -1.0], requires_grad=True)
    >>> optimizer = genesis.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((x - 1) ** 4).sum()
    ...     loss.backward()
    ...     return loss
    >>> _ = optimizer.step(closure)
    >>> bool(((x - 1).abs() < 0.1).all())
    True
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        *,
        maximize: bool = False,
    ) -> None:
        check_rate(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
            "maximize": maximize,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    # ---- all parameters as one vector ----

    @property
    def _params(self) -> list[Any]:
        return self.param_groups[0]["params"]

    def _gradient(self) -> Any:
        parts = [
            _C.zeros_like(param).reshape(-1) if param.grad is None else param.grad.reshape(-1)
            for param in self._params
        ]
        whole = _C.cat(parts).detach()
        return -whole if self.param_groups[0].get("maximize", False) else whole

    def _move(self, distance: float, direction: Any) -> None:
        offset = 0
        for param in self._params:
            count = param.numel()
            part = direction[offset : offset + count].reshape(tuple(param.shape))
            param.add_(part * distance)
            offset += count

    def _loss(self, closure: Callable[[], Any]) -> tuple[Any, float]:
        with enable_grad():
            given = closure()
        loss = float(given)
        return given, -loss if self.param_groups[0].get("maximize", False) else loss

    # ---- the direction ----

    @staticmethod
    def _direction(state: dict[str, Any], grad: Any, history: int) -> Any:
        """The gradient times what is known of the inverse of the Hessian, downwards."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return -grad
        changes, moves, factors = state["old_dirs"], state["old_stps"], state["ro"]
        change, move = grad - state["prev_flat_grad"], state["d"] * state["t"]
        product = float(change.dot(move))
        if product > 1e-10:
            if len(changes) == history:
                for one in (changes, moves, factors):
                    one.pop(0)
            changes.append(change)
            moves.append(move)
            factors.append(1.0 / product)
            state["H_diag"] = product / float(change.dot(change))
        found, weights = -grad, [0.0] * len(changes)
        for i in range(len(changes) - 1, -1, -1):
            weights[i] = float(moves[i].dot(found)) * factors[i]
            found = found - changes[i] * weights[i]
        found = found * state["H_diag"]
        for i in range(len(changes)):
            found = found + moves[i] * (weights[i] - float(changes[i].dot(found)) * factors[i])
        return found

    def _search(
        self, closure: Callable[[], Any], first: float, direction: Any, start: _Point, most: int
    ) -> tuple[_Point, int]:
        """A point along the direction, to which the parameters are not moved yet."""
        kept = [param.detach().clone() for param in self._params]

        def evaluate(at: float) -> _Point:
            self._move(at, direction)
            _, loss = self._loss(closure)
            grad = self._gradient()
            slope = float(grad.dot(direction))
            for param, before in zip(self._params, kept, strict=True):
                param.copy_(before)
            return _Point(at, loss, grad, slope)

        search = _Search(evaluate, start, most)
        found = search.run(first, float(direction.abs().max()))
        return found, search.evaluations

    # ---- the step ----

    @no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Change the parameters until the loss, which `closure` computes, falls no more."""
        group = self.param_groups[0]
        lr, search_name = float(group["lr"]), group["line_search_fn"]
        if search_name not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        given, loss = self._loss(closure)
        if not self._params or all(param.numel() == 0 for param in self._params):
            return given
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        state["func_evals"] += 1
        evaluations, grad, before = 1, self._gradient(), loss
        if float(grad.abs().max()) <= group["tolerance_grad"]:
            return given
        for i in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            state["d"] = direction = self._direction(state, grad, group["history_size"])
            state["prev_flat_grad"], before = grad.clone(), loss
            distance = lr
            if state["n_iter"] == 1:
                distance = min(1.0, 1.0 / float(grad.abs().sum())) * lr
            state["t"] = distance
            slope = float(grad.dot(direction))
            if slope > -group["tolerance_change"]:
                break
            used = 0
            if search_name is not None:
                start, most = _Point(0.0, loss, grad, slope), group["max_eval"] - evaluations
                found, used = self._search(closure, distance, direction, start, most)
                loss, grad, state["t"] = found.loss, found.grad, found.at
                self._move(found.at, direction)
            else:
                self._move(distance, direction)
                if i != group["max_iter"]:
                    _, loss = self._loss(closure)
                    grad, used = self._gradient(), 1
            evaluations += used
            state["func_evals"] += used
            if i == group["max_iter"] or evaluations >= group["max_eval"]:
                break
            if float(grad.abs().max()) <= group["tolerance_grad"]:
                break
            if float((direction * state["t"]).abs().max()) <= group["tolerance_change"]:
                break
            if abs(loss - before) < group["tolerance_change"]:
                break
        state["prev_loss"] = before
        return given
