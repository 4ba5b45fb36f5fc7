"""A request goes out, its response comes back: forms, framing, fields (RFC 9110, RFC 9112)."""

import hashlib
import re
import signal
import threading
from email.utils import parsedate_to_datetime

import pytest
from support.origin import OriginConnection, Request, chunked, reply
from support.wire import Wire, request, until_sent


def echo(seen: Request) -> bytes:
    return reply(seen.body, "200 OK", "Content-Type: application/octet-stream",
                 "Cache-Control: no-store")


def test_absolute_form_goes_out_in_origin_form(shared_gateway, origin):
    there = origin(echo)
    response = shared_gateway.get(there.url("/a/b?c=d&e"))
    assert response.status == 200
    (seen,) = there.requests
    assert (seen.method, seen.target, seen.version) == ("GET", "/a/b?c=d&e", "HTTP/1.1")
    assert seen.all("host") == [there.authority]


@pytest.mark.parametrize(("suffix", "target"), [("", "/"), ("?q=1", "/?q=1"), ("/%7Euser", "/%7Euser")])
def test_the_target_is_forwarded_as_it_was_written(shared_gateway, origin, suffix, target):
    there = origin(echo)
    assert shared_gateway.get(f"http://{there.authority}{suffix}").status == 200
    assert there.requests[0].target == target


@pytest.mark.parametrize("host", ["", " "])
def test_the_target_decides_beside_an_empty_host(gateway, shared_gateway, origin, host):
    """RFC 9112 §3.2.2."""
    there = origin(echo)
    assert shared_gateway.ask(request(there.url("/"), host=host)).status == 200
    running = gateway(reverse(f"http://{there.authority}"))
    with running.wire("back") as wire:
        assert wire.ask(request("http://named.test/", host=host)).status == 200
    assert [one.all("host") for one in there.requests] == [[there.authority]] * 2
    assert there.requests[1].get("x-forwarded-host") == "named.test"
    with shared_gateway.wire() as wire:
        wire.send(f"CONNECT {there.authority} HTTP/1.1\r\nHost:{host}\r\n\r\n")
        assert wire.read_head().status == 200
        assert wire.ask(request("/", host=there.authority)).status == 200
    assert shared_gateway.ask(request("/", host=host)).status == 400


def test_the_target_wins_over_a_host_in_conflict(shared_gateway, origin):
    there = origin(echo)
    response = shared_gateway.ask(request(there.url("/"), host="elsewhere.test"))
    assert response.status == 200
    assert there.requests[0].all("host") == [there.authority]


def test_http_1_0_clients_are_served_and_closed_on(shared_gateway, origin):
    there = origin(lambda _: chunked([b"old ", b"client"]))
    with shared_gateway.wire() as wire:
        wire.send(f"GET {there.url('/')} HTTP/1.0\r\n\r\n")
        response = wire.read()
        assert "transfer-encoding" not in response, "RFC 9112 §6.1: never to a 1.0 client"
        assert response.body == b"old client"
        assert wire.ended()
    assert there.requests[0].version == "HTTP/1.1"


