#!/usr/bin/env python3
"""Build the archive of compiled kernels that lies beside the library.

    tools/kernel_archive.py --out FILE --cache DIRECTORY --architectures "75 80 90 90ptx"
                            --program build/tools/kernel_texts [TEXTS...]

The program writes the texts of all kernels that do not depend on the user's program. TEXTS are
directories with more: NAME_HASH.cu, as GENESIS_KERNEL_SOURCE_DIR keeps them. NVRTC compiles each
for each architecture: to machine code, or to PTX where the number has "ptx" behind it. No GPU is
needed. What was compiled before by this version of NVRTC is taken from the cache. Without NVRTC no
file is written; one sentence says so, and that is no failure.

src/jit/archive_file.h describes the file, src/jit/nvrtc.c the options of kernels.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import ctypes
import hashlib
import os
import re
import site
import struct
import subprocess
import sys
import tempfile
import zlib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

MAGIC, FORMAT, KEY_FORMAT = b"GNARCHIV", 1, "genesis archive 1"
HEADER, ENTRY = struct.Struct("=8sIIIIIIQ"), struct.Struct("=16sIIII")
BLOCK = struct.Struct("=QIIII")
# Images of a block, which is unpacked to get at one of them: so many, within these bytes. More make
# the file smaller and unpacking slower. The driver takes much longer to translate PTX.
BLOCK_IMAGES, BLOCK_LEAST, BLOCK_MOST, BLOCK_PTX = 24, 1 << 20, 2 << 20, 8 << 20
LARGE = 200 << 10  # bytes of an image
COPY_BYTES = 32  # what is worth a command
INSTRUCTION = 16  # bytes
# For tensors of more than 4 G elements: rare, and so only as PTX.
PTX_ONLY = re.compile(r"_far_")
PTX = 1 << 16
OPTIONS = ("--std=c++17", "--fmad=false")  # gni_kernel_options
MINIMAL = ("--minimal", "--disable-warnings")
MINIMAL_SINCE = 12040
MAJORS = (13, 12)


class Nvrtc:
    """NVRTC, loaded from a file."""

    def __init__(self, path: str):
        self.path = path
        self.library = ctypes.CDLL(path)
        self.library.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        self.version = major.value * 1000 + minor.value * 10
        count = ctypes.c_int()
        self._call("nvrtcGetNumSupportedArchs", ctypes.byref(count))
        known = (ctypes.c_int * count.value)()
        self._call("nvrtcGetSupportedArchs", known)
        self.architectures = list(known)

    def _call(self, function: str, *arguments: object) -> None:
        result = getattr(self.library, function)(*arguments)
        if result != 0:
            raise RuntimeError(f"{function}: {self.library.nvrtcGetErrorString(result).decode()}")

    def _read(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{what}", program, buffer)
        return buffer.raw

    def compile(self, text: str, name: str, target: int) -> bytes:
        """Machine code, or PTX with its final NUL."""
        kind = "compute" if target & PTX else "sm"
        options = [f"--gpu-architecture={kind}_{target & ~PTX}", *OPTIONS]
        if self.version >= MINIMAL_SINCE:
            options += MINIMAL
        program = ctypes.c_void_p()
        self._call(
            "nvrtcCreateProgram",
            ctypes.byref(program),
            text.encode(),
            name.encode(),
            0,
            None,
            None,
        )
        try:
            given = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
            try:
                self._call("nvrtcCompileProgram", program, len(options), given)
            except RuntimeError as error:
                log = self._read(program, "ProgramLog").rstrip(b"\0").decode()
                raise RuntimeError(
                    f"kernel {name} for {kind}_{target & ~PTX}: {error}\n{log}"
                ) from None
            return self._read(program, "PTX" if target & PTX else "CUBIN")
        finally:
            self.library.nvrtcDestroyProgram(ctypes.byref(program))


def nvrtc_find(given: str | None) -> Nvrtc | None:
    """Where the library looks as well: the toolkit, NVIDIA's wheels, the system."""
    if given:
        return Nvrtc(given)
    roots = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    wheels = [Path(p) / "nvidia" for p in [*sys.path, site.getusersitepackages()] if p]
    folders = [Path(root) / "lib64" for root in roots if root]
    folders += [w / name / "lib" for w in wheels for name in ("cu13", "cuda_nvrtc")]
    names = [f"libnvrtc.so.{major}" for major in MAJORS]
    paths = [str(folder / name) for folder in folders for name in names]
    paths = [path for path in paths if Path(path).exists()]
    for path in [*paths, *names, *(f"/usr/local/cuda/lib64/{name}" for name in names)]:
        with contextlib.suppress(OSError):
            return Nvrtc(path)
    return None


