"""How functions are called: out=, forms in place, and errors that name the function."""

from __future__ import annotations

import inspect
import itertools
import re

import pytest

import genesis

# Calls of what PyTorch has with out=; those of elements that it has in place, too, come first.
ELEMENTS = """
    cosh(x) exp2(x) frac(x) nan_to_num(x) sinh(x) tan(x) square(x) expm1(x) round(x) fmax(x,y)
    copysign(x,y) deg2rad(x) rad2deg(x)
    fmin(x,y) fmod(x,y) hypot(x,y) logaddexp(x,y) remainder(x,y) atan2(x,y) maximum(x,y)
    addcmul(x,y,y) addcdiv(x,y,y) lerp(x,y,0.25) clamp_min(x,0.5) clamp_max(x,0.5)
    clamp(x,-1,1) tril(x) triu(x,1)
"""
PRODUCTS = """
    addmm(b,x,y.T) addmm(b,x,y.T,alpha=2,beta=3) addmv(b,x,y[0]) baddbmm(b,x[None],y.T[None])
"""
OTHERS = """
    signbit(x) isneginf(x) isposinf(x) isnan(x) isclose(x,y) argmax(x) argmin(x,1) sum(x) mean(x)
    amax(x,0) median(x) median(x,1) aminmax(x) var(x,0) std(x,0) norm(x,1,1) logsumexp(x,0)
    nansum(x,1) nanmean(x,1) quantile(x,0.25,1) diff(x) max(x) max(x,1) min(x,1) mode(x,1)
    kthvalue(x,2) softmax(x,0) log_softmax(x,0) cumsum(x,0) cumprod(x,0) cummax(x,1)
    cummin(x,1) sort(x,1) argsort(x,1) topk(x,2,1) gather(x,0,i) scatter(x,0,i,y)
    scatter_add(x,0,i,y) scatter_reduce(x,0,i,y,'amax') index_select(x,1,i[0])
    index_add(x,1,i[0],y) index_copy(x,1,tensor([2,0,1]),y) take(x,i) take_along_dim(x,i,0)
    masked_select(x,x>0) histc(x,4,-1.0,1.0) searchsorted(b,x) bucketize(x,b) diag(x)
    matmul(x,y.T) mm(x,y.T) inner(x,y) tensordot(x,y,2) dot(x[0],y[0]) outer(x[0],y[0])
    mv(x,y[0]) bmm(x[None],y.T[None]) hstack((x,y)) vstack((x,y)) dstack((x,y))
    column_stack((x,y)) cat((x,y)) stack((x,y))
"""


@pytest.fixture
def names():
    """What the calls are about; not of the module, whose tensors would live as long as it does."""
    return {
        **vars(genesis),
        "x": genesis.tensor([[0.5, -1.5, 2.0], [3.25, 0.0, -0.75]]),
        "y": genesis.tensor([[2.0, 0.5, -1.0], [1.0, 4.0, 0.25]]),
        "i": genesis.tensor([[0, 1, 1], [1, 0, 0]]),
        "b": genesis.tensor([0.0, 1.0]),
    }


def several(made):
    return (made,) if isinstance(made, genesis.Tensor) else tuple(made)


@pytest.mark.parametrize("call", (ELEMENTS + PRODUCTS + OTHERS).split())
def test_out(call, names):
    name, with_out = call.partition("(")[0], f"{call[:-1]}, out=out)"
    made = eval(call, names)
    rooms = tuple(genesis.empty(one.shape, dtype=one.dtype) for one in several(made))
    names["out"] = out = rooms[0] if isinstance(made, genesis.Tensor) else rooms
    assert eval(with_out, names) is out
    for one, room in zip(several(made), rooms, strict=True):
        assert one.tolist() == room.tolist()
    # What does not fit is refused, by name, and nothing is written.
    small = tuple(genesis.ones(7, 7, 7, dtype=one.dtype) for one in rooms)
    names["out"] = small[0] if len(small) == 1 else small
    with pytest.raises(genesis.ShapeError, match=rf"^{name}: "):
        eval(with_out, names)
    assert all((one == 1).all() for one in small)
    names["out"] = "here"
    with pytest.raises(TypeError, match=rf"^{name}: out is a t"):
        eval(with_out, names)


