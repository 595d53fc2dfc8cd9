"""load() of torch.save's files: what PyTorch wrote is read, and nothing else runs.

The files in torch_files/ are written by record_torch_files.py.
"""

from __future__ import annotations

import io
import pickle
import random
import resource
import struct
import tarfile
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path

import pytest

import genesis

FOLDER = Path(__file__).with_name("torch_files")
DTYPES = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "bfloat16", "float32", "float64",
]  # fmt: skip


def load(name: str, **options):
    return genesis.load(FOLDER / f"{name}.pt", **options)


# ---- what PyTorch wrote ----


@pytest.mark.parametrize("mmap", [False, True])
def test_every_dtype(mmap):
    found = load("dtypes", mmap=mmap)
    assert list(found) == DTYPES
    for name, tensor in found.items():
        expected = genesis.arange(6).reshape(2, 3).to(getattr(genesis, name))
        assert tensor.dtype == name and tensor.tolist() == expected.tolist()
        tensor[0, 0] = 1  # memory of its own, also where the file is mapped
    assert load("dtypes")["float32"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert load("tensor").tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name, mmap", [("shared", False), ("shared", True), ("old_shared", False)])
def test_shared_memory_stays_shared(name, mmap):
    found = load(name, mmap=mmap)
    base = found["base"]
    base[1] = genesis.tensor([40.0, 50.0, 60.0, 70.0])
    assert found["row"].tolist() == base[1].tolist()
    assert found["transposed"].tolist() == base.T.tolist()
    assert found["transposed"].stride() == (1, 4)
    assert found["steps"].tolist() == [[1, 3], [9, 11]] and found["steps"].stride() == (8, 2)
    assert found["wide"].tolist() == [[5, 5]] * 3 and found["wide"].stride() == (0, 0)
    assert found["weight"] is found["tied"] and found["weight"].requires_grad
    assert found["weight"].is_leaf and not found["frozen"].requires_grad
    assert found["leaf"].requires_grad and found["leaf"].is_leaf
    assert found["empty"].shape == (0, 3) and found["scalar"].item() == 7
    parameter = getattr(genesis.nn, "Parameter", None)
    if parameter is not None:
        assert isinstance(found["weight"], parameter) and isinstance(found["frozen"], parameter)


@pytest.mark.parametrize("name", ["containers", "protocol4"])
def test_containers(name):
    found = load(name)
    assert found["list"] == [1, -5, 300, 70000, 2**40, -(2**70), 2.5, True, None, "text"]
    assert found.pop("nan") != 0 and found["unicode"] == "naïve \U0001f600"
    assert found["tuple"] == (1, (2, (3,)), ()) and found["five"] == (1, 2, 3, 4, 5)
    assert found["set"] == {1, "a"} and found["frozen"] == frozenset([2])
    assert found["bytes"] == b"\x00\xffabc" and found["bytearray"] == bytearray(b"xy")
    assert type(found["bytearray"]) is bytearray and found["complex"] == 3 + 1j
    assert type(found["ordered"]) is OrderedDict and list(found["ordered"]) == ["b", "a"]
    assert type(found["counter"]) is Counter and found["counter"] == Counter("aab")
    assert found["size"] == (2, 3) and found["size"].numel() == 6
    assert found["dtype"] is genesis.bfloat16 and found["device"] == genesis.device("cpu")
    assert found["same"] == [[1, 2], [1, 2]] and found["same"][0] is found["same"][1]
    assert found[3] == {(1, "a"): 0.5} and found[None] is True


@pytest.mark.parametrize("name", ["training", "old_training"])
def test_a_training_run(name):
    found = load(name)
    model = found["model"]
    assert type(model) is OrderedDict and model._metadata[""] == {"version": 1}
    assert list(model)[:3] == ["0.weight", "0.bias", "1.weight"]
    assert model["1.num_batches_tracked"].item() == 1
    assert found["epoch"] == 3 and found["best"] == 0.25
    group = found["optimizer"]["param_groups"][0]
    assert group["lr"] == 0.5 and group["betas"] == (0.9, 0.999) and group["foreach"] is None
    assert found["optimizer"]["state"][0]["step"].item() == 1
    assert found["scheduler"]["milestones"] == Counter([2, 4])
    room = io.BytesIO()
    genesis.save(found, room)  # and as a file of our own
    room.seek(0)
    again = genesis.load(room)
    assert again["optimizer"]["param_groups"] == found["optimizer"]["param_groups"]
    assert again["model"]["0.weight"].tolist() == model["0.weight"].tolist()


def test_where_it_is_read_from():
    data = (FOLDER / "tensor.pt").read_bytes()
    room = io.BytesIO(b"before" + data)
    room.seek(6)
    assert genesis.load(room).tolist() == [0, 1, 2, 3, 4] and room.tell() == 6 + len(data)
    with (FOLDER / "tensor.pt").open("rb") as file:
        assert genesis.load(file, weights_only=False).tolist() == [0, 1, 2, 3, 4]
    seen = []
    found = load("shared", map_location=lambda storage, place: seen.append(place) or storage)
    assert set(seen) == {"cpu"} and found["base"].device == "cpu"
    assert load("shared", map_location={"cuda:0": "cpu"})["base"].device == "cpu"


def test_tensors_go_to_a_device(fresh, build):
    driver = build / "libgenesis_sim.so"
    if not driver.exists():
        pytest.skip("the build has no simulator")
    fresh(
        f"""
import genesis
path = {str(FOLDER / "shared.pt")!r}
for place in ("cuda", {{"cpu": "cuda:0"}}, lambda storage, place: storage.device and "cuda:0"):
    found = genesis.load(path, map_location=place)
    assert str(found["base"].device) == "cuda:0" and found["tied"] is found["weight"]
    found["base"][1] = 0.0
    assert found["row"].tolist() == [0, 0, 0, 0] and found["wide"].stride() == (0, 0)
""",
        GENESIS_CUDA_DRIVER=str(driver),
    )


@pytest.mark.parametrize(
    "name, words",
    [
        ("module", r"it has 'torch\.nn\.modules\.linear\.Linear', which is not read"),
        ("own", r"it has '__main__\.Own', which is not read.*Save a state_dict"),
        ("complex", r"torch\.ComplexFloatStorage"),
        ("sparse", r"_rebuild_sparse_tensor"),
    ],
)
def test_other_files_are_refused(name, words):
    with pytest.raises(ValueError, match=words) as caught:
        load(name)
    assert str(caught.value).startswith(str(FOLDER / name))


def test_the_layout_from_before_version_1_6():
    """Files may stand one behind the other; they are not mapped."""
    data = (FOLDER / "old.pt").read_bytes()
    room = io.BytesIO(b"before" + data + (FOLDER / "old_shared.pt").read_bytes())
    room.seek(6)
    assert genesis.load(room)["a"].tolist() == [1, 1] and room.tell() == 6 + len(data)
    places: list[str] = []
    found = genesis.load(room, map_location=lambda storage, place: places.append(place))
    assert found["row"].tolist() == [4, 5, 6, 7] and set(places) == {"cpu"}
    with pytest.raises(ValueError, match="without mmap=True"):
        load("old", mmap=True)


def numpy_number(
    kind=b"X\x02\x00\x00\x00f8", order=b"<", value=b"\x00\x00\x00\x00\x00\x00\xe0?"
) -> bytes:
    """A number of NumPy, as NumPy 1 and 2 write it."""
    made = b"cnumpy\ndtype\n" + kind + b"\x89\x88\x87R(K\x03X\x01\x00\x00\x00" + order
    made += b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    return made + b"C" + bytes([len(value)]) + value + b"\x86R"


def test_numbers_of_numpy():
    """A program keeps its best loss in a checkpoint."""
    found = [
        b"cnumpy.core.multiarray\nscalar\n" + numpy_number(),
        b"cnumpy._core.multiarray\nscalar\n"
        + numpy_number(b"X\x02\x00\x00\x00i2", value=b"\xfe\xff"),
        b"cnumpy.core.multiarray\nscalar\n" + numpy_number(b"X\x02\x00\x00\x00b1", b"|", b"\x01"),
    ]
    made = genesis.load(archive(b"](" + b"".join(found) + b"e."))
    assert made == [0.5, -2, True] and [type(one) for one in made] == [float, int, bool]
    scalar = b"cnumpy.core.multiarray\nscalar\n"
    for data, words in [
        (scalar + numpy_number(b"X\x03\x00\x00\x00f16"), "a type of NumPy is 'f16'"),
        (scalar + numpy_number(b"K\x05"), "a type of NumPy is 5"),
        (scalar + numpy_number(order=b">"), "byte order is not little"),
        (scalar + numpy_number(value=b"abc"), "not the parts that it should"),
        (scalar + b"K\x01K\x02\x86R", "not the parts that it should"),
        (b"cnumpy\ndtype\nX\x02\x00\x00\x00f8\x85R", "a type or a function where"),
        (b"cnumpy.core.multiarray\n_reconstruct\n", "which is not read"),
    ]:
        refused(data + b".", words)


def test_tar_files_are_refused(tmp_path):
    with tarfile.open(tmp_path / "old.tar", "w") as file:
        file.add(FOLDER / "tensor.pt", "storages")
    with pytest.raises(ValueError, match="this is a tar file"):
        genesis.load(tmp_path / "old.tar")


# ---- hostile files ----


def archive(data: bytes, **entries: bytes) -> io.BytesIO:
    """A file of torch.save with this pickle."""
    room = io.BytesIO()
    with zipfile.ZipFile(room, "w") as file:
        file.writestr("a/data.pkl", data)
        for name, content in entries.items():
            file.writestr("a/" + name.replace("_", "/"), content)
    room.seek(0)
    return room


def refused(data: bytes, words: str, **entries: bytes) -> None:
    with pytest.raises(ValueError, match=words):
        genesis.load(archive(data, **entries))


class Call:
    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


ran = []


def test_nothing_of_a_file_runs(tmp_path):
    import os

    for function, argument in [
        (os.system, f"touch {tmp_path}/here"),
        (eval, "ran.append(1)"),
        (exec, "ran.append(1)"),
        (getattr, "x"),
        (ran.append, 1),
    ]:
        for protocol in (2, 4):
            refused(pickle.dumps({"x": Call(function, argument)}, protocol), "which is not read")
    refused(b"(S'x'\nios\nsystem\n.", "opcode")
    refused(b"cgenesis\nload\n(X\x01\x00\x00\x00xtR.", r"genesis\.load")
    refused(b"cbuiltins\ngetattr\n.", r"builtins\.getattr")
    refused(b"\x80\x02c__builtin__\nset\nc__builtin__\nset\n\x85R.", "a set is no list")
    refused(b"\x80\x02ccollections\nOrderedDict\n.", "a function where a value should be")
    refused(b"\x80\x02]}X\x01\x00\x00\x00ab.", "adds something to what is no container|no dict")
    assert not ran and not list(tmp_path.iterdir())


def storage(key=b"0", count=4, kind=b"torch\nFloatStorage\n") -> bytes:
    return (
        b"(X\x07\x00\x00\x00storagec" + kind + b"X" + struct.pack("<I", len(key)) + key
        + b"X\x03\x00\x00\x00cpuJ" + struct.pack("<i", count) + b"tQ"
    )  # fmt: skip


def tensor(shape=b"K\x04\x85", strides=b"K\x01\x85", offset=b"K\x00", flag=b"\x89", **options):
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage(**options) + offset + shape + strides
        + flag + b"ccollections\nOrderedDict\n)RtR"
    )  # fmt: skip


