"""The process that decodes images, `pinfold image-worker`, as the gateway starts it."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import zlib
from collections.abc import Iterator

import pytest
from support.gateway import BINARY, run_pinfold

MARK = b"PFI1"


def chunk(name: bytes, content: bytes) -> bytes:
    body = name + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))


def png(width: int, height: int) -> bytes:
    rows = b"".join(b"\0" + bytes(width) for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))


def question(image: bytes, pixels: int = 1 << 24, scale: int = 0) -> bytes:
    head = MARK + bytes([0x1F, 0, 0, 0, 0, 0, 0, 0])
    head += struct.pack("<IIIQQQQ", 1000, scale, scale, 1 << 26, pixels, 1 << 26, len(image))
    return head.ljust(64, b"\0") + image


def exactly(end: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        part = end.recv(count - len(received))
        assert part, f"closed after {len(received)} of {count} bytes"
        received += part
    return received


@pytest.fixture
def worker() -> Iterator[tuple[socket.socket, subprocess.Popen[bytes]]]:
    ours, theirs = socket.socketpair()
    ours.settimeout(60)
    # One more descriptor, which it must not keep.
    inherited = os.open("/etc/passwd", os.O_RDONLY)
    os.set_inheritable(inherited, True)
    # Nobody may look into it, and LeakSanitizer could not either.
    options = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
    process = subprocess.Popen(
        [BINARY, "image-worker", "--memory", str(1 << 30), "--seconds", "60"],
        stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, close_fds=False,
        env={**os.environ, **options})
    os.close(inherited)
    theirs.close()
    try:
        yield ours, process
    finally:
        ours.close()
        process.kill()
        process.communicate()


def test_it_is_not_among_the_listed_commands() -> None:
    assert "image-worker" not in run_pinfold("--help").stdout


def test_it_answers_and_ends_with_its_socket(
        worker: tuple[socket.socket, subprocess.Popen[bytes]]) -> None:
    end, process = worker
    exactly(end, 8)
    end.sendall(question(png(64, 32)))
    assert exactly(end, 40)[:6] == MARK + b"\0\0"
    end.sendall(question(png(64, 32), scale=16))
    head = exactly(end, 40)
    assert head[:6] == MARK + b"\1\0"
    made = exactly(end, struct.unpack("<Q", head[8:16])[0])
    assert made[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", made[16:24]) == (16, 8)
    end.sendall(question(png(64, 32), pixels=100))
    assert struct.unpack("<4sHHQQQ", exactly(end, 40)[:32]) == (MARK, 9, 0, 64, 32, 100)
    end.close()
    assert process.wait(timeout=60) == 0


def test_it_confines_itself_before_it_reads(
        worker: tuple[socket.socket, subprocess.Popen[bytes]]) -> None:
    end, process = worker
    greeting = exactly(end, 8)
    assert greeting[:4] == MARK
    proc = f"/proc/{process.pid}"
    assert sorted(os.listdir(f"{proc}/fd")) == ["0", "1", "2"]
    with open(f"{proc}/status") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    assert status["NoNewPrivs"] == "1"
    assert status["Threads"].strip() == "1"
    # Said as it is: 1 is the filter, 2 the bound of memory. Neither is there under sanitizers.
    assert (status.get("Seccomp") == "2") == bool(greeting[4] & 1)
    with open(f"{proc}/limits") as file:
        limits = {line[:26].strip(): line[26:].split()[:2] for line in file}
    for name in ("Max open files", "Max file size", "Max processes", "Max core file size"):
        assert limits[name] == ["0", "0"], name
    assert (limits["Max address space"] != ["unlimited"] * 2) == bool(greeting[4] & 2)


def test_a_signal_to_the_group_does_not_end_it(
        worker: tuple[socket.socket, subprocess.Popen[bytes]]) -> None:
    end, process = worker
    exactly(end, 8)
    for number in (1, 2, 15):
        os.kill(process.pid, number)
    end.sendall(question(png(8, 8)))
    assert exactly(end, 40)[:6] == MARK + b"\0\0"


def test_nonsense_ends_it(worker: tuple[socket.socket, subprocess.Popen[bytes]]) -> None:
    end, process = worker
    exactly(end, 8)
    end.sendall(b"GET / HTTP/1.1\r\n".ljust(64, b" "))
    assert process.wait(timeout=60) == 2
