"""Recurrent layers."""

from __future__ import annotations

import math

import genesis
from genesis import _C
from genesis.nn import functional as F  # noqa: N812
from genesis.nn import init
from genesis.nn.modules.linear import new_parameter
from genesis.nn.modules.module import Module
from genesis.nn.utils.rnn import PackedSequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from genesis import Tensor
    from genesis.nn.parameter import Parameter

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _reset(module: Module, hidden_size: int) -> None:
    """First values of all parameters: uniform between ``+-1/sqrt(hidden_size)``."""
    bound = 1 / math.sqrt(hidden_size) if hidden_size > 0 else 0
    for weight in module.parameters():
        init.uniform_(weight, -bound, bound)


# ---- layers ----


class RNNBase(Module):
    """What :class:`RNN`, :class:`LSTM` and :class:`GRU` have in common.

    Parameters
    ----------
    mode : str
        ``"RNN_TANH"``, ``"RNN_RELU"``, ``"LSTM"`` or ``"GRU"``.
    input_size, hidden_size : int
        Features of the input and of the state.
    num_layers : int
        Each layer gets the output of the one before.
    bias : bool
        Whether there are biases.
    batch_first : bool
        Whether input and output are (batch, steps, features) instead of (steps, batch, features).
    dropout : float
        The probability with which elements between layers become 0 in training.
    bidirectional : bool
        Whether a second direction goes through the steps from the last one.
    proj_size : int
        Features to which an LSTM's state is projected; 0: it is not.
    device, dtype : optional
        Of the parameters.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_arguments(dropout)
        self._weight_names: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ["", "_reverse"][: self._directions]:
                self._add_layer(layer, f"_l{layer}{suffix}", device, dtype)
        self.reset_parameters()

    def _check_arguments(self, dropout: float) -> None:
        for name in ("bias", "batch_first"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")
        for name in ("input_size", "hidden_size", "num_layers"):
            value = getattr(self, name)
            if not isinstance(value, int):
                raise TypeError(f"{name} should be of type int, got: {type(value).__name__}")
            if value <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError("dropout should be a number in range [0, 1]")
        if self.mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {self.mode}")
        if self.proj_size < 0 or (self.proj_size > 0 and self.mode != "LSTM"):
            raise ValueError("proj_size is a positive integer of LSTM alone, or 0")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if dropout > 0 and self.num_layers == 1:
            import warnings

            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                "num_layers=1",
                stacklevel=4,
            )

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def _state_size(self) -> int:
        return self.proj_size if self.proj_size > 0 else self.hidden_size

    def _add_layer(self, layer: int, suffix: str, device: Any, dtype: Any) -> None:
        """The parameters of one direction of a layer."""
        rows, state = _GATES[self.mode] * self.hidden_size, self._state_size
        columns = self.input_size if layer == 0 else state * self._directions
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, columns)}
        shapes["weight_hh"] = (rows, state)
        if self.bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        if self.proj_size > 0:
            shapes["weight_hr"] = (state, self.hidden_size)
        for name, shape in shapes.items():
            self.register_parameter(
                name + suffix, new_parameter(*shape, device=device, dtype=dtype)
            )
        self._weight_names.append([name + suffix for name in shapes])

    def reset_parameters(self) -> None:
        """Set the parameters to first values: uniform between ``+-1/sqrt(hidden_size)``."""
        _reset(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Nothing: parameters need not be one piece of memory here."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each direction of each layer."""
        return [[getattr(self, name) for name in names] for names in self._weight_names]

    # ---- what is given ----

    def _check_input(self, input: Tensor, is_packed: bool) -> None:
        if not is_packed and input.dim() not in (2, 3):
            raise ValueError(
                f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D instead"
            )
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{input.shape[-1]}"
            )
        dtype = getattr(self, self._weight_names[0][0]).dtype
        if input.dtype != dtype and not genesis.is_autocast_enabled(input.device.type):
            raise ValueError(
                f"{type(self).__name__} input dtype ({input.dtype}) does not match weight dtype "
                f"({dtype}). Convert input: input.to({dtype}), or convert model: "
                f"model.to({input.dtype})"
            )

    def _check_state(self, state: Tensor, batch: int, size: int, name: str) -> None:
        right = (self.num_layers * self._directions, batch, size)
        if tuple(state.shape) != right:
            raise RuntimeError(f"Expected {name} size {right}, got {list(state.shape)}")

    def _states(self, hx: Any, input: Tensor, batch: int, is_batched: bool) -> list[Tensor]:
        """The first state, with a batch: of an LSTM h and c."""
        sizes = {"hidden[0]": self._state_size, "hidden[1]": self.hidden_size}
        if self.mode != "LSTM":
            sizes = {"hidden": self.hidden_size}
        if hx is None:
            count = self.num_layers * self._directions
            return [
                genesis.zeros(count, batch, size, dtype=input.dtype, device=input.device)
                for size in sizes.values()
            ]
        given = [*hx] if self.mode == "LSTM" else [hx]
        if len(given) != len(sizes):
            raise RuntimeError(f"there are {len(given)} states: LSTM takes (h_0, c_0)")
        if any(one.dim() != (3 if is_batched else 2) for one in given):
            raise RuntimeError(
                f"For {'batched 3-D' if is_batched else 'unbatched 2-D'} input, hx should also be "
                f"{3 if is_batched else 2}-D but got {given[0].dim()}-D tensor"
            )
        if not is_batched:
            given = [one.unsqueeze(1) for one in given]
        for state, (name, size) in zip(given, sizes.items(), strict=True):
            self._check_state(state, batch, size, name)
        return given

    # ---- computing ----

    def _run(
        self, input: Tensor, states: list[Tensor], batch_sizes: list[int] | None
    ) -> tuple[Tensor, list[Tensor]]:
        """All layers: the output of the last one, and the last states."""
        last: list[list[Tensor]] = [[] for _ in states]
        weights = self.all_weights
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(self._directions):
                number = layer * self._directions + direction
                made = _C._nn._recurrent(
                    input,
                    [state[number] for state in states],
                    weights[number],
                    self.mode,
                    direction == 1,
                    batch_sizes,
                )
                outputs.append(made[0])
                for found, state in zip(last, made[1:], strict=True):
                    found.append(state)
            input = outputs[0] if len(outputs) == 1 else genesis.cat(outputs, -1)
            if self.dropout > 0 and self.training and layer < self.num_layers - 1:
                input = F.dropout(input, self.dropout, True)
        return input, [genesis.stack(found) for found in last]

    def _forward_packed(self, packed: PackedSequence, hx: Any) -> tuple[Any, list[Tensor]]:
        self._check_input(packed.data, True)
        sizes = packed.batch_sizes.tolist()
        states = self._states(hx, packed.data, sizes[0], True)
        if hx is not None and packed.sorted_indices is not None:
            states = [one.index_select(1, packed.sorted_indices) for one in states]
        output, last = self._run(packed.data, states, sizes)
        if packed.unsorted_indices is not None:
            last = [one.index_select(1, packed.unsorted_indices) for one in last]
        made = PackedSequence(
            output, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices
        )
        return made, last

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Compute the output of all steps, and the last state.

        `input` is (steps, batch, features), or (steps, features), or a PackedSequence. `hx` is the
        first state, (layers * directions, batch, features), of an LSTM (h_0, c_0); None: zeros.
        """
        if isinstance(input, PackedSequence):
            output, last = self._forward_packed(input, hx)
            return output, last[0] if len(last) == 1 else tuple(last)
        self._check_input(input, False)
        is_batched = input.dim() == 3
        if not is_batched:
            input = input.unsqueeze(1)
        elif self.batch_first:
            input = input.transpose(0, 1)
        if input.shape[0] == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        states = self._states(hx, input, input.shape[1], is_batched)
        output, last = self._run(input, states, None)
        if not is_batched:
            output, last = output.squeeze(1), [one.squeeze(1) for one in last]
        elif self.batch_first:
            output = output.transpose(0, 1)
        return output, last[0] if len(last) == 1 else tuple(last)

    def extra_repr(self) -> str:
        """The arguments that are not the default ones."""
        words = [f"{self.input_size}, {self.hidden_size}"]
        defaults = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False}
        defaults |= {"dropout": 0, "bidirectional": False}
        for name, value in defaults.items():
            if getattr(self, name) != value:
                words.append(f"{name}={getattr(self, name)}")
        return ", ".join(words)


class RNN(RNNBase):
    """A recurrent network: ``h' = tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh)``.

    Parameters
    ----------
    input_size, hidden_size : int
        Features of the input and of the state.
    num_layers : int
        Each layer gets the output of the one before.
    nonlinearity : str
        ``"tanh"`` or ``"relu"``.
    bias : bool
        Whether there are biases.
    batch_first : bool
        Whether input and output are (batch, steps, features) instead of (steps, batch, features).
    dropout : float
        The probability with which elements between layers become 0 in training.
    bidirectional : bool
        Whether a second direction goes through the steps from the last one.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import genesis
    >>> output, h_n = genesis.nn.RNN(10, 20, 2)(genesis.ones(5, 3, 10))
    >>> output.shape, h_n.shape
    ((5, 3, 20), (2, 3, 20))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        mode = f"RNN_{nonlinearity.upper()}"
        super().__init__(
            mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            0, device, dtype,
        )  # fmt: skip
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """A long short-term memory: gates i, f, g and o, ``c' = f c + i g``, ``h' = o tanh(c')``.

    Parameters
    ----------
    input_size, hidden_size : int
        Features of the input and of the state.
    num_layers : int
        Each layer gets the output of the one before.
    bias : bool
        Whether there are biases.
    batch_first : bool
        Whether input and output are (batch, steps, features) instead of (steps, batch, features).
    dropout : float
        The probability with which elements between layers become 0 in training.
    bidirectional : bool
        Whether a second direction goes through the steps from the last one.
    proj_size : int
        Features to which h is projected; 0: it is not.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import genesis
    >>> output, (h_n, c_n) = genesis.nn.LSTM(10, 20, 2)(genesis.ones(5, 3, 10))
    >>> output.shape, h_n.shape, c_n.shape
    ((5, 3, 20), (2, 3, 20), (2, 3, 20))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, proj_size, device, dtype,
        )  # fmt: skip


class GRU(RNNBase):
    """A gated recurrent unit: gates r, z and n, ``h' = (1 - z) n + z h``.

    Parameters
    ----------
    input_size, hidden_size : int
        Features of the input and of the state.
    num_layers : int
        Each layer gets the output of the one before.
    bias : bool
        Whether there are biases.
    batch_first : bool
        Whether input and output are (batch, steps, features) instead of (steps, batch, features).
    dropout : float
        The probability with which elements between layers become 0 in training.
    bidirectional : bool
        Whether a second direction goes through the steps from the last one.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import genesis
    >>> output, h_n = genesis.nn.GRU(10, 20, bidirectional=True)(genesis.ones(5, 3, 10))
    >>> output.shape, h_n.shape
    ((5, 3, 40), (2, 3, 20))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, 0, device, dtype,
        )  # fmt: skip


