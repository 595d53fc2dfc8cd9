"""An installed library serves C programs through pkg-config and CMake."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from genesis import _C


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    build = Path(_C.__file__).resolve().parents[2]
    cache = (build / "CMakeCache.txt").read_text()
    if re.search(r"^GENESIS_SANITIZE:STRING=.+", cache, re.MULTILINE):
        pytest.skip("a library with sanitizers needs a program with them")
    prefix = tmp_path_factory.mktemp("prefix")
    command = ["cmake", "--install", build, "--prefix", str(prefix), "--component", "c"]
    subprocess.run(command, check=True, capture_output=True)
    return prefix


def library_directory(prefix):
    return next(prefix.rglob("libgenesis.so")).parent


def run(program, prefix):
    environment = os.environ | {"LD_LIBRARY_PATH": str(library_directory(prefix))}
    finished = subprocess.run(
        [program], env=environment, capture_output=True, text=True, check=True
    )
    assert "leaked: 0" in finished.stdout


def test_one_line_with_pkg_config(prefix, root, tmp_path):
    if shutil.which("pkg-config") is None:
        pytest.skip("no pkg-config")
    source = root / "examples/c/memory.c"
    line = f"cc {source} $(pkg-config --cflags --libs genesis) -o {tmp_path}/memory"
    environment = os.environ | {"PKG_CONFIG_PATH": str(library_directory(prefix) / "pkgconfig")}
    subprocess.run(line, shell=True, env=environment, check=True, capture_output=True)
    run(tmp_path / "memory", prefix)


def test_a_cmake_project(prefix, root, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(user C)\n"
        "find_package(genesis 0.1 REQUIRED)\n"
        f"add_executable(memory {root}/examples/c/memory.c)\n"
        "target_link_libraries(memory PRIVATE genesis::genesis)\n"
    )
    for command in (
        [
            "cmake",
            "-S",
            tmp_path,
            "-B",
            tmp_path / "out",
            "-G",
            "Ninja",
            f"-DCMAKE_PREFIX_PATH={prefix}",
        ],
        ["cmake", "--build", tmp_path / "out"],
    ):
        subprocess.run(command, check=True, capture_output=True)
    run(tmp_path / "out/memory", prefix)


def test_headers_are_plain_c_and_cpp(prefix, tmp_path):
    for compiler, standard, name in (("cc", "c11", "a.c"), ("g++", "c++17", "a.cpp")):
        if shutil.which(compiler) is None:
            continue
        source = tmp_path / name
        source.write_text("#include <genesis/genesis.h>\nint main(void) { return 0; }\n")
        command = [
            compiler,
            f"-std={standard}",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-fsyntax-only",
            f"-I{prefix}/include",
            str(source),
        ]
        subprocess.run(command, check=True)


def test_only_public_names_are_exported(prefix):
    library = library_directory(prefix) / "libgenesis.so"
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    ).stdout
    names = [line.split()[-1] for line in listing.splitlines()]
    assert names and all(name.startswith("gn_") for name in names)
