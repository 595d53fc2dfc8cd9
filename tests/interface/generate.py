"""Writes the C++ file that compares one of our headers for CUDA and its tools with NVIDIA's.

Our header is read with a strict grammar: whatever is not understood is an error, so that no
declaration can escape the comparison. The file that comes out has at least one ``static_assert``
for each constant, enum, structure, field, typedef and function, and the message of each begins
with the kind and the name of the item, as in ``function cuMemAlloc: ...``.

Where each item stands in the header is kept as well, which is how test_agreement.py changes items
to see that the comparison notices.

Usage: ``generate.py HEADER INCLUDE_DIRECTORY... > comparison.cpp``
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Span = tuple[int, int]

# What the real thing is called, by the middle of our table's name: the headers to include, and
# the headers in which the names are declared.
REAL_HEADERS = {
    "CUDA": (["cuda.h", "cudaTypedefs.h"], ["cuda.h", "cudaTypedefs.h"]),
    "NVRTC": (["nvrtc.h"], ["nvrtc.h"]),
    "CUBLASLT": (
        ["cublasLt.h"],
        ["cublasLt.h", "cublas_api.h", "library_types.h", "driver_types.h"],
    ),
    "NVTX": (
        ["nvtx3/nvToolsExtMem.h"],
        [
            "nvtx3/nvToolsExtMem.h",
            "nvtx3/nvToolsExt.h",
            "nvtx3/nvtxDetail/nvtxExtTypes.h",
            "nvtx3/nvtxDetail/nvtxExtImplMem_v1.h",
        ],
    ),
}


class HeaderError(ValueError):
    """A header has something in it that the grammar does not allow."""


@dataclass
class Constant:
    name: str
    value: Span
    enum: str | None  # the enum's name; None for a macro
    cast: str | None = None  # the type a macro casts its number to


@dataclass
class Enum:
    name: str
    constants: list[Constant]
    end: int  # where the closing brace stands


@dataclass
class Field:
    path: str  # with dots where structures are nested
    type: Span | None  # None for a nested structure
    length: Span | None  # the number in brackets
    whole: Span


@dataclass
class Struct:
    name: str
    fields: list[Field]
    end: int
    is_union: bool = False


@dataclass
class Alias:
    name: str
    target: Span  # the type, or an opaque structure's tag
    tag: str | None  # set for a pointer to an opaque structure


@dataclass
class Function:
    name: str
    arguments: Span  # what stands between the parentheses
    types: list[Span]  # the type of each argument; none for (void)
    result: Span | None = None
    symbol: Span | None = None  # without the quotes
    version: Span | None = None
    need: str | None = None
    pointer: bool = False  # a typedef of a pointer to a function, not a row of the table


@dataclass
class Interface:
    """What a header declares."""

    text: str
    family: str = ""  # CUDA, NVRTC, CUBLASLT or NVTX
    oldest: int | None = None
    macros: list[Constant] = field(default_factory=list)
    enums: list[Enum] = field(default_factory=list)
    structs: list[Struct] = field(default_factory=list)
    aliases: list[Alias] = field(default_factory=list)
    pointers: list[Function] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)

    def at(self, span: Span | None) -> str:
        """The header's text at a place, with single spaces."""
        return "" if span is None else " ".join(self.text[slice(*span)].split())

    def constants(self) -> Iterator[Constant]:
        yield from self.macros
        for enum in self.enums:
            yield from enum.constants


