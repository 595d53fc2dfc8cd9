"""Each row of GN_OP_LIST has a function in Python, a CUDA expression, and a test on the GPU.

A row without a loop of the CPU does not compile (src/ops/cpu/loops_body.h), and test_loops.c
compares each with a reference.
"""

import re

import genesis

# Rows without a name of their own: what Python calls them by.
BY_HAND = {"WHERE": "where", "GELU_TANH": "gelu", "POLYGAMMA": "polygamma"}


def rows(root):
    """The rows: the name in the enumeration, that of the operation, and Python's."""
    text = (root / "include/genesis/ops.h").read_text()
    listed = text.partition("#define GN_OP_LIST(X)")[2].partition("typedef enum")[0]
    listed = re.sub(r"\\\n\s*", "", listed)
    found = re.findall(r'X\((\w+), (\w+), \d, \w+, "(\w*)"', listed)
    assert len(found) == listed.count("X(")
    return found


def python_names(root):
    """The names of Python's functions by those in the enumeration."""
    return {op: name or BY_HAND[op] for op, _, name in rows(root)}


def test_python_has_each_row(root):
    names = python_names(root)
    assert {op for op, _, name in rows(root) if not name} == set(BY_HAND)
    for name in names.values():
        assert callable(getattr(genesis, name)), name
        assert callable(getattr(genesis.Tensor, name)), name
        assert name == "where" or callable(getattr(genesis.Tensor, name + "_")), name


def test_cuda_has_each_row(root):
    text = (root / "src/ops/cuda/elements.cu").read_text()
    made = set(re.findall(r"(?:ELEMENT|CALLED) [\w:<> ]+ op_(\w+)\(", text))
    assert {name for _, name, _ in rows(root)} <= made


def test_each_row_runs_on_the_gpu(root):
    words = set(re.findall(r"\w+", (root / "tests/ops/device_tensors.py").read_text()))
    assert set(python_names(root).values()) <= words
