"""Recurrent layers and packed sequences: beside recorded results of PyTorch; wrong arguments."""

import json
import pathlib

import nn_module_cases
import pytest

import genesis
from genesis import nn
from genesis.nn.utils import rnn

RECORDED = json.loads(pathlib.Path(__file__).with_name("nn_recurrent.json").read_text())
CASES = nn_module_cases.recurrent()
TOLERANCE = {"float64": 1e-5, "float32": 2e-5, "bfloat16": 6e-2}


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


def test_dropout_is_between_layers_and_in_training():
    net = nn.LSTM(3, 4, 2, dropout=0.5)
    x = genesis.ones(5, 2, 3)
    net.eval()
    once, again = net(x)[0], net(x)[0]
    assert genesis.equal(once, again)
    assert net.train().training


def test_the_last_layer_alone_has_no_dropout():
    with pytest.warns(UserWarning, match="num_layers greater than 1"):
        net = nn.GRU(3, 4, dropout=0.9)
    x = genesis.ones(5, 2, 3)
    assert genesis.equal(net(x)[0], net(x)[0])


def test_a_layer_is_its_cell_step_by_step():
    layer, cell = nn.LSTM(3, 4, dtype=genesis.float64), nn.LSTMCell(3, 4, dtype=genesis.float64)
    cell.load_state_dict(
        {name.removesuffix("_l0"): one for name, one in layer.state_dict().items()}
    )
    x = genesis.randn(6, 2, 3, dtype=genesis.float64)
    state = None
    for step, right in zip(x, layer(x)[0], strict=True):
        state = cell(step, state)
        assert state[0].flatten().tolist() == pytest.approx(right.flatten().tolist())


def test_all_weights_and_words():
    net = nn.GRU(3, 4, num_layers=2, bias=False, bidirectional=True)
    assert [len(one) for one in net.all_weights] == [2, 2, 2, 2]
    assert repr(net) == "GRU(3, 4, num_layers=2, bias=False, bidirectional=True)"
    assert repr(nn.RNNCell(3, 4, nonlinearity="relu")) == "RNNCell(3, 4, nonlinearity=relu)"
    net.flatten_parameters()
    assert all(-0.5 <= one.min().item() <= one.max().item() <= 0.5 for one in net.parameters())


def test_first_values_repeat_with_the_seed():
    genesis.manual_seed(3)
    first = nn.RNN(3, 4).state_dict()
    genesis.manual_seed(3)
    again = nn.RNN(3, 4).state_dict()
    assert [*first] == [*again] == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
    assert all(genesis.equal(first[name], again[name]) for name in first)


def test_a_layer_learns():
    genesis.manual_seed(0)
    net = nn.LSTM(2, 8, batch_first=True)
    x, target = genesis.randn(4, 6, 2), genesis.ones(4)
    losses = []
    for _ in range(60):
        net.zero_grad()
        loss = nn.functional.mse_loss(net(x)[0].sum((1, 2)), target)
        loss.backward()
        losses.append(loss.item())
        with genesis.no_grad():
            for one in net.parameters():
                one -= 0.01 * one.grad
    assert losses[-1] < 0.05 * losses[0]


