"""A storm of requests for objects whose every byte follows from what their heads say: whoever
serves a wrong, a torn or an outdated one is found out."""

from __future__ import annotations

import contextlib
import random
import threading
import time
import zlib
from dataclasses import dataclass, field

from .gateway import Gateway
from .origin import OriginConnection, Request
from .wire import Closed, Response, Wire

# Bytes of bodies: in a row, in one beside it, in chunks, and nothing.
SIZES = (0, 1, 300, 5_000, 16_384, 40_000, 70_000, 300_000, 1_200_000, 2 << 20)
VARIANTS = 3
_FRESH = "Cache-Control: max-age=100000"


@dataclass
class Tally:
    """What was found. `wrong` is what must not happen, in words."""

    checked: int = 0
    served: int = 0
    # Of these, what was stored before a crash.
    survived: int = 0
    # Responses that broke off because their object had changed at the origin meanwhile.
    cut: int = 0
    # Others that broke off, where something stored may be gone: never passed off as whole.
    broken: int = 0
    # Ages in seconds, at the kill, of invalidations that it undid.
    undone: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, other: Tally) -> None:
        with self.lock:
            self.checked += other.checked
            self.served += other.served
            self.survived += other.survived
            self.cut += other.cut
            self.broken += other.broken
            self.undone += other.undone
            self.wrong += other.wrong


class Cut(Closed):
    """A response has broken off."""

    def __init__(self, head: Response):
        super().__init__("broken off")
        self.head = head


class Objects:
    """Numbered objects and their origin. A POST to one makes its next generation. Every fourth has
    variants, every fifth is stored in slices (it has the listener `sliced`)."""

    def __init__(self, pool: bytes, count: int = 120):
        self.pool = pool
        self.count = count
        self.generations = [1] * count
        # When POSTs were answered, and the generations that they made, by object.
        self.acknowledged: list[list[tuple[float, int]]] = [[(0.0, 1)] for _ in range(count)]
        self.lock = threading.Lock()

    @staticmethod
    def make_pool(seed: int) -> bytes:
        """What bodies are taken from."""
        return random.Random(seed).randbytes((2 << 20) + (64 << 10))

    def body(self, number: int, generation: int, variant: int) -> bytes:
        mark = f"{number} {generation} {variant}\n".encode()
        code = zlib.crc32(mark)
        start = code >> 8 & 0xFFFF
        return (mark + self.pool[start : start + SIZES[-1]])[: SIZES[code % len(SIZES)]]

    @staticmethod
    def has_variants(number: int) -> bool:
        return number % 4 == 3

    @staticmethod
    def listener(number: int) -> str:
        return "sliced" if number % 5 == 4 else "plain"

    def acknowledge(self, number: int, generation: int) -> None:
        with self.lock:
            known = self.acknowledged[number]
            if generation > known[-1][1]:
                known.append((time.monotonic(), generation))

    def floor(self, number: int) -> int:
        """The oldest generation that may still be served to a request that is sent from now on."""
        return self.acknowledged[number][-1][1]

    def forgive(self, since: float) -> dict[int, list[tuple[float, int]]]:
        """What was acknowledged after `since` need not hold any more; returns it by object."""
        forgiven: dict[int, list[tuple[float, int]]] = {}
        for number, known in enumerate(self.acknowledged):
            kept = [one for one in known if one[0] <= since]
            if len(kept) < len(known):
                forgiven[number] = known[len(kept):]
            self.acknowledged[number] = kept
        return forgiven

    # The origin

    def serve(self, connection: OriginConnection) -> None:
        """A script for `Origin`."""
        while (request := connection.read_request()) is not None:
            # Nothing of it is looked at later, and a storm is long.
            connection.received.clear()
            connection.send(self.reply(request))

    def reply(self, request: Request) -> bytes:
        number = int(request.target.rpartition("/")[2])
        with self.lock:
            if request.method == "POST":
                self.generations[number] += 1
            generation = self.generations[number]
        if request.method == "POST":
            return (f"HTTP/1.1 200 OK\r\nX-Generation: {generation}\r\n"
                    "Content-Length: 4\r\n\r\ndone").encode()
        variant = int(request.get("x-variant", "0")) if self.has_variants(number) else 0
        body = self.body(number, generation, variant)
        tag = f'"{number}-{generation}-{variant}"'
        lines = [_FRESH, f"ETag: {tag}", f"X-Object: {number}", f"X-Generation: {generation}"]
        if self.has_variants(number):
            lines += ["Vary: X-Variant", f"X-Of-Variant: {variant}"]
        status, part = "200 OK", byte_range(request.get("range"), len(body))
        if part is not None and request.get("if-range", tag) == tag:
            if not part:
                status = "416 Range Not Satisfiable"
                lines.append(f"Content-Range: bytes */{len(body)}")
                body = b""
            else:
                status = "206 Partial Content"
                lines.append(f"Content-Range: bytes {part[0]}-{part[-1]}/{len(body)}")
                body = body[part.start : part.stop]
        chunked = status == "200 OK" and number % 7 == 3
        lines.append("Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}")
        if chunked:
            body = (f"{len(body):x}\r\n".encode() + body + b"\r\n" if body else b"") + b"0\r\n\r\n"
        return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode() + body


