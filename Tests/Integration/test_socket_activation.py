"""Sockets that a service manager passes: `address: fd:NAME`."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import yaml
from support.gateway import BINARY, Gateway, merged, run_pinfold
from support.origin import reply, waiting
from support.services import activated, listening
from support.upgrades import Succession
from support.wait import until
from support.wire import Wire, request


@pytest.fixture
def sockets() -> Iterator[ExitStack]:
    """Closes the manager's own descriptors at the end."""
    with ExitStack() as stack:
        yield stack


def proxy(address: str = "fd:web") -> dict:
    return {"listeners": [{"name": "proxy", "address": address, "kind": "forward"}]}


def inodes(running: Gateway) -> list[str]:
    """What each of its descriptors is."""
    found = []
    for one in os.listdir(f"/proc/{running.pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{running.pid}/fd/{one}"))
        except FileNotFoundError:
            pass
    return found


def inode(one: socket.socket) -> str:
    return os.readlink(f"/proc/self/fd/{one.fileno()}")


def worker_of(line: dict) -> int:
    """The worker that served a request, by the exchange's number in the access log."""
    return int(line["id"][:-10], 16) & 15


def test_a_listener_takes_over_a_socket(gateway, sockets, origin):
    there = origin(lambda _: reply(b"x"))
    web = sockets.enter_context(listening())
    running = activated(gateway(proxy(), start=False), [("web", web)]).start()
    assert running.proxy == web.getsockname()
    assert "socket=fd:web" in running.log()
    assert running.get(there.url("/")).status == 200
    assert inode(web) in inodes(running)


def test_all_workers_serve_the_clients_of_one_socket(gateway, sockets, origin):
    """In turn: the kernel would give nearly all to the one that waited last."""
    there = origin(lambda _: reply(b"x"))
    web = sockets.enter_context(listening())
    running = activated(gateway(proxy() | {"workers": 3}, start=False), [("web", web)]).start()
    with ExitStack() as stack:
        for _ in range(30):
            assert stack.enter_context(running.wire()).ask(request(there.url("/"))).status == 200
    served = [worker_of(line) for line in running.wait_access(30)]
    assert sorted(served.count(worker) for worker in range(3)) == [10, 10, 10]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_several_sockets_of_one_name_are_shared_by_the_workers(gateway, sockets, origin, count):
    """As from several socket units with ReusePort=yes: the kernel distributes the connections, and
    no socket is left alone, whatever their number."""
    there = origin(lambda _: reply(b"x"))
    first = sockets.enter_context(listening(reuse=True))
    all_ = [first] + [sockets.enter_context(listening(port=first.getsockname()[1], reuse=True))
                      for _ in range(count - 1)]
    running = activated(
        gateway(proxy(), start=False), [("web", one) for one in all_]).start()
    with ExitStack() as stack:
        for _ in range(40):
            assert stack.enter_context(running.wire()).ask(request(there.url("/"))).status == 200
    assert {worker_of(line) for line in running.wait_access(40)} == {0, 1}
    assert {inode(one) for one in all_} <= set(inodes(running))


def test_one_name_may_have_several_addresses(gateway, sockets, origin):
    there = origin(lambda _: reply(b"x"))
    web, other = (sockets.enter_context(listening(host)) for host in ("127.0.0.1", "::1"))
    running = activated(
        gateway(proxy(), start=False), [("web", web), ("web", other)]).start()
    for one in (web, other):
        with Wire(one.getsockname()[:2]) as wire:
            assert wire.ask(request(there.url("/"))).status == 200


