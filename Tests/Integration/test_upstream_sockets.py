"""Servers on Unix sockets: `unix:` and a path in place of a URL."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import stat
from pathlib import Path

import pytest
from support.gateway import Gateway, run_pinfold
from support.origin import HTTPOrigin, Origin, reply, serving
from support.parents import HTTPParent
from support.proxy_headers import ToldOrigin
from support.secure import reload
from support.wait import until
from test_connect import echo

NO_CACHE = {"cache": {"enabled": False}}


@pytest.fixture
def on_socket(workspace):
    """on_socket(handler, name): a server on a Unix socket."""
    with contextlib.ExitStack() as stack:

        def make(handler=lambda _: reply(b"here"), name: str = "app.sock", kind=HTTPOrigin,
                 backlog: int = 64):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            listener.bind(str(workspace / name))
            listener.listen(backlog)
            return stack.enter_context(serving(kind(handler, listener=listener)))

        yield make


def single(url: str, **keys: object) -> dict:
    return {"listeners": [{"name": "back", "address": "127.0.0.1:0", "kind": "reverse",
                           "upstream": url, **keys}], **NO_CACHE}


def several(*urls: str, **keys: object) -> dict:
    return {"listeners": [{"name": "back", "address": "127.0.0.1:0", "kind": "reverse",
                           "upstreams": {"servers": [{"url": url} for url in urls], **keys}}],
            **NO_CACHE}


def get(running: Gateway, path: str = "/", **fields: str):
    return running.get(path, listener="back", host="front.test", **fields)


@pytest.mark.parametrize("shape", [single, several])
def test_requests_go_to_the_socket(gateway, on_socket, shape):
    there = on_socket()
    running = gateway(shape(there.url()))
    with running.wire("back") as wire:
        for number in range(3):
            wire.send(f"POST /{number}?q HTTP/1.1\r\nHost: front.test\r\nContent-Length: 2\r\n\r\nhi")
            assert wire.read("POST").body == b"here"
    assert [request.target for request in there.requests] == ["/0?q", "/1?q", "/2?q"]
    assert {request.get("host") for request in there.requests} == {"localhost"}
    assert there.requests[0].get("x-forwarded-host") == "front.test"
    assert there.accepted == 1, "the connection is kept"
    assert {line["upstream"] for line in running.wait_access(3)} == {there.url()}
    assert all("parent" not in line for line in running.access_lines())


def test_host_keep_sends_the_clients(gateway, on_socket):
    there = on_socket()
    running = gateway(single(there.url(), host="keep"))
    assert get(running).status == 200
    assert there.requests[0].get("host") == "front.test"


def test_a_relative_path_is_relative_to_the_file(gateway, on_socket, workspace):
    """As those of listeners are."""
    running = gateway(single("unix:run/app.sock"), start=False)
    (running.folder / "run").mkdir()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with listener:
        listener.bind(str(running.folder / "run" / "app.sock"))
        listener.listen(8)
        with serving(HTTPOrigin(lambda _: reply(b"relative"), listener=listener)):
            running.start()
            assert get(running).body == b"relative"
            running.stop()


def fault(running: Gateway) -> dict:
    assert get(running).status == 502
    return running.wait_access()[-1]


def test_a_socket_that_is_not_there(gateway, workspace):
    path = workspace / "none.sock"
    running = gateway(single(f"unix:{path}"))
    assert fault(running)["reason"] == "socket-missing"
    assert running.access_lines()[0]["upstream"] == f"unix:{path}"
    logged = running.wait_log("socket-missing")
    assert f"unix:{path}: No such file" in logged
    assert running.metric("pinfold_failures_total", reason="socket-missing") == 1


def test_a_socket_at_which_nobody_listens(gateway, workspace):
    path = workspace / "left.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
        left.bind(str(path))
    running = gateway(single(f"unix:{path}"))
    assert fault(running)["reason"] == "connection-refused"
    assert f"unix:{path}: Connection refused" in running.wait_log("connection-refused")


def test_a_socket_that_may_not_be_connected_to(gateway, on_socket, workspace):
    there = on_socket()
    path = Path(there.url().removeprefix("unix:"))
    os.chmod(path, 0)

    def drop() -> None:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

    if os.geteuid() == 0:
        os.chmod(path, 0o600)
        for folder in [workspace, *workspace.parents]:
            if folder != folder.parent:
                os.chmod(folder, stat.S_IMODE(folder.stat().st_mode) | 0o711)
        running = gateway(single(there.url()), start=False)
        running.preexec = drop
        os.chmod(running.folder, 0o777)
        running.start()
    else:
        running = gateway(single(there.url()))
    assert fault(running)["reason"] == "socket-not-permitted"
    assert "Permission denied" in running.wait_log("socket-not-permitted")
    assert there.accepted == 0


def test_a_file_that_is_no_socket(gateway, workspace):
    path = workspace / "file"
    path.write_text("x")
    assert fault(gateway(single(f"unix:{path}")))["reason"] == "connection-refused"


def test_a_full_queue_is_waited_for(gateway, workspace):
    """The kernel does not say when there is room (unix(7)): it is tried again."""
    path = workspace / "full.sock"
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        listener.bind(str(path))
        listener.listen(0)
        first = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        first.connect(str(path))
        running = gateway(single(f"unix:{path}"))
        with running.wire("back") as wire:
            wire.send("GET / HTTP/1.1\r\nHost: front.test\r\n\r\n")
            until(lambda: running.metric("pinfold_upstream_pool_waiting") == 1, "it waits")
            with serving(HTTPOrigin(lambda _: reply(b"at last"), listener=listener)):
                assert wire.read("GET").body == b"at last"


def test_a_queue_that_stays_full_ends_in_a_timeout(gateway, workspace):
    path = workspace / "full.sock"
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        listener.bind(str(path))
        listener.listen(0)
        stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)).connect(str(path))
        running = gateway({**single(f"unix:{path}"), "timeouts": {"connect": "300ms"}})
        answer = get(running)
        assert answer.status == 504
        assert running.wait_access()[0]["reason"] == "connect-timeout"


def test_a_server_that_comes_back_is_used_again(gateway, workspace):
    path = workspace / "app.sock"
    running = gateway(single(f"unix:{path}"))
    assert get(running).status == 502
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen(8)
        with serving(HTTPOrigin(lambda _: reply(b"back"), listener=listener)):
            assert get(running).body == b"back"


def test_sockets_are_balanced_checked_and_left_out(gateway, on_socket, workspace, origin):
    one, two = on_socket(name="one.sock"), origin(lambda _: reply(b"tcp"))
    gone = f"unix:{workspace}/gone.sock"
    running = gateway(several(one.url(), gone, two.url(""), balance="roundRobin",
                              health={"path": "/health", "interval": "100ms", "timeout": "90ms"}))
    until(lambda: running.metric(
        "pinfold_upstream_server_state", server=gone, state="down") == 1, "it is down")
    assert "unix:" in running.wait_log("a server is down") and "gone.sock" in running.log()
    found = {get(running).body for _ in range(6)}
    assert found == {b"here", b"tcp"}
    assert running.metric(
        "pinfold_upstream_server_checks_total", server=one.url(), result="passed") >= 1
    lines = {line["upstream"] for line in running.wait_access(6)}
    assert lines == {one.url(), two.authority}


def test_a_failed_request_goes_to_another_server(gateway, on_socket, workspace):
    there, gone = on_socket(), f"unix:{workspace}/gone.sock"
    running = gateway(several(gone, there.url(), balance="roundRobin"))
    assert {get(running).status for _ in range(10)} == {200}
    assert running.metric("pinfold_upstream_server_failures_total", server=gone, cause="connect") > 0


def test_the_cache_tells_sockets_apart(gateway, on_socket):
    fresh = "Cache-Control: max-age=600"
    one = on_socket(lambda _: reply(b"one", "200 OK", fresh), "one.sock")
    two = on_socket(lambda _: reply(b"two", "200 OK", fresh), "two.sock")
    config = single(one.url())
    config["listeners"].append({**single(two.url())["listeners"][0], "name": "other"})
    running = gateway({**config, "cache": {}})
    for _ in range(2):
        assert get(running).body == b"one"
        assert running.get("/", listener="other", host="front.test").body == b"two"
    assert len(one.requests) == len(two.requests) == 1


def test_the_entry_of_localhost_applies(gateway, on_socket):
    there = on_socket(lambda _: reply(b"late"))
    running = gateway({**single(there.url()), "hosts": [
        {"match": ["localhost"], "request": {"headers": {"set": {"X-Entry": "localhost"}}}}]})
    assert get(running).status == 200
    assert there.requests[0].get("x-entry") == "localhost"


def test_no_parent_is_asked(gateway, on_socket):
    there = on_socket()
    with serving(HTTPParent()) as way:
        running = gateway({**single(there.url()), "ways": {"parents": ["p"]},
                           "parents": {"p": {"url": f"http://127.0.0.1:{way.port}"}},
                           "access": {"rules": [
                               {"name": "all", "action": "allow", "parents": ["p"]}]}})
        assert get(running).body == b"here"
        assert way.asked == []
    assert "parent" not in running.wait_access()[0]


def test_a_header_tells_it_who_the_client_is(gateway, on_socket):
    there = on_socket(kind=ToldOrigin)
    running = gateway(single(there.url(), sendProxyProtocol="v2"))
    with running.wire("back") as wire:
        wire.send("GET / HTTP/1.1\r\nHost: front.test\r\n\r\n")
        assert wire.read("GET").status == 200
        assert there.told[0].source == wire.socket.getsockname()


def test_another_protocol_is_relayed(gateway, on_socket):
    there = on_socket(lambda _: b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                                b"Upgrade: echo\r\n\r\nhello")
    running = gateway(single(there.url()))
    with running.wire("back") as wire:
        wire.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
        assert b"101" in wire.read_until(b"\r\n\r\n")
        assert wire.read_exactly(5) == b"hello"


def switched(connection) -> None:
    """Agrees to the protocol, and returns what comes."""
    connection.read_until(b"\r\n\r\n")
    connection.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
    echo(connection)


def test_another_protocol_goes_on_after_a_reload_although_others_go_by_parents(gateway, on_socket):
    """No parent leads to a socket, so none can be missing on the way to it."""
    there = on_socket(switched, kind=Origin)
    ways = {"parents": {"corp": {"url": "http://127.0.0.1:9", "probe": "off"}},
            "ways": {"parents": ["corp"]}}
    running = gateway({**single(there.url()), **ways})
    with running.wire("back") as wire:
        wire.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
        assert b"101" in wire.read_until(b"\r\n\r\n")
        reload(running, {**running.config, "hosts": [{"match": ["other.test"], "http2": "off"}]})
        wire.send(b"hello")
        assert wire.read_exactly(5) == b"hello"


def test_a_reload_leads_to_another_socket(gateway, on_socket):
    one = on_socket(lambda _: reply(b"one"), "one.sock")
    two = on_socket(lambda _: reply(b"two"), "two.sock")
    running = gateway(single(one.url()))
    assert get(running).body == b"one"
    listener = {**running.config["listeners"][0], "upstream": two.url()}
    running.write_config({**running.config, "listeners": [listener]})
    running.signal(signal.SIGHUP)
    until(lambda: running.metric("pinfold_config_generation") == 2, "reloaded")
    assert get(running).body == b"two"


# What is refused


@pytest.mark.parametrize("url, problem", [
    ("unix:", "names no file"), ("unix:/run/", "names no file"),
    ("unix:/" + "a" * 107, "is too long for a Unix socket"),
    ("http://unix:/run/app.sock", "the socket's path follows unix: at once"),
    ("https://unix:/run/app.sock:/path", "the socket's path follows unix: at once")])
@pytest.mark.parametrize("shape", [single, several])
def test_what_is_no_socket_is_refused(workspace, url, problem, shape):
    import yaml
    file = workspace / "pinfold.yaml"
    config = shape(url)
    config["listeners"][0]["address"] = "127.0.0.1:8081"
    file.write_text(yaml.safe_dump(config))
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 1
    assert problem in done.stderr


def test_the_gateways_own_socket_is_refused(workspace):
    file = workspace / "pinfold.yaml"
    file.write_text("""
listeners:
  - { name: a, address: "unix:/run/a.sock", kind: reverse, upstream: "unix:/run/a.sock" }
access: { clients: [unix] }
""")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 1
    assert "unix:/run/a.sock is where this gateway listens itself" in done.stderr


def test_explain_shows_the_way_to_a_socket(workspace):
    file = workspace / "pinfold.yaml"
    file.write_text("""
listeners:
  - { name: a, address: "127.0.0.1:8081", kind: reverse, upstream: "unix:/run/a.sock" }
  - { name: b, address: "127.0.0.1:8082", kind: reverse, upstream: "http://localhost" }
""")
    done = run_pinfold("explain", "--config", str(file), "unix:/run/a.sock")
    assert done.returncode == 0, done.stderr
    assert "a request to the reverse listener a: " in done.stdout
    assert "listener b" not in done.stdout
    done = run_pinfold("explain", "--config", str(file), "http://localhost/")
    assert "listener b" in done.stdout and "listener a" not in done.stdout
    done = run_pinfold("explain", "--config", str(file), "unix:a.sock")
    assert done.returncode == 2 and "no absolute path" in done.stderr
