"""save() and load() of what a program that trains has: structures, shared memory, hostile files."""

from __future__ import annotations

import base64
import collections
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, OrderedDict, defaultdict

import pytest

import genesis


def again(obj, **options):
    room = io.BytesIO()
    genesis.save(obj, room)
    room.seek(0)
    return genesis.load(room, **options)


def parts_of(data: bytes) -> tuple[dict, dict, bytes]:
    """The header, the structure and the elements of a file."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    return header, json.loads(header["__metadata__"]["structure"]), data[8 + length :]


# ---- structures ----


def test_every_kind_of_value():
    same = genesis.ones(2)
    obj = {
        "plain": [None, True, False, 3, -(2**200), 2.5, "text", "naïve \U0001f600", "\ud800"],
        "numbers": (float("inf"), float("-inf"), -0.0, 5e-324, 0.1, 3 - 1j),
        "empty": [[], (), {}, set(), frozenset(), "", b""],
        "keys": {1: 2, None: 3, (1, ("a", 2.5)): 4, True if False else "x": 5, genesis.int8: 6},
        "sets": ({1, "a", None}, frozenset([(1, 2)])),
        "bytes": (b"\x00\xff", bytearray(b"ab")),
        "ordered": OrderedDict(b=same, a=2),
        "counter": Counter("aab"),
        "default": defaultdict(dict, {0: {"step": same}}),
        "bare": defaultdict(None, {1: 2}),
        "types": [getattr(genesis, name) for name in ("float32", "bfloat16", "bool", "uint64")],
        "place": genesis.device("cpu"),
        "size": genesis.Size((2, 3)),
        "words": {"tensor": 1, "dict": {"tuple": [1]}, "__metadata__": same},
    }
    made = again(obj)
    assert made["ordered"]["b"] is made["default"][0]["step"] is made["words"]["__metadata__"]
    assert made["ordered"]["b"].tolist() == [1, 1]
    for one in (obj, made):
        one["ordered"]["b"] = one["default"][0]["step"] = one["words"]["__metadata__"] = 0
    assert made == obj and list(made) == list(obj)
    for one in (obj, made):
        one["sets"] = [sorted(map(repr, each)) for each in one["sets"]]  # they have no order
    assert repr(made) == repr(obj)
    assert type(made["ordered"]) is OrderedDict and type(made["counter"]) is Counter
    assert made["default"].default_factory is dict and made["bare"].default_factory is None
    assert type(made["bytes"][1]) is bytearray and made["size"].numel() == 6
    for value in (3, None, "text", [1, (2,)], {}, genesis.float32):
        assert again(value) == value
    nan = again({"x": float("nan")})["x"]
    assert nan != nan


def test_dicts_of_tensors_are_plain_files(tmp_path):
    """Others' readers of safetensors see the names; there is no structure."""
    genesis.save({"a": genesis.ones(2), "b.c": genesis.zeros(1)}, tmp_path / "f")
    data = (tmp_path / "f").read_bytes()
    assert b"__metadata__" not in data
    nested = {
        "model": {"w": genesis.ones(2)},
        "list": [genesis.zeros(1)],
        "model.w": genesis.ones(1),
    }
    genesis.save(nested, tmp_path / "g")
    header, _, _ = parts_of((tmp_path / "g").read_bytes())
    assert set(header) == {"__metadata__", "model.w", "list.0", "model.w#2"}
    safetensors = pytest.importorskip("safetensors.numpy")
    found = safetensors.load_file(tmp_path / "g")
    assert found["model.w"].tolist() == [1, 1] and found["list.0"].tolist() == [0]


def test_state_dicts_keep_their_metadata():
    state = OrderedDict(weight=genesis.ones(1))
    state._metadata = OrderedDict({"": {"version": 1}})
    made = again({"model": state})["model"]
    assert type(made) is OrderedDict and made._metadata == {"": {"version": 1}}
    assert type(made._metadata) is OrderedDict


def test_numbers_of_numpy_become_those_of_python():
    """They are what a program keeps of its losses. Arrays are refused: they would be tensors."""
    numpy = pytest.importorskip("numpy")
    made = {
        "best": numpy.float64(0.5),
        "loss": [numpy.float32(0.25), numpy.float64("inf")],
        "step": numpy.int64(3),
        "done": numpy.bool_(True),
        "half": numpy.float16(2),
    }
    found = again(made)
    expected = {"best": 0.5, "loss": [0.25, float("inf")], "step": 3, "done": True, "half": 2.0}
    assert found == expected
    assert [type(one) for one in found.values()] == [float, list, int, bool, float]
    for wrong in (numpy.arange(2), numpy.array(1.5), numpy.longdouble(1), numpy.datetime64("2020")):
        with pytest.raises(TypeError, match=r"^save: \['x'\] is of class numpy"):
            again({"x": wrong})


