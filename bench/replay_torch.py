"""A training loop of PyTorch, and the same requests through Genesis, side by side.

    python bench/replay_torch.py [PATH]

Records a small GPT with sequences of changing length under PyTorch's own allocator, writes its
snapshot (to PATH, or a temporary file), and replays it on the same GPU with ``python -m genesis
memory replay``.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

STEPS = 30

TRAINING = f"""
import sys, torch
torch.manual_seed(0)
torch.cuda.memory._record_memory_history(max_entries=1000000, context=None)
width, layers, words = 512, 6, 8000
block = torch.nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True, dropout=0.0)
model = torch.nn.Sequential(
    torch.nn.Embedding(words, width),
    torch.nn.TransformerEncoder(block, layers, enable_nested_tensor=False),
    torch.nn.Linear(width, words),
).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range({STEPS}):
    length = int(torch.randint(64, 512, (1,)))
    tokens = torch.randint(words, (8, length + 1), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        scores = model(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
torch.cuda.synchronize()
torch.cuda.memory._dump_snapshot(sys.argv[1])
"""


def main() -> None:
    """Record, replay, and print both."""
    with tempfile.TemporaryDirectory() as directory:
        path = sys.argv[1] if len(sys.argv) > 1 else str(Path(directory) / "torch.pickle")
        subprocess.run([sys.executable, "-c", TRAINING, path], check=True)
        command = [sys.executable, "-m", "genesis", "memory", "replay", path, "--device", "cuda"]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