def test_a_socket_for_both_families(gateway, sockets, origin):
    """Its clients with IPv4 are what they are with any other, and it is the gateway's own."""
    there = origin(lambda _: reply(b"x"))
    web = sockets.enter_context(listening("::"))
    port = web.getsockname()[1]
    running = activated(
        gateway(merged(proxy(), {"access": {"clients": ["127.0.0.0/8"]}}), start=False),
        [("web", web)]).start()
    running.listeners["proxy"] = ("127.0.0.1", port)
    assert running.get(there.url("/")).status == 200
    assert running.wait_access()[0]["client"].startswith("127.0.0.1")
    wire, answer = running.connect(f"127.0.0.1:{port}")
    wire.close()
    assert answer.status == 403
    assert b"own-listener" in answer.body


def test_the_administrative_address_may_be_a_socket(gateway, sockets):
    admin = sockets.enter_context(listening())
    running = activated(
        gateway({"admin": {"address": "fd:adm"}}, start=False), [("adm", admin)]).start()
    assert running.admin == admin.getsockname()
    assert running.admin_get("/healthz").status == 200


def test_options_may_name_sockets(gateway, sockets, origin):
    there = origin(lambda _: reply(b"x"))
    web, adm = sockets.enter_context(listening()), sockets.enter_context(listening())
    made = gateway({}, "--listen", "fd:web", "--admin", "fd:adm", start=False)
    made.config["listeners"] = [{"name": "forward", "address": "127.0.0.1:0"}]
    running = activated(made, [("web", web), ("adm", adm)]).start()
    assert running.get(there.url("/"), "forward").status == 200


def test_an_unused_socket_is_closed_and_named(gateway, sockets):
    web, extra = sockets.enter_context(listening()), sockets.enter_context(listening())
    running = activated(
        gateway(proxy(), start=False), [("web", web), ("extra", extra)]).start()
    assert re.search(r"no listener uses it.*fd:extra", running.log())
    assert inode(extra) not in inodes(running)


def test_nothing_passed_is_left_to_children(gateway, sockets):
    """The variables, too: what the gateway starts is no service of the manager's."""
    web = sockets.enter_context(listening())
    running = activated(gateway(proxy(), start=False), [("web", web)]).start()
    flags = []
    for one in os.listdir(f"/proc/{running.pid}/fd"):
        try:
            path = os.readlink(f"/proc/{running.pid}/fd/{one}")
        except FileNotFoundError:  # Of a file that has been closed meanwhile.
            continue
        if path == inode(web):
            with open(f"/proc/{running.pid}/fdinfo/{one}") as file:
                found = re.search(r"^flags:\s*0(\d+)", file.read(), re.M)
            assert found is not None
            flags.append(int(found[1], 8))
    # The passed one, and one for each worker.
    assert len(flags) == 3
    assert all(flag & os.O_CLOEXEC for flag in flags)


# Unix sockets


def unix_listening(sockets: ExitStack, path: str) -> socket.socket:
    one = sockets.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    one.bind(path)
    one.listen(128)
    return one


def for_unix(address: str = "fd:web", **keys: object) -> dict:
    return merged(proxy(address), {"access": {"clients": ["unix", "127.0.0.0/8"]}, **keys})


@pytest.mark.parametrize("workers", [1, 3])
def test_a_listener_takes_over_a_unix_socket(gateway, sockets, origin, workspace, workers):
    there = origin(lambda _: reply(b"x"))
    path = f"{workspace}/web.sock"
    web = unix_listening(sockets, path)
    running = activated(
        gateway(for_unix(workers=workers), start=False), [("web", web)]).start()
    assert running.proxy == (f"unix:{path}", 0)
    assert "socket=fd:web" in running.log()
    with ExitStack() as stack:
        for _ in range(6):
            assert stack.enter_context(running.wire()).ask(request(there.url("/"))).status == 200
    lines = running.wait_access(6)
    assert {line["client"] for line in lines} == {"unix"}
    assert {worker_of(line) for line in lines} == set(range(workers))
    running.stop()
    assert os.path.exists(path), "the file is the service manager's"


