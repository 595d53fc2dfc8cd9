"""The type stub names exactly what the extension has, and every public name is documented."""

import ast
import importlib

import genesis
from genesis import _C

MODULES = [
    "genesis",
    "genesis.cpu",
    "genesis.cuda",
    "genesis.ndarray.cuda_memory_manager",
]


SPECIAL = {"__new__", "__enter__", "__exit__"}


def test_the_stub_agrees(root):
    tree = ast.parse((root / "python/genesis/_C.pyi").read_text())
    stub = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            named = {f.name for f in node.body if isinstance(f, ast.FunctionDef)}
            stub[node.name] = {n for n in named if not n.startswith("_") or n in SPECIAL}
        elif isinstance(node, ast.FunctionDef):
            stub[node.name] = set()
        elif isinstance(node, ast.AnnAssign):
            stub[node.target.id] = set()
    own = {name for name in vars(_C) if not name.startswith("__") or name == "__version__"}
    assert own == set(stub)
    for name, members in stub.items():
        value = getattr(_C, name)
        if isinstance(value, type) and not issubclass(value, Exception):
            special = SPECIAL & set(vars(value))
            public = {m for m in vars(value) if not m.startswith("_")} | special
            assert public == members, name


def test_every_public_name_is_documented():
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        assert module.__doc__
        for name in module.__all__:
            value = getattr(module, name)
            if name != "__version__":
                assert value.__doc__, f"{module_name}.{name}"
    for value in filter(lambda one: isinstance(one, type), vars(_C).values()):
        for name, member in vars(value).items():
            if not name.startswith("_"):
                assert member.__doc__, f"{value.__name__}.{name}"


def test_dir_and_wrong_names():
    assert set(genesis.__all__) <= set(dir(genesis))
    assert not hasattr(genesis, "no_such_name")
