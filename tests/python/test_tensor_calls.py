"""How functions are called: out=, forms in place, and errors that name the function."""

from __future__ import annotations

import itertools

import pytest

import genesis

X = genesis.tensor([[0.5, -1.5, 2.0], [3.25, 0.0, -0.75]])
Y = genesis.tensor([[2.0, 0.5, -1.0], [1.0, 4.0, 0.25]])
PLACES = genesis.tensor([[0, 1, 1], [1, 0, 0]])

# What PyTorch has with out=, with arguments for it; in place where the result has the input's type.
ELEMENTS = {
    **dict.fromkeys(["cosh", "exp2", "frac", "nan_to_num", "sinh", "tan", "square", "expm1"], ()),
    **dict.fromkeys(
        ["fmax", "fmin", "fmod", "hypot", "logaddexp", "remainder", "atan2", "maximum"], (Y,)
    ),
    **dict.fromkeys(["addcmul", "addcdiv"], (Y, Y)),
    "lerp": (Y, 0.25),
    "clamp_min": (0.5,),
    "clamp_max": (0.5,),
    "clamp": (-1, 1),
    "round": (),
    "tril": (),
    "triu": (1,),
}
OTHERS = {
    **dict.fromkeys(
        ["isneginf", "isposinf", "isnan", "argmax", "sum", "mean", "median", "aminmax"], ()
    ),
    **dict.fromkeys(
        ["var", "std", "amax", "logsumexp", "softmax", "log_softmax", "cumsum", "cumprod"], (0,)
    ),
    **dict.fromkeys(
        ["max", "min", "median", "cummax", "cummin", "mode", "nansum", "nanmean", "argmin"], (1,)
    ),
    "isclose": (Y,),
    "norm": (1, 1),
    "sort": (1,),
    "argsort": (1,),
    "topk": (2, 1),
    "kthvalue": (2,),
    "quantile": (0.25, 1),
    "diff": (),
    "inner": (Y,),
    "gather": (0, PLACES),
    "scatter": (0, PLACES, Y),
    "scatter_add": (0, PLACES, Y),
    "scatter_reduce": (0, PLACES, Y, "amax"),
    "index_select": (1, PLACES[0]),
    "index_add": (1, PLACES[0], Y),
    "index_copy": (1, genesis.tensor([2, 0, 1]), Y),
    "take": (PLACES,),
    "take_along_dim": (PLACES, 0),
    "masked_select": (X > 0,),
    "histc": (4, -1.0, 1.0),
    "diag": (),
    "matmul": (Y.T,),
    "mm": (Y.T,),
    "tensordot": (Y, 2),
}
PRODUCTS = [
    ("addmm", (genesis.ones(2), X, Y.T)),
    ("addmm", (genesis.ones(2), X, Y.T), {"alpha": 2, "beta": 3}),
    ("addmv", (genesis.ones(2), X, Y[0])),
    ("baddbmm", (genesis.ones(2), X[None], Y.T[None])),
    ("dot", (X[0], Y[0])),
    ("outer", (X[0], Y[0])),
    ("mv", (X, Y[0])),
    ("bmm", (X[None], Y.T[None])),
    ("hstack", ((X, Y),)),
    ("vstack", ((X, Y),)),
    ("dstack", ((X, Y),)),
    ("column_stack", ((X, Y),)),
    ("cat", ((X, Y),)),
    ("stack", ((X, Y),)),
    ("searchsorted", (genesis.tensor([0.0, 1.0]), X)),
    ("bucketize", (X, genesis.tensor([0.0, 1.0]))),
]
CASES = [
    *((name, (X, *rest), {}) for name, rest in {**ELEMENTS, **OTHERS}.items()),
    *((name, args, *(rest or [{}])) for name, args, *rest in PRODUCTS),
]


def several(made):
    return (made,) if isinstance(made, genesis.Tensor) else tuple(made)


