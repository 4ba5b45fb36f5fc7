"""What a server of HTTP/2 should not send, as the bytes that it sends: responses of single frames,
written as in `http2_bad_responses.txt`, and frames that no response has."""

from __future__ import annotations

from collections.abc import Callable

from .frames import (
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PADDED, PING, RESET, SETTINGS,
    WINDOW, bytes_of, frame)

PUSH_PROMISE, PRIORITY_FLAG, ACKNOWLEDGED = 5, 0x20, 1
ESCAPES = {r"\r": "\r", r"\n": "\n", r"\0": "\0", r"\t": "\t", r"\x80": "\x80", r"\s": " "}


def unescaped(text: str) -> str:
    for mark, meant in ESCAPES.items():
        text = text.replace(mark, meant)
    return text


def field(text: str) -> tuple[str, str]:
    """`name: value`; the name may begin with a colon, or be empty."""
    if text.startswith(": "):
        return "", unescaped(text[2:])
    colon = text.index(":", 1) if ": " not in text[1:] else text.index(": ", 1)
    return unescaped(text[:colon]), unescaped(text[colon + 1:].removeprefix(" "))


def block(*fields: tuple[str, str]) -> bytes:
    """A field block that needs no table."""
    return b"".join(b"\0" + bytes_of(name.encode("latin-1")) + bytes_of(value.encode("latin-1"))
                    for name, value in fields)


GOOD = (":status", "200")
FRESH = ("cache-control", "max-age=600")


def head(stream: int, *fields: tuple[str, str], flags: int = END_HEADERS | END_STREAM) -> bytes:
    return frame(HEADERS, flags, stream, block(*(fields or [GOOD, FRESH])))


def number(value: int, size: int = 4) -> bytes:
    return value.to_bytes(size, "big")


def setting(key: int, value: int) -> bytes:
    return frame(SETTINGS, 0, 0, number(key, 2) + number(value))


def _large_head(stream: int, count: int) -> bytes:
    """So many fields of 4 KiB each, in frames of 16 KiB."""
    data = block(GOOD, FRESH, *((f"x-{index}", "v" * 4096) for index in range(count)))
    parts = [data[start:start + 16384] for start in range(0, len(data), 16384)]
    made = frame(HEADERS, END_STREAM, stream, parts[0])
    for part in parts[1:-1]:
        made += frame(CONTINUATION, 0, stream, part)
    return made + frame(CONTINUATION, END_HEADERS, stream, parts[-1])


# By name, what is sent in answer to the request of a stream. 99 is a stream that was never opened.
LIES: dict[str, Callable[[int], bytes]] = {
    # More than `limits.headBytes`, and much more.
    "large-head": lambda stream: _large_head(stream, 9),
    "huge-head": lambda stream: _large_head(stream, 17),
    "many-fields": lambda stream: head(
        stream, GOOD, FRESH, *((f"x-{index}", "1") for index in range(1000))),
    "zero-window-of-stream": lambda stream: frame(WINDOW, 0, stream, number(0)),
    "huge-window-of-stream": lambda stream: frame(WINDOW, 0, stream, number(2**31 - 1)),
    "http1": lambda _: b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "garbage": lambda stream: frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\xff" * 40),
    "beyond-table": lambda stream: frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\xff\x20"),
    "table-size": lambda stream: frame(
        HEADERS, END_HEADERS | END_STREAM, stream, b"\x3f\xe1\xff\xff\x07" + block(GOOD)),
    "large-frame": lambda stream: head(stream, flags=END_HEADERS) + frame(
        DATA, END_STREAM, stream, b"x" * 16_385),
    "push-promise": lambda stream: frame(PUSH_PROMISE, END_HEADERS, stream, number(2) + block(
        (":method", "GET"), (":scheme", "https"), (":authority", "seen.test"), (":path", "/"))),
    "even-stream": lambda _: head(2),
    "idle-stream": lambda _: head(99),
    "data-on-idle": lambda _: frame(DATA, END_STREAM, 99, b"abc"),
    "reset-on-idle": lambda _: frame(RESET, 0, 99, number(8)),
    "window-on-idle": lambda _: frame(WINDOW, 0, 99, number(1000)),
    "data-on-0": lambda _: frame(DATA, END_STREAM, 0, b"abc"),
    "head-on-0": lambda _: head(0),
    "continuation": lambda stream: frame(CONTINUATION, END_HEADERS, stream, block(GOOD)),
    "interrupted": lambda stream: head(stream, GOOD, flags=0) + frame(PING, 0, 0, bytes(8)),
    "padding": lambda stream: head(stream, flags=END_HEADERS) + frame(
        DATA, END_STREAM | PADDED, stream, b"\xffabc"),
    "zero-window": lambda _: frame(WINDOW, 0, 0, number(0)),
    "huge-window": lambda _: frame(WINDOW, 0, 0, number(2**31 - 1)),
    "odd-window": lambda _: frame(WINDOW, 0, 0, bytes(7)),
    "settings-of-stream": lambda stream: frame(SETTINGS, 0, stream, number(3, 2) + number(1)),
    "odd-settings": lambda _: frame(SETTINGS, 0, 0, bytes(7)),
    "full-acknowledgement": lambda _: frame(
        SETTINGS, ACKNOWLEDGED, 0, number(3, 2) + number(1)),
    "initial-window": lambda _: setting(4, 2**31),
    "small-frames": lambda _: setting(5, 2**14 - 1),
    "allows-push": lambda _: setting(2, 1),
    "odd-ping": lambda _: frame(PING, 0, 0, bytes(7)),
    "ping-of-stream": lambda stream: frame(PING, 0, stream, bytes(8)),
    "goaway-increased": lambda stream: frame(GOAWAY, 0, 0, number(stream) + number(0)) + frame(
        GOAWAY, 0, 0, number(stream + 2) + number(0)),
    "odd-reset": lambda stream: frame(RESET, 0, stream, bytes(5)),
    "depends-on-itself": lambda stream: frame(
        HEADERS, END_HEADERS | END_STREAM | PRIORITY_FLAG, stream,
        number(stream) + b"\x0f" + block(GOOD, FRESH)),
}


def frames_of(stream: int, text: str) -> bytes:
    """The frames of a line of `http2_bad_responses.txt`. The head may be stored by caches."""
    made, may_be_stored = b"", True
    for part in text.split(" / "):
        what, _, rest = part.strip().partition(" ")
        flags = END_STREAM if what.endswith("!") else 0
        match what.rstrip("!"):
            case "head":
                fields = [field(one) for one in rest.split(" ;; ") if one]
                if may_be_stored and not any(value[:1] == "1" for name, value in fields
                                             if name == ":status"):
                    fields += [FRESH]
                    may_be_stored = False
                made += frame(HEADERS, END_HEADERS | flags, stream, block(*fields))
            case "data":
                made += frame(DATA, flags, stream, unescaped(rest).encode("latin-1"))
            case name:
                made += LIES[name](stream)
    return made