def test_clients_of_a_passed_unix_socket_need_unix_in_access(gateway, sockets, origin, workspace):
    there = origin(lambda _: reply(b"x"))
    web = unix_listening(sockets, f"{workspace}/web.sock")
    running = activated(gateway(proxy(), start=False), [("web", web)]).start()
    assert "refuses everyone: access.clients does not name unix" in running.log()
    with running.wire() as wire:
        assert wire.ask(request(there.url("/"))).status == 403


def test_one_name_may_have_sockets_of_both_kinds(gateway, sockets, origin, workspace):
    there = origin(lambda _: reply(b"x"))
    path = f"{workspace}/web.sock"
    web, local = sockets.enter_context(listening()), unix_listening(sockets, path)
    running = activated(
        gateway(for_unix(), start=False), [("web", web), ("web", local)]).start()
    for address in (web.getsockname(), (f"unix:{path}", 0)):
        with Wire(address) as wire:
            assert wire.ask(request(there.url("/"))).status == 200
    assert sorted(line["client"].rpartition(":")[0] for line in running.wait_access(2)) == [
        "", "127.0.0.1"]


def test_a_passed_unix_socket_outlives_a_reload(gateway, sockets, origin, workspace):
    there = origin(lambda _: reply(b"x"))
    web = unix_listening(sockets, f"{workspace}/web.sock")
    running = activated(gateway(for_unix(), start=False), [("web", web)]).start()
    with running.wire() as kept:
        assert kept.ask(request(there.url("/"))).status == 200
        running.write_config({**running.config, "limits": {"pending": 77}})
        running.signal(signal.SIGHUP)
        until(lambda: running.metric("pinfold_config_generation") == 2, "reloaded")
        assert kept.ask(request(there.url("/"))).status == 200
    with running.wire() as wire:
        assert wire.ask(request(there.url("/"))).status == 200


def test_a_successor_takes_over_a_passed_unix_socket(gateway, sockets, origin, workspace):
    there = origin(lambda _: reply(b"x"))
    web = unix_listening(sockets, f"{workspace}/web.sock")
    made = activated(gateway(for_unix(), start=False), [("web", web)])
    manager, start = made.launcher, made.start

    def started() -> Gateway:
        made.launcher = manager + made.launcher
        return start()

    made.start = started
    one = Succession(made)
    try:
        former = one.pid
        one.upgrade()
        until(lambda: former not in one.members(), "the predecessor has ended", 20)
        with made.wire() as wire:
            assert wire.ask(request(there.url("/"))).status == 200
        assert made.wait_access()[0]["client"] == "unix"
    finally:
        one.close()


def test_the_administration_may_have_a_passed_unix_socket(gateway, sockets, workspace):
    web = sockets.enter_context(listening())
    admin = unix_listening(sockets, f"{workspace}/admin.sock")
    running = activated(
        gateway(proxy() | {"admin": {"address": "fd:adm"}}, start=False),
        [("web", web), ("adm", admin)]).start()
    assert running.admin == (f"unix:{workspace}/admin.sock", 0)
    assert running.admin_get("/readyz").status == 200


@pytest.mark.parametrize("key, value, word", [
    ("mode", "0660", "SocketMode="), ("owner", "root", "SocketUser=")])
def test_a_passed_socket_has_the_managers_permissions(workspace, key, value, word):
    file = workspace / "pinfold.yaml"
    config = proxy()
    config["listeners"][0][key] = value
    file.write_text(yaml.safe_dump(config))
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 1
    assert f"listeners[0].{key}: does not apply to sockets from the service manager" in done.stderr
    assert word in done.stderr


# What cannot be used


def refused(made: Gateway) -> str:
    made.start(wait=False)
    assert made.wait_exit() == 1
    return made.log()


def test_a_missing_name_is_an_error_with_the_names_that_there_are(gateway, sockets):
    web, other = sockets.enter_context(listening()), sockets.enter_context(listening())
    made = activated(gateway(proxy("fd:nope"), start=False), [("web", web), ("other", other)])
    log = refused(made)
    assert 'pinfold.yaml' in log and 'listeners[0].address: no socket named "nope"' in log
    assert "expected one of fd:other, fd:web" in log


