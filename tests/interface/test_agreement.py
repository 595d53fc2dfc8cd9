"""Our declarations of the CUDA interfaces agree with NVIDIA's, and a slip in any would be seen.

The first half compiles, for each of our headers, the comparison that generate.py writes. The
second half makes every item of every header wrong, many at a time, and counts the items that the
compiler complains about by name: a comparison that lets one slip through is worth nothing.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import site
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import generate
import pytest

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parent.parent / "src"
PATHS = {
    "driver_api.h": SOURCES / "device" / "cuda" / "driver_api.h",
    "nvrtc_api.h": SOURCES / "device" / "cuda" / "nvrtc_api.h",
    "cublaslt_api.h": SOURCES / "device" / "cuda" / "cublaslt_api.h",
    "nvtx_api.h": SOURCES / "memory" / "nvtx_api.h",
}
HEADERS = list(PATHS)

# Our headers name what this toolkit has; older ones lack some of it, and are asked for the rest.
COMPLETE_SINCE = 13000

Edit = tuple[generate.Span, str]
# "kind name: what is wrong", as the assertions say it; of several in a tuple, one is enough.
Items = set[str | tuple[str, ...]]


def toolkit_directories() -> list[Path]:
    """The include directories of the first toolkit that is found; empty if there is none."""
    roots = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    roots.append(Path("/usr/local/cuda"))
    candidates = [[root / "include"] for root in roots]
    for place in [*site.getsitepackages(), site.getusersitepackages()]:
        wheels = Path(place) / "nvidia"
        candidates.append(
            sorted(wheels.glob("cu[0-9]*/include")) or sorted(wheels.glob("*/include"))
        )
    candidates.append([Path("/usr/include")])
    for directories in candidates:
        if any((directory / "cuda.h").is_file() for directory in directories):
            return directories
    return []


DIRECTORIES = toolkit_directories()


def toolkit_version() -> int:
    for directory in DIRECTORIES:
        if (directory / "cuda.h").is_file():
            text = (directory / "cuda.h").read_text(encoding="utf-8", errors="replace")
            match = re.search(r"^#define CUDA_VERSION (\d+)$", text, re.MULTILINE)
            return int(match[1]) if match else 0
    return 0


@functools.cache
def real_headers(family: str) -> generate.Real | None:
    return generate.read_real(family, DIRECTORIES)


class Comparison:
    """One of our headers, ready to be compared in its own or in a changed form."""

    def __init__(self, header: str, directory: Path) -> None:
        self.header = header
        self.directory = directory
        self.text = PATHS[header].read_text(encoding="utf-8")
        self.interface = generate.parse(self.text)
        self.strict = toolkit_version() >= COMPLETE_SINCE
        real = real_headers(self.interface.family)
        if real is None:
            pytest.skip(f"the toolkit in {DIRECTORIES[0]} has no {self.interface.family} headers")
        self.real = real

    def compile(self, edits: Iterable[Edit] = ()) -> tuple[set[str], str]:
        """What the compiler complains about when the header is changed in these places."""
        text = self.text
        for (begin, end), replacement in sorted(edits, reverse=True):
            text = text[:begin] + replacement + text[end:]
        interface = generate.parse(text)
        (self.directory / self.header).write_text(text, encoding="utf-8")
        source = self.directory / "comparison.cpp"
        comparison = generate.generate(interface, self.header, self.real, self.strict)
        source.write_text(comparison, encoding="utf-8")
        command = ["g++", "-std=c++17", "-fsyntax-only", "-fmax-errors=0", "-Wall", "-Wextra"]
        command += ["-Werror", f"-I{self.directory}", f"-I{HERE}"]
        for directory in DIRECTORIES:
            if directory != Path("/usr/include"):
                command += ["-isystem", str(directory)]
        environment = {**os.environ, "LC_ALL": "C"}
        run = subprocess.run(
            [*command, str(source)], capture_output=True, text=True, env=environment, check=False
        )
        failed = re.findall(r"static assertion failed: (\w+ [\w.]+: .*)", run.stderr)
        assert (run.returncode == 0) == (run.stderr == ""), run.stderr
        return set(failed), run.stderr

    def expect(self, edits: list[Edit], items: Items) -> None:
        """Every one of the changed items must be complained about, by name and for the reason."""
        assert edits, "nothing was changed"
        failed, log = self.compile(edits)
        if not self.strict:
            items = {item for item in items if self.is_known(item)}
        missed = {item for item in items if not any(line.startswith(item) for line in failed)}
        assert not missed, (
            f"{len(missed)} of {len(items)} not seen: {sorted(missed, key=str)}\n{log[-2000:]}"
        )

    def is_known(self, item: str | tuple[str, ...]) -> bool:
        """Whether the real headers have all of the names."""
        texts = (item,) if isinstance(item, str) else item
        names = [re.split("[ .]", text.split(":")[0])[-1] for text in texts]
        return all(name in self.real.words for name in names)


def compare(header: str, directory: Path) -> Comparison:
    if not DIRECTORIES:
        pytest.skip("no CUDA toolkit: set CUDA_HOME to one, to compare with its headers")
    if shutil.which("g++") is None:
        pytest.skip("no g++ to compile the comparison with")
    return Comparison(header, directory)


@pytest.fixture(params=HEADERS)
def comparison(request: pytest.FixtureRequest, tmp_path: Path) -> Comparison:
    return compare(request.param, tmp_path)


@pytest.fixture
def driver(tmp_path: Path) -> Comparison:
    made = compare("driver_api.h", tmp_path)
    if not made.strict:
        pytest.skip("the toolkit is too old to know all versions and symbols")
    return made


# ---- The headers as they are ----


def test_header_agrees_with_the_real_one(comparison: Comparison) -> None:
    failed, log = comparison.compile()
    assert not failed and log == "", log


def compile_as_c17(directory: Path, headers: Iterable[str]) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    source = directory / "headers.c"
    lines = [f'#include "{PATHS[header]}"\n' for header in headers]
    source.write_text("".join(lines), encoding="utf-8")
    command = ["gcc", "-std=c17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
    run = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("header", HEADERS)
def test_header_compiles_alone_as_c17(header: str, tmp_path: Path) -> None:
    compile_as_c17(tmp_path, [header, header])  # twice, for the include guard


def test_headers_compile_together_as_c17(tmp_path: Path) -> None:
    compile_as_c17(tmp_path, HEADERS)


def test_generator_runs_as_a_program() -> None:
    if not DIRECTORIES:
        pytest.skip("no CUDA toolkit")
    command = [sys.executable, str(HERE / "generate.py"), str(PATHS["driver_api.h"])]
    run = subprocess.run(
        [*command, *map(str, DIRECTORIES)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "static_assert" in run.stdout and run.stderr == ""


# ---- Every item made wrong ----


def test_every_wrong_constant_is_seen(comparison: Comparison) -> None:
    at = comparison.interface.at
    constants = list(comparison.interface.constants())
    edits = [(item.value, str(int(at(item.value), 0) + 1)) for item in constants]
    comparison.expect(edits, {f"constant {item.name}: the values differ" for item in constants})


@pytest.mark.parametrize("comparison", HEADERS[:3], indirect=True)
def test_every_wrong_enum_is_seen(comparison: Comparison) -> None:
    edits, items = [], set()
    for number, enum in enumerate(comparison.interface.enums):
        # Too large for an int, so that the enum is stored in eight bytes; and no real constant.
        edits.append(((enum.end, enum.end), f"    MUTATED_{number} = 0x100000000,\n"))
        items |= {f"enum {enum.name}: it is stored differently"}
        if comparison.strict:
            items |= {f"constant MUTATED_{number}: the real headers have no MUTATED_{number}"}
    comparison.expect(edits, items)


def test_every_wrong_typedef_is_seen(comparison: Comparison) -> None:
    edits, items = [], set()
    for alias in comparison.interface.aliases:
        edits.append((alias.target, "mutated_" + alias.tag if alias.tag else "unsigned short"))
        items |= {f"typedef {alias.name}: the types differ"}
    comparison.expect(edits, items)


with_structures = pytest.mark.parametrize(
    "comparison", ["driver_api.h", "cublaslt_api.h", "nvtx_api.h"], indirect=True
)


@with_structures
def test_every_wrong_opaque_pointer_is_seen(comparison: Comparison) -> None:
    """Each handle points to what the next one should: all tags exist, none is the right one."""
    opaque = [alias for alias in comparison.interface.aliases if alias.tag]
    edits = [
        (alias.target, other.tag or "")
        for alias, other in zip(opaque, opaque[1:] + opaque[:1], strict=True)
    ]
    comparison.expect(edits, {f"typedef {alias.name}: the types differ" for alias in opaque})


@with_structures
def test_every_wrong_field_type_is_seen(comparison: Comparison) -> None:
    edits, items = [], set()
    for struct in comparison.interface.structs:
        for item in struct.fields:
            if item.type is not None:
                edits.append((item.type, "long double "))
            what = "the sizes differ" if item.type is None else "the types differ"
            items |= {f"field {struct.name}.{item.path}: {what}"}
        items |= {f"struct {struct.name}: alignof differs"}
    comparison.expect(edits, items)


@pytest.mark.parametrize("comparison", ["driver_api.h", "cublaslt_api.h"], indirect=True)
def test_every_wrong_array_length_is_seen(comparison: Comparison) -> None:
    edits, items = [], set()
    for struct in comparison.interface.structs:
        for item in struct.fields:
            if item.length is not None:
                edits.append((item.length, str(int(comparison.interface.at(item.length)) + 1)))
                items |= {f"field {struct.name}.{item.path}: the types differ"}
    comparison.expect(edits, items)


@with_structures
def test_every_exchange_of_fields_is_seen(comparison: Comparison) -> None:
    edits: list[Edit] = []
    items: Items = set()
    for struct in comparison.interface.structs:
        plain = [item for item in struct.fields if item.type is not None and not struct.is_union]
        for first, second in zip(plain[::2], plain[1::2], strict=False):
            if first.path.count(".") != second.path.count("."):
                continue
            edits.append((first.whole, comparison.text[slice(*second.whole)]))
            edits.append((second.whole, comparison.text[slice(*first.whole)]))
            # One of them may come to stand where it stood, for reasons of alignment.
            moved = [f"field {struct.name}.{x.path}: the offsets differ" for x in (first, second)]
            items |= {tuple(moved)}
    comparison.expect(edits, items)


@with_structures
def test_every_wrong_structure_size_is_seen(comparison: Comparison) -> None:
    edits, items = [], set()
    for struct in comparison.interface.structs:
        edits.append(((struct.end, struct.end), "    char mutated[65];\n"))
        items |= {f"struct {struct.name}: sizeof differs"}
        if comparison.strict:
            items |= {f"field {struct.name}.mutated: the real headers have no mutated"}
    comparison.expect(edits, items)


def first_argument(function: generate.Function, text: str) -> Edit:
    if not function.types:
        return function.arguments, "short mutated"
    return function.types[0], "short "


def last_argument(function: generate.Function, text: str) -> Edit:
    if not function.types:
        return function.arguments, "void **mutated"
    begin, end = function.types[-1]
    return (begin, end), text[begin:end] + "*" if text[begin:end].endswith(" ") else "float "


def one_argument_more(function: generate.Function, text: str) -> Edit:
    end = function.arguments[1]
    if not function.types:
        return function.arguments, "int mutated"
    return (end, end), ", int mutated"


def constness(function: generate.Function, text: str) -> Edit:
    """Takes the first const away, or makes the first pointer one to const."""
    for begin, end in function.types:
        if text[begin:end].startswith("const "):
            return (begin, begin + len("const ")), ""
    for begin, end in function.types:
        if text[begin:end].endswith(" *"):
            return (begin, begin), "const "
    return first_argument(function, text)


@pytest.mark.parametrize("change", [first_argument, last_argument, one_argument_more, constness])
def test_every_wrong_signature_is_seen(
    comparison: Comparison, change: Callable[[generate.Function, str], Edit]
) -> None:
    interface = comparison.interface
    edits = [change(item, interface.text) for item in interface.functions + interface.pointers]
    items = {f"function {item.name}: not the signature" for item in interface.functions}
    items |= {f"typedef {item.name}: the signatures differ" for item in interface.pointers}
    comparison.expect(edits, items)


def test_every_wrong_result_is_seen(comparison: Comparison) -> None:
    interface = comparison.interface
    changed = [item for item in interface.functions + interface.pointers if item.result]
    edits = [(item.result, "float") for item in changed if item.result]
    items = {
        f"typedef {item.name}: the signatures differ"
        if item.pointer
        else f"function {item.name}: not the signature"
        for item in changed
    }
    comparison.expect(edits, items)


def test_every_unknown_version_is_seen(driver: Comparison) -> None:
    edits, items = [], set()
    for function in driver.interface.functions:
        assert function.version is not None
        # Downwards, for a required function may not be newer than the oldest driver.
        edits.append((function.version, str(int(driver.interface.at(function.version)) - 1)))
        items |= {f"version {function.name}: the real headers have no"}
    driver.expect(edits, items)


def test_every_wrong_symbol_is_seen(driver: Comparison) -> None:
    """The symbol of another ABI of the same function: the slip that is easiest to make."""
    edits, items = [], set()
    for function in driver.interface.functions:
        assert function.symbol is not None
        symbol = driver.interface.at(function.symbol)
        edits.append((function.symbol, symbol[:-3] if symbol.endswith("_v2") else symbol + "_v2"))
        version = driver.interface.at(function.version)
        items |= {f"symbol {function.name}: version {version} is exported as {symbol}"}
    driver.expect(edits, items)


def test_version_of_another_abi_is_seen(driver: Comparison) -> None:
    edits, items = [], set()
    for function in driver.interface.functions:
        assert function.version is not None and driver.interface.oldest is not None
        own = int(driver.interface.at(function.version))
        others = [version for version in driver.real.versions[function.name] if version != own]
        if others and (function.need == "OPTIONAL" or others[0] <= driver.interface.oldest):
            edits.append((function.version, str(others[0])))
            items |= {f"symbol {function.name}: version {others[0]} is exported as"}
    assert len(edits) >= 10
    driver.expect(edits, items)


# ---- What the grammar refuses ----

STRAY = [
    "int stray;",
    "extern int stray;",
    "CUresult cuStray(int value);",
    "static inline int stray(void) { return 0; }",
    "typedef int stray[3];",
    "typedef int *stray;",
    "typedef union stray { } stray;",
    "struct stray { int a; };",
    "enum stray { STRAY = 1 };",
    "typedef enum stray { } stray;",
    "typedef enum stray { STRAY } stray;",
    "typedef enum stray { STRAY = 1 | 2, } stray;",
    "typedef enum stray { STRAY = 1, STRAY = 2, } stray;",
    "typedef struct stray { int a : 3; } stray;",
    "typedef struct stray { } stray;",
    "typedef struct stray { int (*a)(void); } stray;",
    "typedef int (*stray)(int);",
    "typedef int (*stray)(int a, ...);",
    "#define CU_STRAY stray()",
    "#define CU_STRAY",
    "#define STRAY 1",
    "#define GNI_STRAY 1",
    "#include <cuda.h>",
    "#if 0\n#endif",
    "#pragma pack(1)",
    "stray",
    ";",
]


@pytest.mark.parametrize("stray", STRAY)
@pytest.mark.parametrize("header", HEADERS)
def test_unknown_line_is_refused(header: str, stray: str) -> None:
    text = PATHS[header].read_text(encoding="utf-8")
    generate.parse(text)
    places = [text.index("typedef "), text.index("struct gni_"), text.rindex("#endif")]
    for place in places:
        with pytest.raises(generate.HeaderError, match="line "):
            generate.parse(text[:place] + stray + "\n" + text[place:])
    with pytest.raises(generate.HeaderError, match="line "):
        generate.parse(text + stray + "\n")


@pytest.mark.parametrize("header", HEADERS)
def test_unknown_text_inside_a_declaration_is_refused(header: str) -> None:
    text = PATHS[header].read_text(encoding="utf-8")
    interface = generate.parse(text)
    places = [enum.end for enum in interface.enums] + [struct.end for struct in interface.structs]
    places += [enum.constants[0].value[1] for enum in interface.enums]
    places += [item.arguments[1] for item in interface.functions]
    places += [text.index("    X(") + 4, text.index("_FIELD("), text.index("#undef")]
    for place in places:
        for stray in (" stray stray", "+ 1", "#define CU_STRAY 1\n"):
            with pytest.raises(generate.HeaderError):
                generate.parse(text[:place] + stray + text[place:])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"cuMemAlloc_v2", 3020, REQUIRED', '"cuMemAlloc_v2", 12000, REQUIRED'),
        ("11020, OPTIONAL,", "11020, REQUIRED,"),
        ('"cuInit", 2000, REQUIRED', '"cuInit", 2000, OPTIONAL'),
        ('"cuInit", 2000, REQUIRED', '"cuInit", 2000, PREFERRED'),
        ('X(cuInit, "cuInit", 2000', "X(cuInit, 2000"),
        ("X(cuEventQuery,", "X(cuEventRecord,"),
        ("(unsigned int flags)", "(unsigned int)"),
        ("(unsigned int flags)", "()"),
    ],
)
def test_wrong_row_is_refused(before: str, after: str) -> None:
    text = PATHS["driver_api.h"].read_text(encoding="utf-8")
    assert before in text
    with pytest.raises(generate.HeaderError):
        generate.parse(text.replace(before, after, 1))
