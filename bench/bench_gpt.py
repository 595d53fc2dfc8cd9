"""A small GPT trained by PyTorch: on its own allocator, and on Genesis.

    python bench/bench_gpt.py [ROUNDS [STEPS]]

Each run is a process of its own; the two allocators take turns. The training is deterministic, so
the losses must be equal, bit for bit. Lengths vary from step to step, batches are copied on a
second stream, and the arithmetic is bfloat16 by autocast. The second table repeats it with a budget
of 10 % above the most bytes that were ever live.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys

TRAINING = """
import json, sys, time
peer, steps, budget = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
import torch
from torch import nn
from torch.nn import functional as F
if peer == "genesis":
    import genesis
    from genesis.adapters import torch as adapter
    adapter.enable()
torch.use_deterministic_algorithms(True)
torch.utils.deterministic.fill_uninitialized_memory = False
torch.manual_seed(0)
if budget:
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(budget / total)

WIDTH, LAYERS, HEADS, WORDS, BATCH, LONGEST = 768, 8, 12, 16000, 16, 768

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.into, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        rows, length, _ = x.shape
        q, k, v = (self.into(self.before(x)).view(rows, length, 3, HEADS, WIDTH // HEADS)
                   .permute(2, 0, 3, 1, 4))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(rows, length, WIDTH))
        return x + self.down(F.gelu(self.up(self.between(x))))

class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.last, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens):
        x = self.words(tokens) + self.places.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.last(x))

model = GPT().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
copying = torch.cuda.Stream()
random = torch.Generator().manual_seed(1)

def batch():
    length = int(torch.randint(64, LONGEST, (1,), generator=random))
    tokens = torch.randint(WORDS, (BATCH, length + 1), generator=random).pin_memory()
    with torch.cuda.stream(copying):
        return tokens.cuda(non_blocking=True)

losses, times = [], []
result = {"finished": True, "message": ""}
coming = batch()
try:
    for step in range(steps):
        begin = time.perf_counter()
        torch.cuda.current_stream().wait_stream(copying)
        tokens = coming
        tokens.record_stream(torch.cuda.current_stream())
        coming = batch()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            scores = model(tokens[:, :-1])
            loss = F.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        del scores, loss, tokens
        torch.cuda.current_stream().synchronize()
        times.append(time.perf_counter() - begin)
except torch.OutOfMemoryError as error:
    result.update(finished=False, message=str(error))
result["losses"] = [one.item().hex() for one in losses]
result["times"] = times
if peer == "genesis":
    stats = genesis.memory_manager.statistics()
    result.update(live=stats["live_bytes_peak"], reserved=stats["reserved_bytes_peak"],
                  requested=stats["requested_bytes_peak"],
                  calls=stats["driver_alloc_count"] + stats["driver_free_count"])
else:
    stats = torch.cuda.memory_stats()
    result.update(live=stats["allocated_bytes.all.peak"], reserved=stats["reserved_bytes.all.peak"],
                  requested=stats["requested_bytes.all.peak"],
                  calls=stats["num_device_alloc"] + stats["num_device_free"])
print(json.dumps(result))
"""

MIB = 1 << 20


def train(peer: str, steps: int, budget: int = 0) -> dict:
    """One run, as it tells of itself."""
    environment = os.environ | {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    command = [sys.executable, "-c", TRAINING, peer, str(steps), str(budget)]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if finished.returncode:
        sys.exit(f"{peer}: {finished.stderr}")
    return json.loads(finished.stdout.splitlines()[-1])


def row(peer: str, run: dict) -> str:
    """A line of a table."""
    ended = f"{len(run['losses'])} steps" + ("" if run["finished"] else ", then out of memory")
    median = statistics.median(run["times"]) * 1e3 if run["times"] else 0
    return (
        f"| {peer} | {ended} | {sum(run['times']):.2f} | {median:.2f} | {run['live'] / MIB:.0f} "
        f"| {run['reserved'] / MIB:.0f} | {1 - run['requested'] / run['reserved']:.1%} "
        f"| {run['calls']} |"
    )


HEAD = (
    "| allocator | ended | all steps, s | median step, ms | peak live, MiB | peak reserved, MiB "
    "| 1 - requested / reserved | driver calls |\n|---|---|---|---|---|---|---|---|"
)


def main() -> None:
    """Both tables."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    runs: dict[str, list[dict]] = {"PyTorch": [], "Genesis": []}
    print(f"A small GPT, {steps} steps, {rounds} alternating runs.\n\n{HEAD}", flush=True)
    for _ in range(rounds):
        for peer, done in runs.items():
            done.append(train(peer.lower(), steps))
            print(row(peer, done[-1]), flush=True)
    losses = {tuple(run["losses"]) for done in runs.values() for run in done}
    print(f"\nLosses: {'equal, bit for bit' if len(losses) == 1 else 'NOT EQUAL'}.")
    # A step does the same work in every run, so its best time is what it takes without disturbance.
    best = {
        peer: sum(min(times) for times in zip(*(run["times"][10:] for run in done), strict=True))
        for peer, done in runs.items()
    }
    ratio = best["Genesis"] / best["PyTorch"]
    print(f"Steps 10 to {steps}, the best time of each, Genesis / PyTorch: {ratio:.4f}")
    budget = int(1.1 * runs["PyTorch"][0]["live"])
    print(f"\nThe same with a budget of {budget / MIB:.0f} MiB.\n\n{HEAD}", flush=True)
    for peer in runs:
        print(row(peer, train(peer.lower(), steps, budget)), flush=True)


if __name__ == "__main__":
    main()