NUMBER = r"(?:0x[0-9A-Fa-f]+|-?\d+)"
TYPE = r"(?:unsigned (?:char|short|int|long long)|long double|(?!(?:unsigned|long)\b)[A-Za-z_]\w*)"
NAME = r"(?!(?:const|char|short|int|long)\b)[a-z]\w*"
ARGUMENT = re.compile(rf"\s*(?P<type>(?:const )?{TYPE} (?:\*const \*|\*\*|\*)?)(?P<name>{NAME})\s*")
GUARD = re.compile(r"#ifndef (GNI_\w+_H)\n#define \1\n")
INCLUDE = re.compile(r"#include <std(?:def|int)\.h>\n")
OLDEST = re.compile(r"#define GNI_CUDA_OLDEST_VERSION (\d+)\n")
MACRO = re.compile(
    rf"#define (?P<name>(?:CU|NVTX|NVTX3EXT)_\w+) +"
    rf"(?:(?P<plain>{NUMBER})|\(\((?P<cast>\w+)\)(?P<number>{NUMBER})\))\n"
)
TABLE = re.compile(r"#define GNI_(?P<family>[A-Z]+)_FUNCTIONS\(X\)(?P<rows>[^\n]*)\n")
DRIVER_ROW = re.compile(
    r'\s*X\((?P<name>\w+), "(?P<symbol>\w+)", (?P<version>\d+), (?P<need>REQUIRED|OPTIONAL),\s+'
    r'\((?P<arguments>[^()]*)\),\s+"(?P<lost>[^"]*)"\)\s*'
)
LIBRARY_ROW = re.compile(
    rf"\s*X\((?P<result>(?:const )?{TYPE}(?: \*)?), (?P<name>\w+), (?P<need>REQUIRED|OPTIONAL),\s+"
    r"\((?P<arguments>[^()]*)\)\)\s*"
)
ENUM = re.compile(r"typedef enum(?: \w+)? \{(?P<body>[^{}]*)\} (?P<name>\w+);")
ENUMERATOR = re.compile(rf"\s*(?P<name>\w+) = (?P<value>{NUMBER}),\s*")
STRUCT = re.compile(r"typedef (?P<kind>struct|union)(?: \w+)? \{")
STRUCT_END = re.compile(r"\s*\} (?P<name>\w+);")
NESTED = re.compile(r"\s*struct \{")
FIELD = re.compile(
    rf"\s*(?P<whole>(?P<type>(?:const )?{TYPE}(?: \*{{1,2}}| ))(?P<name>\w+)"
    r"(?:\[(?P<length>\d+)\])?;)"
)
OPAQUE = re.compile(r"typedef struct (?P<target>\w+) \*(?P<name>\w+);")
ALIAS = re.compile(rf"typedef (?P<target>{TYPE}) (?P<name>\w+);")
POINTER = re.compile(r"typedef (?P<result>\w+) \(\*(?P<name>\w+)\)\((?P<arguments>[^()]*)\);")
DRIVER_COLUMNS = "name, symbol, version, need, arguments, lost"
LIBRARY_COLUMNS = "result, name, need, arguments"


