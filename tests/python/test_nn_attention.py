"""Attention, transformers and rotary positions: beside recorded results of PyTorch."""

import json
import math
import pathlib

import nn_module_cases
import pytest

import genesis
from genesis import nn

RECORDED = json.loads(pathlib.Path(__file__).with_name("nn_attention.json").read_text())
CASES = nn_module_cases.attention()
TOLERANCE = {"float64": 1e-5, "float32": 5e-5, "bfloat16": 6e-2}


@pytest.mark.parametrize("case", CASES, ids=[case.key for case in CASES])
def test_results_and_gradients_are_those_of_pytorch(case):
    made, right = nn_module_cases.Run(case, genesis).results(), RECORDED[case.key]
    near = TOLERANCE[case.dtype]
    assert made["state"] == right["state"]
    for what in ("outputs", "gradients"):
        for (shape, numbers), (right_shape, right_numbers) in zip(
            made[what], right[what], strict=True
        ):
            assert shape == right_shape
            scale = max([1.0, *map(abs, right_numbers)])
            assert numbers == pytest.approx(right_numbers, rel=near, abs=near * scale)
    scale = max(abs(one) for pair in right["sums"].values() for one in [*pair, 1.0])
    for name, pair in made["sums"].items():
        assert pair == pytest.approx(right["sums"][name], rel=near, abs=near * scale)


def test_every_case_has_its_own_name():
    assert len({case.key for case in CASES}) == len(CASES) == len(RECORDED)


def test_first_values():
    genesis.manual_seed(1)
    net = nn.MultiheadAttention(8, 2, add_bias_kv=True)
    assert not net.in_proj_bias.any().item() and not net.out_proj.bias.any().item()
    bound = math.sqrt(6 / (8 + 24))
    assert 0.8 * bound < net.in_proj_weight.abs().max().item() <= bound
    assert nn.MultiheadAttention(8, 2, kdim=4).in_proj_weight is None


def test_an_empty_batch():
    x = genesis.zeros(3, 0, 8)
    output, weights = nn.MultiheadAttention(8, 2)(x, x, x)
    assert output.shape == (3, 0, 8) and weights.shape == (0, 3, 3)
    assert nn.TransformerEncoderLayer(8, 2, 16)(x).shape == (3, 0, 8)


def test_dropout_is_in_training():
    net = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5)
    x = genesis.randn(3, 2, 8)
    assert not genesis.equal(net(x), net(x))
    net.eval()
    assert genesis.equal(net(x), net(x))


def test_layers_of_an_encoder_are_copies():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
    net = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(8))
    x = genesis.randn(3, 2, 8)
    right = net.norm(layer(layer(x)))
    assert net(x).flatten().tolist() == pytest.approx(right.flatten().tolist(), abs=1e-5)
    assert net.layers[0].linear1.weight is not net.layers[1].linear1.weight
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    assert mask.tolist() == [[0, -math.inf, -math.inf], [0, 0, -math.inf], [0, 0, 0]]
    causal = net(x, mask, is_causal=True)
    again = net(x, mask)
    assert causal.flatten().tolist() == pytest.approx(again.flatten().tolist(), abs=1e-5)


def test_parts_of_a_transformer_can_be_given():
    model = nn.Transformer(8, 2, custom_encoder=Encoder(), num_decoder_layers=1, dim_feedforward=16)
    assert model(genesis.ones(4, 2, 8), genesis.ones(3, 2, 8)).shape == (3, 2, 8)
    assert not [name for name, _ in model.named_parameters() if name.startswith("encoder")]


class Encoder(nn.Module):
    """Gives what it is given."""

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        return src


