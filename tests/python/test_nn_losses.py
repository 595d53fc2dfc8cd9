"""Losses: results and gradients beside recorded ones of PyTorch, and wrong arguments."""

import json
import math
import pathlib
import re

import nn_loss_cases
import pytest

import genesis
from genesis import nn
from genesis.nn import functional

RECORDED = json.loads(pathlib.Path(__file__).with_name("nn_losses.json").read_text())
CASES = nn_loss_cases.cases()
TOLERANCE = {"float64": 1e-5, "float32": 1e-5, "float16": 3e-3, "bfloat16": 2e-2}


def numbers(tensor):
    """The elements as Python's numbers."""
    return tensor.detach().to(genesis.float64).reshape(-1).tolist()


@pytest.mark.parametrize("case", CASES, ids=[case.key for case in CASES])
def test_results_and_gradients_are_those_of_pytorch(case):
    made = nn_loss_cases.run(case, genesis)
    for one, (shape, right) in zip(made, RECORDED[case.key], strict=True):
        assert list(one.shape) == shape
        assert one.dtype == getattr(genesis, case.dtype)
        near = TOLERANCE[case.dtype]
        assert numbers(one) == pytest.approx(right, rel=near, abs=near, nan_ok=True)


def test_a_confident_half_keeps_its_gradient():
    """The gradient at a row's own class is p - 1: rounded once, not p before 1 is taken off."""
    logits = genesis.tensor([[8.0, 0.0, 0.0]], dtype=genesis.bfloat16, requires_grad=True)
    functional.cross_entropy(logits, genesis.tensor([0])).backward()
    p = 1 / (1 + 2 * math.exp(-8))
    assert logits.grad.tolist()[0][0] == pytest.approx(p - 1, rel=4e-3)


def test_large_logits_do_not_overflow():
    logits = genesis.tensor([[1e4, 0.0], [-1e4, 0.0]], requires_grad=True)
    loss = functional.cross_entropy(logits, genesis.tensor([1, 0]), reduction="none")
    assert loss.tolist() == [1e4, 1e4]
    loss.sum().backward()
    assert logits.grad.tolist() == [[1.0, -1.0], [-1.0, 1.0]]


def test_a_negative_infinite_logit_is_a_class_that_cannot_be():
    logits = genesis.tensor([[0.0, -math.inf, 0.0]], requires_grad=True)
    loss = functional.cross_entropy(logits, genesis.tensor([2]))
    loss.backward()
    assert loss.item() == pytest.approx(math.log(2))
    assert logits.grad.tolist()[0] == pytest.approx([0.5, 0.0, -0.5])


def test_ignored_rows_may_hold_anything():
    logits = genesis.tensor([[1.0, 0.0], [math.nan, 0.0]])
    loss = functional.cross_entropy(logits, genesis.tensor([0, -100]))
    assert loss.item() == pytest.approx(math.log(1 + math.exp(-1)))


def test_the_logits_of_a_product_get_their_gradient():
    """A network's last layer: logits are pending when the loss takes elements of them."""
    x = genesis.ones(4, 3)
    weight = genesis.zeros(5, 3, requires_grad=True)
    functional.cross_entropy(
        functional.linear(x, weight) * 2, genesis.tensor([0, 1, 2, 3])
    ).backward()
    right = [-0.1, -0.1, -0.1, -0.1, 0.4]
    assert weight.grad[:, 0].tolist() == pytest.approx(right)


@pytest.mark.parametrize("target", [5, -1])
def test_a_class_out_of_range_is_an_index_error(target):
    for call in (functional.cross_entropy, functional.nll_loss, functional.multi_margin_loss):
        with pytest.raises(IndexError, match="out of range"):
            call(genesis.zeros(2, 3), genesis.tensor([0, target]))


def test_older_arguments_are_understood():
    x, y = genesis.ones(2), genesis.zeros(2)
    assert functional.mse_loss(x, y, size_average=False).item() == 2.0
    assert functional.mse_loss(x, y, reduce=False).tolist() == [1.0, 1.0]
    assert functional.mse_loss(x, y, size_average=True, reduction="sum").item() == 1.0


