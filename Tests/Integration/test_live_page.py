"""The live page in a browser, with real traffic behind it."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.gateway import Gateway, free_port
from support.livepage import PATIENCE, LivePage, live_page
from support.origin import reply
from support.wait import until as until_within
from support.wire import Wire, request
from test_pinset_life import HOST, configuration, serve

PANELS = ["overview", "flows", "hosts", "pins", "reachability", "cache", "workers",
          "configuration", "setup"]
TOKEN = "a-token-of-16-bytes-or-more"
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
WIDTHS = [360, 2000]


def until(condition: Callable[[], object], what: str | Callable[[], str]) -> object:
    return until_within(condition, what, PATIENCE)


def url_of(running: Gateway) -> str:
    return "http://%s:%d/" % running.admin


@pytest.fixture
def browse(workspace) -> Iterator[Callable[[Gateway], LivePage]]:
    """browse(running): a browser that shows the page of a gateway. At the end, nothing may have gone
    wrong in it: no exception, no violation of its policy, no script of somebody else's."""
    opened: list[tuple[object, LivePage]] = []

    def open_page(running: Gateway, place: str = "") -> LivePage:
        entered = live_page(workspace / f"browser-{len(opened)}")
        page = entered.__enter__()
        opened.append((entered, page))
        page.looks(1280)
        page.open(url_of(running) + (f"#{place}" if place else ""))
        return page

    yield open_page
    try:
        for _, page in opened:
            page.evaluate("true")
            assert page.problems == []
            assert page.dialogs == 0
    finally:
        for entered, _ in opened:
            entered.__exit__(None, None, None)


@pytest.fixture
def guarded(gateway, tmp_path) -> Callable[..., Gateway]:
    """guarded(config): a gateway that wants a token."""
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)

    def start(config: dict | None = None) -> Gateway:
        return gateway({"admin": {"tokenFile": str(file), "metrics": "token"}, **(config or {})})

    return start


def enter(page: LivePage, token: str = TOKEN) -> None:
    page.wait_text("admin.tokenFile", "main")
    page.evaluate("document.getElementById('token').focus()")
    page.type(token)
    page.press("Enter")


def reload(running: Gateway) -> int:
    with Wire(running.admin) as wire:
        return wire.ask(request(f"http://127.0.0.1:{running.admin[1]}/api/v1/reload", method="POST",
                                Content_Type="application/json")).status


def rows(page: LivePage) -> list[str]:
    return json.loads(str(page.evaluate("""JSON.stringify(
        [...document.querySelectorAll('main table.flows tbody tr')].map((row) => row.innerText))""")))


def keep_asking(page: LivePage, ask: Callable[[], object], wanted: str) -> None:
    """Sends requests until the page shows one: only those that end while somebody watches are."""
    def seen() -> bool:
        ask()
        return wanted in page.text("main")
    until(seen, lambda: f"{wanted!r}:\n{page.text()}\n{page.problems}")


# What it shows


