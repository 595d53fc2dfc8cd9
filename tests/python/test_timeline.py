"""Timelines as pictures and traces, and reports."""

import json
import sys
import types
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recording_models import RecordingModel, random_model, training_recording

from genesis._recording import (
    ALLOC,
    ANNOTATION_BEGIN,
    ANNOTATION_END,
    EVENT,
    FREE,
    MARK,
    Recording,
)
from genesis._report import Report, spans_of
from genesis._snapshot import load
from genesis._timeline import Timeline, _thin

MODELS = st.builds(random_model, st.integers(0, 1 << 32), st.integers(0, 300))


def chrome_trace(recording, path, *arguments):
    Timeline(recording).to_chrome_trace(path, *arguments)
    return json.loads(path.read_text())["traceEvents"]


# ---- timelines ----------------------------------------------------------------------------------


def test_events():
    recording = random_model(3, 100).recording()
    timeline = Timeline(recording)
    assert timeline.events == list(recording) and timeline.events is timeline.events
    assert len(timeline) == len(recording) and str(len(recording)) in repr(timeline)


@settings(max_examples=25, deadline=None)
@given(MODELS)
def test_counters_of_the_chrome_trace_are_the_bytes(tmp_path_factory, model):
    recording = model.recording()
    entries = chrome_trace(recording, tmp_path_factory.mktemp("trace") / "x.json")
    last = defaultdict(int)
    for entry in entries:
        if entry["ph"] == "C":
            assert entry["args"]["bytes"] >= 0 and entry["ts"] >= 0
            last[entry["pid"] - 2, entry["name"]] = entry["args"]["bytes"]
    for device in recording.device_indices():
        for name, value in zip(
            ("live", "requested", "pending", "reserved"), model.now[device], strict=True
        ):
            assert last[device, name] == value


def test_the_chrome_trace_has_annotations_marks_and_failures(tmp_path):
    model = random_model(3, 1500)
    recording = model.recording()
    entries = chrome_trace(recording, tmp_path / "x.json")
    kinds = [row[8] for row in model.rows]
    slices = [entry for entry in entries if entry["ph"] == "X"]
    assert len(slices) == kinds.count(ANNOTATION_BEGIN)
    assert {entry["name"] for entry in slices} == {"train", "forward", "backward"}
    assert all(entry["dur"] >= 0 for entry in slices)
    instants = [entry["name"] for entry in entries if entry["ph"] == "i"]
    assert instants.count('odd "name"\n') == kinds.count(MARK) > 0
    assert instants.count("out of memory") == kinds.count(7) > 0
    assert not [entry for entry in entries if entry["ph"] in "be"]
    names = {e["args"]["name"] for e in entries if e["name"] == "process_name"}
    assert names == {"threads", "cuda:0", "cpu"}


def test_the_chrome_trace_has_large_blocks_on_demand(tmp_path):
    recording = random_model(3, 500).recording()
    entries = chrome_trace(recording, tmp_path / "x.json", "64KiB")
    wanted = [one for one in recording.lifetimes() if one.size >= 64 << 10]
    begins = [entry for entry in entries if entry["ph"] == "b"]
    ends = [entry for entry in entries if entry["ph"] == "e"]
    assert len(begins) == len(ends) == len(wanted) > 0
    assert all(b["ts"] <= e["ts"] for b, e in zip(begins, ends, strict=True))


def test_times_keep_their_nanoseconds(tmp_path):
    data = EVENT.pack(1 << 60, 64, 1, 1, 0, 0, 0, 0, ALLOC, 0, 0)
    data += EVENT.pack((1 << 60) + 1_234_567_001, 64, 1, 1, 0, 0, 0, 0, FREE, 0, 1)
    path = tmp_path / "x.json"
    Timeline(Recording(data, devices=["cpu"])).to_chrome_trace(path)
    assert '"ts":1234567.001' in path.read_text()


def test_a_snapshot(tmp_path):
    recording = random_model(3, 100).recording()
    Timeline(recording).to_snapshot(tmp_path / "x.json")
    assert len(load(tmp_path / "x.json")["device_traces"]) == 2


def test_a_page(tmp_path, monkeypatch):
    """Only that the page's writer gets the recording; the page has tests of its own."""
    page = types.ModuleType("genesis._timeline_page")
    calls = []
    page.write_page = lambda recording, path: calls.append((recording, path))
    monkeypatch.setitem(sys.modules, "genesis._timeline_page", page)
    recording = Recording()
    Timeline(recording).to_html(tmp_path / "x.html")
    assert calls == [(recording, tmp_path / "x.html")]


def test_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "x.png"
    for recording in (training_recording(), random_model(3, 500).recording(), Recording()):
        assert Timeline(recording).plot(path) is None
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    figure = Timeline(random_model(3, 500).recording()).plot()
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["cuda:0", "cpu", ""]


