"""DataLoader beside PyTorch's: batches a second with worker processes.

    python bench/bench_loader.py --torch /opt/torchenv/bin/python [--workers 2] [--rounds 5]

Each library runs in processes of its own, in turns; the best and the median of the rounds are
printed. The first epoch, with the start of the workers, is a figure of its own.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import time

EPOCHS = 8
CASES = {  # samples, shape of one, batch size
    "small": (8_000, (8,), 8),
    "rows": (20_000, (64,), 64),
    "images": (1_024, (3, 64, 64), 32),
    "large": (256, (3, 224, 224), 32),
}


def measure(library: str, case: str, workers: int) -> dict[str, float]:
    """Seconds of the first epoch of persistent workers, and batches a second of the best other."""
    own = importlib.import_module(library)
    data = importlib.import_module(f"{library}.utils.data")
    samples, shape, size = CASES[case]
    dataset = data.TensorDataset(own.rand(samples, *shape), own.arange(samples))
    loader = data.DataLoader(
        dataset, batch_size=size, num_workers=workers, persistent_workers=workers > 0
    )
    times, total = [], 0.0
    for _ in range(EPOCHS):
        begin = time.perf_counter()
        for rows, numbers in loader:
            total += float(rows.reshape(-1)[0].item()) + float(numbers[-1].item())
        times.append(time.perf_counter() - begin)
    return {"first_s": times[0], "batches_per_s": len(loader) / min(times[1:])}


def main() -> None:
    """Run the libraries in turns, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--torch", default=sys.executable, help="the Python that has PyTorch")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--one", metavar="LIBRARY")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one, given.case, given.workers)))
        return
    for case in [given.case] if given.case else CASES:
        found: dict[str, list[dict[str, float]]] = {"genesis": [], "torch": []}
        for _ in range(given.rounds):
            for library, python in (("genesis", sys.executable), ("torch", given.torch)):
                command = [python, __file__, "--one", library, "--case", case]
                done = subprocess.run(
                    [*command, "--workers", str(given.workers)],
                    check=True,
                    capture_output=True,
                    text=True,
                )
                found[library].append(json.loads(done.stdout))
        for library, rounds in found.items():
            rates = [one["batches_per_s"] for one in rounds]
            first = statistics.median(one["first_s"] for one in rounds)
            print(
                f"{case:8} {library:8} best {max(rates):9.0f}  median "
                f"{statistics.median(rates):9.0f} batches/s   first epoch {first:.3f} s"
            )


if __name__ == "__main__":
    main()