def byte_range(text: str, size: int) -> range | None:
    """The positions of a Range field with one range (RFC 9110, 14.1.2), empty if unsatisfiable;
    None without one."""
    if not text.startswith("bytes="):
        return None
    first, _, last = text[6:].partition("-")
    if not first:
        return range(max(0, size - int(last)), size)
    return range(int(first), min(size, int(last) + 1 if last else size))


class Client:
    """Asks a gateway, and checks all that it answers. `may_break`: what is stored may be damaged or
    gone, which is noticed in the middle of a body."""

    def __init__(self, running: Gateway, objects: Objects, tally: Tally, seed: int,
                 may_break: bool = False):
        self.may_break = may_break
        self.running = running
        self.objects = objects
        self.tally = tally
        self.picked = random.Random(seed)
        self.wires: dict[str, Wire] = {}
        # That of the last response which had one.
        self.last_generation = 0

    def close(self) -> None:
        for wire in self.wires.values():
            wire.close()
        self.wires = {}

    def _send(self, number: int, method: str, *lines: str) -> Response:
        name = self.objects.listener(number)
        if name not in self.wires:
            self.wires[name] = self.running.wire(name)
        head = [f"{method} /{number} HTTP/1.1", "Host: storm", *lines, "", ""]
        wire = self.wires[name]
        try:
            wire.send("\r\n".join(head))
            response = wire.read_head()
            try:
                response = wire.read_body(response, method)
            except Closed:
                raise Cut(response) from None
            if response.get("connection").lower() == "close":
                del self.wires[name]
                wire.close()
            return response
        except BaseException:
            self.close()
            raise

    def change(self, number: int) -> None:
        response = self._send(number, "POST", "Content-Length: 0")
        if response.status == 200 and response.body == b"done":
            self.objects.acknowledge(number, int(response.get("x-generation")))
        else:
            self._wrong(number, f"POST: {response.status} {response.body[:80]!r}")

    def ask(self, number: int, variant: int = 0, part: str = "", stored: bool = False) -> bool:
        """GET; `stored`: only from the cache. Returns whether it was from there."""
        lines = [f"X-Variant: {variant}"] if self.objects.has_variants(number) else []
        lines += [f"Range: {part}"] if part else []
        lines += ["Cache-Control: only-if-cached"] if stored else []
        floor = self.objects.floor(number)
        try:
            response = self._send(number, "GET", *lines)
        except Cut as cut:
            self._explain(cut.head, number)
            raise
        with self.tally.lock:
            self.tally.checked += 1
        if stored and response.status == 504 and "x-object" not in response:
            return False
        is_hit = "; hit" in response.get("cache-status")
        complaint = self._complaint(response, number, variant, part, floor)
        if complaint:
            self._wrong(number, f"{complaint} [{response.get('cache-status')}]")
        elif is_hit:
            with self.tally.lock:
                self.tally.served += 1
        return is_hit

    def _explain(self, head: Response, number: int) -> None:
        """A response that has begun is cut off if what is still missing of it is no longer to be
        had: its object has another generation at the origin."""
        generation = int(head.get("x-generation", "0"))
        if self.running.is_killed:
            return
        if generation != self.objects.generations[number]:
            with self.tally.lock:
                self.tally.cut += 1
        elif self.may_break:
            with self.tally.lock:
                self.tally.broken += 1
        else:
            self._wrong(number, f"generation {generation} is cut off, and is current "
                        f"[{head.status}, {head.get('cache-status')}]")

    def _wrong(self, number: int, text: str) -> None:
        with self.tally.lock:
            self.tally.wrong.append(f"object {number}: {text}")

    def _complaint(
        self, response: Response, number: int, variant: int, part: str, floor: int
    ) -> str:
        if response.status not in (200, 206, 416):
            return f"status {response.status} {response.body[:200]!r}"
        if response.get("x-object") != str(number):
            # A range of nothing is refused by the gateway itself, without a head of the origin's.
            return "" if response.status == 416 else f"it is {response.get('x-object')!r}"
        generation = int(response.get("x-generation"))
        self.last_generation = generation
        if not self.objects.has_variants(number):
            variant = 0
        elif response.get("x-of-variant") != str(variant):
            return f"variant {response.get('x-of-variant')}, not {variant}"
        if generation < floor:
            return f"generation {generation}, although {floor} was acknowledged"
        whole = self.objects.body(number, generation, variant)
        if response.get("etag") != f'"{number}-{generation}-{variant}"':
            return f"the tag {response.get('etag')} of generation {generation}"
        if response.status == 200:
            return "" if response.body == whole else f"damaged: generation {generation}"
        positions = byte_range(part, len(whole))
        if positions is None:
            return f"status {response.status} without Range"
        if response.status == 416:
            return "" if not positions else f"416 to {part} of {len(whole)} bytes"
        expected = f"bytes {positions.start}-{positions.stop - 1}/{len(whole)}"
        if not positions or response.get("content-range") != expected:
            return f"{response.get('content-range')}, not {expected}"
        if response.body != whole[positions.start : positions.stop]:
            return f"damaged: {expected} of generation {generation}"
        return ""

    def pick_range(self) -> str:
        first = self.picked.randrange(self.picked.choice((100, 5_000, 300_000, 2 << 20)))
        kind = self.picked.randrange(6)
        if kind == 0:
            return f"bytes={first}-"
        if kind == 1:
            return f"bytes=-{first + 1}"
        return f"bytes={first}-{first + self.picked.choice((10, 5_000, 100_000, 700_000))}"

    def act(self) -> None:
        """One request of a storm."""
        number = self.picked.randrange(self.objects.count)
        kind = self.picked.randrange(100)
        if kind < 6:
            return self.change(number)
        self.ask(number, self.picked.randrange(VARIANTS), self.pick_range() if kind < 35 else "")

    def sweep(self) -> int:
        """Asks for everything that the cache has; returns how much that was."""
        found = 0
        numbers = list(range(self.objects.count))
        self.picked.shuffle(numbers)
        for number in numbers:
            for variant in range(VARIANTS if self.objects.has_variants(number) else 1):
                for part in ("", self.pick_range()):
                    with contextlib.suppress(Cut):
                        found += self.ask(number, variant, part, stored=True)
        return found


