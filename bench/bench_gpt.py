"""A small GPT trained by PyTorch: on its own allocator, and on Genesis.

    python bench/bench_gpt.py [STEPS [PROCESSES]]

Takes about 90 s with the usual 300 steps and two processes for each allocator, all of which keep
their memory (about 9 GB each) until the end.

Runs of one allocator differ by up to 9 % from one process and one minute to the next, so nothing
is timed one after the other: all processes train at the same time, in lock-step. One takes a step
and waits for the GPU while the others wait for their turn, and who begins changes with each step.
What disturbs the machine disturbs all of them, and a step, which is the same work for all, has a
ratio of its own. The table has their median and the ratio of the sums, each with the interval that
95 % of the resamples of the steps lie in, and the same for processes of one allocator beside each
other: what these differ from 1 is what the method cannot tell.

The training is deterministic, so the losses must be equal, bit for bit. Lengths vary from step to
step, batches are copied on a second stream, and the arithmetic is bfloat16 by autocast. The last
table repeats it with a budget of 10 % above the most bytes that were ever live.
"""

from __future__ import annotations

import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from typing import Any

WARM_UP = 10  # steps that are not compared
ENVIRONMENT = {
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # cuBLAS is deterministic
    "GENESIS_CUDA_STATS_ENABLED": "on",  # the time of driver calls
}
RESAMPLES = 1000
MIB = 1 << 20
WIDTH, LAYERS, HEADS, WORDS, BATCH, LONGEST = 768, 8, 12, 16000, 16, 768


# ---- a process that trains: a step for each line that it reads --------------------------------


def make_model(torch: Any) -> Any:
    """The GPT."""
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        """Attention, then two layers."""

        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.into, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            """Of one block."""
            rows, length, _ = x.shape
            parts = self.into(self.before(x)).view(rows, length, 3, HEADS, WIDTH // HEADS)
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(rows, length, WIDTH))
            return x + self.down(functional.gelu(self.up(self.between(x))))

    class GPT(nn.Module):
        """Words and places, blocks, words again."""

        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LONGEST, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
            self.last, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

        def forward(self, tokens: Any) -> Any:
            """Of the whole."""
            x = self.words(tokens) + self.places.weight[: tokens.shape[1]]
            for block in self.blocks:
                x = block(x)
            return self.head(self.last(x))

    return GPT().cuda()


class Training:
    """One training: ``step()`` trains with the batch that is there and has the next one copied."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.model = make_model(torch)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4)
        self.copying = torch.cuda.Stream()
        self.random = torch.Generator().manual_seed(1)
        self.losses: list[Any] = []
        self.coming = self.batch()

    def batch(self) -> Any:
        """Tokens of some length, on their way to the GPU."""
        torch = self.torch
        length = int(torch.randint(64, LONGEST, (1,), generator=self.random))
        tokens = torch.randint(WORDS, (BATCH, length + 1), generator=self.random).pin_memory()
        with torch.cuda.stream(self.copying):
            return tokens.cuda(non_blocking=True)

    def step(self) -> None:
        """Submits a step."""
        torch = self.torch
        torch.cuda.current_stream().wait_stream(self.copying)
        tokens = self.coming
        tokens.record_stream(torch.cuda.current_stream())
        self.coming = self.batch()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            scores = self.model(tokens[:, :-1])
            targets = tokens[:, 1:].flatten()
            loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), targets)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.detach())


def read_statistics(torch: Any, peer: str) -> dict[str, int]:
    """What an allocator tells of itself."""
    if peer == "Genesis":
        import genesis

        stats = genesis.memory_manager.statistics()
        names = ("live_bytes_peak", "reserved_bytes_peak", "requested_bytes_peak")
        calls = ("driver_alloc_count", "driver_free_count")
    else:
        stats = torch.cuda.memory_stats()
        names = tuple(f"{name}_bytes.all.peak" for name in ("allocated", "reserved", "requested"))
        calls = ("num_device_alloc", "num_device_free")
    live, reserved, requested = (stats[name] for name in names)
    return {
        "live": live,
        "reserved": reserved,
        "requested": requested,
        "calls": sum(stats[name] for name in calls),
        "driver_ns": stats.get("driver_time_ns", 0),  # PyTorch does not tell
    }


def work(peer: str, budget: int) -> None:
    """Trains: answers when it is ready, then each line of the standard input with a line."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is not an answer
    import torch

    if peer == "Genesis":
        from genesis.adapters import torch as adapter

        adapter.enable()
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.manual_seed(0)
    if budget:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(budget / total)
    training = Training(torch)
    torch.cuda.synchronize()
    print(json.dumps({}), file=answers)
    while sys.stdin.readline() == "step\n":
        begin = time.perf_counter()
        try:
            training.step()
            torch.cuda.synchronize()  # nothing of this process runs during the others' turns
        except torch.OutOfMemoryError:
            answer: dict[str, Any] = {"is_out_of_memory": True}
        else:
            answer = {"seconds": time.perf_counter() - begin, **read_statistics(torch, peer)}
        print(json.dumps(answer), file=answers)
    losses = [one.item().hex() for one in training.losses]
    print(json.dumps({"losses": losses, **read_statistics(torch, peer)}), file=answers)


# ---- the process that asks ------------------------------------------------------------------


