"""Makes the type stubs of the package: _C.pyi, __init__.pyi, and one for each namespace.

    stubs.py FUNCTIONS EXTENSION PACKAGE OUT

FUNCTIONS is what the program functions_list prints: the table of operations. EXTENSION is
src/python/extension.pyi: the types of what is written by hand in the extension. PACKAGE is the
folder of the package's sources, and OUT the folder that the stubs go to.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import NamedTuple

# The kinds of parameters and results of genesis/function.h as types of Python.
TYPES = {
    "Tensor": "Tensor",
    "operand": "_Operand",
    "int": "SupportsIndex",
    "number": "_Number",
    "bool": "builtins.bool",
    "text": "str",
    "dim": "SupportsIndex",
    "dims": "_Integers",
    "sizes": "_Integers",
    "tensors": "Sequence[Tensor]",
    "dtype": "_DtypeLike",
    "device": "_DeviceLike",
    "generator": "Generator",
    "elements": "_Operand | Sequence[Any]",
    "doubles": "_Operand | Sequence[Any]",
    "shapes": "_Integers",
    "data": "_Operand | Sequence[Any]",
    "values": "_Operand | Sequence[Any]",
    "counts": "_Operand | Sequence[Any]",
    "keys": "Sequence[Any]",
}
RESULTS = {
    "": "Tensor",
    "tensors": "tuple[Tensor, ...]",
    "bool": "builtins.bool",
    "int": "builtins.int",
    "sizes": "tuple[builtins.int, ...]",
    "each": "Any",
    "dtype": "dtype",
    "Tensor or tensors": "Any",
    "text": "str",
    "None": "None",
}
NUMPY = {"dim": ("axis",), "dims": ("axis", "axes"), "keepdim": ("keepdims",)}
METHOD, IN_PLACE, OUT, NO_FUNCTION = 1, 2, 4, 8
NAMESPACES = {"nn": "_nn", "linalg": "_linalg"}  # of functions, and the modules that have them
TENSORS = "# ---- tensors ----"


class Row(NamedTuple):
    """A row of the table."""

    names: list[str]
    signature: str
    forms: int


class Parameter(NamedTuple):
    """A parameter of a signature; `star` is "*" where it takes the rest of the arguments."""

    star: str
    name: str
    kind: str
    default: str


def read_rows(path: Path) -> list[Row]:
    """The table, as functions_list prints it."""
    rows = []
    for line in path.read_text().splitlines():
        name, aliases, signature, forms = line.split("\t")
        rows.append(Row([name, *aliases.split()], signature, int(forms)))
    return rows


def parse(signature: str) -> tuple[list[Parameter | None], str]:
    """The parameters, None for the star behind which they are passed by name, and the result."""
    listed, _, result = signature.partition("-> ")
    parameters: list[Parameter | None] = []
    for text in filter(None, re.split(r", (?![^(]*\))", listed.strip())):
        if text == "*":
            parameters.append(None)
            continue
        head, _, default = text.partition(" = ")
        name, _, kind = head.partition(": ")
        parameters.append(Parameter("*" * name.startswith("*"), name.strip("*"), kind, default))
    return parameters, result


def type_of(parameter: Parameter) -> str:
    """The type of a parameter; "dims|Tensor" takes either."""
    if parameter.kind == "sizes|None":
        return "_Integers | Sequence[SupportsIndex | None]"
    return " | ".join(TYPES[kind] for kind in parameter.kind.split("|"))


def written(parameter: Parameter) -> str:
    """A parameter as a stub has it."""
    kind = type_of(parameter)
    if parameter.star:
        return f"*{parameter.name}: {kind}"
    if parameter.default == "None":
        kind += " | None"
    default = f" = {parameter.default}" if parameter.default else ""
    return f"{parameter.name}: {kind}{default}"


def has_numpy_name(parameters: list[Parameter | None], place: int) -> bool:
    """Whether NumPy's name may stand for a parameter: what follows it by place can be left out."""
    one = parameters[place]
    if one is None or one.star or one.name not in NUMPY:
        return False
    rest = parameters[place + 1 :]
    by_place = rest[: rest.index(None)] if None in rest else rest
    return bool(one.default) or all(other is None or other.default for other in by_place)