def test_five_seconds_say_whether_all_is_well_and_three_clicks_why_not(
        gateway, origin, browse, tmp_path):
    there = origin(lambda _: reply(b"x" * 100, "200 OK", "Cache-Control: max-age=60"))
    running = gateway({"hosts": [{"match": ["127.0.0.1"]}]})
    refused = running.get("http://127.0.0.1:1/refused")
    assert refused.status == 502
    page = browse(running)
    page.wait_text("serving", "#service")
    page.wait_text("/refused", "main")
    keep_asking(page, lambda: running.get(there.url("/served")), "/served")
    # The figures are those of the last five seconds, in which something went on.
    figures = {
        "requests/s": r"[\d.,]+", "cache hits": r"([1-9]\d*|\d\.\d) %", "p99": r"[\d.]+ (µs|ms|s)",
        "refused, failed": r"[\d.]+ %", "in flight": r"\d+", "clients": r"[1-9]\d* / [\d,]+",
        "to servers": r"\d+ / [\d,]+", "tunnels": r"\d+", "sent": r"[\d.]+ ([KM]i)?B/s",
        "busy": r"\d+ %", "activity": ". (idle|starting|active|ending)"}

    client = running.wire()

    def are_shown() -> bool:
        client.ask(request(there.url("/served")))
        shown = page.figures()
        return shown["requests/s"] != "0" and all(
            re.fullmatch(wanted, shown[name]) for name, wanted in figures.items())

    until(are_shown, lambda: str(page.figures()))
    client.close()
    page.wait_text("hit", "main table.flows")
    page.wait_text("127.0.0.1", "main table[aria-label=Hosts]")
    # Clicks on the share of failures and on the request, and there is why, and what to do.
    page.click("refused, failed", "#figures a")
    page.wait_text("/refused", "main table.flows")
    page.click("/refused", "a.row")
    shown = page.wait_text("What to do", "main")
    assert page.place.startswith("flow?id=")
    assert "pinfold reasons" in shown and "Where its time went" in shown
    assert "masked" not in shown
    assert "Both heads are shown to who has the token" in shown


def test_every_selection_has_an_address(gateway, origin, browse):
    there = origin(lambda _: reply(b"x"))
    running = gateway()
    running.get("http://127.0.0.1:1/refused")
    page = browse(running, "flows?failed=true")
    page.wait_text("/refused", "main")
    numbers = itertools.count()
    page.go("flows")
    keep_asking(page, lambda: running.get(there.url(f"/served/{next(numbers)}")), "/served/")
    page.go("flows?failed=true")
    until(lambda: all("/refused" in row for row in rows(page)) and rows(page), "those that failed")
    # A word in a row leads to all that have it, with what it means.
    page.evaluate("document.querySelector('main table.flows td:nth-child(4) a').click()")
    until(lambda: page.place.startswith("flows?reason="), "a filter by reason")
    page.wait_text("What to do", "main .why")
    # What is typed is the address as well.
    page.evaluate("document.getElementById('filter').focus()")
    page.press("Escape")
    page.go("flows")
    page.wait_text("/served/", "main")
    page.press("/")
    page.type("status:200 served")
    until(lambda: page.place == "flows?status=200&q=served", lambda: page.place)
    until(lambda: all("/served/" in row for row in rows(page)) and rows(page), "those served")


def test_the_keyboard_is_enough(gateway, origin, browse):
    running = gateway()
    for number in range(3):
        running.get(f"http://127.0.0.1:1/refused/{number}")
    page = browse(running, "flows")
    until(lambda: len(rows(page)) == 3, "three flows")
    # They are in the order in which they ended, which need not be that of the answers.
    second = re.findall(r"/refused/\d", rows(page)[1])[0]
    page.press("j", "j", "k", "j")
    focused = str(page.evaluate("document.activeElement.innerText"))
    assert focused.endswith(second), rows(page)
    # The list stands still while somebody is in it.
    running.get("http://127.0.0.1:1/refused/3")
    page.wait_text("standing still", "main .note")
    assert len(rows(page)) == 3
    page.press("Enter")
    page.wait_text(second, "main h1")
    page.press("Escape")
    until(lambda: page.place == "flows", "back to the list")
    until(lambda: len(rows(page)) == 4, "four flows")
    page.press("p")
    page.wait_text("Go on", "main")
    page.press("p")
    page.wait_text("Pause", "main")
    page.press("/")
    assert page.evaluate("document.activeElement.id") == "filter"
    page.press("Escape")
    page.press("Escape")
    until(lambda: page.place == "overview", "back to the overview")


