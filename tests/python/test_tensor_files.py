"""save() and load(): every dtype there and back, beside safetensors itself, and hostile files."""

from __future__ import annotations

import errno
import io
import json
import os
import pickle
import resource

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import genesis

DTYPES = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "bfloat16", "float32",
]  # fmt: skip
DTYPES += ["float64"]


def samples() -> dict[str, genesis.Tensor]:
    made = {}
    for i, dtype in enumerate(DTYPES):
        numbers = genesis.arange(24).reshape(2, 3, 4).to(getattr(genesis, dtype))
        made[f"{dtype} whole"] = numbers
        made[f"{dtype} view"] = numbers.clone().T[::-1, 1:, ::2]
        made[f"{dtype} pending"] = numbers.logical_not() if i % 2 else numbers + numbers
        made[f"{dtype} empty"] = numbers[:, 3:]
        made[f"{dtype} one"] = numbers.clone()[1, 2, 3]
    return made


def names_in(directory) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def assert_same(made: genesis.Tensor, expected: genesis.Tensor) -> None:
    assert made.dtype == expected.dtype and made.shape == expected.shape
    assert made.tolist() == expected.tolist()


def test_there_and_back(tmp_path):
    tensors = samples()
    genesis.save(tensors, tmp_path / "all")
    loaded = genesis.load(str(tmp_path / "all"))
    assert list(loaded) == list(tensors)
    for name, tensor in tensors.items():
        assert_same(loaded[name], tensor)
        assert loaded[name].is_contiguous()
    loaded["int8 whole"] += 1  # memory of its own
    assert genesis.load(tmp_path / "all")["int8 whole"].tolist() == tensors["int8 whole"].tolist()
    genesis.save({}, tmp_path / "none")
    assert genesis.load(tmp_path / "none") == {}
    genesis.save({"naïve \U0001f600": genesis.ones(1)}, tmp_path / "name")
    assert list(genesis.load(tmp_path / "name")) == ["naïve \U0001f600"]
    assert names_in(tmp_path) == ["all", "name", "none"]


def test_one_tensor_alone(tmp_path):
    for tensor in samples().values():
        genesis.save(tensor, tmp_path / "one")
        assert_same(genesis.load(tmp_path / "one"), tensor)
    genesis.save({"tensor": genesis.ones(1)}, tmp_path / "one")
    assert list(genesis.load(tmp_path / "one")) == ["tensor"]


def test_open_files(tmp_path, monkeypatch):
    monkeypatch.setattr("genesis._safetensors._CHUNK", 16)
    tensors, room = samples(), io.BytesIO(b"before")
    room.seek(6)
    genesis.save(tensors, room)
    path = tmp_path / "a"
    genesis.save(tensors, path)
    assert room.getvalue() == b"before" + path.read_bytes() and room.tell() == len(room.getvalue())
    room.seek(6)
    made = genesis.load(room)
    assert room.read() == b"" and list(made) == list(tensors)
    for name, tensor in tensors.items():
        assert_same(made[name], tensor)
    with path.open("wb") as file:
        genesis.save(genesis.arange(3), file)
    with path.open("rb") as file:
        assert genesis.load(file).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="BytesIO.*: 6 bytes are no safetensors file"):
        genesis.load(io.BytesIO(b"before"))
    with path.open("r") as file, pytest.raises(TypeError, match="not open for bytes"):
        genesis.load(file)
    with path.open("w") as file, pytest.raises(TypeError, match="must be str"):
        genesis.save(genesis.arange(3), file)


def test_files_in_several_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(genesis._safetensors, "_CHUNK", 64)
    tensors = samples()
    genesis.save(tensors, tmp_path / "f")
    loaded = genesis.load(tmp_path / "f")
    for name, tensor in tensors.items():
        assert_same(loaded[name], tensor)


def test_what_was_saved_or_loaded_still_waits(tmp_path):
    """Nobody gets to know its address: operations on it go on together."""
    x = genesis.ones(1000)
    genesis.save(x, tmp_path / "f")
    y = genesis.load(tmp_path / "f")
    for tensor in (x, y, pickle.loads(pickle.dumps(y))):
        genesis.flush()
        count = genesis._C.MemoryManager("cpu").statistics()["alloc_count"]
        z = ((tensor + 1) * 2) - 3
        assert genesis._C.MemoryManager("cpu").statistics()["alloc_count"] - count == 1
        assert z.tolist() == [1.0] * 1000


def test_truths_from_files_are_truths(tmp_path):
    (tmp_path / "f").write_bytes(packed({"a": entry(0, 4, [4], "BOOL")}, bytes([0, 1, 2, 255])))
    truths = genesis.load(tmp_path / "f")["a"]
    assert truths.tolist() == [False, True, True, True] and truths.sum().item() == 3
    assert truths.numpy().view("uint8").tolist() == [0, 1, 1, 1]


