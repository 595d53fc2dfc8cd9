"""The type stubs: what type checkers accept and refuse, and that they agree with the package."""

import ast
import inspect
import json
import os
import re
import subprocess
import sys

import pytest

import genesis
from genesis import _C

SPECIAL = {"__new__", "__enter__", "__exit__"}


@pytest.fixture
def stubs(build):
    folder = build / "python/genesis"
    if not (folder / "_C.pyi").exists():
        pytest.skip("this build has no stubs")
    return folder


def members(node):
    return {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}


def test_the_stub_has_what_the_extension_has(stubs):
    stub = {}
    for node in ast.parse((stubs / "_C.pyi").read_text()).body:
        if isinstance(node, ast.ClassDef):
            names = {n for n in members(node) if not n.startswith("_") or n in SPECIAL}
            stub[node.name] = names
        elif isinstance(node, ast.FunctionDef):
            stub[node.name] = set()
        elif isinstance(node, ast.AnnAssign):
            stub[node.target.id] = set()
    for helper in ("_HasDLPack",):
        del stub[helper]
    own = {name for name in vars(_C) if not name.startswith("__") or name == "__version__"}
    assert own == set(stub)
    for name, named in stub.items():
        value = getattr(_C, name)
        if isinstance(value, type) and not issubclass(value, Exception):
            special = SPECIAL & set(vars(value))
            public = {m for m in vars(value) if not m.startswith("_")} | special
            assert public == named, name


def parameters(node):
    """The names that a stub's function takes, without NumPy's second names."""
    arguments = node.args
    listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [one.arg for one in listed if one.arg not in ("self", "axis", "axes", "keepdims")]


def test_signatures_agree(stubs):
    """Each function and method of the table has the parameters that its stub says."""
    tree = ast.parse((stubs / "_C.pyi").read_text())
    (tensor,) = (one for one in tree.body if getattr(one, "name", "") == "Tensor")
    compared = 0
    for owner, found in ((_C, members(tree)), (_C.Tensor, members(tensor))):
        for name, node in found.items():
            value = getattr(owner, name)
            if not getattr(value, "__text_signature__", None) or name.startswith("_"):
                continue
            kept = [
                one.name
                for one in inspect.signature(value).parameters.values()
                if one.name != "self" and one.kind is not one.VAR_POSITIONAL
            ]
            if node.args.vararg is None:
                assert kept == parameters(node), f"{owner.__name__}.{name}"
            compared += 1
    assert compared > 300


def test_the_package_has_what_its_stub_has(stubs):
    tree = ast.parse((stubs / "__init__.pyi").read_text())
    (listed,) = (ast.literal_eval(one.value) for one in tree.body if isinstance(one, ast.Assign))
    assert sorted(listed) == sorted(genesis.__all__)
    named = {
        alias.asname for one in tree.body if isinstance(one, ast.ImportFrom) for alias in one.names
    } | {one.target.id for one in tree.body if isinstance(one, ast.AnnAssign)}
    named |= {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}
    assert set(listed) <= named
    for name in named - {None, "Leaks", "memory_manager"}:
        assert hasattr(genesis, name), name


def lines_of(text, pattern):
    return {int(found) for found in re.findall(pattern, text)}


def mypy(stubs, path):
    command = [sys.executable, "-m", "mypy", "--no-incremental", "--cache-dir", os.devnull]
    run = subprocess.run(
        [*command, str(path)],
        env=os.environ | {"MYPYPATH": str(stubs.parent)},
        cwd=path.parent,
        capture_output=True,
        text=True,
    )
    assert run.returncode in (0, 1), run.stdout + run.stderr
    return lines_of(run.stdout, rf"{path.name}:(\d+)(?::\d+)?: error"), run.stdout


def pyright(stubs, path, tmp_path):
    settings = {"extraPaths": [str(stubs.parent)], "typeCheckingMode": "standard"}
    settings |= {"include": [str(path)], "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    run = subprocess.run(
        [
            *(sys.executable, "-m", "basedpyright", "-p", str(tmp_path), "--outputjson"),
            *("--pythonpath", sys.executable),
        ],
        capture_output=True,
        text=True,
    )
    found = json.loads(run.stdout)["generalDiagnostics"]
    errors = [one for one in found if one["severity"] == "error"]
    return {one["range"]["start"]["line"] + 1 for one in errors}, json.dumps(errors, indent=1)


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_checkers_accept_and_refuse(root, stubs, tmp_path, checker):
    pytest.importorskip({"mypy": "mypy", "pyright": "basedpyright"}[checker])
    for name in ("passes", "fails"):
        path = root / "tests/typing" / f"{name}.py"
        wanted = {
            number
            for number, line in enumerate(path.read_text().splitlines(), 1)
            if line.endswith("# error")
        }
        assert bool(wanted) == (name == "fails")
        if checker == "mypy":
            found, told = mypy(stubs, path)
        else:
            found, told = pyright(stubs, path, tmp_path)
        assert found == wanted, told