def test_pins_say_what_matched_and_what_expires(gateway, origin, pki, browse):
    identity = pki.intermediate.issue("127.0.0.1")
    there = origin(lambda _: reply(b"x"), tls=identity.server_context())
    running = gateway({
        "tls": {"roots": [str(pki.root.pem_file)]},
        "pinsets": {"mine": {"mode": "publicKey", "expires": "2099-01-01",
                             "pins": ["sha256/" + "A" * 43 + "="]}},
        "hosts": [{"match": ["127.0.0.1"], "upgrade": "https", "pinsets": ["mine"]}]})
    assert running.get(there.url("/")).status == 502
    page = browse(running, "pins")
    shown = page.wait_text("1 no pin matched", "main")
    assert "sha256/AAAAAAAAAAAA" in shown and "never" in shown and "enforced" in shown
    assert "2099-01-01" in page.text("main table[aria-label=Calendar]")
    page.go("flows?pin=refused")
    page.wait_text("tls-no-pin-matches", "main table.flows")
    page.go("hosts?entry=127.0.0.1")
    page.wait_text("mine", "main .facts")


def test_one_url_is_looked_up_and_purged_and_nothing_else_is_changed(guarded, origin, browse):
    there = origin(lambda _: reply(b"stored", "200 OK", "Cache-Control: max-age=600"))
    running = guarded()
    for _ in range(2):
        running.get(there.url("/stored"))
    page = browse(running, "cache")
    enter(page)
    page.wait_text("1 response", "main")
    page.press("/")
    page.type(there.url("/stored"))
    page.press("Enter")
    page.wait_text("GET 200", "main")
    before = len(there.requests)
    page.click("Purge this URL")
    page.wait_text("sure?", "main")
    page.click("sure?")
    page.wait_text("Purged: 1 response", "main")
    page.wait_text("Nothing is stored", "main")
    running.get(there.url("/stored"))
    assert len(there.requests) == before + 1
    # There is nothing else on the page that could change something.
    scripts = Path(__file__).resolve().parents[2] / "Sources/C/CLivePage/page"
    sent = [line for file in scripts.glob("*.js") for line in file.read_text().splitlines()
            if "send(" in line and "function send" not in line]
    assert len(sent) == 1 and "/api/v1/cache/purge" in sent[0]


def test_the_configuration_in_force_and_the_last_error(gateway, browse):
    running = gateway()
    good = running.config_file.read_text()
    page = browse(running, "configuration")
    page.wait_text(str(running.config_file), "main")
    page.wait_text("The file says what is in force", "main")
    running.config_file.write_text(good + "timeouts: {grace: 7s}\n")
    shown = page.wait_text("A reload would put it in force", "main")
    assert "timeouts" in shown
    assert f"pinfold reload --config {running.config_file}" in shown
    running.config_file.write_text("listeners: nonsense\n")
    shown = page.wait_text("would be refused", "main")
    assert f"{running.config_file}:1:1" in shown
    assert reload(running) == 422
    shown = page.wait_text("what was in force before stays", "main")
    assert "listeners" in shown
    # The error stays known when all is well again.
    running.config_file.write_text(good)
    assert reload(running) == 200
    shown = page.wait_text("The last error was", "main")
    assert "listeners" in shown and "applied" in shown


def test_the_configuration_as_text_needs_the_token(gateway, guarded, browse):
    page = browse(gateway(), "configuration")
    page.wait_text("The text is shown to who has the token", "main")
    running = guarded({"hosts": [{"match": ["a.example"], "request": {
        "headers": {"set": {"X-Key": "c2VjcmV0"}}}}]})
    page = browse(running, "configuration")
    enter(page)
    shown = page.wait_text('match: ["a.example"]', "main pre")
    assert '"X-Key": "***"' in shown
    assert "c2VjcmV0" not in page.text() and TOKEN not in page.text()


