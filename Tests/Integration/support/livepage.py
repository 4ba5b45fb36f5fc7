"""The live page in a browser, seen and used as a person would."""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path

from websockets.sync.client import ClientConnection

from .chromium import BrowserSession, Chromium
from .wait import until

# How long a test waits for what is to be seen, in seconds: a browser beside many other tests is slow.
PATIENCE = 60

# Where the keyboard's keys are, for the browser: the name of each and what it writes.
_KEYS = {"Enter": "\r", "Escape": ""}


class LivePage(BrowserSession):
    """A tab with the page. `problems` has what the browser complained about: exceptions of the
    scripts, errors on the console, violations of the Content-Security-Policy. `dialogs` counts what
    a script of a server's would have opened."""

    def __init__(self, connection: ClientConnection):
        self.problems: list[str] = []
        self.dialogs = 0
        super().__init__(connection, answers=False)
        for domain in ("Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def _handle(self, message: dict) -> None:
        event = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                details = event["exceptionDetails"]
                self.problems.append(
                    details.get("exception", {}).get("description", details["text"]))
            case "Log.entryAdded" if event["entry"]["level"] == "error":
                # A resource that answers with an error, or not at all, is no fault of the page's.
                if event["entry"]["source"] != "network":
                    self.problems.append(event["entry"]["text"])
            case "Runtime.consoleAPICalled" if event["type"] in ("error", "assert", "warning"):
                self.problems.append(json.dumps(event["args"]))
            case "Page.javascriptDialogOpening":
                self.dialogs += 1
                self._send("Page.handleJavaScriptDialog", accept=False)
            case _:
                super()._handle(message)

    def open(self, url: str) -> None:
        self._has_loaded = False
        self._call("Page.navigate", url=url)
        while not self._has_loaded:
            self._handle(self._receive())

    def evaluate(self, expression: str) -> object:
        """The value of an expression; a promise is waited for."""
        result = self._call("Runtime.evaluate", expression=expression, returnByValue=True,
                            awaitPromise=True, userGesture=True)
        assert "exceptionDetails" not in result, (expression, result["exceptionDetails"])
        return result["result"].get("value")

    def text(self, selector: str = "body") -> str:
        """What a person reads there; nothing if there is no such element."""
        return str(self.evaluate(
            f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def wait_text(self, wanted: str, selector: str = "body", timeout: float = PATIENCE) -> str:
        def seen() -> str:
            text = self.text(selector)
            return text if wanted in text else ""

        return until(
            seen, lambda: f"{wanted!r} in {selector}:\n{self.text()}\n{self.problems}", timeout)

    def wait_panel(self, panel: str) -> str:
        """What a panel shows, once it is there and has its answers."""
        def seen() -> str:
            is_there = self.evaluate("document.body.dataset.panel") == panel
            text = self.text("main")
            return text if is_there and "Asking the gateway" not in text else ""

        return until(seen, lambda: f"panel {panel}:\n{self.text()}\n{self.problems}", PATIENCE)

    def figures(self) -> dict[str, str]:
        """The line of figures: each by its name."""
        return json.loads(str(self.evaluate("""JSON.stringify(Object.fromEntries(
            [...document.querySelectorAll('#figures li')].map((one) =>
                [one.querySelector('.name').innerText, one.querySelector('.value').innerText.trim()])))""")))

    def times_asked(self, path: str) -> int:
        """How often the page has asked the gateway for what begins with this path."""
        return int(str(self.evaluate(f"""performance.getEntriesByType('resource').filter((one) =>
            new URL(one.name).pathname.startsWith({json.dumps(path)})).length""")))

    def go(self, place: str) -> None:
        """To a place on the page, such as `flows?host=a`."""
        self.evaluate(f"location.hash = {json.dumps('#' + place)}")

    @property
    def place(self) -> str:
        return str(self.evaluate("location.hash.slice(1)"))

    def press(self, *keys: str) -> None:
        for key in keys:
            text = _KEYS.get(key, key)
            for kind in ("keyDown", "keyUp"):
                pressed = {"type": kind, "key": key}
                if kind == "keyDown" and text:
                    pressed["text"] = text
                self._call("Input.dispatchKeyEvent", **pressed)

    def type(self, text: str) -> None:
        self._call("Input.insertText", text=text)

    def click(self, words: str, selector: str = "button, a") -> None:
        """Clicks what has these words on it."""
        done = self.evaluate(f"""(() => {{
            const one = [...document.querySelectorAll({json.dumps(selector)})]
                .find((each) => each.textContent.includes({json.dumps(words)}));
            one?.click();
            return one !== undefined;
        }})()""")
        assert done, f"nothing to click with {words!r}:\n{self.text()}"

    def looks(self, width: int, height: int = 900, scheme: str = "light") -> None:
        """How large the window is, and which colours its user prefers."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                   deviceScaleFactor=1, mobile=False)
        self._call("Emulation.setEmulatedMedia",
                   features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, file: Path) -> None:
        shown = self._call("Page.captureScreenshot", format="png")
        file.write_bytes(base64.b64decode(shown["data"]))

    @property
    def sideways(self) -> int:
        """By how many pixels the page is wider than its window."""
        return max(0, int(str(self.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"))))

    def barriers(self) -> list[str]:
        """What axe finds that keeps somebody out: each rule with the elements that break it."""
        spec = importlib.util.find_spec("axe_core_python")
        assert spec is not None and spec.submodule_search_locations, "axe-core-python is missing"
        script = Path(spec.submodule_search_locations[0]) / "axe.min.js"
        self.evaluate(script.read_text() + "; true")
        found = self.evaluate("""axe.run(document, {
            runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
            // Addresses of panels begin with # and are no places within the page: where the
            // narrow navigation has scrolled them out of sight, they would count as skip links.
            rules: {"skip-link": {enabled: false}},
        }).then((result) => JSON.stringify(result.violations.map((rule) =>
            `${rule.id}: ` + rule.nodes.slice(0, 5).map((node) => `${node.target} ${node.html.slice(0, 200)} `
                + node.failureSummary).join("; "))))""")
        return json.loads(str(found))


@contextlib.contextmanager
def live_page(folder: Path) -> Iterator[LivePage]:
    """A browser with an empty tab. It asks the machine's own addresses without a proxy, and gets
    nothing else: what it asks for of its own accord is no traffic of a gateway's."""
    folder.mkdir(exist_ok=True)
    with Chromium(folder, "http://127.0.0.1:9", []).connection() as connection:
        yield LivePage(connection)
