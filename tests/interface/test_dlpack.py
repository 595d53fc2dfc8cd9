"""Our declaration of DLPack agrees with the real header, where a library that has it is installed.

Every constant, structure and field is compared; then some are made wrong, which must be seen.
"""

from __future__ import annotations

import re
import site
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OURS = ROOT / "src" / "tensor" / "dlpack.h"
PLACES = [
    "torch/include/ATen/dlpack.h",
    "tvm_ffi/include/dlpack/dlpack.h",
    "cuda/core/_include/dlpack.h",
    "cupy/_core/include/cupy/_dlpack/dlpack.h",
]
FOUND = [
    header
    for folder in (*site.getsitepackages(), "/usr/include", "/usr/local/include")
    for header in (*(Path(folder) / place for place in PLACES), Path(folder) / "dlpack/dlpack.h")
    if header.is_file()
]

# Of the table of functions, which genesis/interop.h declares: our field, theirs.
TABLE = {
    "major": "header.version.major",
    "minor": "header.version.minor",
    "previous": "header.prev_api",
    "allocate": "managed_tensor_allocator",
    "from_python": "managed_tensor_from_py_object_no_sync",
    "to_python": "managed_tensor_to_py_object_no_sync",
    "describe": "dltensor_from_py_object_no_sync",
    "current_stream": "current_work_stream",
}


def comparison(text: str, real: Path) -> str:
    """A C++ file in which every item of our header is compared with the real one's."""
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    constants = re.findall(r"^    (k?DL\w+) = \d+,", code, re.MULTILINE)
    structs = re.findall(r"typedef struct(?: \w+)? \{(.*?)\} (\w+);", code, re.DOTALL)
    fields = [
        (struct, pointer or plain)
        for body, struct in structs
        for pointer, plain in re.findall(r"(?:\(\*(\w+)\)\([^)]*\)|(\w+));", body)
    ]
    assert (len(constants), len(structs), len(fields)) == (12, 6, 22)
    lines = ["#include <cstddef>", "#include <cstdint>", '#include "genesis/interop.h"']
    lines += ["namespace ours {", code, "}"]
    lines += [f"constexpr auto our_{name} = ours::{name};" for name in constants]
    lines.append(f'#include "{real}"')
    for name in constants:
        lines.append(f'static_assert(our_{name} == (int){name}, "{name}");')
    for _, name in structs:
        lines.append(f'static_assert(sizeof(ours::{name}) == sizeof({name}), "{name}");')
    for struct, field in fields:
        lines.append(
            f"static_assert(offsetof(ours::{struct}, {field}) == offsetof({struct}, {field}) && "
            f'sizeof(ours::{struct}::{field}) == sizeof({struct}::{field}), "{struct}.{field}");'
        )
    if "DLPackExchangeAPI;" in real.read_text():
        lines.append('static_assert(sizeof(gn_exchange_api) == sizeof(DLPackExchangeAPI), "");')
        for ours, theirs in TABLE.items():
            lines.append(
                f"static_assert(offsetof(gn_exchange_api, {ours}) == "
                f'offsetof(DLPackExchangeAPI, {theirs}), "{ours}");'
            )
    return "\n".join(lines) + "\n"


def complaints(text: str, real: Path, folder: Path) -> str:
    source = folder / "comparison.cpp"
    source.write_text(comparison(text, real))
    command = ["g++", "-std=c++17", "-fsyntax-only", "-Wno-invalid-offsetof"]
    run = subprocess.run(
        [*command, f"-I{ROOT / 'include'}", str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stderr


def test_every_item_agrees(tmp_path):
    if not FOUND:
        pytest.skip("no library with dlpack.h is installed")
    for real in FOUND:
        version = re.search(r"DLPACK_MINOR_VERSION (\d+)", real.read_text())
        assert version
        text = OURS.read_text().replace(
            "DLPACK_MINOR_VERSION = 3", f"DLPACK_MINOR_VERSION = {version[1]}"
        )  # an older one has fewer items, but the same
        assert complaints(text, real, tmp_path) == "", real


@pytest.mark.parametrize(
    ("right", "wrong", "named"),
    [
        ("kDLBool = 6", "kDLBool = 7", "kDLBool"),
        ("IS_COPIED = 2", "IS_COPIED = 4", "DLPACK_FLAG_BITMASK_IS_COPIED"),
        ("uint16_t lanes", "uint32_t lanes", "DLDataType.lanes"),
        ("int32_t ndim;\n    DLDataType dtype;", "DLDataType dtype;\n    int32_t ndim;", "ndim"),
        ("uint64_t flags;\n", "uint32_t flags;\n", "DLManagedTensorVersioned.flags"),
        (
            "void *manager_ctx;\n    void (*deleter)(struct DLManagedTensor *self);",
            "void (*deleter)(struct DLManagedTensor *self);\n    void *manager_ctx;",
            "DLManagedTensor.deleter",
        ),
    ],
)
def test_a_slip_is_seen(tmp_path, right, wrong, named):
    if not FOUND:
        pytest.skip("no library with dlpack.h is installed")
    text = OURS.read_text()
    assert text.count(right) == 1
    assert named in complaints(text.replace(right, wrong), FOUND[0], tmp_path)
