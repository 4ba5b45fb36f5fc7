"""Incidents of the gateway itself: its disk, its descriptors, its configuration, its certificates. As in
test_incidents.py; and how the live page shows such things in a browser."""

from __future__ import annotations

import re
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.incidents import Operator, crowd, fields, fires, has
from support.origin import HTTPOrigin, reply, serving
from support.wait import until
from support.wire import Wire, request
from test_incidents import incident, refused  # noqa: F401
from test_live_page import browse  # noqa: F401


@pytest.fixture
def small_disk(workspace) -> Iterator[tuple[Path, str]]:
    """The folder of a file system of 2 MiB, and the reason that is told once it is full. Where none
    can be mounted, a limit on the size of files stands in for it."""
    folder = workspace / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "pinfold-incident", str(folder)],
        capture_output=True).returncode == 0
    yield folder, "full" if mounted else "inputOutput"
    if mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_of_the_cache(gateway, origin, small_disk, workspace):
    folder, reason = small_disk

    def limit() -> None:
        if reason != "full":
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    there = origin(lambda _: reply(b"x" * 50_000, "200 OK", "Cache-Control: max-age=600"))
    running = gateway(incident(
        "disk.test", "disk", cache={"enabled": True, "path": str(folder)}), preexec=limit)
    operator = Operator(running)
    running.wait_for_disk()
    before = running.metrics()
    urls = [f"http://disk.test:{there.port}/{number}" for number in range(100)]
    assert crowd(running, urls, each=25) == [200] * 100
    until(lambda: running.metric("pinfold_cache_disk_state", state="failed") == 1, "it is off")
    told = fields(running.wait_log("the cache's disk tier is off"))
    assert has(told, level="error", reason=reason, tried_again="in 60s")
    assert all(has(line, host="disk", status=200) and "reason" not in line
               for line in running.wait_access(100)), "no client notices"
    assert has(operator.api("overview")["attention"][0], level="warning", kind="disk",
               text=f"the cache's disk tier is off ({reason})")
    shown = operator.status()
    assert shown.startswith(f"ready, but the cache's disk tier is off ({reason}): ")
    assert re.search(r"^cache +disk is failed$", shown, re.M)
    assert len(operator.commands) == 1
    after = running.metrics()
    # Whether others were dropped while it failed is a matter of luck.
    after["pinfold_cache_store_dropped_total"] = before["pinfold_cache_store_dropped_total"]
    fires(workspace, before, after, PinfoldCacheDiskFailed={"state": "failed"})
    running.stop()


