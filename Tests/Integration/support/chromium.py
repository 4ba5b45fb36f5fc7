"""Headless Chromium, which is sent nowhere but to its proxy."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

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

    def shows(self, url: str) -> str:
        """The document of a URL, as it is once the page has loaded; if it does not, why."""
        done = subprocess.run(
            ["chromium", *_FLAGS, f"--user-data-dir={self.folder}/profile",
             f"--proxy-server={self.proxy}", "--timeout=20000", "--dump-dom", url],
            env=clean_environment(
                HOME=str(self.folder), XDG_CONFIG_HOME=f"{self.folder}/config",
                XDG_CACHE_HOME=f"{self.folder}/cache", DBUS_SESSION_BUS_ADDRESS="disabled:"),
            cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=50 * SLOWDOWN)
        failure = re.search(r"Page load failed: (\S+)", done.stderr)
        if failure:
            return failure[1]
        assert done.returncode == 0 and done.stdout, done.stderr[-3000:]
        return done.stdout
