"""Chromium without a window, driven over a pipe by its DevTools protocol. Nothing listens on a port."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-headless-shell", "chromium-browser", "google-chrome", "chrome")


def found() -> str | None:
    """The browser's command, if there is one."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One page. `trouble`: what its console said of errors and warnings, and requests that failed or left the files."""

    def __init__(self, command: str) -> None:
        self._home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        ours_out, theirs_in = os.pipe()[::-1]
        theirs_out, ours_in = os.pipe()[::-1]
        # Chromium reads at 3 and writes at 4; fd 0 to 2 are its own.
        wrapped = f'exec 3<&{theirs_in} 4>&{theirs_out}; exec "$0" "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", wrapped, command, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             "--disable-background-networking", "--no-first-run", f"--user-data-dir={self._home.name}", "about:blank"],
            pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self._out, self._in = os.fdopen(ours_out, "wb", buffering=0), os.fdopen(ours_in, "rb", buffering=0)
        self._next, self._rest = 0, b""
        self._events: list[dict[str, Any]] = []
        self.trouble: list[str] = []
        targets = self.call("Target.getTargets", session=None)["targetInfos"]
        target = next(each["targetId"] for each in targets if each["type"] == "page")
        self._session: str = self.call("Target.attachToTarget", session=None, targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> "Browser":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._out.close()
        self._in.close()
        self._process.terminate()
        self._process.wait(20)
        self._home.cleanup()

    def call(self, method: str, session: str | None = "", **parameters: Any) -> dict[str, Any]:
        """The answer to a command of the protocol."""
        self._next += 1
        message: dict[str, Any] = {"id": self._next, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        while (said := self._read()).get("id") != message["id"]:
            self._heard(said)
        if "error" in said:
            raise RuntimeError(f"{method}: {said['error']}")
        result: dict[str, Any] = said.get("result", {})
        return result

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = self._in.read(1 << 16)
            if not more:
                raise RuntimeError("the browser has ended")
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def _heard(self, said: dict[str, Any]) -> None:
        self._events.append(said)
        method, parameters = said.get("method", ""), said.get("params", {})
        if method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.trouble.append(parameters["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.trouble.append(
                str(parameters["exceptionDetails"].get("exception", {}).get("description", "exception"))
            )
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.trouble.append(" ".join(str(each.get("value")) for each in parameters["args"]))
        elif method == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            if url.startswith(("http:", "https:", "ws:")):
                self.trouble.append(f"asks the network for {url}")
        elif method == "Network.loadingFailed" and not parameters.get("canceled"):
            self.trouble.append(f"not loaded: {parameters.get('errorText')}")

    def open(self, url: str) -> None:
        """Opens a page and waits until it is loaded."""
        self._events.clear()
        self.call("Page.navigate", url=url)
        self._until(lambda event: event.get("method") == "Page.loadEventFired")

    def _until(self, holds: Callable[[dict[str, Any]], bool]) -> None:
        while not any(map(holds, self._events)):
            self._heard(self._read())

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def wait(self, script: str, seconds: float = 20) -> bool:
        """Whether an expression becomes true within the page's own time."""
        end = f"Date.now() + {seconds * 1000}"
        look = f"({script}) ? done(true) : Date.now() > end ? done(false) : setTimeout(look, 50)"
        loop = f"new Promise(done => {{ const end = {end}; const look = () => {look}; look(); }})"
        return bool(self.run(loop))

    def key(self, name: str, code: int) -> None:
        """Presses a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code)

    def scheme(self, name: str) -> None:
        """What the system's user wants: light or dark."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def wide(self, width: int, height: int = 900) -> None:
        """A window of this size in pixels; a narrow one is a telephone's."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )

    def picture(self, path: Path, width: int = 1280, height: int = 900) -> None:
        """Writes what is seen as PNG."""
        import base64

        self.wide(width, height)
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def printed(self) -> bytes:
        """The page as PDF, as it would be printed."""
        import base64

        return base64.b64decode(self.call("Page.printToPDF")["data"])