def test_descriptors_that_are_gone(gateway, origin, workspace):
    """The administrative address has some in reserve, so that somebody can see it."""
    there = origin(lambda _: reply(b"x"))
    running = gateway(
        incident("files.test", "files", limits={"connections": 5000}, timeouts={"head": "60s"}),
        preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80)))
    operator = Operator(running)
    before = running.metrics()
    whole = request(f"http://files.test:{there.port}/")
    clients: list[Wire] = []
    try:
        # Each has begun its next request: none is idle, and makes room for others.
        while running.descriptors < 80:
            clients.append(running.wire())
            clients[-1].send(whole + whole[:20])
            assert clients[-1].read().body == b"x"
        clients += [running.wire() for _ in range(20)]
        told = fields(running.wait_log("accepting connections is paused"))
        assert has(told, level="warning", listener="proxy", error="Too many open files (errno 24)")
        shown = operator.status()
        assert re.search(r"^attention +critical: no descriptors are left, and connections are not "
                         r"accepted \(RLIMIT_NOFILE\)$", shown, re.M), shown
        (one,) = (one for one in operator.api("overview")["attention"] if one["kind"] == "limit")
        assert one["level"] == "critical"
        after = running.metrics()
        assert after["process_open_fds"] == after["process_max_fds"] == 80
        assert after["pinfold_accept_pauses_total"] > 0
        # A connection that could stay gives its descriptor up.
        with Wire(running.admin) as wire:
            answer = wire.ask("GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert (answer.status, answer.get("Connection")) == (200, "close")
        # Who is connected is served.
        clients[0].send(whole[20:])
        assert clients[0].read().body == b"x"
    finally:
        for wire in clients:
            wire.close()
    assert len(operator.commands) == 1
    fires(workspace, before, after, PinfoldDescriptorsExhausted={},
          PinfoldLimitNear={"limit": "open files"})
    until(lambda: running.metric("pinfold_accept_paused") == 0, "no longer paused")
    assert running.get(f"http://files.test:{there.port}/").status == 200


def test_a_reload_that_is_refused(gateway, origin, workspace):
    there = origin(lambda _: reply(b"x"))
    running = gateway(incident("there.test", "there"))
    operator = Operator(running)
    before = running.metrics()
    text = running.config_file.read_text()
    running.write_config(text.replace("workers: 2", "workers: two"))
    line = text.splitlines().index("workers: 2") + 1
    wanted = rf"pinfold\.yaml:{line}: workers: .*\btwo\b.*expected"
    assert re.search(wanted, operator.run("pinfold reload --config pinfold.yaml"))
    assert crowd(running, [f"http://there.test:{there.port}/"]) == [200] * 24
    assert all(has(line, host="there", status=200) for line in running.wait_access(24))
    assert running.metric("pinfold_config_last_reload_successful") == 0
    assert fields(running.wait_log("not reloaded"))["level"] == "error"
    overview = operator.api("overview")
    assert re.search(wanted, overview["lastError"])
    assert has(overview["attention"][0], level="critical", kind="configuration")
    # Whoever did not type the command learns it by another.
    shown = operator.status()
    assert re.search(rf"^attention +critical: the last reload was refused, .*{wanted}", shown, re.M)
    assert len(operator.commands) == 2
    fires(workspace, before, running.metrics(), PinfoldReloadRefused={})


def test_a_client_without_the_authority(gateway, origin, pki, authority, workspace):
    there = origin(lambda _: reply(b"x"),
                   tls=pki.intermediate.issue("ours.test").server_context())
    running = gateway(incident("ours.test", "ours", pki, entry={"intercept": True},
                               interception=authority.section))
    operator = Operator(running)
    before = running.metrics()
    trusted, other = authority.file, pki.rogue_root.pem_file
    asked = ["curl", "-sS", "-q", "--max-time", "20", "-x", running.proxy_url,
             f"https://ours.test:{there.port}/", "--cacert"]
    asking = [subprocess.Popen([*asked, str(one)], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL) for one in [other] * 4 + [trusted]]
    assert [one.wait(30) for one in asking] == [60, 60, 60, 60, 0]
    until(lambda: running.metric("pinfold_interception_rejections_total", host="ours") == 4,
          "all are counted")
    assert running.metric("pinfold_client_tls_failures_total", reason="untrusted") == 4
    told = fields(running.wait_log("does not accept the certificate"))
    assert has(told, level="warning", client="127.0.0.1", authority=f"ours.test:{there.port}")
    connects = until(lambda: found if len(found := [
        line for line in running.access_lines() if line["method"] == "CONNECT"]) == 5 else [],
        "five lines")
    assert all(has(line, host="ours", intercepted=True) for line in connects)
    (found,) = (one for one in operator.api("hosts")["hosts"] if one["entry"] == "ours")
    assert found["trouble"] == ["clients_reject"]
    shown = operator.status()
    assert re.search(r"^attention +warning: ours: clients rejected the certificates of intercepted "
                     r"tunnels 4 times: they do not trust the CA$", shown, re.M), shown
    # Which clients they are.
    assert set(re.findall(r"client=(\S+)", operator.log("does not accept the certificate"))) == {
        "127.0.0.1"}
    assert len(operator.commands) == 2
    fires(workspace, before, running.metrics(), PinfoldInterceptionRejected={"host": "ours"})


def test_an_own_certificate_that_has_expired(gateway, origin, pki, workspace):
    there = origin(lambda _: reply(b"x"))
    old = pki.root.issue("gateway.test", days=(-9, -2))
    tls = {"certificate": str(old.chain_file()), "key": str(old.key_file)}
    running = gateway(incident("there.test", "there", listeners=[
        {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward", "tls": tls}]))
    operator = Operator(running)
    before = running.metrics()
    port = running.proxy[1]
    asked = ["curl", "-sS", "-q", "--max-time", "20", "-x", f"https://gateway.test:{port}",
             "--resolve", f"gateway.test:{port}:127.0.0.1", "--proxy-cacert",
             str(pki.root.pem_file), there.url("/")]
    asking = [subprocess.Popen(asked, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
              for _ in range(4)]
    assert [one.wait(30) for one in asking] == [60] * 4
    until(lambda: running.metric("pinfold_client_tls_failures_total", reason="untrusted") == 4,
          "all are counted")
    assert running.access_lines() == []
    told = fields(running.wait_log("does not accept the certificate of a listener"))
    assert has(told, level="warning", listener="proxy", sni="gateway.test")
    assert told["client"].startswith("127.0.0.1:")
    assert "expired" in told["detail"]
    assert has(fields(running.wait_log("configuration: ")), level="warning")
    assert f'{old.chain_file()}\\" has expired: clients will refuse it' in running.log()
    (end,) = operator.api("pins")["calendar"]
    assert (end["kind"], end["name"]) == ("listener", str(old.chain_file()))
    wanted = f"the gateway's certificate {old.chain_file()} has expired"
    (one,) = operator.api("overview")["attention"]
    assert has(one, level="critical", kind="certificate", text=wanted)
    assert re.search(rf"^attention +critical: {re.escape(wanted)}$", operator.status(), re.M)
    assert len(operator.commands) == 1
    fires(workspace, before, running.metrics(),
          PinfoldOwnCertificateExpired={"file": str(old.chain_file()), "use": "listener"})


# In a browser


def test_the_page_says_first_which_host_and_why(gateway, pki, browse, refused):  # noqa: F811
    """A server that is down, and one with another key: the overview has both with their causes, and
    one click leads to what failed."""
    pins = [pki.self_signed(f"{number}.test").pin for number in range(2)]
    context = pki.intermediate.issue("pinned.test").server_context()
    with serving(HTTPOrigin(lambda _: reply(b"x"), tls=context)) as there:
        running = gateway({
            "tls": {"roots": [str(pki.root.pem_file)]}, "cache": {"enabled": False},
            "hosts": [{"match": ["down.test"], "name": "down"},
                      {"match": ["pinned.test"], "name": "pinned", "upgrade": "https",
                       "pinsets": ["keys"]}],
            "pinsets": {"keys": {"mode": "publicKey", "pins": pins}}})
        down = f"http://down.test:{refused}/"
        assert crowd(running, [down]) == [502] * 24
        assert crowd(running, [f"http://pinned.test:{there.port}/"], each=1) == [502] * 4
    page = browse(running)
    page.wait_text("24 of 24 exchanges failed: connection-refused 24", "main")
    first, *others = page.text("main ul.attention").splitlines()
    assert first.startswith("▲ critical pinned: a server has none of the keys of keys")
    assert "◆ warning down: 24 of 24 exchanges failed: connection-refused 24" in others
    assert "◆ warning down: down.test is not reachable" in others
    page.click("24 of 24 exchanges failed", "main ul.attention a")
    page.wait_panel("hosts")
    assert "connection-refused 24" in page.wait_text("Because of", "main")
    page.click("connection-refused", "main a")
    page.wait_panel("flows")
    shown = page.wait_text(f"down.test:{refused}", "main")
    assert "nothing listens at the server's address and port" in shown
