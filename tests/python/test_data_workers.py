"""DataLoader with worker processes: batches, errors, deaths, seeds, and what is left afterwards."""

from __future__ import annotations

import errno
import gc
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest

import genesis
from genesis.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info


class Calls(Dataset):
    """What a function says of each number."""

    def __init__(self, function, count=8):
        self.function, self.count = function, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.function(index)


def calls(function, count=8, **options):
    options = {"batch_size": None, "num_workers": 2, "collate_fn": lambda one: one} | options
    return DataLoader(Calls(function, count), **options)


def wait_for(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def mappings() -> int:
    """How many batches of workers this process has in its memory."""
    return Path("/proc/self/maps").read_text().count("genesis-batch")


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture(autouse=True)
def nothing_is_left():
    """No test leaves a process, a descriptor or shared memory."""
    gc.collect()
    before = descriptors(), mappings(), sorted(os.listdir("/dev/shm"))  # noqa: PTH208
    yield
    gc.collect()
    after = descriptors(), mappings(), sorted(os.listdir("/dev/shm"))  # noqa: PTH208
    assert after == before


# ---- batches ----


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_same_batches_in_the_same_order(workers):
    rows = genesis.rand(37, 3)
    dataset = TensorDataset(genesis.arange(37), rows, rows.bfloat16(), rows > 0.5)
    expected = list(DataLoader(dataset, 5))
    found = list(DataLoader(dataset, 5, num_workers=workers))
    assert len(found) == len(expected) == 8
    for one, other in zip(found, expected, strict=True):
        assert type(one) is list
        for x, y in zip(one, other, strict=True):
            assert x.dtype == y.dtype and x.shape == y.shape and x.tolist() == y.tolist()


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_ways_to_start_workers(fresh, method):
    fresh(
        f"""
import genesis
from genesis.utils.data import DataLoader, Dataset, get_worker_info
class Squares(Dataset):
    def __init__(self):
        self.rows = genesis.arange(6) * 2
    def __len__(self):
        return 6
    def __getitem__(self, index):
        return self.rows[index], get_worker_info().id
if __name__ == "__main__":
    loader = DataLoader(Squares(), 2, num_workers=2, multiprocessing_context="{method}")
    assert loader.multiprocessing_context.get_start_method() == "{method}"
    found = [(rows.tolist(), ids.tolist()) for rows, ids in loader]
    assert found == [([0, 2], [0, 0]), ([4, 6], [1, 1]), ([8, 10], [0, 0])], found
"""
    )


def test_values_that_are_no_tensors():
    """Long ones, too: those do not fit into a packet."""
    text, array = "x" * 300_000, numpy.arange(60_000.0).reshape(300, 200)
    kept = numpy.arange(3)
    kept.flags.writeable = False

    def sample(index):
        return {
            "index": index,
            "text": text,
            "array": array + index,
            "fortran": numpy.asfortranarray(array),
            "kept": kept,
            "objects": numpy.array([{"a": 1}, None], dtype=object),
            "tensors": [genesis.ones(2), genesis.zeros(0, 3), genesis.tensor(7)],
            "leaf": genesis.ones(1).requires_grad_(),
            "strided": genesis.arange(6).reshape(2, 3).T,
            "same": [array] * 2,
        }

    for index, found in enumerate(calls(sample, 5)):
        assert found["index"] == index and found["text"] == text
        assert (found["array"] == array + index).all() and found["array"].flags.writeable
        assert (found["fortran"] == array).all() and found["fortran"].flags.f_contiguous
        assert found["kept"].tolist() == [0, 1, 2] and not found["kept"].flags.writeable
        assert found["objects"].tolist() == [{"a": 1}, None]
        assert [one.shape for one in found["tensors"]] == [(2,), (0, 3), ()]
        assert found["leaf"].requires_grad and found["leaf"].is_leaf
        assert found["strided"].tolist() == [[0, 3], [1, 4], [2, 5]]
        assert found["same"][0] is found["same"][1]


def test_long_lists_of_numbers():
    """Tasks that a socket has no room for wait in the program."""
    loader = DataLoader(range(400_000), 50_000, num_workers=2, prefetch_factor=4)
    assert [batch[-1].item() for batch in loader] == [50_000 * i - 1 for i in range(1, 9)]
    names = DataLoader(
        Calls(lambda key: key, 3), sampler=["a", (1, 2), None], batch_size=None, num_workers=1
    )
    assert list(names) == ["a", [1, 2], None]  # as default_convert() makes it


def test_tensors_are_views_of_shared_memory():
    """Without a copy, each with a storage of its own, and as long as one of them lives."""
    before = mappings()
    dataset = TensorDataset(genesis.arange(8), genesis.zeros(8, 3000))
    ((numbers, rows),) = list(DataLoader(dataset, 8, num_workers=1))
    assert mappings() == before + 1
    result = rows * genesis.ones(3000).requires_grad_()
    numbers += 1  # is no write to `rows`, which the backward pass needs
    assert numbers.tolist() == list(range(1, 9))
    result.sum().backward()
    part = rows[2:3]
    del numbers, rows, result
    assert mappings() == before + 1 and part.sum().item() == 0
    part += 1
    assert part.sum().item() == 3000
    del part
    assert mappings() == before


def pinned_down(rows, count):
    """Batches of a loader whose memory is filled again as soon as it is free."""
    dataset = TensorDataset(genesis.arange(float(count)).reshape(count, 1).expand(count, rows))
    return DataLoader(dataset, 1, num_workers=1)


def test_memory_is_used_again_when_its_tensors_have_gone():
    kept, total = {}, 0
    for number, (rows,) in enumerate(pinned_down(20_000, 60)):
        assert set(rows[0, ::5000].tolist()) == {number}
        total += int(rows[0, -1].item())
        if number % 7 == 0:
            kept[number] = rows[0, 10:20]  # a view is enough
        if number == 30:
            kept.pop(7)
    assert total == sum(range(60))
    assert all(set(rows.tolist()) == {number} for number, rows in kept.items())


def test_a_child_keeps_what_it_had_at_the_fork():
    """Its tensors are not filled again, even if the parent's have gone."""
    iterator = iter(pinned_down(20_000, 40))
    (rows,) = next(iterator)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(read, 1)
        os._exit(0 if set(rows[0, ::100].tolist()) == {0.0} else 1)
    del rows
    assert [one[0, -1].item() for (one,) in iterator] == list(range(1, 40))
    os.write(write, b"x")
    assert os.waitpid(child, 0)[1] == 0
    os.close(read)
    os.close(write)


def test_memory_that_a_fork_has_seen_goes_back():
    """It is neither filled again, nor kept by the worker."""
    dataset = TensorDataset(genesis.arange(200.0).reshape(200, 1).expand(200, 30_000))
    iterator = iter(DataLoader(dataset, 1, num_workers=1))
    (pid,) = [one.pid for one in iterator._crew.pool.processes]
    for number, (rows,) in enumerate(iterator):
        assert rows[0, -1].item() == number
        if number % 10 == 0:
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
        if number == 190:
            assert Path(f"/proc/{pid}/maps").read_text().count("genesis-batch") < 10


def test_more_batches_than_a_process_has_mappings(monkeypatch):
    """What cannot be mapped is copied."""

    def full(file, parts, is_private, has_owner):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr("genesis._C._shared_tensors", full)
    dataset = TensorDataset(genesis.arange(8000), genesis.zeros(8000, dtype=genesis.bfloat16))
    found = list(DataLoader(dataset, 4000, num_workers=1))
    assert [one[-1].item() for one, _ in found] == [3999, 7999] and mappings() == 0
    assert found[0][1].dtype == "bfloat16" and found[0][1].sum().item() == 0


def test_memory_that_cannot_be_shared(tmp_path):
    """What a file does not have is refused before anybody reads it."""
    share, float32 = genesis._C._shared_tensors, genesis.float32
    path = tmp_path / "f"
    path.write_bytes(bytes(64))
    with path.open("r+b") as file:
        number = file.fileno()
        assert share(number, ((float32, (16,), 0), (float32, (), 60)))[0].sum().item() == 0
        assert share(number, ()) == []
        for part in (
            *((float32, (17,), 0), (float32, (1,), 64), (float32, (1,), 2), (float32, (1,), -4)),
            *((float32, (1 << 62, 1 << 62), 0), (float32, (1,), 1 << 62), (float32, (-1,), 0)),
        ):
            with pytest.raises((ValueError, OverflowError)):
                share(number, (part,))
        for part in (
            3,
            (float32, (1,)),
            ("float99", (1,), 0),
            (float32, 3, 0),
            (float32, (1,), "0"),
        ):
            with pytest.raises((TypeError, ValueError)):
                share(number, (part,))
    with pytest.raises(OSError, match="descriptor"):
        share(number, ())
    read, write = os.pipe()
    with pytest.raises(ValueError, match="no memory to share"):
        share(read, ((float32, (1,), 0),))
    os.close(read)
    os.close(write)
    path.write_bytes(b"")
    with path.open("rb") as file, pytest.raises(ValueError, match="no memory to share"):
        share(file.fileno(), ((float32, (0,), 0),))


def test_scalars_of_every_dtype():
    names = ("bool", "uint8", "uint64", "int16", "float16", "bfloat16", "float64")

    def sample(index):
        return [genesis.tensor(index).to(getattr(genesis, name)) for name in names]

    for index, found in enumerate(calls(sample, 2)):
        assert [one.dtype.name for one in found] == list(names)
        assert [one.item() for one in found] == [index] * len(names)


def test_gradients_and_memory_of_batches():
    """Operations on them are as on any tensor."""
    weight = genesis.ones(3).requires_grad_()
    for (rows,) in DataLoader(TensorDataset(genesis.ones(4, 3)), 2, num_workers=1):
        ((rows * weight).sum() * 2).backward()
    assert weight.grad.tolist() == [8, 8, 8]


# ---- epochs ----


def test_several_epochs_and_iterators():
    loader = DataLoader(range(20), 4, num_workers=2)
    expected = [list(range(i, i + 4)) for i in range(0, 20, 4)]
    for _ in range(2):
        assert [batch.tolist() for batch in loader] == expected
    for one, other in zip(loader, loader, strict=True):  # at the same time
        assert one.tolist() == other.tolist()
    ended = iter(loader)
    assert len(list(ended)) == 5
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(ended)
    assert list(DataLoader(TensorDataset(genesis.zeros(0, 2)), num_workers=2)) == []


def test_workers_end_with_an_early_break():
    iterator = iter(calls(lambda index: (index, os.getpid()), 100))
    pids = {next(iterator)[1] for _ in range(4)}
    assert len(pids) == 2 and all(map(is_alive, pids))
    del iterator
    assert not any(map(is_alive, pids))
    for index, _ in calls(lambda index: (index, 0), 1000):
        if index == 3:
            break


def test_persistent_workers():
    loader = calls(lambda index: (index, os.getpid()), 6, persistent_workers=True)
    first, second = list(loader), list(loader)
    assert [one[0] for one in first] == [one[0] for one in second] == list(range(6))
    pids = {one[1] for one in first}
    assert pids == {one[1] for one in second} and len(pids) == 2
    left = iter(loader)
    next(left)  # the rest of this epoch is passed over
    newer = iter(loader)
    assert [one[0] for one in newer] == list(range(6))
    with pytest.raises(RuntimeError, match="a newer iterator of the same DataLoader has taken"):
        next(left)
    assert all(map(is_alive, pids))
    del loader, left, newer
    wait_for(lambda: not any(map(is_alive, pids)))


def test_iterables_are_divided_by_workers():
    class Numbers(IterableDataset):
        def __iter__(self):
            info = get_worker_info()
            assert info.num_workers == 2 and info.dataset.__class__ is Numbers
            return iter(range(info.id, 9 - info.id * 4, 2))  # 0 2 4 6 8 and 1 3

    for persistent in (False, True):
        loader = DataLoader(Numbers(), 2, num_workers=2, persistent_workers=persistent)
        for _ in range(2):
            found = [batch.tolist() for batch in loader]
            assert found == [[0, 2], [1, 3], [4, 6], [8]]
    short = DataLoader(Numbers(), 2, num_workers=2, drop_last=True)
    assert [batch.tolist() for batch in short] == [[0, 2], [1, 3], [4, 6]]


def test_iterables_with_a_wrong_length():
    class Numbers(IterableDataset):
        def __iter__(self):
            return iter(range(3))

        def __len__(self):
            return 3

    with pytest.warns(UserWarning, match="replica at each worker"):
        assert len(list(DataLoader(Numbers(), None, num_workers=2))) == 6


def test_out_of_order():
    """A slow sample keeps its place, or lets others pass."""

    def sample(index):
        time.sleep(0.4 if index == 0 else 0)
        return index

    assert list(calls(sample, 8)) == list(range(8))
    found = list(calls(sample, 8, in_order=False))
    assert sorted(found) == list(range(8)) and found.index(0) >= 6


def test_how_far_workers_go_ahead():
    ahead = genesis.zeros(1)
    made = []

    class Counted:
        def __iter__(self):
            for index in range(20):
                made.append(index)
                yield index

    loader = DataLoader(
        Calls(int, 20), sampler=Counted(), batch_size=None, num_workers=2, prefetch_factor=3
    )
    iterator = iter(loader)
    assert len(made) == 6
    next(iterator)
    assert len(made) == 7
    del iterator, ahead


# ---- random numbers ----


def draw(index):
    return (
        get_worker_info().id,
        get_worker_info().seed,
        genesis.rand(3).tolist(),
        random.random(),
        numpy.random.rand(),
    )


def test_seeds_repeat():
    def epoch(seed, **options):
        generator = genesis.Generator().manual_seed(seed)
        return list(calls(draw, 4, generator=generator, **options))

    first = epoch(1)
    assert first == epoch(1) and first != epoch(2)
    assert len({one[2][0] for one in first}) == len({one[3] for one in first}) == 4
    assert len({one[4] for one in first}) == 4
    assert first[1][1] - first[0][1] == 1  # the seed of a worker: the base's and its number
    genesis.manual_seed(9)
    one, other = list(calls(draw, 2)), list(calls(draw, 2))
    assert one != other
    genesis.manual_seed(9)
    assert list(calls(draw, 2)) == one


def test_what_a_worker_is():
    state = []

    def init(number):
        assert get_worker_info().id == number
        state.append(number * 10)

    def sample(index):
        info = get_worker_info()
        return state, info.id, info.num_workers, len(info.dataset), genesis._C.get_num_threads()

    found = list(calls(sample, 2, worker_init_fn=init))
    assert found == [([0], 0, 2, 2, 1), ([10], 1, 2, 2, 1)]
    assert get_worker_info() is None and state == []


# ---- errors ----


class CodedError(Exception):
    def __init__(self, code, reason):
        super().__init__(code, reason)


class ToldError(Exception):
    def __init__(self, message):
        self.message = message
        super().__init__(message)


def raiser(error):
    def sample(index):
        if index == 3:
            raise error
        return index

    return sample


@pytest.mark.parametrize(
    "error, kind",
    [
        (ValueError("wrong\nlines"), ValueError),
        (KeyError("name"), KeyError),
        (ToldError("told"), ToldError),
        (CodedError(3, "reason"), RuntimeError),
        (StopIteration(), RuntimeError),
        (UnicodeDecodeError("utf-8", b"", 0, 1, "x"), RuntimeError),
    ],
)
def test_errors_come_with_their_traceback(error, kind):
    iterator = iter(calls(raiser(error), 6))
    assert [next(iterator) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(kind) as caught:
        next(iterator)
    words = str(caught.value)
    assert words.startswith(f"Caught {type(error).__name__} ")
    assert "in DataLoader worker process 1.\nOriginal " in words
    assert "Traceback (most recent call last)" in words and "raise error" in words
    assert [next(iterator), next(iterator)] == [4, 5]  # the others come all the same
    with pytest.raises(StopIteration):
        next(iterator)


def test_errors_of_classes_that_are_not_known_here():
    class LocalError(Exception):
        pass

    with pytest.raises(RuntimeError, match=r"LocalError.*in DataLoader worker process 0") as caught:
        list(calls(raiser(LocalError("hidden")), 4, num_workers=1))
    assert "hidden" in str(caught.value)


def test_errors_at_the_beginning():
    def fail(number):
        raise ZeroDivisionError("at first")

    with pytest.raises(ZeroDivisionError, match="at first"):
        list(calls(int, worker_init_fn=fail))

    class Broken(IterableDataset):
        def __iter__(self):
            raise OverflowError("no iterator")

    with pytest.raises(OverflowError, match="no iterator"):
        list(DataLoader(Broken(), num_workers=1))

    def indices():
        yield 0
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        list(calls(int, sampler=indices()))


def test_batches_that_cannot_be_sent():
    def sample(index):
        if index == 0:
            return lambda: None
        return genesis.ones(2).requires_grad_() * 2

    iterator = iter(calls(sample, 2))
    with pytest.raises((AttributeError, RuntimeError), match="(?s)when a worker sent.*pickle"):
        next(iterator)
    with pytest.raises(RuntimeError, match="autograd does not go from one process to another"):
        next(iterator)


def test_time_runs_out():
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.2 seconds"):
        list(calls(lambda index: time.sleep(1.0), 2, timeout=0.2))
    assert list(calls(int, 4, timeout=30)) == [0, 1, 2, 3]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_killed_worker_is_an_error(number):
    def sample(index):
        if index == 2:
            signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
            os.kill(os.getpid(), number)
        if index == 3:
            time.sleep(0.3)
        return index

    found = []
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match=f"is killed by signal: .*{number.name}"):
        found.extend(calls(sample, 6))
    assert time.monotonic() - begin < 5
    assert found in ([0], [0, 1])


def test_a_worker_that_is_killed_while_it_waits():
    iterator = iter(calls(lambda index: (index, os.getpid()), 100))
    _, pid = next(iterator)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=f"pid {pid}.*is killed by signal: Killed"):
        list(iterator)
    with pytest.raises(StopIteration):
        next(iterator)