def test_matplotlib_is_not_needed_for_the_rest(fresh):
    fresh("""
import sys
sys.modules["matplotlib"] = sys.modules["matplotlib.figure"] = None
from genesis._timeline import Timeline
from genesis._recording import Recording
try:
    Timeline(Recording()).plot("x.png")
except ImportError as error:
    assert "pip install matplotlib" in str(error), error
else:
    raise AssertionError("no error")
""")


def test_thinning_keeps_the_peaks():
    times = list(range(100_000))
    values = [time % 977 for time in times]
    values[50_001], values[70_001] = 10_000, -5
    thin_times, thin_values = _thin(times, values)
    assert len(thin_times) == len(thin_values) <= 6004
    assert max(thin_values) == 10_000 and min(thin_values) == -5
    assert thin_times == sorted(thin_times) and thin_times[-1] == times[-1]
    assert _thin([1, 2], [3, 4]) == ([1, 2], [3, 4])


# ---- reports ------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(MODELS)
def test_a_report_agrees_with_the_model(model):
    recording = model.recording()
    report = Report(recording)
    kinds = [row[8] for row in model.rows]
    assert report.allocations == kinds.count(ALLOC) and report.events == len(kinds)
    assert report.allocated == sum(row[3] for row in model.rows if row[8] == ALLOC)
    for peak in report.peaks:
        device = model.devices.index(peak.device)
        mine = [a[0] for a, row in zip(model.account, model.rows, strict=True) if row[9] == device]
        assert peak.live == max(mine, default=0)
        assert sum(holder.bytes for holder in peak.holders) == peak.live
    assert sum(holder.bytes for holder in report.left) == sum(now[0] for now in model.now)
    assert len(report.out_of_memory) == kinds.count(7)
    assert report.summary().startswith(f"{len(kinds)} events")


def test_a_report_of_known_events():
    model = RecordingModel(1, ("cuda:0",))
    site = [0, 1, 2, 1]
    model.event(ANNOTATION_BEGIN, 0, name=1)
    model.stack = [1]
    for number, size in ((1, 1000), (2, 3000), (3, 5000)):
        if number == 2:
            model.stack = [1, 2]
            model.event(ANNOTATION_BEGIN, 0, name=2)
        model.event(ALLOC, 0, 512 * number, size, size, 0, site[number])
    model.event(FREE, 0, 1024, 3000, 3000)
    model.event(ANNOTATION_END, 0, name=2)
    model.stack = [1]
    model.event(FREE, 0, 1536, 5000, 5000)
    model.event(ANNOTATION_END, 0, name=1)
    recording = model.recording()
    base = {"segment_id": 0, "segment_address": 512, "segment_bytes": 0, "device": 0, "site": 1}
    recording.blocks = [
        {"address": 512, "nbytes": 1000, "requested": 1000, "state": "live", "stream_id": 0} | base
    ]
    report = Report(recording)
    (peak,) = report.peaks
    assert (peak.live, peak.annotation) == (9000, "train/forward")
    assert [(one.location, one.bytes, one.count) for one in peak.holders] == [
        ("model_1.py:10 (layer1)", 6000, 2),
        ("model_2.py:20 (layer2)", 3000, 1),
    ]
    train, forward = report.annotations
    assert (train.name, train.spans, train.allocations, train.allocated) == ("train", 1, 3, 9000)
    assert (train.growth, train.stayed) == (9000, 1000)
    assert (forward.allocated, forward.growth, forward.stayed) == (8000, 8000, 5000)
    assert [one.bytes for one in report.left] == [1000]
    assert report.largest[0].size == 5000 and report.peak is peak
    assert report.turnover == 1.0
    text = report.summary()
    for part in ("under train/forward", "model_1.py:10 (layer1)", "live at the end"):
        assert part in text
    assert str(report) == text and "lost" not in text


def test_lost_events_are_mentioned():
    assert "lost: 7 older events" in Report(Recording(lost=7)).summary()


def test_a_report_of_nothing():
    report = Report(Recording())
    assert report.peak is None and report.turnover == 0.0 and report.rate == 0.0
    assert report.summary().startswith("0 events")


def test_spans_whose_ends_are_missing():
    def event(kind, name, thread=0):
        return EVENT.pack(0, 0, 0, 0, 0, 0, name, thread, kind, 0, 0)

    begin, end = ANNOTATION_BEGIN, ANNOTATION_END
    data = event(end, 3) + event(begin, 1) + event(begin, 2) + event(end, 1)
    data += event(begin, 1, 7) + event(begin, 4)
    spans = spans_of(Recording(data, annotations=["", "a", "a/b", "old", "open"]))
    assert [(one.annotation, one.thread, one.begin, one.end) for one in spans] == [
        (3, 0, 0, 0),
        (1, 0, 1, 3),
        (2, 0, 2, 3),
        (1, 7, 4, 5),
        (4, 0, 5, 5),
    ]
