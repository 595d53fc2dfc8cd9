"""Mutated snapshots, read in a process with little memory: only SnapshotError may come out.

    python snapshot_fuzz.py COUNT SEED

A mutant that is accepted goes through everything that the shell commands do with it. Prints how
many were accepted, and for a failure the bytes that cause it.
"""

import json
import pickle
import random
import resource
import sys
import tempfile
from pathlib import Path

from recording_models import random_model

from genesis._memory_cli import _state_lines, diff_parts
from genesis._recording import Recording
from genesis._report import Report
from genesis._snapshot import SnapshotError, from_torch, load, to_torch
from genesis._timeline import trace_entries
from genesis._timeline_page import pack

MEMORY = 1 << 30  # on top of what the process has at the start
INTEGERS = [0, 1, 255, 256, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**63, 2**64 - 1, 2**64, 2**80, -1]
OPCODES = bytes(range(256))
MARK = "@@@"


def samples(chance):
    """Files that are right: our own layout, PyTorch's, and small ones."""
    snapshot = to_torch(random_model(chance.randrange(1 << 32), 30).recording())
    if chance.random() < 0.5:
        del snapshot["genesis"]
    return snapshot


def places(value, found):
    """Every place of a structure that a mutation can change."""
    if isinstance(value, dict | list):
        keys = list(value) if isinstance(value, dict) else range(len(value))
        for key in keys:
            found.append((value, key))
            places(value[key], found)
    return found


def place(chance, snapshot, value):
    found = places(snapshot, [])
    parent, key = chance.choice(found)
    parent[key] = value


def anything(chance):
    return chance.choice(
        [
            chance.choice(INTEGERS),
            chance.choice([0.5, 1e300, float("nan"), float("inf"), -0.0]),
            chance.choice(["", "x" * 1000, "\x1b[31m", "\ud800", "1"]),
            [],
            {},
            None,
            True,
            [1, [2, {"a": None}]],
        ]
    )


def structured(chance):
    """A snapshot in which some values are others, as a file."""
    snapshot = samples(chance)
    for _ in range(chance.randrange(1, 4)):
        place(chance, snapshot, anything(chance))
    if chance.random() < 0.5:
        return json.dumps(snapshot).encode()
    return pickle.dumps(snapshot, protocol=chance.randrange(2, 6))


def shared(chance):
    """What only a pickle can be: one object in many places, inside itself, or deeper than a stack.

    Some value is a mark, whose text becomes the opcodes that make such an object.
    """
    snapshot = samples(chance)
    place(chance, snapshot, MARK)
    data = pickle.dumps(snapshot, protocol=4)
    made = chance.choice(
        [
            b")" + b"\x85" * 200_000,  # tuples in tuples
            b"]" + b"\x94]h\x002a0" * 3 + b"\x85" * 200_000,
            b")" + b"2\x86" * 60,  # 2 ** 60 empty tuples, seen as a tree
            b"h\x00",  # the snapshot itself
            b"](" + b"h\x00" * 5000 + b"e",
            b"](" + b"]" * 5000 + b"e",
        ]
    )
    return data.replace(b"\x8c\x03" + MARK.encode(), made)


def flipped(chance):
    """The bytes of a file, some of them others, missing or twice."""
    snapshot = samples(chance)
    protocol = chance.randrange(1, 6)
    data = bytearray(
        json.dumps(snapshot).encode() if protocol == 1 else pickle.dumps(snapshot, protocol)
    )
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(5)
        if kind == 0:
            data[at : at + 1] = bytes([chance.choice(OPCODES)])
        elif kind == 1:
            del data[at : at + chance.randrange(1, 20)]
        elif kind == 2:
            data[at:at] = data[at : at + chance.randrange(1, 200)]
        elif kind == 3:
            data[at:at] = chance.choice(PLANTED)
        else:
            del data[at:]
    return bytes(data)


# Opcodes with numbers that ask for more than there is, and what takes much for few bytes.
PLANTED = [
    b"\x8d" + b"\xff" * 7 + b"\x00",
    b"X\xff\xff\xff\xff",
    b"B\xff\xff\xff\xff",
    b"\x8e\xff\xff\xff\xff\x00\x00\x00\x00",
    b"\x96\xff\xff\xff\xff\x00\x00\x00\x00",
    b"\x95\xff\xff\xff\xff\x00\x00\x00\x00",
    b"]r\xff\xff\xff\xff",
    b"j\xff\xff\xff\xff",
    b"\x8b\xff\xff\xff\x7f",
    b"p4294967295\n",
    b"I" + b"9" * 10_000 + b"\n",
    b"(" * 1000,
    b"}" * 1000,
    b")" + b"\x85" * 200_000,
    b"[" * 10_000,
    b"9" * 5000,
    b"}" + b")" + b"\x85" * 300_000 + b"Ns",
]


def use(recording):
    """What ``genesis memory`` does with a recording."""
    str(Report(recording).summary())
    for device in recording.device_indices():
        _state_lines(recording, device)
        recording.usage(device)
    diff_parts(recording, Recording(devices=["cuda:0"]))
    for _ in trace_entries(recording, None, 0):
        pass
    pack(recording)


def run(count, seed):
    chance = random.Random(seed)
    accepted = 0
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "mutant")
        for number in range(count):
            data = chance.choice([structured, flipped, shared])(chance)
            path.write_bytes(data)
            try:
                recording = from_torch(load(path))
                accepted += 1
                use(recording)
            except SnapshotError as error:
                text = str(error)
                assert "\n" not in text and "\x1b" not in text and len(text) < 300, text
            except BaseException:
                print(f"seed {seed}, mutant {number}: {data[:3000]!r}", flush=True)
                raise
    return accepted


if __name__ == "__main__":
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    print(run(int(sys.argv[1]), int(sys.argv[2])), "accepted")