def test_a_worker_that_exits():
    with pytest.raises(RuntimeError, match="exited unexpectedly with exit code 3"):
        list(calls(lambda index: os._exit(3)))


def test_busy_workers_are_ended(monkeypatch):
    """Also those that do not listen."""
    monkeypatch.setattr("genesis.utils.data._pool._END_S", 0.1)

    def sample(index):
        if index == 1:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(60)
        return os.getpid()

    iterator = iter(calls(sample, 4))
    pid = next(iterator)
    begin = time.monotonic()
    del iterator
    assert time.monotonic() - begin < 10 and not is_alive(pid)


SCRIPT = """
import os, signal, sys, time
from genesis.utils.data import DataLoader, Dataset
signal.signal(signal.SIGINT, signal.default_int_handler)  # programs in the background ignore it
class Slow(Dataset):
    def __len__(self):
        return 1000
    def __getitem__(self, index):
        time.sleep(0.01)
        return index, os.getpid()
if __name__ == "__main__":
    loader = DataLoader(Slow(), batch_size=2, num_workers=2, PIN)
    seen = set()
    for numbers, pids in loader:
        seen |= set(pids.tolist())
        if numbers[0].item() == 2:
            print(*seen, flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("options", ["persistent_workers=True", "pin_memory=True"])
def test_the_end_of_the_program(number, options, build):
    """Ctrl-C, which the workers hear as well, and a kill that only the parent hears of."""
    environment = os.environ | {"GENESIS_CUDA_DRIVER": str(build / "libgenesis_sim.so")}
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.replace("PIN", options)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=environment,
    )
    pids = list(map(int, child.stdout.readline().split()))
    assert len(pids) == 2
    if number == signal.SIGINT:
        os.killpg(child.pid, number)
    else:
        os.kill(child.pid, number)
    _, errors = child.communicate(timeout=20)
    assert child.returncode == -number
    wait_for(lambda: not any(map(is_alive, pids)))
    if number == signal.SIGINT:
        assert errors.count("Traceback") == 1 and errors.rstrip().endswith("KeyboardInterrupt")


def test_a_fork_leaves_the_workers_alone():
    iterator = iter(calls(int, 50, persistent_workers=True))
    assert next(iterator) == 0
    child = os.fork()
    if child == 0:
        del iterator
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert list(iterator) == list(range(1, 50))


# ---- overlap ----


def test_loading_and_copying_overlap_with_computing(fresh, build):
    """The timeline shows it: batches are pinned by another thread, while a step goes on."""
    driver = build / "libgenesis_sim.so"
    if not driver.exists():
        pytest.skip("the build has no simulator")
    fresh(
        """
