"""What 1,000,000 events cost: to dump; and the page: to write, open, zoom, hover, click, filter.

    .venv/bin/python bench/bench_timeline_page.py [EVENTS]

The first recording is that of a run: blocks of many sizes and ages, with 10 frames of Python. The
pages need Chromium. The limits for 1,000,000 events: 5 seconds for a dump, 60 MB for a page, and 3
seconds for each action.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))

from browser import Browser, Page, find_browser  # noqa: E402
from recordings import growing_recording, large_recording  # noqa: E402

from genesis import _C, memory_profiler  # noqa: E402
from genesis._recording import Recording  # noqa: E402
from genesis._snapshot import dump  # noqa: E402
from genesis._timeline_page import write_page  # noqa: E402


def seconds(call: Callable[[], object]) -> float:
    """The wall time of a call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def recorded_run(events: int) -> Recording:
    """What a program did that allocates and frees at random, from functions up to 14 deep."""
    manager = _C.MemoryManager("cpu")
    chance = random.Random(1)
    live: list[_C.MemoryBlock] = []

    def nested(depth: int) -> None:
        if depth:
            nested(depth - 1)
        elif len(live) < 1000 or (len(live) < 4000 and chance.random() < 0.5):
            live.append(manager.allocate_block(int(2 ** chance.uniform(9, 18))))
        else:
            place = chance.randrange(len(live))
            live[place], live[-1] = live[-1], live[place]
            live.pop().free()

    with memory_profiler.record(max_events=2 * events, stacks="python"):
        while events > 0:
            nested(chance.randrange(14))
            events -= 1
    return memory_profiler.get_recording()


def measure(name: str, recording: Recording, path: Path, browser: Browser) -> str:
    """One row of the table."""
    times = [seconds(lambda: write_page(recording, path))]
    size = path.stat().st_size / 1e6
    page: Page = browser.open(path)
    times.append(page.opened_s)
    times.append(seconds(lambda: page.wheel(700, 450, -300)))
    times.append(seconds(lambda: page.hover(700, 500)))
    times.append(seconds(lambda: page.click(700, 500)))
    times.append(seconds(lambda: page.choose("minimum", "1 MiB")))
    said = "; ".join(page.complaints) or "nothing"
    page.close()
    return f"| {name} | {size:.1f} | " + " | ".join(f"{t:.2f}" for t in times) + f" | {said} |"


def main() -> None:
    """Print the table."""
    if find_browser() is None:
        sys.exit("no Chromium (Debian: apt-get install chromium)")
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    run = recorded_run(events)
    with tempfile.TemporaryDirectory() as directory:
        for ending in ("json", "pickle"):
            path = Path(directory) / f"snapshot.{ending}"
            taken = seconds(lambda path=path: dump(run, path))
            print(f"{len(run)} events of a run dumped as {ending}: {taken:.1f} s", end=", ")
            print(f"{path.stat().st_size / 1e6:.0f} MB")
    print()
    print(
        "| recording | MB | write, s | open, s | zoom, s | hover, s | click, s | filter, s | said |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as directory, Browser() as browser:
        path = Path(directory) / "page.html"
        print(measure("a run", run, path, browser))
        print(measure("blocks that come and go", large_recording(events), path, browser))
        growing = growing_recording(events)
        print(measure("nothing freed, annotations, marks", growing, path, browser))


if __name__ == "__main__":
    main()
