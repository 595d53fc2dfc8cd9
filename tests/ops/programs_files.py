"""Files in PyTorch and in Genesis: what is saved, by whom, and what comes back.

The scenarios of programs_suite.py.
"""

from __future__ import annotations

import io
import pathlib
import tempfile
from collections import Counter, OrderedDict, defaultdict

import numpy as np
import torch
from optimizers_suite import Seen, World, plain, seen, watched
from programs_parts import Pair, Record, scenario, shown

import genesis

# ---- files ----


def values_of_files(w):
    """What scripts save."""
    package, t = w.package, w.package.tensor
    base = package.arange(12.0)
    torch.manual_seed(0)
    model = package.nn.Sequential(package.nn.Linear(3, 2), package.nn.BatchNorm1d(2))
    for parameter in model.parameters():
        parameter.data.fill_(0.5)
    optimizers = {}
    for name, options in (("SGD", {"momentum": 0.9}), ("Adam", {}), ("AdamW", {"amsgrad": True})):
        optimizer = getattr(package.optim, name)(model.parameters(), lr=0.1, **options)
        for parameter in model.parameters():
            parameter.grad = package.ones_like(parameter)
        optimizer.step()
        optimizers[name] = optimizer.state_dict()
    schedule = package.optim.lr_scheduler.MultiStepLR(
        package.optim.SGD(model.parameters(), lr=0.1), [3, 5]
    )
    return {
        "number": 5,
        "float": 0.1,
        "infinity": [float("inf"), -float("inf"), -0.0],
        "text": "a\n\u00e9\U0001f600",
        "bytes": b"\x00\xff",
        "none": None,
        "booleans": [True, False],
        "large": [2**63, -(2**70), 10**100],
        "tensor": t([1.0, 2.0]),
        "scalar": t(3),
        "empty": package.zeros(0, 3),
        "strided": base.view(3, 4).T,
        "view": base[3:7],
        "expanded": package.ones(1).expand(4),
        "parameter": package.nn.Parameter(t([1.0])),
        "frozen": package.nn.Parameter(t([1.0]), requires_grad=False),
        "leaf": t([1.0], requires_grad=True),
        "result": t([1.0], requires_grad=True) * 2,
        "buffer": package.nn.Buffer(t([1.0])),
        "parameter list": [package.nn.Parameter(t([1.0]))],
        "dtypes": {
            name: package.ones(3).to(getattr(package, name))
            for name in (
                *("float16", "bfloat16", "float32", "float64", "uint8", "int8"),
                *("int16", "int32", "int64", "bool"),
            )
        },
        "nested": {"a": [1, (2, {"b": t([1.0])})], 3: "x", None: 1, 1.5: 2, True: 3},
        "tuple keys": {(1, "a"): 2},
        "tuple": (1, (2,), ()),
        "ordered": OrderedDict([("b", 1), ("a", t([1.0]))]),
        "counter": Counter("aab"),
        "set": {1, 2},
        "frozen set": frozenset({1}),
        "default dict": defaultdict(list, a=[1]),
        "dtype": package.float16,
        "device": package.device("cpu"),
        "size": package.ones(2, 3).shape,
        "range": range(3),
        "slice": slice(1, 2),
        "complex": 1 + 2j,
        "bytearray": bytearray(b"abc"),
        "array": np.arange(3),
        "array number": np.float64(1.5),
        "array integer": np.int64(2),
        "path": pathlib.PurePosixPath("/a"),
        "function": print,
        "object": Pair(1, 2),
        "record": Record(1),
        "model state": model.state_dict(),
        "optimizers": optimizers,
        "schedule": schedule.state_dict(),
        "all": {
            "model": model.state_dict(),
            "epoch": 3,
            "best": 0.5,
            "optimizer": optimizers["Adam"],
        },
        "model": model,
        "generator": package.Generator().manual_seed(1).get_state(),
        "shared": [base, base[2:5], base.view(3, 4)],
        "twice": (lambda x: [x, x])(t([1.0])),
        "same list": (lambda x: [x, x])([1]),
    }


def loaded(value):
    """What came back, with classes."""
    made = shown(value)
    return simplified(made)


def simplified(value):
    if isinstance(value, dict):
        return {key: simplified(one) for key, one in value.items()}
    if isinstance(value, list):
        return [simplified(one) for one in value]
    if isinstance(value, (torch.Tensor, genesis.Tensor)):
        is_parameter = type(value).__name__ == "Parameter"
        return {"tensor": Seen(value), "strides": value.stride(), "parameter": is_parameter}
    if isinstance(value, (set, frozenset)):
        return [type(value).__name__, *sorted(value)]
    if isinstance(value, (int, float, str, bytes, type(None), bool)):
        return value
    return f"{type(value).__name__}: {plain(str(value))}"


