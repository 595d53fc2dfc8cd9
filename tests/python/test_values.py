"""Values at the edges, each of which was wrong once."""

from __future__ import annotations

import math

import numpy
import pytest

import genesis

INFINITY = math.inf


def test_fmod_beside_the_least_integer():
    assert genesis.fmod(
        genesis.tensor([1.25]), genesis.tensor([-128], dtype=genesis.int8)
    ).tolist() == [1.25]
    assert genesis.fmod(genesis.tensor([-128], dtype=genesis.int8), 127).tolist() == [-1]
    x = genesis.tensor([-4.0, 5.5, INFINITY, 3.0])
    made = genesis.fmod(x, genesis.tensor([2.0, -INFINITY, 2.0, 0.0]))
    assert made[:2].tolist() == [-0.0, 5.5] and made[0].signbit() and made[2:].isnan().all()


def test_hypot_of_two_types():
    x = genesis.tensor([2**24 + 1], dtype=genesis.int32)
    made = genesis.hypot(x, genesis.tensor([0.0], dtype=genesis.float64))
    assert made.item() == 2**24 + 1 and made.dtype == genesis.float64
    assert genesis.hypot(genesis.tensor([3e38]), genesis.tensor([1e38])).item() == numpy.float32(
        numpy.hypot(3e38, 1e38)
    )
    assert genesis.hypot(genesis.tensor([math.nan]), -INFINITY).item() == INFINITY


def test_lerp_meets_both_ends():
    assert genesis.lerp(genesis.tensor([1e8]), 2.5, 1.0).tolist() == [2.5]
    assert genesis.lerp(genesis.tensor([1e8]), 2.5, 0.0).tolist() == [1e8]
    half = genesis.tensor([60000.0, -60000.0], dtype=genesis.float16)
    assert genesis.lerp(half, -half, 0.5).tolist() == [0.0, 0.0]
    assert genesis.lerp(half, -half, 0.25).tolist() == [30000.0, -30000.0]
    for dtype, top in ((genesis.float32, 3e38), (genesis.float64, 1.7e308)):
        x = genesis.tensor([-top], dtype=dtype)
        assert genesis.lerp(x, -x, 0.5).tolist() == [0.0]
        assert genesis.lerp(x, -x, 0.75).item() == pytest.approx(top / 2)
    x = genesis.tensor([4.0])
    assert x.lerp_(8, weight=0.25) is x and x.tolist() == [5.0]


def test_clamp_has_one_type():
    x = genesis.tensor([-15295, 5], dtype=genesis.int32)
    least = genesis.tensor([1, -20000], dtype=genesis.int16)
    most = genesis.tensor([70000, -70000], dtype=genesis.int32)
    assert genesis.clamp(x, least, most).tolist() == [1, -70000]
    number = genesis.tensor(50241, dtype=genesis.int32)  # beside int16 alone it would be -15295
    assert genesis.clamp(number, least[:1], most[:1]).tolist() == [50241]
    byte = genesis.tensor([200, 3], dtype=genesis.uint8)
    signed = genesis.tensor([-100, 100], dtype=genesis.int8)
    made = byte.clamp(signed, genesis.tensor([300, 300]))
    assert made.dtype == genesis.int64 and made.tolist() == [200, 100]
    assert byte.clamp(-5, 1000).tolist() == [200, 3] and byte.clamp(-5, 1000).dtype == genesis.uint8
    assert genesis.tensor([1, 9]).clamp(2.5, 4).tolist() == [2.5, 4.0]
    assert genesis.tensor([math.nan, 7.0]).clamp(0, 1)[0].isnan().item()


def test_statistics_do_not_overflow():
    x = genesis.tensor([60000.0, -60000.0, 1000.0], dtype=genesis.float16)
    std, mean = genesis.std_mean(x)
    assert std.item() == x.std().item() == numpy.float16(numpy.std([60000.0, -60000, 1000], ddof=1))
    assert genesis.std(genesis.tensor([1e30, -1e30])).item() == pytest.approx(math.sqrt(2) * 1e30)
    assert genesis.norm(genesis.tensor([3e30, 4e30])).item() == pytest.approx(5e30)
    # The mean is no float32: rounded to one, it is farther from the elements than they are.
    x = genesis.tensor([1e8, 1e8 + 8, 1e8 + 8])
    assert genesis.var(x).item() == pytest.approx(64 / 3) and mean.dtype == genesis.float16
    many = genesis.ones(4000, dtype=genesis.float16) * 60000
    assert genesis.nanmean(many).item() == 60000
    with pytest.raises(TypeError, match="^var: elements are floating numbers, not genesis.int64$"):
        genesis.tensor([1, 2]).var()
    large = genesis.arange(10001).to(genesis.float16)
    assert genesis.quantile(large, 0.1234).item() == 1234


