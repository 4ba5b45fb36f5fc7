"""The client's commands with standard streams that are closed."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from support.gateway import BINARY
from support.origin import OriginConnection, reply, scripted
from support.wait import SLOWDOWN

PATIENCE = 60 * SLOWDOWN
NUMBERS = (0, 1, 2)


def closing(redirections: str, *arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["sh", "-c", f'exec "$0" "$@" {redirections}', BINARY, *map(str, arguments)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_nothing_else_gets_the_numbers_of_closed_streams(
    scripted_origin: Callable, tmp_path: Path
) -> None:
    asked, seen = threading.Event(), threading.Event()

    def script(connection: OriginConnection) -> None:
        connection.read_request()
        asked.set()
        assert seen.wait(PATIENCE)
        connection.send(reply(b"content"))

    path = tmp_path / "file"
    process = closing(
        "<&- >&- 2>&-", "download", scripted_origin(script).url(), "-o", path, "--timing")
    assert asked.wait(PATIENCE)
    streams = [os.readlink(f"/proc/{process.pid}/fd/{number}") for number in NUMBERS]
    seen.set()
    assert streams == ["/dev/null"] * 3
    assert process.wait(PATIENCE) == 0
    assert path.read_bytes() == b"content"


def test_content_for_a_closed_standard_output_is_an_error(scripted_origin: Callable) -> None:
    process = closing(">&-", "get", scripted_origin(scripted(reply(b"content"))).url())
    errors = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 23
    assert errors.endswith(b": standard output cannot be written: Bad file descriptor\n")
