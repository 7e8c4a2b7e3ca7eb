"""A headless Chromium for tests, driven by its DevTools protocol over a pair of pipes: no socket, no further package.

with browser(tmp_path) as chrome:
    page = chrome.open(path)
    page.run("document.title")
    page.press("#rules th button", "Enter")
    assert page.complaints() == []
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 120.0  # seconds for one answer: a busy machine is no reason to fail
KEYS = {"Enter": (13, "\r"), " ": (32, " "), "Tab": (9, "")}
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # tests run as root in containers, where its own sandbox can't
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def installed() -> str | None:
    """Path of a Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


needs_browser = pytest.mark.skipif(
    installed() is None, reason=f"found none of {', '.join(NAMES)}: install Debian's package chromium to run this"
)


class Browser:
    """One running Chromium."""

    def __init__(self, profile: Path) -> None:
        commands_in, self._commands = os.pipe()
        self._answers, answers_out = os.pipe()
        # The protocol is spoken on the descriptors 3 and 4; moved high first, for either may be in the other's place.
        moved = 'exec 8<&"$1" 9>&"$2" && exec 3<&8 4>&9 && shift 2 && exec "$@"'
        program = [str(installed()), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", moved, "browser", str(commands_in), str(answers_out), *program],
            pass_fds=(commands_in, answers_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands_in)
        os.close(answers_out)
        self._number = 0
        self._unread = b""
        self.events: list[dict[str, Any]] = []

    def ask(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """The result of one command; what the browser tells in between is kept as `events`."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._number:
                if "error" in told:
                    raise AssertionError(f"the browser refused {method}: {told['error']}")
                result: dict[str, Any] = told["result"]
                return result
            self.events.append(told)

    def wait_for(self, method: str, session: str) -> None:
        """Until the browser has told of an event; one told earlier is not counted again."""
        while not any(one.get("method") == method and one.get("sessionId") == session for one in self.events):
            self.events.append(self._next())
        self.events = [one for one in self.events if one.get("method") != method]

    def open(self, path: Path, *, scripts: bool = True) -> Page:
        """A page from a file, loaded."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.ask(f"{domain}.enable")
        if not scripts:
            page.ask("Emulation.setScriptExecutionDisabled", value=True)
        page.ask("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("Page.loadEventFired", session)
        return page

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(OSError):
            os.write(self._commands, b'{"id":0,"method":"Browser.close"}\0')
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._commands)
        os.close(self._answers)

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._answers], [], [], max(end - time.monotonic(), 0))
            read = os.read(self._answers, 1 << 20) if ready else b""
            if not read:
                raise AssertionError(f"the browser said nothing for {PATIENCE:.0f} s" if not ready else "it ended")
            self._unread += read
        message, _, self._unread = self._unread.partition(b"\0")
        told: dict[str, Any] = json.loads(message)
        return told


class Page:
    """One page of a browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser, self.session = browser, session

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of one command to this page."""
        return self.browser.ask(method, self.session, **parameters)

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, selector: str, key: str) -> None:
        """Put the focus on an element and press a key, as a person without a mouse does."""
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        code, text = KEYS[key]
        named = {"key": key, "windowsVirtualKeyCode": code, "code": "Space" if key == " " else key}
        self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **named)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **named)

    def type(self, selector: str, text: str) -> None:
        """Put the focus on an element and type into it."""
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        self.ask("Input.insertText", text=text)

    def look(self, width: int, height: int, scheme: str = "light", media: str = "screen") -> None:
        """Set the size of the window, the colour scheme, and screen or print."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme_feature = {"name": "prefers-color-scheme", "value": scheme}
        self.ask("Emulation.setEmulatedMedia", media=media, features=[scheme_feature])

    def picture(self, path: Path, *, whole: bool = False) -> Path:
        """A PNG of what the window shows, or of the whole page."""
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", captureBeyondViewport=whole)["data"]))
        return path

    def printed(self) -> bytes:
        """The page as a PDF."""
        return base64.b64decode(self.ask("Page.printToPDF", printBackground=True)["data"])

    def complaints(self) -> list[str]:
        """Every error and warning of the console so far, and every address that the page asked the network for."""
        self.run("0")  # whatever was told before this is read by now
        found = [_complaint(one) for one in self.browser.events if one.get("sessionId") == self.session]
        return [text for text in found if text]


def _complaint(event: dict[str, Any]) -> str:
    told = event.get("params", {})
    match event.get("method"):
        case "Runtime.exceptionThrown":
            return f"exception: {told['exceptionDetails'].get('exception', {}).get('description', told)}"
        case "Runtime.consoleAPICalled" if told["type"] in ("error", "warning", "assert"):
            return f"console.{told['type']}: {told['args']}"
        case "Log.entryAdded" if told["entry"]["level"] in ("error", "warning"):
            return f"log: {told['entry']['text']} {told['entry'].get('url', '')}"
        case "Network.requestWillBeSent" if not told["request"]["url"].startswith(("file:", "data:", "about:")):
            return f"request: {told['request']['url']}"
    return ""


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A Chromium with a profile of its own in a folder, ended whatever happens."""
    running = Browser(profile)
    try:
        yield running
    finally:
        running.close()