def test_a_number_is_all_that_it_has():
    values, indices = genesis.tensor(3.0).topk(0)
    assert values.item() == 3.0 and indices.item() == 0
    assert [one.shape for one in genesis.tensor([3.0]).topk(0)] == [(0,), (0,)]


def test_integers_are_rounded():
    x = genesis.tensor([15, 25, -15, -25, 14, 16, 2**62 + 5])
    assert x.round(decimals=-1).tolist() == [20, 20, -20, -20, 10, 20, 4611686018427387910]
    assert genesis.tensor([149, 151, 250]).round(decimals=-2).tolist() == [100, 200, 200]
    assert x.round(decimals=2).tolist() == x.tolist() and x.round(decimals=-30).tolist() == [0] * 7
    half = genesis.tensor([1000.125], dtype=genesis.float16)
    assert half.round(decimals=2).item() == 1000.0
    top = genesis.tensor([3e38])
    assert top.round(decimals=3).tolist() == top.tolist()


@pytest.mark.parametrize("chance", [1.5, -0.1, math.nan])
def test_chances(chance):
    with pytest.raises(ValueError, match="^bernoulli_: a chance is from 0 to 1, not"):
        genesis.empty(3).bernoulli_(chance)
    with pytest.raises(ValueError, match="^bernoulli: a chance is from 0 to 1, not"):
        genesis.bernoulli(genesis.tensor([0.5, chance]))


def test_parts_are_not_negative():
    with pytest.raises(genesis.ShapeError, match="^split: "):
        genesis.arange(10).split([5, -5, 10])
    for repeats in (2**62, genesis.tensor([2**62, 2**62, 2**62])):
        with pytest.raises((genesis.ShapeError, genesis.OutOfMemoryError, OverflowError)):
            genesis.ones(3).repeat_interleave(repeats)


def test_alpha_is_in_the_type_of_both():
    x, y = genesis.tensor([1], dtype=genesis.int32), genesis.tensor([100], dtype=genesis.int8)
    assert genesis.add(x, y, alpha=100).tolist() == [10001]
    assert genesis.sub(x, y, alpha=100).tolist() == [-9999]
    half = genesis.tensor([60000.0], dtype=genesis.float16)
    assert genesis.sub(half, half, alpha=2).tolist() == [-60000.0]
    assert x.clone().add_(y, alpha=100).tolist() == [10001]


def test_uniform_over_all_numbers():
    x = genesis.empty(1000).uniform_(-3e38, 3e38, generator=genesis.Generator().manual_seed(1))
    assert x.isfinite().all() and x.amin() < -1e38 and x.amax() > 1e38


def test_a_million_numbers_become_halves_at_once():
    x = numpy.random.default_rng(0).standard_normal(1_000_000)
    assert (genesis.tensor(x).half().numpy() == x.astype(numpy.float16)).all()
    assert (
        genesis.tensor(x[:5000].tolist(), dtype=genesis.float16).numpy() == x[:5000].astype("f2")
    ).all()


def test_a_mask_of_no_elements():
    """As in NumPy: none is true, so it may stand for a dimension of any size."""
    none, array = genesis.zeros(0, dtype=genesis.bool), numpy.zeros(0, bool)
    x = genesis.arange(6).reshape(3, 2)
    for key, own in (
        (none, array),
        (none.reshape(0, 0), array.reshape(0, 0)),
        (none.reshape(3, 0), array.reshape(3, 0)),
    ):
        assert x[key].shape == x.numpy()[own].shape
    x[none] = 7
    assert x.tolist() == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(IndexError, match="does not fit dimension 0"):
        x[genesis.zeros(5, 0, dtype=genesis.bool)]


def test_integers_of_lists_with_floats():
    """Integers do not go through float64, which has not all of them."""
    numbers = [2**63 - 1, -(2**63), 2**53 + 1, 1.9, -1.9]
    assert genesis.tensor(numbers, dtype="int64").tolist() == [*numbers[:3], 1, -1]
    assert genesis.tensor([-(2.0**63)], dtype="int64").tolist() == [-(2**63)]
    for number in (2.0**63, float("nan"), float("inf")):
        with pytest.raises(OverflowError):
            genesis.tensor([number], dtype="int64")


def test_arrays_that_are_refused_beside_words_for_a_dtype():
    """The word is understood, and the refusal of the array is what is raised."""
    for array in (numpy.array(["a"]), numpy.array([1j]), numpy.array([object()])):
        for dtype in ("float32", numpy.float32, genesis.float32):
            with pytest.raises(TypeError, match="have no dtype here"):
                genesis.tensor(array, dtype=dtype)
