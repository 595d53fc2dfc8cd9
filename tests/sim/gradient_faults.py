"""Each call of the driver fails in turn, in the forward and in the backward pass of networks.

    python tests/sim/gradient_faults.py [few] [NETWORK ...]

After a failure the gradients of leaves are as they were and no memory is left. With retain_graph
the backward pass can be repeated, and gives the bits of one that did not fail; without it a second
one says that the first one failed. `few`: of the calls every third one.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys

import genesis
from genesis import cuda

OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY


def simulator():
    """The library that stands for the driver: sim/control.h says what it can be asked."""
    cuda.set_device(0)
    return ctypes.CDLL(os.environ["GENESIS_CUDA_DRIVER"], mode=os.RTLD_NOLOAD)


def leaves_make():
    """Three matrices."""
    made = []
    for seed in range(3):
        numbers = (genesis.arange(36, device="cuda").float() * 0.7 + seed).sin() * 0.5 + 0.9
        made.append(numbers.reshape(6, 6).clone().requires_grad_())
    return made


# ---- networks ----


def perceptron(x, first, second):
    """Two layers and the cross entropy of them."""
    chances = (genesis.gelu(x @ first) @ second).log_softmax(1)
    return -chances.gather(1, genesis.arange(6, device="cuda").unsqueeze(1)).mean()


def attention(q, k, v):
    """Two heads and a mask."""
    q, k, v = (one.view(6, 2, 3).transpose(0, 1) for one in (q, k, v))
    mask = genesis.ones(6, 6, dtype=genesis.bool, device="cuda").triu(1)
    scores = (q @ k.mT / 3**0.5).masked_fill(mask, -1e9)
    return (scores.softmax(2) @ v).square().sum()


def rows(x, y, z):
    """Sums along rows, the largest of parts, and places."""
    joined = genesis.cat([x.cumsum(1), y], 1)
    return (joined.topk(6, 1).values / z.amax(1, keepdim=True) * z[[0, 1, 1, 2, 5, 5]]).sum()


def writes(x, y, z):
    """In place, and to views."""
    made = x.exp()
    made.mul_(y)
    made[1] = z[0] * 2
    made[:, 2].add_(z[:, 1])
    return (made * made).sum()


def penalty(x, y, z):
    """A loss with gradients in it."""
    loss = (x @ y).tanh().sum()
    found = genesis.autograd.grad(loss, (x, y), create_graph=True)
    return (found[0] * found[1] * z).sum() + loss


NETWORKS = [perceptron, attention, rows, writes, penalty]

# ---- what is tried ----


def gradients_begin(leaves):
    """A gradient of ones for each."""
    for one in leaves:
        one.grad = genesis.ones(6, 6, device="cuda")
    return [one.grad for one in leaves]


def bits(leaves):
    """The elements of all gradients."""
    return [one.grad.tolist() for one in leaves]


ONES = [[[1.0] * 6] * 6] * 3


def run(network, leaves, retain):
    """A loss, if there is one, and what was raised."""
    loss = None
    try:
        loss = network(*leaves)
        loss.backward(retain_graph=retain)
    except RuntimeError as error:
        return loss, str(error)
    return loss, None


def repeat(loss, leaves, retain, expected):
    """What comes after a failure."""
    try:
        loss.backward(retain_graph=True)
    except RuntimeError as error:
        assert not retain and "failed" in str(error), error
        assert bits(leaves) == ONES
        return
    assert bits(leaves) == expected
    gradients_begin(leaves)
    loss.backward(retain_graph=True)
    assert bits(leaves) == expected


def strike(network, leaves, nth, retain, expected):
    """The nth call of the driver fails. Whether there was one."""
    given = gradients_begin(leaves)
    cuda.synchronize()
    cuda.empty_cache("cuda")
    before = cuda.memory_allocated()
    SIMULATOR.sim_control_fail(None, nth, OUT_OF_MEMORY, 0)
    loss, raised = run(network, leaves, retain)
    is_struck = SIMULATOR.sim_control_fault_count() > 0
    SIMULATOR.sim_control_fail(None, 0, 0, 0)
    if raised is None:
        assert bits(leaves) == expected, (network.__name__, nth)
    else:
        assert "memory" in raised, raised
        assert all(one.grad is other for one, other in zip(leaves, given, strict=True))
        assert bits(leaves) == ONES, (network.__name__, nth)
        if loss is not None:
            repeat(loss, leaves, retain, expected)
    del loss, given
    gradients_begin(leaves)
    cuda.synchronize()
    now = cuda.memory_allocated()
    assert now == before, (network.__name__, nth, before, now)
    return is_struck


def main(wanted, step):
    """Every network, with retain_graph and without."""
    leaves, count = leaves_make(), 0
    for network in NETWORKS:
        if wanted and network.__name__ not in wanted:
            continue
        for retain in (True, False):
            gradients_begin(leaves)
            assert run(network, leaves, True)[1] is None
            expected, nth = bits(leaves), 1
            while strike(network, leaves, nth, retain, expected):
                nth += step
                count += 1
            assert nth > 10, network
    return count


if __name__ == "__main__":
    SIMULATOR = simulator()
    gc.disable()  # nothing is in a circle
    words = sys.argv[1:]
    print(main([one for one in words if one != "few"], 3 if "few" in words else 1), "failures")
