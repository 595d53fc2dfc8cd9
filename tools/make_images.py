"""The pictures of docs/images.

timeline.png       the page of a made recording of a training loop, as headless Chromium shows it
plot.png           timeline.plot() of the same recording
out_of_memory.png  the page that examples/out_of_memory.py writes on the simulated GPU

.venv/bin/python tools/make_images.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))

from browser import Browser, Page  # noqa: E402
from recordings import training_recording  # noqa: E402

from genesis import _recording as r  # noqa: E402
from genesis._timeline import Timeline  # noqa: E402
from genesis._timeline_page import write_page  # noqa: E402


def hover_activation(recording: r.Recording, page: Page) -> None:
    """Put the pointer on an activation of the first step."""
    names = recording.annotations
    events = list(r.EVENT.iter_unpack(recording.data))
    place = max(
        i
        for i, event in enumerate(events)
        if event[8] == r.ALLOC
        and names[event[6]] == "step 0/forward"
        and recording.sites[event[5]][0].name == "gelu"
    )
    where = page.run(f"timeline.find({place})")
    page.hover(where["x"], where["y"])


def example_page(directory: str) -> Path:
    """The page of the example, whose device is a simulated GPU of 1 GiB."""
    source = ROOT / "examples" / "out_of_memory.py"
    program = f"exec(compile(open('{source}').read(), 'out_of_memory.py', 'exec'))"
    subprocess.run(
        [sys.executable, "-c", program],  # so that no directory shows in the picture
        env=os.environ | {"GENESIS_CUDA_DRIVER": "sim"},
        cwd=directory,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return Path(directory) / "out_of_memory.html"


def main() -> None:
    """Make them all."""
    recording, _ = training_recording()
    images = ROOT / "docs" / "images"
    images.mkdir(exist_ok=True)
    Timeline(recording).plot(images / "plot.png")
    with tempfile.TemporaryDirectory() as directory, Browser() as browser:
        path = Path(directory) / "timeline.html"
        write_page(recording, path)
        page = browser.open(path, width=1240, height=1230, scale=1.5)
        hover_activation(recording, page)
        page.screenshot(images / "timeline.png")
        page = browser.open(example_page(directory), width=1240, height=1160)
        page.choose("axis", "event")  # each takes the same room
        page.run("document.querySelector('#moments .oom').click()")
        page.settle()
        page.screenshot(images / "out_of_memory.png")


if __name__ == "__main__":
    main()
