"""What a user reads after a mistake: the whole sentence, as a stranger would read it.

One line for each mistake. A sentence names the function that was called, what was given, and what
is right; behind a number its word has the right form.
"""

import numpy as np
import pytest

import genesis


def names() -> dict[str, object]:
    """What the lines speak of."""
    return {
        "G": genesis,
        "np": np,
        "x": genesis.ones(2, 3),
        "m": genesis.ones(3, 4),
        "v": genesis.arange(5),
        "i": genesis.arange(6).reshape(2, 3),
        "b": genesis.ones(2, 3) > 0,
    }


DTYPES = (
    "there are bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, "
    "uint16, uint32, uint64, and no others"
)
DEVICES = 'write "cpu", "cuda" or "cuda:N"'
KEYS = (
    "tensors are indexed by integers, slices, ..., None, and tensors, arrays or lists of integers"
)

MISTAKES = [
    # ---- creation
    ("G.tensor([300], dtype=G.uint8)", "300 does not fit uint8 (it is number 0 of the data)"),
    (
        "G.tensor([[1], [-129]], dtype=G.int8)",
        "-129 does not fit int8 (it is number 1 of the data)",
    ),
    ("G.tensor([1e300], dtype=G.int64)", "1e+300 does not fit int64 (it is number 0 of the data)"),
    ("G.tensor([1, 2], dtype='flaot32')", f"'flaot32' is no dtype here: {DTYPES}"),
    ("G.tensor([1, 2], device='gpu')", f"'gpu' is not a device: {DEVICES}"),
    ("G.device('cpu:5')", f"'cpu:5' is not a device: {DEVICES}"),
    ("G.zeros(-1)", "zeros: the shape (-1,) has a negative size"),
    ("G.zeros(2.5)", "zeros: a shape is of integers, not 2.5"),
    ("G.arange(0, 10, 0)", "arange: the step must not be 0"),
    ("G.eye(-1)", "eye: -1 rows and -1 columns: neither is negative"),
    ("G.randint(10)", "randint: the size must be given"),
    ("G.normal(0, -1, (2,))", "normal: a standard deviation is not negative"),
    ("G.normal(x, -x)", "normal: a standard deviation is not negative"),
    ("G.rand(2, dtype=G.int32)", "rand: uniform numbers are floating, not int32"),
    # ---- operators and elementwise functions
    ("x << 1", "bitwise_left_shift is not defined for float32: it takes integers or bool"),
    ("x >> 1", "bitwise_right_shift is not defined for float32: it takes integers or bool"),
    ("i << 1.5", "bitwise_left_shift is not defined for float32: it takes integers or bool"),
    ("x & x", "bitwise_and is not defined for float32: it takes integers or bool"),
    ("~x", "bitwise_not is not defined for float32: it takes integers or bool"),
    ("-b", "negative is not defined for bool: use logical_not"),
    ("x + m", "add: shapes (2, 3) and (3, 4) cannot be broadcast together"),
    ("x.add_(m)", "add_: shapes (2, 3) and (3, 4) cannot be broadcast together"),
    ("i.add_(1.5)", "add_: a result of float32 cannot be stored as int64: cast it first"),
    ("G.sqrt([1, 2])", "sqrt: operands are tensors, numbers or arrays, not list"),
    ("G.sin('a')", "sin: operands are tensors, numbers or arrays, not str"),
    ("G.add(x)", "add() takes 2 operands, not 1"),
    ("x.add()", "add() takes 1 operand, not 0"),
    ("x.matmul()", "matmul() takes 1 operand, not 0"),
    ("x.clamp()", "clamp: min or max must be given"),
    ("x.round(decimals='a')", "round: decimals is an integer, not 'a'"),
    ("bool(x)", "the truth of a tensor of several elements is not defined: use any() or all()"),
    ("int(x)", "item() is for a tensor of one element, not of 6"),
    # ---- shapes
    ("x.reshape(4)", "reshape: 6 elements cannot have the shape (4,)"),
    ("x[0, :1].reshape(4)", "reshape: 1 element cannot have the shape (4,)"),
    ("x.expand(4, 4)", "expand: a tensor of shape (2, 3) cannot be expanded to (4, 4)"),
    ("x.permute(0)", "permute: 1 dimension given for a tensor of 2: each is named once"),
    ("v.permute(0, 1)", "permute: 2 dimensions given for a tensor of 1: each is named once"),
    (
        "v.as_strided((2,), (1, 1))",
        "as_strided: size has 1 number and stride has 2: they must be as many",
    ),
    ("x.unfold(0, 9, 1)", "unfold: size 9 is larger than dimension 0, which has 2 elements"),
    ("x[:1].unfold(0, 2, 1)", "unfold: size 2 is larger than dimension 0, which has 1 element"),
    ("x.unfold(0, -1, 1)", "unfold: the size of a window is not negative: -1"),
    ("x.unfold(0, 1, 0)", "unfold: the step is at least 1, not 0"),
    ("x.unfold(5, 1, 1)", "unfold: dimension 5 is out of range for shape (2, 3)"),
    ("x.repeat(2)", "repeat: (2,) needs a count for each dimension of shape (2, 3)"),
    ("G.stack([1, 2])", "stack: a list of tensors, and number 0 of it is of type int"),
    ("G.stack([x, 'a'])", "stack: a list of tensors, and number 1 of it is of type str"),
    ("G.stack([x, v])", "stack: shapes (2, 3) and (5,) differ"),
    ("G.stack([])", "stack: there must be a tensor"),
    ("G.cat([x, 2])", "cat: a list of tensors, and number 1 of it is of type int"),
    ("G.cat([x, m])", "cat: shapes (2, 3) and (3, 4) differ in more than dimension 0"),
    ("G.cat([x, x], dim=3)", "cat: dimension 3 is out of range for shape (2, 3)"),
    # ---- dimensions
    ("v.sum(1)", "sum: dimension 1 is out of range for a tensor of 1 dimension: -1 to 0"),
    ("x.sum(5)", "sum: dimension 5 is out of range for a tensor of 2 dimensions: -2 to 1"),
    ("v.size(1)", "dimension 1 is out of range for a tensor of 1 dimension"),
    ("v.sort(dim=4)", "sort: dimension 4 is out of range for a tensor of 1 dimension: -1 to 0"),
    (
        "v.transpose(0, 5)",
        "transpose: dimension 5 is out of range for a tensor of 1 dimension: -1 to 0",
    ),
    ("x.mean(dim=[0, 0])", "mean: dimension 0 is there twice"),
    ("x.max(dim=(0, 1))", "max: dim is one integer, not (0, 1); amax() takes several"),
    ("x.min((0, 1))", "min: dim is one integer, not (0, 1); amin() takes several"),
    ("x.argmax((0, 1))", "argmax: dim is one integer, not (0, 1)"),
    ("x.topk(9)", "topk: k is 9, and dimension 1 has 3 elements"),
    ("x.topk(-1)", "topk: k is -1, and dimension 1 has 3 elements"),
    # ---- keys
    ("v[0, 0]", "too many indices: 2 for a tensor of 1 dimension (shape (5,))"),
    ("x[0, 0, 0]", "too many indices: 3 for a tensor of 2 dimensions (shape (2, 3))"),
    ("x[5]", "index 5 is out of range for dimension 0 of size 2"),
    ("x['a']", f"{KEYS} or bool, not by 'a'"),
    ("x[b[:1]]", "a mask of shape (1, 3) does not fit dimension 0 of size 2: it has 1 there"),
    # ---- products
    ("x.dot(x)", "dot: the operands must have 1 and 1 dimensions, not shapes (2, 3) and (2, 3)"),
    ("G.bmm(x, x)", "bmm: the operands must have 3 and 3 dimensions, not shapes (2, 3) and (2, 3)"),
    (
        "x @ x",
        "matmul: shapes (2, 3) and (2, 3): the last size of the first must be the last but one of "
        "the second",
    ),
    (
        "G.einsum('ij,jk->ik', x, x)",
        "einsum: 'j' stands for 3 elements in one operand and for 2 in another",
    ),
    ("G.einsum('ii', x)", "einsum: 'i' stands for 2 and 3 elements"),
    ("G.einsum('ij,jk', x)", "einsum: 'ij,jk' is for 2 operands, not 1"),
    ("G.einsum('ij', x, x)", "einsum: 'ij' is for 1 operand, not 2"),
    ("G.einsum('i->i', x)", "einsum: 'i' of 'i->i' has 1 letter, and its operand 2 dimensions"),
    ("G.einsum('ij->i', v)", "einsum: 'ij' of 'ij->i' has 2 letters, and its operand 1 dimension"),
    ("G.einsum('ij->ik', x)", "einsum: 'k' in the result of 'ij->ik' is in no operand"),
    ("G.einsum('ij->ii', x)", "einsum: the result of 'ij->ii' has 'i' twice"),
    ("G.einsum('i$,j', v, v)", "einsum: '$' cannot stand there in 'i$,j'"),
    ("G.einsum('ij->i->j', x)", "einsum: '->' cannot stand there in 'ij->i->j'"),
    ("G.einsum('i-j', x)", "einsum: '->' cannot stand there in 'i-j'"),
    ("G.einsum(x)", "einsum: the equation is a text, not Tensor"),
    # ---- others
    ("G.one_hot(v, 3)", "one_hot: 4 is one of the elements, and num_classes is 3"),
    ("G.one_hot(-v)", "one_hot: a class is not negative, and -4 is one of the elements"),
    ("G.one_hot(x)", "one_hot: classes are integers, not float32"),
    ("G.one_hot(v, -2)", "one_hot: num_classes is positive, or -1 for the largest + 1: -2"),
    ("G.histc(x, -1)", "histc: bins is at least 1 and max not below min, not -1, 0 and 0"),
    (
        "G.multinomial(v.float(), 9)",
        "multinomial: 9 samples without replacement need as many elements above 0, not 4",
    ),
    ("G.unique('a')", "unique: 'a' is not a Tensor"),
    ("x.size('a')", "size: a dimension is an integer, not 'a'"),
    ("x.size(2)", "dimension 2 is out of range for a tensor of 2 dimensions"),
    (
        "x.to('flot')",
        'to: \'flot\' is neither a device, as "cpu", "cuda" or "cuda:N", nor a dtype: ' + DTYPES,
    ),
    ("x.to(device='flot')", '\'flot\' is not a device: write "cpu", "cuda" or "cuda:N"'),
    (
        "G.tensor([1.0, G.tensor([2.0, 3.0])])",
        "lists of one level have different depths: tensor([2., 3.]) is no number, as others are",
    ),
    ("G.arange(2**70)", "arange: 1180591620717411303424 does not fit int64 or uint64"),
    ("G.cat([x, x], 2**40)", "cat: dimension 1099511627776 is out of range"),
    ("i.mean()", "mean of int64 is not defined: convert to a floating type first"),
]


