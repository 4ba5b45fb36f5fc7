"""Certificates that are swapped while clients are connected, and the checks of them."""

from __future__ import annotations

import threading

import pytest
from support.gateway import run_pinfold
from support.origin import reply
from support.pki import without_readable_end
from support.secure import (
    NAME, forward, reload, reverse, s_client, secure_wire, staple, subject_seen, tls_of)
from support.wire import request


@pytest.fixture
def there(origin):
    return origin(lambda _: reply(b"answer", "200 OK", "Cache-Control: no-store"))


@pytest.fixture
def files(workspace):
    """A certificate and its key at paths that stay, whatever is in them."""
    class Files:
        certificate, key = workspace / "listener.pem", workspace / "listener.key"
        tls = {"certificate": str(certificate), "key": str(key)}

        def hold(self, leaf) -> None:
            self.certificate.write_bytes(leaf.chain_file().read_bytes())
            self.key.write_bytes(leaf.key_file.read_bytes())

    return Files()


def serial(running) -> str:
    output = s_client(running, "-showcerts")
    return output[output.index("BEGIN CERTIFICATE"):output.index("END CERTIFICATE")]


def test_a_reload_swaps_a_certificate_and_no_request_fails(gateway, pki, files, there):
    files.hold(pki.intermediate.issue(NAME))
    running = gateway({"listeners": [forward(files.tls)]})
    failures, asked, ends = [], [0, 0], threading.Event()

    def load(index: int) -> None:
        while not ends.is_set():
            try:
                with secure_wire(running, pki.root) as wire:
                    for _ in range(1 if index else 20):
                        assert wire.ask(request(there.url())).body == b"answer"
                        asked[index] += 1
            except Exception as problem:  # noqa: BLE001
                failures.append(repr(problem))

    with secure_wire(running, pki.root) as old:
        assert old.ask(request(there.url())).status == 200
        threads = [threading.Thread(target=load, args=(index,)) for index in (0, 1)]
        for one in threads:
            one.start()
        seen = {serial(running)}
        for _ in range(5):
            files.hold(pki.intermediate.issue(NAME))
            reload(running)
            seen.add(serial(running))
            assert old.ask(request(there.url())).status == 200, "the old one lives on"
        ends.set()
        for one in threads:
            one.join()
    assert not failures
    assert min(asked) > 0
    assert len(seen) == 6


def test_a_reload_with_a_broken_certificate_is_refused_whole(gateway, pki, files, there):
    leaf = pki.intermediate.issue(NAME)
    files.hold(leaf)
    running = gateway({"listeners": [forward(files.tls)], "limits": {"fields": 100}})
    first = serial(running)
    files.key.write_bytes(pki.root.issue("other.test").key_file.read_bytes())
    reload(running, succeeds=False)
    assert "listener.key" in running.log() or "key" in running.log()
    assert serial(running) == first
    files.certificate.write_text("nothing")
    reload(running, succeeds=False)
    assert serial(running) == first
    files.hold(pki.intermediate.issue(NAME))
    reload(running)
    assert serial(running) != first


def test_a_listener_that_begins_to_speak_tls_ends_clear_text(gateway, pki, files, there):
    files.hold(pki.intermediate.issue(NAME))
    running = gateway({"listeners": [forward(None)]})
    with running.wire() as old:
        assert old.ask(request(there.url())).status == 200
        config = running.config | {"listeners": [
            forward(files.tls) | {"address": "127.0.0.1:0"}]}
        reload(running, config)
        assert old.ended()
    with secure_wire(running, pki.root) as wire:
        assert wire.ask(request(there.url())).status == 200


def test_who_was_let_in_without_a_certificate_is_let_out(gateway, pki, files, there):
    files.hold(pki.intermediate.issue(NAME))
    running = gateway({"listeners": [forward(files.tls)]})
    with secure_wire(running, pki.root) as old:
        assert old.ask(request(there.url())).status == 200
        reload(running, running.config | {"listeners": [
            forward(files.tls | {"clientRoots": [str(pki.root.pem_file)]})]})
        assert old.socket.recv(100) == b""