def numpy_names(parameters: list[Parameter | None]) -> list[str]:
    """NumPy's names for parameters, which may be used instead; by name only."""
    own = {one.name for one in parameters if one is not None}
    return [
        f"{name}: {type_of(one)}{' | None' * (one.default == 'None')} = ..."
        for place, one in enumerate(parameters)
        if one is not None and has_numpy_name(parameters, place)
        for name in NUMPY[one.name]
        if name not in own
    ]


def returned(result: str) -> str:
    """A result as a type: of several with names, a tuple."""
    named = f"tuple[{', '.join('Tensor' for _ in result.split(','))}]"
    return RESULTS.get(result, "Any" if result == "values, indices" else named)


def define(name: str, row: Row, form: int) -> str:
    """The stub of a function, or of a method: `form` is METHOD, IN_PLACE or 0."""
    parameters, result = parse(row.signature)
    texts = ["self"] if form else []
    more = [] if form == IN_PLACE or not row.forms & OUT else ["out: Any = None"]
    if more and returned(result) == "Tensor":
        more = ["out: Tensor | None = None"]
    if any(one is not None and one.kind == "device" for one in parameters):
        more.append("requires_grad: builtins.bool = False")
    more = numpy_names(parameters) + more
    begin = 1 if form else 0
    has_star = any(one is None or one.star for one in parameters[begin:])
    for place, one in enumerate(parameters[begin:], begin):
        text = "*" if one is None else written(one)
        if one is not None and not one.default and has_numpy_name(parameters, place):
            text += " = ..."
        texts.append(text)
    if more and not has_star:
        texts.append("*")
    kind = "Tensor" if form == IN_PLACE else returned(result)
    return f"def {name}({', '.join([*texts, *more])}) -> {kind}: ..."


def in_namespace(rows: list[Row], space: str) -> list[Row]:
    """The rows of a namespace ("": those without), their names without it."""
    found = []
    for row in rows:
        before, _, name = row.names[0].rpartition(".")
        if before == space:
            found.append(row._replace(names=[name, *row.names[1:]]))
    return found


def forms_of(rows: list[Row]) -> tuple[dict[str, str], dict[str, str]]:
    """The stubs of all functions, and of all methods, by name."""
    functions, methods = {}, {}
    for row in rows:
        for name in row.names:
            if not row.forms & NO_FUNCTION:
                functions[name] = define(name, row, 0)
            if row.forms & METHOD:
                methods[name] = define(name, row, METHOD)
            if row.forms & IN_PLACE:
                methods[f"{name}_"] = define(f"{name}_", row, IN_PLACE)
    return functions, methods


def make_extension(rows: list[Row], text: str) -> str:
    """_C.pyi: what is written by hand, with the table's functions and methods."""
    functions, methods = forms_of(rows)
    tree = ast.parse(text)
    (tensor,) = (one for one in tree.body if getattr(one, "name", "") == "Tensor")
    assert isinstance(tensor, ast.ClassDef)
    twice = {one.name for one in tree.body if isinstance(one, ast.FunctionDef)} & {*functions}
    twice |= {one.name for one in tensor.body if isinstance(one, ast.FunctionDef)} & {*methods}
    if twice:
        sys.exit(f"extension.pyi has what the table has: {', '.join(sorted(twice))}")
    lines = text.splitlines()
    made = [f"    {methods[name]}" for name in sorted(methods)]
    end = tensor.end_lineno or 0
    lines[end:end] = made
    return "\n".join([*lines, "", *(functions[name] for name in sorted(functions)), ""])


def make_namespace(rows: list[Row], module: str, text: str) -> str:
    """_nn.pyi and its like: the functions of a namespace, with the types that _C.pyi names."""
    functions, _ = forms_of(rows)
    made = "\n".join(functions[name] for name in sorted(functions))
    words = {*re.findall(r"\w+", made)}
    own = [
        one.name if isinstance(one, ast.ClassDef) else one.targets[0].id
        for one in ast.parse(text).body
        if isinstance(one, ast.ClassDef)
        or (isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name))
    ]
    needed = sorted({name for name in own if name in words} - {*functions})
    lines = [f'"""The functions of {module}, with their types. Made by the build."""', ""]
    lines += ["import builtins", "from collections.abc import Sequence"]
    lines += ["from typing import Any, SupportsIndex", ""]
    lines += [f"from genesis._C import {name} as {name}" for name in needed]
    lines += ["", "__all__ = [", *(f'    "{name}",' for name in sorted(functions)), "]"]
    return "\n".join([*lines, "", made, ""])