def test_special_values_keep_their_bits(tmp_path):
    array = numpy.array([numpy.nan, -numpy.nan, numpy.inf, -numpy.inf, -0.0, 5e-324])
    genesis.save(genesis.tensor(array), tmp_path / "f")
    assert genesis.load(tmp_path / "f").numpy().tobytes() == array.tobytes()


def test_safetensors_reads_and_writes_the_same(tmp_path):
    safetensors = pytest.importorskip("safetensors")
    tensors = samples()
    genesis.save(tensors, tmp_path / "ours")
    with safetensors.safe_open(tmp_path / "ours", "numpy") as file:
        assert set(file.keys()) == set(tensors)
        for name, tensor in tensors.items():
            if tensor.dtype != genesis.bfloat16:
                array = file.get_tensor(name)
                assert array.dtype == tensor.numpy().dtype and array.shape == tensor.shape
                numpy.testing.assert_array_equal(array, tensor.numpy())
            else:
                assert file.get_slice(name).get_dtype() == "BF16"
    from safetensors.numpy import save_file

    tensors = {k: v for k, v in tensors.items() if v.dtype != genesis.bfloat16}
    arrays = {name: numpy.ascontiguousarray(tensor.numpy()) for name, tensor in tensors.items()}
    save_file({k: v.reshape(tensors[k].shape) for k, v in arrays.items()}, tmp_path / "theirs")
    loaded = genesis.load(tmp_path / "theirs")
    assert set(loaded) == set(tensors)
    for name, tensor in tensors.items():
        assert_same(loaded[name], tensor)


# ---- hostile files ----


def packed(header, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def entry(begin: int, end: int, shape=None, dtype="F32", **more) -> dict:
    shape = [(end - begin) // 4] if shape is None else shape
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]} | more


