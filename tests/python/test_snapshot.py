"""Recordings in PyTorch's snapshot layout, and what its reader asks of one."""

import json
import os
import pickle
import pickletools
import subprocess
import sys
from itertools import groupby

import pytest
import recording_models
from hypothesis import given, settings
from hypothesis import strategies as st
from recording_models import random_model

from genesis import _C, _snapshot
from genesis._recording import (
    ALLOC,
    EVENT,
    FREE,
    FREE_COMPLETED,
    FREE_REQUESTED,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
    Recording,
)
from genesis._snapshot import SnapshotError, device_slots, dump, from_torch, load, to_torch

MODELS = st.builds(random_model, st.integers(0, 1 << 32), st.integers(0, 300))
PLAIN = (dict, list, tuple, str, int, float, bool, type(None))


def check_segments(snapshot):
    """What segsum() and memory() of torch.cuda._memory_viz demand of the segments."""
    for segment in snapshot["segments"]:
        allocated = internal = external = 0
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at
            at += block["size"]
            if block["state"] == "active_allocated":
                allocated += block["requested_size"]
                internal += block["size"] - block["requested_size"]
            else:
                external += block["size"]
            assert block["size"] - block["requested_size"] >= 0
            assert [sorted(frame) for frame in block["frames"]] == [
                ["filename", "line", "name"] for _ in block["frames"]
            ]
        assert allocated + internal + external == segment["total_size"]
        assert isinstance(segment["stream"], int)


def check_traces(snapshot):
    """What trace() demands of the entries, and the browser's viewer of frees."""
    for trace in snapshot["device_traces"]:
        requested = set()
        for entry in trace:
            action = entry["action"]
            assert entry["addr"] < 1 << 53 and entry["time_us"] < 1 << 53
            assert entry["size"] >= 0 and entry["stream"] >= 0
            if action == "oom":
                assert entry["device_free"] >= 0
            elif action == "free_requested":
                requested.add(entry["addr"])
            elif action == "free_completed":
                requested.remove(entry["addr"])
            else:
                assert action in {"alloc", "segment_alloc", "segment_free", "snapshot"}


class Walk:
    """PyTorch's page in a browser: it walks from the end back to any event."""

    def __init__(self, snapshot, slot):
        segments = [one for one in snapshot["segments"] if one["device"] == slot]
        self.segments = {s["address"]: (s["total_size"], s["stream"]) for s in segments}
        self.blocks = {
            b["address"]: b["state"] == "active_pending_free"
            for s in segments
            for b in s["blocks"]
            if b["state"] != "inactive"
        }
        for entry in reversed(snapshot["device_traces"][slot]):
            self.undo(entry["action"], entry["addr"], entry["size"], entry["stream"])
            for address in self.blocks:
                assert any(a <= address < a + size for a, (size, _) in self.segments.items())

    def undo(self, action, address, size, stream):
        if action == "alloc":
            assert self.blocks.pop(address) is False
        elif action == "free_completed":
            assert address not in self.blocks
            self.blocks[address] = True
        elif action == "free_requested":
            assert self.blocks[address] is True
            self.blocks[address] = False
        elif action == "segment_alloc":
            assert self.segments.pop(address)[0] == size
        elif action in ("segment_free", "segment_unmap"):
            self.map(address, size, stream, action == "segment_unmap")
        elif action == "segment_map":
            self.unmap(address, size)

    def map(self, address, size, stream, is_joined):
        following = self.segments.get(address + size)
        if is_joined and following and following[1] == stream:
            size += self.segments.pop(address + size)[0]
        before = [a for a, (s, _) in self.segments.items() if a + s == address]
        if is_joined and before and self.segments[before[0]][1] == stream:
            size += self.segments[before[0]][0]
            address = before[0]
        self.segments[address] = (size, stream)

    def unmap(self, address, size):
        (found,) = [
            a for a, (s, _) in self.segments.items() if a <= address and address + size <= a + s
        ]
        whole, stream = self.segments.pop(found)
        if address > found:
            self.segments[found] = (address - found, stream)
        if address + size < found + whole:
            self.segments[address + size] = (found + whole - address - size, stream)


def as_json(value):
    return json.loads(json.dumps(value))


def without_frames_of_frees(snapshot):
    for trace in snapshot["device_traces"]:
        for entry in trace:
            if entry["action"].startswith("free"):
                entry.pop("frames", None)
    return snapshot


