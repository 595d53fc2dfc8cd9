"""An installed library serves C programs through pkg-config and CMake."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from genesis import _C

USER_PROGRAM = """
#include <genesis/genesis.h>
#include <stdio.h>

int main(void)
{
    gn_device *device;
    gn_tensor *x, *sum;
    gn_scalar item;
    if (gn_device_get(GN_DEVICE_CUDA, 0, &device) != GN_OK &&
        gn_device_get(GN_DEVICE_CPU, 0, &device) != GN_OK)
        return 1;
    if (gn_tensor_create(GN_FLOAT32, 2, (int64_t[]){2, 3}, device, &x) != GN_OK ||
        gn_assign(x, (gn_operand){.scalar = {.kind = GN_INT64, .integer = 2}}) != GN_OK ||
        gn_reduce(GN_REDUCE_SUM, x, 0, false, &sum) != GN_OK ||
        gn_tensor_get_item(sum, NULL, &item) != GN_OK) {
        fprintf(stderr, "%s\\n", gn_error_detail());
        return 1;
    }
    printf("the sum is %g on %s\\n", item.floating,
           gn_device_get_type(device) == GN_DEVICE_CPU ? "cpu" : "cuda");
    gn_tensor_release(sum);
    gn_tensor_release(x);
    return 0;
}
"""


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


def test_the_simulated_gpu_is_installed(prefix, tmp_path):
    """A program of a user's own, outside of the tree, with and without it."""
    if not (library_directory(prefix) / "libgenesis_sim.so").exists():
        pytest.skip("the build has no simulator")
    if shutil.which("pkg-config") is None:
        pytest.skip("no pkg-config")
    (tmp_path / "user.c").write_text(USER_PROGRAM)
    line = f"cc {tmp_path}/user.c $(pkg-config --cflags --libs genesis) -o {tmp_path}/user"
    environment = os.environ | {"PKG_CONFIG_PATH": str(library_directory(prefix) / "pkgconfig")}
    subprocess.run(line, shell=True, env=environment, check=True, capture_output=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GENESIS_")}
    kept["LD_LIBRARY_PATH"] = str(library_directory(prefix))
    kept["XDG_CACHE_HOME"] = str(tmp_path)
    for driver, place in (("/no/driver", "cpu"), ("sim", "cuda")):
        finished = subprocess.run(
            [tmp_path / "user"],
            env=kept | {"GENESIS_CUDA_DRIVER": driver},
            capture_output=True,
            text=True,
            check=True,
        )
        assert finished.stdout == f"the sum is 12 on {place}\n"


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
