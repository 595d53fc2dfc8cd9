"""What NumPy's and PyTorch's programs write: words for dtypes, sizes, lists of numbers."""

from __future__ import annotations

import copy
import inspect
import json
import pickle

import numpy
import pytest

import genesis

NUMPY = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "float32", "float64",
]  # fmt: skip


# ---- dtypes ----


@pytest.mark.parametrize("name", NUMPY)
def test_every_word_for_a_dtype(name):
    """They mean the same in every place, are equal, and the name finds what it names in a dict."""
    own, words = getattr(genesis, name), [name, getattr(numpy, name), numpy.dtype(name)]
    for word in words:
        assert own == word and word == own and (own != word) is False
        assert genesis.zeros(2, dtype=word).dtype is own
        assert genesis.ones(2).to(word).dtype is genesis.ones(2).to(dtype=word).dtype is own
        assert genesis.ones(8, dtype=genesis.uint8).view(word).dtype is own
        assert genesis.ones(2).astype(word).dtype is genesis.ones(2).type(word).dtype is own
        assert genesis.promote_types(word, word) is own and genesis.can_cast(word, word)
        assert (
            genesis.tensor([1], dtype=word).dtype is genesis.asarray([1], dtype=word).dtype is own
        )
        assert (genesis.finfo if own.is_floating_point else lambda one: one)(word)
    assert hash(own) == hash(name) and {name: 1}[own] == 1 and own in {name}
    others = [one for one in NUMPY if one != name]
    assert not any(own == one or own == numpy.dtype(one) for one in others)
    assert own != "no dtype" and own != None and own != 3 and own != genesis.ones(1).shape  # noqa: E711


def test_classes_of_python():
    for own, word in ((genesis.float64, float), (genesis.int64, int), (genesis.bool, bool)):
        assert own == word
    assert genesis.bfloat16 == "bfloat16" and genesis.bfloat16 != numpy.float16


CALLS = {
    "arange": (3,), "asarray": ([1],), "empty": (2,), "empty_like": (0,), "eye": (2,),
    "full": ((2,), 1), "full_like": (0, 1), "linspace": (0, 1, 3), "logspace": (0, 1, 3),
    "ones": (2,), "ones_like": (0,), "rand": (2,), "rand_like": (0,), "randint": (0, 2, (2,)),
    "randint_like": (0, 2), "randn": (2,), "randn_like": (0,), "randperm": (3,),
    "tril_indices": (2, 2), "triu_indices": (2, 2), "zeros": (2,), "zeros_like": (0,),
    "cumsum": (0, 0), "cumprod": (0, 0), "softmax": (0, 0), "log_softmax": (0, 0),
    "nansum": (0,), "nanmean": (0,), "norm": (0,), "normal": (0.0, 1.0, (2,)),
    "empty_strided": ((2,), (1,)), "frombuffer": (bytes(16),), "view": (genesis.ones(4),),
}  # fmt: skip


def test_no_place_is_forgotten():
    """Every public function that takes a dtype is called with every word for one."""
    names = set()
    for name in genesis.__all__:
        value = getattr(genesis, name)
        if callable(value) and not isinstance(value, type):
            try:
                names |= {name} if "dtype" in inspect.signature(value).parameters else set()
            except ValueError:
                continue
    names -= {
        "as_tensor",
        "from_numpy",
        "from_dlpack",
        "mean",
        "prod",
        "set_autocast_dtype",
        "sum",
        "tensor",
    }  # of C: below
    assert names == set(CALLS)
    x = genesis.ones(3)
    for name, given in CALLS.items():
        arguments = [
            x if "like" in name and i == 0 and one == 0 else one for i, one in enumerate(given)
        ]
        if name in ("cumsum", "cumprod", "softmax", "log_softmax", "nansum", "nanmean", "norm"):
            arguments[0] = x
        for word in ("float64", numpy.float64, numpy.dtype("float64"), genesis.float64, float):
            assert getattr(genesis, name)(*arguments, dtype=word).dtype == "float64", (name, word)
    for word in ("float64", numpy.float64, numpy.dtype("float64")):
        for made in (
            x.sum(dtype=word),
            x.mean(dtype=word),
            x.prod(dtype=word),
            x.cumsum(0, dtype=word),
            genesis.as_tensor([1], dtype=word),
            x.new_zeros(2, dtype=word),
            x.softmax(0, word),
        ):
            assert made.dtype is genesis.float64  # fmt: skip


# ---- numbers in lists ----