def texts_read(folders: list[Path]) -> dict[bytes, tuple[str, str]]:
    """The names and texts of kernels by their keys in the archive."""
    texts = {}
    for path in sorted(path for folder in folders for path in folder.glob("*.cu")):
        match = re.fullmatch(r"(\w+)_[0-9a-f]{16}", path.stem)
        text = path.read_text()
        # A name that was cut to fit a file's name, or is a C++ expression, is not in the text.
        if match and "include" not in text and re.search(rf"\b{match[1]}\b", text):
            texts[key_make(match[1], text)] = (match[1], text)
    return texts


def key_make(name: str, text: str) -> bytes:
    """The same as gni_archive_key_make()."""
    digest = hashlib.sha256()
    for piece in (KEY_FORMAT, name, text, "symbol", *OPTIONS):
        digest.update(struct.pack("=Q", len(piece.encode())) + piece.encode())
    return digest.digest()[:16]


_nvrtc: Nvrtc | None = None  # of a worker process


def _start(path: str) -> None:
    global _nvrtc
    _nvrtc = Nvrtc(path)


def _compile(job: tuple[str, str, int, Path]) -> None:
    """Put an image into the cache."""
    name, text, target, path = job
    assert _nvrtc is not None
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(_nvrtc.compile(text, name, target))
    unfinished.replace(path)


def images_make(
    nvrtc: Nvrtc, texts: dict[bytes, tuple[str, str]], targets: list[int], cache: Path, jobs: int
) -> dict[tuple[bytes, int], Path]:
    """Compile what the cache does not have; gives the file of each image."""
    cache.mkdir(parents=True, exist_ok=True)
    paths = {
        (key, target): cache / f"{key.hex()}-{target:x}-{nvrtc.version}.image"
        for key, (name, _) in texts.items()
        for target in targets
        if target & PTX or not PTX_ONLY.search(f"{name}_")
    }
    missing = [
        (*texts[key], target, path) for (key, target), path in paths.items() if not path.exists()
    ]
    if missing:
        print(f"compiling {len(missing)} of {len(paths)} images with {jobs} processes", flush=True)
        with ProcessPoolExecutor(jobs, initializer=_start, initargs=(nvrtc.path,)) as pool:
            for _ in pool.map(_compile, missing, chunksize=4):
                pass
    return paths


def _number(value: int) -> bytes:
    """A number of a command: 7 bits a byte, low ones first."""
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def block_encode(images: bytes) -> bytes:
    """Write images as commands and literals: src/jit/archive_file.h."""
    seen: dict[bytes, int] = {}  # where so many bytes were last
    commands, literals = bytearray(), bytearray()
    at = begin = known = 0
    end = len(images)

    def command(copied: int, back: int) -> None:
        for number in (at - begin, copied, back):
            commands.extend(_number(number))
        literals.extend(images[begin:at])

    while at < end:
        while known < at:
            seen[images[known : known + COPY_BYTES]] = known
            known += 1
        source = seen.get(images[at : at + COPY_BYTES]) if at + COPY_BYTES <= end else None
        if source is None:
            at += 1
            continue
        copied, back = COPY_BYTES, at - source
        while at + copied < end and images[at + copied] == images[source + copied]:
            copied += 1
        command(copied, back)
        at = begin = at + copied
    if begin < at:
        command(0, 0)
    return struct.pack("=I", len(commands)) + commands + literals


def block_pack(images: bytes) -> tuple[int, bytes]:
    """How many bytes a block has before zlib, and its bytes in the file."""
    encoded = block_encode(images)
    return len(encoded), zlib.compress(encoded, 9)


Images = list[tuple[bytes, int, bytes]]  # key, target, image


def images_group(images: Images) -> list[Images]:
    """Images of one target in blocks, of those that have most in common.

    A block begins with the largest that is left, and goes on with those of which the largest part
    is in it already.
    """
    parts = [
        {image[at : at + COPY_BYTES] for at in range(0, len(image), INSTRUCTION)}
        for _, _, image in images
    ]
    holders = collections.defaultdict(list)  # the images that have a part
    for index, own in enumerate(parts):
        for part in own:
            holders[part].append(index)
    sizes = [len(image) for _, _, image in images]
    left = sorted(range(len(images)), key=lambda index: -sizes[index])
    groups = []
    while left:
        first = left[0]
        room = min(max(BLOCK_IMAGES * sizes[first], BLOCK_LEAST), BLOCK_MOST)
        room = max(room, BLOCK_PTX if images[first][1] & PTX else sizes[first])
        if sizes[first] > LARGE and not images[first][1] & PTX:
            room = sizes[first]  # alone: a program that starts waits for it
        group, known, shared = [], set(), collections.Counter()
        chosen: int | None = first
        while chosen is not None:
            group.append(images[chosen])
            left.remove(chosen)
            room -= sizes[chosen]
            for part in parts[chosen] - known:
                shared.update(holders[part])
            known |= parts[chosen]
            fitting = [index for index in left if sizes[index] <= room]
            chosen = max(fitting, key=lambda i: shared[i] / len(parts[i]), default=None)
        groups.append(group)
    return groups


