"""A recording gives exact bytes and blocks of every moment, from its end backwards."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recording_models import random_model

from genesis import _serialization
from genesis._recording import (
    ALLOC,
    EVENT,
    FREE,
    KIND_NAMES,
    Frame,
    Recording,
    blocks_from_events,
)

SEEDS = st.integers(0, 1 << 32)
STEPS = st.integers(0, 400)


def test_the_layout_of_an_event():
    assert EVENT.size == 56 and len(KIND_NAMES) == 12
    values = (1 << 63, 2, 3, 4, 5, 6, 7, 8, ALLOC, 0, 11)
    recording = Recording(EVENT.pack(*values) * 2)
    fields = ("time_ns", "address", "size", "requested", "stream", "site", "annotation")
    for name, value in zip((*fields, "thread", "kind", "device", "number"), values, strict=True):
        assert recording.column(name).tolist() == [value, value], name


@settings(max_examples=60, deadline=None)
@given(SEEDS, STEPS)
def test_bytes_equal_the_model_after_every_event(seed, steps):
    model = random_model(seed, steps)
    recording = model.recording()
    for device in range(len(model.devices)):
        usage = recording.usage(device)
        assert usage.start == (0, 0, 0, 0)
        assert usage.event == [i for i, row in enumerate(model.rows) if row[9] == device]
        columns = (usage.live, usage.requested, usage.pending, usage.reserved)
        assert list(zip(*columns, strict=True)) == [model.account[i] for i in usage.event]
        assert usage.time_ns == [model.rows[i][0] for i in usage.event]


@settings(max_examples=40, deadline=None)
@given(SEEDS, STEPS, st.floats(0, 1))
def test_lost_events_leave_the_rest_exact(seed, steps, part):
    model = random_model(seed, steps)
    lost = int(part * len(model.rows))
    recording = model.recording(lost)
    assert len(recording) == len(model.rows) - lost
    for device in range(len(model.devices)):
        usage = recording.usage(device)
        columns = (usage.live, usage.requested, usage.pending, usage.reserved)
        expected = [model.account[lost + i] for i in usage.event]
        assert list(zip(*columns, strict=True)) == expected


@settings(max_examples=40, deadline=None)
@given(SEEDS, STEPS, st.floats(0, 1))
def test_blocks_of_a_moment_add_up_to_its_bytes(seed, steps, part):
    model = random_model(seed, steps)
    recording = model.recording(int(part * len(model.rows)))
    for device in range(len(model.devices)):
        usage = recording.usage(device)
        for row in range(0, len(usage.event), max(1, len(usage.event) // 7)):
            blocks = recording.live_at(usage.event[row], device)
            assert sum(one.size for one in blocks) == usage.live[row]
            assert sum(one.requested for one in blocks) == usage.requested[row]
            assert len({one.address for one in blocks}) == len(blocks)


@settings(max_examples=30, deadline=None)
@given(SEEDS, STEPS)
def test_all_devices_together(seed, steps):
    model = random_model(seed, steps, ("cuda:0", "cuda:1", "cpu"))
    recording = model.recording()
    live = [0] * 3
    for (*_, device, _), account, total in zip(
        model.rows, model.account, recording.total_live(), strict=True
    ):
        live[device] = account[0]
        assert total == sum(live)


@settings(max_examples=40, deadline=None)
@given(SEEDS, STEPS)
def test_the_end_follows_from_the_events_where_all_were_seen(seed, steps):
    model = random_model(seed, steps)
    recording = model.recording()
    devices = set(range(len(model.devices)))

    def key(block):
        names = ("device", "address", "nbytes", "requested", "state", "segment_address", "site")
        return tuple(block[name] for name in names)

    found = blocks_from_events(recording.data, devices)
    assert sorted(map(key, found)) == sorted(map(key, recording.blocks))


def test_lifetimes():
    def event(time, address, kind, site=0, annotation=0):
        return EVENT.pack(time, address, 512, 500, 3, site, annotation, 2, kind, 0, 0)

    data = event(1, 100, FREE) + event(2, 200, ALLOC, 1, 1) + event(5, 200, FREE)
    data += event(6, 300, ALLOC, 2)
    base = {"segment_id": 0, "segment_address": 0, "segment_bytes": 0, "device": 0, "site": 9}
    block = {"nbytes": 512, "requested": 500, "state": "live", "stream_id": 3, **base}
    blocks = [{**block, "address": 300}, {**block, "address": 400}]
    recording = Recording(data, devices=["cuda:0"], blocks=blocks)
    older, short, kept, oldest = recording.lifetimes()
    assert (older.begin, older.end, older.site) == (None, 1, 0)
    assert (short.begin, short.end, short.site, short.annotation, short.thread) == (2, 5, 1, 1, 2)
    assert (kept.begin, kept.end, kept.site) == (6, None, 2)
    assert (oldest.begin, oldest.end, oldest.site, oldest.address) == (None, None, 9, 400)
    assert recording.usage(0).start[0] == 1024


def test_a_lost_free_ends_a_block_when_its_address_comes_again():
    def alloc(time):
        return EVENT.pack(time, 100, 512, 500, 0, 0, 0, 0, ALLOC, 0, 0)

    recording = Recording(alloc(1) + alloc(9), devices=["cuda:0"], lost=1)
    assert [(one.begin, one.end) for one in recording.lifetimes()] == [(1, 9), (9, 9)]


def test_events_have_names():
    model = random_model(4, 200)
    recording = model.recording()
    events = list(recording)
    assert len(events) == len(recording) == len(model.rows)
    assert events[7] == recording[7] and events[-1] == recording[-1]
    for event, row in zip(events, model.rows, strict=True):
        assert event.kind == KIND_NAMES[row[8]] and event.device == model.devices[row[9]]
        assert event.frames == model.sites[row[5]]
        assert event.annotation == model.annotations[row[6]]
    with pytest.raises(IndexError):
        recording[len(recording)]


def test_numbers_without_a_table_do_no_harm():
    recording = Recording(EVENT.pack(1, 2, 3, 4, 5, 600, 700, 8, 99, 200, 0))
    (event,) = recording
    assert (event.kind, event.device, event.frames) == ("unknown", "device 200", ())
    assert recording.usage(200).live == [0] and recording.lifetimes() == []


def test_nothing():
    recording = Recording()
    assert list(recording) == [] and recording.lifetimes() == [] and recording.total_live() == []
    assert recording.usage(0).start == (0, 0, 0, 0) and recording.span_ns() == (0, 0)
    with pytest.raises(ValueError, match="56 bytes each"):
        Recording(b"short")


def test_a_location_is_the_innermost_line_of_python():
    frames = (Frame("malloc", "/lib/x.so", 0), Frame("f", "a.py", 3), Frame("g", "b.py", 4))
    recording = Recording(sites=[(), frames, frames[:1]])
    assert recording.location(1) == "a.py:3 (f)"
    assert recording.location(2) == "/lib/x.so (malloc)"
    assert recording.location(0) == recording.location(77) == "not known"
    own = Frame("load", _serialization.__file__, 7)
    cell, inner = Frame("<module>", "<stdin>", 1), Frame("allocate", "/lib/libgenesis.so+0x7", 0)
    recording = Recording(sites=[(), (inner, own, frames[1]), (inner, own, cell), (inner, own)])
    assert recording.location(1) == "a.py:3 (f)" and recording.location(2) == "<stdin>:1 (<module>)"
    assert recording.location(3) == f"{own.filename}:7 (load)"  # nobody else is known


def test_importing_genesis_loads_none_of_it(fresh):
    fresh("""
import sys, genesis
for name in ("_recording", "_snapshot", "_timeline", "_report", "_replay", "_memory_cli"):
    assert f"genesis.{name}" not in sys.modules, name
import genesis._timeline, genesis._replay, genesis._report, genesis._memory_cli
assert "numpy" not in sys.modules and "matplotlib" not in sys.modules
""")