HOSTILE = {
    "nothing": (b"", "8 for a length"),
    "no header": (b"1234567", "8 for a length"),
    "absurd length": (packed({}, length=(1 << 64) - 1), "said to take"),
    "length of a terabyte": (packed({}, length=1 << 40), "said to take"),
    "length past the end": (packed({}, length=3), "said to take"),
    "no JSON": (packed(b"{'a': 1}"), "no JSON"),
    "cut JSON": (packed(b'{"a": {'), "no JSON"),
    "no UTF-8": (packed(b'{"\xff": 1}'), "no JSON"),
    "a list": (packed([]), "begin with"),
    "spaces first": (packed(b" {}"), "begin with"),
    "nested deeply": (packed(b'{"a":' * 100000 + b"1" + b"}" * 100000), "nested too deeply"),
    "no entry": (packed({"a": 3}), "needs dtype"),
    "no dtype": (packed({"a": {"shape": [], "data_offsets": [0, 4]}}, bytes(4)), "needs dtype"),
    "more": (packed({"a": entry(0, 4, more=1)}, bytes(4)), "nothing else"),
    "unknown dtype": (packed({"a": entry(0, 4, [1], "F128")}, bytes(4)), "'F128'"),
    "dtype no text": (packed({"a": entry(0, 4, [1], ["F32"])}, bytes(4)), "known are"),
    "metadata": (packed({"__metadata__": {"a": 1}}), "__metadata__"),
    "shape no list": (packed({"a": entry(0, 4, 1)}, bytes(4)), "no shape"),
    "shape negative": (packed({"a": entry(0, 4, [-1, -1])}, bytes(4)), "no shape"),
    "shape of floats": (packed({"a": entry(0, 4, [1.0])}, bytes(4)), "no shape"),
    "shape of truths": (packed({"a": entry(0, 4, [True])}, bytes(4)), "no shape"),
    "17 dimensions": (packed({"a": entry(0, 4, [1] * 17)}, bytes(4)), "16 at most"),
    "offsets of three": (
        packed({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4, 8]}}, bytes(8)),
        "no offsets",
    ),
    "offsets negative": (packed({"a": entry(-4, 0, [1])}, bytes(4)), "no offsets"),
    "offsets backwards": (packed({"a": entry(4, 0, [1])}, bytes(4)), "takes 4 bytes"),
    "wrong size": (packed({"a": entry(0, 8, [3])}, bytes(8)), "takes 12 bytes"),
    "overflow": (packed({"a": entry(0, 0, [1 << 32, 1 << 32])}), "takes"),
    "a terabyte": (packed({"a": entry(0, 1 << 40, [1 << 38])}, bytes(4)), "follow the header"),
    "outside": (packed({"a": entry(4, 8)}, bytes(4)), "leaves a hole"),
    "hole": (packed({"a": entry(0, 4), "b": entry(8, 12)}, bytes(12)), "leaves a hole"),
    "overlap": (packed({"a": entry(0, 8), "b": entry(4, 12)}, bytes(12)), "overlaps"),
    "the same bytes": (packed({"a": entry(0, 4), "b": entry(0, 4)}, bytes(4)), "overlaps"),
    "cut": (packed({"a": entry(0, 8)}, bytes(7)), "7 follow"),
    "more at the end": (packed({"a": entry(0, 8)}, bytes(9)), "9 follow"),
    "twice": (
        packed(b'{"a":' + json.dumps(entry(0, 0)).encode() + b',"a":1}'),
        "'a' stands twice",
    ),
    "key twice": (packed(b'{"a":{"dtype":"F32","dtype":"F64"}}'), "'dtype' stands twice"),
    "large without elements": (packed({"a": entry(0, 0, [0, 1 << 62, 1 << 62])}), "address"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files(case, tmp_path):
    data, words = HOSTILE[case]
    path = tmp_path / "hostile"
    path.write_bytes(data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=words) as caught:
        genesis.load(path)
    assert str(path) in str(caught.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damaged_files_never_crash(data, tmp_path_factory):
    """Bytes changed, cut or added: a ValueError, or tensors."""
    path = tmp_path_factory.mktemp("damaged") / "f"
    genesis.save({"a": genesis.ones(3), "b": genesis.arange(4).to(genesis.int16)}, path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        kind = data.draw(st.integers(0, 2))
        if kind == 0:
            content[at] = data.draw(st.integers(0, 255))
        elif kind == 1:
            del content[at:]
            content += b"\0"
        else:
            content[at:at] = data.draw(st.binary(max_size=9))
    path.write_bytes(content)
    try:
        loaded = genesis.load(path)
    except ValueError:
        return
    assert all(isinstance(tensor.tolist(), list | float | int) for tensor in loaded.values())


# ---- mistakes ----


def test_mistakes_when_saving(tmp_path):
    path = tmp_path / "f"
    genesis.save({"a": genesis.ones(2)}, path)
    for wrong, error, words in [
        ({object: genesis.ones(1)}, TypeError, "has the key <class 'object'>"),
        ({"a": object}, TypeError, r"save: \['a'\] is of class builtins.type, which is not saved"),
        ({"a" * 100_000_001: genesis.ones(1)}, ValueError, "more than a file holds"),
    ]:
        with pytest.raises(error, match=words):
            genesis.save(wrong, path)
    assert genesis.load(path)["a"].tolist() == [1, 1]
    with pytest.raises(FileNotFoundError):
        genesis.save({}, tmp_path / "no" / "f")
    with pytest.raises(FileNotFoundError):
        genesis.load(tmp_path / "no")
    assert names_in(tmp_path) == ["f"]


def test_errors_name_the_path_that_was_given(tmp_path):
    x = genesis.ones(2)
    with pytest.raises(TypeError, match="^save: the object itself is of class .*RawIOBase"):
        genesis.save(io.RawIOBase(), tmp_path / "x")
    missing = tmp_path / "missing" / "x"
    with pytest.raises(FileNotFoundError, match=f"no directory '{missing.parent}'") as found:
        genesis.save(x, missing)
    assert found.value.filename == str(missing) and found.value.errno == errno.ENOENT
    for folder in (tmp_path, ".", f"{tmp_path}/"):
        with pytest.raises(IsADirectoryError, match="this is a directory") as found:
            genesis.save(x, folder)
        assert found.value.filename == str(folder)
    with pytest.raises(OSError, match="save: File name too long") as found:
        genesis.save(x, tmp_path / ("x" * 256))
    assert found.value.filename == str(tmp_path / ("x" * 256))
    assert names_in(tmp_path) == []
    genesis.save(x, tmp_path / ("x" * 255))  # there is room for a name behind the draft's, too
    assert names_in(tmp_path) == ["x" * 255]
    for path, kind in ((missing, FileNotFoundError), (tmp_path, IsADirectoryError)):
        with pytest.raises(kind) as found:
            genesis.load(path)
        assert str(found.value.filename) == str(path)


def test_a_device_for_what_is_loaded(tmp_path, fresh, build):
    genesis.save({"a": genesis.arange(5), "b": genesis.ones(2, 0)}, tmp_path / "x")
    for device in (None, "cpu", genesis.device("cpu")):
        assert genesis.load(tmp_path / "x", device=device)["a"].device == "cpu"
    with pytest.raises(genesis.InvalidDeviceError, match="^'moon' is not a device"):
        genesis.load(tmp_path / "x", device="moon")
    driver = build / "libgenesis_sim.so"
    if driver.exists():
        fresh(
            f"""
import genesis
path = {str(tmp_path / "x")!r}
loaded = genesis.load(path, device="cuda")
assert [str(one.device) for one in loaded.values()] == ["cuda:0", "cuda:0"]
assert loaded["a"].tolist() == [0, 1, 2, 3, 4] and loaded["b"].shape == (2, 0)
assert genesis.load(path)["a"].device == "cpu"
genesis.set_default_device("cuda")
assert genesis.load(path)["a"].device == "cpu"
""",
            GENESIS_CUDA_DRIVER=str(driver),
        )


def test_a_failed_save_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "f"
    genesis.save({"a": genesis.ones(2)}, path)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        genesis.save({"a": genesis.zeros(2)}, path)
    assert genesis.load(path)["a"].tolist() == [1, 1] and names_in(tmp_path) == ["f"]
