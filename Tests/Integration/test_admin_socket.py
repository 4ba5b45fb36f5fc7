"""The administrative address on a Unix socket, and with TLS."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import stat
import subprocess
import threading
from pathlib import Path

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID
from support.gateway import Gateway, run_pinfold
from support.origin import reply
from support.secure import tls_of
from support.wait import until
from support.wire import Response, Wire, ask, request

JSON = "Content-Type: application/json"


def at(path: Path, **keys: object) -> dict:
    return {"admin": {"address": f"unix:{path}", **keys}}


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def post(running: Gateway, path: str = "/api/v1/reload") -> Response:
    return ask(running.admin, f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                              f"{JSON}\r\nContent-Length: 0\r\n\r\n")


def failed(running: Gateway) -> str:
    """The log of a gateway that does not start."""
    running.start(wait=False)
    assert running.wait_exit() == 1
    return running.log()


# A Unix socket


def test_everything_is_served_on_a_unix_socket(gateway, workspace, origin):
    there = origin(lambda _: reply(b"served"))
    path = workspace / "admin.sock"
    running = gateway(at(path))
    assert running.admin == (f"unix:{path}", 0)
    assert permissions(path) == 0o600
    assert running.get(there.url("/")).body == b"served"
    assert running.metric("pinfold_ready") == 1
    found = running.admin_get("/api/v1/status").json()
    assert found["listeners"][-1] == {
        "name": "admin", "address": f"unix:{path}", "kind": "admin", "tls": False,
        "accepting": True}
    assert post(running).json()["generation"] == 2
    line = running.wait_log("administrative command")
    assert f"uid={os.getuid()}" in line and f"pid={os.getpid()}" in line
    assert running.admin_get("/setup").status == 200
    done = subprocess.run(
        ["curl", "-sS", "--unix-socket", str(path), "http://localhost/healthz"],
        capture_output=True, text=True, timeout=30)
    assert done.stdout == "ok\n", done.stderr
    assert running.stop() == 0
    assert not path.exists()


def test_the_port_of_the_default_is_free(gateway, workspace):
    """The gateway is not to be asked for itself at an address that it does not have."""
    running = gateway(at(workspace / "admin.sock"))
    reply_ = running.get("http://127.0.0.1:9090/")
    assert b"own-listener" not in reply_.body


@pytest.mark.parametrize("mode", ["0660", "0666", "0600"])
def test_the_socket_has_the_mode_whatever_the_umask(gateway, workspace, mode):
    path = workspace / "admin.sock"
    running = gateway(at(path, mode=mode), preexec=lambda: os.umask(0o077) and None)
    assert permissions(path) == int(mode, 8)
    running.config["admin"]["mode"] = "0640"
    running.write_config(running.config)
    assert post(running).status == 200
    assert permissions(path) == 0o640
    assert running.admin_get("/healthz").status == 200


def test_another_user_may_not_connect(gateway, workspace):
    if os.getuid() != 0:
        pytest.skip("needs another user")
    path = workspace / "admin.sock"
    running = gateway(at(path))
    for folder in [workspace, *workspace.parents]:
        if folder.stat().st_uid == 0 and folder != Path("/") and folder != Path("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o011)
    code = ("import os,socket,sys;os.setgid(65534);os.setuid(65534);s=socket.socket(socket.AF_UNIX);"
            f"s.connect({str(path)!r})")
    refused = subprocess.run(["python3", "-c", code], capture_output=True, text=True, timeout=30)
    assert "PermissionError" in refused.stderr
    running.config["admin"]["mode"] = "0666"
    running.write_config(running.config)
    assert post(running).status == 200
    allowed = subprocess.run(["python3", "-c", code], capture_output=True, text=True, timeout=30)
    assert allowed.returncode == 0, allowed.stderr


def test_a_socket_of_a_dead_gateway_is_replaced(gateway, workspace):
    path = workspace / "admin.sock"
    running = gateway(at(path))
    before = path.lstat().st_ino
    running.kill()
    assert path.is_socket(), "nobody has removed it"
    running.start()
    assert running.admin_get("/readyz").status == 200
    assert path.is_socket()
    assert (path.lstat().st_ino, path.lstat().st_ctime_ns) != (before, 0)


def test_a_socket_that_is_in_use_is_an_error(gateway, workspace):
    path = workspace / "admin.sock"
    first = gateway(at(path))
    second = gateway(at(path), start=False)
    assert "another process listens there" in failed(second)
    assert f"unix:{path}" in second.log()
    assert first.admin_get("/readyz").status == 200


def test_a_file_at_the_path_stays(gateway, workspace):
    path = workspace / "admin.sock"
    path.write_text("precious")
    assert "there is a file of another kind" in failed(gateway(at(path), start=False))
    assert path.read_text() == "precious"


def test_a_folder_that_cannot_be_used_says_why(gateway, workspace):
    assert "its folder does not exist" in failed(
        gateway(at(workspace / "none" / "admin.sock"), start=False))
    (workspace / "file").write_text("")
    assert "cannot be created in its folder: Not a directory" in failed(
        gateway(at(workspace / "file" / "admin.sock"), start=False))


def test_a_folder_that_others_may_write_causes_a_warning(gateway, workspace):
    folder = workspace / "open"
    folder.mkdir()
    folder.chmod(0o777)
    running = gateway(at(folder / "admin.sock"))
    assert "can be written by everyone" in running.log()
    (warning,) = running.admin_get("/api/v1/status").json()["configuration"]["warnings"]
    assert warning["key"] == "admin.address"


def test_a_path_that_is_too_long_is_an_error_of_the_file(gateway, workspace):
    file = workspace / "long.yaml"
    file.write_text(f"admin: {{ address: 'unix:/{'x' * 107}' }}\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 1
    assert f"{file}:1: admin.address: " in done.stderr
    assert "too long for a Unix socket" in done.stderr


def test_a_successor_keeps_its_socket(gateway, workspace):
    path = workspace / "admin.sock"
    running = gateway(at(path))
    path.unlink()
    with socket.socket(socket.AF_UNIX) as successor:
        successor.bind(str(path))
        successor.listen()
        assert running.stop() == 0
        assert path.is_socket()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))


def test_the_socket_moves_with_a_reload(gateway, workspace):
    first, second = workspace / "a.sock", workspace / "b.sock"
    running = gateway(at(first))
    running.config["admin"] = {"address": f"unix:{second}"}
    running.write_config(running.config)
    assert post(running).status == 200
    assert not first.exists()
    running.listeners["admin"] = (f"unix:{second}", 0)
    assert running.admin_get("/api/v1/status").json()["listeners"][-1]["address"] == (
        f"unix:{second}")
    running.config["admin"] = {"address": "127.0.0.1:0"}
    running.write_config(running.config)
    assert post(running).status == 200
    assert not second.exists()
    line = running.wait_log("listening.*127.0.0.1.*listener=admin")
    port = int(line.split("address=")[1].split()[0].rsplit(":", 1)[1])
    running.listeners["admin"] = ("127.0.0.1", port)
    assert running.admin_get("/readyz").status == 200


def test_a_reload_to_a_socket_in_use_is_refused(gateway, workspace):
    path = workspace / "admin.sock"
    other = gateway(at(path))
    running = gateway()
    running.config["admin"] = {"address": f"unix:{path}"}
    running.write_config(running.config)
    refused = post(running)
    assert refused.status == 422
    assert "another process listens there" in refused.json()["errors"][0]["text"]
    assert other.admin_get("/readyz").status == 200
    assert running.admin_get("/readyz").status == 200


def test_a_client_of_the_socket_that_does_not_read_holds_no_worker(gateway, workspace, origin):
    there = origin(lambda _: reply(b"served"))
    running = gateway({**at(workspace / "admin.sock"), "workers": 1})
    stuck = []
    for _ in range(4):
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(workspace / "admin.sock"))
        client.setblocking(False)
        stuck.append(client)
        try:
            while True:
                client.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
        except BlockingIOError:
            pass
    for _ in range(20):
        assert running.get(there.url("/")).body == b"served"
        assert running.admin_get("/readyz").status == 200
    for client in stuck:
        client.close()
    until(lambda: running.metric("pinfold_client_connections_open") <= 2, "they are gone")


def test_the_socket_answers_while_draining(gateway, workspace, origin):
    go = threading.Event()
    there = origin(lambda _: go.wait(20) and reply(b"done"))
    path = workspace / "admin.sock"
    running = gateway({**at(path), "timeouts": {"grace": "20s"}})
    wire = running.wire()
    wire.send(request(there.url("/")))
    until(lambda: running.admin_get("/api/v1/status").json()["load"]["requests"] == 1, "a request")
    running.signal(signal.SIGTERM)
    until(lambda: running.admin_get("/readyz").status == 503, "draining")
    assert running.admin_get("/api/v1/status").json()["draining"]["waitsFor"]["requests"] == 1
    go.set()
    assert wire.read().status == 200
    assert running.wait_exit() == 0
    assert not path.exists()


# TLS


NAME = "admin.test"


@pytest.fixture
def server(pki):
    return pki.root.issue(NAME)


@pytest.fixture
def operator(pki):
    return pki.root.issue("operator", usage=ExtendedKeyUsageOID.CLIENT_AUTH)


def secured(gateway, tls: dict, **keys: object) -> Gateway:
    running = gateway({"admin": {"address": "127.0.0.1:0", "tls": tls, **keys}}, start=False)
    running.start(wait=False)
    line = running.wait_log("listening.*listener=admin")
    port = int(line.split("address=")[1].split()[0].rsplit(":", 1)[1])
    running.listeners["admin"] = ("127.0.0.1", port)
    return running


def context(pki, certificate=None) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=str(pki.root.pem_file))
    if certificate:
        made.load_cert_chain(certificate.chain_file(), certificate.key_file)
    return made


def tls_ask(running: Gateway, made: ssl.SSLContext, method: str, path: str, *fields: str,
            name: str = NAME) -> Response:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", *fields]
    if method == "POST":
        lines += [JSON, "Content-Length: 0"]
    with socket.create_connection(running.admin, 20) as plain, \
            made.wrap_socket(plain, server_hostname=name) as secure:
        wire = Wire(running.admin, sock=secure)
        wire.send("\r\n".join(lines) + "\r\n\r\n")
        return wire.read(method)


def test_tls_without_client_certificates(gateway, pki, server):
    running = secured(gateway, tls_of(server))
    made = context(pki)
    assert tls_ask(running, made, "GET", "/readyz").status == 200
    assert tls_ask(running, made, "GET", "/api/v1/status").json()["listeners"][-1]["tls"] is True
    assert tls_ask(running, made, "POST", "/api/v1/reload").status == 200
    # Clear text is no request.
    with socket.create_connection(running.admin, 20) as plain:
        plain.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" not in plain.recv(4096)
    assert tls_ask(running, made, "GET", "/api/v1/status").json()["state"] == "ready"


def test_with_client_roots_nobody_else_gets_in(gateway, pki, server, operator, tmp_path):
    token = tmp_path / "token"
    token.write_text("s3cret")
    running = secured(
        gateway, tls_of(server, clientRoots=[str(pki.root.pem_file)]), tokenFile=str(token))
    from support import pki as authorities
    stranger = authorities.root(tmp_path, "stranger").issue(
        "stranger", usage=ExtendedKeyUsageOID.CLIENT_AUTH)
    for path in ("/readyz", "/healthz", "/metrics", "/api/v1/status", "/api/v1/openapi.json"):
        for shown in (None, stranger):
            with pytest.raises((ssl.SSLError, ConnectionError, AssertionError, Exception)) as seen:
                answer = tls_ask(running, context(pki, shown), "GET", path,
                                 "Authorization: Bearer s3cret")
                assert answer.status == 0, "answered"
            assert "answered" not in str(seen.value)
        assert tls_ask(running, context(pki, operator), "GET", path).status == 200
    reloaded = tls_ask(running, context(pki, operator), "POST", "/api/v1/reload")
    assert reloaded.status == 200, "a certificate needs no token"
    assert "subject=" in running.wait_log("administrative command")


def test_the_subjects_that_are_served(gateway, pki, server, operator):
    other = pki.root.issue("other", usage=ExtendedKeyUsageOID.CLIENT_AUTH)
    running = secured(gateway, tls_of(
        server, clientRoots=[str(pki.root.pem_file)], clientSubjects=["CN=operator,**"]))
    served = tls_ask(running, context(pki, operator), "GET", "/api/v1/status")
    if served.status != 200:
        running.config["admin"]["tls"]["clientSubjects"] = ["CN=operator"]
        running.write_config(running.config)
        running.signal(signal.SIGHUP)
        running.wait_log("configuration reloaded")
        served = tls_ask(running, context(pki, operator), "GET", "/api/v1/status")
    assert served.status == 200
    for path in ("/healthz", "/api/v1/status"):
        assert tls_ask(running, context(pki, other), "GET", path).status == 403


def test_the_certificate_is_read_again_with_a_reload(gateway, pki, server, workspace):
    running = secured(gateway, tls_of(server))

    def presented() -> bytes:
        made = context(pki)
        with socket.create_connection(running.admin, 20) as plain, \
                made.wrap_socket(plain, server_hostname=NAME) as secure:
            return secure.getpeercert(True)

    assert presented() == server.der
    renewed = pki.root.issue(NAME)
    running.config["admin"]["tls"] = tls_of(renewed)
    running.write_config(running.config)
    assert tls_ask(running, context(pki), "POST", "/api/v1/reload").json()["changed"] == ["admin"]
    assert presented() == renewed.der
    # One that cannot be used leaves the present one in force.
    running.config["admin"]["tls"] = {**tls_of(renewed), "key": str(server.key_file)}
    running.write_config(running.config)
    refused = tls_ask(running, context(pki), "POST", "/api/v1/reload")
    assert refused.status == 422
    assert refused.json()["errors"][0]["key"] == "admin.tls.key"
    assert presented() == renewed.der


def test_requiring_certificates_ends_connections_without(gateway, pki, server, operator):
    running = secured(gateway, tls_of(server))
    with socket.create_connection(running.admin, 20) as plain, \
            context(pki).wrap_socket(plain, server_hostname=NAME) as secure:
        wire = Wire(running.admin, sock=secure)
        assert wire.ask("GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 200
        running.config["admin"]["tls"]["clientRoots"] = [str(pki.root.pem_file)]
        running.write_config(running.config)
        running.signal(signal.SIGHUP)
        running.wait_log("configuration reloaded")
        assert wire.ended()
    assert tls_ask(running, context(pki, operator), "GET", "/readyz").status == 200


def test_tls_does_not_apply_to_a_socket(workspace, pki, server):
    file = workspace / "both.yaml"
    tls = tls_of(server)
    file.write_text(f"admin:\n  address: unix:a.sock\n  tls: {{ certificate: {tls['certificate']}, "
                    f"key: {tls['key']} }}\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 1
    assert f"{file}:3: admin.tls: does not apply to a Unix socket" in done.stderr