def test_http_1_0_connections_are_kept_alive_when_asked_for(shared_gateway, origin):
    there = origin(echo)
    with shared_gateway.wire() as wire:
        for _ in range(2):
            wire.send(f"GET {there.url('/')} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            response = wire.read()
            assert response.status == 200
            assert "keep-alive" in response.get("connection").lower()


def test_connections_are_kept_alive_on_both_sides(shared_gateway, origin):
    there = origin(echo)
    with shared_gateway.wire() as wire:
        for number in range(20):
            assert wire.ask(request(there.url(f"/{number}"))).status == 200
    assert [one.target for one in there.requests] == [f"/{number}" for number in range(20)]
    assert there.accepted == 1


def test_connection_close_is_honoured(shared_gateway, origin):
    there = origin(echo)
    with shared_gateway.wire() as wire:
        response = wire.ask(request(there.url("/"), Connection="close"))
        assert "close" in response.get("connection").lower()
        assert wire.ended()


def test_a_close_by_the_origin_does_not_close_the_client(shared_gateway, origin):
    there = origin(lambda _: reply(b"x", "200 OK", "Connection: close"))
    with shared_gateway.wire() as wire:
        for _ in range(3):
            response = wire.ask(request(there.url("/")))
            assert response.body == b"x"
            assert "close" not in response.get("connection").lower()
    assert there.accepted == 3


def test_pipelined_requests_are_answered_in_order(shared_gateway, origin):
    there = origin(lambda seen: reply(seen.target.encode()))
    count = 50
    with shared_gateway.wire() as wire:
        wire.send(b"".join(request(there.url(f"/{number}")) for number in range(count)))
        assert [wire.read().body for _ in range(count)] == [
            f"/{number}".encode() for number in range(count)]


def test_pipelined_requests_with_bodies_are_separated(shared_gateway, origin):
    there = origin(echo)
    url = there.url("/")
    chunks = b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
    wanted = [b"first", b"", b"abcde", b"last"]
    with shared_gateway.wire() as wire:
        wire.send(
            request(url, method="POST", body=b"first")
            + request(url)
            + request(url, method="POST", Transfer_Encoding="chunked") + chunks
            + request(url, method="PUT", body=b"last"))
        assert [wire.read().body for _ in wanted] == wanted
    assert [one.body for one in there.requests] == wanted


def test_a_request_that_arrives_byte_by_byte_is_served(shared_gateway, origin):
    there = origin(echo)
    data = request(there.url("/slow"), method="POST", Transfer_Encoding="chunked")
    data += b"4\r\nbyte\r\n0\r\nT: 1\r\n\r\n"
    with shared_gateway.wire() as wire:
        for index in range(len(data)):
            wire.send(data[index : index + 1])
        assert wire.read().body == b"byte"


@pytest.mark.parametrize("size", [0, 1, 1000, 65_536, 3_000_001])
@pytest.mark.parametrize("coding", ["length", "chunked", "close"])
def test_response_bodies_arrive_whole(shared_gateway, origin, size, coding):
    body = bytes(index * 7 % 251 for index in range(min(size, 4096))) * (size // 4096 + 1)
    body = body[:size]
    parts = [body[at : at + 70_000] for at in range(0, size, 70_000)]
    replies = {
        "length": reply(body),
        "chunked": chunked(parts),
        "close": reply(body, "200 OK", "Connection: close", length=False),
    }
    there = origin(lambda _: replies[coding])
    response = shared_gateway.get(there.url("/"))
    assert hashlib.sha256(response.body).digest() == hashlib.sha256(body).digest()


@pytest.mark.parametrize("size", [0, 1, 65_536, 3_000_001])
@pytest.mark.parametrize("coding", ["length", "chunked"])
def test_request_bodies_arrive_whole(shared_gateway, origin, size, coding):
    body = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    there = origin(lambda seen: reply(hashlib.sha256(seen.body).hexdigest().encode()))
    if coding == "length":
        data = request(there.url("/"), method="POST", body=body)
    else:
        data = request(there.url("/"), method="POST", Transfer_Encoding="chunked")
        for at in range(0, size, 50_000):
            part = body[at : at + 50_000]
            data += f"{len(part):X}\r\n".encode() + part + b"\r\n"
        data += b"0\r\n\r\n"
    response = shared_gateway.ask(data)
    assert response.body == hashlib.sha256(body).hexdigest().encode()
    (seen,) = there.requests
    if size:
        assert ("transfer-encoding" in seen) == (coding == "chunked")


def test_trailers_pass_in_both_directions(shared_gateway, origin):
    there = origin(lambda _: chunked([b"body"], "Trailer: X-Sum", trailers=("X-Sum: 42",)))
    data = request(there.url("/"), method="POST", Transfer_Encoding="chunked", TE="trailers")
    response = shared_gateway.ask(data + b"3\r\nabc\r\n0\r\nX-Up: 1\r\n\r\n")
    assert response.body == b"body"
    assert ("X-Sum", "42") in response.trailers
    (seen,) = there.requests
    assert seen.body == b"abc"
    assert ("X-Up", "1") in seen.trailers


def test_chunk_extensions_are_not_forwarded(shared_gateway, scripted_origin):
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;name=\"v\"\r\nabc\r\n0;end\r\n\r\n"

    def script(connection: OriginConnection) -> None:
        connection.read_request()
        connection.send(raw)
        connection.read_to_end()

    there = scripted_origin(script)
    with shared_gateway.wire() as wire:
        wire.send(request(there.url("/")))
        head = wire.read_head()
        assert head.get("transfer-encoding") == "chunked"
        rest = wire.read_until(b"0\r\n\r\n")
    assert rest == b"3\r\nabc\r\n0\r\n\r\n"


def test_head_has_the_fields_but_no_body(shared_gateway, origin):
    there = origin(lambda seen: reply(b"", "200 OK", "Content-Length: 5", length=False))
    with shared_gateway.wire() as wire:
        for _ in range(3):
            response = wire.ask(request(there.url("/"), method="HEAD"))
            assert response.status == 200
            assert response.get("content-length") == "5"
    assert there.accepted == 1


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_a_status_without_body_leaves_the_connection_usable(shared_gateway, origin, status):
    fields = ('ETag: "x"',) if status.startswith("304") else ()
    there = origin(lambda _: reply(b"", status, *fields, length=False))
    with shared_gateway.wire() as wire:
        for _ in range(3):
            response = wire.ask(request(there.url("/"), If_None_Match='"x"'))
            assert f"{response.status}" == status[:3]
            assert "transfer-encoding" not in response
            if status.startswith("204"):
                assert "content-length" not in response
    assert there.accepted == 1


def test_a_304_may_carry_a_content_length_without_a_body(shared_gateway, origin):
    there = origin(lambda _: reply(b"", "304 Not Modified", "Content-Length: 999", length=False))
    with shared_gateway.wire() as wire:
        for _ in range(2):
            assert wire.ask(request(there.url("/"), If_None_Match='"x"')).status == 304
    assert there.accepted == 1


def test_expect_100_continue_is_answered_through_the_origin(shared_gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        head = connection.read_request_head()
        assert head is not None
        assert head.get("expect").lower() == "100-continue"
        connection.send("HTTP/1.1 100 Continue\r\n\r\n")
        body = connection.read_exactly(int(head.get("content-length")))
        connection.send(reply(body))
        connection.read_to_end()

    there = scripted_origin(script)
    with shared_gateway.wire() as wire:
        wire.send(request(there.url("/"), method="POST", Content_Length="4", Expect="100-continue"))
        assert wire.read().status == 100
        wire.send(b"body")
        assert wire.read().body == b"body"


@pytest.mark.parametrize(("version", "expected", "sent"), [
    ("1.1", ["100-continue, 100-continue"], ["100-continue"]),
    ("1.1", [",100-Continue,"], ["100-continue"]), ("1.1", [""], []), ("1.1", [",", ""], []),
    ("1.1", ["", "100-continue"], ["100-continue"]), ("1.0", ["100-continue"], [])])
def test_expectations_are_a_list(shared_gateway, origin, version, expected, sent):
    """RFC 9110 §10.1.1: the expectation is sent to the server in its plainest form."""
    there = origin(echo, continues=True)
    lines = "".join(f"Expect: {value}\r\n" for value in expected)
    with shared_gateway.wire() as wire:
        wire.send(f"POST {there.url('/')} HTTP/{version}\r\nHost: {there.authority}\r\n{lines}"
                  "Content-Length: 4\r\n\r\n")
        if sent:
            assert wire.read().status == 100
        wire.send(b"body")
        assert wire.read().body == b"body"
    assert there.requests[0].all("expect") == sent


def test_a_final_answer_instead_of_100_continue_spares_the_body(shared_gateway, scripted_origin):
    there = scripted_origin(lambda connection: (
        connection.read_request_head(),
        connection.send(reply(b"too much", "413 Content Too Large", "Connection: close"))))
    with shared_gateway.wire() as wire:
        wire.send(request(
            there.url("/"), method="POST", Content_Length="400000000", Expect="100-continue"))
        response = wire.read_final()
        assert (response.status, response.body) == (413, b"too much")


def test_interim_responses_are_forwarded(shared_gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        connection.read_request()
        connection.send("HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n")
        connection.send("HTTP/1.1 102 Processing\r\n\r\n")
        connection.send(reply(b"end"))
        connection.read_to_end()

    there = scripted_origin(script)
    with shared_gateway.wire() as wire:
        wire.send(request(there.url("/")))
        hints = wire.read()
        assert hints.status == 103
        assert hints.get("link") == "</style.css>"
        assert hints.get("via") == "1.1 pinfold"
        assert wire.read().status == 102
        assert wire.read().body == b"end"


def test_interim_responses_are_not_sent_to_1_0_clients(shared_gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        connection.read_request()
        connection.send("HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n" )
        connection.send(reply(b"end"))
        connection.read_to_end()

    there = scripted_origin(script)
    with shared_gateway.wire() as wire:
        wire.send(f"GET {there.url('/')} HTTP/1.0\r\n\r\n")
        response = wire.read()
        assert (response.status, response.body) == (200, b"end")


def test_an_early_response_ends_the_upload(shared_gateway, scripted_origin):
    """The origin answers after the head; the client gets the answer while it is still sending."""
    def script(connection: OriginConnection) -> None:
        connection.read_request_head()
        connection.send(reply(b"no", "401 Unauthorized", "Connection: close"))
        connection.half_close()
        connection.read_to_end()

    there = scripted_origin(script)
    with shared_gateway.wire() as wire:
        wire.send(request(there.url("/"), method="PUT", Content_Length="1000000") + b"x" * 1000)
        response = wire.read_final()
        assert (response.status, response.body) == (401, b"no")


@pytest.mark.parametrize("secure", [False, True])
def test_an_early_response_outlives_the_reset_behind_it(gateway, pki, scripted_origin, secure):
    """The origin answers and closes with content unread, while more of it is on its way."""
    asked, gate = threading.Event(), threading.Event()

    def script(connection: OriginConnection) -> None:
        connection.read_request_head()
        asked.set()
        assert gate.wait(30)
        connection.send(reply(b"no", "401 Unauthorized", "Connection: close"))

    context = pki.intermediate.issue("early.test").server_context() if secure else None
    there = scripted_origin(script, tls=context)
    running = gateway({"workers": 1, "hosts": [{
        "match": ["early.test"], "upgrade": "https" if secure else "none",
        "tls": {"roots": [str(pki.root.pem_file)]}}]})
    with running.wire() as wire:
        url = f"http://early.test:{there.port}/"
        wire.send(request(url, method="PUT", Content_Length="1000000") + b"x" * 1000)
        assert asked.wait(30)
        running.pause()
        wire.send(b"x" * 1000)
        until_sent(wire.socket)
        gate.set()
        there.wait_finished()
        running.signal(signal.SIGCONT)
        response = wire.read_final()
        assert (response.status, response.body) == (401, b"no")


# Fields


HOP_BY_HOP = [
    ("Keep-Alive", "timeout=5"), ("Proxy-Connection", "keep-alive"), ("TE", "gzip"),
    ("Upgrade", "h2c"), ("Proxy-Authorization", "Basic Zm9vOmJhcg=="),
]


@pytest.mark.parametrize(("name", "value"), HOP_BY_HOP)
def test_hop_by_hop_request_fields_are_removed(shared_gateway, origin, name, value):
    there = origin(echo)
    data = (f"GET {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\n{name}: {value}\r\n"
            "X-Kept: yes\r\n\r\n")
    assert shared_gateway.ask(data).status == 200
    (seen,) = there.requests
    assert name not in seen
    assert seen.get("x-kept") == "yes"


def test_fields_that_connection_names_are_removed_in_both_directions(shared_gateway, origin):
    there = origin(lambda _: reply(
        b"x", "200 OK", "Connection: X-Secret, x-other", "X-Secret: 1", "X-Other: 2",
        "X-Kept: yes", "Keep-Alive: timeout=5", "Proxy-Connection: close"))
    response = shared_gateway.ask(
        f"GET {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\nX-Hop: 1\r\n"
        "Connection: x-hop, keep-alive\r\nx-kept: yes\r\n\r\n")
    (seen,) = there.requests
    assert "x-hop" not in seen
    assert "x-hop" not in seen.get("connection").lower()
    assert seen.get("x-kept") == "yes"
    for name in ("x-secret", "x-other", "proxy-connection"):
        assert name not in response
    assert response.get("x-kept") == "yes"


@pytest.mark.parametrize("field", ["Host", "Content-Length", "Cache-Control", "Via"])
def test_connection_cannot_name_fields_that_are_needed(shared_gateway, origin, field):
    """RFC 9110 §7.6.1: options that are not hop-by-hop by nature do not break the message."""
    there = origin(echo)
    response = shared_gateway.ask(
        f"POST {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\nContent-Length: 4\r\n"
        f"Connection: {field}\r\n\r\nbody")
    if response.status == 400:
        return  # refusing is as good as ignoring
    assert response.body == b"body"
    assert there.requests[0].all("host") == [there.authority]


@pytest.mark.parametrize("field", ["User-Agent", "Cookie", "Referer", "Accept-Language", "X-Any"])
def test_fields_that_connection_names_end_here(shared_gateway, origin, field):
    there = origin(echo)
    shared_gateway.ask(
        f"GET {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\n{field}: 1\r\n"
        f"Connection: {field.lower()}\r\n\r\n")
    assert not there.requests[0].all(field.lower())


def test_via_is_added_in_both_directions_and_keeps_what_was_there(shared_gateway, origin):
    there = origin(lambda _: reply(b"x", "200 OK", "Via: 1.0 inner"))
    response = shared_gateway.get(there.url("/"), Via="1.1 outer")
    assert re.fullmatch(r"1\.1 outer, 1\.1 \S+.*", there.requests[0].get("via"))
    assert re.fullmatch(r"1\.0 inner, 1\.1 \S+.*", response.get("via"))


def test_date_is_supplied_when_missing_and_kept_when_there(shared_gateway, origin):
    date = "Sun, 06 Nov 1994 08:49:37 GMT"
    replies = {"/with": reply(b"x", "200 OK", f"Date: {date}"), "/without": reply(b"x")}
    there = origin(lambda seen: replies[seen.target])
    assert shared_gateway.get(there.url("/with")).get("date") == date
    supplied = shared_gateway.get(there.url("/without")).get("date")
    assert parsedate_to_datetime(supplied).year > 2000
    assert supplied.endswith("GMT")


def test_unknown_fields_repeat_in_their_order(shared_gateway, origin):
    there = origin(lambda _: reply(b"", "200 OK", "Set-Cookie: a=1", "Set-Cookie: b=2", "X-É: ü"
                                   .encode().decode("latin-1")))
    data = (f"GET {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\n"
            "X-A: 1\r\nX-B: 2\r\nX-A: 3\r\n\r\n")
    # A field name outside the token alphabet is a fault of the origin.
    assert shared_gateway.ask(data).status == 502
    assert there.requests[0].all("x-a") == ["1", "3"]
    there = origin(lambda _: reply(b"", "200 OK", "Set-Cookie: a=1", "Set-Cookie: b=2"))
    assert shared_gateway.get(there.url("/")).all("set-cookie") == ["a=1", "b=2"]


def test_bytes_above_127_in_values_are_forwarded(shared_gateway, origin):
    there = origin(lambda seen: reply(b"", "200 OK", f"X-Back: {seen.get('x-there')}"))
    response = shared_gateway.get(there.url("/"), X_There="gr\xfc\xdfe")
    assert response.get("x-back") == "gr\xfc\xdfe"


@pytest.mark.parametrize("method", ["PATCH", "DELETE", "PROPFIND", "M-SEARCH", "LONGMETHODNAME"])
def test_other_methods_are_forwarded(shared_gateway, origin, method):
    there = origin(echo)
    assert shared_gateway.ask(request(there.url("/"), method=method, body=b"z")).body == b"z"
    assert there.requests[0].method == method


def test_methods_are_case_sensitive(shared_gateway, origin):
    there = origin(echo)
    assert shared_gateway.ask(request(there.url("/"), method="get")).status == 200
    assert there.requests[0].method == "get"


# Max-Forwards, OPTIONS, TRACE (RFC 9110 §7.6.2)


def test_max_forwards_counts_down(shared_gateway, origin):
    there = origin(echo)
    response = shared_gateway.ask(request(there.url("/"), method="OPTIONS", Max_Forwards="3"))
    assert response.status == 200
    assert there.requests[0].get("max-forwards") == "2"


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE"])
def test_max_forwards_zero_is_answered_here(shared_gateway, origin, method):
    there = origin(echo)
    data = request(there.url("/"), method=method, Max_Forwards="0", X_Mine="1",
                   Authorization="Basic c2VjcmV0", Cookie="a=secret")
    response = shared_gateway.ask(data)
    assert there.requests == []
    assert response.status // 100 == 2
    if method == "TRACE":
        assert response.get("content-type") == "message/http"
        assert response.body.startswith(b"TRACE ")
        assert b"secret" not in response.body.lower()
        assert b"c2VjcmV0" not in response.body
    else:
        assert "GET" in response.get("allow")


def test_max_forwards_of_other_methods_is_ignored(shared_gateway, origin):
    there = origin(echo)
    assert shared_gateway.get(there.url("/"), Max_Forwards="0").status == 200
    assert there.requests[0].get("max-forwards") == "0"


def with_max_forwards(url: str, method: str, *values: str) -> str:
    host = url.split("/")[2]
    lines = [f"{method} {url} HTTP/1.1", f"Host: {host}"]
    return "\r\n".join(lines + [f"Max-Forwards: {value}" for value in values]) + "\r\n\r\n"


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE"])
@pytest.mark.parametrize(("value", "sent"), [
    ("4294967296", "4294967295"), ("99999999999", "4294967295"), ("9" * 60, "4294967295"),
    ("007", "6")])
def test_max_forwards_beyond_the_maximum_becomes_the_maximum(
        shared_gateway, origin, method, value, sent):
    there = origin(echo)
    shared_gateway.ask(with_max_forwards(there.url("/"), method, value))
    assert [text for name, text in there.requests[0].headers
            if name.lower() == "max-forwards"] == [sent]


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE"])
@pytest.mark.parametrize("values", [
    ("1", "0"), ("0", "0"), ("5", "5"), ("-1",), ("x",), ("",), ("1, 0",), ("1.5",)])
def test_max_forwards_that_is_not_one_number_is_refused(shared_gateway, origin, method, values):
    there = origin(echo)
    response = shared_gateway.ask(with_max_forwards(there.url("/"), method, *values))
    assert response.status == 400
    assert b"max-forwards" in response.body
    assert there.requests == []


@pytest.mark.parametrize("values", [("1", "0"), ("x",), ("99999999999",), ("007",)])
def test_max_forwards_of_other_methods_is_passed_on_unchanged(shared_gateway, origin, values):
    there = origin(echo)
    assert shared_gateway.ask(with_max_forwards(there.url("/"), "GET", *values)).status == 200
    assert [text for name, text in there.requests[0].headers
            if name.lower() == "max-forwards"] == list(values)


def test_options_without_a_path_goes_out_in_asterisk_form(shared_gateway, origin):
    there = origin(echo)
    data = request(f"http://{there.authority}", method="OPTIONS")
    assert shared_gateway.ask(data).status == 200
    assert there.requests[0].target == "*"


# Upgrade (RFC 9110 §7.8)


def test_upgrade_becomes_a_relay_in_both_directions(shared_gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        seen = connection.read_request_head()
        assert seen is not None
        assert seen.get("upgrade") == "echo"
        assert "upgrade" in seen.get("connection").lower()
        connection.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
                        "Upgrade: echo\r\n\r\nhello")
        while connection.buffer or connection._more():
            data, connection.buffer = connection.buffer, b""
            connection.send(data)

    there = scripted_origin(script)
    with shared_gateway.wire() as wire:
        wire.send(request(there.url("/"), Connection="Upgrade", Upgrade="echo"))
        response = wire.read()
        assert response.status == 101
        assert response.get("upgrade") == "echo"
        assert wire.read_exactly(5) == b"hello"
        for size in (1, 1000, 300_000):
            data = bytes([size % 251]) * size
            wire.send(data)
            assert wire.read_exactly(size) == data
        wire.half_close()
        assert wire.ended()


def test_a_refused_upgrade_is_an_ordinary_response(shared_gateway, origin):
    there = origin(lambda _: reply(b"plain"))
    with shared_gateway.wire() as wire:
        for _ in range(2):
            response = wire.ask(request(there.url("/"), Connection="Upgrade", Upgrade="echo"))
            assert (response.status, response.body) == (200, b"plain")


@pytest.mark.parametrize(("asked", "offered"), [
    (["h2c"], []), (["H2C"], []), (["HTTP/2.0"], []), (["TLS/1.0"], []), (["h2"], []),
    (["TLS/1.2, HTTP/1.1"], []), (["h2c, echo/1", "raw"], ["echo/1, raw"]),
    (["echo", "h2c", "H2C"], ["echo"]), (["h2c echo"], []), (["echo , raw"], ["echo, raw"])])
def test_protocols_that_are_http_or_tls_are_not_offered_to_servers(
        shared_gateway, origin, asked, offered):
    """RFC 9110 §7.8."""
    there = origin(lambda _: reply(b"plain"))
    lines = "".join(f"Upgrade: {value}\r\n" for value in asked)
    with shared_gateway.wire() as wire:
        for _ in range(2):
            response = wire.ask(
                f"GET {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\n{lines}"
                "Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n\r\n")
            assert (response.status, response.body) == (200, b"plain")
    for seen in there.requests:
        assert seen.all("upgrade") == offered
        assert seen.all("connection") == (["Upgrade"] if offered else [])
        assert "http2-settings" not in seen


@pytest.mark.parametrize(("fields", "kept"), [
    ("Upgrade: TLS/1.2, HTTP/1.1\r\nConnection: upgrade", ["TLS/1.2, HTTP/1.1"]),
    ("Upgrade: a\r\nUpgrade: b\r\nConnection: close, Upgrade", ["a", "b"]), ("X: y", [])])
def test_a_426_keeps_the_field_that_names_what_it_requires(shared_gateway, origin, fields, kept):
    """RFC 9110 §15.5.22. With other statuses the field does not concern clients."""
    there = origin(lambda seen: reply(b"no", f"{seen.target[1:]} Required", *fields.split("\r\n")))
    with shared_gateway.wire() as wire:
        response = wire.ask(request(there.url("/426")))
        assert (response.status, response.body) == (426, b"no")
        assert response.all("upgrade") == kept
        assert response.all("connection") == (["Upgrade"] if kept else [])
    assert shared_gateway.get(there.url("/403")).all("upgrade") == []


@pytest.mark.parametrize(("asked", "answered", "switches"), [
    ("echo, h2c", "Upgrade: h2c", False), ("echo, h2c", "Upgrade: echo", True),
    ("h2c", "Upgrade: h2c", False), ("echo", "Upgrade:", False), ("echo", "Upgrade: ,", False),
    ("echo", "Upgrade: ECHO", True), ("echo, raw/2", "Upgrade: raw/2", True),
    ("echo", "Upgrade: other", False), ("echo/1", "Upgrade: echo", False),
    ("echo", "Upgrade: echo, other", False), ("echo", "X: y", False)])
def test_a_server_switches_only_to_what_was_asked_for(
        shared_gateway, scripted_origin, asked, answered, switches):
    """RFC 9110 §7.8."""
    def script(connection: OriginConnection) -> None:
        connection.read_request_head()
        connection.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
                        f"{answered}\r\n\r\n")
        connection.read_to_end()

    there = scripted_origin(script)
    with shared_gateway.wire() as wire:
        wire.send(request(there.url("/"), Connection="Upgrade", Upgrade=asked))
        assert wire.read().status == (101 if switches else 502)


@pytest.mark.parametrize(("answered", "switches"), [
    (["p0"], True), (["p15"], True), (["p16"], False), ([f"p{n}" for n in range(16)], True),
    (["p0"] * 16, True), (["p0"] * 17, False)])
@pytest.mark.parametrize("lines", [1, 2])
def test_at_most_sixteen_protocols_are_offered_and_switched_to(
        shared_gateway, scripted_origin, lines, answered, switches):
    """Each that a server names is looked for among all that it was offered."""
    offered: list[str] = []

    def script(connection: OriginConnection) -> None:
        offered.extend(connection.read_request_head().get("upgrade").split(", "))
        half = len(answered) // 2 if lines == 2 else 0
        parts = [part for part in (answered[:half], answered[half:]) if part]
        fields = "".join(f"Upgrade: {', '.join(part)}\r\n" for part in parts)
        connection.send(f"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n{fields}\r\n")
        connection.read_to_end()

    there = scripted_origin(script)
    with shared_gateway.wire() as wire:
        asked = ", ".join(f"p{n}" for n in range(40))
        wire.send(request(there.url("/"), Connection="Upgrade", Upgrade=asked))
        assert wire.read().status == (101 if switches else 502)
    assert offered == [f"p{n}" for n in range(16)]


def test_a_101_that_was_not_asked_for_is_refused(shared_gateway, scripted_origin):
    there = scripted_origin(lambda connection: (
        connection.read_request(),
        connection.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: evil\r\n"
                        "Connection: upgrade\r\n\r\n"),
        connection.read_to_end()))
    assert shared_gateway.get(there.url("/")).status == 502


# Reverse listeners


def reverse(url: str) -> dict:
    return {"listeners": [
        {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
        {"name": "back", "address": "127.0.0.1:0", "kind": "reverse", "upstream": url}]}


def test_a_reverse_listener_sends_origin_form_to_its_upstream(gateway, origin):
    there = origin(echo)
    running = gateway(reverse(f"http://{there.authority}"))
    response = running.get("/a?b", "back", host="app.test")
    assert response.status == 200
    (seen,) = there.requests
    assert seen.target == "/a?b"
    assert seen.get("via")
    body = running.ask(request("/x", host="app.test", method="POST", body=b"data"), "back").body
    assert body == b"data"


def test_a_reverse_listener_to_loopback_needs_no_allowed_destination(gateway, origin):
    there = origin(echo)
    config = reverse(f"http://{there.authority}")
    running = gateway({**config, "access": {"destinations": {"allow": []}}})
    assert running.get("/", "back").status == 200
    assert running.get(there.url("/")).status == 403


def test_a_reverse_listener_refuses_connect(gateway, origin):
    there = origin(echo)
    running = gateway(reverse(f"http://{there.authority}"))
    with Wire(running.listeners["back"]) as wire:
        wire.send(f"CONNECT {there.authority} HTTP/1.1\r\nHost: {there.authority}\r\n\r\n")
        assert wire.read_final("GET").status in (400, 405)
    assert there.accepted == 0


def test_ipv6_is_spoken_on_both_sides(gateway, origin):
    there = origin(echo, host="::1")
    running = gateway({"listeners": [{"name": "proxy", "address": "[::1]:0", "kind": "forward"}]})
    assert running.proxy[0] == "::1"
    assert running.get(there.url("/six")).status == 200
    assert there.requests[0].get("host") == there.authority


def test_a_half_closed_client_still_gets_its_response(shared_gateway, origin):
    there = origin(echo)
    with shared_gateway.wire() as wire:
        wire.send(request(there.url("/"), method="POST", body=b"half"))
        wire.half_close()
        assert wire.read().body == b"half"
        assert wire.ended()


def test_a_client_that_leaves_ends_the_upstream_request(shared_gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        connection.read_request()
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        while True:
            connection.send(b"x" * 65536)

    there = scripted_origin(script)
    wire = shared_gateway.wire()
    wire.send(request(there.url("/")))
    wire.read_head()
    wire.reset()
    there.wait_finished()


def test_empty_lines_before_a_request_are_ignored(shared_gateway, origin):
    """RFC 9112 §2.2."""
    there = origin(echo)
    with shared_gateway.wire() as wire:
        assert wire.ask(request(there.url("/"), method="POST", body=b"1")).body == b"1"
        wire.send(b"\r\n" + request(there.url("/"), method="POST", body=b"2"))
        assert wire.read().body == b"2"
