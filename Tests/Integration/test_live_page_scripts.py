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
    # Timers of the page would keep the program.
    return node(f"import * as m from {json.dumps((PAGE / module).as_uri())};"
                f"console.log(JSON.stringify({expression}) ?? 'null'); process.exit(0)")


def node(script: str) -> object:
    done = subprocess.run(["node", "--no-warnings", "--input-type=module", "-e", script],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# A browser's surroundings, and a gateway whose answers wait until the test gives them. `streams` are
# those that were opened, `questions` has what else was asked for. Time stands still until `pass`.
SURROUNDINGS = """
import {mock} from "node:test";
mock.timers.enable({apis: ["setTimeout", "setInterval", "Date"]});
globalThis.sessionStorage = {getItem: () => null};
globalThis.document = Object.assign(new EventTarget(), {hidden: false});
const streams = [];
const questions = [];
globalThis.fetch = (path, {signal}) => new Promise((resolve, reject) => {
    const given = {path, signal, isAborted: false};
    signal.addEventListener("abort", () => {
        given.isAborted = true;
        given.writer?.abort(signal.reason).catch(() => {});
        reject(signal.reason);
    });
    if (path.startsWith("/api/v1/events")) {
        given.open = () => {
            const body = new TransformStream({}, {highWaterMark: 1000});
            given.writer = body.writable.getWriter();
            given.writer.closed.catch(() => {});
            resolve(new Response(body.readable));
        };
        given.event = (name, data) => given.writer.write(new TextEncoder().encode(
            `event: ${name}\\ndata: ${JSON.stringify(data)}\\n\\n`)).catch(() => {});
        given.end = () => given.writer.close();
        given.breakOff = () => given.writer.abort(new TypeError("it broke off"));
        given.fail = () => reject(new TypeError("nobody is there"));
        streams.push(given);
    } else {
        given.answer = (value) => resolve(Response.json(value));
        questions.push(given);
    }
});
const settle = async () => {
    for (let round = 0; round < 20; round += 1) await new Promise((done) => setImmediate(done));
};
const pass = async (milliseconds) => {
    for (let left = milliseconds; left > 0; left -= 250) {
        mock.timers.tick(Math.min(left, 250));
        await settle();
    }
};
const asked = (path) => questions.filter((one) => one.path.startsWith(path));
const live = (list) => list.filter((one) => !one.isAborted);
const finish = (value) => { console.log(JSON.stringify(value)); process.exit(0); };
"""


def scene(module: str, names: str, text: str) -> object:
    """What a scene in these surroundings finishes with; `names` of a module are at hand."""
    uri = json.dumps((PAGE / module).as_uri())
    return node(f"{SURROUNDINGS}const {{{names}}} = await import({uri});{text}")


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


def test_trying_again_at_once_leaves_one_stream():
    found = scene("stream.js", "keepStream", """
        const seen = [];
        const states = [];
        const kept = keepStream("/api/v1/events", {
            onEvent: (name) => seen.push(name), onState: (state) => states.push(state.isOpen)});
        await settle();
        kept.retry();
        await settle();
        streams[0].open();
        streams[1].open();
        await settle();
        streams[0].event("early", {});
        streams[1].event("late", {});
        await settle();
        // Once more while one is open, and long after.
        kept.retry();
        await settle();
        streams[2].open();
        await pass(30_000);
        streams[1].event("early", {});
        streams[2].event("last", {});
        await settle();
        const open = live(streams).length;
        kept.stop();
        await pass(60_000);
        finish([seen, states, open, streams.length, live(streams).length]);
    """)
    assert found == [["late", "last"], [True, True], 1, 3, 0]


def test_a_stream_that_fails_or_falls_silent_is_opened_again():
    found = scene("stream.js", "keepStream", """
        const states = [];
        const kept = keepStream("/api/v1/events", {
            onEvent: () => {}, onState: (state) => states.push(state.isOpen)});
        await settle();
        streams[0].fail();
        await settle();
        await pass(1250);
        streams[1].open();
        await settle();
        streams[1].breakOff();
        await settle();
        await pass(1250);
        streams[2].open();
        await pass(39_000);
        const quiet = streams.length;
        await pass(2500);
        kept.stop();
        finish([states, quiet, streams.length, live(streams).length]);
    """)
    assert found == [[False, True, False, True, False], 3, 4, 0]


def test_a_stream_that_ends_in_order_is_opened_again_and_nothing_was_lost():
    found = scene("stream.js", "keepStream", """
        const states = [];
        keepStream("/api/v1/events", {
            onEvent: () => {}, onState: (state) => states.push(state.isOpen)});
        await settle();
        streams[0].open();
        await settle();
        streams[0].event("configuration", {generation: 2});
        streams[0].end();
        await settle();
        const atOnce = streams.length;
        // Where one ends as soon as it is open, the next is not asked for at once.
        streams[1].open();
        await settle();
        streams[1].event("bye", {});
        streams[1].end();
        await settle();
        finish([states, atOnce, streams.length]);
    """)
    assert found == [[True, True, False], 2, 2]


FOLLOWED = """
    follow();
    await settle();
    streams[0].open();
    await settle();
    const list = () => asked("/api/v1/flows").at(-1);
    const flow = (sequence) => ({id: `f${sequence}`, sequence});
    const ids = () => state.flows.map((one) => one.id).join(" ");
"""


def test_no_flow_is_listed_twice_and_none_is_lost():
    found = scene("live.js", "follow, live: state", FOLLOWED + """
        // These ended before the answer was made, and after.
        streams[0].event("flow", flow(3));
        streams[0].event("flow", flow(5));
        await settle();
        const before = ids();
        list().answer({flows: [flow(4), flow(3), flow(2)], newest: 4, capacity: 1000});
        await settle();
        const answered = ids();
        // The stream tells of it late: the list has it.
        streams[0].event("flow", flow(4));
        streams[0].event("flow", flow(6));
        await settle();
        const after = ids();
        // A new process counts from the beginning.
        streams[0].end();
        await pass(2000);
        streams[1].open();
        await settle();
        streams[1].event("flow", {id: "new", sequence: 1});
        await settle();
        list().answer({flows: [], newest: 0, capacity: 1000});
        await settle();
        finish([before, answered, after, ids()]);
    """)
    assert found == ["f5 f3", "f5 f4 f3 f2", "f6 f5 f4 f3 f2", "new"]


def test_what_was_left_out_is_read_seldom_however_much_it_is():
    found = scene("live.js", "follow, live: state", FOLLOWED + """
        list().answer({flows: [], newest: 0, capacity: 1000});
        await settle();
        for (let round = 0; round < 120; round += 1) {
            streams[0].event("dropped", {count: 900});
            await pass(250);
            list().answer({flows: [], newest: 900 * (round + 1), capacity: 1000});
            await settle();
        }
        const often = asked("/api/v1/flows").length;
        // An answer that does not come is waited for; once it has, the list is read once more.
        await pass(10_000);
        list().answer({flows: [], newest: 1, capacity: 1000});
        await settle();
        const before = asked("/api/v1/flows").length;
        streams[0].event("dropped", {count: 1});
        await pass(10_250);
        const waiting = asked("/api/v1/flows").length;
        for (let round = 0; round < 120; round += 1) {
            streams[0].event("dropped", {count: 1});
            await pass(250);
        }
        const late = asked("/api/v1/flows").length;
        list().answer({flows: [], newest: 2, capacity: 1000});
        await pass(11_000);
        finish([often, waiting - before, late - waiting, asked("/api/v1/flows").length - late,
            state.dropped, asked("/api/v1/flows").filter((one) => one.isAborted).length]);
    """)
    # At the beginning and every ten seconds of thirty; then the one that hangs, and one after it.
    assert found == [4, 1, 0, 1, 120 * 900 + 121, 0]


def test_what_the_gateway_never_held_adds_up_and_nothing_is_asked_for():
    found = scene("live.js", "follow, live: state", FOLLOWED + """
        list().answer({flows: [], newest: 0, capacity: 1000});
        await settle();
        const before = asked("/api/v1/flows").length;
        streams[0].event("leftOut", {count: 900});
        streams[0].event("leftOut", {count: 7});
        await pass(30_000);
        finish([state.leftOut, state.dropped, asked("/api/v1/flows").length - before]);
    """)
    assert found == [907, 0, 0]


def test_a_panel_asks_one_question_at_a_time():
    found = scene("poll.js", "poll", """
        const shown = [];
        const troubles = [];
        const stop = poll("/api/v1/hosts", (value) => shown.push(value), (one) => troubles.push(one.kind));
        await settle();
        // It becomes visible while it still waits: the later answer counts, and the other is not awaited.
        document.dispatchEvent(new Event("visibilitychange"));
        await settle();
        const waiting = live(asked("/api/v1/hosts")).length;
        asked("/api/v1/hosts").forEach((one, index) => one.answer(index));
        await settle();
        for (let round = 0; round < 6; round += 1) {
            await pass(5000);
            asked("/api/v1/hosts").at(-1).answer("again");
            await settle();
        }
        const often = asked("/api/v1/hosts").length;
        stop();
        await pass(30_000);
        finish([waiting, shown, often, asked("/api/v1/hosts").length, troubles]);
    """)
    assert found == [1, [1, *["again"] * 6], 8, 8, []]


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


def test_what_few_exchanges_waited_for_is_not_typical():
    host = {"phases": [{"phase": "dns", "count": 3, "p50_us": 250_000},
                       {"phase": "tls", "count": 100, "p50_us": 7_000},
                       {"phase": "first_byte", "count": 186, "p50_us": 900}]}
    assert run("hosts.js", f"m.typical({json.dumps(host)})") == {
        "tls_us": 7_000, "first_byte_us": 900}
    assert run("hosts.js", "m.typical({})") == {}


@pytest.mark.parametrize(("call", "expected"), [
    ("count(1204)", "1,204"), ("count(undefined)", "–"), ("rate(0.25)", "0.25"),
    ("rate(1204.4)", "1,204"), ("share(0, 10)", "0 %"), ("share(1, 250)", "0.4 %"),
    ("share(1, 100000)", "<0.1 %"), ("share(61, 100)", "61 %"), ("share(1, 0)", "–"),
    ("bytes(0)", "0 B"), ("bytes(5452595)", "5.2 MiB"), ("bytes(220200960)", "210 MiB"),
    ("duration(90)", "90 µs"), ("duration(4200)", "4.2 ms"), ("duration(84000)", "84 ms"),
    ("duration(2400000)", "2.4 s"), ("duration(180000000)", "3 min"), ("span(7200)", "2 h"),
    ("span(5270400)", "61 d"), ("span(2274912000)", "72 y"), ("rate(0.02)", "0.02"),
    ("rate(0.001)", "<0.01"), ("rate(0)", "0"), ("plural(1, 'host')", "1 host"), ("plural(2, 'host')", "2 hosts"),
    ("relative('2026-01-07T00:00:00Z', Date.parse('2026-01-01T00:00:00Z'))", "in 6 d"),
    ("relative('2026-01-01T00:00:00Z', Date.parse('2026-01-01T02:00:00Z'))", "2 h ago"),
])
def test_numbers_are_written_as_people_read_them(call, expected):
    assert run("format.js", f"m.{call}") == expected
