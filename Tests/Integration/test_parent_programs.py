"""Proxies that others use as parents: Squid, HAProxy, tinyproxy, microsocks, and Pinfold itself."""

from __future__ import annotations

import contextlib

import pytest
from support.gateway import run_pinfold
from support.origin import reply
from support.parents import HAProxy, Microsocks, Squid, Tinyproxy, stopping, ways
from support.secure import tls_of

PROGRAMS = ["squid", "squid https", "tinyproxy", "microsocks", "microsocks names", "haproxy",
            "haproxy https", "pinfold", "pinfold https"]


@pytest.fixture
def url_of(workspace, gateway, pki):
    """url_of(program, password): the URL of a running one."""
    with contextlib.ExitStack() as stack:

        def start(name: str, password: str = "") -> str:
            folder = workspace / name.replace(" ", "-")
            leaf = pki.intermediate.issue("parent.test")
            both = folder.with_suffix(".pem")
            both.write_bytes(leaf.chain_file().read_bytes() + leaf.key_file.read_bytes())
            both.chmod(0o644)

            def run(made):
                return stack.enter_context(stopping(made)).port

            match name:
                case "squid": return f"http://parent.test:{run(Squid(folder, password))}"
                case "squid https":
                    tls = f"tls-cert={both}"
                    return f"https://parent.test:{run(Squid(folder, password, tls=tls))}"
                case "tinyproxy": return f"http://parent.test:{run(Tinyproxy(folder, password))}"
                case "microsocks": return f"socks5://parent.test:{run(Microsocks(folder, password))}"
                case "microsocks names":
                    return f"socks5h://parent.test:{run(Microsocks(folder, password))}"
                case "haproxy":
                    behind = run(Tinyproxy(folder / "t", password))
                    return f"http://parent.test:{run(HAProxy(folder, behind))}"
                case "haproxy https":
                    behind = run(Tinyproxy(folder / "t", password))
                    return f"https://parent.test:{run(HAProxy(folder, behind, both))}"
                case "pinfold" | "pinfold https":
                    secure = name.endswith("https")
                    listener = {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"}
                    if secure:
                        listener["tls"] = tls_of(leaf)
                    running = gateway({"listeners": [listener], "cache": {"enabled": False}})
                    scheme = "https" if secure else "http"
                    return f"{scheme}://parent.test:{running.proxy[1]}"
            raise AssertionError(name)

        yield start


@pytest.mark.parametrize("name", PROGRAMS)
def test_requests_pins_and_tunnels_pass_through(gateway, origin, url_of, pki, name):
    leaf = pki.intermediate.issue("127.0.0.1", "localhost")
    plain = origin(lambda asked: reply(asked.body or asked.target.encode()))
    secure = origin(lambda _: reply(b"secure"), tls=leaf.server_context())
    wrong = origin(lambda _: reply(b"wrong"),
                   tls=pki.intermediate.issue("127.0.0.1", "localhost").server_context())
    running = gateway(ways(
        url_of(name), tls={"roots": [str(pki.root.pem_file)]},
        hosts=[{"match": [f"localhost:{one.port}"], "upgrade": "https", "pinsets": ["p"]}
               for one in (secure, wrong)]
        + [{"match": [f"localhost:{plain.port}"], "clearText": "allow", "tunnel": "pass"}],
        pinsets={"p": {"mode": "publicKey", "pins": [leaf.pin]}}))
    for _ in range(3):
        response = running.get(f"http://localhost:{plain.port}/x")
        assert (response.status, response.body) == (200, b"/x")
    from support.wire import request
    body = b"0123456789" * 20_000
    response = running.ask(request(
        f"http://localhost:{plain.port}/", host=f"localhost:{plain.port}", method="POST",
        body=body, Connection="close"))
    assert (response.status, response.body) == (200, body)
    for _ in range(3):
        response = running.get(f"http://localhost:{secure.port}/")
        assert (response.status, response.body) == (200, b"secure")
    response = running.get(f"http://localhost:{wrong.port}/")
    assert (response.status, b"tls-no-pin-matches" in response.body) == (502, True)
    assert wrong.application_bytes == b""
    wire, response = running.connect(f"localhost:{plain.port}")
    with wire:
        assert response.status == 200
        wire.send(request("/inside", host="localhost", Connection="close"))
        assert wire.read().body == b"/inside"
    assert {line["parent"] for line in running.wait_access(9)} == {"p0"}


@pytest.mark.parametrize("name", ["squid", "tinyproxy", "microsocks", "microsocks names"])
@pytest.mark.parametrize("right", [True, False], ids=["right", "wrong"])
def test_programs_check_the_password(gateway, origin, url_of, workspace, name, right):
    there = origin(lambda _: reply(b"ok"))
    secret = workspace / "secret"
    secret.write_text("sesame" if right else "wrong")
    config = ways(url_of(name, "sesame"))
    config["parents"]["p0"] |= {"user": "pinfold", "passwordFile": str(secret)}
    running = gateway(config)
    response = running.get(f"http://localhost:{there.port}/")
    wire, opened = running.connect(f"localhost:{there.port}")
    wire.close()
    if right:
        assert (response.status, opened.status) == (200, 200)
    else:
        # tinyproxy answers 401 to what it does not accept, which might be a server's.
        assert (response.status, opened.status) == (401 if name == "tinyproxy" else 502, 502)
        reasons = {line.get("reason") for line in running.wait_access(2)}
        assert reasons <= {"proxy-authentication-required", "proxy-refused", None}
        assert there.accepted == 0


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
def test_the_library_goes_through_socks(workspace, origin, pki, scheme):
    plain = origin(lambda _: reply(b"plain"))
    with stopping(Microsocks(workspace / "socks", "sesame")) as way:
        url = f"{scheme}://pinfold:sesame@127.0.0.1:{way.port}"
        done = run_pinfold("get", f"http://localhost:{plain.port}/", "--proxy", url)
        assert (done.returncode, done.stdout) == (0, "plain"), done.stderr
        wrong = run_pinfold("get", f"http://localhost:{plain.port}/", "--proxy",
                            url.replace("sesame", "secret"))
        assert wrong.returncode != 0
        assert "user name and password" in wrong.stderr and "secret" not in wrong.stderr