@pytest.mark.parametrize(("name", "args", "options"), CASES, ids=[one[0] for one in CASES])
def test_out(name, args, options):
    function = getattr(genesis, name)
    made = function(*args, **options)
    rooms = tuple(genesis.empty(one.shape, dtype=one.dtype) for one in several(made))
    out = rooms[0] if isinstance(made, genesis.Tensor) else rooms
    assert function(*args, **options, out=out) is out
    for one, room in zip(several(made), rooms, strict=True):
        assert one.tolist() == room.tolist(), name
    # What does not fit is refused, by name, and nothing is written.
    small = tuple(genesis.ones(7, 7, 7, dtype=one.dtype) for one in rooms)
    with pytest.raises(genesis.ShapeError, match=rf"^{name}\b"):
        function(*args, **options, out=small[0] if len(small) == 1 else small)
    assert all((one == 1).all() for one in small)
    with pytest.raises(TypeError, match=rf"^{name}\b.*out"):
        function(*args, **options, out="here")


def test_out_may_be_an_operand_and_wider():
    x = X.clone()
    assert genesis.fmod(x, 2, out=x) is x and x.tolist() == genesis.fmod(X, 2).tolist()
    wide = genesis.empty(2, 3, dtype=genesis.float64)
    assert genesis.hypot(X, Y, out=wide).tolist() == genesis.hypot(X, Y).double().tolist()
    with pytest.raises(TypeError, match="^cosh: a result of float32 cannot be stored as int32"):
        genesis.cosh(X, out=genesis.empty(2, 3, dtype=genesis.int32))
    with pytest.raises(ValueError, match="^frac: .*expanded view"):
        genesis.frac(X, out=genesis.empty(3).expand(2, 3))


@pytest.mark.parametrize("name", ELEMENTS)
def test_in_place(name):
    x = X.clone()
    before = x.data_ptr()
    assert getattr(x, f"{name}_")(*ELEMENTS[name]) is x and x.data_ptr() == before
    assert x.tolist() == getattr(genesis, name)(X, *ELEMENTS[name]).tolist()
    with pytest.raises((TypeError, genesis.ShapeError), match=rf"^{name}_"):
        getattr(X.clone(), f"{name}_")(*ELEMENTS[name], genesis.ones(7, 7), out=X)


def test_products_in_place():
    for name, args, *_ in PRODUCTS[:4]:
        total = genesis.ones(getattr(genesis, name)(*args).shape)
        expected = getattr(genesis, name)(total, *args[1:]).tolist()
        assert getattr(total, f"{name}_")(*args[1:]) is total and total.tolist() == expected
    with pytest.raises(TypeError, match="^cosh_: a result of float32 cannot be stored as int64"):
        genesis.tensor([1]).cosh_()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("addmm(ones(2, 2, 2), a, a)", r"\(2, 2, 2\) cannot be broadcast to \(2, 2\)"),
        ("addmm(ones(3), a, a)", r"\(3,\) cannot be broadcast to \(2, 2\)"),
        ("addmm(ones(2), ones(1, 2, 2), a)", r"2 and 2 dimensions, not shapes \(1, 2, 2\)"),
        ("addmm(ones(2), a, b)", r"shapes \(2, 2\) and \(3, 2\)"),
        ("addmm(ones(2), a, b, alpha=2)", r"shapes \(2, 2\) and \(3, 2\)"),
        ("addmv(a, a, ones(2))", r"\(2, 2\) cannot be broadcast to \(2,\)"),
        ("addmv(ones(2), a, a)", "2 and 1 dimensions"),
        ("baddbmm(a, ones(5, 2, 2), ones(4, 2, 2))", "5 matrices and 4 others"),
        ("mm(a, ones(2))", r"2 and 2 dimensions, not shapes \(2, 2\) and \(2,\)"),
        ("mm(a, b)", r"shapes \(2, 2\) and \(3, 2\)"),
        ("bmm(ones(1, 2, 2), a)", "3 and 3 dimensions"),
        ("bmm(ones(2, 2, 2), ones(1, 2, 2))", "2 matrices and 1 others"),
        ("bmm(ones(2, 2, 2), ones(2, 3, 2))", "sizes 2 and 3 must be equal"),
        ("mv(a, ones(3))", r"shapes \(2, 2\) and \(3,\)"),
        ("mv(ones(2), ones(2))", "2 and 1 dimensions"),
        ("dot(ones(2), ones(3))", r"shapes \(2,\) and \(3,\)"),
        ("dot(a, a)", "1 and 1 dimensions"),
        ("outer(a, ones(2))", "1 and 1 dimensions"),
        ("matmul(a, b)", r"shapes \(2, 2\) and \(3, 2\)"),
        ("matmul(a, ones(()))", "at least 1 dimension"),
        ("inner(a, b.T)", r"\(2, 2\).*\(2, 3\)"),
        ("scatter_add(a, 0, ones(3).long(), a)", "an index of shape"),
        ("index_add(a, 0, tensor([[0]]), a)", "at most one dimension"),
        ("vstack((a, ones(3)))", "shapes"),
        ("logaddexp(a, b)", r"shapes \(2, 2\) and \(3, 2\)"),
        ("log_softmax(a, 5)", "dimension 5 is out of range"),
        ("nanmean(a, 5)", "dimension 5 is out of range"),
        ("sub(tensor(True), tensor(True))", "bool: use logical_xor"),
        ("arccos(a, a)", "takes 1 operands, not 2"),
        ("greater(a, b)", r"shapes \(2, 2\) and \(3, 2\)"),
        ("subtract(a, b, alpha=2)", r"shapes \(2, 2\) and \(3, 2\)"),
        ("norm([1.0])", "not a Tensor"),
    ],
)
def test_wrong_shapes_name_the_function(call, words):
    names = {**vars(genesis), "a": genesis.ones(2, 2), "b": genesis.ones(3, 2)}
    name = call.partition("(")[0]
    with pytest.raises((ValueError, TypeError, IndexError), match=rf"^{name}\b.*{words}"):
        eval(call, names)