# ---- single steps ----


class RNNCellBase(Module):
    """What the cells have in common: one step of a layer.

    Parameters
    ----------
    input_size, hidden_size : int
        Features of the input and of the state.
    bias : bool
        Whether there are biases.
    num_chunks : int
        How many gates there are.
    device, dtype : optional
        Of the parameters.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = new_parameter(rows, input_size, device=device, dtype=dtype)
        self.weight_hh = new_parameter(rows, hidden_size, device=device, dtype=dtype)
        for name in ("bias_ih", "bias_hh"):
            made = new_parameter(rows, device=device, dtype=dtype) if bias else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the parameters to first values: uniform between ``+-1/sqrt(hidden_size)``."""
        _reset(self, self.hidden_size)

    def extra_repr(self) -> str:
        """The arguments that are not the default ones."""
        words = f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")
        kind = getattr(self, "nonlinearity", "tanh")
        return words if kind == "tanh" else f"{words}, nonlinearity={kind}"

    def _step(self, input: Tensor, hx: Any, mode: str, count: int) -> list[Tensor]:
        """The new state: of an LSTM h and c."""
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.shape[-1]} expected "
                f"{self.input_size}"
            )
        rows = input if input.dim() == 2 else input.unsqueeze(0)
        if hx is None:
            zeros = genesis.zeros(
                rows.shape[0], self.hidden_size, dtype=input.dtype, device=input.device
            )
            states = [zeros] * count
        else:
            states = [*hx] if count > 1 else [hx]
            if len(states) != count or any(one.dim() != input.dim() for one in states):
                raise ValueError(
                    f"{name}: hx is {'(h, c)' if count > 1 else 'h'}, of as many dimensions as "
                    "the input"
                )
            states = [one if one.dim() == 2 else one.unsqueeze(0) for one in states]
        right = (rows.shape[0], self.hidden_size)
        if any(tuple(one.shape) != right for one in states):
            raise RuntimeError(f"{name}: Expected hidden size {right}, got {list(states[0].shape)}")
        weights = [self.weight_ih, self.weight_hh]
        if self.bias:
            weights += [self.bias_ih, self.bias_hh]
        made = _C._nn._recurrent(rows.unsqueeze(0), states, weights, mode)[1:]
        return made if input.dim() == 2 else [one.squeeze(0) for one in made]


