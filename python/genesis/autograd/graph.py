"""The graph of operations behind a tensor: looking at it, and what stands for saved values."""

from __future__ import annotations

from genesis import _C
from genesis._C import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

__all__ = ["Node", "Saved", "plot", "save_on_cpu", "saved", "saved_tensors_hooks"]


class saved_tensors_hooks:  # noqa: N801, since it is PyTorch's name
    """What stands for the values that operations save for their gradients.

    In the ``with`` block, ``pack_hook(tensor)`` is called with each value and gives anything;
    ``unpack_hook(packed)`` makes the value of it again in the backward pass.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([2.0], requires_grad=True)
    >>> with genesis.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), genesis.tensor):
    ...     y = x * x
    >>> y.backward()
    >>> x.grad
    tensor([4.])
    """

    def __init__(
        self, pack_hook: Callable[[_C.Tensor], Any], unpack_hook: Callable[[Any], _C.Tensor]
    ) -> None:
        self._pair = (pack_hook, unpack_hook)

    def __enter__(self) -> None:
        _C._push_saved_hooks(self._pair)

    def __exit__(self, *exception: object) -> None:
        _C._pop_saved_hooks()


class save_on_cpu(saved_tensors_hooks):  # noqa: N801
    """Keep saved values in the memory of the CPU, and bring them back in the backward pass.

    Parameters
    ----------
    pin_memory : bool
        Whether the memory is page-locked, which makes copies faster.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.tensor([2.0], requires_grad=True)
    >>> with genesis.autograd.graph.save_on_cpu():
    ...     y = x * x
    >>> y.backward()
    >>> x.grad
    tensor([4.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: _C.Tensor) -> tuple[Any, _C.Tensor]:
            kept = tensor.detach()
            if tensor.device.type == device_type:
                kept = kept.cpu().pin_memory() if pin_memory else kept.cpu()
            return tensor.device, kept

        super().__init__(pack, lambda packed: packed[1].to(packed[0]))


# ---- looking at it ----


def _walk(roots: tuple[_C.Tensor, ...]) -> Iterator[Node]:
    """The operations behind tensors, each once."""
    waiting = [one.grad_fn for one in roots if one.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        yield node
        for behind, _ in node.next_functions:
            if behind is not None and behind not in seen:
                seen.add(behind)
                waiting.append(behind)


class Saved:
    """A value that the graph has saved for a gradient.

    Attributes
    ----------
    operation : str
        Whose gradient needs it, such as ``"ExpBackward0"``.
    location : str
        Where that was called, if memory debugging or profiling was on then.
    shape, dtype :
        Of the value; None if hooks have packed it.
    nbytes : int
        Of its memory; 0 if it is computed again instead, or other values have the memory, too.
    address : int
        Of its memory, 0 without one: leaks are found by it.
    """

    __slots__ = ("address", "dtype", "location", "nbytes", "operation", "shape")

    def __init__(self, node: Node, tensor: _C.Tensor | None, nbytes: int, address: int) -> None:
        self.operation, self.location = node.name(), node.location
        self.shape = None if tensor is None else tensor.shape
        self.dtype = None if tensor is None else tensor.dtype
        self.nbytes, self.address = nbytes, address

    def __repr__(self) -> str:
        kind = "packed" if self.shape is None else f"{self.dtype} {self.shape}"
        return f"Saved({self.operation}, {kind}, {self.nbytes} bytes, {self.location or 'unknown'})"


def saved(*roots: _C.Tensor) -> list[Saved]:
    """List what is saved for gradients, the largest first; memory of leaves is not counted.

    Parameters
    ----------
    roots : Tensor
        Their graphs; without them all operations that were recorded while memory debugging or
        profiling was on.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> y = (x * 2).exp()
    >>> genesis.autograd.saved(y)
    [Saved(ExpBackward0, genesis.float32 (2,), 8 bytes, unknown)]
    """
    nodes = _walk(roots) if roots else _C._listed_nodes()
    found, seen = [], set()
    for node in sorted(nodes, key=lambda one: one._sequence):
        for tensor, nbytes, address, is_leaf in node._saved():
            if not is_leaf:
                is_new = nbytes > 0 and address not in seen
                seen.add(address)
                found.append(Saved(node, tensor, nbytes if is_new else 0, address))
    return sorted(found, key=lambda one: -one.nbytes)


def plot(*roots: _C.Tensor, path: str | None = None) -> str:
    r"""Draw the graph behind tensors: Graphviz text.

    Parameters
    ----------
    roots : Tensor
        Where it begins.
    path : str, optional
        Also write it: as it is, or as a picture if the name ends with .svg or .png and the program
        ``dot`` of Graphviz is installed.

    Examples
    --------
    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> print(genesis.autograd.plot(x.exp().sum()))
    digraph {
      node [shape=box];
      n0 [label="SumBackward0"];
      n1 [label="ExpBackward0\\\nsaves 8 bytes"];
      n2 [label="leaf float32 (2,)", style=filled];
      n1 -> n0;
      n2 -> n1;
    }
    """
    nodes = sorted(_walk(roots), key=lambda one: -one._sequence)
    number = {node: place for place, node in enumerate(nodes)}
    lines = ["digraph {", "  node [shape=box];"]
    for node in nodes:
        label, leaf = node.name(), node.variable
        nbytes = sum(nbytes for _, nbytes, _, is_leaf in node._saved() if not is_leaf)
        if node.location:
            label += "\\n" + node.location.replace('"', "'").replace("\\", "/")
        if nbytes > 0:
            label += f"\\nsaves {nbytes} bytes"
        if leaf is not None:
            label = f"leaf {leaf.dtype.name} {leaf.shape}"
        style = ", style=filled" if leaf is not None else ""
        lines.append(f'  n{number[node]} [label="{label}"{style}];')
    lines += [
        f"  n{number[behind]} -> n{number[node]};"
        for node in nodes
        for behind, _ in node.next_functions
        if behind is not None
    ]
    text = "\n".join([*lines, "}"])
    if path is not None:
        _write(text, path)
    return text


def _write(text: str, path: str) -> None:
    from pathlib import Path

    kind = Path(path).suffix[1:]
    if kind not in ("svg", "png"):
        Path(path).write_text(text + "\n")
        return
    import shutil
    import subprocess

    if (program := shutil.which("dot")) is None:
        raise RuntimeError(
            "plot: Graphviz, whose program dot draws pictures, is not installed; a path that ends "
            "with .dot gets the text"
        )
    subprocess.run([program, f"-T{kind}", "-o", path], input=text.encode(), check=True)