def test_assignments_say_what_they_are():
    x = genesis.zeros(2, 4)
    for wrong in (
        lambda: x.__setitem__((0, slice(None)), genesis.ones(3)),
        lambda: x.__setitem__([0, 1], genesis.ones(3)),
        lambda: x.__setitem__(x > 0, genesis.ones(3)),
    ):
        with pytest.raises(genesis.ShapeError, match=r"^assignment by a key: a value of .*\(3,\)"):
            wrong()
    with pytest.raises(genesis.ShapeError, match=r"^copy_: a value of shape \(3,\).*\(2, 4\)"):
        x.copy_(genesis.ones(3))
    with pytest.raises(TypeError, match=r"^fill_: 'x' is neither"):
        x.fill_("x")


def test_no_error_names_another_function():
    """Every public function and method, called with what does not suit it."""
    names = {one for one in genesis.__all__ if callable(getattr(genesis, one))}
    methods = {one for one in vars(genesis.Tensor) if not one.startswith("_")}
    known = names | methods | {"subtract", "multiply", "divide", "power", "copy", "equal"}
    given = [genesis.ones(2, 3), genesis.ones(4, 5), genesis.tensor([0, 1]), 9, "x", (5, 6), [X, 3]]
    skipped = {"save", "load", "cuda", "pin_memory", "record_stream", "numpy", "item", "tolist"}
    seen = 0
    for name in sorted((names | methods) - skipped):
        if name.startswith(("set_", "enable_", "manual_", "check_")) or name.isupper():
            continue
        calls = [(getattr(genesis, name), 0)] if name in names else []
        if callable(getattr(genesis.Tensor, name, None)):
            calls += [(getattr(X.clone(), name), 1), (getattr(PLACES.clone(), name), 1)]
        for (call, first), count in itertools.product(calls, (1, 2)):
            for args in itertools.product(given, repeat=count + 1 - first):
                try:
                    call(*args)
                except (ValueError, TypeError, IndexError) as error:
                    seen += 1
                    head = str(error).partition(": ")[0].removesuffix("()")
                    own = {name, "item", "maximum", "minimum"}
                    assert head in own or head not in known, (name, args, error)
                except (AttributeError, RuntimeError, OverflowError):
                    pass
    assert seen > 1000