class RNNCell(RNNCellBase):
    """One step of an :class:`RNN`.

    Parameters
    ----------
    input_size, hidden_size : int
        Features of the input and of the state.
    bias : bool
        Whether there are biases.
    nonlinearity : str
        ``"tanh"`` or ``"relu"``.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.RNNCell(10, 20)(genesis.ones(3, 10)).shape
    (3, 20)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Compute the new state."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(input, hx, f"RNN_{self.nonlinearity.upper()}", 1)[0]


class LSTMCell(RNNCellBase):
    """One step of an :class:`LSTM`.

    Parameters
    ----------
    input_size, hidden_size : int
        Features of the input and of the state.
    bias : bool
        Whether there are biases.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import genesis
    >>> h, c = genesis.nn.LSTMCell(10, 20)(genesis.ones(3, 10))
    >>> h.shape, c.shape
    ((3, 20), (3, 20))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Compute the new state (h, c)."""
        h, c = self._step(input, hx, "LSTM", 2)
        return h, c


class GRUCell(RNNCellBase):
    """One step of a :class:`GRU`.

    Parameters
    ----------
    input_size, hidden_size : int
        Features of the input and of the state.
    bias : bool
        Whether there are biases.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import genesis
    >>> genesis.nn.GRUCell(10, 20)(genesis.ones(3, 10)).shape
    (3, 20)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Compute the new state."""
        return self._step(input, hx, "GRU", 1)[0]