LSTM, X = nn.LSTM(3, 4), genesis.zeros(5, 2, 3)
WRONG = [
    (lambda: nn.LSTM(3, 0), "hidden_size must be greater than zero"),
    (lambda: nn.LSTM(3, 2.5), "hidden_size should be of type int"),
    (lambda: nn.LSTM(3, 4, 0), "num_layers must be greater than zero"),
    (lambda: nn.LSTM(3, 4, dropout=2), "dropout should be a number in range"),
    (lambda: nn.LSTM(3, 4, proj_size=4), "proj_size has to be smaller"),
    (lambda: nn.RNN(3, 4, nonlinearity="sin"), "Unknown nonlinearity 'sin'"),
    (lambda: nn.RNNBase("QRNN", 3, 4), "Unrecognized RNN mode: QRNN"),
    (lambda: nn.RNNBase("GRU", 3, 4, proj_size=2), "of LSTM alone"),
    (lambda: LSTM(genesis.zeros(5, 2, 4)), "Expected 3, got 4"),
    (lambda: LSTM(genesis.zeros(3)), "Expected input to be 2D or 3D, got 1D"),
    (lambda: LSTM(genesis.zeros(0, 2, 3)), "sequence length to be larger than 0"),
    (lambda: LSTM(X.double()), "LSTM input dtype .* does not match weight dtype"),
    (lambda: LSTM(X.long()), r"input dtype \(genesis.int64\)"),
    (lambda: LSTM(X, (genesis.zeros(1, 2, 4).double(),) * 2), "the states are of float64"),
    (lambda: nn.GRUCell(3, 4)(X[0].half()), "the parameters are of float32"),
    (lambda: LSTM(X, (genesis.zeros(1, 3, 4), genesis.zeros(1, 2, 4))), r"size \(1, 2, 4\)"),
    (lambda: LSTM(X, (genesis.zeros(2, 4), genesis.zeros(2, 4))), "hx should also be 3-D"),
    (lambda: LSTM(X, genesis.zeros(3, 2, 4)), "there are 3 states"),
    (lambda: nn.GRUCell(3, 4)(X), "Expected input to be 1D or 2D, got 3D"),
    (lambda: nn.GRUCell(3, 4)(X[0], genesis.zeros(3, 4)), r"Expected hidden size \(2, 4\)"),
    (lambda: nn.GRUCell(3, 4)(X[0, :, :2]), "got 2 expected 3"),
    (lambda: nn.LSTMCell(3, 4)(X[0], genesis.zeros(2, 4)), "hx is"),
    (lambda: rnn.pack_padded_sequence(X, [4, 5]), "enforce_sorted=False"),
    (lambda: rnn.pack_padded_sequence(X, [5]), "there are 1 lengths, and 2 sequences"),
    (lambda: rnn.pack_padded_sequence(X, [5, 0]), "a length is at least 1"),
    (lambda: rnn.pack_padded_sequence(X, [6, 1]), "a length is 6, and there are 5 steps"),
    (lambda: rnn.pad_sequence([X], padding_side="up"), "'left' or 'right', not 'up'"),
    (lambda: rnn.pad_sequence([]), "there is no sequence"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_arguments_are_refused(number):
    call, words = WRONG[number]
    with pytest.raises((ValueError, TypeError, RuntimeError), match=words):
        call()


# ---- sequences of several lengths ----


def sequences():
    return [genesis.tensor(one) for one in ([1.0, 2.0], [3.0, 4.0, 5.0], [6.0])]


def test_sequences_are_padded():
    assert rnn.pad_sequence(sequences()).tolist() == [[1, 3, 6], [2, 4, 0], [0, 5, 0]]
    first = rnn.pad_sequence(sequences(), batch_first=True, padding_value=9, padding_side="left")
    assert first.tolist() == [[9, 1, 2], [3, 4, 5], [9, 9, 6]]
    lengths = genesis.tensor([2, 3, 1])
    again = rnn.unpad_sequence(rnn.pad_sequence(sequences()), lengths)
    assert [one.tolist() for one in again] == [one.tolist() for one in sequences()]


def test_sequences_are_packed_and_come_back():
    packed = rnn.pack_sequence(sequences(), enforce_sorted=False)
    assert packed.data.tolist() == [3, 1, 6, 4, 2, 5]
    assert packed.batch_sizes.tolist() == [3, 2, 1]
    assert packed.sorted_indices.tolist() == [1, 0, 2]
    assert packed.unsorted_indices.tolist() == [1, 0, 2]
    padded, lengths = rnn.pad_packed_sequence(packed, padding_value=-1, total_length=4)
    assert padded.tolist() == [[1, 3, 6], [2, 4, -1], [-1, 5, -1], [-1, -1, -1]]
    assert lengths.tolist() == [2, 3, 1]
    assert [one.tolist() for one in rnn.unpack_sequence(packed)] == [
        one.tolist() for one in sequences()
    ]
    with pytest.raises(ValueError, match="total_length is 2"):
        rnn.pad_packed_sequence(packed, total_length=2)


def test_gradients_go_through_packing():
    x = genesis.ones(3, 3, requires_grad=True)
    padded, _ = rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [3, 2, 2]))
    (padded * genesis.arange(1.0, 10.0).reshape(3, 3)).sum().backward()
    assert x.grad.tolist() == [[1, 2, 3], [4, 5, 6], [7, 0, 0]]


def test_a_packed_sequence_changes_its_type():
    packed = rnn.pack_sequence(sequences(), enforce_sorted=False)
    assert packed.double().data.dtype == genesis.float64
    assert packed.half().batch_sizes is packed.batch_sizes
    assert packed.cpu() is packed and not packed.is_cuda
    with pytest.raises(TypeError, match="batch_sizes is missing"):
        rnn.PackedSequence(packed.data)


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("dtype", [genesis.float32, genesis.float64, genesis.bfloat16])
def test_many_steps_without_gradients_are_those_with_them(name, dtype):
    """The weight of the state is turned once where nothing needs a gradient."""
    genesis.manual_seed(5)
    net = getattr(nn, name)(5, 7, num_layers=2, bidirectional=True).to(dtype)
    x = genesis.randn(40, 3, 5).to(dtype)
    lengths = [40, 33, 17]
    for given in (x, rnn.pack_padded_sequence(x, lengths)):
        taped, _ = net(given)
        with genesis.no_grad():
            plain, _ = net(given)
        if isinstance(taped, rnn.PackedSequence):
            taped, plain = taped.data, plain.data
        near = {genesis.float32: 1e-5, genesis.float64: 1e-12, genesis.bfloat16: 2e-2}[dtype]
        assert taped.requires_grad and not plain.requires_grad
        assert (taped.detach() - plain).abs().max() <= near