LISTS = [
    (lambda: [numpy.int32(3)], "int32"), (lambda: [numpy.int32(3), 5], "int64"),
    (lambda: [numpy.float16(3), 5], "float16"), (lambda: [1, numpy.float16(1.5)], "float16"),
    (lambda: [numpy.int8(3), numpy.int32(5)], "int32"), (lambda: [True, 2], "int64"),
    (lambda: [numpy.uint8(3), numpy.int8(1)], "int16"), (lambda: [numpy.uint16(7)], "uint16"),
    (lambda: [numpy.uint16(7), 3], "int64"), (lambda: [numpy.uint64(7), 3], "uint64"),
    (lambda: [1, 2**63], "uint64"), (lambda: [2**64 - 1, True], "uint64"),
    (lambda: [2**63, 0.5], "float32"), (lambda: [numpy.uint32(7), numpy.int8(1)], "int64"),
    (lambda: [numpy.int32(3), 2.5], "float32"), (lambda: [numpy.float64(1.5)], "float64"),
    (lambda: [numpy.bool_(True)], "bool"), (lambda: [numpy.float32(1.5), 2.5], "float32"),
    (lambda: [numpy.zeros(2, numpy.int16), numpy.zeros(2, numpy.int8)], "int16"),
    (lambda: [genesis.tensor(3, dtype=genesis.int32)], "int32"), (list, "float32"),
    (lambda: [genesis.ones(2, dtype=genesis.bfloat16)] * 2, "bfloat16"),
    (lambda: [[genesis.tensor(1.5, dtype=genesis.float16), 1]], "float16"),
    (lambda: [genesis.tensor(1.5).half(), genesis.tensor(1.5).double()], "float64"),
    (lambda: (numpy.zeros(0, numpy.int8),), "int8"),
]  # fmt: skip


@pytest.mark.parametrize("data, dtype", LISTS)
def test_lists_keep_the_type_of_their_items(data, dtype):
    """As PyTorch has it: the promoted one; numbers of Python are bool, int64 and float32."""
    made = genesis.tensor(data())
    assert made.dtype.name == dtype
    assert genesis.tensor(data(), dtype=genesis.float32).dtype is genesis.float32


# ---- size ----


def test_size_is_a_number_and_can_be_called():
    x = genesis.zeros(2, 3)
    size = x.size
    assert (
        size == 6 and isinstance(size, int) and hash(size) == hash(6) and {6: "six"}[size] == "six"
    )
    assert size + 1 == 7 and type(size + 1) is int and list(range(genesis.zeros(2).size)) == [0, 1]
    assert numpy.empty(size).shape == (6,) and genesis.empty(size).shape == (6,)
    assert f"{size} {size!r} {size:03d}" == "6 6 006" and json.dumps(size) == "6"
    assert size() == x.size() == (2, 3) == x.shape and x.size(0) == 2 and x.size(dim=-1) == 3
    for made in (pickle.loads(pickle.dumps(size)), copy.copy(size), copy.deepcopy(size)):
        assert type(made) is int and made == 6
    assert (
        not genesis.zeros(0, 2).size
        and genesis.tensor(1.0).size == 1
        and genesis.tensor(1.0).size() == ()
    )
    with pytest.raises(
        IndexError, match="dimension 5 is out of range for a tensor of 2 dimensions"
    ):
        x.size(5)


def test_size_keeps_no_memory():
    x = genesis.zeros(1000)
    size, before = x.size, genesis.memory_stats().allocated_bytes
    del x
    assert genesis.memory_stats().allocated_bytes < before and size() == (1000,)


# ---- NumPy's methods and arguments ----


def test_astype_and_copy():
    x = genesis.tensor([1.5, -2.5])
    assert x.astype(numpy.int32).tolist() == [1, -2]
    assert x.astype("float32", copy=False) is x and x.astype("float32") is not x
    assert x.astype("float16", casting="same_kind").dtype == "float16"
    for casting, dtype in (("same_kind", "int64"), ("safe", "float16"), ("no", "float64")):
        with pytest.raises(
            TypeError, match=f"^astype: genesis.float32 does not become .*{casting}"
        ):
            x.astype(dtype, casting=casting)
    with pytest.raises(ValueError, match="^astype: casting is one of"):
        x.astype("int8", casting="any")
    made = x.copy()
    made[0] = 7
    assert x.tolist() == [1.5, -2.5] and made.is_contiguous()
    assert numpy.sort(genesis.tensor([3, 1])).copy().astype("int8").size == 2


def test_axes_by_numpys_names():
    x, y = genesis.arange(6).reshape(2, 3), genesis.arange(6).reshape(3, 2)
    assert genesis.tensordot(x, y, axes=1).tolist() == (x @ y).tolist()
    assert x.tensordot(y, axes=([1], [0])).tolist() == (x @ y).tolist()
    assert genesis.flip(x, axis=0).tolist() == x.flip(0).tolist()
    assert genesis.roll(x, 1, axis=1).tolist() == x.roll(1, 1).tolist()
    assert genesis.rot90(x, axes=(1, 0)).tolist() == genesis.rot90(x, dims=(1, 0)).tolist()


@pytest.mark.parametrize(
    "name", ["cat", "concat", "stack", "hstack", "vstack", "dstack", "column_stack"]
)
def test_tensors_are_put_together_from_a_list(name):
    function, x = getattr(genesis, name), genesis.ones(2, 3)
    with pytest.raises(TypeError, match=f"^{name}: pass a list: "):
        function(x)
    if name in ("cat", "stack"):
        with pytest.raises(TypeError, match=f"^{name}: pass a list: "):
            function(x, x)
    assert function([x, x]).numel() == function((x, x)).numel() == 12
