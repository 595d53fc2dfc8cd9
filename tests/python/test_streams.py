"""Streams and events, on the CPU device, whose rules are the GPU's."""

import gc
import re
import threading

import pytest

import genesis
from genesis.cuda import Event, Stream


@pytest.fixture
def stream():
    return Stream(device="cpu")


def test_a_stream(stream):
    assert stream.device == "cpu" and stream.cuda_stream == 0
    assert stream == stream and stream != Stream(device="cpu") and stream != 1
    assert hash(stream) == hash(stream)
    assert re.fullmatch(r"<genesis.cuda.Stream device=cpu cuda_stream=0x[0-9a-f]+>", repr(stream))
    assert stream.query() is True and stream.synchronize() is None and not stream.is_capturing
    assert isinstance(stream.priority, int)


def test_ids_are_never_reused():
    seen = set()
    for _ in range(1000):
        seen.add(Stream(device="cpu").stream_id)
    assert len(seen) == 1000


def test_events(stream):
    event = Event(enable_timing=True)
    assert event.query() is True and event.cuda_event == 0
    event.wait(stream)
    event.synchronize()
    event.record(stream)
    event.synchronize()
    other = stream.record_event(Event(enable_timing=True))
    other.synchronize()
    assert event.elapsed_time(other) >= 0
    stream.wait_event(other)
    stream.wait_event(Event())
    Stream(device="cpu").wait_stream(stream)
    assert isinstance(stream.record_event(), Event)


def test_event_errors(stream):
    recorded = stream.record_event()
    recorded.synchronize()
    with pytest.raises(ValueError, match="recorded"):
        recorded.elapsed_time(Event())
    with pytest.raises(ValueError, match="enable_timing=True"):
        recorded.elapsed_time(stream.record_event())
    for call in (recorded.elapsed_time, stream.wait_event, stream.record_event, recorded.record):
        with pytest.raises(TypeError):
            call("event")
    with pytest.raises(TypeError):
        genesis.cuda.set_stream(None)


def test_the_current_stream(stream):
    default = genesis.cuda.default_stream("cpu")
    assert genesis.cuda.current_stream("cpu") == default
    with genesis.cuda.stream(stream) as inside:
        assert inside is stream and genesis.cuda.current_stream("cpu") == stream
        other = Stream(device="cpu")
        context = genesis.cuda.stream(other)
        with context, context:
            assert genesis.cuda.current_stream("cpu") == other
        assert genesis.cuda.current_stream("cpu") == stream
        seen = []
        thread = threading.Thread(target=lambda: seen.append(genesis.cuda.current_stream("cpu")))
        thread.start()
        thread.join()
        assert seen == [default]
    assert genesis.cuda.current_stream("cpu") == default
    with pytest.raises(KeyError), genesis.cuda.stream(stream):
        raise KeyError
    assert genesis.cuda.current_stream("cpu") == default


def test_a_current_stream_outlives_its_object():
    stream = Stream(device="cpu")
    stream_id = stream.stream_id
    genesis.cuda.set_stream(stream)
    del stream
    gc.collect()
    assert genesis.cuda.current_stream("cpu").stream_id == stream_id
    genesis.cuda.set_stream(genesis.cuda.default_stream("cpu"))


def test_no_foreign_streams_on_the_cpu():
    assert genesis.cuda.ExternalStream(0, "cpu") == genesis.cuda.default_stream("cpu")
    with pytest.raises(RuntimeError):
        genesis.cuda.ExternalStream(1234, "cpu")
    with pytest.raises(ValueError):
        genesis.cuda.ExternalStream(-1, "cpu")