import time
import genesis
from genesis import memory_profiler
from genesis.utils.data import DataLoader, TensorDataset

def spans(events, name):
    begins, found = {}, []
    for event in events:
        if event.annotation.split("/")[-1] == name and event.kind == "annotation_begin":
            begins[event.thread] = event.time_ns
        elif event.kind == "annotation_end" and event.thread in begins:
            found.append((event.thread, begins.pop(event.thread), event.time_ns))
    return found

if __name__ == "__main__":
    dataset = TensorDataset(genesis.rand(64, 16))
    loader = DataLoader(dataset, 4, num_workers=2, pin_memory=True)
    with memory_profiler.record():
        for (rows,) in loader:
            with memory_profiler.annotate("step"):
                near = rows.to("cuda", non_blocking=True)
                (near * 2 + 1).sum().item()
                time.sleep(0.01)
    events = memory_profiler.get_timeline().events
    steps, pins = spans(events, "step"), spans(events, "DataLoader.pin")
    assert len(steps) == len(pins) == 16
    overlaps = sum(
        any(a != b and begin < pin_end and pin_begin < end for b, begin, end in steps)
        for a, pin_begin, pin_end in pins
    )
    assert overlaps >= 5, (steps, pins)
""",
        GENESIS_CUDA_DRIVER=str(driver),
    )


# ---- what is left ----


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4  # KiB


@pytest.mark.parametrize("width", [4, 2048])  # copied, and in shared memory
def test_many_batches_leave_nothing(width):
    rows = genesis.rand(1, width).expand(20_000, width)
    dataset = TensorDataset(genesis.arange(20_000), rows)
    loader = DataLoader(dataset, 2, num_workers=2, persistent_workers=True)
    total, before = 0, None
    for number, (numbers, _) in enumerate(loader):
        total += int(numbers[0].item())
        if number == 2000:
            before = descriptors(), mappings(), resident()
    assert number == 9999 and total == 2 * sum(range(10_000))
    assert descriptors() <= before[0] and mappings() <= before[1] + 1
    if "libasan" not in Path("/proc/self/maps").read_text():  # which keeps what is freed
        assert resident() - before[2] < 4000