def check(workspace, **keys) -> tuple[int, str, str]:
    import yaml
    file = workspace / "checked.yaml"
    file.write_text(yaml.safe_dump({"listeners": [
        {"address": "127.0.0.1:0", "kind": "forward", "tls": keys}]}))
    done = run_pinfold("check", "--config", str(file))
    return done.returncode, done.stdout, done.stderr


def test_check_reports_what_is_wrong_with_a_certificate(workspace, pki):
    leaf, other = pki.intermediate.issue(NAME, days=(-1, 90)), pki.root.issue("other.test")
    good = tls_of(leaf)
    endless = workspace / "endless.pem"
    endless.write_text(without_readable_end(leaf.certificate))
    code, output, problems = check(workspace, **good)
    assert (code, problems) == (0, "")
    assert str(leaf.chain_file()) in output and "BEGIN" not in output
    for keys, message in [
        (good | {"key": str(other.key_file)}, "tls.key"),
        (good | {"key": "missing.key"}, "cannot be read"),
        (good | {"certificate": str(leaf.key_file)}, "no certificate"),
        (good | {"certificate": str(endless)}, "notBefore or notAfter"),
        (good | {"key": [good["key"], str(other.key_file)]}, "as many keys as certificates"),
        (good | {"minimum": "1.4"}, "1.0, 1.1, 1.2, 1.3"),
        (good | {"clientRoots": [str(leaf.key_file)]}, "is not a certificate file"),
        (good | {"clientSubjects": ["CN=a"]}, "clientRoots"),
        (good | {"ocsp": str(leaf.pem_file)}, "not a successful OCSP response"),
        (good | {"ocsp": str(staple(workspace, other, pki.root))}, "another certificate"),
        ({"certificate": good["certificate"]}, "key"),
    ]:
        code, _, problems = check(workspace, **keys)
        assert code == 1, keys
        assert message in problems, problems


def test_check_warns_of_what_will_not_do_for_long(workspace, pki):
    late = pki.root.issue(NAME, days=(-10, -1))
    soon = pki.root.issue(NAME, days=(-10, 10))
    leaf, exposed = (pki.root.issue(NAME, days=(-1, 90)) for _ in range(2))
    exposed.key_file.chmod(0o644)
    for keys, message in [
        (tls_of(exposed), "listeners[0].tls.key: "),
        (tls_of(late), "has expired"), (tls_of(soon), "expires in "),
        (tls_of(leaf, minimum="1.0"), "RFC 8996"),
        (tls_of(leaf, ocsp=str(staple(workspace, leaf, pki.root, (-5, -1)))), "has expired"),
    ]:
        code, _, problems = check(workspace, **keys)
        assert code == 0
        assert problems.startswith("Warning: ") and message in problems, problems
        assert len(problems.splitlines()) == 1


def test_what_check_prints_is_itself_a_configuration(workspace, pki):
    leaf, other = pki.root.issue(NAME, days=(-1, 90)), pki.root.issue("b.test", days=(-1, 90))
    keys = tls_of(leaf, other, minimum="1.3", clientRoots=[str(pki.root.pem_file)],
                  clientSubjects=["CN=a,**"],
                  ocsp=["none", str(staple(workspace, other, pki.root))])
    code, output, problems = check(workspace, **keys)
    assert (code, problems) == (0, "")
    (workspace / "again.yaml").write_text(output)
    again = run_pinfold("check", "--config", str(workspace / "again.yaml"))
    assert again.returncode == 0, again.stderr
    assert again.stdout == output


def test_a_reverse_route_swaps_its_certificate_too(gateway, pki, files, there):
    files.hold(pki.intermediate.issue(NAME))
    running = gateway({"listeners": [
        forward(None), reverse(files.tls, there.url().rstrip("/"))]})
    with secure_wire(running, pki.root, "route") as old:
        assert old.ask(request("/", host="a.test")).status == 200
        files.hold(pki.intermediate.issue("swapped.test"))
        reload(running)
        assert old.ask(request("/", host="a.test")).status == 200
    assert subject_seen(s_client(running, listener="route")) == "CN = swapped.test"
