"""What a forward pass keeps for the backward pass, beside eager PyTorch, and what that costs.

    python bench/bench_saved.py [saved | time] [cpu | cuda]

Ten models are plain functions of names that both libraries have, so one text runs with both.
PyTorch runs a second time with its ready-made functions for norms, dropout, cross entropy and the
LSTM cell; attention is written out everywhere. Counted are

  saved      of PyTorch: the bytes of all storages that its graph has saved, each once, without
             parameters and inputs (torch.autograd.graph.saved_tensors_hooks)
  allocated  after the forward pass, when only the loss is left, minus before:
             genesis.memory_stats() and torch.cuda.memory_allocated(); PyTorch's CPU does not count

Of Genesis it is what is allocated: saved values, statistics and the loss, which takes 512 bytes.

`time` measures forward and backward passes of Genesis in two processes in turns: as it is, and with
GENESIS_RECOMPUTE_LEAST=1TiB, which stores everything; and the peak of each.
"""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy

TOKENS, LENGTH, WIDTH, HEADS = 2048, 256, 512, 8
HIDDEN, CLASSES, EXPERTS = 4 * WIDTH, 8192, 4
RATE, TINY = 0.1, 1e-5
ROUNDS = 9

# ---- functions that are written out -------------------------------------------------------------


def layer_norm(lib: Any, x: Any, scale: Any, shift: Any) -> Any:
    """Rows with mean 0 and variance 1, scaled and shifted."""
    apart = x - x.mean(-1, keepdim=True)
    variance = (apart * apart).mean(-1, keepdim=True)
    return apart * (variance + TINY).rsqrt() * scale + shift


def batch_norm(lib: Any, x: Any, scale: Any, shift: Any) -> Any:
    """The same of columns."""
    apart = x - x.mean(0, keepdim=True)
    variance = (apart * apart).mean(0, keepdim=True)
    return apart * (variance + TINY).rsqrt() * scale + shift


def dropout(lib: Any, x: Any) -> Any:
    """The mask has a byte for each element."""
    mask = lib.rand(x.shape, device=x.device) >= RATE
    return x * mask * (1 / (1 - RATE))


def cross_entropy(lib: Any, x: Any, target: Any) -> Any:
    """The mean over rows."""
    return -x.log_softmax(1).gather(1, target).mean()


def lstm_cell(lib: Any, x: Any, h: Any, c: Any, p: dict[str, Any]) -> tuple[Any, Any]:
    """The next state."""
    gates = x @ p["wx"] + h @ p["wh"] + p["b"]
    i, f, g, o = gates.chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def written(lib: Any) -> SimpleNamespace:
    """The functions above, and two that are ready in both libraries."""
    ready = lib if lib.__name__ == "genesis" else lib.nn.functional
    return SimpleNamespace(
        lib=lib,
        gelu=ready.gelu,
        silu=ready.silu,
        layer_norm=layer_norm,
        batch_norm=batch_norm,
        dropout=dropout,
        cross_entropy=cross_entropy,
        lstm_cell=lstm_cell,
    )


def ready_made(lib: Any) -> SimpleNamespace:
    """PyTorch's own. Dropout is what it runs on GPUs, whose mask has a byte for each element."""
    own = lib.nn.functional
    return SimpleNamespace(
        lib=lib,
        gelu=own.gelu,
        silu=own.silu,
        layer_norm=lambda lib, x, scale, shift: own.layer_norm(x, (WIDTH,), scale, shift, TINY),
        batch_norm=lambda lib, x, scale, shift: own.batch_norm(
            x, None, None, scale, shift, True, 0.1, TINY
        ),
        dropout=lambda lib, x: lib.native_dropout(x, RATE, True)[0],
        cross_entropy=lambda lib, x, target: own.cross_entropy(x, target.view(-1)),
        lstm_cell=lambda lib, x, h, c, p: lib.lstm_cell(
            x, (h, c), p["wx"].t(), p["wh"].t(), p["b"], p["b"]
        ),
    )


# ---- models: a loss of functions, parameters and inputs -----------------------------------------