X, CLASSES = genesis.zeros(2, 3), genesis.tensor([0, 1])
WRONG = [
    ("cross_entropy", (X, CLASSES), {"reduction": "total"}, "reduction is 'none', 'mean' or 'sum'"),
    ("cross_entropy", (X, CLASSES), {"label_smoothing": 1.5}, "label_smoothing is between 0 and 1"),
    ("cross_entropy", (X, genesis.tensor([0])), {}, r"target the same without C"),
    ("cross_entropy", (X, CLASSES.float()), {}, "numbers of classes, integers, not float32"),
    ("cross_entropy", (X, X.long()), {}, "probabilities, floating numbers"),
    ("cross_entropy", (X, X), {"ignore_index": 1}, "these are probabilities"),
    ("cross_entropy", (X, CLASSES), {"weight": X[0, :2]}, "one number for each of 3 classes"),
    ("cross_entropy", (X.long(), CLASSES), {}, "input is of floating numbers"),
    ("cross_entropy", (genesis.tensor(1.0), CLASSES), {}, "input has a dimension of classes"),
    ("nll_loss", (X, genesis.tensor([0])), {}, "target the same without C"),
    ("multi_margin_loss", (X, CLASSES), {"p": 3}, "p is 1 or 2, not 3"),
    ("multilabel_soft_margin_loss", (X, X[0]), {}, "they are the same, with classes last"),
    ("mse_loss", (X, X), {"weight": X[0]}, "they are the same"),
    ("mse_loss", (X, genesis.zeros(2)), {}, "shape"),
    ("smooth_l1_loss", (X, X), {"beta": -1.0}, "beta is not negative"),
    ("huber_loss", (X, X), {"delta": 0.0}, "delta is positive"),
    ("binary_cross_entropy", (X, X[0]), {}, "they are the same"),
    ("binary_cross_entropy_with_logits", (X, X[0]), {}, "they are the same"),
    ("kl_div", (X, X), {"reduction": "batch"}, "reduction is"),
    ("gaussian_nll_loss", (X, X, X - 1), {}, "var has a negative element"),
    ("gaussian_nll_loss", (X, X, genesis.ones(3)), {}, "var is the same"),
    ("cosine_embedding_loss", (X, X, genesis.tensor(1)), {}, r"\(N, D\) and \(N\)"),
    ("margin_ranking_loss", (X, X, CLASSES), {}, "as many dimensions"),
    ("triplet_margin_loss", (X, X, X), {"margin": 0.0}, "margin is positive"),
    ("triplet_margin_loss", (X, X, X), {"p": 0}, "p is positive"),
    ("triplet_margin_loss", (X, X, X[0]), {}, "as many dimensions"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "keywords", "words"), WRONG)
def test_wrong_arguments_are_refused(name, arguments, keywords, words):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=words):
        getattr(functional, name)(*arguments, **keywords)


# ---- classes ----

LOSSES = [
    (nn.CrossEntropyLoss, {"weight": "classes", "ignore_index": 1, "label_smoothing": 0.1}),
    (nn.NLLLoss, {"weight": "classes", "ignore_index": 1}),
    (nn.MultiMarginLoss, {"p": 2, "margin": 0.5, "weight": "classes"}),
    (nn.MSELoss, {}),
    (nn.L1Loss, {}),
    (nn.SmoothL1Loss, {"beta": 0.3}),
    (nn.HuberLoss, {"delta": 0.3}),
    (nn.BCELoss, {"weight": "classes"}),
    (nn.BCEWithLogitsLoss, {"weight": "classes", "pos_weight": "classes"}),
    (nn.MultiLabelSoftMarginLoss, {"weight": "classes"}),
    (nn.KLDivLoss, {"log_target": True}),
    (nn.SoftMarginLoss, {}),
    (nn.HingeEmbeddingLoss, {"margin": 0.4}),
    (nn.PoissonNLLLoss, {"log_input": False, "full": True, "eps": 0.1}),
    (nn.GaussianNLLLoss, {"full": True, "eps": 0.3}),
    (nn.CosineEmbeddingLoss, {"margin": 0.4}),
    (nn.MarginRankingLoss, {"margin": 0.4}),
    (nn.TripletMarginLoss, {"margin": 0.4, "p": 1.0, "eps": 0.1, "swap": True}),
]
FUNCTIONS = {
    "BCELoss": "binary_cross_entropy",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "GaussianNLLLoss": "gaussian_nll_loss",
    "KLDivLoss": "kl_div",
    "L1Loss": "l1_loss",
    "MSELoss": "mse_loss",
    "MultiLabelSoftMarginLoss": "multilabel_soft_margin_loss",
    "NLLLoss": "nll_loss",
    "PoissonNLLLoss": "poisson_nll_loss",
    "SmoothL1Loss": "smooth_l1_loss",
    "CrossEntropyLoss": "cross_entropy",
}


