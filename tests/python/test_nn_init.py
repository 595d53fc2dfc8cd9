"""First values of parameters: nn.init."""

import math

import pytest

import genesis
from genesis import nn

init = nn.init


@pytest.fixture(autouse=True)
def seeded():
    genesis.manual_seed(1)


def parameter(*shape, **keywords):
    return nn.Parameter(genesis.empty(shape, **keywords))


def test_gains():
    for name in ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose2d", "sigmoid"):
        assert init.calculate_gain(name) == 1
    assert init.calculate_gain("tanh") == 5 / 3 and init.calculate_gain("selu") == 0.75
    assert init.calculate_gain("relu") == math.sqrt(2)
    assert init.calculate_gain("leaky_relu") == pytest.approx(math.sqrt(2 / 1.0001))
    assert init.calculate_gain("leaky_relu", 3) == pytest.approx(math.sqrt(0.2))
    with pytest.raises(ValueError, match="Unsupported nonlinearity gelu"):
        init.calculate_gain("gelu")
    with pytest.raises(ValueError, match="negative_slope True not a valid number"):
        init.calculate_gain("leaky_relu", True)


def test_constants():
    one = parameter(2, 3)
    assert init.constant_(one, 2.5) is one and one.requires_grad and one.is_leaf
    assert one.tolist() == [[2.5] * 3] * 2
    assert init.ones_(one).tolist() == [[1] * 3] * 2
    assert init.zeros_(one).tolist() == [[0] * 3] * 2
    assert init.eye_(one).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert init.eye_(parameter(3, 2, dtype=genesis.bfloat16)).tolist() == [[1, 0], [0, 1], [0, 0]]
    with pytest.raises(ValueError, match="Only tensors with 2 dimensions"):
        init.eye_(parameter(2))


@pytest.mark.parametrize("shape, groups", [((4, 3, 3), 1), ((4, 2, 2, 3), 2), ((3, 3, 1, 2, 3), 3)])
def test_dirac(shape, groups):
    one = init.dirac_(parameter(*shape), groups)
    wanted = genesis.zeros(shape)
    size = shape[0] // groups
    for group in range(groups):
        for channel in range(min(size, shape[1])):
            wanted[(group * size + channel, channel, *(s // 2 for s in shape[2:]))] = 1
    assert one.tolist() == wanted.tolist()
    with pytest.raises(ValueError, match="Only tensors with 3, 4, or 5 dimensions"):
        init.dirac_(parameter(2, 3))
    with pytest.raises(ValueError, match="dim 0 must be divisible by groups"):
        init.dirac_(parameter(3, 3, 3), 2)


def check_uniform(one, bound):
    values = one.detach().float()
    assert values.abs().max().item() <= bound * 1.01
    assert values.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)
    assert values.mean().item() == pytest.approx(0, abs=0.05 * bound)


def check_normal(one, std):
    values = one.detach().float()
    assert values.std().item() == pytest.approx(std, rel=0.05)
    assert values.abs().max().item() > 2.5 * std


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.bfloat16, genesis.float64])
def test_variances(dtype):
    matrix = parameter(50, 200, dtype=dtype)
    kernel = parameter(40, 20, 3, 3, dtype=dtype)
    check_uniform(init.uniform_(matrix, -2, 2), 2)
    check_normal(init.normal_(matrix, std=0.3), 0.3)
    check_uniform(init.xavier_uniform_(matrix, 2.0), 2 * math.sqrt(6 / 250))
    check_uniform(init.xavier_uniform_(kernel), math.sqrt(6 / (60 * 9)))
    check_normal(init.xavier_normal_(kernel, 0.5), 0.5 * math.sqrt(2 / (60 * 9)))
    check_uniform(init.kaiming_uniform_(matrix), math.sqrt(6 / 200))
    check_uniform(init.kaiming_uniform_(matrix, a=math.sqrt(5)), math.sqrt(1 / 200))
    check_uniform(init.kaiming_uniform_(kernel, mode="fan_out"), math.sqrt(6 / 360))
    check_normal(init.kaiming_normal_(kernel, nonlinearity="relu"), math.sqrt(2 / 180))
    check_normal(init.kaiming_normal_(matrix, mode="FAN_OUT", nonlinearity="linear"), 0.02**0.5)
    assert matrix.dtype is dtype and matrix.requires_grad


def test_truncated_normal_distribution():
    one = init.trunc_normal_(parameter(100, 100), mean=0.5, std=2.0, a=-1.0, b=1.5)
    values = one.detach()
    assert -1 <= values.min().item() < -0.9 and 1.4 < values.max().item() <= 1.5
    assert values.mean().item() == pytest.approx(0.281, abs=0.03)  # by numeric integration
    usual = init.trunc_normal_(parameter(100, 100), std=0.02).detach()
    assert usual.std().item() == pytest.approx(0.02, rel=0.05)
    with pytest.warns(UserWarning, match="mean is more than 2 std from"):
        tail = init.trunc_normal_(parameter(50, 50), a=5.0, b=7.0).detach()
    assert tail.min().item() >= 5 and tail.mean().item() == pytest.approx(5.19, abs=0.02)
    half = init.trunc_normal_(parameter(50, 50, dtype=genesis.float16), std=0.1, a=-0.1, b=0.1)
    assert half.dtype is genesis.float16 and half.detach().abs().max().item() <= 0.1


def test_sparse():
    one = init.sparse_(parameter(10, 7), 0.25, std=0.5)
    assert (one == 0).sum(dim=0).tolist() == [3] * 7
    assert len({tuple(column) for column in (one == 0).T.tolist()}) > 1
    with pytest.raises(ValueError, match="Only tensors with 2 dimensions"):
        init.sparse_(parameter(2), 0.5)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (3, 2, 4)])
def test_orthogonal(shape):
    one = init.orthogonal_(parameter(*shape), gain=2.0).detach().reshape(shape[0], -1)
    made = one.T @ one if one.shape[0] >= one.shape[1] else one @ one.T
    found = (made - 4 * genesis.eye(made.shape[0])).abs().max().item()
    assert found < 1e-5


def test_what_is_refused():
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        init.xavier_normal_(parameter(3))
    with pytest.raises(ValueError, match="Mode fan not supported"):
        init.kaiming_normal_(parameter(3, 3), mode="fan")
    with pytest.raises(ValueError, match="2 or more dimensions"):
        init.orthogonal_(parameter(3))
    with pytest.warns(UserWarning, match="zero-element tensors is a no-op"):
        init.kaiming_uniform_(parameter(0, 3))
    assert init.orthogonal_(parameter(0, 3)).shape == (0, 3)


def test_generators():
    generator = genesis.Generator()
    for call in (
        lambda one: init.uniform_(one, generator=generator),
        lambda one: init.trunc_normal_(one, generator=generator),
        lambda one: init.kaiming_normal_(one, generator=generator),
        lambda one: init.xavier_uniform_(one, generator=generator),
        lambda one: init.sparse_(one, 0.5, generator=generator),
    ):
        generator.manual_seed(3)
        first = call(parameter(4, 3)).tolist()
        before = genesis.get_rng_state().tolist()
        generator.manual_seed(3)
        assert call(parameter(4, 3)).tolist() == first
        assert genesis.get_rng_state().tolist() == before
