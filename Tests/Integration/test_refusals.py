"""Whatever is ambiguous is refused, never guessed: each malformed request, its exact status."""

import http_sfv
import pytest
from support.malformed import CRLF, MALFORMED, MALFORMED_BODIES
from support.origin import reply
from support.wait import until
from support.wire import Response, Wire, request


def check_error(response: Response, status: int, wire: Wire) -> None:
    """What every refusal must have."""
    assert response.status == status, response
    assert response.get("connection").lower() == "close"
    assert response.get("content-type").split(";")[0] == "application/json"
    body = response.json()
    assert body["reason"] and body["id"]
    members = http_sfv.List()
    members.parse(response.get("proxy-status").encode())
    assert members[-1].params.get("error"), response.get("proxy-status")
    assert wire.ended(), "the connection must be closed"


@pytest.fixture(scope="module")
def origin_for_refusals():
    from support.origin import HTTPOrigin, serving
    with serving(HTTPOrigin(lambda _: reply(b"reached", "200 OK", "Cache-Control: no-store"))) as made:
        yield made


def with_accept(data: str) -> str:
    """The request with `Accept: application/json` as the last field of its head."""
    return data if CRLF * 2 not in data else data.replace(
        CRLF * 2, f"{CRLF}Accept: application/json{CRLF * 2}", 1)


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_request_is_refused(shared_gateway, origin_for_refusals, name):
    status, text = MALFORMED[name]
    there = origin_for_refusals
    before = len(there.requests)
    with shared_gateway.wire() as wire:
        wire.send(text.replace("{at}", there.authority))
        response = wire.read_final()
        assert response.status == status, response
        assert response.get("connection").lower() == "close"
        assert response.body, "every refusal has a reason"
        assert response.proxy_status
        assert wire.ended()
    assert len(there.requests) == before, "nothing of it reaches the origin"


@pytest.mark.parametrize("name", [name for name in MALFORMED if name not in (
    "a TLS handshake", "bare LF at the end of the head", "a head beyond its limit",
    "a wrong preface of HTTP/2")])
def test_a_refusal_is_the_same_byte_by_byte(shared_gateway, origin_for_refusals, name):
    """However the bytes are cut, the answer is the same."""
    status, text = MALFORMED[name]
    data = text.replace("{at}", origin_for_refusals.authority).encode("latin-1")
    step = 1 if len(data) < 3000 else 1000  # long ones are cut in larger pieces
    with shared_gateway.wire() as wire:
        try:
            for index in range(0, len(data), step):
                wire.send(data[index : index + step])
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before the end; the answer may still be read
        assert wire.read_final().status == status


@pytest.mark.parametrize("name", MALFORMED_BODIES)
def test_a_malformed_chunked_body_is_refused(shared_gateway, scripted_origin, name):
    status, body = MALFORMED_BODIES[name]
    there = scripted_origin(lambda connection: (
        connection.read_request(), connection.send(reply(b"whole", "200 OK", "X: whole"))))
    with shared_gateway.wire() as wire:
        wire.send(request(there.url("/"), method="POST", Transfer_Encoding="chunked"))
        wire.send(body)
        response = wire.read_final()
        assert response.status == status, response
        assert response.get("connection").lower() == "close"
        assert wire.ended()
    if there.accepted:
        there.wait_finished()
        assert "X: whole" not in str(there.connections[0].buffer)
        # The origin never saw the end of a body that had none.
        assert not there.connections[0].received.endswith(b"0\r\n\r\n")


def test_a_refused_request_is_not_followed_by_another(shared_gateway, origin_for_refusals):
    """What follows an ambiguous request on its connection is never looked at."""
    there = origin_for_refusals
    before = len(there.requests)
    bad = MALFORMED["content-length with transfer-encoding"][1].replace("{at}", there.authority)
    with shared_gateway.wire() as wire:
        wire.send(bad.encode() + request(there.url("/smuggled")))
        assert wire.read_final().status == 400
        assert wire.ended()
    assert len(there.requests) == before


# At the limit and one past it


@pytest.mark.parametrize(("over", "status"), [(0, 200), (1, 431)])
def test_a_head_has_no_more_fields_than_the_limit(gateway, origin, over, status):
    there = origin(lambda _: reply())
    running = gateway({"limits": {"fields": 20}})
    lines = ["GET " + there.url("/") + " HTTP/1.1", f"Host: {there.authority}"]
    lines += [f"X-{number}: a" for number in range(19 + over)]
    assert running.ask(CRLF.join(lines) + CRLF * 2).status == status