def test_out_may_be_an_operand_and_wider(names):
    first, second = names["x"], names["y"]
    x = first.clone()
    assert genesis.fmod(x, 2, out=x) is x and x.tolist() == genesis.fmod(first, 2).tolist()
    wide = genesis.empty(2, 3, dtype=genesis.float64)
    genesis.hypot(first, second, out=wide)
    assert wide.tolist() == genesis.hypot(first, second).double().tolist()
    with pytest.raises(TypeError, match="^cosh: a result of float32 cannot be stored as int32"):
        genesis.cosh(x, out=genesis.empty(2, 3, dtype=genesis.int32))
    with pytest.raises(ValueError, match="^frac: .*expanded view"):
        genesis.frac(x, out=genesis.empty(3).expand(2, 3))


@pytest.mark.parametrize("call", (ELEMENTS + PRODUCTS).split())
def test_in_place(call, names):
    name, _, rest = call.partition("(")
    first, _, rest = rest.partition("," if "," in rest else ")")
    names["self"] = eval(first, names).expand(eval(call, names).shape).clone()
    expected = eval(f"{name}(self, {rest}" if rest else f"{name}(self)", names)
    before = names["self"].data_ptr()
    made = eval(f"self.{name}_({rest or ')'}", names)
    assert made is names["self"] and made.data_ptr() == before
    assert made.tolist() == expected.tolist()
    with pytest.raises(TypeError, match=rf"^{name}_\b"):
        eval(f"self.{name}_({rest[:-1] + ', ' if rest else ''}out=x)", names)
    names["self"] = genesis.ones(2, 2).expand(3, 2, 2)
    with pytest.raises(ValueError, match=rf"^{name}_: "):
        eval(f"self.{name}_({rest or ')'}", names)


def test_in_place_keeps_the_type():
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
        ("arccos(a, a)", "takes 1 operand, not 2"),
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
    given = [genesis.ones(2, 3), genesis.ones(4, 5), genesis.tensor([0, 1]), 9, "x", (5, 6)]
    skipped = {"save", "load", "cuda", "pin_memory", "record_stream", "numpy", "item", "tolist"}
    seen = 0
    for name in sorted((names | methods) - skipped):
        if name.startswith(("set_", "enable_", "manual_", "check_")) or name.isupper():
            continue
        calls = [(getattr(genesis, name), 0)] if name in names else []
        if callable(getattr(genesis.Tensor, name, None)):
            calls += [
                (getattr(genesis.ones(2, 3), name), 1),
                (getattr(genesis.tensor([0, 1]), name), 1),
            ]
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


def test_the_page_says_what_has_which_form(root):
    """docs/tensors.md: which functions have a form in place, and which take out=."""
    page = (root / "docs/tensors.md").read_text()
    rows = dict(re.findall(r"^\| ([a-z, ]+) \| (.*) \|$", page, re.MULTILINE))
    quoted = {key: " ".join(re.findall("`([^`]*)`", row)) for key, row in rows.items()}
    listed = {key: set(re.findall(r"\w+", words)) for key, words in quoted.items()}
    of_elements = (
        set().union(
            *(listed[key] for key in ("arithmetic", "comparison", "logic and bits", "functions"))
        )
        | listed["rounding"]
    )
    made = listed["made of others"]
    whole = {"var", "std", "norm", "softmax", "log_softmax", "logsumexp", "allclose", "equal"}
    assert whole < made
    of_elements |= made - whole
    in_place = {one for one in of_elements if hasattr(genesis.Tensor, f"{one}_")}
    of_elements |= {"isposinf", "isneginf"}
    assert of_elements - in_place == {"where", "isclose", "isposinf", "isneginf", "signbit"}
    assert "but for `where isclose isposinf isneginf signbit`" in page
    takers = of_elements | made | listed["reductions"] | listed["statistics"] | listed["matrices"]
    takers |= listed["along a dimension"] | {"tril", "triu"}
    without = set(re.search("These have none: `([^`]*)`", page)[1].split())
    without |= {"dim", "keepdim", "clip", "out"}  # words, and a second name
    refused = set()
    for name in sorted(takers - without):
        try:
            getattr(genesis, name)(out=3)
        except TypeError as error:
            if "unexpected keyword argument 'out'" in str(error):
                refused.add(name)
    assert not refused
    for name in sorted(without & set(genesis.__all__)):
        assert "out" not in inspect.signature(getattr(genesis, name)).parameters or name == "clip"
