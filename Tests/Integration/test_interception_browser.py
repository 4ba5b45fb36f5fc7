"""A browser in intercepted tunnels: a page with all that belongs to it, and what is shown when
something is wrong with a certificate."""

from __future__ import annotations

import base64

import pytest
from support.chromium import Chromium
from support.interception import HOST, OTHER
from support.origin import HTTPOrigin, reply
from support.secure import NAME, forward, tls_of
from support.socks import listener
from support.wait import until

PARTS = {"image": 20, "script": 20, "style": 10}
IMAGE = base64.b64decode("R0lGODlhAQABAIAAAP///wAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==")

# Counts, once it has loaded, which of its parts have come and are in use.
_PAGE = """<!doctype html><html><head><link rel="icon" href="data:,"><title></title>
{styles}<script>var scripts = 0;</script>{scripts}</head><body>{images}<p id="seen"></p><script>
addEventListener("load", () => {{
  const images = [...document.images].filter((one) => one.naturalWidth > 0).length;
  const root = getComputedStyle(document.documentElement);
  const styles = [...Array({count}).keys()].filter(
    (number) => root.getPropertyValue("--style-" + number).trim() === "used").length;
  document.getElementById("seen").textContent = [images, scripts, styles].join(" ");
}});
</script></body></html>
"""


def page() -> str:
    return _PAGE.format(
        count=PARTS["style"],
        styles="".join(f'<link rel="stylesheet" href="/style/{number}">'
                       for number in range(PARTS["style"])),
        scripts="".join(f'<script src="/script/{number}"></script>'
                        for number in range(PARTS["script"])),
        images="".join(f'<img src="/image/{number}">' for number in range(PARTS["image"])))


def part(target: str) -> bytes:
    if target == "/":
        kind, body = "text/html", page().encode()
    else:
        what, number = target[1:].split("/")
        kind, body = {
            "image": ("image/gif", IMAGE),
            "script": ("text/javascript", b"scripts += 1;"),
            "style": ("text/css", f":root {{ --style-{number}: used; }}".encode()),
        }[what]
    return reply(body, "200 OK", f"Content-Type: {kind}", "Cache-Control: max-age=600")


@pytest.fixture
def running(gateway, pki, authority):
    return gateway({
        "workers": 1, "tls": {"roots": [str(pki.root.pem_file)]},
        "interception": authority.section | {"default": True}})


@pytest.fixture
def there(origin, pki) -> HTTPOrigin:
    return origin(lambda seen: part(seen.target),
                  tls=pki.intermediate.issue(HOST).server_context())


@pytest.fixture
def browser(running, workspace):
    """browser(*authorities): a browser that has run never before."""
    count = 0

    def make(*authorities) -> Chromium:
        nonlocal count
        count += 1
        folder = workspace / f"browser-{count}"
        folder.mkdir()
        return Chromium(folder, running.proxy_url, authorities)

    return make


def inside(running, there) -> list[dict]:
    """What was asked for in tunnels to a server. The browser asks for things of its own, too."""
    return [line for line in running.access_lines()
            if line.get("tunnel") == f"{HOST}:{there.port}"]


def test_a_page_comes_with_all_its_parts_and_again_from_the_cache(
        running, there, authority, browser):
    url, seen = f"https://{HOST}:{there.port}/", '<p id="seen">20 20 10</p>'
    targets = {f"/{kind}/{number}" for kind, count in PARTS.items() for number in range(count)}
    targets.add("/")
    assert seen in browser(authority.file).shows(url)
    assert {one.target for one in there.requests} == targets
    assert len(there.requests) == len(targets), "each part once"
    assert all("pinfold" in one.get("via") for one in there.requests)
    until(lambda: len(inside(running, there)) == len(targets), "all are in the access log")
    assert all(line["cache"] == "miss" for line in inside(running, there))

    assert seen in browser(authority.file).shows(url)
    assert len(there.requests) == len(targets), "the server is asked for nothing more"
    until(lambda: len(inside(running, there)) == 2 * len(targets), "all are in the access log")
    again = inside(running, there)[len(targets):]
    assert {line["target"] for line in again} == targets
    assert all(line["cache"] == "hit" and line["client_tls"] == "TLSv1.3" for line in again)
    assert running.metric("pinfold_interception_certificates_issued_total") == 1


def test_a_bad_certificate_of_the_server_is_a_tunnel_that_failed(
        running, origin, pki, authority, browser):
    there = origin(lambda _: reply(b"here"), tls=pki.intermediate.issue(OTHER).server_context())
    assert browser(authority.file).shows(
        f"https://{HOST}:{there.port}/") == "net::ERR_TUNNEL_CONNECTION_FAILED"
    assert "tls-host-mismatch" in [line.get("reason") for line in running.wait_access(1)]
    assert there.application_bytes == b""


def test_a_browser_that_does_not_know_the_authority_shows_an_error(running, there, browser):
    url = f"https://{HOST}:{there.port}/"
    assert browser().shows(url) == "net::ERR_CERT_AUTHORITY_INVALID"
    assert there.requests == []
    assert running.metric("pinfold_interception_rejections_total", host="default") >= 1


def test_a_browser_speaks_tls_with_its_proxy(gateway, origin, pki, workspace):
    """Without interception: through one proxy a page by http, and one by https."""
    running = gateway({"listeners": [forward(tls_of(pki.root.issue(NAME)))]})
    proxy = "https://%s:%d" % (NAME, running.proxy[1])
    browser = Chromium(workspace, proxy, [pki.root.pem_file])
    tls = pki.intermediate.issue(HOST).server_context()
    there = origin(lambda seen: part(seen.target), tls=tls)
    assert '<p id="seen">20 20 10</p>' in browser.shows(f"https://{HOST}:{there.port}/")
    assert not any("via" in one for one in there.requests), "a tunnel"
    clear = origin(lambda seen: part(seen.target))
    assert '<p id="seen">20 20 10</p>' in browser.shows(f"http://{HOST}:{clear.port}/")
    assert all("pinfold" in one.get("via") for one in clear.requests)
    assert running.metric("pinfold_client_tls_handshakes_total", version="1.3") >= 2


def test_a_browser_uses_a_socks_listener(gateway, origin, pki, authority, workspace):
    """By name: through one listener a page by http, and an intercepted one by https."""
    running = gateway({
        "listeners": [forward(None), listener()], "tls": {"roots": [str(pki.root.pem_file)]},
        "interception": authority.section, "hosts": [{"match": [HOST], "intercept": True}],
        "access": {"connectPorts": "any"}})
    browser = Chromium(
        workspace, "socks5://%s:%d" % running.listeners["socks"], [authority.file])
    there = origin(lambda seen: part(seen.target),
                   tls=pki.intermediate.issue(HOST).server_context())
    assert '<p id="seen">20 20 10</p>' in browser.shows(f"https://{HOST}:{there.port}/")
    assert all("pinfold" in one.get("via") for one in there.requests), "intercepted"
    clear = origin(lambda seen: part(seen.target))
    assert '<p id="seen">20 20 10</p>' in browser.shows(f"http://{OTHER}:{clear.port}/")
    versions = {line["version"] for line in running.wait_access() if line["method"] == "CONNECT"}
    assert versions == {"SOCKS5"}