def test_without_activation_a_name_is_an_error(gateway):
    log = refused(gateway(proxy(), start=False))
    assert 'no socket named "web" was passed to this process' in log
    assert "no sockets were passed" in log


def test_sockets_for_another_process_are_not_taken(gateway):
    made = gateway(proxy(), start=False)
    made.environment = made.environment | {"LISTEN_PID": "1", "LISTEN_FDS": "1"}
    assert "no sockets were passed" in refused(made)


@pytest.mark.parametrize("kind, problem", [
    ("datagram", "is no stream socket"), ("idle", "is a socket that does not listen"),
    ("file", "is not a socket")])
def test_what_is_no_listening_socket_is_an_error(gateway, sockets, tmp_path, kind, problem):
    if kind == "datagram":
        one = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    elif kind == "idle":
        one = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
    else:
        one = sockets.enter_context((tmp_path / "file").open("wb"))
    log = refused(activated(gateway(proxy(), start=False), [("web", one)]))
    assert problem in log and "expected a" in log


def test_a_socket_beyond_loopback_needs_the_clients(gateway, sockets):
    web = sockets.enter_context(listening("0.0.0.0"))
    made = gateway(proxy(), start=False)
    del made.config["access"]["clients"]
    log = refused(activated(made, [("web", web)]))
    assert "this would be an open proxy" in log


def test_wrong_variables_are_an_error(gateway, sockets):
    web = sockets.enter_context(listening())
    made = activated(gateway(proxy(), start=False), [("web:more", web)])
    assert "LISTEN_FDNAMES has 2 names for 1 descriptors" in refused(made)


def test_check_says_what_it_cannot_verify(workspace):
    file = workspace / "pinfold.yaml"
    file.write_text(yaml.safe_dump(proxy() | {"admin": {"address": "fd:adm"},
                                              "cache": {"path": str(workspace / "cache")}}))
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 0, done.stderr
    for key, name in (("listeners[0].address", "web"), ("admin.address", "adm")):
        assert re.search(rf"{re.escape(key)}: .*fd:{name} only to the gateway.* not verified here",
                         done.stderr)
    assert '"fd:web"' in done.stdout and '"fd:adm"' in done.stdout
    # What it prints is a configuration that says the same.
    again = workspace / "again.yaml"
    again.write_text(done.stdout)
    repeated = run_pinfold("check", "--config", str(again))
    assert repeated.returncode == 0 and repeated.stdout == done.stdout


@pytest.mark.parametrize("address", ["fd:", "fd:a:b", "fd:a b", "fd:ä"])
def test_a_name_that_no_socket_can_have_is_an_error(workspace, address):
    file = workspace / "pinfold.yaml"
    file.write_text(yaml.safe_dump(proxy(address)))
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 1
    assert "has no valid name" in done.stderr


def test_a_socket_is_one_listener_s(workspace):
    file = workspace / "pinfold.yaml"
    file.write_text(yaml.safe_dump({"listeners": [
        {"name": "a", "address": "fd:web"}, {"name": "b", "address": "fd:web"}]}))
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 1
    assert "listeners[1].address: fd:web is used by another listener" in done.stderr


# Reload, and the end


def reload(running: Gateway, config: dict) -> None:
    generation = running.metric("pinfold_config_generation")
    running.write_config(config)
    running.signal(signal.SIGHUP)
    until(lambda: running.metric("pinfold_config_generation") > generation, "reloaded")


