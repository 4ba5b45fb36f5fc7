"""The client's commands with files that are larger than the memory that it may take.

They are of 64 MiB, or of PINFOLD_LARGE_FILE_MIB."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from support.gateway import BINARY
from support.servers import Nginx
from support.wait import SANITIZER, SLOWDOWN, until

SIZE = int(os.environ.get("PINFOLD_LARGE_FILE_MIB", "64")) << 20
# In all: program, libraries and what is on its way.
LIMIT_KIB = 60 << 10
PATIENCE = (120 + (SIZE >> 23)) * SLOWDOWN
pytestmark = pytest.mark.timeout(3 * PATIENCE)


class Client:
    """A command that runs with a terminal for its standard error."""

    def __init__(self, *arguments: object):
        there, terminal = os.openpty()
        self.process = subprocess.Popen(
            [BINARY, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=terminal)
        os.close(terminal)
        self.shown = b""
        self.memory_kib = 0
        self._reader = threading.Thread(target=self._read, args=(there,))
        self._reader.start()

    def _read(self, terminal: int) -> None:
        try:
            while piece := os.read(terminal, 65_536):
                self.shown += piece
        except OSError:  # Its other end is closed.
            pass
        finally:
            os.close(terminal)

    def note_memory(self) -> None:
        """The largest RSS so far, which the kernel keeps."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        if found := re.search(r"VmHWM:\s+(\d+) kB", status):
            self.memory_kib = int(found[1])

    def has_ended(self) -> bool:
        if self.process.poll() is not None:
            return True
        self.note_memory()
        return False

    def finish(self) -> int:
        until(self.has_ended, "the command ends", PATIENCE)
        self._reader.join()
        return self.process.returncode

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._reader.join()

    @property
    def percentages(self) -> list[int]:
        """As the bar showed them."""
        return [int(found) for found in re.findall(rb"(\d+) % ", self.shown)]

    def check_memory(self) -> None:
        print(f"VmHWM {self.memory_kib / 1024:.1f} MiB for {SIZE >> 20} MiB")
        assert self.memory_kib > 0
        if not SANITIZER:
            assert self.memory_kib < LIMIT_KIB


@pytest.fixture(scope="module")
def large(nginx: Nginx) -> Path:
    path = nginx.files / "much.bin"
    with path.open("wb") as file:
        for _ in range(SIZE >> 20):
            file.write(os.urandom(1 << 20))
    yield path
    path.unlink()


def digest(path: Path) -> str:
    hash = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            hash.update(piece)
    return hash.hexdigest()


def test_a_large_file_is_sent_in_little_memory(nginx: Nginx, large: Path) -> None:
    stored = nginx.uploads / "much.bin"
    client = Client("upload", nginx.url("/store/much.bin"), "--file", large)
    try:
        assert client.finish() == 0, client.shown
        client.check_memory()
        assert client.percentages and client.percentages == sorted(client.percentages)
        assert digest(stored) == digest(large)
    finally:
        client.kill()
        stored.unlink(missing_ok=True)


def test_a_large_download_resumes_after_kill_9_in_little_memory(
    nginx: Nginx, large: Path, tmp_path: Path
) -> None:
    target, partial = tmp_path / "much.bin", tmp_path / "much.bin.part"
    # nginx sends a quarter at once, and then a quarter each second.
    url = nginx.url(f"/paced/much.bin?rate={SIZE // 4}")
    arguments = ("download", url, "--resume", "-o", target)
    first = Client(*arguments)
    try:
        until(lambda: partial.exists() and partial.stat().st_size > SIZE // 3,
              "a third is written", PATIENCE)
        first.note_memory()
    finally:
        first.kill()
    first.check_memory()
    there = partial.stat().st_size
    assert SIZE // 3 < there < SIZE
    second = Client(*arguments)
    try:
        assert second.finish() == 0, second.shown
    finally:
        second.kill()
    second.check_memory()
    assert f"{there} of them kept from before" in second.shown.decode()
    for client in (first, second):
        assert len(client.percentages) > 1
        assert client.percentages == sorted(client.percentages)
    assert min(second.percentages) >= there * 100 // SIZE
    assert digest(target) == digest(large)
    assert [path.name for path in tmp_path.iterdir()] == ["much.bin"]
    target.unlink()
