"""A worker of a DataLoader: a process that makes batches, and what it says of itself."""

from __future__ import annotations

import os
import random
import select
import signal
import traceback
from dataclasses import dataclass
from itertools import islice
from typing import Any

from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from genesis.utils.data._channel import Channel

__all__ = ["WorkerInfo", "get_worker_info"]

TASK, EPOCH, BATCH, FAILED, ENDED = range(5)  # kinds of messages
_CHECK_S = 1.0  # how often a worker looks whether its parent lives, where nothing tells it


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker is: its number, of how many, its seed, and its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Say which worker this process is; None in the main process.

    Examples
    --------
    >>> from genesis.utils.data import get_worker_info
    >>> get_worker_info() is None
    True
    """
    return _info


@dataclass
class Plan:
    """What a worker has to know."""

    id: int
    num_workers: int
    base_seed: int
    dataset: Any
    is_iterable: bool
    is_batched: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool
    init_fn: Callable[[int], Any] | None
    parent: int  # process


# ---- samples ----


class Fetcher:
    """Makes batches of a dataset, by what a sampler says."""

    def __init__(self, plan: Any) -> None:
        self.plan = plan
        self._samples = iter(plan.dataset) if plan.is_iterable else None
        self._has_ended = False

    def fetch(self, index: Any) -> Any:
        """Take the samples of these numbers, or the next ones, as a batch."""
        if self._samples is not None:
            return self.plan.collate_fn(self._next(index))
        dataset = self.plan.dataset
        if not self.plan.is_batched:
            return self.plan.collate_fn(dataset[index])
        if getattr(dataset, "__getitems__", None):
            return self.plan.collate_fn(dataset.__getitems__(index))
        return self.plan.collate_fn([dataset[one] for one in index])

    def _next(self, index: Any) -> Any:
        assert self._samples is not None
        if self._has_ended:
            raise StopIteration
        if not self.plan.is_batched:
            return next(self._samples)
        taken = list(islice(self._samples, len(index)))
        self._has_ended = len(taken) < len(index)
        if not taken or (self.plan.drop_last and self._has_ended):
            raise StopIteration
        return taken


# ---- errors ----


class _KeyErrorMessage(str):
    """Text whose repr() is itself: a KeyError shows that of its argument."""

    __slots__ = ()

    def __repr__(self) -> str:
        return self


class Failure:
    """An exception with its traceback, on its way to another process."""

    def __init__(self, error: BaseException, where: str) -> None:
        self.kind: Any = type(error)
        trace = "".join(traceback.format_exception(error))
        self.text = f"Caught {type(error).__name__} {where}.\nOriginal {trace}"

    def plain(self) -> Failure:
        """Be of a class that every process has."""
        self.kind = RuntimeError
        return self

    def reraise(self) -> Any:
        """Raise it here, by its own class where that can be."""
        kind, text = self.kind, self.text
        if kind is KeyError:
            raise KeyError(_KeyErrorMessage(text))
        try:
            made = kind(message=text) if hasattr(kind, "message") else kind(text)
        except Exception:  # it is made of something else than a text
            raise RuntimeError(text) from None
        raise made


# ---- the process ----


def _numpy_seed(base_seed: int, number: int) -> Any:
    """Seed of NumPy's global generator, for which seeds one apart are not too much alike."""
    import numpy

    return numpy.random.SeedSequence([base_seed, number]).generate_state(4)


def seed_all(plan: Plan) -> int:
    """Seed every generator that a program may use; the seed."""
    seed = plan.base_seed + plan.id
    random.seed(seed)
    _C.manual_seed(seed)
    try:
        import numpy
    except ImportError:
        return seed
    numpy.random.seed(_numpy_seed(plan.base_seed, plan.id))
    return seed


def _ignore(*_: Any) -> None:
    """Do nothing at Ctrl-C: the parent hears of it as well, and ends its workers."""


def _signals_begin() -> None:
    """The signals of a worker, which was started with SIGINT blocked."""
    signal.signal(signal.SIGINT, _ignore)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # not what the parent has made of it
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


class _Inbox:
    """Waits for tasks, and for the end of the parent."""

    def __init__(self, channel: Channel, parent: int) -> None:
        self._channel = channel
        self._poll = select.poll()
        self._poll.register(channel, select.POLLIN)
        self._parent = -1
        try:
            self._parent = os.pidfd_open(parent)
            self._poll.register(self._parent, select.POLLIN)
        except (AttributeError, OSError):  # an old system: the end of the connection must do
            pass

    def take(self) -> Any:
        """Take the next message; None when there will be none."""
        while True:
            found = [one for one, _ in self._poll.poll(_CHECK_S * 1000)]
            if self._channel.fileno() in found:
                return self._channel.receive()
            if self._parent in found:
                return None


def worker_main(channel: Channel, inherited: list[Channel], plan: Plan) -> None:
    """Make batches until the connection ends."""
    global _info
    _signals_begin()
    for one in inherited:  # a fork has the parent's ends of all connections
        one.close()
    from genesis.utils.data._channel import Segments

    channel.segments = Segments()
    _C.set_num_threads(1)
    _info = WorkerInfo(plan.id, plan.num_workers, seed_all(plan), plan.dataset)
    try:
        _run(channel, plan)
    except (BrokenPipeError, ConnectionResetError):
        pass  # nobody wants them any more
    finally:
        _info = None
        channel.close()


def _run(channel: Channel, plan: Plan) -> None:
    where = f"in DataLoader worker process {plan.id}"
    inbox, fetcher = _Inbox(channel, plan.parent), None
    failure = None
    try:
        if plan.init_fn is not None:
            plan.init_fn(plan.id)
    except Exception as error:
        failure = Failure(error, where)
    while (message := inbox.take()) is not None:
        kind, epoch, number, index = message
        if kind == EPOCH:
            fetcher = None
            continue
        if failure is not None:
            _send(channel, FAILED, epoch, number, failure)
            failure = None
            continue
        try:
            fetcher = fetcher or Fetcher(plan)
            answer = BATCH, fetcher.fetch(index)
        except StopIteration as error:
            ended = plan.is_iterable
            answer = (ENDED, None) if ended else (FAILED, Failure(error, where).plain())
        except Exception as error:
            answer = FAILED, Failure(error, where)
        _send(channel, answer[0], epoch, number, answer[1])
        del message, answer  # the batch is with the parent now


def _send(channel: Channel, kind: int, epoch: int, number: int, value: Any) -> None:
    try:
        channel.send(kind, epoch, number, value)
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception as error:  # it cannot be pickled, or there is no memory
        failure = value if kind == FAILED else Failure(error, "when a worker sent a batch")
        try:
            channel.send(FAILED, epoch, number, failure)
        except (BrokenPipeError, ConnectionResetError):
            raise
        except Exception:
            channel.send(FAILED, epoch, number, failure.plain())
