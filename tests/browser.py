"""Chromium without a window, told what to do by the DevTools protocol over pipes."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

#: `.ci/more` sets it: a browser takes seconds to start, and not every machine has one
PROGRAM = os.environ.get("KPROBES_CHROMIUM")


class Browser:
    """A page in a browser. A context manager."""

    def __init__(self, folder: Path) -> None:
        if PROGRAM is None:
            pytest.skip("KPROBES_CHROMIUM names no browser: apt-get install chromium")
        ours, theirs = os.pipe(), os.pipe()
        words = [PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"]
        # the protocol is on descriptors 3 and 4
        shell = f'exec 3<&{ours[0]} 4>&{theirs[1]}; exec "$@"'
        self._process = subprocess.Popen(["bash", "-c", shell, "bash", *words], pass_fds=(ours[0], theirs[1]),
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(ours[0])
        os.close(theirs[1])
        self._write, self._read = os.fdopen(ours[1], "wb", 0), os.fdopen(theirs[0], "rb")
        self._number, self._session, self._left = 0, "", b""
        self.requests: list[str] = []
        self.errors: list[str] = []
        target = self.do("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.do("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.do(f"{domain}.enable")

    def do(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command, and wait for its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._write.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            more = os.read(self._read.fileno(), 1 << 20)
            assert more, "the browser has ended"
            self._left += more
        text, _, self._left = self._left.partition(b"\0")
        found = dict(json.loads(text))
        if found.get("method") == "Network.requestWillBeSent":
            self.requests.append(found["params"]["request"]["url"])
        elif found.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.errors.append(str(found["params"]))
        return found

    def show(self, address: str, width: int, height: int, dark: bool = False,
             ready: str = "document.documentElement?.dataset.ready === 'yes'") -> None:
        """Open a page in a window of this size, and wait until it is drawn: until `ready` is true."""
        self.do("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.do("Emulation.setEmulatedMedia", features=[scheme])
        self.do("Page.navigate", url="about:blank")
        self.do("Page.navigate", url=address)
        self.wait(ready)

    def ask(self, script: str) -> Any:
        """The value of an expression."""
        result = self.do("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, script: str) -> None:
        """Until an expression is true."""
        for _ in range(400):
            if self.ask(script):
                return
            self.ask("new Promise(done => setTimeout(done, 25))")
        raise AssertionError(script)

    def press(self, key: str) -> None:
        """A key, as from a keyboard."""
        text = {"text": key} if len(key) == 1 else {}
        self.do("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.do("Input.dispatchKeyEvent", type="keyUp", key=key)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """A mouse event."""
        self.do("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x: float, y: float) -> None:
        """With the first button."""
        self.mouse("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def picture(self, path: Path) -> None:
        """A screenshot."""
        path.write_bytes(base64.b64decode(self.do("Page.captureScreenshot", format="png")["data"]))

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        self._write.close()
        self._read.close()