def archive_write(out: Path, version: int, images: Images, jobs: int) -> int:
    """Write the file, whole or not at all; gives its length."""
    by_target = [
        [image for image in images if image[1] == target]
        for target in sorted({target for _, target, _ in images})
    ]
    entries, contents = [], []
    with ProcessPoolExecutor(jobs) as pool:
        groups = [group for groups in pool.map(images_group, by_target) for group in groups]
    for group in groups:
        content = b""
        for key, target, image in group:
            entries.append((key, target, len(contents), len(content), len(image)))
            content += image
        contents.append(content)
    with ProcessPoolExecutor(jobs) as pool:
        packed = list(pool.map(block_pack, contents))
    blocks, offset = [], HEADER.size + ENTRY.size * len(entries) + BLOCK.size * len(packed)
    for content, (inflated, block) in zip(contents, packed, strict=True):
        blocks.append(BLOCK.pack(offset, len(block), inflated, len(content), 0))
        offset += len(block)
    table = b"".join([*(ENTRY.pack(*entry) for entry in sorted(entries)), *blocks])

    def header(checksum: int) -> bytes:
        return HEADER.pack(MAGIC, FORMAT, version, len(entries), len(packed), checksum, 0, offset)

    checksum = zlib.crc32(header(0) + table)
    out.parent.mkdir(parents=True, exist_ok=True)
    unfinished = out.with_name(out.name + ".new")
    unfinished.write_bytes(b"".join((header(checksum), table, *(block for _, block in packed))))
    unfinished.replace(out)
    return offset


def targets_read(words: str, nvrtc: Nvrtc) -> list[int]:
    """What to compile for; what NVRTC does not know is left out, which is said."""
    targets = []
    for word in words.split():
        match = re.fullmatch(r"(\d+)(ptx)?", word)
        if match is None:
            raise SystemExit(f"kernel_archive: {word} is no architecture: write 90, or 90ptx")
        if int(match[1]) in nvrtc.architectures:
            targets.append(int(match[1]) | (PTX if match[2] else 0))
        else:
            print(f"kernel_archive: this NVRTC does not compile for {word}: left out")
    if not targets:
        raise SystemExit("kernel_archive: there is no architecture to compile for")
    return targets


def main() -> int:
    """The command line; gives the exit code."""
    parser = argparse.ArgumentParser(description="Build the archive of compiled kernels.")
    parser.add_argument("--out", type=Path, default=Path("build/libgenesis.kernels"))
    parser.add_argument("--cache", type=Path, default=Path("build/kernel_images"))
    parser.add_argument("--architectures", default="75 80 90 100 120 90ptx")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--nvrtc", help="the file of NVRTC; else the usual places")
    parser.add_argument("--program", help="a program that writes texts to a directory")
    parser.add_argument("--find", action="store_true", help="only say whether NVRTC is found")
    parser.add_argument("texts", type=Path, nargs="*")
    given = parser.parse_args()
    nvrtc = nvrtc_find(given.nvrtc)
    if given.find:
        return 0 if nvrtc is not None else 1
    if nvrtc is None:
        given.out.unlink(missing_ok=True)
        print(
            "kernel_archive: NVRTC was not found, so there is no archive of kernels: "
            "they are compiled when they are needed"
        )
        return 0
    with tempfile.TemporaryDirectory() as folder:
        if given.program:
            subprocess.run([given.program, folder], check=True)
        texts = texts_read([Path(folder), *given.texts])
    targets = targets_read(given.architectures, nvrtc)
    paths = images_make(nvrtc, texts, targets, given.cache, given.jobs)
    order = sorted(paths, key=lambda image: (image[1], *texts[image[0]]))
    images = [(key, target, paths[key, target].read_bytes()) for key, target in order]
    size = archive_write(given.out, nvrtc.version, images, given.jobs)
    version = f"{nvrtc.version // 1000}.{nvrtc.version % 1000 // 10}"
    print(
        f"{given.out}: {len(texts)} kernels for {given.architectures}, "
        f"{size / 2**20:.2f} MiB, NVRTC {version}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
