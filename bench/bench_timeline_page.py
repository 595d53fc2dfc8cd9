"""What the page of 1,000,000 events costs: to write, to open, to zoom, to hover, to click.

    .venv/bin/python bench/bench_timeline_page.py [EVENTS]

Needs Chromium. The limits for 1,000,000 events: 60 MB, and 3 seconds for each action.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))

from browser import Browser, Page, find_browser  # noqa: E402
from recordings import growing_recording, large_recording  # noqa: E402

from genesis._recording import Recording  # noqa: E402
from genesis._timeline_page import write_page  # noqa: E402


def seconds(call: Callable[[], object]) -> float:
    """The wall time of a call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


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
    print(
        "| recording | MB | write, s | open, s | zoom, s | hover, s | click, s | filter, s | said |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as directory, Browser() as browser:
        path = Path(directory) / "page.html"
        print(measure("blocks that come and go", large_recording(events), path, browser))
        growing = growing_recording(events)
        print(measure("nothing freed, annotations, marks", growing, path, browser))


if __name__ == "__main__":
    main()