def test_arguments_of_pytorch():
    room = io.BytesIO()
    genesis.save({"a": 1}, room, pickle_protocol=4, _use_new_zipfile_serialization=False)
    room.seek(0)
    assert genesis.load(room, weights_only=None, mmap=None, pickle_module=None) == {"a": 1}


class Own:
    def __reduce__(self):
        raise AssertionError("it was pickled")


class Stateful(Own):
    def state_dict(self):
        return {}


class Names(dict):
    pass


POINT = collections.namedtuple("POINT", "x y")  # noqa: PYI024


def test_other_objects_are_refused(tmp_path):
    path = tmp_path / "f"
    genesis.save([1], path)
    for wrong, words in [
        (
            {"model": {"layers": [1, Own()]}},
            r"\['model'\]\['layers'\]\[1\] is of class .*Own, which",
        ),
        ([Stateful()], r"\[0\] is of class .*Stateful, .*: save its state_dict\(\)"),
        ({"x": Names()}, r"Names, which is not saved: make it a dict"),
        ({"x": POINT(1, 2)}, "POINT, which is not saved: make it a tuple"),
        ({"x": signal.SIGINT}, "make it a number of Python"),
        ({"x": print}, r"\['x'\] is of class builtins.builtin_function"),
        ({"x": {Own()}}, r"\['x'\] has the key .*Own"),
        ({Own(): 1}, "the object itself has the key"),
        ({2**80: 1}, "has the key"),
        ({"x": defaultdict(lambda: 1)}, "a defaultdict of <function"),
    ]:
        with pytest.raises(TypeError, match=f"^save: .*{words}"):
            genesis.save(wrong, path)
    loop: list = [1]
    loop.append({"again": loop})
    deep: list = []
    for _ in range(200):
        deep = [deep]
    for wrong, words in [
        (loop, r"\[1\]\['again'\] contains itself"),
        (deep, "is nested more than 100 deep"),
        (2**20_000, "is a number of 20001 bits"),
    ]:
        with pytest.raises(ValueError, match=f"^save: .*{words}"):
            genesis.save(wrong, path)
    assert genesis.load(path) == [1] and [one.name for one in tmp_path.iterdir()] == ["f"]
    assert again([loop[0], [1], [1]]) == [1, [1], [1]]


# ---- tensors ----


def test_what_a_tensor_is_stays():
    leaf = genesis.ones(2).requires_grad_()
    made = again({"leaf": leaf, "result": leaf * 2, "whole": genesis.arange(2)})
    assert made["leaf"].requires_grad and made["leaf"].is_leaf
    assert made["result"].requires_grad and made["result"].is_leaf
    assert made["result"].tolist() == [2, 2] and not made["whole"].requires_grad
    parameter = getattr(genesis.nn, "Parameter", None)
    if parameter is not None:
        made = again([parameter(leaf.detach()), parameter(genesis.ones(1), requires_grad=False)])
        assert [isinstance(one, parameter) for one in made] == [True, True]
        assert [one.requires_grad for one in made] == [True, False]


@pytest.mark.parametrize("mmap", [False, True])
def test_shared_memory_is_written_once(tmp_path, mmap):
    base = genesis.arange(1200.0).reshape(30, 40)
    small = genesis.arange(4, dtype=genesis.uint8)
    obj = {
        "base": base,
        "again": base,
        "same": base.view(30, 40),
        "flat": base.view(-1),
        "row": base[2],
        "turned": base.T,
        "steps": base[::-2, 1::3],
        "wide": base[0, :1].expand(7, 1),
        "bytes": small,
        "floats": small.view(genesis.float32),
    }
    path = tmp_path / "f"
    genesis.save(obj, path)
    assert path.stat().st_size < base.nbytes + 3000
    made = genesis.load(path, mmap=mmap)
    assert made["base"] is made["again"] and made["same"] is not made["base"]
    for name, tensor in obj.items():
        assert made[name].tolist() == tensor.tolist() and made[name].dtype == tensor.dtype, name
        assert made[name].stride() == tensor.stride(), name
    made["flat"][:] = 7.0
    for name in ("base", "same", "row", "turned", "steps", "wide"):
        assert set(made[name].reshape(-1).tolist()) == {7.0}, name
    made["bytes"][:] = 0
    assert made["floats"].tolist() == [0.0]
    assert genesis.load(path)["row"].tolist() == base[2].tolist()  # the file is what it was


