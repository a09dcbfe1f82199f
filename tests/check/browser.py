"""A headless Chromium, driven over the DevTools protocol."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import Request, urlopen

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync")
FLAGS += ("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage")
FLAGS += ("--remote-debugging-port=0",)


def find() -> str | None:
    """The browser on the path, if there is one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Tab:
    """A tab of the browser; it keeps what the page logs and which addresses it fetches."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._number = 0
        self.problems: list[str] = []
        self.fetched: list[str] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.do(f"{domain}.enable")

    def do(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=300))
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        what, details = message.get("method"), message.get("params", {})
        if what == "Network.requestWillBeSent":
            self.fetched.append(details["request"]["url"])
        elif what == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(details["exceptionDetails"]))
        elif what == "Log.entryAdded" and details["entry"]["level"] == "error":
            self.problems.append(details["entry"]["text"])

    def value(self, expression: str) -> Any:
        """The value of an expression in the page."""
        found = self.do("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, expression: str, seconds: float = 300) -> Any:
        """The value of an expression as soon as it is true."""
        end = time.monotonic() + seconds
        while not (found := self.value(expression)):
            assert time.monotonic() < end, f"not within {seconds} s: {expression}"
            time.sleep(0.02)
        return found

    def open(self, url: str) -> None:
        """Go to a page and wait until it is there."""
        self.do("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def type(self, text: str) -> None:
        """Type into whatever has the focus."""
        self.do("Input.insertText", text=text)

    def press(self, key: str, *, control: bool = False) -> None:
        """Press a key."""
        codes = {"Enter": 13, "Tab": 9, " ": 32}
        event = {"key": key, "code": {" ": "Space"}.get(key, key), "windowsVirtualKeyCode": codes[key]}
        typed = {"Enter": "\r", " ": " "}.get(key)
        if typed is not None and not control:
            event["text"] = typed
        self.do("Input.dispatchKeyEvent", type="keyDown", modifiers=2 if control else 0, **event)
        self.do("Input.dispatchKeyEvent", type="keyUp", modifiers=2 if control else 0, **event)

    def click(self, selector: str) -> None:
        """Click in the middle of an element, as a mouse does."""
        box = self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView();"
            "const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2] })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.do("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def show_as(self, scheme: str) -> None:
        """What a person prefers: "light" or "dark"."""
        self.do("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def resize(self, width: int, height: int) -> None:
        """The size of the window."""
        self.do(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )


@contextmanager
def tab() -> Iterator[Tab]:
    """A tab of a new browser with an empty profile, which ends with the block."""
    from websockets.sync.client import connect

    program = find()
    assert program is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"], stderr=subprocess.PIPE, text=True
        )
        try:
            assert process.stderr is not None
            lines = iter(process.stderr.readline, "")
            found = next((m for line in lines if (m := re.search(r"ws://([\w.:]+)/", line))), None)
            assert found is not None, "the browser did not start"
            made = Request(f"http://{found[1]}/json/new?about:blank", method="PUT")
            with urlopen(made, timeout=300) as reply:
                address = json.loads(reply.read())["webSocketDebuggerUrl"]
            with connect(address, max_size=None, proxy=None) as socket:
                yield Tab(socket)
        finally:
            process.kill()
            process.communicate()