def test_a_reload_keeps_the_sockets(gateway, sockets, origin):
    there = origin(lambda _: reply(b"x"))
    web, other = sockets.enter_context(listening()), sockets.enter_context(listening())
    both = {"listeners": [*proxy()["listeners"],
                          {"name": "other", "address": "fd:other", "kind": "forward"}]}
    running = activated(
        gateway(both, start=False), [("web", web), ("other", other)]).start()
    with running.wire() as wire:
        assert wire.ask(request(there.url("/"))).status == 200
        for _ in range(3):
            reload(running, running.config)
            assert wire.ask(request(there.url("/"))).status == 200
        # A listener goes, and comes back with the same socket, under another name.
        reload(running, merged(running.config, proxy()))
        back = {"listeners": [{"name": "renamed", "address": "fd:other", "kind": "forward"},
                              *proxy()["listeners"]]}
        reload(running, merged(running.config, back))
        assert wire.ask(request(there.url("/"))).status == 200
    running.listeners["renamed"] = other.getsockname()
    for name in ("proxy", "renamed"):
        assert running.get(there.url("/"), name).status == 200
    # The passed one, and one for each worker: nothing is left of the reloads.
    until(lambda: [inodes(running).count(inode(one)) for one in (web, other)] == [3, 3],
          lambda: f"three descriptors of each: {inodes(running)}")


def test_a_reload_cannot_name_a_socket_that_was_closed(gateway, sockets):
    web, extra = sockets.enter_context(listening()), sockets.enter_context(listening())
    running = activated(
        gateway(proxy(), start=False), [("web", web), ("extra", extra)]).start()
    running.write_config(merged(running.config, proxy("fd:extra")))
    running.signal(signal.SIGHUP)
    running.wait_log("configuration not reloaded.*expected one of fd:web")


def test_whoever_comes_during_a_restart_is_served_by_the_next(gateway, sockets, origin):
    there = origin(lambda _: reply(b"x"))
    web = sockets.enter_context(listening())
    running = activated(gateway(proxy(), start=False), [("web", web)]).start()
    assert running.get(there.url("/")).status == 200
    running.signal(signal.SIGTERM)
    assert running.wait_exit() == 0
    with Wire(web.getsockname()) as wire:
        wire.send(request(there.url("/")))
        running.start()
        assert wire.read().status == 200


def test_an_end_waits_for_what_is_in_flight(gateway, sockets, scripted_origin):
    release, arrived = threading.Event(), threading.Event()
    there = scripted_origin(waiting(release, arrived))
    web = sockets.enter_context(listening())
    running = activated(gateway(proxy(), start=False), [("web", web)]).start()
    with running.wire() as wire:
        wire.send(request(there.url("/")))
        assert arrived.wait(10)
        running.signal(signal.SIGTERM)
        running.wait_log("draining")
        release.set()
        assert wire.read().body == b"late"
    assert running.wait_exit() == 0


@pytest.mark.parametrize("name", ["web", None])
def test_systemd_socket_activate(workspace, origin, name):
    program = shutil.which("systemd-socket-activate")
    if program is None:
        pytest.skip("systemd-socket-activate is not installed")
    there = origin(lambda _: reply(b"x"))
    with listening() as free:
        port = free.getsockname()[1]
    file = workspace / "pinfold.yaml"
    file.write_text(yaml.safe_dump(merged(proxy(f"fd:{name or 'unknown'}"), {
        "admin": {"address": "127.0.0.1:0"}, "cache": {"path": str(workspace / "cache")},
        "access": {"destinations": {"allow": ["127.0.0.0/8"]}}})))
    with (workspace / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, "-l", f"127.0.0.1:{port}", *([f"--fdname={name}"] if name else []),
             "-E", f"HOME={workspace}", str(BINARY), "run", "--config", str(file)],
            stderr=log, stdout=log)
    try:
        until(lambda: "Listening" in (workspace / "log").read_text(), "it listens")
        with Wire(("127.0.0.1", port)) as wire:
            assert wire.ask(request(there.url("/"))).status == 200
    finally:
        process.terminate()
        assert process.wait(15) == 0, (workspace / "log").read_text()