FOUR = struct.pack("<4f", 1, 2, 3, 4)


def test_tensors_that_cannot_be():
    assert genesis.load(archive(tensor() + b".", data_0=FOUR)).tolist() == [1, 2, 3, 4]
    for data, words in [
        (tensor(shape=b"K\x05\x85"), "not within the 4 elements"),
        (tensor(offset=b"K\x01"), "not within the 4 elements"),
        (tensor(offset=b"J\xff\xff\xff\xff"), "no offset"),
        (tensor(offset=b"N"), "no offset"),
        (tensor(strides=b"J\x00\x00\x00\x80\x85"), "not within"),
        (tensor(strides=b"K\x01K\x01\x86"), "no strides"),
        (tensor(strides=b"N\x85"), "no strides"),
        (tensor(shape=b"J\xff\xff\xff\xff\x85"), "no shape"),
        (tensor(shape=b"N"), "no shape"),
        (tensor(shape=b"(" + b"K\x01" * 17 + b"t"), "no shape"),
        (
            tensor(
                shape=b"(" + b"J\xff\xff\xff\x7f" * 4 + b"t", strides=b"(" + b"K\x00" * 4 + b"t"
            ),
            "too many elements",
        ),
        (tensor(key=b"1"), "storage '1' is not in the file"),
        (tensor(key=b"../0"), "is not in the file"),
        (tensor(count=5), "should have 20 bytes, but there are 16"),
        (tensor(count=-1), "no size"),
        (
            tensor(kind=b"torch\nLongStorage\n", count=2, flag=b"\x88"),
            "cannot need gradients|within",
        ),
        (tensor(kind=b"torch\nfloat32\n"), "a storage is of type"),
        (tensor(kind=b"torch.storage\nUntypedStorage\n", count=16), "no type"),
        (tensor(flag=b"N"), "no truth"),
        (storage(), "a storage, a type or a function where"),
        (b"X\x01\x00\x00\x00aQ", "no storage"),
        (b"ctorch._utils\n_rebuild_tensor_v2\n)R", "wrong number of parts"),
        (b"ctorch._utils\n_rebuild_parameter\n(K\x01\x89NtR", "a parameter is no tensor"),
    ]:
        refused(data + b".", words, data_0=FOUR)
    refused(tensor() + b".", "byte order is b'big'", data_0=FOUR, byteorder=b"big")


