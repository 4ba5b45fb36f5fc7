"""From reporting to enforcing, and back, under load: who is allowed never notices."""

from __future__ import annotations

import contextlib
import threading

import pytest
from support.gateway import Gateway
from support.origin import reply, serving
from support.reports import Collector
from support.secure import reload
from support.wait import until

RIGHT = "right.rollout.test"
WRONG = "wrong.rollout.test"
OTHER = ["sha256/" + "A" * 43 + "=", "sha256/" + "B" * 42 + "A="]
CLIENTS = 50


class Client(threading.Thread):
    """Asks for the same thing again and again over its connection until it is stopped, every so
    often over a new one; what is not the right answer is kept."""

    def __init__(self, running: Gateway, url: str, host: str, stop: threading.Event):
        super().__init__(daemon=True)
        self.running, self.url, self.host, self.stop = running, url, host, stop
        self.answered = 0
        self.problems: list[str] = []

    def run(self) -> None:
        text = f"GET {self.url} HTTP/1.1\r\nHost: {self.host}\r\n\r\n"
        try:
            while not self.stop.is_set():
                with self.running.wire(timeout=60) as wire:
                    for _ in range(20):
                        wire.send(text)
                        response = wire.read()
                        if (response.status, response.body) != (200, b"genuine"):
                            self.problems.append(f"{response.status} {response.body[:200]!r}")
                            return
                        self.answered += 1
                        if self.stop.is_set():
                            return
        except BaseException as problem:  # reported by the test's thread
            self.problems.append(repr(problem))


@pytest.mark.slow
def test_fifty_clients_of_a_rightly_pinned_host_notice_nothing(gateway, origin, pki):
    leaf = pki.intermediate.issue(RIGHT)
    answer = reply(b"genuine", "200 OK", "Cache-Control: no-store")
    right = origin(lambda _: answer, tls=leaf.server_context())
    wrong = origin(lambda _: answer, tls=pki.intermediate.issue(WRONG).server_context())
    with contextlib.ExitStack() as stack:
        taker = stack.enter_context(serving(Collector()))
        common = {"mode": "publicKey", "reportTo": taker.url("/")}

        def configuration(enforce: bool) -> dict:
            def entry(host: str) -> dict:
                return {"match": [host], "upgrade": "https", "pinsets": [host.split(".")[0]]}
            return {
                "hosts": [entry(RIGHT), entry(WRONG)],
                "tls": {"roots": [str(pki.root.pem_file)]},
                "limits": {"upstreamPerHost": CLIENTS},
                "pinsets": {
                    "right": {**common, "pins": [leaf.pin, OTHER[0]], "enforce": enforce},
                    "wrong": {**common, "pins": OTHER, "enforce": enforce}}}

        running = gateway(configuration(False))

        def ask_wrong() -> int:
            return running.get(f"http://{WRONG}:{wrong.port}/").status

        stop = threading.Event()
        url, host = f"http://{RIGHT}:{right.port}/", f"{RIGHT}:{right.port}"
        clients = [Client(running, url, host, stop) for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        stack.callback(stop.set)

        def everybody_goes_on() -> None:
            """Each client is answered several times from now on."""
            before = [client.answered for client in clients]
            until(lambda: any(one.problems for one in clients)
                  or all(one.answered >= then + 3 for one, then in zip(clients, before)),
                  "everybody is answered", 60)
            assert [one.problems for one in clients if one.problems] == []

        everybody_goes_on()
        assert ask_wrong() == 200
        for _ in range(3):
            reload(running, {**running.config, **configuration(True)})
            until(lambda: ask_wrong() == 502, "the wrong host is refused")
            everybody_goes_on()
            assert [ask_wrong() for _ in range(10)] == [502] * 10
            reload(running, {**running.config, **configuration(False)})
            until(lambda: ask_wrong() == 200, "the wrong host passes")
            everybody_goes_on()
            assert [ask_wrong() for _ in range(10)] == [200] * 10
        stop.set()
        for client in clients:
            client.join(60)
        assert [one.problems for one in clients if one.problems] == []
        # Each kind of failure is one report, of the wrong host alone.
        reports = taker.wait(2)
        assert sorted((one["hostname"], one["enforced"]) for one in reports) == [
            (WRONG, False), (WRONG, True)]
        assert running.metric("pinfold_pin_evaluations_total", pinset="right",
                              result="no_pin_matched") == 0
        assert running.metric("pinfold_pin_evaluations_total", pinset="right",
                              result="reported") == 0
