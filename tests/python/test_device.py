"""genesis.device: names of devices."""

import copy
import pickle

import pytest

import genesis


@pytest.mark.parametrize(
    ("name", "kind", "index", "text"),
    [
        ("cpu", "cpu", None, "cpu"),
        ("cpu:0", "cpu", None, "cpu"),
        ("cuda", "cuda", 0, "cuda:0"),
        ("cuda:0", "cuda", 0, "cuda:0"),
        ("cuda:17", "cuda", 17, "cuda:17"),
        (3, "cuda", 3, "cuda:3"),
        (genesis.device("cuda:2"), "cuda", 2, "cuda:2"),
    ],
)
def test_names(name, kind, index, text):
    device = genesis.device(name)
    assert (device.type, device.index, str(device)) == (kind, index, text)
    assert repr(device) == f"device({text!r})"
    assert device == text and device == genesis.device(text)
    assert (device != text) is False
    assert hash(device) == hash(text) and {device: 1}[text] == 1
    assert pickle.loads(pickle.dumps(device)) == device == copy.deepcopy(device)


def test_with_an_index():
    assert genesis.device("cuda", 2) == "cuda:2" == genesis.device("cuda", index=2)
    assert genesis.device("cpu", 0) == "cpu"
    for arguments in (("cpu", 1), ("cuda:1", 2), (0, 1), ("cuda", -1)):
        with pytest.raises(ValueError):
            genesis.device(*arguments)


@pytest.mark.parametrize(
    "name", ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "cuda:1x", "CUDA", "cpu:1", "cuda:99999", -1]
)
def test_wrong_names(name):
    with pytest.raises(genesis.InvalidDeviceError):
        genesis.device(name)
    assert issubclass(genesis.InvalidDeviceError, ValueError)
    assert issubclass(genesis.InvalidDeviceError, RuntimeError)


@pytest.mark.parametrize("name", [None.__class__, 1.5, b"cuda", [], object()])
def test_wrong_types(name):
    with pytest.raises(TypeError):
        genesis.device(name)


def test_comparison_with_others():
    device = genesis.device("cuda:0")
    assert device != "cuda:1" and device != "nonsense" and device != 0 and device is not None
    with pytest.raises(TypeError):
        _ = device < device


def test_a_name_is_immutable():
    with pytest.raises(AttributeError):
        genesis.device("cpu").type = "cuda"
    with pytest.raises(TypeError):
        genesis.device.extra = 1