@pytest.mark.parametrize(("mistake", "sentence"), MISTAKES, ids=[one for one, _ in MISTAKES])
def test_a_mistake_is_explained(mistake, sentence):
    with pytest.raises((ValueError, TypeError, IndexError, OverflowError)) as caught:
        eval(mistake, names())
    assert str(caught.value) == sentence


def test_without_a_gpu(fresh):
    """The simulator and the CPU are named, where the system's driver is what is missing."""
    code = """
import genesis
for call in (genesis.ones(3).cuda, lambda: genesis.ones(3, device="cuda"), genesis.cuda.Stream):
    try:
        call()
    except RuntimeError as error:
        print(error)
"""
    if genesis.cuda.is_available():
        pytest.skip("there is a GPU")
    lines = fresh(code).stdout.splitlines()
    assert len(lines) == 3
    for line in lines:
        assert "could not be loaded" in line
        assert line.endswith(
            'Without a GPU there are the device "cpu", and a simulated GPU: GENESIS_CUDA_DRIVER=sim'
        )
    lines = fresh(code, GENESIS_CUDA_DRIVER="/no/driver.so").stdout.splitlines()
    assert len(lines) == 3 and all("/no/driver.so" in one and "sim" not in one for one in lines)


def test_the_memory_of_the_cpu(fresh):
    """Its out-of-memory speaks of the system, and of no variable of CUDA."""
    text = fresh("""
import genesis
genesis.cuda.set_memory_fraction(0.001, "cpu")
try:
    genesis.empty(1 << 30, dtype=genesis.uint8, device="cpu")
except genesis.OutOfMemoryError as error:
    print(error)
kept = genesis.ones(3, device="cpu")
try:
    genesis.empty(1 << 50, dtype=genesis.uint8, device="cpu")
except genesis.OutOfMemoryError as error:
    print(error)
""").stdout
    limited, never = text.splitlines()
    assert "A larger memory fraction (set_memory_fraction) would allow it." in limited
    assert "The system never has that much." in never and "live in 1 block, " in never
    for line in (limited, never):
        assert "CUDA" not in line and "device" not in line and "driver" not in line
        assert " The system has " in line and "; other processes hold " in line


def test_parts_of_the_package_are_there_when_asked_for(fresh):
    fresh("""
import sys
import genesis
assert "genesis.ndarray" not in sys.modules and "genesis.backends" not in sys.modules
assert "ndarray" in dir(genesis)
manager = genesis.ndarray.cuda_memory_manager.get_memory_manager("cpu")
assert str(manager.device) == "cpu"
assert genesis.backends.cuda_memory and genesis.backends.cuda
""")
