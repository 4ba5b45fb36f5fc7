"""What the live page's scripts decide without a browser: filters, formats, events, commands."""

from __future__ import annotations

import json
import subprocess

import pytest
from support.gateway import ROOT

PAGE = ROOT / "Sources/C/CLivePage/page"
FILES = sorted(one.name for one in PAGE.iterdir())


def run(module: str, expression: str) -> object:
    """The value of an expression with the exports of a module as `m`."""
    script = (f"import * as m from {json.dumps((PAGE / module).as_uri())};"
              f"console.log(JSON.stringify({expression}) ?? 'null')")
    done = subprocess.run(["node", "--no-warnings", "--input-type=module", "-e", script],
                          capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_program_serves_each_file_of_the_page_as_it_is(shared_gateway):
    for name in FILES:
        served = shared_gateway.admin_get(f"/page/{name}")
        assert served.status == 200, name
        assert served.body == (PAGE / name).read_bytes(), name
        assert served.get("x-content-type-options") == "nosniff"
        assert "default-src 'self'" in served.get("content-security-policy")
    assert shared_gateway.admin_get("/page/").status == 404
    assert shared_gateway.admin_get("/page/../base.css").status == 404


def test_no_script_makes_markup_of_texts():
    for name in FILES:
        text = (PAGE / name).read_text()
        for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                    "new Function", "DOMParser", "createContextualFragment", "srcdoc", "document.cookie"):
            assert way not in text, (name, way)


def test_no_file_loads_anything_from_outside():
    for name in FILES:
        text = (PAGE / name).read_text().replace("http://www.w3.org/2000/svg", "")
        for way in ("//cdn", "@import", "url(", 'src="http', "import(", 'from "http'):
            assert way not in text, (name, way)


@pytest.mark.parametrize("name", FILES)
def test_each_file_can_be_read_at_one_sitting(name):
    assert len((PAGE / name).read_text().splitlines()) < 400


FLOW = {"id": "1", "method": "GET", "host": "api.example.com:443", "path": "/v1/pay", "status": 502,
        "reason": "tls-no-pin-matches", "cache": "none", "kind": "request", "entry": "api",
        "client": "10.9.1.4:51234"}


@pytest.mark.parametrize(("text", "expected"), [
    ("", True), ("host:api.example.com", True), ("host:*.example.com", True),
    ("host:example.com", False), ("host:*.api.example.com", False), ("status:5xx", True),
    ("status:502", True), ("status:50", False), ("status:4xx", False), ("failed:true", True),
    ("failed:false", False), ("reason:tls-no-pin-matches", True), ("reason:tls", False),
    ("method:get", True), ("client:10.9.1.4", True), ("client:10.9.1", False), ("pay", True),
    ("PAY api", True), ("nothing", False), ("host:api.example.com cache:hit", False),
    ("unknown:word", False),
])
def test_a_filter_chooses_flows(text, expected):
    assert run("filter.js",
               f"m.matches({json.dumps(FLOW)}, m.parse({json.dumps(text)}))") is expected


def test_a_filter_is_the_query_of_an_address_and_back():
    query = run("filter.js", "m.parse('status:5xx  some host:a text')")
    assert query == {"status": "5xx", "host": "a", "q": "some text"}
    assert run("filter.js", f"m.text({json.dumps(query)})") == "host:a status:5xx some text"
    there = run("router.js", f"m.address('flows', {json.dumps(query)})")
    assert run("router.js", f"m.place({json.dumps(there)})") == {"panel": "flows", "query": query}


@pytest.mark.parametrize("cut", [1, 2, 3, 5, 1000])
def test_events_are_the_same_however_they_arrive(cut):
    stream = (": comment\n\nretry: 1000\n\nevent: flow\nid: 7\ndata: {\"a\":1}\n\n"
              "event: x\r\ndata: one\r\ndata: two\r\n\r\ndata:bare\n\nevent: empty\n\n")
    found = run("stream.js", f"""(() => {{
        const seen = [];
        const parser = m.eventParser((name, data) => seen.push([name, data]));
        const text = {json.dumps(stream)};
        for (let at = 0; at < text.length; at += {cut}) parser.push(text.slice(at, at + {cut}));
        return seen;
    }})()""")
    assert found == [["flow", '{"a":1}'], ["x", "one\ntwo"], ["message", "bare"]]


def test_an_event_without_end_is_not_collected_for_ever():
    assert run("stream.js", """(() => {
        const parser = m.eventParser(() => {});
        try {
            for (let at = 0; at < 100; at += 1) parser.push("data: " + "x".repeat(65536));
        } catch (error) { return error.message; }
    })()""") == "an event is too long"


@pytest.mark.parametrize("text", [
    "https://example.com/", "a;reboot", "it's", "$(reboot)", "`reboot`", "a b", "-x", "a\\b", "*"])
def test_a_command_says_to_a_shell_what_was_meant(text):
    word = run("text.js", f"m.quoted({json.dumps(text)})")
    done = subprocess.run(["sh", "-c", f"printf %s {word}"], capture_output=True, text=True,
                          timeout=10)
    assert (done.stdout, done.stderr) == (text, "")


@pytest.mark.parametrize("text", ["a\nreboot", "a\rb", "\u001b]0;x\u0007", "\u202egnp", "a\u200bb"])
def test_what_cannot_be_seen_is_in_no_command_and_is_written_out(text):
    assert run("text.js", f"m.quoted({json.dumps(text)})") is None
    shown = run("text.js", f"m.plain({json.dumps(text)})")
    assert isinstance(shown, str) and shown.isprintable() and "\\u{" in shown


@pytest.mark.parametrize(("call", "expected"), [
    ("count(1204)", "1,204"), ("count(undefined)", "–"), ("rate(0.25)", "0.25"),
    ("rate(1204.4)", "1,204"), ("share(0, 10)", "0 %"), ("share(1, 250)", "0.4 %"),
    ("share(1, 100000)", "<0.1 %"), ("share(61, 100)", "61 %"), ("share(1, 0)", "–"),
    ("bytes(0)", "0 B"), ("bytes(5452595)", "5.2 MiB"), ("bytes(220200960)", "210 MiB"),
    ("duration(90)", "90 µs"), ("duration(4200)", "4.2 ms"), ("duration(84000)", "84 ms"),
    ("duration(2400000)", "2.4 s"), ("duration(180000000)", "3 min"), ("span(7200)", "2 h"),
    ("span(5270400)", "61 d"), ("plural(1, 'host')", "1 host"), ("plural(2, 'host')", "2 hosts"),
    ("relative('2026-01-07T00:00:00Z', Date.parse('2026-01-01T00:00:00Z'))", "in 6 d"),
    ("relative('2026-01-01T00:00:00Z', Date.parse('2026-01-01T02:00:00Z'))", "2 h ago"),
])
def test_numbers_are_written_as_people_read_them(call, expected):
    assert run("format.js", f"m.{call}") == expected
