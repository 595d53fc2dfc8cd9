"""The command line.

``python -m genesis info`` shows versions, devices, memory, driver and libraries, for people;
``python -m genesis memory`` shows, compares, draws and replays snapshots of memory, and watches
that of a running process.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from typing import Any

import genesis
from genesis import _C, _memory_cli, _run
from genesis._memory import format_size


def _device_lines(name: str) -> list[str]:
    properties = genesis.cuda.get_device_properties(name)
    free, total = _C.memory_info(name)
    lines = [f"{name}: {properties.name}"]
    lines.append(f"  memory      {format_size(free)} free of {format_size(total)}")
    if name == "cpu":
        lines.append(f"  processors  {properties.multi_processor_count}")
        return lines
    lines.append(f"  capability  {properties.major}.{properties.minor}")
    lines.append(f"  processors  {properties.multi_processor_count} multiprocessors")
    features = {
        "virtual memory": properties.has_virtual_memory,
        "stream-ordered memory": properties.has_stream_ordered_memory,
    }
    lines.append("  offers      " + (", ".join(k for k, v in features.items() if v) or "-"))
    lines.append(f"  policy      {_C.MemoryManager(name).policy}")
    return lines


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}" if number < 100000 else f"{number}"


# What there is not without a library.
_LOSSES = {
    "CUDA driver": "there is no GPU",
    "NVRTC": "kernels that the archive does not have cannot be compiled",
    "cuBLASLt": "matrix products on GPUs use kernels of our own, which are slower",
}


def _library_lines(library: dict[str, Any]) -> list[str]:
    if library["is_found"]:
        return [f"{library['name']}: {_version(library['version'])} ({library['path']})"]
    return [
        f"{library['name']}: {library['reason']}",
        f"  without it, {_LOSSES[library['name']]}",
    ]


def _archive_lines(archive: dict[str, Any]) -> list[str]:
    lines = []
    if archive["is_found"]:
        size = format_size(archive["nbytes"])
        lines.append(
            f"kernel archive: {archive['kernel_count']} kernels, {size} ({archive['path']})"
        )
        lines.append(f"  compiled    NVRTC {_version(archive['nvrtc_version'])}")
        lines.append(f"  for         {archive['architectures']}")
    if not archive["is_used"]:
        lines.append(f"kernel archive: not used: {archive['reason']}")
        lines.append("  without it, each kernel is compiled at its first use, which needs NVRTC")
    return lines


def info_lines() -> list[str]:
    """What ``python -m genesis info`` prints, line by line."""
    lines = [f"genesis {genesis.__version__}, Python {platform.python_version()}", ""]
    for name in ["cpu", *(f"cuda:{index}" for index in range(genesis.cuda.device_count()))]:
        try:
            lines += _device_lines(name)
        except RuntimeError as error:  # one broken GPU must not hide the others
            lines.append(f"{name}: cannot be used: {error}")
    lines.append("")
    for library in _C.libraries():
        lines += _library_lines(library)
    lines += _archive_lines(_C.kernel_archive())
    changed = [o for o in _C.options() if o["value"] != o["default"]]
    lines += ["", "environment:"]
    lines += [f"  {o['name']}={o['value']}" for o in changed] or [
        "  every GENESIS_* at its default"
    ]
    return lines


def main() -> int:
    """The command line; gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m genesis", description="Genesis: information, memory, and scripts."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("info", help="versions, devices, memory, driver and libraries")
    memory = commands.add_parser(
        "memory", help="snapshots of memory: show, diff, html, replay; and watch, live"
    )
    _memory_cli.add_commands(memory)
    script = commands.add_parser("run", help="a script, with Genesis under its framework")
    _run.add_arguments(script)
    arguments = parser.parse_args()
    if arguments.command == "run":
        return _run.run(arguments)
    try:
        code = 0
        if arguments.command == "memory":
            code = _memory_cli.run(arguments)
        else:
            print("\n".join(info_lines()))
        sys.stdout.flush()
    except OSError as error:  # the output cannot be written
        if not isinstance(error, BrokenPipeError):  # whoever read it, such as head, has enough
            print(f"python -m genesis: {error}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
