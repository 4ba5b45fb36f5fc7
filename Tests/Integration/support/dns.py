"""A name server on loopback whose answers a test sets, and which counts the questions."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
from collections import Counter

from dnslib import AAAA, CNAME, QTYPE, RCODE, RR, A, DNSRecord


class NameServer:
    """Answers over UDP. Names under `.test` have the address 127.0.0.1 unless set otherwise, with
    no AAAA; any other name does not exist."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 0))
        self.address = "%s:%d" % self.socket.getsockname()
        # (name, type) → (records, seconds to live); None: no answer at all.
        self.records: dict[tuple[str, str], tuple[list[str], int] | None] = {}
        self.failures: dict[str, int] = {}
        # Names whose answers are late, and by how many seconds.
        self.delays: dict[str, float] = {}
        # Names that end so get no answer at all.
        self.dead_zones: set[str] = set()
        self.questions: Counter[tuple[str, str]] = Counter()
        threading.Thread(target=self._serve, daemon=True).start()

    def set(self, name: str, *addresses: str, ttl: int = 60) -> None:
        """Gives `name` these addresses, of both families; none: the name has no records."""
        v4 = [one for one in addresses if ":" not in one]
        v6 = [one for one in addresses if ":" in one]
        self.records[name, "A"] = (v4, ttl)
        self.records[name, "AAAA"] = (v6, ttl)

    def alias(self, name: str, target: str, ttl: int = 60) -> None:
        self.records[name, "CNAME"] = ([target], ttl)

    def silence(self, name: str) -> None:
        """Questions for `name` get no answer."""
        self.records[name, "A"] = self.records[name, "AAAA"] = None

    def silence_zone(self, zone: str) -> None:
        """Questions for names under `zone` get no answer."""
        self.dead_zones.add(f".{zone}")

    def fail(self, name: str, code: int = RCODE.SERVFAIL) -> None:
        self.failures[name] = code

    def asked(self, name: str, kind: str = "A") -> int:
        return self.questions[name, kind]

    def _serve(self) -> None:
        while True:
            try:
                data, peer = self.socket.recvfrom(4096)
            except OSError:
                return
            if not data:  # the socket was shut down
                return
            query = DNSRecord.parse(data)
            answer = self._answer(query)
            if answer is not None:
                if delay := self.delays.get(str(query.q.qname).rstrip(".").lower()):
                    threading.Timer(delay, self._send, (answer, peer)).start()
                else:
                    self._send(answer, peer)

    def _send(self, answer: DNSRecord, peer: tuple[str, int]) -> None:
        with contextlib.suppress(OSError):
            self.socket.sendto(answer.pack(), peer)

    def _answer(self, query: DNSRecord) -> DNSRecord | None:
        name = str(query.q.qname).rstrip(".").lower()
        kind = QTYPE[query.q.qtype]
        self.questions[name, kind] += 1
        if name.endswith(tuple(self.dead_zones)):
            return None
        answer = query.reply()
        if name in self.failures:
            answer.header.rcode = self.failures[name]
            return answer
        owner = name
        if (alias := self.records.get((name, "CNAME"))) is not None:
            (target,), ttl = alias
            answer.add_answer(RR(owner, QTYPE.CNAME, ttl=ttl, rdata=CNAME(target)))
            owner = name = target
        if (name, kind) in self.records:
            found = self.records[name, kind]
            if found is None:
                return None
            for address in found[0]:
                data = A(address) if kind == "A" else AAAA(list(ipaddress.IPv6Address(address).packed))
                answer.add_answer(RR(owner, getattr(QTYPE, kind), ttl=found[1], rdata=data))
        elif name.endswith(".test"):
            if kind == "A":
                answer.add_answer(RR(owner, QTYPE.A, ttl=60, rdata=A("127.0.0.1")))
        else:
            answer.header.rcode = RCODE.NXDOMAIN
        return answer

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
