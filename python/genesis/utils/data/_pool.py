"""The worker processes of a DataLoader, seen from the main process."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import queue
import select
import signal
import sys
import threading
import time
from dataclasses import replace
from typing import Any

import genesis
from genesis.utils.data._channel import channel_pair
from genesis.utils.data._worker import EPOCH, worker_main

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from genesis.utils.data._channel import Channel
    from genesis.utils.data._worker import Plan

__all__ = ["Crew", "context_of"]

_CHECK_S = 0.5  # how often the workers are asked whether they live, beside their sentinels
_END_S = 5.0  # how long a worker may take to end by itself


def context_of(given: Any) -> Any:
    """Say how processes are started: fork, if nobody has said otherwise."""
    if given is not None:
        return given
    if multiprocessing.get_start_method(allow_none=True) is None:
        return multiprocessing.get_context("fork")
    return multiprocessing.get_context()


class Pool:
    """Workers and the connections with them. One thread receives at a time."""

    def __init__(self, context: Any, plan: Plan) -> None:
        self._owner = os.getpid()
        self.is_open = True
        self.channels: list[Channel] = []
        self.processes: list[Any] = []
        self._poll = select.poll()
        self._places: dict[int, int] = {}  # of descriptors: worker, or -1 - worker of a sentinel
        self._is_fork = context.get_start_method() == "fork"
        if self._is_fork:
            genesis.flush()  # what waits is computed once, not in each child
            if importlib.util.find_spec("numpy"):
                import numpy  # noqa: F401  # once, too
        try:
            for number in range(plan.num_workers):
                self._start(context, replace(plan, id=number))
        except BaseException:
            self.close()
            raise

    def _start(self, context: Any, plan: Plan) -> None:
        own, other = channel_pair()
        self.channels.append(own)
        inherited = list(self.channels) if self._is_fork else []
        process = context.Process(target=worker_main, args=(other, inherited, plan), daemon=True)
        # Ctrl-C while it starts would end it with a traceback: it waits until the worker is ready.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            other.close()
        self.processes.append(process)
        self._places[own.fileno()] = plan.id
        self._places[process.sentinel] = -1 - plan.id
        self._poll.register(own, select.POLLIN)
        self._poll.register(process.sentinel, select.POLLIN)

    def post(self, worker: int, kind: int, epoch: int, number: int, value: Any) -> None:
        """Give a worker something to do; never waits."""
        self.channels[worker].post(kind, epoch, number, value)

    def receive(self, timeout: float | None) -> Iterator[tuple[int, Any]]:
        """Wait for messages, and take one of each worker that has any, with its number.

        RuntimeError if a worker has died, TimeoutError when nothing came in time.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while self.is_open:
            for channel in self.channels:
                channel.flush()
            left = _CHECK_S if end is None else min(_CHECK_S, max(end - time.monotonic(), 0.0))
            places = sorted(self._places[one] for one, _ in self._poll.poll(left * 1000))
            count = 0
            for worker in places:
                if worker < 0:
                    continue
                message = self.channels[worker].receive()
                if message is not None:
                    count += 1
                    yield worker, message
                elif self.is_open:
                    self._processes_check([worker])
            if count:
                return
            if self.is_open:
                self._processes_check([])
            if end is not None and time.monotonic() >= end:
                raise TimeoutError

    def _processes_check(self, gone: list[int]) -> None:
        """Raise for workers that have died; for those that have closed their connection as well."""
        for worker in gone:
            self.processes[worker].join(_CHECK_S)
        died = [one for one in self.processes if one.exitcode is not None]
        for one in died:
            if one.exitcode < 0:
                name = signal.strsignal(-one.exitcode) or "unknown"
                raise RuntimeError(
                    f"DataLoader worker (pid {one.pid}) is killed by signal: {name} "
                    f"({_signal_name(-one.exitcode)})."
                )
        died = died or [self.processes[worker] for worker in gone]
        if died:
            pids = ", ".join(str(one.pid) for one in died)
            raise RuntimeError(
                f"DataLoader worker (pid(s) {pids}) exited unexpectedly"
                + (f" with exit code {died[0].exitcode}" if died[0].exitcode is not None else "")
            )

    def close(self) -> None:
        """End the workers, also those that are busy."""
        if not self.is_open:
            return
        self.is_open = False
        if os.getpid() != self._owner:  # in a fork: they are not its own
            for channel in self.channels:
                channel.socket.close()
            return
        for channel in self.channels:
            channel.shutdown()
        end = time.monotonic() + _END_S
        for process in self.processes:
            process.join(max(end - time.monotonic(), 0.0))
        for stop in ("terminate", "kill"):
            for process in self.processes:
                if process.is_alive():
                    getattr(process, stop)()
                    process.join(1.0)
        for channel in self.channels:
            channel.close()
        for process in self.processes:
            if not process.is_alive():
                process.close()
        self._places.clear()

    def __del__(self) -> None:
        if not sys.is_finalizing():  # then multiprocessing ends them
            self.close()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


class _Receiver(threading.Thread):
    """Receives, and does with each message what it is told; puts what comes out into a queue."""

    def __init__(self, pool: Pool, work: Callable[[Any], Any], results: Any) -> None:
        super().__init__(name="genesis-pin-memory", daemon=True)
        self._pool, self._work, self._results = pool, work, results

    def run(self) -> None:
        """Until the pool closes, or a worker dies."""
        try:
            while self._pool.is_open:
                for worker, message in self._pool.receive(None):
                    self._results.put((worker, self._work(message)))
        except BaseException as error:
            self._results.put((-1, error))


class Crew:
    """A pool, and the thread that works on what comes from it, for one or more iterations."""

    def __init__(self, context: Any, plan: Plan, work: Callable[[Any], Any] | None) -> None:
        self.epoch = 0
        self.pool = Pool(context, plan)
        self._results: Any = queue.SimpleQueue()
        self._thread = None if work is None else _Receiver(self.pool, work, self._results)
        if self._thread is not None:
            self._thread.start()

    @property
    def is_open(self) -> bool:
        """Whether there are workers."""
        return self.pool.is_open

    def epoch_begin(self) -> None:
        """Tell the workers that a new iteration begins."""
        self.epoch += 1
        for worker in range(len(self.pool.processes)):
            self.pool.post(worker, EPOCH, self.epoch, 0, None)

    def receive(self, timeout: float | None) -> Iterable[tuple[int, Any]]:
        """Wait for messages; as Pool.receive()."""
        if self._thread is None:
            return self.pool.receive(timeout)
        try:
            worker, message = self._results.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError from None
        if worker < 0:
            raise message
        return [(worker, message)]

    def close(self) -> None:
        """End the workers and the thread."""
        self.pool.close()
        if self._thread is not None:
            self._thread.join(_END_S)

    def __del__(self) -> None:
        if not sys.is_finalizing() and hasattr(self, "_thread"):
            self.close()
