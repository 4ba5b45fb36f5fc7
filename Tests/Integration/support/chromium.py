"""Headless Chromium, which is sent nowhere but to its proxy."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from websockets.sync.client import ClientConnection, connect

from .programs import clean_environment
from .wait import SLOWDOWN

# It runs as root and in containers, without anybody at the screen. Of its own accord it asks for as
# little as can be, and for that, too, at the proxy: it looks up no name itself.
_FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--mute-audio",
    "--no-first-run", "--no-default-browser-check", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-domain-reliability",
    "--disable-client-side-phishing-detection", "--disable-default-apps", "--disable-extensions",
    "--disable-breakpad", "--metrics-recording-only", "--no-pings", "--disable-quic",
    "--disable-field-trial-config", "--disable-variations-seed-fetch",
    "--disable-features=OptimizationHints,MediaRouter,DialMediaRouteProvider,Translate,"
    "AutofillServerCommunication,CertificateTransparencyComponentUpdater,AsyncDns,DnsOverHttps,"
    "NetworkTimeServiceQuerying,InterestFeedContentSuggestions,SegmentationPlatform",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--password-store=basic",
    "--host-resolver-rules=MAP proxy.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


class Chromium:
    """A browser with a profile of its own in `folder`, which trusts `authorities` (PEM files)."""

    def __init__(self, folder: Path, proxy: str, authorities: Iterable[Path]):
        self.folder, self.proxy = folder, proxy
        store = folder / ".pki" / "nssdb"
        store.mkdir(parents=True)
        self._certutil("-N", "--empty-password")
        for file in authorities:
            self._certutil("-A", "-t", "C,,", "-n", file.name, "-i", str(file))

    def _certutil(self, *arguments: str) -> None:
        subprocess.run(["certutil", "-d", f"sql:{self.folder}/.pki/nssdb", *arguments], check=True,
                       capture_output=True, timeout=30 * SLOWDOWN)

    @property
    def _command(self) -> list[str]:
        return ["chromium", *_FLAGS, f"--user-data-dir={self.folder}/profile",
                f"--proxy-server={self.proxy}"]

    @property
    def _environment(self) -> dict[str, str]:
        return clean_environment(
            HOME=str(self.folder), XDG_CONFIG_HOME=f"{self.folder}/config",
            XDG_CACHE_HOME=f"{self.folder}/cache", DBUS_SESSION_BUS_ADDRESS="disabled:")

    def shows(self, url: str) -> str:
        """The document of a URL, as it is once the page has loaded; if it does not, why."""
        done = subprocess.run(
            [*self._command, "--timeout=20000", "--dump-dom", url], env=self._environment,
            cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=50 * SLOWDOWN)
        failure = re.search(r"Page load failed: (\S+)", done.stderr)
        if failure:
            return failure[1]
        assert done.returncode == 0 and done.stdout, done.stderr[-3000:]
        return done.stdout

    @contextlib.contextmanager
    def session(self) -> Iterator[BrowserSession]:
        """A browser that stays open, and whose user answers its questions."""
        with self.connection() as connection:
            yield BrowserSession(connection)

    @contextlib.contextmanager
    def connection(self) -> Iterator[ClientConnection]:
        """A connection to the developer's tools of a browser that stays open."""
        browser = subprocess.Popen(
            [*self._command, "--remote-debugging-port=0", "about:blank"], env=self._environment,
            cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        try:
            assert browser.stderr is not None
            address = next(found[1] for line in browser.stderr
                           if (found := re.search(r"DevTools listening on (ws://\S+)", line)))
            with connect(address, proxy=None, max_size=None) as connection:
                yield connection
        finally:
            browser.terminate()
            browser.communicate(timeout=20 * SLOWDOWN)


class BrowserSession:
    """A page of a browser, by the Chrome DevTools Protocol. `asked` has the realms of the proxies
    that wanted to know who the user is; unless `answers`, no request waits for this side."""

    def __init__(self, connection: ClientConnection, answers: bool = True):
        self.connection = connection
        self.asked: list[str] = []
        self._numbers = itertools.count(1)
        self._session: str | None = None
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call(
            "Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._call("Page.enable")
        if answers:
            self._call("Fetch.enable", handleAuthRequests=True)

    def shows(self, url: str, credentials: tuple[str, str] | None) -> str:
        """The document of a URL, as it is once the page has loaded or failed to. Its user answers
        the first question with the credentials, and cancels if he is asked again."""
        self._credentials = credentials
        self._has_loaded = False
        self._call("Page.navigate", url=url)
        while not self._has_loaded:
            self._handle(self._receive())
        return self._call("Runtime.evaluate",
                          expression="document.documentElement.outerHTML")["result"]["value"]

    def _send(self, method: str, **parameters: object) -> int:
        message = {"id": next(self._numbers), "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self.connection.send(json.dumps(message))
        return message["id"]

    def _receive(self) -> dict:
        return json.loads(self.connection.recv(timeout=30 * SLOWDOWN))

    def _call(self, method: str, **parameters: object) -> dict:
        number = self._send(method, **parameters)
        while (message := self._receive()).get("id") != number:
            self._handle(message)
        assert "error" not in message, (method, message)
        return message["result"]

    def _handle(self, message: dict) -> None:
        event = message.get("params", {})
        match message.get("method"):
            case "Fetch.requestPaused":
                self._send("Fetch.continueRequest", requestId=event["requestId"])
            case "Fetch.authRequired":
                self.asked.append(event["authChallenge"]["realm"])
                answer: dict[str, str] = {"response": "CancelAuth"}
                if self._credentials:
                    user, password = self._credentials
                    answer = {"response": "ProvideCredentials", "username": user,
                              "password": password}
                    self._credentials = None
                self._send("Fetch.continueWithAuth", requestId=event["requestId"],
                           authChallengeResponse=answer)
            case "Page.loadEventFired":
                self._has_loaded = True