def test_a_flow_shows_the_certificates_of_its_server(guarded, origin, pki, browse):
    leaf = pki.intermediate.issue(HOST)
    there = serve(origin, leaf)
    running = guarded(configuration(pki))
    assert running.get(f"http://{HOST}:{there.port}/").status == 502
    page = browse(running, "flows?failed=true")
    enter(page)
    page.wait_text(HOST, "main table.flows")
    page.click(HOST, "a.row")
    shown = page.wait_text("Certificates of the server", "main")
    assert "no pin matches" in shown and "1 of " in shown
    # What to add is there to copy.
    assert f"- {leaf.pin}" in shown
    assert page.sideways == 0


# Who sees it


def test_the_page_asks_for_the_token_and_keeps_it_in_the_tab(guarded, browse):
    running = guarded()
    running.get("http://127.0.0.1:1/refused?secret=1")
    page = browse(running)
    enter(page, "wrong-token-of-some-length")
    page.wait_text("does not accept that token", "main")
    assert "/refused" not in page.text()
    enter(page)
    page.wait_text("/refused?secret=1", "main")
    assert page.evaluate("sessionStorage.getItem('pinfold-token')") == TOKEN
    assert page.evaluate("document.cookie + localStorage.length") == "0"
    asked = json.loads(str(page.evaluate("""JSON.stringify(
        performance.getEntriesByType('resource').map((one) => one.name))""")))
    assert asked and not any(TOKEN in one for one in asked)
    assert TOKEN not in page.place
    page.click("/refused", "a.row")
    shown = page.wait_text("Request", "main")
    assert "127.0.0.1" in shown
    # A reload of the page does not ask again, another tab does.
    page.open(url_of(running))
    page.wait_text("/refused?secret=1", "main")


def test_the_shell_holds_no_data_and_setup_needs_no_token(guarded, browse):
    running = guarded()
    shell = running.admin_get("/", Accept="text/html")
    assert shell.status == 200
    assert running.folder.name.encode() not in shell.body
    policy = shell.get("content-security-policy")
    assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    page = browse(running, "setup")
    page.wait_text("curl --proxy", "main")
    page.press("/")
    page.type("Android")
    until(lambda: "curl --proxy" not in page.text("main"), "only Android")
    assert "Android" in page.text("main")