@pytest.mark.parametrize(("over", "status"), [(0, 200), (1, 431)])
def test_a_head_has_no_more_bytes_than_the_limit(gateway, origin, over, status):
    there = origin(lambda _: reply())
    limit = 4096
    running = gateway({"limits": {"headBytes": "4KiB"}})
    start = f"GET {there.url('/')} HTTP/1.1{CRLF}Host: {there.authority}{CRLF}X: "
    data = start + "a" * (limit + over - len(start) - 4) + CRLF * 2
    assert len(data) == limit + over
    assert running.ask(data).status == status


# What a refusal looks like


def test_a_refusal_names_its_reason_and_an_id_as_json(shared_gateway, origin_for_refusals):
    at = origin_for_refusals.authority
    with shared_gateway.wire() as wire:
        wire.send(f"GET http://{at}/ HTTP/1.1\r\nHost: {at}\r\nAccept: application/json\r\n"
                  "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n")
        check_error(wire.read_final(), 400, wire)


@pytest.mark.parametrize("accept", ["*/*", "image/png", "text/plain"])
def test_a_refusal_is_plain_text_otherwise(shared_gateway, origin_for_refusals, accept):
    at = origin_for_refusals.authority
    response = shared_gateway.ask(
        f"GET http://{at}/ HTTP/1.1\r\nHost: {at}\r\nHost: {at}\r\nAccept: {accept}\r\n\r\n")
    assert response.get("content-type").split(";")[0] == "text/plain"
    assert "host" in response.body.decode().lower()
    assert response.get("cache-control") == "no-store"


# Accept fields → whether JSON is what they like best.
ACCEPTED = {
    ("application/json",): True,
    ("Application/JSON",): True,
    ("application/*",): True,
    ("text/plain;q=0.5", "application/json"): True,
    ("application/json;q=0",): False,
    ("text/plain, application/json;q=0.2",): False,
    ("application/json, text/plain",): False,
    ("application/jsonlines",): False,
    ("*/*",): False,
    (): False,
}


@pytest.mark.parametrize("broken", [False, True], ids=["read", "unread"])
@pytest.mark.parametrize("accept", ACCEPTED, ids=lambda values: " + ".join(values) or "none")
def test_a_refusal_is_in_the_form_that_is_liked_more(shared_gateway, accept, broken):
    """Also when the head, Accept included, could not be parsed."""
    lines = ["GET /not-absolute HTTP/1.1", "Host: a"]
    lines += [f"Accept: {value}" for value in accept]
    lines += ["Host: b"] if broken else []
    response = shared_gateway.ask(CRLF.join(lines) + CRLF * 2)
    assert response.status == 400
    expected = "application/json" if ACCEPTED[accept] else "text/plain"
    assert response.get("content-type").split(";")[0] == expected


def test_the_id_of_a_refusal_is_in_the_access_log(gateway, origin):
    there = origin(lambda _: reply())
    running = gateway()
    response = running.ask(
        f"GET {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\nHost: x\r\n"
        "Accept: application/json\r\n\r\n")
    identifier = response.json()["id"]
    (line,) = running.wait_access(1)
    assert identifier in line.values()
    assert line["status"] == 400


def test_the_body_of_a_refused_head_request_is_empty(shared_gateway, origin_for_refusals):
    at = origin_for_refusals.authority
    with shared_gateway.wire() as wire:
        wire.send(f"HEAD http://{at}/ HTTP/1.1\r\nHost: {at}\r\nHost: {at}\r\n\r\n")
        response = wire.read("HEAD")
        assert response.status == 400
        assert wire.ended()


def test_refusals_are_counted(gateway):
    running = gateway()
    for _ in range(3):
        assert running.ask("GET nonsense HTTP/1.1\r\nHost: a\r\n\r\n").status == 400
    until(lambda: running.metric("pinfold_http_request_failures_total") == 3, "three failures")
    until(lambda: running.metric("pinfold_http_requests_total", code_class="4xx") == 3,
          "three exchanges")


def test_reverse_listeners_refuse_ambiguity_too(gateway, origin):
    there = origin(lambda _: reply())
    running = gateway({"listeners": [
        {"name": "back", "address": "127.0.0.1:0", "kind": "reverse",
         "upstream": f"http://{there.authority}"}]})
    for text in ("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                 "GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n",
                 "GET / HTTP/1.1\r\n\r\n",
                 "GET / HTTP/1.1\r\nHost: a.test\r\nX : y\r\n\r\n"):
        assert running.ask(text, "back").status == 400
    assert there.requests == []
