"""A headless Chromium for tests, driven over pipes with its DevTools protocol and nothing else.

Messages are JSON with a NUL after each, on the descriptors 3 and 4 of the browser. Page keeps what
the page's console and its exceptions said, so that a test can insist on silence.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Popen cannot give a child chosen descriptors, so a small program moves them, then
# becomes the browser.
LAUNCHER = (
    "import os, sys\n"
    "os.dup2(int(sys.argv[1]), 3)\nos.dup2(int(sys.argv[2]), 4)\n"
    "os.execv(sys.argv[3], sys.argv[3:])\n"
)
FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-extensions",
    "--no-first-run",
    "--no-sandbox",  # containers run tests as root, and the only pages are our own
    "--hide-scrollbars",
)


def find_browser() -> str | None:
    """The path of a Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """A running browser; a context manager."""

    def __init__(self, timeout_s: float = 60) -> None:
        program = find_browser()
        assert program is not None
        self.timeout_s = timeout_s
        self.profile = tempfile.mkdtemp(prefix="genesis-browser-")
        theirs_in, self.out = os.pipe()
        self.inlet, theirs_out = os.pipe()
        # High numbers, which the launcher does not overwrite while it moves them.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs_in, theirs_out)]
        flags = [*FLAGS, f"--user-data-dir={self.profile}", "about:blank"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, *map(str, high), program, *flags],
            pass_fds=high,
            # Not under the sanitizer that the tests themselves may run under.
            env={k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "ASAN_OPTIONS")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (theirs_in, theirs_out, *high):
            os.close(fd)
        self.buffer = b""
        self.number = 0
        self.pages: dict[str, Page] = {}

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.call("Browser.close")
        except (RuntimeError, OSError):
            self.process.kill()
        self.process.wait(timeout=20)
        os.close(self.out)
        os.close(self.inlet)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, end: float) -> dict[str, Any]:
        """The next message."""
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.inlet], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise RuntimeError("the browser does not answer")
            piece = os.read(self.inlet, 1 << 20)
            if not piece:
                raise RuntimeError("the browser went away")
            self.buffer += piece
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and wait for its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data) :]
        end = time.monotonic() + self.timeout_s
        while True:
            answer = self.receive(end)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            page = self.pages.get(answer.get("sessionId", ""))
            if page is not None:
                page.hear(answer)

    def open(self, path: str | Path, width=1280, height=1100, scale=1.0, dark=False) -> Page:
        """Open a page of the disk and wait until it is ready."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, session, target)
        for domain in ("Runtime", "Log", "Page"):
            page.call(f"{domain}.enable")
        page.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.call("Emulation.setEmulatedMedia", features=[scheme])
        start = time.monotonic()
        page.call("Page.navigate", url=Path(path).resolve().as_uri())
        while not page.run("document.readyState === 'complete' && !!window.timeline"):
            assert time.monotonic() - start < self.timeout_s
            time.sleep(0.01)
        page.run("timeline.ready")
        page.settle()
        page.opened_s = time.monotonic() - start
        return page


class Page:
    """A page, its mouse and its keyboard."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self.browser = browser
        self.session = session
        self.target = target
        self.complaints: list[str] = []
        self.opened_s = 0.0

    def hear(self, message: dict[str, Any]) -> None:
        """Keep what the page complains about."""
        method, parameters = message["method"], message["params"]
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", str(details)))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("warning", "error"):
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(str(parameters["args"]))

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol for this page."""
        return self.browser.call(method, self.session, **parameters)

    def run(self, script: str) -> Any:
        """The value of an expression, after the promise it may be."""
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", str(details)))
        return answer["result"].get("value")

    def settle(self) -> None:
        """Wait until what is due to be drawn is drawn."""
        frame = "requestAnimationFrame(() => requestAnimationFrame(() => done(true)))"
        self.run(f"new Promise(done => {frame})")

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """One event of the mouse; kind: Moved, Pressed, Released or Wheel."""
        self.call("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, **more)

    def hover(self, x: float, y: float) -> None:
        """Move the pointer to a place."""
        self.mouse("Moved", x, y)
        self.settle()

    def click(self, x: float, y: float) -> None:
        """Click there."""
        self.drag(x, y, x, y)

    def drag(self, x0: float, y0: float, x1: float, y1: float, shift=False) -> None:
        """Press at one place and let go at another."""
        more = {"button": "left", "buttons": 1, "clickCount": 1, "modifiers": 8 if shift else 0}
        self.mouse("Moved", x0, y0)
        self.mouse("Pressed", x0, y0, **more)
        if (x0, y0) != (x1, y1):
            self.mouse("Moved", (x0 + x1) / 2, (y0 + y1) / 2, **more)
            self.mouse("Moved", x1, y1, **more)
        self.mouse("Released", x1, y1, **more)
        self.settle()

    def wheel(self, x: float, y: float, amount: float) -> None:
        """Turn the wheel; less than zero is away from the user."""
        self.mouse("Wheel", x, y, deltaX=0, deltaY=amount)
        self.settle()

    def press(self, key: str, shift=False) -> None:
        """Press and release a key, named as KeyboardEvent.key has it."""
        more = {"key": key, "modifiers": 8 if shift else 0}
        if len(key) == 1:
            more["text"] = key
        self.call("Input.dispatchKeyEvent", type="keyDown", **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.settle()

    def choose(self, name: str, value: str) -> None:
        """Set a control of the page as a user would."""
        node = f"document.getElementById({json.dumps(name)})"
        self.run(
            f"{node}.value = {json.dumps(value)}; {node}.dispatchEvent(new Event('input'));"
            f"{node}.dispatchEvent(new Event('change'))"
        )
        self.settle()

    def text(self, name: str) -> str:
        """The text that a part of the page shows."""
        return self.run(f"document.getElementById({json.dumps(name)}).innerText")

    def screenshot(self, path: str | Path) -> None:
        """The page as it looks, as a PNG file."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        Path(path).write_bytes(base64.b64decode(data))

    def close(self) -> None:
        """Close the tab."""
        self.browser.call("Target.closeTarget", targetId=self.target)
