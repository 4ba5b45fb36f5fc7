"""The client's commands on a terminal: what is on its screen at the end."""

from __future__ import annotations

import os
import pty
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from support.gateway import BINARY
from support.origin import OriginConnection, reply
from support.wait import SLOWDOWN

PATIENCE = 30 * SLOWDOWN


class Screen:
    """A terminal, and what a command has written on it. `drawn` is set with the first drawing, and
    `answered` with the first answer."""

    def __init__(self) -> None:
        self.written = ""
        self.drawn = threading.Event()
        self.answered = threading.Event()

    def run(self, *arguments: object) -> int:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [BINARY, *map(str, arguments)], stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        written = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # Nobody has the other side any more.
                break
            written += part
            if b"\r\x1b[K" in written:
                self.drawn.set()
            if b"one" in written:
                self.answered.set()
        os.close(ours)
        self.written = written.decode()
        return process.wait(PATIENCE)

    @property
    def lines(self) -> list[str]:
        lines, column = [""], 0
        for part in self.written.replace("\x1b[K", "\0"):
            if part == "\r":
                column = 0
            elif part == "\n":
                lines, column = [*lines, ""], 0
            elif part == "\0":
                lines[-1] = lines[-1][:column]
            else:
                line = lines[-1].ljust(column)
                lines[-1] = line[:column] + part + line[column + 1:]
                column += 1
        return lines


def taking(text: str, after: threading.Event) -> Callable[[OriginConnection], None]:
    """A script: take an upload once something has happened, and answer it with a text."""
    def script(connection: OriginConnection) -> None:
        head = connection.read_request_head()
        assert head is not None
        assert after.wait(PATIENCE)
        connection.read_exactly(int(head.get("content-length")))
        connection.send(reply(text.encode()))
    return script


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """One that is longer than what the kernel keeps of a connection."""
    path = tmp_path / "file"
    path.write_bytes(bytes(20_000_000))
    return path


def test_the_answer_to_an_upload_stays_on_the_terminal(scripted_origin, file: Path) -> None:
    screen = Screen()
    server = scripted_origin(taking('{"one": 1}', screen.drawn))
    assert screen.run("upload", server.url(), "--file", file) == 0
    assert screen.drawn.is_set()
    assert screen.lines == ['{"one": 1}']


def test_the_answers_to_several_uploads_stay_on_the_terminal(scripted_origin, file: Path) -> None:
    screen = Screen()
    first = scripted_origin(taking("one\n", screen.drawn))
    second = scripted_origin(taking("two", screen.answered))
    assert screen.run("upload", first.url(), second.url(), "--file", file) == 0
    assert screen.drawn.is_set()
    assert screen.lines == ["one", "two"]