def test_pickles_that_are_no_values():
    deep = b")" + b"\x85" * 5000
    for data, words in [
        (b"", "ends too early"),
        (b"}", "ends too early"),
        (b".", "more values than it has"),
        (b"X\xff\xff\xff\xff.", "ends too early"),
        (b"\x80\x09N.", "protocol"),
        (b"h\x05.", "has not made"),
        (b"t.", "no mark"),
        (b"(.", "more values than it has"),
        (b"]q\x00h\x00a.", "contains itself"),
        (b"}q\x00K\x01h\x00s.", "contains itself"),
        (deep + b".", "nested more than"),
        (b"}" + deep + b"Ns.", "a key is"),
        (b"}]Ns.", "a key is list"),
        (b"(K\x01}.", None),
        (b"}(K\x01u.", "without a value"),
        (b"}X\x02\x00\x00\x00\xff\xffNs.", "utf-8|UTF"),
        (b"\x8a\xff" + b"\xff" * 10, "ends too early"),
        (b"ctorch\nSize\n]\x85Rctorch\nSize\n\x85R.", "not of integers|no tuple|cannot be called"),
        (b"ctorch\ndevice\nX\x04\x00\x00\x00moon\x85R.", "not known here"),
    ]:
        if words is None:
            genesis.load(archive(data))
        else:
            refused(data, words)