def function_of(cls):
    """The function of a class: SoftMarginLoss is soft_margin_loss()."""
    name = FUNCTIONS.get(cls.__name__)
    if name is None:
        words = re.findall(r"[A-Z][a-z]+", cls.__name__)
        name = "_".join(word.lower() for word in words)
    return getattr(functional, name)


def arguments_of(cls):
    """Three rows of four classes, and whatever else a loss takes."""
    x, y = genesis.rand(3, 4) + 0.01, genesis.rand(3, 4)
    signs = genesis.tensor([1.0, -1.0, 1.0])
    if cls in (nn.CrossEntropyLoss, nn.NLLLoss, nn.MultiMarginLoss):
        return [x, genesis.tensor([2, 0, 3])]
    if cls is nn.CosineEmbeddingLoss:
        return [x, y, signs]
    if cls is nn.MarginRankingLoss:
        return [x[:, 0], y[:, 0], signs]
    if cls in (nn.GaussianNLLLoss, nn.TripletMarginLoss):
        return [x, y, genesis.rand(3, 4)]
    return [x, y]


@pytest.mark.parametrize(("cls", "words"), LOSSES, ids=lambda one: getattr(one, "__name__", ""))
def test_a_class_calls_its_function(cls, words):
    weight = genesis.tensor([0.5, 1.0, 1.5, 2.0])
    words = {name: weight if one == "classes" else one for name, one in words.items()}
    given = arguments_of(cls)
    for reduction in ("none", "mean", "sum"):
        loss = cls(**words, reduction=reduction)
        right = function_of(cls)(*given, **words, reduction=reduction)
        assert loss(*given).flatten().tolist() == right.flatten().tolist()
        assert {*loss.state_dict()} == {
            name for name, one in words.items() if isinstance(one, genesis.Tensor)
        }
        for name, one in words.items():
            assert getattr(loss, name) is one
        assert repr(loss) == f"{cls.__name__}()"


def test_older_arguments_of_classes_warn():
    with pytest.warns(UserWarning, match="please use reduction='sum'"):
        assert nn.MSELoss(size_average=False).reduction == "sum"
    with pytest.warns(UserWarning, match="please use reduction='none'"):
        assert nn.CrossEntropyLoss(reduce=False).reduction == "none"
    assert nn.KLDivLoss(reduction="batchmean").reduction == "batchmean"


def test_weights_of_classes_get_no_gradient():
    x = genesis.randn(2, 3, requires_grad=True)
    weight = genesis.ones(3, requires_grad=True)
    for call in (functional.cross_entropy, functional.nll_loss, functional.multi_margin_loss):
        call(x, genesis.tensor([0, 2]), weight=weight).backward()
    assert weight.grad is None


@pytest.mark.parametrize("name", ["uint8", "int8", "int32"])
def test_classes_are_of_any_integer_type(name):
    x, target = genesis.randn(3, 4), genesis.tensor([1, 3, 0])
    made = functional.cross_entropy(x, target.to(getattr(genesis, name)))
    assert made.item() == functional.cross_entropy(x, target).item()