def public_names(text: str) -> list[str]:
    """What a stub of the extension has for the package: names behind the mark, without _."""
    names = set()
    for one in ast.parse(text[text.index(TENSORS) :]).body:
        if isinstance(one, (ast.FunctionDef, ast.ClassDef)):
            names.add(one.name)
        elif isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            names.add(one.target.id)
    return sorted(name for name in names if not name.startswith("_"))


def assigned(tree: ast.Module, name: str) -> ast.expr:
    """The value that a module gives a name."""
    for one in tree.body:
        targets = one.targets if isinstance(one, ast.Assign) else []
        if isinstance(one, ast.AnnAssign):
            targets = [one.target]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            assert isinstance(one, (ast.Assign, ast.AnnAssign)) and one.value is not None
            return one.value
    sys.exit(f"there is no {name}")


def make_package(package: Path, extension: str) -> str:
    """__init__.pyi: every public name, with where its type is."""
    tree = ast.parse((package / "__init__.py").read_text())
    (loop,) = (one for one in tree.body if isinstance(one, ast.For))
    assert isinstance(loop.iter, ast.Tuple)
    offered = {"_C": public_names(extension)}
    for one in loop.iter.elts:
        if isinstance(one, ast.Name) and one.id != "_C":
            source = ast.parse((package / f"{one.id}.py").read_text())
            offered[one.id] = ast.literal_eval(assigned(source, "__all__"))
    lines = ['"""The public names of Genesis, with their types. Made by the build."""', ""]
    lines += ["import builtins", "from typing import Any", "", "from genesis import ("]
    modules = [
        "adapters",
        "amp",
        "array_api",
        "autograd",
        "backends",
        "cpu",
        "cuda",
        "distributions",
        "func",
        "linalg",
        "memory_profiler",
        "ndarray",
        "nn",
        "optim",
        "special",
        "utils",
    ]
    lines += [f"    {name} as {name}," for name in modules] + [")"]
    for module, names in offered.items():
        lines += [f"from genesis.{module} import ("]
        lines += [f"    {name} as {name}," for name in sorted(names)] + [")"]
    lines += [
        "from genesis._C import __version__ as __version__",
        "from genesis._explain import explain as explain",
        "from genesis._leaks import Leak as Leak",
        "from genesis._leaks import Leaks as Leaks",
        "from genesis._leaks import leak_scope as leak_scope",
        "from genesis.ndarray.cuda_memory_manager import CUDAMemoryManager",
        "",
        "memory_manager: CUDAMemoryManager",
    ]
    short = assigned(tree, "_SHORT")
    assert isinstance(short, ast.Dict)
    for key, value in zip(short.keys, short.values, strict=True):
        assert isinstance(key, ast.Constant)
        kind = "dtype" if isinstance(value, ast.Attribute) else "builtins.float"
        is_none = isinstance(value, ast.Constant) and value.value is None
        lines += [f"{key.value}: {'None' if is_none else kind}"]
    own = [one for one in tree.body if isinstance(one, ast.FunctionDef)]
    for one in own:
        if not one.name.startswith("_"):
            arguments = ast.unparse(one.args).replace(": bool", ": builtins.bool")
            assert one.returns is not None
            lines += [f"def {one.name}({arguments}) -> {ast.unparse(one.returns)}: ..."]
    everything = {name for names in offered.values() for name in names}
    everything |= {*ast.literal_eval(assigned(tree, "__all__"))}
    lines += ["", "__all__ = [", *(f'    "{name}",' for name in sorted(everything)), "]", ""]
    return "\n".join(lines)


def write(path: Path, text: str) -> None:
    """Writes a file if that changes it."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main() -> None:
    """All stubs."""
    functions, extension, package, out = map(Path, sys.argv[1:])
    rows = read_rows(functions)
    stub = make_extension(in_namespace(rows, ""), extension.read_text())
    write(out / "_C.pyi", stub)
    for space, module in NAMESPACES.items():
        write(out / f"{module}.pyi", make_namespace(in_namespace(rows, space), module, stub))
    write(out / "__init__.pyi", make_package(package, stub))


if __name__ == "__main__":
    main()