def test_devices_of_a_file_are_bounded():
    """A number in a name makes no list of that length; a name that comes twice loses nothing."""
    assert device_slots(["cuda:5000000000", "cpu", "cuda:1", "cuda:1"]) == [None, 2, 0, 1, 3]
    assert device_slots(["cuda:" + "9" * 5000]) == [0]


def test_addresses_of_a_file_are_compared_as_numbers():
    """Lists that hold each other again and again would be compared for ever."""

    def deep():
        made = [1]
        for _ in range(60):
            made = [made, made]
        return made

    entries = [
        {"action": "free_requested", "addr": deep(), "size": 1, "stream": 0, "time_us": 1},
        {"action": "free_completed", "addr": deep(), "size": 1, "stream": 0, "time_us": 2},
    ]
    with pytest.raises(SnapshotError):
        from_torch({"segments": [], "device_traces": [entries]})


@settings(max_examples=50, deadline=None)
@given(MODELS)
def test_pytorch_reader_is_content(model):
    snapshot = to_torch(model.recording())
    check_segments(snapshot)
    check_traces(snapshot)
    for slot in range(len(snapshot["device_traces"])):
        walk = Walk(snapshot, slot)
        assert walk.blocks == {} and walk.segments == {}
    for slot, device in enumerate(device_slots(model.devices)):
        mine = [one for one in snapshot["segments"] if one["device"] == slot]
        live, _, pending, reserved = model.now[device]
        assert sum(one["total_size"] for one in mine) == reserved
        assert sum(one["allocated_size"] for one in mine) == live
        assert sum(one["active_size"] for one in mine) == live + pending


@settings(max_examples=30, deadline=None)
@given(MODELS)
def test_files_hold_what_the_dict_does(tmp_path_factory, model):
    folder = tmp_path_factory.mktemp("snapshot")
    recording = model.recording()
    dump(recording, folder / "one.json")
    dump(recording, folder / "one.pickle")
    snapshot = to_torch(recording)
    assert load(folder / "one.pickle") == snapshot
    assert load(folder / "one.json") == without_frames_of_frees(as_json(snapshot))
    assert sorted(p.name for p in folder.iterdir()) == ["one.json", "one.pickle"]


def changes(values):
    return [value for value, _ in groupby(values)]


@settings(max_examples=50, deadline=None)
@given(MODELS, st.booleans())
def test_there_and_back(model, as_text):
    recording = model.recording()
    snapshot = to_torch(recording)
    again = from_torch(as_json(snapshot) if as_text else snapshot)
    for device, name in enumerate(again.devices):
        one, two = recording.usage(recording.devices.index(name)), again.usage(device)
        # A request and its completion right after each other are one free in this layout.
        for place, name in ((0, "live"), (1, "requested"), (3, "reserved")):
            expected = changes([one.start[place], *getattr(one, name)])
            assert changes([two.start[place], *getattr(two, name)]) == expected
        assert one.start == two.start
        assert [one.start[2], *one.pending][-1] == [two.start[2], *two.pending][-1]
    assert again.statistics == recording.statistics and again.lost == recording.lost

    def blocks(lifetimes, source):
        return sorted(
            (one.address, one.size, one.requested, one.stream, source.location(one.site))
            for one in lifetimes
        )

    assert blocks(again.lifetimes(), again) == blocks(recording.lifetimes(), recording)
    marks = ("annotation_begin", "annotation_end", "mark")
    one, two = (
        [(event.kind, event.annotation) for event in source if event.kind in marks]
        for source in (recording, again)
    )
    if len(again.devices) == len(recording.devices):
        assert one == two


def test_a_recording_knows_the_way(tmp_path):
    recording = random_model(1, 100).recording()
    assert recording.to_torch() == to_torch(recording)
    assert len(Recording.from_torch(recording.to_torch())) == len(recording)


def test_a_pickle_is_plain_and_has_each_stack_once(tmp_path):
    recording = random_model(2, 2000).recording()
    dump(recording, tmp_path / "x.pkl")

    def walk(value):
        assert type(value) in PLAIN
        for one in value.values() if isinstance(value, dict) else value:
            if isinstance(one, dict | list | tuple):
                walk(one)

    snapshot = load(tmp_path / "x.pkl")
    walk(snapshot)
    lists = {id(e["frames"]) for t in snapshot["device_traces"] for e in t if "frames" in e}
    assert len(lists) < len(recording.sites)
    assert (tmp_path / "x.pkl").read_bytes()[:2] == b"\x80\x04"


