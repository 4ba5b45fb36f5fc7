#!/usr/bin/env python3
"""What deploy/package-test does, in namespaces of its own for mounts and processes."""

from __future__ import annotations

import contextlib
import ctypes
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import handover
from handover import expect, until
from support.askers import Clients

CONFIGURATION = "etc/pinfold/pinfold.yaml"
LOG = "var/log/pinfold/access.log"
ALLOWED = handover.ALLOWED
BODY = b"from the server behind the gateway\n"
CLONE_NEWNET = 0x40000000


def say(text: str) -> None:
    print(f"==> {text}", flush=True)


def run(*command: str | Path, **options: Any) -> str:
    """The command's output; the test ends if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **options)
    if done.returncode:
        print(done.stdout, file=sys.stderr)
        raise SystemExit(f"error: {' '.join(map(str, command))} ended with {done.returncode}")
    return done.stdout


class Root:
    """A folder that programs run in as in a root of their own."""

    def __init__(self, path: Path, environment: dict[str, str] | None = None) -> None:
        self.path = path
        self.environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
                            "DEBIAN_FRONTEND": "noninteractive"} | (environment or {})

    def command(self, *command: str, user: str = "0:0") -> list[str]:
        return ["setpriv", "--no-new-privs", "/usr/sbin/chroot", f"--userspec={user}",
                f"--groups={user.split(':')[1]}", str(self.path), *command]

    def __call__(self, *command: str, user: str = "0:0") -> str:
        return run(*self.command(*command, user=user), env=self.environment)

    def mount(self, kind: str, at: str, *options: str) -> None:
        run("mount", "-t", kind, *options, kind, self.path / at)

    def user(self, name: str) -> str | None:
        """`uid:gid`, from its database."""
        found = re.search(rf"^{name}:[^:]*:(\d+):(\d+):", (self.path / "etc/passwd").read_text(),
                          re.MULTILINE)
        return f"{found[1]}:{found[2]}" if found else None


class Server(BaseHTTPRequestHandler):
    """What the gateway is to fetch from."""

    def do_GET(self) -> None:  # noqa: N802 (the name is the library's)
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


def leave_network() -> HTTPServer:
    """From here on there is only this process's own loopback, with a server on it."""
    libc = ctypes.CDLL(None, use_errno=True)
    expect(libc.unshare(CLONE_NEWNET) == 0, "no network namespace could be made")
    run("ip", "link", "set", "lo", "up")
    server = HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@contextlib.contextmanager
