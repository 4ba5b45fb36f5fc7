"""git, and its own program that serves repositories over HTTP."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from .origin import Request, reply
from .programs import clean_environment


def run(*command: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs a command, without the environment's proxies."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60,
                          env=clean_environment(**env))
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def git(*arguments: str, cwd: Path | None = None, **env: str) -> str:
    return run("git", "-c", "init.defaultBranch=main", "-c", "user.name=a", "-c", "user.email=b@c",
               *arguments, cwd=cwd, GIT_CONFIG_GLOBAL="/dev/null", GIT_TERMINAL_PROMPT="0",
               **env).stdout


def make_repository(folder: Path) -> Path:
    """A bare repository with some history and a file of 2 MB."""
    work, bare = folder / "work", folder / "served" / "repo.git"
    work.mkdir()
    git("init", "-q", cwd=work)
    for number in range(10):
        (work / f"file-{number}").write_bytes(os.urandom(200_000))
        git("add", ".", cwd=work)
        git("commit", "-q", "-m", f"{number}", cwd=work)
    bare.parent.mkdir()
    git("clone", "-q", "--bare", str(work), str(bare))
    git("config", "http.receivepack", "true", cwd=bare)
    git("update-server-info", cwd=bare)
    return bare


def git_http_backend(root: Path) -> Callable[[Request], bytes]:
    """git's own CGI program behind an origin's handler."""
    program = f"{git('--exec-path').strip()}/git-http-backend"

    def handler(seen: Request) -> bytes:
        path, _, query = seen.target.partition("?")
        done = subprocess.run([program], input=seen.body, capture_output=True, env={
            **os.environ, "GIT_PROJECT_ROOT": str(root), "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path, "QUERY_STRING": query, "REQUEST_METHOD": seen.method,
            "REMOTE_USER": "tester", "REMOTE_ADDR": "127.0.0.1",
            "CONTENT_TYPE": seen.get("content-type"), "CONTENT_LENGTH": str(len(seen.body)),
            "HTTP_CONTENT_ENCODING": seen.get("content-encoding"),
            "GIT_PROTOCOL": seen.get("git-protocol")})
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        status = next((line.split(": ", 1)[1] for line in lines if line.startswith("Status")),
                      "200 OK")
        return reply(body, status, *[line for line in lines if not line.startswith("Status")])

    return handler