def test_parts_without_the_whole():
    """What two parts reach is written, and no more of the storage."""
    base = genesis.arange(100_000.0)
    room = io.BytesIO()
    genesis.save({"a": base[10:20], "b": base[15:40:2]}, room)
    assert len(room.getvalue()) < 2000
    room.seek(0)
    made = genesis.load(room)
    made["a"][5] = -1.0
    assert made["b"].tolist()[0] == -1 and made["b"].tolist()[1:] == base[17:40:2].tolist()
    alone = io.BytesIO()
    genesis.save([base[10:20]], alone)
    assert len(alone.getvalue()) < 400


def test_memory_of_others_and_what_waits():
    memory = bytearray(16)
    one, other = (genesis.frombuffer(memory, dtype=genesis.int32, offset=4 * i) for i in range(2))
    x = genesis.ones(1000)
    y = x + 1
    made = again({"one": one, "other": other, "y": y, "z": y[:10], "none": genesis.zeros(0, 2)})
    assert made["one"].tolist() == [0] * 4 and made["other"].tolist() == [0] * 3
    made["y"][0] = 9.0
    assert made["z"].tolist() == [9] + [2] * 9 and made["none"].shape == (0, 2)


def test_generators_and_numbers_go_on():
    """A run that is resumed draws the same numbers."""
    genesis.manual_seed(5)
    genesis.rand(10)
    generator = genesis.Generator().manual_seed(7)
    state = again({"rng": genesis.get_rng_state(), "own": generator.get_state(), "step": 3})
    expected = genesis.rand(20).tolist(), genesis.rand(5, generator=generator).tolist()
    genesis.set_rng_state(state["rng"])
    generator.set_state(state["own"])
    assert (genesis.rand(20).tolist(), genesis.rand(5, generator=generator).tolist()) == expected


def test_places(fresh, build, tmp_path):
    obj = {"a": genesis.arange(4), "l": [genesis.ones(2)]}
    seen = []
    for place in (None, "cpu", genesis.device("cpu"), {"cuda:0": "cpu"}):
        assert again(obj, map_location=place)["a"].device == "cpu"
    again(obj, map_location=lambda storage, place: seen.append((storage.nbytes(), place)))
    assert sorted(seen) == [(8, "cpu"), (32, "cpu")]
    with pytest.raises(TypeError, match="two words for one thing"):
        again(obj, map_location="cpu", device="cpu")
    with pytest.raises(genesis.InvalidDeviceError, match="moon"):
        again(obj, map_location="moon")
    with pytest.raises(ValueError, match="with mmap=True a file is given by its path"):
        again(obj, mmap=True)
    driver = build / "libgenesis_sim.so"
    if not driver.exists():
        return
    fresh(
        f"""
import genesis
path = {str(tmp_path / "f")!r}
x = genesis.arange(6.0, device="cuda")
genesis.save({{"x": x, "part": x[2:], "n": 1}}, path)
for place in ("cuda", {{"cuda:0": "cuda"}}, lambda storage, place: place):
    made = genesis.load(path, map_location=place)
    assert str(made["x"].device) == "cuda:0", place
    made["x"][3] = -1.0
    assert made["part"].tolist() == [2, -1, 4, 5]
assert genesis.load(path)["x"].device == "cpu"
""",
        GENESIS_CUDA_DRIVER=str(driver),
    )


# ---- files ----


def test_a_killed_save_leaves_what_was_there(tmp_path):
    """Whenever it is killed, the file is the old or the new one."""
    path = tmp_path / "f"
    genesis.save({"step": 0, "x": genesis.zeros(1000)}, path)
    code = f"""
import genesis
step = 0
print("ready", flush=True)
while True:
    step += 1
    genesis.save({{"step": step, "x": genesis.full((200_000,), float(step))}}, {str(path)!r})
"""
    chance = random.Random(1)
    for _ in range(3):
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        child.stdout.readline()
        time.sleep(chance.random() * 0.05)
        child.kill()
        child.wait()
        child.stdout.close()
        made = genesis.load(path)
        assert set(made["x"].tolist()) == {float(made["step"])}


def test_a_failed_save_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "f"
    genesis.save({"step": 1}, path)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        genesis.save({"step": 2, "x": [genesis.ones(3)]}, path)
    assert genesis.load(path) == {"step": 1} and [one.name for one in tmp_path.iterdir()] == ["f"]


# ---- hostile files ----