def test_long_recordings_have_fewer_frames_in_json(tmp_path, monkeypatch):
    recording = random_model(2, 300).recording()
    monkeypatch.setattr(_snapshot, "JSON_STACK_BYTES", 10_000)
    dump(recording, tmp_path / "x.json")
    entries = [e for t in load(tmp_path / "x.json")["device_traces"] for e in t]
    stacks = [e["frames"] for e in entries if "frames" in e]
    assert stacks and all(1 <= len(stack) < 3 for stack in stacks)
    assert all(stack[0]["name"].startswith("layer") for stack in stacks)


def test_a_failed_dump_leaves_nothing(tmp_path):
    recording = random_model(2, 20).recording()
    recording.sites = [(), (object(),)]
    for name in ("x.json", "x.pickle"):
        with pytest.raises(AttributeError):
            dump(recording, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_devices_by_their_number():
    assert device_slots([]) == []
    assert device_slots(["cpu", "cuda:2", "cuda:0", "cpu (pinned)"]) == [2, None, 1, 0, 3]
    model = random_model(1, 200, ("cpu", "cuda:2"))
    snapshot = to_torch(model.recording())
    assert [bool(trace) for trace in snapshot["device_traces"]] == [False, False, True, True]
    again = from_torch(snapshot)
    assert again.devices == ["cuda:2", "cpu"]


def test_holes_are_filled():
    base = {"segment_id": 1, "segment_address": 0, "segment_bytes": 4096, "device": 0, "site": 0}
    block = {"requested": 500, "nbytes": 512, "state": "live", "stream_id": 0, **base}
    recording = Recording(
        devices=["cuda:0"], blocks=[{**block, "address": 1024}, {**block, "address": 2048}]
    )
    (segment,) = to_torch(recording)["segments"]
    assert [(one["address"], one["size"]) for one in segment["blocks"]] == [
        (0, 1024),
        (1024, 512),
        (1536, 512),
        (2048, 512),
        (2560, 1536),
    ]


def page(number, kind, stream=5):
    return EVENT.pack(number, 4096 * number, 4096, 0, stream, 0, 0, 0, kind, 0, 0)


def test_segments_that_grow_in_place_are_told_so(tmp_path):
    """Pages 1 to 4 are mapped, 2 goes back and comes again: at the end they are one segment."""
    base = {"segment_id": 1, "segment_address": 4096, "segment_bytes": 4 * 4096, "device": 0}
    block = {"requested": 0, "nbytes": 4 * 4096, "state": "global_cached", "stream_id": 3, **base}
    data = EVENT.pack(0, 4096, 3 * 4096, 0, 1, 0, 0, 0, SEGMENT_MAP, 0, 0)
    data += page(4, SEGMENT_MAP) + page(2, SEGMENT_UNMAP) + page(2, SEGMENT_MAP)
    recording = Recording(data, devices=["cuda:0"], blocks=[{**block, "address": 4096}])
    snapshot = to_torch(recording)
    assert snapshot["segments"][0]["is_expandable"] is True
    assert [entry["action"] for entry in snapshot["device_traces"][0]] == [
        "segment_map",
        "segment_map",
        "segment_unmap",
        "segment_map",
    ]
    assert Walk(snapshot, 0).segments == {}
    dump(recording, tmp_path / "x.json")
    assert load(tmp_path / "x.json") == as_json(snapshot)


def is_expandable(data, *segments):
    blocks = [
        {
            "address": address,
            "nbytes": size,
            "requested": 0,
            "state": "global_cached",
            "stream_id": 0,
            "segment_id": address,
            "segment_address": address,
            "segment_bytes": size,
            "device": 0,
        }
        for address, size in segments
    ]
    snapshot = to_torch(Recording(data, devices=["cuda:0"], blocks=blocks))
    Walk(snapshot, 0)
    return snapshot["allocator_settings"]["expandable_segments"]


def test_which_segments_grow_in_place():
    whole = EVENT.pack(0, 4096, 3 * 4096, 0, 1, 0, 0, 0, SEGMENT_MAP, 0, 0)
    assert not is_expandable(whole, (4096, 3 * 4096))
    assert is_expandable(whole + page(1, SEGMENT_UNMAP), (2 * 4096, 2 * 4096))
    assert is_expandable(whole + page(2, SEGMENT_UNMAP), (4096, 4096), (3 * 4096, 4096))
    assert is_expandable(page(1, SEGMENT_MAP) + page(2, SEGMENT_MAP), (4096, 2 * 4096))
    # One beside another, one that is older, one whose address came again with another size.
    assert not is_expandable(
        page(1, SEGMENT_MAP) + page(2, SEGMENT_MAP), (4096, 4096), (8192, 4096)
    )
    assert not is_expandable(page(1, SEGMENT_UNMAP) + page(2, SEGMENT_MAP), (8192, 4096))
    gone = EVENT.pack(1, 4096, 3 * 4096, 0, 1, 0, 0, 0, SEGMENT_UNMAP, 0, 0)
    assert not is_expandable(whole + gone + page(1, SEGMENT_MAP), (4096, 4096))


# ---- PyTorch's own snapshots --------------------------------------------------------------------


def entry(action, addr=4096, size=100, **more):
    return {"action": action, "addr": addr, "size": size, "stream": 0, **more}


def segment(*blocks, device=0, address=4096):
    return {
        "device": device,
        "address": address,
        "total_size": sum(size for size, _, _ in blocks),
        "stream": 0,
        "blocks": [
            {"size": size, "requested_size": requested, "state": state}
            for size, requested, state in blocks
        ],
    }


def kinds_of(snapshot):
    return [row[8] for row in from_torch(snapshot).rows()]


def test_frees_in_pairs():
    pair = [entry("free_requested"), entry("free_completed")]
    assert kinds_of({"device_traces": [[entry("alloc"), *pair]]}) == [ALLOC, FREE]
    apart = [pair[0], entry("alloc", 8192), pair[1]]
    assert kinds_of({"device_traces": [apart]}) == [FREE_REQUESTED, ALLOC, FREE_COMPLETED]
    assert kinds_of({"device_traces": [pair[1:]]}) == [FREE_COMPLETED]
    assert kinds_of({"device_traces": [pair[:1]]}) == [FREE_REQUESTED]


def test_sizes_of_pytorch_are_what_was_requested():
    trace = [entry("alloc"), entry("free_requested"), entry("free_completed"), entry("alloc")]
    blocks = [(2048, 100, "active_allocated"), (512, 0, "inactive")]
    recording = from_torch({"device_traces": [trace], "segments": [segment(*blocks)]})
    assert [event.size for event in recording] == [512, 512, 2048]
    assert recording.usage(0).live == [512, 0, 2048]
    assert recording.usage(0).reserved == [2560] * 3


def test_a_pending_block_at_the_end():
    trace = [entry("alloc"), entry("free_requested")]
    blocks = [(1024, 100, "active_pending_free"), (512, 0, "inactive")]
    recording = from_torch({"device_traces": [trace], "segments": [segment(*blocks)]})
    assert recording.usage(0).live == [1024, 0] and recording.usage(0).pending == [0, 1024]
    blocks = [(1024, 100, "active_awaiting_free")]
    assert from_torch({"segments": [segment(*blocks)]}).blocks[0]["state"] == "pending"


def test_several_devices_by_time():
    traces = [[], [entry("alloc", time_us=30)], [entry("alloc", time_us=20)], []]
    recording = from_torch({"device_traces": traces, "segments": []})
    assert recording.devices == ["cuda:1", "cuda:2"]
    assert [(event.device, event.time_ns) for event in recording] == [
        ("cuda:2", 0),
        ("cuda:1", 10_000),
    ]


def test_what_may_be_missing_and_what_is_not_known():
    trace = [
        {"action": "alloc", "addr": 1, "size": 5},
        {"action": "teleport"},
        {},
        {"action": 7},
        entry("segment_map", 0, 4096),
        entry("segment_unmap", 0, 4096),
        {"action": "oom", "size": 7, "device_free": 3, "stream": 0},
        entry("alloc", frames=[{"name": None, "filename": "x.py"}], user_metadata="step 1"),
    ]
    recording = from_torch({"device_traces": [trace]})
    assert recording.ignored == 3 and len(recording) == 5
    assert recording[3].requested == 7 and recording[3].size == 3
    assert recording[4].frames == (("", "x.py", 0),) and recording[4].annotation == "step 1"
    assert from_torch({"segments": []}).devices == []


def test_annotations_of_pytorch():
    external = [
        {"name": "forward", "stage": "START", "device": 0, "time_us": 1},
        {"name": "forward", "stage": "END", "device": 0, "time_us": 3},
        {"other": "x", "device": 0, "time_us": 4},
    ]
    trace = [entry("alloc", time_us=2)]
    recording = from_torch({"device_traces": [trace], "external_annotations": external})
    assert [event.kind for event in recording] == [
        "annotation_begin",
        "alloc",
        "annotation_end",
        "mark",
    ]


@pytest.mark.parametrize(
    "snapshot",
    [
        {"device_traces": 5},
        {"device_traces": [5]},
        {"device_traces": [[5]]},
        {"device_traces": [[entry("alloc", "x")]]},
        {"device_traces": [[entry("alloc", -1)]]},
        {"device_traces": [[entry("alloc", 1 << 64)]]},
        {"device_traces": [[entry("alloc", 1, None)]]},
        {"device_traces": [[entry("alloc", 1, 1, time_us="now")]]},
        {"device_traces": [[entry("alloc", 1, 1, frames=7)]]},
        {"device_traces": [[entry("alloc", 1, 1, frames=[7])]]},
        {"device_traces": [[entry("alloc", 1, 1, thread=1 << 20)]]},
        {"device_traces": [[entry("alloc", 1, 1, frames=[{"name": [], "filename": 1}])]]},
        {"device_traces": [[entry("alloc", [])]]},
        {"segments": [{"address": 1}]},
        {"segments": [{"address": 1, "total_size": 1, "device": 1000}]},
        {"segments": [{"address": 1, "total_size": 1, "blocks": [{"size": -1}]}]},
        {"segments": {}, "device_traces": {"a": 1}},
        {"device_traces": [], "genesis": {"lost": -1}},
        {"device_traces": [[]], "external_annotations": [{"time_us": 1.5}]},
        {"device_traces": [[entry("alloc", 10**5000)]]},
        {"device_traces": [[entry("alloc", 1, 1, block_size=[])]]},
        {"device_traces": [[entry("alloc", (1 << 64) - 1, 2)]]},
        {"device_traces": [[entry("oom", device_free=[])]]},
        {"device_traces": [[entry("alloc", 1, 1, user_metadata=[[]])]]},
        {"device_traces": [[entry("alloc", 1, 1, stream="x")]]},
        {"device_traces": [[]] * 257},
        {"device_traces": [[entry("alloc")]] * 2},
        {"device_traces": [[entry("alloc")]], "genesis": {"devices": [[]]}},
        {"segments": [segment((1, 1, "inactive")) | {"blocks": [{"size": 1 << 63}] * 2}]},
        {"segments": [segment((512, 1, "inactive"))] * 2},
        {"segments": [{"address": (1 << 64) - 1, "total_size": 2}]},
    ],
)
def test_what_is_wrong_is_one_clear_error(snapshot):
    with pytest.raises(SnapshotError) as caught:
        from_torch(snapshot)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 200


def test_the_blocks_of_a_manager(any_memory, root):
    """What a manager really has, under each policy, tiles as PyTorch's reader wants it."""
    code = f"""
sys.path.insert(0, {str(root / "tests/python")!r})
from genesis._recording import Recording
from genesis._snapshot import to_torch
from test_snapshot import check_segments
kept = [mm.allocate_memory(size) for size in (0, 1, 700, 5000, 3 * MiB, 40 * MiB, 700)]
mm.free_memory(kept.pop(2)); mm.free_memory(kept.pop(3))
now, blocks = mm.statistics(), [dict(block, device=0, site=0) for block in mm.blocks()]
recording = Recording(devices=["cuda:0"], blocks=blocks, statistics={{"cuda:0": now}})
snapshot = to_torch(recording)
check_segments(snapshot)
assert sum(s["total_size"] for s in snapshot["segments"]) == now["reserved_bytes"]
assert sum(s["allocated_size"] for s in snapshot["segments"]) == now["live_bytes"]
assert sum(s["requested_size"] for s in snapshot["segments"]) == now["requested_bytes"]
assert recording.end_bytes(0)[:2] == (now["live_bytes"], now["requested_bytes"])
for address in kept:
    mm.free_memory(address)
"""
    any_memory(code)


# ---- files of others ----------------------------------------------------------------------------


class Evil:
    def __reduce__(self):
        return eval, ("1/0",)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "JSON"),
        (b"\x80", "pickle"),
        (b"\x80\x04}", "pickle"),
        (b"{", "JSON"),
        (b"[]", "a dict"),
        (b"{}", "not a snapshot"),
        (b"\xff\xfe", "JSON"),
        (pickle.dumps({"device_traces": Evil()}), "plain types only"),
        (pickle.dumps({"device_traces": {1}}, protocol=2), "plain types only"),
        (b"\x80\x04X\x01\x00\x00\x00aQ.", "outside"),
        (b'{"device_traces": ' + b"[" * 100_000, "JSON: it is nested too deeply"),
        (b'{"device_traces": ' + b"9" * 5000 + b"}", "JSON"),
        (b"\x80\x04B\xff\xff\xff\xff.", "opcode 0x42"),
        (b"\x80\x04X\xff\xff\xff\xff.", "ends too early"),
        (b"\x80\x04\x95\xff\xff\xff\xff\x00\x00\x00\x00.", "ends too early"),
        (b"\x80\x04]r\xff\xff\xff\xff.", "index of the memo"),
        (b"\x80\x04]p4294967295\n.", "opcode 0x70"),
        (b"\x80\x04h\x00.", "not made"),
        (b"\x80\x04}" + b")" + b"\x85" * 1_000_000 + b"Ns.", "a key is neither"),
        (b"\x80\x04\x8b\x10\x00\x00\x00" + b"\xff" * 16 + b".", "64 bits"),
        (b"\x80\x04(]Na.", "not a snapshot|a dict"),
        (b"\x80\x04](e0.", "more values"),
        (b"\x80\x04Ne.", "a mark"),
        (b"\x80\x04N(Ne.", "no list"),
        (b"\x80\x04](N(Ne.", "no list"),
        (b"\x80\x06N.", "protocol"),
        (b"\x80\x04c\x1b[31m\nx\n.", r"wants \?\[31m\.x"),
    ],
)
def test_bad_files(tmp_path, content, reason):
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(SnapshotError, match=reason):
        load(path)