class Storm:
    """Clients in threads of their own, each asking over and over."""

    def __init__(self, running: Gateway, objects: Objects, tally: Tally, seed: int,
                 clients: int = 4, may_break: bool = False, pause: float = 0):
        self.running = running
        self.pause = pause
        self.tally = tally
        self.stopped = threading.Event()
        self.clients = [Client(running, objects, tally, seed * 100 + index, may_break)
                        for index in range(clients)]
        self.threads = [threading.Thread(target=self._rage, args=(client,), daemon=True)
                        for client in self.clients]
        for thread in self.threads:
            thread.start()

    def _rage(self, client: Client) -> None:
        with contextlib.closing(client):
            heard = time.monotonic()
            while not self.stopped.wait(self.pause):
                silent = time.monotonic() - heard
                try:
                    client.act()
                    heard = time.monotonic()
                except Cut:
                    heard = time.monotonic()
                except (OSError, Closed) as error:
                    if not self.running.is_killed:
                        with self.tally.lock:
                            self.tally.wrong.append(
                                f"no response: {error!r}, asked for after {silent:.1f} s of silence")
                    return
                except BaseException as error:
                    with self.tally.lock:
                        self.tally.wrong.append(f"unreadable: {error!r}")
                    return

    def end(self) -> None:
        self.stopped.set()
        for thread in self.threads:
            thread.join()
