"""Modules beside PyTorch's recorded results: text, state, outputs, gradients, and types."""

import json
import re
from pathlib import Path

import module_cases as cases
import numpy
import pytest

import genesis
from genesis import nn

RECORDED = json.loads((Path(__file__).parent / "modules_recorded.json").read_text())
NAMES = dict(vars(nn))


def close(found, wanted, tolerance=1e-5):
    numpy.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("made", [*(made for made, _ in cases.CASES), *cases.TEXTS])
def test_text_and_state(made):
    found = cases.described(genesis, made)
    assert found["text"] == RECORDED[made]["text"]
    assert found["state"] == RECORDED[made]["state"]


@pytest.mark.parametrize("made, shapes", cases.CASES, ids=[made for made, _ in cases.CASES])
def test_outputs_and_gradients(made, shapes):
    found, wanted = cases.run(genesis, made, shapes), RECORDED[made]
    assert found["output"][0] == wanted["output"][0]
    close(found["output"][1], wanted["output"][1])
    for one, other in zip(found["grads"], wanted["grads"], strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            close(one, other, 5e-5)
    for one, other in zip(found["buffers"], wanted["buffers"], strict=True):
        close(one, other)


FLOATING = [
    (made, shapes)
    for made, shapes in cases.CASES
    if not any(isinstance(one, list) for one in shapes)
]


@pytest.mark.parametrize("made, shapes", FLOATING, ids=[made for made, _ in FLOATING])
def test_bfloat16_and_strided_inputs(made, shapes):
    module = eval(made, NAMES)
    tensors = [genesis.tensor(cases.numbers(cases.count_of(one), 3)).reshape(one) for one in shapes]
    module.eval()
    usual = module(*[one.clone() for one in tensors])
    strided = [
        genesis.stack([one, one], dim=-1).flatten(-2)[..., ::2] if one.ndim else one
        for one in tensors
    ]
    assert all(one.shape == other.shape for one, other in zip(strided, tensors, strict=True))
    if "inplace" not in made and ", True)" not in made:
        close(module(*strided).detach().tolist(), usual.detach().tolist())
    module.bfloat16()
    assert all(one.dtype is genesis.bfloat16 for one in module.parameters())
    half = module(*[one.bfloat16() for one in tensors])
    assert half.dtype is genesis.bfloat16 and half.shape == usual.shape
    scale = max(1.0, usual.detach().abs().max().item())
    close(half.float().detach().tolist(), usual.detach().tolist(), 0.06 * scale)


# ---- first values ----


def test_first_values_are_as_pytorch_has_them():
    genesis.manual_seed(0)
    for layer, fan in (
        (nn.Linear(50, 400), 50),
        (nn.Conv2d(4, 100, (3, 5), groups=2), 30),
        (nn.ConvTranspose2d(90, 8, 5), 200),
    ):
        bound = 1 / fan**0.5
        for one in layer.parameters():
            values = one.detach().numpy()
            assert abs(values).max() <= bound * 1.0001
            assert abs(values).max() > 0.6 * bound
        assert layer.weight.detach().std().item() == pytest.approx(bound / 3**0.5, rel=0.05)
    layer = nn.Bilinear(16, 40, 30)
    assert layer.weight.detach().abs().max().item() == pytest.approx(0.25, rel=0.01)
    table = nn.Embedding(500, 20, padding_idx=3)
    assert table.weight[3].detach().tolist() == [0] * 20
    assert table.weight.detach().std().item() == pytest.approx(1, rel=0.05)
    norm = nn.BatchNorm1d(3)
    assert norm.weight.tolist() == [1] * 3 and norm.bias.tolist() == [0] * 3
    assert norm.num_batches_tracked.dtype is genesis.int64


def test_dtype_and_device_of_new_layers():
    for layer in (
        nn.Linear(2, 3, dtype=genesis.float64),
        nn.Conv1d(2, 3, 2, device="cpu", dtype=genesis.float64),
        nn.BatchNorm2d(3, dtype=genesis.float64),
        nn.LayerNorm(3, dtype=genesis.float64),
        nn.Embedding(3, 2, dtype=genesis.float64),
        nn.PReLU(dtype=genesis.float64),
    ):
        assert all(one.dtype is genesis.float64 for one in layer.parameters())


def test_embedding_from_pretrained():
    weight = genesis.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    table = nn.Embedding.from_pretrained(weight, padding_idx=-1)
    assert not table.weight.requires_grad and table.padding_idx == 2
    assert table.weight.tolist() == weight.tolist()  # the padding's row, too
    assert nn.Embedding.from_pretrained(weight, freeze=False).weight.requires_grad
    bag = nn.EmbeddingBag.from_pretrained(weight, mode="sum")
    assert not bag.weight.requires_grad and bag.mode == "sum"


# ---- what is refused ----

WRONG = [
    ("LPPool2d(0, 2)", ValueError, "norm_type must be a non-zero value, but got 0"),
    ("Conv2d(3, 4, 2, groups=2)", ValueError, "in_channels must be divisible by groups"),
    ("Conv2d(4, 3, 2, groups=2)", ValueError, "out_channels must be divisible by groups"),
    ("Conv2d(4, 3, 2, groups=0)", ValueError, "groups must be a positive integer"),
    ("Conv2d(1, 1, 2, padding='some')", ValueError, "Invalid padding string 'some'"),
    (
        "Conv2d(1, 1, 2, stride=2, padding='same')",
        ValueError,
        "padding='same' is not supported for strided convolutions",
    ),
    ("Conv2d(1, 1, 2, padding_mode='no')", ValueError, "padding_mode must be one of"),
    (
        "ConvTranspose2d(1, 1, 2, padding_mode='reflect')",
        ValueError,
        'Only "zeros" padding mode is supported for ConvTranspose2d',
    ),
    ("Dropout(1.1)", ValueError, "dropout probability has to be between 0 and 1, but got 1.1"),
    ("GroupNorm(2, 3)", ValueError, r"num_channels \(3\) must be divisible by num_groups \(2\)"),
    ("Embedding(3, 2, padding_idx=3)", AssertionError, "Padding_idx must be within"),
    ("Hardtanh(1.0, 0.0)", AssertionError, r"max_val \(0.0\) must be greater than min_val"),
    ("Unflatten(1, 3)", TypeError, "unflattened_size must be a tuple of ints, but found type int"),
    ("Unflatten(1, (3, 'a'))", TypeError, "found element of type str at pos 1"),
    ("Bilinear(0, 1, 1)", ValueError, "in1_features must be > 0, but got 0"),
    ("BatchNorm1d(3)(genesis.ones(3))", ValueError, r"expected 2D or 3D input \(got 1D input\)"),
    ("BatchNorm2d(3)(genesis.ones(2, 3))", ValueError, r"expected 4D input \(got 2D input\)"),
    ("BatchNorm3d(3)(genesis.ones(2, 3))", ValueError, r"expected 5D input \(got 2D input\)"),
    ("InstanceNorm1d(3)(genesis.ones(3))", ValueError, r"expected 2D or 3D input \(got 1D"),
    (
        "InstanceNorm1d(3, affine=True)(genesis.ones(2, 4, 5))",
        ValueError,
        r"expected input's size at dim=1 to match num_features \(3\), but got: 4",
    ),
    ("Softmax2d()(genesis.ones(2))", ValueError, "expected input to be 3D or 4D, got 1D instead"),
    ("CircularPad1d(1)(genesis.ones(2))", ValueError, r"expected 2D or 3D input \(got 1D input\)"),
    (
        "ConvTranspose2d(1, 1, 3, 2)(genesis.ones(1, 1, 2, 2), (9, 9))",
        ValueError,
        r"requested an output size of \[9, 9\], but valid sizes range from \[5, 5\] to \[6, 6\]",
    ),
    (
        "ConvTranspose2d(1, 1, 3)(genesis.ones(1, 1, 2, 2), (9,))",
        ValueError,
        "ConvTranspose2D: for 4D input, output_size must have 2 or 4 elements",
    ),
]


@pytest.mark.parametrize("made, kind, text", WRONG, ids=[made for made, _, _ in WRONG])
def test_what_is_refused(made, kind, text):
    with pytest.raises(kind) as caught:
        eval(made, {**NAMES, "genesis": genesis})
    assert re.search(text, str(caught.value))


def test_an_instance_norm_without_parameters_warns_about_its_size():
    with pytest.warns(UserWarning, match="does not match num_features"):
        nn.InstanceNorm1d(3)(genesis.ones(2, 4, 5))


def test_empty_batches():
    for layer, shape, wanted in (
        (nn.Linear(5, 3), (0, 5), (0, 3)),
        (nn.ReLU(), (0, 3), (0, 3)),
        (nn.LayerNorm(3), (0, 3), (0, 3)),
        (nn.BatchNorm1d(3).eval(), (0, 3), (0, 3)),
        (nn.Conv2d(2, 3, 2), (0, 2, 4, 4), (0, 3, 3, 3)),
        (nn.MaxPool2d(2), (0, 2, 4, 4), (0, 2, 2, 2)),
        (nn.Flatten(), (0, 2, 3), (0, 6)),
    ):
        assert layer(genesis.zeros(shape)).shape == wanted
    found = nn.Embedding(3, 2)(genesis.zeros((0, 4), dtype=genesis.int64))
    assert found.shape == (0, 4, 2)


def test_transposed_convolutions_have_a_size_among_the_possible_ones():
    layer, x = nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1), genesis.ones(1, 2, 4, 5)
    assert layer(x).shape == (1, 3, 7, 9)
    for size in ((8, 10), (1, 3, 8, 10)):
        assert layer(x, output_size=size).shape == (1, 3, 8, 10)
    assert layer(x[0], output_size=(7, 10)).shape == (3, 7, 10)