def mlp(f: Any, p: dict[str, Any], x: Any, target: Any) -> Any:
    """Three layers with biases."""
    h = (x @ p["w1"] + p["b1"]).relu()
    h = (h @ p["w2"] + p["b2"]).relu()
    return ((h @ p["w3"] + p["b3"]) ** 2).mean()


def attention(f: Any, p: dict[str, Any], x: Any) -> Any:
    """All heads, with a dropout of the weights."""
    shape = (TOKENS // LENGTH, LENGTH, HEADS, WIDTH // HEADS)
    q, k, v = (one.reshape(shape).transpose(1, 2) for one in (x @ p["qkv"]).chunk(3, 1))
    scores = q @ k.transpose(2, 3) * (1 / shape[3] ** 0.5)
    scores = scores.masked_fill(p["future"], -1e9)
    weights = f.dropout(f.lib, scores.softmax(-1))
    return (weights @ v).transpose(1, 2).reshape(TOKENS, WIDTH) @ p["out"]


def feed_forward(f: Any, p: dict[str, Any], x: Any) -> Any:
    """Two layers with a GELU."""
    return f.gelu(x @ p["w1"] + p["b1"]) @ p["w3"] + p["b3"]


def pre_norm(f: Any, p: dict[str, Any], x: Any, target: Any) -> Any:
    """A transformer block whose norms come first."""
    x = x * p["s0"]  # so that the block's input is a result, too
    h = f.layer_norm(f.lib, x, p["s1"], p["t1"])
    x = x + f.dropout(f.lib, attention(f, p, h))
    h = f.layer_norm(f.lib, x, p["s2"], p["t2"])
    x = x + f.dropout(f.lib, feed_forward(f, p, h))
    return (x * x).mean()


def post_norm(f: Any, p: dict[str, Any], x: Any, target: Any) -> Any:
    """A transformer block whose norms come last."""
    x = x * p["s0"]
    x = f.layer_norm(f.lib, x + f.dropout(f.lib, attention(f, p, x)), p["s1"], p["t1"])
    x = f.layer_norm(f.lib, x + f.dropout(f.lib, feed_forward(f, p, x)), p["s2"], p["t2"])
    return (x * x).mean()


def swiglu(f: Any, p: dict[str, Any], x: Any, target: Any) -> Any:
    """A gated feed-forward network."""
    return ((f.silu(x @ p["w1"]) * (x @ p["w4"]) @ p["w3"]) ** 2).mean()


def geglu(f: Any, p: dict[str, Any], x: Any, target: Any) -> Any:
    """The same with a GELU."""
    return ((f.gelu(x @ p["w1"]) * (x @ p["w4"]) @ p["w3"]) ** 2).mean()


def residual(f: Any, p: dict[str, Any], x: Any, target: Any) -> Any:
    """Two products with batch norms beside a shortcut."""
    x = x * p["s0"]
    h = f.batch_norm(f.lib, x @ p["v1"], p["s1"], p["t1"]).relu()
    h = f.batch_norm(f.lib, h @ p["v2"], p["s2"], p["t2"])
    return ((h + x).relu() ** 2).mean()


def lstm(f: Any, p: dict[str, Any], x: Any, target: Any) -> Any:
    """Two steps of a cell."""
    h = c = f.lib.zeros((TOKENS, WIDTH), device=x.device)
    for _ in range(2):
        h, c = f.lstm_cell(f.lib, x, h, c, p)
    return (h * h).mean()


def embedding(f: Any, p: dict[str, Any], x: Any, target: Any) -> Any:
    """Rows of a table, and a loss over many classes."""
    return f.cross_entropy(f.lib, p["table"][target.view(-1)] @ p["classes"], target)


def batch_norm_relu(f: Any, p: dict[str, Any], x: Any, target: Any) -> Any:
    """Between two products."""
    h = f.batch_norm(f.lib, x @ p["v1"], p["s1"], p["t1"]).relu()
    return (h @ p["v2"] * 2.0).relu().mean()


def experts(f: Any, p: dict[str, Any], x: Any, target: Any) -> Any:
    """Each token goes to the two experts of the largest gates."""
    gates = (x @ p["gate"]).softmax(1)
    weights, chosen = gates.topk(2, 1)
    out = x * 0.0
    for e in range(EXPERTS):
        rows = (chosen == e).nonzero()
        tokens = rows[:, 0]
        h = f.gelu(x[tokens] @ p[f"e{e}"]) @ p[f"d{e}"]
        out = out.index_add(0, tokens, h * weights[tokens, rows[:, 1]].reshape(-1, 1))
    return (out * out).mean()


MODELS: dict[str, Callable[..., Any]] = {
    "MLP": mlp,
    "pre-norm block": pre_norm,
    "post-norm block": post_norm,
    "SwiGLU": swiglu,
    "GEGLU": geglu,
    "residual block": residual,
    "LSTM cell, 2 steps": lstm,
    "embedding + cross entropy": embedding,
    "batch norm + ReLU": batch_norm_relu,
    "mixture of experts": experts,
}

# ---- parameters ---------------------------------------------------------------------------------

SHAPES = {
    "w1": (WIDTH, HIDDEN), "b1": (HIDDEN,), "w2": (HIDDEN, HIDDEN), "b2": (HIDDEN,),
    "w3": (HIDDEN, WIDTH), "b3": (WIDTH,), "w4": (WIDTH, HIDDEN), "qkv": (WIDTH, 3 * WIDTH),
    "out": (WIDTH, WIDTH), "s0": (WIDTH,), "s1": (WIDTH,), "t1": (WIDTH,), "s2": (WIDTH,),
    "t2": (WIDTH,), "v1": (WIDTH, WIDTH), "v2": (WIDTH, WIDTH), "wx": (WIDTH, 4 * WIDTH),
    "wh": (WIDTH, 4 * WIDTH), "b": (4 * WIDTH,), "table": (CLASSES, WIDTH),
    "classes": (WIDTH, CLASSES), "gate": (WIDTH, EXPERTS),
    **{f"e{e}": (WIDTH, HIDDEN) for e in range(EXPERTS)},
    **{f"d{e}": (HIDDEN, WIDTH) for e in range(EXPERTS)},
}  # fmt: skip


def material(lib: Any, device: str) -> tuple[dict[str, Any], Any, Any]:
    """Parameters, inputs and targets: the same numbers for both libraries."""
    numbers = numpy.random.default_rng(0)
    p = {}
    for name, shape in SHAPES.items():
        values = numbers.normal(1 if name[0] == "s" else 0, 0.05, shape).astype(numpy.float32)
        p[name] = lib.tensor(values).to(device).requires_grad_()
    future = numpy.triu(numpy.ones((LENGTH, LENGTH), bool), 1)
    p["future"] = lib.tensor(future).to(device)
    x = numbers.normal(size=(TOKENS, WIDTH)).astype(numpy.float32)
    target = numbers.integers(0, CLASSES, (TOKENS, 1))
    return p, lib.tensor(x).to(device), lib.tensor(target).to(device)


# ---- counting -----------------------------------------------------------------------------------


def torch_saved(f: Any, model: Callable[..., Any], device: str) -> tuple[int, int]:
    """Bytes of what PyTorch's graph has saved, and what its GPU has allocated for it."""
    torch = f.lib
    p, x, target = material(torch, device)
    known = {one.untyped_storage().data_ptr() for one in [*p.values(), x, target]}
    found = {}

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            found[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = model(f, p, x, target)  # while it lives, no storage takes another's address
    saved = sum(found.values())
    del loss
    allocated = 0
    if device == "cuda":
        before = torch.cuda.memory_allocated()
        loss = model(f, p, x, target)
        allocated = torch.cuda.memory_allocated() - before
        del loss
    return saved, allocated


def genesis_saved(model: Callable[..., Any], device: str) -> int:
    """Bytes that are allocated after a forward pass, and were not before."""
    import genesis

    p, x, target = material(genesis, device)
    model(written(genesis), p, x, target).backward()  # what is made once is there
    for one in p.values():
        one.grad = None
    gc.collect()

    def allocated() -> int:
        genesis.flush()
        if device == "cuda":
            genesis.cuda.synchronize()
        return genesis.memory_stats(device).allocated_bytes

    before = allocated()
    loss = model(written(genesis), p, x, target)
    after = allocated()
    del loss
    left = allocated() - before
    assert left == 0, left
    return after - before


def saved_table(device: str) -> None:
    """Prints the table of what is saved."""
    import torch

    print(
        f"MiB that are kept for the backward pass, float32, {device}, "
        f"PyTorch {torch.__version__}:\n"
    )
    print("| model | PyTorch, written out | PyTorch, ready made | Genesis | of ready made |")
    print("|---|---:|---:|---:|---:|")
    for name, model in MODELS.items():
        plain = torch_saved(written(torch), model, device)
        ready = torch_saved(ready_made(torch), model, device)
        own = genesis_saved(model, device)
        sides = [f"{saved / 2**20:.1f}" + (f" ({allocated / 2**20:.1f})" if allocated else "")
                 for saved, allocated in (plain, ready)]  # fmt: skip
        least = ready[0]
        print(f"| {name} | {sides[0]} | {sides[1]} | {own / 2**20:.1f} | {own / least:.0%} |")
    if device == "cuda":
        print("\nIn parentheses: what torch.cuda.memory_allocated() has grown by.")


# ---- timing -------------------------------------------------------------------------------------


def work(device: str) -> None:
    """A process that times one model for each line that it reads."""
    import genesis

    p, x, target = material(genesis, device)
    for line in sys.stdin:
        genesis.flush()
        before = genesis.memory_stats(device).allocated_bytes
        genesis._C.MemoryManager(device).reset_peaks()
        start, processor = time.perf_counter(), time.process_time()
        model = MODELS[line.strip()]
        loss = model(written(genesis), p, x, target)
        loss.backward()
        genesis.flush()
        if device == "cuda":
            genesis.cuda.synchronize()
        seconds = time.perf_counter() - start
        processor = time.process_time() - processor
        peak = genesis.memory_stats(device).peak_allocated
        del loss
        for one in p.values():
            one.grad = None
        print(seconds, processor, peak - before, flush=True)


def time_table(device: str) -> None:
    """Prints the table of times and peaks."""
    sides = []
    for least in ("1TiB", "1MiB"):
        environment = os.environ | {"GENESIS_RECOMPUTE_LEAST": least}
        sides.append(
            subprocess.Popen(
                [sys.executable, __file__, "work", device],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )  # fmt: skip
        )
    print(f"Forward and backward pass, {device}, medians of {ROUNDS} rounds in turns;")
    print("ratios of the times on the clock, and of the processors' times:\n")
    print("| model | stored, ms | again, ms | clock | processors | stored, peak MiB | again |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in MODELS:
        rounds: list[list[list[float]]] = []
        for _ in range(ROUNDS + 1):
            rounds.append([])
            for side in sides:
                assert side.stdin is not None and side.stdout is not None
                side.stdin.write(name + "\n")
                side.stdin.flush()
                rounds[-1].append([float(one) for one in side.stdout.readline().split()])
        del rounds[0]
        old, new = (statistics.median(one[i][0] for one in rounds) * 1e3 for i in range(2))
        ratios = [statistics.median(one[1][i] / one[0][i] for one in rounds) for i in range(2)]
        peaks = [max(one[i][2] for one in rounds) / 2**20 for i in range(2)]
        print(
            f"| {name} | {old:.1f} | {new:.1f} | {ratios[0]:.3f} | {ratios[1]:.3f} "
            f"| {peaks[0]:.1f} | {peaks[1]:.1f} |",
            flush=True,
        )
    for side in sides:
        assert side.stdin is not None
        side.stdin.close()
        side.wait()


def main() -> None:
    """What the command line asks for."""
    what = sys.argv[1] if len(sys.argv) > 1 else "saved"
    device = sys.argv[2] if len(sys.argv) > 2 else "cpu"
    {"saved": saved_table, "time": time_table, "work": work}[what](device)


if __name__ == "__main__":
    main()