def blank_comments(text: str) -> str:
    """Replaces comments by spaces, so that every place in the text stays what it was."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match.group())

    return re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.DOTALL)


class Reader:
    """Reads a header from its beginning to its end."""

    def __init__(self, text: str) -> None:
        # A comment inside the table ends in a line splice. Splices go first: both of the
        # characters become spaces, and the table one long line.
        self.text = blank_comments(text.replace("\\\n", "  "))
        self.raw = text
        self.position = 0
        self.interface = Interface(text=self.text)
        self.names: set[str] = set()
        self.struct_seen = False  # the structure that is made from the table

    def fail(self, what: str, position: int | None = None) -> HeaderError:
        place = self.position if position is None else position
        while place < len(self.text) and self.text[place].isspace():
            place += 1
        end = self.raw.find("\n", place)
        line = self.raw.count("\n", 0, place) + 1
        return HeaderError(f"line {line}: {what}: {self.raw[place : end if end >= 0 else None]!r}")

    def declare(self, name: str, position: int) -> str:
        if name in self.names:
            raise self.fail(f"{name} is declared twice", position)
        self.names.add(name)
        return name

    def accept(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.position)
        if match is not None:
            self.position = match.end()
        return match

    def skip_space(self) -> None:
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1

    def read(self) -> Interface:
        self.skip_space()
        if self.accept(GUARD) is None:
            raise self.fail("the header does not begin with an include guard")
        self.skip_space()
        while not self.text.startswith("#endif", self.position):
            if not self.read_declaration():
                raise self.fail("not understood")
            self.skip_space()
        if self.text[self.position :] != "#endif\n":
            raise self.fail("something follows the include guard")
        if not self.interface.functions or not self.struct_seen:
            raise self.fail("there is no table of functions, or no structure made from it")
        return self.interface

    def read_declaration(self) -> bool:
        if self.accept(INCLUDE):
            return True
        if match := self.accept(OLDEST):
            self.interface.oldest = int(match[1])
            return True
        if match := self.accept(MACRO):
            span = match.span("number" if match["cast"] else "plain")
            name = self.declare(match["name"], match.start())
            self.interface.macros.append(Constant(name, span, None, match["cast"]))
            return True
        if match := self.accept(TABLE):
            self.read_table(match)
            return True
        if match := self.accept(ENUM):
            self.read_enum(match)
            return True
        if match := self.accept(STRUCT):
            fields = self.read_fields("")
            end = self.accept(STRUCT_END)
            if end is None:
                raise self.fail("not understood in a structure")
            name = self.declare(end["name"], match.start())
            closing = self.text.index("}", end.start())
            self.interface.structs.append(Struct(name, fields, closing, match["kind"] == "union"))
            return True
        if match := self.accept(OPAQUE) or self.accept(ALIAS):
            tag = match["target"] if match.re is OPAQUE else None
            name = self.declare(match["name"], match.start())
            self.interface.aliases.append(Alias(name, match.span("target"), tag))
            return True
        if match := self.accept(POINTER):
            self.interface.pointers.append(self.function(match, pointer=True))
            return True
        return self.read_table_struct()

    def read_enum(self, match: re.Match[str]) -> None:
        name = self.declare(match["name"], match.start())
        constants = []
        position = match.start("body")
        while position < match.end("body"):
            item = ENUMERATOR.match(self.text, position, match.end("body"))
            if item is None:
                raise self.fail("not understood in an enum", position)
            constant = self.declare(item["name"], item.start("name"))
            constants.append(Constant(constant, item.span("value"), name))
            position = item.end()
        if not constants:
            raise self.fail("an enum without constants", match.start())
        self.interface.enums.append(Enum(name, constants, match.end("body")))

    def read_fields(self, prefix: str) -> list[Field]:
        fields: list[Field] = []
        while True:
            if self.accept(NESTED):
                if prefix:
                    raise self.fail("structures nest once at most")
                begin = self.position
                inner = self.read_fields("?")
                end = self.accept(STRUCT_END)
                if end is None:
                    raise self.fail("not understood in a nested structure")
                for item in inner:
                    item.path = item.path.replace("?", end["name"], 1)
                fields.append(Field(end["name"], None, None, (begin, end.end())))
                fields.extend(inner)
            elif match := self.accept(FIELD):
                path = f"{prefix}.{match['name']}" if prefix else match["name"]
                length = match.span("length") if match["length"] else None
                fields.append(Field(path, match.span("type"), length, match.span("whole")))
            elif fields:
                return fields
            else:
                raise self.fail("not understood in a structure")

    def function(self, match: re.Match[str], pointer: bool = False) -> Function:
        name = self.declare(match["name"], match.start("name"))
        columns = match.groupdict()
        return Function(
            name=name,
            arguments=match.span("arguments"),
            types=self.read_arguments(match.span("arguments")),
            result=match.span("result") if "result" in columns else None,
            symbol=match.span("symbol") if "symbol" in columns else None,
            version=match.span("version") if "version" in columns else None,
            need=columns.get("need"),
            pointer=pointer,
        )

    def read_arguments(self, span: Span) -> list[Span]:
        if self.text[slice(*span)] == "void":
            return []
        types = []
        position = span[0]
        while True:
            match = ARGUMENT.match(self.text, position, span[1])
            if match is None:
                raise self.fail("an argument is not understood", position)
            types.append(match.span("type"))
            position = match.end()
            if position == span[1]:
                return types
            if self.text[position] != ",":
                raise self.fail("an argument is not understood", position)
            position += 1

    def read_table(self, table: re.Match[str]) -> None:
        if self.interface.functions:
            raise self.fail("a second table", table.start())
        family = table["family"]
        if family not in REAL_HEADERS:
            raise self.fail("a table for an unknown library", table.start())
        self.interface.family = family
        row = DRIVER_ROW if family == "CUDA" else LIBRARY_ROW
        position = table.start("rows")
        while position < table.end("rows"):
            match = row.match(self.text, position, table.end("rows"))
            if match is None:
                raise self.fail("a row of the table is not understood", position)
            if family == "CUDA":
                self.check_need(match)
            self.interface.functions.append(self.function(match))
            position = match.end()

    def check_need(self, row: re.Match[str]) -> None:
        """A driver that we support has what is required; what is optional says who misses it."""
        required = row["need"] == "REQUIRED"
        if self.interface.oldest is None:
            raise self.fail("the oldest version comes before the table", row.start())
        if required and int(row["version"]) > self.interface.oldest:
            raise self.fail("required, but newer than the oldest driver", row.start())
        if required != (row["lost"] == ""):
            raise self.fail("only an optional function says what is lost", row.start())

    def read_table_struct(self) -> bool:
        """The one structure that is made from the table, word for word."""
        family = self.interface.family
        columns = DRIVER_COLUMNS if family == "CUDA" else LIBRARY_COLUMNS
        result = "CUresult" if family == "CUDA" else "result"
        words = (
            f"struct gni_{family.lower()}_functions {{\n"
            f"#define GNI_{family}_FIELD({columns}) {result}(*name) arguments;\n"
            f"    GNI_{family}_FUNCTIONS(GNI_{family}_FIELD)\n"
            f"#undef GNI_{family}_FIELD\n"
            "};\n"
        )
        if self.struct_seen or not family or not self.text.startswith(words, self.position):
            return False
        self.position += len(words)
        self.struct_seen = True
        return True


def parse(text: str) -> Interface:
    """Reads a header.

    Parameters
    ----------
    text : str
        The whole of the header.

    Returns
    -------
    Interface
        Everything it declares, with its place in `text`.

    Raises
    ------
    HeaderError
        If anything in it is not understood.
    """
    return Reader(text).read()


class Real:
    """What the text of the real headers says, gone through once: they are long.

    Parameters
    ----------
    text : str
        The headers that declare the names, one after the other.
    """

    def __init__(self, text: str) -> None:
        text = blank_comments(text)
        self.words = set(re.findall(r"\w+", text))
        # The ABIs of each driver function, oldest first, from the typedefs of cudaTypedefs.h.
        self.versions: dict[str, list[int]] = {}
        for word in self.words:
            if match := re.fullmatch(r"PFN_(\w+)_v(\d+)", word):
                self.versions.setdefault(match[1], []).append(int(match[2]))
        for versions in self.versions.values():
            versions.sort()
        # ABIs that were given up are declared for NVIDIA's own use only, and stand indented.
        typedef = re.compile(r"^typedef [^\n]*\*(PFN_\w+)\)", re.MULTILINE)
        self.public = set(typedef.findall(text))
        # Names that cuda.h replaces by those of a newer ABI.
        renamed = re.compile(
            r"^#define (cu\w+)[ \t]+(?:__CUDA_API_PT\w+\()?(\1_v\d+)\)?$", re.MULTILINE
        )
        self.renamed = dict(renamed.findall(text))


class Writer:
    """Writes the comparison of one header."""

    def __init__(self, interface: Interface, header: str, real: Real, strict: bool) -> None:
        self.interface = interface
        self.header = header
        self.real = real
        self.words = real.words
        self.strict = strict
        self.lines: list[str] = []

    def write(self) -> str:
        family = self.interface.family
        self.lines += ["#include <stddef.h>", "#include <stdint.h>", '#include "agreement.hpp"']
        self.lines += ["namespace ours {", f'#include "{self.header}"', "}"]
        self.keep_ours()
        self.lines += [f"#include <{name}>" for name in REAL_HEADERS[family][0]]
        self.register_pairs()
        for constant in self.interface.macros:
            self.compare_macro(constant)
        for enum in self.interface.enums:
            self.compare_enum(enum)
        for struct in self.interface.structs:
            self.compare_struct(struct)
        for alias in self.interface.aliases:
            if self.has("typedef", alias.name):
                condition = f"agreement::agree<ours::{alias.name}, ::{alias.name}>"
                self.require("typedef", alias.name, condition, "the types differ")
        for pointer in self.interface.pointers:
            if self.has("typedef", pointer.name):
                condition = f"agreement::agree<ours::{pointer.name}, ::{pointer.name}>"
                self.require("typedef", pointer.name, condition, "the signatures differ")
        for function in self.interface.functions:
            if family == "CUDA":
                self.compare_driver_function(function)
            elif self.has("function", function.name):
                self.compare_function(function, f"decltype(&::{function.name})")
        return "\n".join(self.lines) + "\n"

    def require(self, kind: str, name: str, condition: str, what: str) -> None:
        self.lines.append(f'static_assert({condition}, "{kind} {name}: {what}");')

    def has(self, kind: str, name: str, word: str | None = None) -> bool:
        """Whether the real headers know a word; if not, that is a failed assertion of its own.

        Toolkits that are older than our headers lack some names, and are not asked for them.
        """
        if (word or name) in self.words:
            return True
        if self.strict:
            self.require(kind, name, "false", f"the real headers have no {word or name}")
        return False

    def keep_ours(self) -> None:
        """Keeps what macros of the real header would take away or replace."""
        family = self.interface.family
        for constant in self.interface.macros:
            # A cast to a pointer is no constant expression; here the same name is an integer.
            cast = f"using {constant.cast} = unsigned long long; " if constant.cast else ""
            self.lines += [
                f"namespace ours {{ using type_of_{constant.name} = decltype({constant.name}); }}",
                f"namespace value_of_our_{constant.name} {{",
                f"{cast}constexpr unsigned long long value = {constant.name};",
                "}",
                f"#undef {constant.name}",
            ]
        for function in self.interface.functions:
            name = function.name
            member = f"ours::gni_{family.lower()}_functions::{name}"
            self.lines.append(f"using our_{name} = decltype({member});")
        self.lines.append("#define GNI_COUNT(...) +1")
        condition = f"GNI_{family}_FUNCTIONS(GNI_COUNT) == {len(self.interface.functions)}"
        self.require("table", family, condition, "rows were overlooked")

    def register_pairs(self) -> None:
        tags = [alias.tag for alias in self.interface.aliases if alias.tag]
        # A tag that nobody else declares must lead to a failed assertion, not to another error.
        self.lines += [f"struct {tag};" for tag in tags if tag not in self.words]
        names = [struct.name for struct in self.interface.structs if struct.name in self.words]
        names += [enum.name for enum in self.interface.enums if enum.name in self.words]
        self.lines.append("namespace agreement {")
        for name in names + list(dict.fromkeys(tags)):
            self.lines.append(
                f"template <> struct registered<ours::{name}, ::{name}> : std::true_type {{}};"
            )
        self.lines.append("}")

    def compare_macro(self, constant: Constant) -> None:
        name = constant.name
        if not self.has("constant", name):
            return
        cast = f"using {constant.cast} = unsigned long long; " if constant.cast else ""
        self.lines += [
            f"namespace value_of_real_{name} {{",
            f"{cast}constexpr unsigned long long value = {name};",
            "}",
        ]
        condition = f"value_of_our_{name}::value == value_of_real_{name}::value"
        self.require("constant", name, condition, "the values differ")
        condition = f"agreement::agree<ours::type_of_{name}, decltype({name})>"
        self.require("constant", name, condition, "the types differ")

    def compare_enum(self, enum: Enum) -> None:
        if not self.has("enum", enum.name):
            return
        condition = f"agreement::enums_agree<ours::{enum.name}, ::{enum.name}>()"
        self.require("enum", enum.name, condition, "it is stored differently")
        for constant in enum.constants:
            name = constant.name
            if not self.has("constant", name):
                continue
            condition = f"(long long)ours::{name} == (long long)::{name}"
            self.require("constant", name, condition, "the values differ")
            condition = f"std::is_same_v<decltype(::{name}), ::{enum.name}>"
            self.require("constant", name, condition, f"it is no constant of {enum.name}")

    def compare_struct(self, struct: Struct) -> None:
        name = struct.name
        if not self.has("struct", name):
            return
        for word in ("sizeof", "alignof"):
            condition = f"{word}(ours::{name}) == {word}(::{name})"
            self.require("struct", name, condition, f"{word} differs")
        for item in struct.fields:
            full = f"{name}.{item.path}"
            if not self.has("field", full, item.path.split(".")[-1]):
                continue
            condition = f"offsetof(ours::{name}, {item.path}) == offsetof(::{name}, {item.path})"
            self.require("field", full, condition, "the offsets differ")
            # Fields of a nested structure have no qualified name.
            ours, theirs = (f"((({side}::{name} *)0)->{item.path})" for side in ("ours", ""))
            self.require("field", full, f"sizeof{ours} == sizeof{theirs}", "the sizes differ")
            if item.type is not None:
                ours, theirs = (f"std::remove_reference_t<decltype({x})>" for x in (ours, theirs))
                condition = f"agreement::agree<{ours}, {theirs}>"
                self.require("field", full, condition, "the types differ")

    def compare_function(self, function: Function, theirs: str) -> None:
        condition = f"agreement::agree<our_{function.name}, {theirs}>"
        self.require("function", function.name, condition, f"not the signature of {theirs}")

    def compare_driver_function(self, function: Function) -> None:
        """The signature and symbol of one ABI out of those that share a name.

        cudaTypedefs.h has a typedef for each ABI, with the version at its end. The driver exports
        the oldest by the plain name and the later ones with _v2, _v3 ... after it.
        """
        name = function.name
        version = self.interface.at(function.version)
        symbol = self.interface.at(function.symbol)
        typedef = f"PFN_{name}_v{version}"
        if not self.has("version", name, typedef):
            return
        public = typedef in self.real.public
        what = f"{typedef} is not for general use"
        self.require("version", name, "true" if public else "false", what)
        if public:
            self.compare_function(function, f"::{typedef}")

        versions = self.real.versions[name]
        place = versions.index(int(version))
        exported = name if place == 0 else f"{name}_v{place + 1}"
        condition = f'agreement::same_text("{symbol}", "{exported}")'
        self.require("symbol", name, condition, f"version {version} is exported as {exported}")
        if not self.has("symbol", name, symbol):
            return

        # What a program that includes cuda.h would call: a second witness of the symbol and of the
        # signature, where the toolkit takes the same ABI as we do.
        default = self.real.renamed.get(name, name)
        condition = f'agreement::same_text(AGREEMENT_TEXT({name}), "{default}")'
        self.require("symbol", name, condition, f"cuda.h does not call {default}")
        if symbol == default:
            self.compare_function(function, f"decltype(&::{name})")


def generate(interface: Interface, header: str, real: Real, strict: bool = True) -> str:
    """Writes the comparison of a header.

    Parameters
    ----------
    interface : Interface
        What `parse` made of the header.
    header : str
        The name by which the C++ file includes it.
    real : Real
        The real headers (`read_real`).
    strict : bool
        Whether a name that the real headers do not have is a failure.

    Returns
    -------
    str
        A C++17 file. It compiles if everything agrees.
    """
    return Writer(interface, header, real, strict).write()


def read_real(family: str, directories: Sequence[Path]) -> Real | None:
    """The real headers of a library; None if one of them is not installed."""
    texts = []
    for name in REAL_HEADERS[family][1]:
        found = [directory / name for directory in directories if (directory / name).is_file()]
        if not found:
            return None
        texts.append(found[0].read_text(encoding="utf-8", errors="replace"))
    return Real("\n".join(texts))


def main(arguments: Sequence[str]) -> int:
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    path = Path(arguments[0])
    try:
        interface = parse(path.read_text(encoding="utf-8"))
    except HeaderError as error:
        print(f"{path}: {error}", file=sys.stderr)
        return 1
    real = read_real(interface.family, [Path(directory) for directory in arguments[1:]])
    if real is None:
        print(f"{path}: the real headers are not in {arguments[1:]}", file=sys.stderr)
        return 1
    sys.stdout.write(generate(interface, path.name, real))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