def running(root: Root, command: list[str], user: str) -> Iterator[subprocess.Popen[bytes]]:
    """A gateway, which has to end well when it is told to."""
    log = tempfile.TemporaryFile()
    process = subprocess.Popen(root.command(*command, user=user), env=root.environment,
                               stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            ready = subprocess.run(root.command(command[0], "get", "-s",
                                                "http://127.0.0.1:9090/readyz", user=user),
                                   env=root.environment, capture_output=True)
            if ready.returncode == 0:
                break
        else:
            log.seek(0)
            raise SystemExit(f"error: the gateway is not ready: {log.read().decode()}")
        yield process
        process.terminate()
        expect(process.wait(60) == 0, f"the gateway ended with {process.returncode}")
    finally:
        process.kill()
        process.wait()
        log.close()


def fetched(root: Root, program: str, server: HTTPServer, user: str) -> None:
    """One request through the gateway."""
    body = root(program, "get", "-s", "--proxy", "http://127.0.0.1:8080",
                f"http://127.0.0.1:{server.server_port}/", user=user)
    expect(body == BODY.decode(), f"through the gateway came {body!r}")


def one(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    expect(len(found) == 1, f"there is not one {pattern} in {folder}: {found}")
    return found[0]


def lintian(changes: Path) -> None:
    done = subprocess.run(["lintian", "--fail-on", "error", "--no-cfg",
                           "--display-info", "--allow-root", changes], capture_output=True, text=True)
    print(done.stdout + done.stderr, end="")
    expect(done.returncode == 0, "lintian found errors")
    say("lintian finds no error")


def bootstrapped(folder: Path) -> Root:
    """Debian with nothing but what is required, and this machine's sources of packages."""
    root = Root(folder)
    run("debootstrap", "--variant=minbase", "bookworm", folder)
    for path in (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/resolv.conf")):
        if path.exists():
            shutil.copy(path, folder / str(path).lstrip("/"))
    if (folder / "etc/apt/sources.list.d/debian.sources").exists():
        (folder / "etc/apt/sources.list").unlink()
    settings = run("apt-config", "dump", "Acquire")
    (folder / "etc/apt/apt.conf.d/90host").write_text(
        "\n".join(line for line in settings.splitlines() if '"' in line))
    root.mount("proc", "proc")
    root.mount("tmpfs", "run")
    # No service is started: there is nothing that could.
    policy = folder / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    root("apt-get", "update", "--quiet")
    # For the upgrade under load.
    root("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "systemd")
    return root


def mode(root: Root, path: str) -> tuple[str, str]:
    status = (root.path / path).stat()
    return f"{status.st_uid}:{status.st_gid}", oct(status.st_mode & 0o7777)


def unit(root: Root) -> tuple[list[str], str]:
    """The command of the unit, and its user."""
    text = (root.path / "lib/systemd/system/pinfold.service").read_text()
    command = re.search(r"^ExecStart=[-:+!@]*(.*)$", text, re.MULTILINE)
    name = re.search(r"^User=(.*)$", text, re.MULTILINE)
    user = root.user(name[1]) if name else None
    if not command or not user:
        raise SystemExit("error: the unit has no ExecStart, or no User that exists")
    return command[1].split(), user


def rotated(root: Root, gateway: subprocess.Popen[bytes], user: str) -> None:
    """Rotates the access log as cron would, and says so to the gateway in place of systemd."""
    log, old = root.path / LOG, root.path / f"{LOG}.1"
    until(lambda: log.exists() and log.stat().st_size, "there is no access log")
    root("logrotate", "--force", "/etc/logrotate.d/pinfold")
    expect(old.stat().st_size and not log.stat().st_size, "the access log was not rotated")
    expect(mode(root, LOG) == (user, "0o640"), f"{LOG}: {mode(root, LOG)}")
    gateway.send_signal(signal.SIGUSR1)


def higher(package: Path, work: Path) -> Path:
    """The same package with a higher version."""
    run("dpkg-deb", "--raw-extract", package, work / "raw")
    control = work / "raw/DEBIAN/control"
    control.write_text(re.sub(r"^Version: (.*)$", r"Version: \1+later", control.read_text(),
                              flags=re.MULTILINE))
    run("dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", work / "raw", work / "later.deb")
    return work / "later.deb"


def left(root: Root) -> list[str]:
    """Files that have the package's name or nobody's, besides logs of what was installed."""
    named = root("find", "/", "-xdev", "(", "-name", "*pinfold*", "-o", "-nouser", "-o", "-nogroup",
                 ")", "-not", "-path", "/proc/*")
    return named.splitlines()


def package(root: Root, deb: Path, later: Path) -> HTTPServer:
    """Installs, runs, upgrades, removes and purges it. Leaves the network."""
    shutil.copy(deb, root.path / "root/pinfold.deb")
    expect(not [p for p in left(root) if p != "/root/pinfold.deb"], f"first: {left(root)}")
    began = time.monotonic()
    root("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "/root/pinfold.deb")
    installed = time.monotonic()
    root("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "logrotate")
    command, user = unit(root)
    expect(mode(root, "var/lib/pinfold") == (user, "0o700"), "/var/lib/pinfold: wrong mode")
    expect(mode(root, "var/log/pinfold") == (user, "0o2750"), "/var/log/pinfold: wrong mode")
    expect(mode(root, CONFIGURATION) == ("0:0", "0o644"), "the configuration: wrong mode")
    root("pinfold", "check", "--config", f"/{CONFIGURATION}", user=user)
    server = leave_network()
    configuration = root.path / CONFIGURATION
    configuration.write_text(configuration.read_text().replace(
        "access: none", f"access: {{ path: /{LOG}, format: json }}") + ALLOWED)
    started = time.monotonic()
    with running(root, command, user) as process:
        fetched(root, "pinfold", server, user)
        say(f"installed in {installed - began:.1f} s, started and answered in "
            f"{time.monotonic() - started:.2f} s: {root('pinfold', '--version').strip()}")
        rotated(root, process, user)
        fetched(root, "pinfold", server, user)
        until(lambda: (root.path / LOG).stat().st_size > 0, "nothing is logged after the rotation")
    for shell, path in (("bash", "usr/share/bash-completion/completions/pinfold"),
                        ("zsh", "usr/share/zsh/vendor-completions/_pinfold"),
                        ("fish", "usr/share/fish/vendor_completions.d/pinfold.fish")):
        expect((root.path / path).stat().st_size > 1000, f"no completions for {shell}")
    kept = sorted(p.name for p in (root.path / "var/lib/pinfold").iterdir())
    shutil.copy(later, root.path / "root/later.deb")
    before = root("dpkg-query", "-W", "-f", "${Version}", "pinfold")
    root("dpkg", "--install", "/root/later.deb")
    expect(root("dpkg-query", "-W", "-f", "${Version}", "pinfold") != before, "not upgraded")
    expect(ALLOWED in configuration.read_text(), "the upgrade changed the configuration")
    expect(sorted(p.name for p in (root.path / "var/lib/pinfold").iterdir()) == kept and kept,
           "the upgrade changed the state")
    with running(root, command, user):
        fetched(root, "pinfold", server, user)
    say(f"upgraded, with configuration and state ({', '.join(kept)}) kept")
    root("dpkg", "--remove", "pinfold")
    expect(configuration.exists() and not (root.path / "usr/bin/pinfold").exists(), "not removed")
    root("dpkg", "--purge", "pinfold")
    for name in ("pinfold.deb", "later.deb"):
        (root.path / "root" / name).unlink()
    expect(not left(root), f"left after the purge: {left(root)}")
    for database in ("passwd", "group", "shadow", "gshadow"):
        expect("pinfold" not in (root.path / "etc" / database).read_text(), f"left in {database}")
    say("removed and purged: nothing is left")
    return server


def gone(pid: int) -> bool:
    """Whether a process has ended, which is ours if this process is the first of its namespace."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    return not Path(f"/proc/{pid}").exists()


def handed_over(root: Root, deb: Path, later: Path, work: Path, server: HTTPServer) -> None:
    """Installs another version over one that serves."""
    if handover.check(root.path, deb, later, work, say):
        return
    # Without systemd nothing of the package runs then: what it would do is done here.
    for package in (deb, later):
        shutil.copy(package, root.path / "root" / package.name)
    root("dpkg", "--install", f"/root/{deb.name}")
    configuration = root.path / CONFIGURATION
    configuration.write_text(configuration.read_text() + ALLOWED)
    command, user = unit(root)
    load = Clients(("127.0.0.1", 8080), b"GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: 127.0.0.1"
                   % server.server_port, BODY)
    successors: list[int] = []
    with running(root, command, user), load.running() as wait:
        for package in (later, deb):
            root("dpkg", "--install", f"/root/{package.name}")
            said = root("pinfold", "upgrade", "--config", f"/{CONFIGURATION}", user=user)
            pid = int(said.split()[1])
            expect((Path(f"/proc/{pid}/exe").stat().st_ino
                    == (root.path / "usr/bin/pinfold").stat().st_ino), "another program runs")
            successors.append(pid)
            wait()
    expect(not load.wrong, f"{len(load.wrong)} requests were lost: {load.wrong[:20]}")
    os.kill(successors[-1], signal.SIGTERM)
    until(lambda: all(gone(pid) for pid in successors), "one does not end")
    say(f"as processes alone, upgraded and downgraded under load: none of {load.served} requests was lost")
    root("dpkg", "--purge", "pinfold")


def blob(layout: Path, descriptor: dict[str, Any]) -> bytes:
    content = (layout / "blobs" / descriptor["digest"].replace(":", "/")).read_bytes()
    expect(hashlib.sha256(content).hexdigest() == descriptor["digest"].split(":")[1]
           and len(content) == descriptor["size"], f"{descriptor['digest']} has another content")
    return content


def image(artefacts: Path, work: Path, server: HTTPServer) -> None:
    """Unpacks it as an engine would, and runs it as another user with a read-only root."""
    packed = one(artefacts, "*.oci.tar")
    layout, path = work / "layout", work / "image"
    with tarfile.open(packed) as archive:
        archive.extractall(layout)
    index = json.loads((layout / "index.json").read_text())
    manifest = json.loads(blob(layout, index["manifests"][0]))
    config = json.loads(blob(layout, manifest["config"]))
    for number, layer in enumerate(manifest["layers"]):
        content = gzip.decompress(blob(layout, layer))
        expect("sha256:" + hashlib.sha256(content).hexdigest()
               == config["rootfs"]["diff_ids"][number], "the layer is not the configured one")
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            archive.extractall(path, numeric_owner=True)
    size = sum(p.stat().st_size for p in path.rglob("*") if p.is_file() and not p.is_symlink())
    programs = [str(p.relative_to(path)) for p in path.rglob("*")
                if p.is_file() and p.stat().st_mode & 0o111 and ".so" not in p.name]
    expect(programs == ["usr/bin/pinfold"], f"programs in the image: {programs}")
    settings = config["config"]
    (path / CONFIGURATION).write_text((path / CONFIGURATION).read_text() + ALLOWED)
    run("mount", "--bind", path, path)
    run("mount", "-o", "remount,bind,ro", path)
    root = Root(path, dict(variable.split("=", 1) for variable in settings["Env"]))
    user = settings["User"]
    root.mount("proc", "proc")
    root.mount("tmpfs", "dev")
    run("mknod", "--mode=666", path / "dev/null", "c", "1", "3")
    for volume in settings["Volumes"]:
        root.mount("tmpfs", volume.lstrip("/"), "-o", f"mode=0700,uid={user.split(':')[0]},"
                   f"gid={user.split(':')[1]}")
    started = time.monotonic()
    with running(root, settings["Entrypoint"] + settings["Cmd"], user):
        fetched(root, settings["Entrypoint"][0], server, user)
        took = time.monotonic() - started
        if "Healthcheck" in settings:
            root(*settings["Healthcheck"]["Test"][1:], user=user)
    say(f"the image has {packed.stat().st_size / 1e6:.1f} MB, {size / 1e6:.1f} unpacked; "
        f"started and answered in {took:.2f} s as {user}, read-only"
        + (", and is healthy" if "Healthcheck" in settings else ""))


def main() -> None:
    folders = [Path(argument).resolve() for argument in sys.argv[1:]]
    for folder in folders:
        run("sha256sum", "--check", "--quiet", "SHA256SUMS", cwd=folder)
    artefacts = folders[0]
    work = Path(tempfile.mkdtemp(prefix="pinfold-package-"))
    run("mount", "--make-rprivate", "/")
    try:
        lintian(one(artefacts, "*.changes"))
        say("making a clean root")
        root = bootstrapped(work / "root")
        deb = one(artefacts, "pinfold_*.deb")
        later = one(folders[1], "pinfold_*.deb") if len(folders) > 1 else higher(deb, work)
        server = package(root, deb, later)
        handed_over(root, deb, later, work, server)
        image(artefacts, work, server)
    finally:
        for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
            if line.split()[1].startswith(f"{work}/"):
                run("umount", "--lazy", line.split()[1])
        shutil.rmtree(work)
    say("all is well")


if __name__ == "__main__":
    main()
