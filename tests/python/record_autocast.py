"""Writes autocast.json: what autocast makes of calls in PyTorch. It needs a Python that has that.

A call is a text with `t` for the module, evaluated with the tensors of inputs().
"""

from __future__ import annotations

import json
from pathlib import Path

CALLS = [
    "a @ b",
    "t.matmul(a, b)",
    "a.matmul(b)",
    "t.mm(a, b)",
    "t.bmm(c, c)",
    "t.mv(a, v)",
    "t.addmm(a, a, b)",
    "t.baddbmm(c, c, c)",
    "t.addmv(v, a, v)",
    "t.einsum('ij,jk->ik', a, b)",
    "t.nn.functional.linear(a, b)",
    "t.nn.functional.linear(a, b, v)",
    "t.nn.functional.linear(h, b, v)",
    "t.nn.functional.scaled_dot_product_attention(c, c, c)",
    "t.nn.functional.conv2d(p, k)",
    "t.nn.functional.conv1d(c, c)",
    "t.tensordot(a, b, 1)",
    "t.dot(v, v)",
    "t.outer(v, v)",
    "t.cdist(h, h)",
    "t.exp(h)",
    "h.log()",
    "h ** 2",
    "h.pow(2)",
    "2.0 ** h",
    "t.softmax(h, 0)",
    "h.softmax(-1)",
    "t.log_softmax(h, 0)",
    "h.sum()",
    "t.sum(h, 1)",
    "h.sum(dtype=t.float64)",
    "h.prod()",
    "h.mean()",
    "h.cumsum(0)",
    "h.norm()",
    "t.rsqrt(h)",
    "t.tanh(h)",
    "t.nn.functional.relu(h)",
    "t.nn.functional.gelu(h)",
    "h + a",
    "h * 2",
    "t.cat([h, a])",
    "t.stack([h, a])",
    "t.addcmul(a, h, a)",
    "t.atan2(h, a)",
    "t.where(a > 0, h, a)",
    "t.cat([h, h])",
    "a.double() @ b.double()",
    "i @ i",
    "t.nn.functional.mse_loss(h, h)",
    "t.nn.functional.mse_loss(h, a)",
    "t.nn.functional.cross_entropy(h, n)",
    "t.nn.functional.nll_loss(h, n)",
    "t.nn.functional.binary_cross_entropy_with_logits(h, h)",
    "t.nn.functional.layer_norm(h, (4,))",
    "t.nn.functional.layer_norm(h, (4,), v, v)",
    "t.nn.functional.layer_norm(a, (4,), v, v)",
    "t.nn.functional.group_norm(c.to(t.bfloat16), 2)",
    "t.nn.functional.batch_norm(h, None, None, v, v, True)",
    "t.nn.functional.dropout(h, 0.5, False)",
    "t.nn.functional.max_pool2d(p.to(t.bfloat16), 2)",
    "t.nn.functional.embedding(n, a)",
]


def inputs(t):
    """Tensors of all kinds, the same in both libraries."""
    a = (t.arange(16).reshape(4, 4).float() * 0.37 + 0.1).sin()
    return {
        "t": t,
        "a": a,
        "b": (a + 0.3).cos(),
        "h": (a.abs() + 0.5).to(t.bfloat16),
        "c": t.stack([a, a + 1]) / 4,
        "v": a[0],
        "p": t.arange(128).reshape(2, 1, 8, 8).float().sin(),
        "k": t.arange(18).reshape(2, 1, 3, 3).float().cos(),
        "i": t.arange(16).reshape(4, 4),
        "n": t.tensor([0, 3, 1, 2]),
    }


def main() -> None:
    import torch

    results = {}
    for call in CALLS:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            made = eval(call, inputs(torch))  # noqa: S307 - the texts above
        dtype = str(made.dtype).removeprefix("torch.")
        results[call] = [dtype, [round(x, 5) for x in made.double().flatten().tolist()[:8]]]
    lines = [f"{json.dumps(call)}:{json.dumps(made)}" for call, made in results.items()]
    Path(__file__).with_name("autocast.json").write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
