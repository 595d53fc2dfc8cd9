"""genesis.cuda on a stand-in for the driver: two devices of 64 MiB, no GPU needed."""

import pytest

PRELUDE = """
import genesis, os, sys
from genesis import cuda
from genesis.ndarray.cuda_memory_manager import *
def raises(kind, text, call, *arguments):
    try:
        call(*arguments)
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"{call} raised nothing")
"""


@pytest.fixture
def fake(fresh, fake_driver):
    def run(code, check=True, **environment):
        return fresh(PRELUDE + code, check, GENESIS_CUDA_DRIVER=fake_driver, **environment)

    return run


def test_devices(fake):
    fake("""
assert cuda.is_available() and cuda.device_count() == 2
assert cuda.current_device() == 0
cuda.set_device(1)
assert cuda.current_device() == 1 and genesis.device("cuda") == "cuda:1"
with cuda.device(0):
    assert cuda.current_device() == 0
    with cuda.device("cuda:1"):
        assert cuda.current_device() == 1
    assert cuda.current_device() == 0
assert cuda.current_device() == 1
raises(RuntimeError, "cuda:2", cuda.set_device, 2)
raises(ValueError, "cuda:2", cuda.set_device, "cuda:2")
raises(ValueError, "-1", cuda.set_device, -1)
raises(ValueError, "CUDA device", cuda.set_device, "cpu")
raises(ValueError, "CUDA device", cuda.device, "cpu")
raises(TypeError, "", cuda.set_device, 1.5)
assert cuda.current_device() == 1
""")


def test_properties(fake):
    fake("""
properties = cuda.get_device_properties(1)
assert cuda.get_device_name(1) == properties.name != ""
assert cuda.get_device_capability() == (properties.major, properties.minor)
assert properties.total_memory == 64 << 20 and properties.multi_processor_count > 0
assert cuda.get_device_properties("cuda:0")._fields == properties._fields
raises(RuntimeError, "cuda:7", cuda.get_device_properties, 7)
cuda.synchronize(); cuda.synchronize("cuda:1"); cuda.synchronize(device=0)
""")


def test_memory_of_two_devices(fake):
    fake("""
first = get_memory_manager()
cuda.set_device(1)
second = get_memory_manager()
assert first.device == "cuda:0" and second.device == "cuda:1" == genesis.memory_manager.device
address = allocate_memory(1 << 20)
assert cuda.memory_allocated() == cuda.memory_allocated(1) == 1 << 20
assert cuda.memory_allocated(0) == 0 and cuda.memory_reserved() >= 1 << 20
raises(ValueError, "cuda:0", first.free_memory, address)
free_memory(address)
assert cuda.memory_allocated() == 0 and cuda.max_memory_allocated() == 1 << 20
raises(genesis.OutOfMemoryError, "out of memory", allocate_memory, 65 << 20)
assert cuda.memory_stats()["num_ooms"] == 1
cuda.empty_cache()
assert cuda.memory_stats()["free"] == 64 << 20
""")


def test_streams(fake):
    fake("""
stream = cuda.Stream()
assert stream.cuda_stream != 0 and stream.device == "cuda:0"
assert cuda.ExternalStream(stream.cuda_stream) == stream
assert cuda.ExternalStream(0) == cuda.default_stream() == cuda.current_stream()
assert cuda.default_stream() != cuda.default_stream(1)
raises(ValueError, "", cuda.ExternalStream, -1)
with cuda.stream() as fresh_one:
    assert cuda.current_stream() == fresh_one != cuda.default_stream()
with cuda.stream(cuda.Stream(1)):
    assert cuda.current_device() == 1
assert cuda.current_device() == 0
start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
start.record(); end.record(stream); end.synchronize()
assert start.cuda_event and start.elapsed_time(end) >= 0
stream.wait_event(start); stream.wait_stream(cuda.default_stream(1))
raises(ValueError, "two devices", start.record, cuda.default_stream(1))
""")


def test_after_fork(fake):
    fake("""
address = allocate_memory(1000)
stream, event = cuda.Stream(), cuda.Event()
event.record(stream)
child = os.fork()
if child == 0:
    status = 1
    try:
        assert cuda.is_available() is False
        raises(RuntimeError, "forked", cuda.set_device, 0)
        raises(RuntimeError, "forked", cuda.Stream)
        raises(RuntimeError, "forked", stream.synchronize)
        manager = CUDAMemoryManager("cpu")
        manager.free_memory(manager.allocate_memory(100))
        del stream, event
        status = 0
    except BaseException as error:
        print(repr(error), file=sys.stderr)
    finally:
        os._exit(status)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
free_memory(address)
""")


def test_inherited_memory_is_freed_by_doing_nothing(fake):
    fake("""
manager = get_memory_manager()
address = manager.allocate_memory(1000)
child = os.fork()
if child == 0:
    status = 1
    try:
        manager.free_memory(address, 1000)
        raises(RuntimeError, "forked", manager.allocate_memory, 1)
        status = 0
    except BaseException as error:
        print(repr(error), file=sys.stderr)
    finally:
        os._exit(status)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
manager.free_memory(address, 1000)
assert cuda.memory_allocated() == 0
""")


def test_a_child_may_start_cuda_itself(fake):
    fake("""
child = os.fork()
if child == 0:
    os._exit(0 if cuda.is_available() and allocate_memory(10) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert cuda.is_available()
""")


