"""Rules that change while requests are judged by them."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

from support.origin import reply
from support.secure import reload
from support.wait import until
from support.wire import request


def rules(*rules: dict) -> dict:
    return {"access": {
        "destinations": {"allow": ["127.0.0.0/8", "**.test"]}, "connectPorts": "any",
        "clients": ["127.0.0.0/8"], "default": "deny", "rules": list(rules)}}


def test_no_request_is_judged_by_half_of_each_configuration(gateway, origin):
    """Each of the two allows one of a host and a path, and denies the other."""
    def config(number: int) -> dict:
        return rules(
            {"name": f"host-{number}", "hosts": [f"h{number}.test"], "action": "allow"},
            {"name": f"path-{number}", "paths": [f"/p{number}"], "action": "allow"})

    there = origin(lambda _: reply(b"here", "200 OK", "Cache-Control: max-age=600"))
    running = gateway(config(0))
    seen = set()
    with running.wire() as wire:
        for turn in range(40):
            reload(running, {**running.config, **config(turn % 2)})
            for number in (0, 1):
                url = f"http://h{number}.test:{there.port}/p{1 - number}"
                assert wire.ask(request(url)).status == 200
    until(lambda: len(running.access_lines()) == 80, "all are logged")
    for line in running.access_lines():
        assert line["rule"].startswith(("host-", "path-"))
        seen.add(line["rule"])
    assert len(seen) == 4


def test_each_request_meets_one_configuration_under_load(gateway, origin, tmp_path):
    """What decides, its name in the log, the page, the status and the fields that are added are all
    of one of the two, while eight clients ask and the configuration changes."""
    there = origin(lambda seen: reply(
        seen.get("x-number").encode(), "200 OK", "Cache-Control: no-store"))
    for number in (0, 1):
        (tmp_path / f"page-{number}").write_text(f"page {number}, rule {{{{rule}}}}")

    def config(number: int) -> dict:
        deny = {"name": f"deny-{number}", "hosts": ["no.test"], "action": "deny",
                "status": (403, 451)[number], "page": str(tmp_path / f"page-{number}")}
        allow = {"name": f"allow-{number}", "hosts": ["yes.test"], "action": "allow"}
        headers = {"set": {"X-Number": str(number)}}
        return {**rules(*[[deny, allow], [allow, deny]][number]),
                "hosts": [{"match": ["yes.test"], "request": {"headers": headers}}]}

    running = gateway(config(0))
    ends = threading.Event()
    # The number of the configuration that each request met, by its path.
    met: dict[str, int] = {}

    def ask(client: int) -> None:
        with running.wire() as wire:
            for turn in itertools.count():
                if ends.is_set():
                    return
                allowed, path = turn % 2, f"/{client}-{turn}"
                response = wire.ask(request(
                    f"http://{('no', 'yes')[allowed]}.test:{there.port}{path}"))
                if allowed:
                    assert response.status == 200
                    met[path] = int(response.body)
                else:
                    met[path] = (403, 451).index(response.status)
                    text = f"page {met[path]}, rule deny-{met[path]}"
                    assert response.body.decode() == text

    with ThreadPoolExecutor(8) as pool:
        clients = [pool.submit(ask, client) for client in range(8)]
        try:
            for turn in range(1, 31):
                reload(running, {**running.config, **config(turn % 2)})
        finally:
            ends.set()
        for client in clients:
            client.result()
    assert {0, 1} == set(met.values())
    until(lambda: len(running.access_lines()) == len(met), "all are logged")
    for line in running.access_lines():
        kind = "deny" if "//no.test" in line["target"] else "allow"
        path = "/" + line["target"].rpartition("/")[2]
        assert line["rule"] == f"{kind}-{met[path]}"