PLAIN_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner)
        | st.tuples(inner, inner, inner, inner)
        | st.dictionaries(st.text() | st.integers(-5, 1 << 40), inner)
    ),
    max_leaves=50,
)


@settings(max_examples=200, deadline=None)
@given(PLAIN_VALUES, st.integers(2, 5))
def test_plain_pickles_are_read_as_python_reads_them(value, protocol):
    data = pickle.dumps([value, value], protocol)
    assert _C.read_pickle(data) == [value, value]
    assert repr(_C.read_pickle(data)) == repr(pickle.loads(data))
    assert _C.read_pickle(pickletools.optimize(data)) == [value, value]


def test_a_pickle_keeps_what_is_shared():
    shared = ["x"]
    inside = [shared, shared]
    inside.append(inside)
    read = _C.read_pickle(pickle.dumps(inside))
    assert read[0] is read[1] and read[2] is read


def test_long_lists_in_a_pickle():
    value = {"a": list(range(5000)), "b": {str(i): -i for i in range(3000)}}
    for protocol in range(2, 6):
        assert _C.read_pickle(pickle.dumps(value, protocol)) == value


def test_mutated_snapshots_are_refused_or_read(root):
    """With 1 GiB of memory; SNAPSHOT_MUTANTS of them."""
    count = os.environ.get("SNAPSHOT_MUTANTS", "1500")
    finished = subprocess.run(
        [sys.executable, root / "tests/python/snapshot_fuzz.py", count, count],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr[-3000:]
    accepted = int(finished.stdout.split()[0])
    assert int(count) // 20 < accepted < int(count)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")


def test_the_sample_of_the_benchmarks(root):
    snapshot = load(root / "bench/alloc/traces/sample_torch.json")
    recording = from_torch(snapshot)
    assert recording.devices == ["cuda:0"] and min(recording.usage(0).live) >= 0
    assert recording_models.UNIT == 512 and recording.usage(0).start[0] > 0