def test_exit_with_everything_alive(fake):
    """Objects in a module are destroyed late, some of them after the driver is out of reach."""
    fake("""
kept = [cuda.Stream(), cuda.Event(), allocate_memory(100), get_memory_manager()]
kept[1].record(kept[0])
cuda.set_stream(kept[0])
sys.modules["kept"] = kept
import atexit
atexit.register(lambda: free_memory(kept[2]))
""")


def test_the_memory_fraction(fake):
    finished = fake(
        """
allocate_memory(16 << 20)
raises(genesis.OutOfMemoryError, "GENESIS_CUDA_MEMORY_FRACTION", allocate_memory, (16 << 20) + 1)
allocate_memory(16 << 20)
""",
        GENESIS_CUDA_MEMORY_FRACTION="0.5",
    )
    assert not [line for line in finished.stderr.splitlines() if "leak:" not in line]


def test_info(fresh, fake_driver):
    code = "from genesis.__main__ import info_lines; print('\\n'.join(info_lines()))"
    text = fresh(code, GENESIS_CUDA_DRIVER=fake_driver, GENESIS_CUDA_ZERO="on").stdout
    for word in ("cpu:", "cuda:0:", "cuda:1:", "CUDA driver: 13.0", "NVRTC", "cuBLASLt"):
        assert word in text
    assert "GENESIS_CUDA_ZERO=on" in text and "policy" in text


def test_info_says_what_is_lost(fresh):
    code = "from genesis.__main__ import info_lines; print('\\n'.join(info_lines()))"
    options = {"GENESIS_CUDA_DRIVER": "/nowhere/libcuda.so.1", "GENESIS_KERNEL_ARCHIVE": "off"}
    text = fresh(code, **options).stdout
    for word in (
        "without it, there is no GPU",
        "kernel archive: not used: GENESIS_KERNEL_ARCHIVE=off",
        "without it, each kernel is compiled at its first use",
    ):
        assert word in text


def test_a_child_is_not_sent_to_the_cpu(fake):
    """In a forked child the functions of the module fail or do nothing; they do not use the CPU."""
    fake("""
address = allocate_memory(1000)
child = os.fork()
if child == 0:
    status = 1
    try:
        free_memory(address)
        raises(RuntimeError, "forked", allocate_memory, 10)
        raises(RuntimeError, "forked", cuda.memory_allocated)
        raises(RuntimeError, "forked", cuda.memory_stats)
        try:
            with cuda.device(-1):
                raise KeyError("not hidden")
        except KeyError:
            status = 0
    except BaseException as error:
        print(repr(error), file=sys.stderr)
    finally:
        os._exit(status)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
free_memory(address)
""")


def test_memory_is_freed_where_it_is(fake):
    fake("""
address = allocate_memory(1000)
cuda.set_device(1)
assert get_memory_manager() is get_memory_manager("cuda:1") is not get_memory_manager(0)
free_memory(address)
assert cuda.memory_allocated(0) == 0
""")


def test_pytorch_spellings(fake):
    fake("""
stream, event = cuda.Stream(device=1), cuda.Event(interprocess=False)
event.record(stream=stream)
event.wait(stream=stream)
stream.wait_event(event=event); stream.wait_stream(stream=cuda.default_stream(1))
assert stream.record_event(event=event) is event and event.device == "cuda:1"
timed = [cuda.Event(enable_timing=True) for _ in range(2)]
for one in timed:
    one.record(stream)
timed[1].synchronize()
assert timed[0].elapsed_time(end_event=timed[1]) >= 0
with stream as entered:
    assert entered is stream and cuda.current_stream() == stream and cuda.current_device() == 1
assert cuda.current_device() == 0
with cuda.stream(None) as nothing:
    assert nothing is None and cuda.current_stream() == cuda.default_stream()
with cuda.device(-1), cuda.device(None):
    assert cuda.current_device() == 0
raises(ValueError, "processes", cuda.Event, False, False, True)
raises(TypeError, "", event.record, "x")
""")


def test_threads_share_a_context_manager(fake):
    fake("""
import threading
shared, barrier, seen = cuda.stream(cuda.Stream()), threading.Barrier(2), []
def work():
    own = cuda.Stream()
    cuda.set_stream(own)
    with shared:
        barrier.wait()
        barrier.wait()
    seen.append(cuda.current_stream() == own)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert seen == [True, True]
""")


def test_importing_everything_starts_nothing(fresh, fake_driver):
    code = """
from genesis import *
assert "libgenesis_fake" not in open("/proc/self/maps").read()
"""
    fresh(code, GENESIS_CUDA_DRIVER=fake_driver)


def test_info_on_a_machine_with_trouble(fresh, fake_driver, tmp_path):
    """A value that is no text, and libraries in the current directory, which must not be loaded."""
    import os
    import subprocess
    import sys

    wheel = tmp_path / "nvidia" / "cu13" / "lib"
    wheel.mkdir(parents=True)
    (wheel / "libnvrtc.so.13").write_text("not a library")
    environment = os.environb | {
        b"GENESIS_CUDA_DRIVER": os.fsencode(fake_driver),
        b"GENESIS_KERNEL_CACHE_DIR": b"/tmp/\xff",
    }
    finished = subprocess.run(
        [sys.executable, "-m", "genesis", "info"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "cuda:1:" in finished.stdout and str(tmp_path) not in finished.stdout