def test_texts_of_servers_and_clients_are_texts(guarded, origin, browse):
    there = origin(lambda _: reply(
        HOSTILE.encode(), "200 OK", "Content-Type: text/html", f"X-Hostile: {HOSTILE}"))
    running = guarded()
    page = browse(running, "flows")
    enter(page)
    page.wait_text("flows", "main")
    path = "/" + HOSTILE.replace(" ", "%20")

    def ask() -> None:
        running.ask(request(there.url(path), X_Hostile=HOSTILE, User_Agent=HOSTILE,
                            Connection="close"))

    keep_asking(page, ask, "onerror=alert(1)")
    page.evaluate("document.querySelector('main table.flows a.row').click()")
    shown = page.wait_text("X-Hostile", "main")
    assert shown.count(HOSTILE) >= 2
    assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0
    page.go("flows?q=" + "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    page.wait_text("onerror=alert(1)", "main")
    for panel in PANELS:
        page.go(panel)
        page.wait_panel(panel)
    assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0


# How it looks


@pytest.mark.slow
def test_every_panel_is_for_everybody(gateway, origin, browse):
    """Narrow and wide, light and dark: nothing is cut off, and axe finds nothing that keeps
    anybody out."""
    there = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: max-age=60"))
    running = gateway({
        "pinsets": {"mine": {"mode": "publicKey", "expires": "2099-01-01",
                             "pins": ["sha256/" + "A" * 43 + "="]}},
        "hosts": [{"match": ["a.example"], "upgrade": "https", "pinsets": ["mine"]}]})
    running.get("http://127.0.0.1:1/refused/" + "long" * 50)
    page = browse(running)
    page.wait_text("/refused", "main")
    keep_asking(page, lambda: running.get(there.url("/served")), "/served")
    flow = str(page.evaluate(
        "document.querySelector('main table.flows a.row').getAttribute('href').slice(1)"))
    grounds = set()
    for width, scheme in itertools.product(WIDTHS, ("light", "dark")):
        page.looks(width, scheme=scheme)
        for panel in [*PANELS, flow, f"cache?url={there.url('/served')}", "flows?failed=true"]:
            page.go(panel)
            page.wait_panel(panel.partition("?")[0])
            assert page.sideways == 0, (panel, width)
            assert page.barriers() == [], (panel, width, scheme)
        grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2
    page.looks(360)
    page.open(url_of(running) + "setup")
    assert page.sideways == 0
    assert page.barriers() == []


# What goes wrong


@pytest.mark.slow
def test_a_page_that_lost_its_gateway_says_so_and_comes_back(gateway, browse):
    running = gateway({"admin": {"address": f"127.0.0.1:{free_port()}"}})
    running.get("http://127.0.0.1:1/before")
    page = browse(running, "flows")
    page.wait_text("/before", "main")
    running.kill()
    page.wait_text("Connection lost", "#connection")
    assert "/before" in page.text("main"), "what was known is still there"
    running.start()
    running.get("http://127.0.0.1:1/after")
    page.wait_text("/after", "main")
    until(lambda: page.text("#connection") == "", "the notice is gone")
    until(lambda: "/before" not in page.text("main"), "the new process holds nothing of the old")
    # An orderly end and a reload are no different.
    running.restart()
    running.get("http://127.0.0.1:1/again")
    page.wait_text("/again", "main")


@pytest.mark.slow
def test_many_flows_are_a_thousand_rows_and_few_questions(gateway, origin, browse):
    there = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: max-age=600"))
    running = gateway()
    running.get(there.url("/served"))
    page = browse(running, "flows")
    keep_asking(page, lambda: running.get(there.url("/served")), "/served")
    begin = time.monotonic()

    def is_full() -> bool:
        """Asks for more than are held in that time."""
        with running.wire() as wire:
            wire.send(request(there.url("/served")) * 50)
            for _ in range(50):
                assert wire.read().status == 200
        return running.admin_get("/api/v1/flows?limit=1").json()["held"] == 1000

    until(is_full, "a thousand are held")
    running.get("http://127.0.0.1:1/the-last")
    page.wait_text("/the-last", "main")
    # Of what came too fast to be told one by one, the last are read anew.
    page.wait_text("1,000 of 1,000 flows", "main .note")
    page.wait_text(" were left out, because more end than are shown", "main .note")
    assert len(rows(page)) == 200
    # The whole list was read at the beginning, and no more often than every ten seconds.
    assert page.times_asked("/api/v1/flows") <= 2 + (time.monotonic() - begin) / 10
    # The stream has not ended: what has not is not counted.
    assert page.times_asked("/api/v1/events") == 0
    page.click("Show all")
    until(lambda: len(rows(page)) == 1000, lambda: f"all that are held, not {len(rows(page))}")
    # No row is there twice.
    assert page.evaluate("""new Set([...document.querySelectorAll('main a.row')]
        .map((one) => one.getAttribute('href'))).size""") == 1000
    page.press("/")
    page.type("the-last")
    until(lambda: len(rows(page)) == 1, "one is left")


def test_a_reload_of_the_configuration_is_shown_and_is_no_lost_connection(gateway, browse):
    running = gateway()
    page = browse(running, "configuration")
    page.wait_panel("configuration")
    page.wait_text("configuration 1 ", "#service")
    page.evaluate("""window.lost = 0; new MutationObserver(() => {
        if (!document.getElementById('connection').hidden) window.lost += 1;
    }).observe(document.getElementById('connection'), {attributes: true, childList: true})""")
    assert reload(running) == 200
    page.wait_text("configuration 2 ", "#service")
    page.wait_text("applied", "main")
    running.get("http://127.0.0.1:1/after")
    page.go("flows")
    page.wait_text("/after", "main")
    assert page.evaluate("window.lost") == 0
