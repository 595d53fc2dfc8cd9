"""Autocast and gradient scaling on a GPU: CUDA's list, the types of gradients, steps left out."""

import genesis
from genesis.amp import GradScaler, autocast

HALF, FLOAT, DOUBLE = genesis.float16, genesis.float32, genesis.float64
EXPECTED = {
    "a @ a": HALF,
    "t.mv(a, v)": HALF,
    "t.einsum('ij,jk', a, a)": HALF,
    "t.nn.functional.linear(a, a)": HALF,
    "t.exp(h)": FLOAT,
    "h ** 2": FLOAT,
    "2.0 ** h": FLOAT,
    "h.sum()": FLOAT,
    "h.sum(dtype=t.float64)": DOUBLE,
    "h.prod()": FLOAT,
    "h.mean()": HALF,
    "t.softmax(h, 0)": FLOAT,
    "h.cumsum(0)": FLOAT,
    "h.norm()": FLOAT,
    "t.tanh(h)": HALF,
    "h + a": FLOAT,
    "t.addcmul(a, h, a)": FLOAT,
    "t.addcmul(h, h, h)": HALF,
    "t.atan2(h, a)": FLOAT,
    "t.dot(v, v.half())": FLOAT,
    "t.tensordot(h, h, 1)": HALF,
    "t.tensordot(a, h, 1)": FLOAT,
    "t.cat([h, a])": FLOAT,
    "t.cross(a[:, :3], h[:, :3])": FLOAT,
    "t.exp(h, out=h.clone())": HALF,
    "h.clone().exp_()": HALF,
    "a.double() @ a.double()": DOUBLE,
    "t.ones(2, 2) @ t.ones(2, 2)": FLOAT,
}


class Counter:
    """An optimizer that counts its steps."""

    def __init__(self, parameters):
        self.param_groups = [{"params": parameters}]
        self.steps = 0

    def step(self):
        self.steps += 1


def types():
    a = (genesis.arange(16).reshape(4, 4).float() * 0.37 + 0.1).sin().cuda()
    names = {"t": genesis, "a": a, "h": (a.abs() + 0.5).half(), "v": a[0]}
    for call, dtype in EXPECTED.items():
        with autocast("cuda"):
            made = eval(call, names)
        assert made.dtype == dtype, (call, made.dtype)


def gradients():
    weight = genesis.rand(4, 4, device="cuda", requires_grad=True)
    x = genesis.rand(3, 4, device="cuda")
    with autocast("cuda", dtype=genesis.bfloat16):
        loss = ((x @ weight) @ weight).float().square().mean()
    loss.backward()
    assert weight.grad.dtype == FLOAT
    exact = weight.detach().requires_grad_()
    ((x @ exact) @ exact).square().mean().backward()
    assert genesis.allclose(weight.grad, exact.grad, rtol=0.05, atol=0.05)


def scaling():
    weight = genesis.ones(3, device="cuda", requires_grad=True)
    scaler = GradScaler("cuda", init_scale=4.0, growth_interval=2)
    optimizer, seen = Counter([weight]), []
    for step in range(5):
        weight.grad = None
        factor = float("nan") if step == 3 else 1.0
        scaler.scale((weight * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        seen.append((optimizer.steps, scaler.get_scale()))
    assert seen == [(1, 4.0), (2, 8.0), (3, 8.0), (3, 4.0), (4, 4.0)], seen
    assert weight.grad.tolist() == [1.0] * 3


for part in (types, gradients, scaling):
    part()
    print(part.__name__)
