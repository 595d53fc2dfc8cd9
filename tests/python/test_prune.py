"""Pruning of parameters: masks, one after the other, over several parameters, and their end."""

from __future__ import annotations

import pytest

import genesis
from genesis import nn
from genesis.nn.utils import prune

VALUES = [[1.0, -2.0, 3.0, -4.0], [0.5, 6.0, -0.25, 8.0], [-9.0, 0.125, 11.0, 12.0]]


def layer():
    made = nn.Linear(4, 3)
    made.weight.data.copy_(genesis.tensor(VALUES))
    made.bias.data.copy_(genesis.tensor([0.1, -0.2, 10.0]))
    return made


def mask_of(module, name="weight"):
    return getattr(module, f"{name}_mask").int().tolist()


def test_smallest_elements():
    """A number or a part of them; a second time of those that are left."""
    one = prune.l1_unstructured(layer(), "weight", amount=0.25)
    assert mask_of(one) == [[1, 1, 1, 1], [0, 1, 0, 1], [1, 0, 1, 1]]
    assert sorted(name for name, _ in one.named_parameters()) == ["bias", "weight_orig"]
    assert sorted(one.state_dict()) == ["bias", "weight_mask", "weight_orig"]
    prune.l1_unstructured(one, "weight", amount=2)
    assert mask_of(one) == [[0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 1, 1]]
    (hook,) = one._forward_pre_hooks.values()
    assert isinstance(hook, prune.PruningContainer) and len(hook) == 2
    assert [type(method).__name__ for method in hook] == ["L1Unstructured"] * 2
    scores = -genesis.arange(12.0).reshape(3, 4).abs()
    assert mask_of(prune.l1_unstructured(layer(), "weight", 1, importance_scores=scores)) == [
        *([0, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1])
    ]


def test_channels():
    """Those with the smallest norms, of what is left where there is a mask."""
    rows = prune.ln_structured(layer(), "weight", amount=1, n=2, dim=0)
    assert mask_of(rows) == [[0] * 4, [1] * 4, [1] * 4]
    columns = prune.ln_structured(layer(), "weight", amount=0.5, n=float("inf"), dim=-1)
    assert mask_of(columns) == [[0, 0, 1, 1]] * 3
    prune.ln_structured(columns, "weight", amount=1, n=1, dim=1)
    assert mask_of(columns) == [[0, 0, 0, 1]] * 3
    prune.l1_unstructured(rows, "weight", amount=1)
    assert mask_of(rows) == [[0] * 4, [1] * 4, [1, 0, 1, 1]]


def test_at_random():
    counts = mask_of(prune.random_unstructured(layer(), "weight", amount=5))
    assert sum(map(sum, counts)) == 7
    rows = mask_of(prune.random_structured(layer(), "weight", amount=1, dim=0))
    assert sorted(map(sum, rows)) == [0, 4, 4]


def test_masks_and_classes_of_ones_own():
    mask = genesis.tensor([[1, 0, 1, 0]] * 3)
    assert mask_of(prune.custom_from_mask(layer(), "weight", mask)) == mask.tolist()
    assert mask_of(prune.identity(layer(), "bias"), "bias") == [1, 1, 1]

    class First(prune.BasePruningMethod):
        PRUNING_TYPE = "global"

        def compute_mask(self, t, default_mask):
            made = default_mask.clone()
            made[0] = 0
            return made

    one = layer()
    First.apply(one, "weight")
    First.apply(one, "bias")
    assert mask_of(one) == [[0] * 4, [1] * 4, [1] * 4] and mask_of(one, "bias") == [0, 1, 1]
    assert prune.L1Unstructured(0.5).prune(genesis.tensor([1.0, -3.0, 2.0])).tolist() == [0, -3, 0]


def test_several_parameters_as_one():
    one, two = layer(), layer()
    two.weight.data.mul_(0.1)
    prune.l1_unstructured(one, "weight", amount=1)
    pairs = [(one, "weight"), (two, "weight"), (two, "bias")]
    prune.global_unstructured(pairs, pruning_method=prune.L1Unstructured, amount=10)
    assert mask_of(one) == [[1, 1, 1, 1], [1, 1, 0, 1], [1, 0, 1, 1]]
    assert mask_of(two) == [[0, 0, 0, 0], [0, 1, 0, 1], [1, 0, 1, 1]]
    assert mask_of(two, "bias") == [0, 0, 1]
    for wrong, options, words in [
        (5, {"pruning_method": prune.L1Unstructured, "amount": 1}, "not an Iterable"),
        (pairs, {"pruning_method": prune.LnStructured, "amount": 1, "n": 1}, "Only"),
        (pairs, {"pruning_method": prune.Identity, "importance_scores": [1]}, "of type dict"),
    ]:
        with pytest.raises(TypeError, match=words):
            prune.global_unstructured(wrong, **options)


def test_training_and_the_end():
    """What is pruned stays 0; the mask becomes a part of the parameter."""
    one = prune.l1_unstructured(layer(), "weight", amount=6)
    model = nn.Sequential(one, nn.ReLU())
    mask = one.weight_mask == 0
    sgd = genesis.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in range(3):
        sgd.zero_grad()
        (model(genesis.ones(2, 4)) ** 2).sum().backward()
        sgd.step()
    model(genesis.ones(1, 4))
    assert (one.weight[mask] == 0).all() and prune.is_pruned(model)
    other = prune.identity(layer(), "weight")
    other.load_state_dict(one.state_dict())
    assert other(genesis.ones(1, 4)).tolist() == one(genesis.ones(1, 4)).tolist()
    kept = one.weight_orig
    prune.remove(one, "weight")
    assert one.weight is kept and (one.weight[mask] == 0).all() and not prune.is_pruned(model)
    assert sorted(one.state_dict()) == ["bias", "weight"] and not one._forward_pre_hooks
    with pytest.raises(ValueError, match="has to be pruned before pruning can be removed"):
        prune.remove(one, "weight")


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda m: prune.l1_unstructured(m, "weight", 1.5), ValueError, "in the range"),
        (lambda m: prune.l1_unstructured(m, "weight", -1), ValueError, "in the range"),
        (lambda m: prune.l1_unstructured(m, "weight", "a"), TypeError, "Must be int or float"),
        (lambda m: prune.l1_unstructured(m, "weight", 13), ValueError, "to prune=12"),
        (lambda m: prune.ln_structured(m, "bias", 1, 2, 0), ValueError, "multidimensional"),
        (lambda m: prune.ln_structured(m, "weight", 1, 2, 5), IndexError, "Invalid index 5"),
        (lambda m: prune.l1_unstructured(m, "other", 1), AttributeError, "other"),
        (
            lambda m: prune.l1_unstructured(m, "weight", 1, importance_scores=genesis.ones(2)),
            AssertionError,
            "same shape",
        ),
    ],
)
def test_what_is_not_possible(call, kind, words):
    """Nothing has changed then."""
    module = layer()
    with pytest.raises(kind, match=words):
        call(module)
    assert sorted(module.state_dict()) == ["bias", "weight"] and not module._forward_pre_hooks
    assert isinstance(module.weight, nn.Parameter)