@scenario
def files(w):
    """Saved and loaded by the same package."""
    package = w.package
    made = {}
    for name, value in values_of_files(w).items():

        def run(value=value):
            file = io.BytesIO()
            package.save(value, file)
            file.seek(0)
            return loaded(package.load(file))

        made[name] = watched(run)

    def shares():
        file = io.BytesIO()
        base = package.arange(12.0)
        package.save({"a": base, "b": base[2:5], "c": base.view(3, 4)}, file)
        file.seek(0)
        back = package.load(file)
        back["a"][3] = 100
        return [seen(back["b"]), seen(back["c"]), back["a"].data_ptr() == back["c"].data_ptr()]

    def places(**options):
        def call():
            path = pathlib.Path(tempfile.mkdtemp(), "file")
            package.save({"a": package.ones(2), "n": 1}, path)
            return loaded(package.load(path, **options))

        return call

    def missing():
        return package.load("/no/such/file")

    def missing_folder():
        return package.save({"a": 1}, "/no/such/folder/file")

    def text_file():
        return package.load(io.StringIO("abc"))

    def truncated(count):
        def call():
            file = io.BytesIO()
            package.save({"a": package.ones(200)}, file)
            return package.load(io.BytesIO(file.getvalue()[:count]))

        return call

    def one_after_the_other():
        file = io.BytesIO()
        package.save(package.ones(2), file)
        package.save({"b": 1}, file)
        file.seek(0)
        return [loaded(package.load(file)), loaded(package.load(file))]

    def closed():
        file = io.BytesIO()
        file.close()
        package.save({}, file)

    calls = {
        "shares": shares,
        "place none": places(),
        "place text": places(map_location="cpu"),
        "place device": places(map_location=package.device("cpu")),
        "place dict": places(map_location={"cuda:0": "cpu"}),
        "place function": places(map_location=lambda storage, where: storage),
        "place function none": places(map_location=lambda storage, where: None),
        "place words": places(map_location="no such"),
        "place number": places(map_location=1.5),
        "cuda": places(map_location="cuda"),
        "mapped": places(mmap=True),
        "weights": places(weights_only=True),
        "no weights": places(weights_only=False),
        "missing": missing,
        "missing folder": missing_folder,
        "text": text_file,
        "directory": lambda: package.load("/tmp"),
        "nothing": truncated(0),
        "five bytes": truncated(5),
        "half": truncated(500),
        "one after the other": one_after_the_other,
        "closed": closed,
        "no argument": lambda: package.save({}),
        "none": lambda: package.save({}, None),
        "path": lambda: package.save({}, 5),
    }
    return {**made, **{f"{name}!": watched(call) for name, call in calls.items()}}


@scenario
def files_of_torch(w):
    """Written by PyTorch, in both layouts, and read by each."""
    made = {}
    for is_zip in (True, False):
        for name, value in values_of_files(World(torch)).items():

            def run(value=value, is_zip=is_zip):
                file = io.BytesIO()
                torch.save(value, file, _use_new_zipfile_serialization=is_zip)
                file.seek(0)
                return loaded(w.package.load(file))

            made[f"{name}, {'zip' if is_zip else 'legacy'}"] = watched(run)
    return made


@scenario
def states_across(w):
    """A state dict of PyTorch's optimizers and models from a file, used here."""
    made = {}
    for name in ("SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "NAdam", "LBFGS"):

        def run(name=name):
            source = World(torch)
            x = torch.ones(3, requires_grad=True)
            options = {"momentum": 0.9} if name == "SGD" else {}
            theirs = getattr(torch.optim, name)([x], lr=0.1, **options)

            def closure():
                theirs.zero_grad()
                loss = (x * x * x).sum()
                loss.backward()
                return loss

            theirs.step(closure)
            file = io.BytesIO()
            torch.save({"optimizer": theirs.state_dict(), "x": x.detach()}, file)
            file.seek(0)
            state = w.package.load(file)
            y = state["x"].requires_grad_()
            ours = getattr(w.package.optim, name)([y], lr=0.5, **options)
            ours.load_state_dict(state["optimizer"])

            def again():
                ours.zero_grad()
                loss = (y * y * y).sum()
                loss.backward()
                return loss

            ours.step(again)
            del source
            return [seen(y), seen(ours.state_dict())]

        made[name] = watched(run)
    return made
