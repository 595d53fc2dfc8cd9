"""The layering of the sources, read off their #include lines and the symbols of their objects."""

import ast
import re
import struct
import subprocess

import pytest
from conftest import tool_load

house = tool_load("house")
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)


def sources(root, *folders):
    for folder in folders:
        yield from sorted(p for p in (root / folder).rglob("*.[ch]"))


def includes(path):
    return [(quote, name) for quote, name in INCLUDE.findall(path.read_text())]


def test_a_layer_includes_only_the_layers_above_it(root):
    count = 0
    for path in sources(root, *(f"src/{layer}" for layer in house.LAYERS)):
        own = path.relative_to(root / "src").parts[0]
        for quote, name in includes(path):
            if quote == "<":
                assert not name.startswith("genesis/"), f"{path}: use quotes for our own headers"
                continue
            layer = name.split("/")[0]
            count += 1
            if layer == "genesis":
                continue
            assert layer in house.LAYERS, f"{path}: {name} belongs to no layer"
            assert house.layer_may_use(own, layer), f"{path} must not include {name}"
    assert count > 50


def test_a_layer_calls_only_the_layers_above_it(build):
    """The same for calls: a function can be declared where it is not defined."""
    symbols = house.symbols_read(build)
    if symbols is None:
        pytest.skip("this build has no object files")
    assert house.symbols_upward(symbols) == []
    assert len(symbols.uses) > 500


def test_public_headers_stand_alone(root):
    for path in sources(root, "include"):
        for quote, name in includes(path):
            if quote == '"':
                assert name.startswith("genesis/"), f"{path} must not include {name}"
            else:
                assert name in {"stdbool.h", "stddef.h", "stdint.h"}, f"{path} includes {name}"


def test_the_extension_uses_public_headers_only(root):
    for path in sources(root, "src/python"):
        for quote, name in includes(path):
            if quote == '"':
                assert name == "module.h" or name.startswith("genesis/"), f"{path}: {name}"


def test_nothing_of_cuda_is_included(root):
    for path in sources(root, "src", "include", "examples", "bench"):
        for _, name in includes(path):
            assert not re.match(r"(cuda|nvrtc|cublas|nvtx3/|nvTools)\w*\.h$", name), (
                f"{path} includes {name}"
            )


def test_device_kinds_do_not_know_each_other(root):
    for path in sources(root, "src/device/cpu"):
        assert not [n for _, n in includes(path) if n.startswith("device/cuda")], path
    for path in sources(root, "src/device/cuda"):
        assert not [n for _, n in includes(path) if n.startswith("device/cpu")], path


def test_the_kind_of_a_device_is_rarely_asked(root):
    """Tables and their properties say what differs; a line that asks has its reason beside it."""
    question = re.compile(r"GN_DEVICE_CPU|GN_DEVICE_CUDA|gni_\w+_is_(cpu|cuda|host)\b")
    asked = [
        f"{path.relative_to(root)}:{number}: {line.strip()}"
        for layer in ("memory", "jit", "tensor", "ops")
        for path in sorted((root / "src" / layer).glob("*.[ch]"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if question.search(line)
    ]
    assert 0 < len(asked) <= 5, asked


def test_no_two_sources_have_one_name(root):
    names = {}
    for path in (path for kind in ("*.[ch]", "*.cu") for path in (root / "src").rglob(kind)):
        assert path.name not in names, f"{path} and {names[path.name]} have one name"
        names[path.name] = path
    assert len(names) > 100


def test_invariants_have_names_of_their_own(root):
    """A number such as SO5 says which file has the invariant."""
    homes, numbers = {}, re.compile(r"^ \*   ([A-Z]{1,2})\d+ +\S", re.MULTILINE)
    for path in sources(root, "src/device", "src/jit", "src/tensor", "src/ops"):
        for prefix in set(numbers.findall(path.read_text())):
            assert prefix not in homes, f"{path} and {homes[prefix]} both have {prefix}1"
            homes[prefix] = path
    assert len(homes) > 10


def test_the_library_links_nothing_of_cuda(build):
    library = next(build.glob("libgenesis.so.*"))
    needed = subprocess.run(["ldd", library], capture_output=True, text=True, check=False).stdout
    assert "libc.so" in needed
    assert not re.search(r"cuda|nvrtc|cublas", needed)


def test_kernels_wait_before_anything_else(root):
    """They are launched early (gni_launch.waits); the simulator sees only what the tests run."""
    kernels = re.compile(r"__global__[^;{]*\{\s*(\S+)")
    sources = [*sorted((root / "src/ops/cuda").glob("*.cu")), root / "src/ops/cuda/generate.c"]
    found = [
        first
        for path in sources
        for first in kernels.findall(path.read_text().replace("\\n", "\n"))
    ]
    assert len(found) > 25 and set(found) == {"kernel_begin();"}, set(found)


def test_thread_local_variables_are_few(build):
    """glibc has 512 bytes at hand for libraries that are loaded late: src/device/device.h."""
    elf = next(build.glob("libgenesis.so.*")).read_bytes()
    table, size, count = *struct.unpack_from("<Q", elf, 32), *struct.unpack_from("<HH", elf, 54)
    headers = [struct.unpack_from("<IIQQQQQQ", elf, table + size * i) for i in range(count)]
    thread_local = [header[6] for header in headers if header[0] == 7]  # PT_TLS
    assert len(thread_local) == 1
    assert 0 < thread_local[0] <= 512


def test_no_shell_is_started_and_no_text_evaluated(root):
    """S4 of SECURITY.md, as far as it can be read off the sources."""
    shell = re.compile(r"\b(system|popen|execlp?|execvp)\s*\(|shell\s*=\s*True|os\.popen")
    for path in sources(root, "src", "sim"):
        text = re.sub(r"/\*.*?\*/|\"(\\.|[^\"\n])*\"", "", path.read_text(), flags=re.DOTALL)
        assert not shell.search(text), f"{path}: a shell"
    names = {}
    for path in sorted((root / "python/genesis").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec", "compile"), f"{path}:{node.lineno}"
            if isinstance(node, ast.Import | ast.ImportFrom):
                found = [one.name for one in node.names] + [getattr(node, "module", "") or ""]
                names.setdefault(path.name, set()).update(found)
        assert not shell.search(path.read_text()), f"{path}: a shell"
    users = {name for name, found in names.items() if "pickle" in found}
    # One writes snapshots; the other sends the user's objects between the processes of a program.
    assert users == {"_snapshot.py", "_channel.py"}
    text = (root / "python/genesis/_snapshot.py").read_text()
    assert re.findall(r"pickle\.(\w+)\(", text) == ["dump"]
    text = (root / "python/genesis/utils/data/_channel.py").read_text()
    assert re.findall(r"pickle import (\w+)", text) == ["PickleBuffer"]
    assert len(re.findall(r"\bloads\(", text)) == 2  # of what a socket brought


def test_the_tests_of_security_are_there(root):
    text = (root / "SECURITY.md").read_text()
    promises = re.split(r"^- \*\*(S\d)\*\* ", text.split("## What is not")[0], flags=re.MULTILINE)[
        1:
    ]
    assert promises[0::2] == ["S1", "S2", "S3", "S4", "S5"]
    for name, promise in zip(promises[0::2], promises[1::2], strict=True):
        named = re.findall(r"`(tests/[\w/]+\.\w+)`", promise)
        assert named, name
        for path in named:
            assert (root / path).exists(), path