class Worker:
    """A process that trains, and what it told."""

    def __init__(self, peer: str, budget: int = 0) -> None:
        self.peer = peer
        self.times: list[float] = []
        self.calls: list[int] = []  # of the driver, up to and with each step
        self.driver_ns: list[int] = []  # that they took
        self.end: dict[str, Any] = {}
        self.is_out_of_memory = False
        self.process = subprocess.Popen(
            [sys.executable, __file__, "work", peer, str(budget)],
            env=os.environ | ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hear(self) -> dict[str, Any]:
        """The next answer."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"a process on the allocator of {self.peer} ended by {self.process.wait()}")
        return json.loads(line)

    def ask(self, what: str) -> dict[str, Any]:
        """The answer to a line."""
        assert self.process.stdin is not None
        print(what, file=self.process.stdin, flush=True)
        return self.hear()

    def step(self) -> None:
        """One step, with the GPU to itself."""
        answer = self.ask("step")
        self.is_out_of_memory = answer.get("is_out_of_memory", False)
        if not self.is_out_of_memory:
            self.times.append(answer["seconds"])
            self.calls.append(answer["calls"])
            self.driver_ns.append(answer["driver_ns"])

    def row(self) -> str:
        """A line of a table."""
        why = ", then out of memory" if self.is_out_of_memory else ""
        ended = f"{len(self.times)} steps{why}"
        median = statistics.median(self.times) * 1e3 if self.times else 0
        later = self.calls[-1] - self.calls[len(self.calls) // 2] if self.calls else 0
        end = self.end
        return (
            f"| {self.peer} | {ended} | {sum(self.times):.2f} | {median:.2f} "
            f"| {end['live'] / MIB:.0f} | {end['reserved'] / MIB:.0f} "
            f"| {1 - end['requested'] / end['reserved']:.1%} | {end['calls']} | {later} |"
        )


HEAD = (
    "| allocator | ended | all steps, s | median step, ms | peak live, MiB | peak reserved, MiB "
    "| 1 - requested / reserved | driver calls | of these in the second half |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def train(workers: list[Worker], steps: int) -> None:
    """Lock-step: each step by each of them in turn; the order rotates, and turns around."""
    for worker in workers:
        worker.hear()
    for step in range(steps):
        first = step % len(workers)
        order = workers[first:] + workers[:first]
        for worker in order[:: -1 if step // len(workers) % 2 else 1]:
            if not worker.is_out_of_memory:
                worker.step()
    for worker in workers:
        worker.end = worker.ask("end")
        worker.process.wait()
    print(HEAD)
    for worker in workers:
        print(worker.row(), flush=True)


def describe(value: float, resampled: list[float]) -> str:
    """A ratio and its interval."""
    ranked = sorted(resampled)
    low, high = ranked[len(ranked) // 40], ranked[-1 - len(ranked) // 40]
    return f"{value:.4f} ({low:.4f} to {high:.4f})"


def compare(name: str, above: list[Worker], below: list[Worker]) -> float:
    """Prints how steps of some processes compare with others; returns the median ratio."""
    pairs = [  # for each step the means of both sides: geometric ones, so that 1 / ratio is fair
        tuple(
            math.exp(statistics.fmean(math.log(worker.times[step]) for worker in side))
            for side in (above, below)
        )
        for step in range(WARM_UP, len(above[0].times))
    ]

    def median(sample: list[tuple[float, ...]]) -> float:
        return statistics.median(one / other for one, other in sample)

    def total(sample: list[tuple[float, ...]]) -> float:
        return sum(one for one, _ in sample) / sum(other for _, other in sample)

    choose = random.Random(0)
    samples = [choose.choices(pairs, k=len(pairs)) for _ in range(RESAMPLES)]
    cells = [describe(how(pairs), [how(one) for one in samples]) for how in (median, total)]
    print(f"| {name} | {cells[0]} | {cells[1]} |")
    return median(pairs)


def compare_all(own: list[Worker], ours: list[Worker], steps: int) -> None:
    """The table of ratios."""
    print(f"\nThe same step, steps {WARM_UP} to {steps}:\n")
    print("| | median of the ratios | ratio of the sums |\n|---|---|---|")
    ratio = compare("Genesis / PyTorch", ours, own)
    shares = [
        (worker.driver_ns[-1] - worker.driver_ns[WARM_UP - 1]) * 1e-9 / sum(worker.times[WARM_UP:])
        for worker in ours
    ]
    controls = [
        compare(f"{peer[0].peer} / {peer[0].peer}, process {i} / process 0", [other], [peer[0]])
        for peer in (own, ours)
        for i, other in enumerate(peer[1:], 1)
    ]
    if controls:
        most = max(abs(control - 1) for control in controls)
        print(f"\nGenesis differs by {ratio - 1:+.2%}, processes of one allocator by {most:.2%}.")
    print(f"Genesis spent {max(shares):.2%} of these steps in the driver's calls for memory.")


def main() -> None:
    """All tables."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    if steps <= WARM_UP or count < 1:
        sys.exit(f"more than {WARM_UP} steps and at least one process are needed")
    print(f"A small GPT, {steps} steps in lock-step.\n")
    own, ours = ([Worker(peer) for _ in range(count)] for peer in ("PyTorch", "Genesis"))
    train([worker for pair in zip(own, ours, strict=True) for worker in pair], steps)
    losses = {tuple(worker.end["losses"]) for worker in own + ours}
    print(f"\nLosses: {'equal, bit for bit' if len(losses) == 1 else 'NOT EQUAL'}.")
    compare_all(own, ours, steps)
    budget = int(1.1 * own[0].end["live"])
    print(f"\nThe same with a budget of {budget / MIB:.0f} MiB.\n", flush=True)
    train([Worker("PyTorch", budget), Worker("Genesis", budget)], steps)


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        work(sys.argv[2], int(sys.argv[3]))
    else:
        main()