X, MANY = genesis.zeros(3, 2, 8), nn.MultiheadAttention(8, 2)
WRONG = [
    (lambda: nn.MultiheadAttention(8, 3), "must be divisible by num_heads 3"),
    (lambda: nn.MultiheadAttention(8, 0), "must be greater than 0"),
    (lambda: MANY(X[0, 0], X, X), "2 or 3 dimensions"),
    (lambda: MANY(X, X, X, attn_mask=genesis.zeros(2, 3)), "attn_mask"),
    (lambda: MANY(X, X, X, key_padding_mask=genesis.zeros(3, 3)), "key_padding_mask"),
    (lambda: MANY(X, X, X, is_causal=True), "attn_mask"),
    (lambda: nn.TransformerEncoderLayer(8, 2, activation="tanh"), "should be relu/gelu, not tanh"),
    (lambda: nn.Transformer(8, 2, 1, 1, 8)(X, X[:, :1]), "batch number of src and tgt"),
    (lambda: nn.Transformer(8, 2, 1, 1, 8)(X, X[..., :4]), "equal to d_model"),
    (lambda: nn.RotaryEmbedding(3), "dim is an even number"),
    (lambda: nn.RotaryEmbedding(4, 8)(X, seq_len=9), "there are 8 positions, and 9"),
    (lambda: nn.RotaryEmbedding(4, 8).rotate(genesis.zeros(1, 1, 3, 6)), "the last dimension is 6"),
    (lambda: nn.FusedMultiheadAttention(8, 3), "not divisible by 3 heads"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_arguments_are_refused(number):
    call, words = WRONG[number]
    with pytest.raises((ValueError, TypeError, RuntimeError), match=words):
        call()


# ---- rotary positions, and names of the first Genesis ----


def turned(x, position, base=10000.0):
    """A row of features by the formula."""
    half = len(x) // 2
    angles = [position / base ** (2 * i / len(x)) for i in range(half)]
    first = [x[i] * math.cos(a) - x[i + half] * math.sin(a) for i, a in enumerate(angles)]
    return first + [x[i + half] * math.cos(a) + x[i] * math.sin(a) for i, a in enumerate(angles)]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_pairs_of_features_are_turned_by_their_position(dtype):
    x = genesis.randn(2, 1, 3, 6).to(getattr(genesis, dtype))
    rotary = nn.RotaryEmbedding(6, 16, base=100.0)
    near = 1e-5 if dtype == "float32" else 2e-2
    ids = genesis.tensor([[0, 1, 2], [5, 7, 15]])
    for made, positions in ((rotary.rotate(x), [[0, 1, 2]] * 2), (rotary.rotate(x, ids), ids)):
        assert made.dtype == x.dtype
        for b in range(2):
            for t in range(3):
                right = turned(x[b, 0, t].tolist(), int(positions[b][t]), 100.0)
                assert made[b, 0, t].tolist() == pytest.approx(right, abs=near)
    assert not rotary.state_dict()


def test_turning_has_a_gradient():
    rotary = nn.RotaryEmbedding(4)
    x = genesis.randn(1, 2, 3, 4, dtype=genesis.float64, requires_grad=True)
    assert genesis.autograd.gradcheck(rotary.rotate, (x,))


def test_cosines_and_sines():
    cos, sin = nn.RotaryEmbedding(4, 32)(genesis.ones(1, 1, 5, 4))
    assert cos.shape == sin.shape == (1, 1, 5, 4)
    assert cos[0, 0, 2].tolist() == pytest.approx([math.cos(2), math.cos(0.02)] * 2)


def test_names_of_the_first_genesis():
    genesis.manual_seed(0)
    x = genesis.randn(2, 5, 8)
    net = nn.FusedMultiheadAttention(8, 2)
    output, weights = net(x)
    assert output.shape == (2, 5, 8) and weights is None
    assert {name: tuple(one.shape) for name, one in net.state_dict().items()} == {
        "w_qkv": (8, 24),
        "w_out": (8, 8),
    }
    changed = x.clone()
    changed[:, 4] = 0  # a later step is not seen by those before
    again, _ = net(changed)
    assert genesis.allclose(output[:, :4], again[:, :4], atol=1e-6)
    swiglu = nn.FeedFowardSwiGLU(8, 16).eval()
    right = swiglu.down(nn.functional.silu(swiglu.gate(x)) * swiglu.up(x))
    assert genesis.allclose(swiglu(x), right)
    assert [*swiglu.state_dict()] == ["gate.weight", "down.weight", "up.weight"]
    assert genesis.allclose(nn.Residual(swiglu)(x), right + x)
    norm = nn.FusedLayerNorm(8)
    assert isinstance(norm, nn.LayerNorm) and genesis.equal(norm(x), nn.LayerNorm(8)(x))
    target = genesis.tensor([1, -1])
    loss = nn.SoftmaxLoss()(x[:, 0], target)
    assert loss.item() == pytest.approx(nn.CrossEntropyLoss()(x[:1, 0], target[:1]).item())


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", ["plain", "causal", "mask", "groups", "blocks"])
def test_halves_are_rounded_once(kind, case):
    """On the CPU scores and weights are float32: only the result is rounded."""
    genesis.manual_seed(3)
    length = 512 if case == "blocks" else 37
    dtype = getattr(genesis, kind)
    query = (genesis.randn(2, 4, length, 16) * 4).to(dtype)
    heads = 2 if case == "groups" else 4
    key, value = (genesis.randn(2, heads, length, 16).to(dtype) for _ in range(2))
    more = {"enable_gqa": case == "groups", "is_causal": case in ("causal", "blocks")}
    if case == "mask":
        more["attn_mask"] = genesis.randn(length, length).to(dtype)
    made = nn.functional.scaled_dot_product_attention(query, key, value, **more)
    wide = {k: v.double() if isinstance(v, genesis.Tensor) else v for k, v in more.items()}
    right = nn.functional.scaled_dot_product_attention(
        query.double(), key.double(), value.double(), **wide
    )
    assert made.dtype == dtype
    rounding = 2**-11 if kind == "float16" else 2**-8
    assert ((made.double() - right).abs() <= right.abs() * rounding * 1.01 + 1e-5).all()


def test_gradients_of_halves_are_as_exact():
    genesis.manual_seed(4)
    wide = [genesis.randn(1, 2, 33, 8).bfloat16().double().requires_grad_() for _ in range(3)]
    halves = [one.detach().bfloat16().requires_grad_() for one in wide]
    given = genesis.randn(1, 2, 33, 8).bfloat16()
    for leaves in (wide, halves):
        made = nn.functional.scaled_dot_product_attention(*leaves, is_causal=True)
        made.backward(given.to(made.dtype))
    for exact, rounded in zip(wide, halves, strict=True):
        error = (rounded.grad.double() - exact.grad).abs()
        assert rounded.grad.dtype == genesis.bfloat16
        assert (error <= exact.grad.abs() * 2**-8 * 1.01 + 1e-5).all()