def test_work_is_bounded_by_what_was_read():
    """One list that is given to many calls, each of which would copy it."""
    many = (
        b"](" + b"K\x01" * 20_000 + b"eq\x00c__builtin__\nset\nq\x01" + b"0h\x01h\x00\x85R" * 5000
    )
    refused(many + b".", "copies the same values many times")
    shared = b")q\x00" + b"".join(b"h\x00h\x00\x86q\x000" for _ in range(60)) + b"h\x00."
    genesis.load(archive(shared))
    doubled = b")" + b"q\x00h\x00\x86" * 200 + b"."  # 2 ** 200 tuples, seen as a tree
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    genesis.load(archive(doubled))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


def test_zip_files_that_are_no_files_of_torch(tmp_path):
    good = (FOLDER / "tensor.pt").read_bytes()
    room = io.BytesIO()
    with zipfile.ZipFile(room, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a/data.pkl", b"\x80\x02N." + bytes(1 << 20))
    for data, words in [
        (room.getvalue(), "compressed"),
        (good[:-1], "no whole zip file"),
        (good[: len(good) // 2], "no whole zip file"),
        (b"PK\x03\x04", "no whole zip file"),
        (good.replace(b"data.pkl", b"data.abc"), "has no data.pkl"),
    ]:
        with pytest.raises(ValueError, match=words):
            genesis.load(io.BytesIO(data))
    damaged = bytearray(good)
    at = bytes(good).index(struct.pack("<5q", *range(5)))
    damaged[at] ^= 1
    with pytest.raises(ValueError, match="storage '0' is damaged"):
        genesis.load(io.BytesIO(bytes(damaged)))


def old_file(data: bytes, keys=b"](X\x01\x00\x00\x000e.", content=bytes(24), **parts: bytes):
    """A file of the old layout, with one storage of four float32, and this pickle."""
    head = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
    version = parts.get("version", b"\x80\x02M\xe9\x03.")
    machine = parts.get("machine", b"\x80\x02}X\x0d\x00\x00\x00little_endian\x88s.")
    return io.BytesIO(head + version + machine + b"\x80\x02" + data + b"\x80\x02" + keys + content)


def old_storage(count=b"K\x04", view=b"N", kind=b"torch\nFloatStorage\n") -> bytes:
    texts = b"X\x07\x00\x00\x00storage", b"c" + kind, b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
    return b"(" + b"".join(texts) + count + view + b"tQ"


def old_tensor(storage: bytes) -> bytes:
    return b"ctorch._utils\n_rebuild_tensor\n(" + storage + b"K\x00K\x04\x85K\x01\x85tR."


RIGHT = struct.pack("<q4f", 4, 1, 2, 3, 4)


def test_old_files_that_are_none():
    good = old_tensor(old_storage())
    assert genesis.load(old_file(good, content=RIGHT)).tolist() == [1, 2, 3, 4]
    assert genesis.load(old_file(b"U\x03abc.", b"].", b"")) == "abc"  # as Python 2 wrote texts
    for data, words, parts in [
        (good, "the file ends within", {"content": RIGHT[:-1]}),
        (good, "has not the length it should", {"content": struct.pack("<q4f", 5, 1, 2, 3, 4)}),
        (good, "has not the length it should", {"content": b""}),
        (good, "its storages are not listed", {"keys": b"]."}),
        (good, "its storages are not listed", {"keys": b"](X\x01\x00\x00\x001e."}),
        (good, "its storages are not listed", {"keys": b"](X\x01\x00\x00\x000q\x00h\x00e."}),
        (good, "its keys are no texts", {"keys": b"](K\x01e."}),
        (good, "its version is not known", {"version": b"K\x05."}),
        (good, "byte order is not little", {"machine": b"N."}),
        (old_tensor(old_storage(view=b"K\x01")), "a part of another", {}),
        (old_tensor(old_storage(count=b"J\xff\xff\xff\x7f")), "longer than the file", {}),
        (old_tensor(b"(X\x07\x00\x00\x00storaget"), "has no storage", {}),
        (old_tensor(b"X\x07\x00\x00\x00storageQ"), "that is no storage", {}),
        (b"(" + old_storage() + old_storage(b"K\x03") + b"t.", "two sizes or types", {}),
        (b"cos\nsystem\n.", "'os.system', which is not read", {}),
        (b"X\xff\xff\xff\x7f", "ends too early", {}),
    ]:
        with pytest.raises(ValueError, match=words):
            genesis.load(old_file(data, **{"content": RIGHT, **parts}))


def mutated(chance: random.Random, data: bytes) -> bytes:
    """The bytes of a file, some of them others, missing or twice."""
    made = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(made))
        kind = chance.randrange(5)
        if kind == 0:
            made[at] = chance.randrange(256)
        elif kind == 1:
            del made[at : at + chance.randrange(1, 20)]
        elif kind == 2:
            made[at:at] = made[at : at + chance.randrange(1, 100)]
        elif kind == 3:
            made[at : at + 4] = chance.choice([b"\xff" * 4, bytes(4), b"\xff\xff\xff\x7f"])
        else:
            made[at:at] = chance.choice([b"(" * 100, b"\x85" * 2000, b"h\x00", b"R", b"b", b"Q"])
    return bytes(made)


@pytest.mark.parametrize("seed", range(4))
def test_mutated_files_are_read_or_refused(seed):
    """Both the zip as it is, and pickles of right files in a zip that is right."""
    chance = random.Random(seed)
    files = {
        name: (FOLDER / f"{name}.pt").read_bytes() for name in ("training", "shared", "dtypes")
    }
    files["containers"] = (FOLDER / "protocol4.pt").read_bytes()
    files["old"] = (FOLDER / "old_training.pt").read_bytes()
    accepted = 0
    for _ in range(150):
        name = chance.choice(list(files))
        data = files[name]
        if name != "old" and chance.random() < 0.6:
            parts = zipfile.ZipFile(io.BytesIO(data))
            room = io.BytesIO()
            with zipfile.ZipFile(room, "w") as file:
                for info in parts.infolist():
                    content = parts.read(info)
                    is_pickle = info.filename.endswith("data.pkl")
                    file.writestr(info.filename, mutated(chance, content) if is_pickle else content)
            data = room.getvalue()
        else:
            data = mutated(chance, data)
        try:
            found = genesis.load(io.BytesIO(data))
        except ValueError:
            continue
        accepted += 1
        repr(found)
    assert accepted < 150


@pytest.mark.parametrize("mmap", [False, True])
def test_files_with_wrong_offsets_are_read_or_refused(tmp_path, mmap):
    """Bytes of the zip's directory, at the end of a file, that a disk is asked for."""
    chance, path = random.Random(7), tmp_path / "f"
    good = (FOLDER / "shared.pt").read_bytes()
    for _ in range(400):
        made = bytearray(good)
        for _ in range(chance.randrange(1, 3)):
            at = len(made) - 1 - chance.randrange(1200)
            made[at] = chance.choice([0, 255, 127, 128, chance.randrange(256)])
        path.write_bytes(made)
        try:
            genesis.load(path, mmap=mmap)
        except ValueError:
            continue
