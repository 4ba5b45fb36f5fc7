"""Programs that speak HTTP in every language of `clients/`, each configured with its proxy, what
proves to it who they are, and the authority that it trusts, as its users tell it.

One takes the base of its URLs, a file, and steps `GET:/path` or `PUT:/path`, the latter with the
file as its content. It asks for them one after another, and prints the status of each answer, its
length and its SHA-256. When an answer does not come it prints why, and fails."""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from .wait import SLOWDOWN

SOURCES = Path(__file__).resolve().parents[1] / "clients"

# (status, length, SHA-256)
Answer = tuple[int, int, str]


def answer(body: bytes, status: int = 200) -> Answer:
    return status, len(body), hashlib.sha256(body).hexdigest()


@dataclass
class Settings:
    """The settings of a program."""

    folder: Path
    # Its URL, with user and password where it asks for them.
    proxy: str
    # The PEM file of the authority that it trusts; nil: the system's.
    authority: Path | None = None
    # A token for the proxy.
    bearer: str | None = None
    # The PEM file of a certificate for the proxy, with its key.
    certificate: Path | None = None

    @property
    def parts(self) -> SplitResult:
        return urlsplit(self.proxy)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of those who find their proxy in the environment."""
        found = {"HTTPS_PROXY": self.proxy, "http_proxy": self.proxy}
        if self.bearer:
            found["PROXY_TOKEN"] = self.bearer
        if self.certificate:
            found["PROXY_CERTIFICATE"] = str(self.certificate)
        return found


@dataclass
class Done:
    code: int
    answers: list[Answer]
    output: str


def clean_environment(**more: str) -> dict[str, str]:
    """The environment without the variables for proxies and trust."""
    names = ("CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "JAVA_TOOL_OPTIONS", "NODE_EXTRA_CA_CERTS",
             "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE")
    kept = {key: value for key, value in os.environ.items()
            if not key.lower().endswith("_proxy") and key not in names}
    return kept | more


def _run(settings: Settings, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=settings.folder, env=clean_environment(**env), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=30 * SLOWDOWN)


Program = Callable[[Settings, str, Path, list[str]], Done]


def _steps(command: Callable[[Settings], tuple[list[str], dict[str, str]]]) -> Program:
    """A program of `clients/`."""

    def run(settings: Settings, base: str, file: Path, steps: list[str]) -> Done:
        words, env = command(settings)
        done = _run(settings, *words, base, str(file), *steps, **env)
        answers = []
        for line in done.stdout.splitlines():
            status, length, digest = line.split()
            answers.append((int(status), int(length), digest))
        return Done(done.returncode, answers, done.stderr)

    return run


def _python(kind: str, variable: str) -> Program:
    def command(settings: Settings) -> tuple[list[str], dict[str, str]]:
        env = settings.environment
        if settings.authority:
            env[variable] = str(settings.authority)
        return [sys.executable, str(SOURCES / "client.py"), kind], env

    return _steps(command)


def _node(kind: str) -> Program:
    def command(settings: Settings) -> tuple[list[str], dict[str, str]]:
        # Debian's folder of modules; a node from elsewhere does not look there by itself.
        env = settings.environment | {"NODE_PATH": "/usr/share/nodejs"}
        if settings.authority:
            env["NODE_EXTRA_CA_CERTS"] = str(settings.authority)
        return ["node", str(SOURCES / "client.js"), kind], env

    return _steps(command)


# For a program of Java's that has ended before it would be worth optimizing.
_QUICK = "-XX:TieredStopAtLevel=1"


class Toolchains:
    """Builds the programs that need it, once for all the processes of a run, in `folder`."""

    def __init__(self, folder: Path):
        self.folder = folder

    def _built(self, name: str, *command: str, **env: str) -> Path:
        """What `command` makes at the path that it is given for `{}`; from the second time on it
        is there."""
        target = self.folder / name
        with (self.folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                unfinished = self.folder / f"{name}.unfinished"
                words = [word.format(unfinished) for word in command]
                subprocess.run(words, check=True, timeout=90 * SLOWDOWN,
                               env=clean_environment(**env))
                unfinished.rename(target)
        return target

    def java(self, settings: Settings) -> tuple[list[str], dict[str, str]]:
        classes = self._built("java-client", "javac", f"-J{_QUICK}", "-d", "{}",
                              str(SOURCES / "Client.java"))
        words = ["java", _QUICK]
        for scheme in ("http", "https"):
            words += [f"-D{scheme}.proxyHost={settings.parts.hostname}",
                      f"-D{scheme}.proxyPort={settings.parts.port}"]
        if settings.parts.username:
            # For CONNECT, Basic is off until somebody turns it on.
            words.append("-Djdk.http.auth.tunneling.disabledSchemes=")
        if settings.authority:
            store = settings.folder / "trusted.p12"
            done = _run(settings, "keytool", f"-J{_QUICK}", "-importcert", "-noprompt", "-keystore",
                        str(store), "-storepass", "changeit", "-alias", "pinfold", "-file",
                        str(settings.authority))
            assert done.returncode == 0, done.stdout + done.stderr
            words += [f"-Djavax.net.ssl.trustStore={store}",
                      "-Djavax.net.ssl.trustStorePassword=changeit"]
        return [*words, "-cp", str(classes), "Client"], settings.environment

    def go_program(self, name: str, source: Path) -> Path:
        return self._built(name, "go", "build", "-o", "{}", str(source),
                           GOCACHE=str(self.folder / "go-cache"), GO111MODULE="off",
                           GOTOOLCHAIN="local")

    def go(self, settings: Settings) -> tuple[list[str], dict[str, str]]:
        program = self.go_program("go-client", SOURCES / "client.go")
        env = settings.environment
        if settings.authority:
            env["SSL_CERT_FILE"] = str(settings.authority)
        return [str(program)], env

    @property
    def programs(self) -> dict[str, Program]:
        return {
            "curl": curl, "wget": wget,
            "requests": _python("requests", "REQUESTS_CA_BUNDLE"),
            "httpx": _python("httpx", "SSL_CERT_FILE"),
            "httpx-async": _python("httpx-async", "SSL_CERT_FILE"),
            "node-https": _node("https"), "node-undici": _node("undici"),
            "java": _steps(self.java), "go": _steps(self.go),
        }


def curl(settings: Settings, base: str, file: Path, steps: list[str]) -> Done:
    words, files = ["curl", "-q", "-sS", "--max-time", "20"], []
    for number, step in enumerate(steps):
        method, _, path = step.partition(":")
        files.append(settings.folder / f"curl-{number}")
        words += ["--next", "-sS", "--fail"] if number else ["--fail"]
        words += ["-w", "%{http_code}\n", "-o", str(files[-1])]
        if settings.authority:
            words += ["--cacert", str(settings.authority), "--proxy-cacert", str(settings.authority)]
        if settings.bearer:
            words += ["--proxy-header", f"Proxy-Authorization: Bearer {settings.bearer}"]
        if settings.certificate:
            words += ["--proxy-cert", str(settings.certificate)]
        words += ["-T", str(file)] if method == "PUT" else []
        words.append(base + path)
    done = _run(settings, *words, **settings.environment)
    if done.returncode:
        return Done(done.returncode, [], done.stderr)
    answers = [answer(made.read_bytes(), int(status))
               for status, made in zip(done.stdout.split(), files)]
    return Done(0, answers, done.stderr)


def wget(settings: Settings, base: str, file: Path, steps: list[str]) -> Done:
    """One process asks for what follows upon each other with one method."""
    trusted = [f"--ca-certificate={settings.authority}"] if settings.authority else []
    found = Done(0, [], "")
    target = settings.folder / "wget"
    for method, group in itertools.groupby(steps, lambda step: step.partition(":")[0]):
        paths = [step.partition(":")[2] for step in group]
        body = ["--method=PUT", f"--body-file={file}"] if method == "PUT" else []
        done = _run(settings, "wget", "--no-config", "-nv", "--no-hsts", "--tries=1", "--timeout=20",
                    "-x", "-nH", "-P", str(target), "--content-on-error", *trusted, *body,
                    *[base + path for path in paths], http_proxy=settings.proxy,
                    https_proxy=settings.proxy)
        found.output += done.stderr
        if done.returncode:
            found.code = done.returncode
            break
        found.answers += [answer((target / path[1:]).read_bytes()) for path in paths]
    return found