def right() -> bytes:
    base = genesis.arange(12.0).reshape(3, 4)
    room = io.BytesIO()
    obj = {
        "a": base,
        "b": base[1],
        "c": [1, (2.5, None), {"x"}, b"abc", genesis.float32, genesis.device("cpu")],
        "d": OrderedDict({1: genesis.ones(2).requires_grad_()}),
        "e": defaultdict(list, {0: [float("nan")]}),
    }
    genesis.save(obj, room)
    return room.getvalue()


def damaged(change) -> bytes:
    """A right file whose structure is another one."""
    data = right()
    header, structure, elements = parts_of(data)
    changed = change(structure)
    text = changed if isinstance(changed, str) else json.dumps(structure)
    header["__metadata__"]["structure"] = text
    made = json.dumps(header).encode()
    return len(made).to_bytes(8, "little") + made + elements


def put(*path):
    """A change of one value of the structure."""
    *parents, last, value = path

    def change(structure):
        for key in parents:
            structure = structure[key]
        structure[last] = value

    return change


HOSTILE = {
    "no JSON": (lambda s: "{", "no JSON"),
    "deep": (lambda s: "[" * 100_000, "nested too deeply"),
    "deep tree": (put("tree", json.loads("[" * 500 + "]" * 500)), "nested more than"),
    "a list": (lambda s: "[]", "parts 'tensors' and 'tree'"),
    "no table": (lambda s: '{"tree": 1}', "parts 'tensors' and 'tree'"),
    "more": (put("more", 1), "parts 'tensors' and 'tree'"),
    "key twice": (lambda s: '{"tree": 1, "tree": 2, "tensors": []}', "'tree' stands twice"),
    "table": (put("tensors", {}), "table of tensors"),
    "entry": (put("tensors", 0, 3), "not described"),
    "unknown word": (put("tensors", 0, "more", 1), "not described"),
    "name": (put("tensors", 0, "name", 1), "not described"),
    "no name": (put("tensors", 0, {}), "is None, which is not in the file"),
    "missing": (put("tensors", 0, "name", "x"), "'x', which is not in the file"),
    "gradient of text": (put("tensors", 0, "grad", "yes"), "not described"),
    "view": (put("tensors", 1, "view", []), "not described"),
    "view type": (put("tensors", 1, "view", 0, "float99"), "not described"),
    "view too long": (put("tensors", 1, "view", 1, [9]), "not within the 12 elements"),
    "view past the end": (put("tensors", 1, "view", 3, 9), "not within the 12 elements"),
    "view before": (put("tensors", 1, "view", 2, [-9]), "not within the 12 elements"),
    "view offset": (put("tensors", 1, "view", 3, -1), "no offset"),
    "view shape": (put("tensors", 1, "view", 1, ["4"]), "no shape"),
    "view strides": (put("tensors", 1, "view", 2, [1.5]), "no strides"),
    "view dimensions": (put("tensors", 1, "view", 1, [1] * 17), "no shape"),
    "view huge": (
        put("tensors", 1, "view", ["float32", [1 << 40] * 2, [0, 0], 0]),
        "too many elements",
    ),
    "gradient of integers": (
        put("tensors", 1, {"name": "a", "view": ["int32", [1], [1], 0], "grad": True}),
        "has no gradient",
    ),
    "tensor": (put("tree", {"tensor": 99}), "tensor 99 of 3"),
    "tensor negative": (put("tree", {"tensor": -1}), "tensor -1 of 3"),
    "tensor text": (put("tree", {"tensor": "0"}), "a tensor is a number"),
    "no kind": (put("tree", {}), "one word"),
    "two kinds": (put("tree", {"tuple": [], "set": []}), "one word"),
    "unknown kind": (put("tree", {"object": "os.system"}), "of a known kind"),
    "tuple": (put("tree", {"tuple": 1}), "of a known kind"),
    "dict": (put("tree", {"dict": [1]}), "a dict is one"),
    "items": (put("tree", {"items": [[1]]}), "a key and a value"),
    "items twice": (put("tree", {"items": [[1, 2], [1, 3]]}), "a key stands twice"),
    "key": (put("tree", {"items": [[[1], 2]]}), "keys are"),
    "key tensor": (put("tree", {"set": [{"tensor": 0}]}), "keys are"),
    "key huge": (put("tree", {"set": [1 << 70]}), "keys are"),
    "factory": (put("tree", {"default": [], "factory": "eval"}), "a factory has a known name"),
    "bytes": (put("tree", {"bytes": "!"}), "base64|padding|alphabet"),
    "float": (put("tree", {"float": "1"}), "nan, inf"),
    "complex": (put("tree", {"complex": ["1"]}), "two parts"),
    "dtype": (put("tree", {"dtype": "float99"}), "known name"),
    "device": (put("tree", {"device": "moon"}), "known name|is not a device"),
    "size": (put("tree", {"size": [1.5]}), "a size is a list"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_structures(case):
    change, words = HOSTILE[case]
    with pytest.raises(ValueError, match=words):
        genesis.load(io.BytesIO(damaged(change)))


def test_truncated_files(tmp_path):
    data, path = right(), tmp_path / "f"
    for end in (*range(0, 300, 7), len(data) - 1):
        path.write_bytes(data[:end])
        for mmap in (False, True):
            with pytest.raises(ValueError):
                genesis.load(path, mmap=mmap)


@pytest.mark.parametrize("seed", range(3))
def test_mutated_files_are_read_or_refused(seed):
    chance = random.Random(seed)
    data = right()
    words = ['{"tensor":0}', '{"tuple":[', "[[", "]", "-1", '"a"', "null", "1e999", '{"set":[1]}']
    for _ in range(300):
        made = bytearray(data)
        for _ in range(chance.randrange(1, 3)):
            at = chance.randrange(len(made))
            kind = chance.randrange(3)
            if kind == 0:
                made[at] = chance.randrange(256)
            elif kind == 1:
                made[at : at + chance.randrange(8)] = b"#" * chance.randrange(8)
            else:
                word = chance.choice(words).replace('"', '\\"').encode()
                made[at : at + len(word)] = word  # the header keeps its length
        try:
            repr(genesis.load(io.BytesIO(bytes(made))))
        except ValueError:
            continue


def test_names_from_files_are_shown_without_control_characters():
    change = put("tensors", 0, "name", "\x1b[31m\n")
    with pytest.raises(ValueError) as caught:
        genesis.load(io.BytesIO(damaged(change)))
    assert "\x1b" not in str(caught.value) and "\n" not in str(caught.value)
    assert base64.b64encode(b"abc") in right()


# ---- a run that goes on ----

RUN = """
import sys
import genesis
from genesis.utils.data import DataLoader, TensorDataset

def train(state, epochs, device):
    weights = [one.clone().to(device).requires_grad_() for one in state["weights"]]
    speeds = [one.clone().to(device) for one in state["speeds"]]
    generator = genesis.Generator()
    generator.set_state(state["order"])
    genesis.set_rng_state(state["rng"])
    dataset = TensorDataset(*state["data"])
    loader = DataLoader(dataset, 8, shuffle=True, generator=generator, num_workers=state["workers"])
    losses = list(state["losses"])
    for _ in range(epochs):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            noise = genesis.rand(x.shape[0], 5).to(device)
            hidden = (x @ weights[0]).relu() * (noise > 0.2)
            loss = ((hidden @ weights[1] - y) ** 2).mean()
            loss.backward()
            with genesis.no_grad():
                for weight, speed in zip(weights, speeds):
                    speed *= 0.9
                    speed += weight.grad
                    weight -= 0.05 * speed
                    weight.grad = None
            losses.append(loss.item())
    return {**state, "weights": [one.detach() for one in weights], "speeds": speeds,
            "order": generator.get_state(), "rng": genesis.get_rng_state(), "losses": losses}

if __name__ == "__main__":
    path, device = sys.argv[1:]
    genesis.manual_seed(3)
    first = {
        "weights": [genesis.randn(4, 5), genesis.randn(5, 1)],
        "speeds": [genesis.zeros(4, 5), genesis.zeros(5, 1)],
        "data": (genesis.randn(20, 4), genesis.randn(20, 1)),
        "order": genesis.Generator().manual_seed(1).get_state(),
        "rng": genesis.get_rng_state(), "losses": [], "workers": 1,
    }
    whole = train(first, 4, device)
    genesis.save(train(first, 2, device), path)
    genesis.rand(100)
    resumed = train(genesis.load(path), 2, device)
    assert resumed["losses"] == whole["losses"] and len(set(whole["losses"])) == 12
    for name in ("weights", "speeds"):
        for one, other in zip(resumed[name], whole[name]):
            assert one.tolist() == other.tolist()
"""


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_resumed_run_has_the_same_bits(tmp_path, build, device):
    driver = build / "libgenesis_sim.so"
    if device == "cuda" and not driver.exists():
        pytest.skip("the build has no simulator")
    (tmp_path / "run.py").write_text(RUN)
    finished = subprocess.run(
        [sys.executable, tmp_path / "run.py", tmp_path / "f", device],
        env=os.environ | {"GENESIS_CUDA_DRIVER": str(driver)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
