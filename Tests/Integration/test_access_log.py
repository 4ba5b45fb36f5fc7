"""The fields of a line of the access log."""

import time
from datetime import datetime

from support.interception import HOST, curl
from support.origin import reply
from support.wait import until


def test_the_time_of_a_line_is_that_of_its_request_not_of_its_response(gateway, origin):
    arrived = []

    def answer_late(_):
        arrived.append(time.time())
        until(lambda: time.time() > arrived[0] + 0.3, "the response is late")
        return reply()

    there = origin(answer_late)
    running = gateway()
    before = time.time()
    assert running.get(there.url("/")).status == 200
    (line,) = running.wait_access(1)
    logged = datetime.fromisoformat(line["time"].replace("Z", "+00:00")).timestamp()
    # The gateway reads its clock once a turn, in whole milliseconds.
    assert before - 0.05 < logged < arrived[0] + 0.05
    assert line["duration_us"] >= 300_000


def test_a_combined_line_of_an_intercepted_request_has_its_host(gateway, origin, pki, authority):
    there = origin(lambda _: reply(b"x"), tls=pki.intermediate.issue(HOST).server_context())
    running = gateway({
        "tls": {"roots": [str(pki.root.pem_file)]}, "interception": authority.section,
        "hosts": [{"match": [HOST], "intercept": True}],
        "log": {"access": {"path": "access.log", "format": "combined"}}})
    curl(running, authority, f"https://{HOST}:{there.port}/path?q")
    text = until(lambda: "GET" in running.access_file.read_text() and
                 running.access_file.read_text(), "the request's line")
    assert f'"GET https://{HOST}:{there.port}/path?q HTTP/1.1" 200 1 ' in text, text


def test_a_log_on_standard_output_is_no_file(gateway, origin):
    there = origin(lambda _: reply(b"x"))
    running = gateway({"log": {"access": {"path": "-"}}})
    assert running.get(there.url("/on-standard-output")).status == 200
    # The fixture has both of the process's outputs in one file.
    running.wait_log('"target":"[^"]*/on-standard-output"')
    assert not (running.folder / "-").exists()
