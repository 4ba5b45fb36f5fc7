import Testing

@testable import pinfold

@Suite("A line of an access log")
struct LogLineTests {
    private func read(_ text: String) -> [String: String]? {
        var line = LogLine()
        let isLine = text.utf8CString.withUnsafeBytes {
            line.read(UnsafeRawBufferPointer(rebasing: $0.dropLast()))
        }
        guard isLine else { return nil }
        var values: [String: String] = [:]
        for field in LogField.allCases { values[field.name] = line.text(field) }
        return values
    }

    @Test(arguments: [
        (#"{"time":"t","client":"c","host":"h"}"#, ["time": "t", "client": "c", "host": "h"]),
        (#"{"status":null,"status":200,"duration_us":12}"#, ["status": "200"]),
        (#"{ "method" : "GET" , "reused" : true }"#, ["method": "GET"]),
        (
            #"{"target":"/\"\\\/\n\u0041\u00e9\ud83d\ude00"}"#,
            ["target": "/\"\\/\nA\u{E9}\u{1F600}"]
        ),
        (#"{"user":"a\u0062","rule":"b"}"#, ["user": "ab", "rule": "b"]),
        ("{\"upstream_tls\":\"TLSv1.3\",\"user_agent\":\"x\"}\r", ["upstream_tls": "TLSv1.3"]),
        ("{}", [:]),
    ])
    func `has its fields in JSON`(text: String, fields: [String: String]) {
        #expect(read(text) == fields)
    }

    @Test(arguments: [
        "", "{", "{\"time\"", "{\"time\":", "{\"time\":\"t\"", "{\"time\":\"t\"}x", "[]",
        "{\"time\":{}}", "{\"time\":[1]}", "{\"time\":tru}", "{time:1}", "{\"time\":\"\\u12\"}",
        "{\"time\":\"\\ud800\"}", "{\"time\":\"\\x\"}", "GET / HTTP/1.1",
        #"127.0.0.1 - - [21/Nov/2026:16:00:19 +0000] "GET / HTTP/1.1" 200"#,
        #"127.0.0.1 - - [21/Nox/2026:16:00:19 +0000] "GET / HTTP/1.1" 200 1 "-" "-" 1 -"#,
        #"127.0.0.1 - - [21/Nov/2026:16:00:19 +0000] "GET / 200 1 - - 1 -"#,
    ])
    func `is none otherwise`(text: String) {
        #expect(read(text) == nil)
    }

    @Test func `has its fields in Apache's format`() {
        let start = #"192.0.2.1 - ann [21/Nov/2026:16:00:19 +0000] "#
        let line =
            start + #""GET http://a.example/x%20y?\"q\" HTTP/1.1" 403 341 "-" "curl \"7\"" "#
            + #"8b72300000000001 denied-by-rule dns_us=2310 upstream=192.0.2.7:443 "#
            + #"reused=true rule="no \x41ds""#
        #expect(
            read(line) == [
                "client": "192.0.2.1", "user": "ann", "time": "2026-11-21T16:00:19+00:00",
                "method": "GET", "target": #"http://a.example/x%20y?"q""#, "status": "403",
                "id": "8b72300000000001", "reason": "denied-by-rule", "upstream": "192.0.2.7:443",
                "rule": "no Ads",
            ])
        #expect(
            read(start + #""-" - - "-" "-" 1 malformed-request-line"#) == [
                "client": "192.0.2.1", "user": "ann", "time": "2026-11-21T16:00:19+00:00",
                "id": "1", "reason": "malformed-request-line",
            ])
    }

    @Test(arguments: [1, 2, 3, 5, 7, 64])
    func `is found wherever blocks end`(size: Int) {
        let text = Array("a\n\nbcd\nlonger than it may be\nlast".utf8)
        var lines: [String] = []
        var splitter = LineSplitter(maximum: 8)
        func body(_ line: UnsafeRawBufferPointer) {
            lines.append(String(decoding: line, as: UTF8.self))
        }
        for start in stride(from: 0, to: text.count, by: size) {
            Array(text[start..<min(start + size, text.count)]).withUnsafeBytes {
                splitter.feed($0, body)
            }
        }
        splitter.finish(body)
        // Within one block, a line needs no room.
        #expect(lines.count == 5)
        #expect(lines[0...2] == ["a", "", "bcd"])
        #expect(["", "longer than it may be"].contains(lines[3]))
        #expect(lines[4] == "last")
    }
}

@Suite("What fares differently")
struct ReplayChangeTests {
    private func standing(
        _ refusal: String? = nil, by: String? = nil, handling: String? = nil, entry: String? = nil,
        rule: String? = nil
    ) -> Standing {
        var standing = Standing()
        (standing.refusal, standing.by, standing.handling) = (refusal, by, handling)
        (standing.entry, standing.rule) = (entry, rule)
        return standing
    }

    private func texts(_ before: Standing, _ after: Standing) -> [String] {
        ReplayChange.all(from: before, to: after).map { "\($0.kind): \($0.text)" }
    }

    @Test func `a refusal outweighs what else differs`() {
        #expect(
            texts(standing(entry: "a"), standing("denied-by-rule", by: "x", entry: "b"))
                == ["refused: denied-by-rule by x (was: passed)"])
        #expect(
            texts(standing("denied-by-default"), standing(entry: "b"))
                == ["allowed: passed (was: denied-by-default)"])
    }

    @Test func `another reason is a difference, and what is not known is none`() {
        #expect(
            texts(standing("denied-by-rule", by: "a"), standing("denied-by-rule", by: "b"))
                == ["reason: denied-by-rule by b (was: denied-by-rule by a)"])
        #expect(texts(standing("x"), standing("x", by: "b")).isEmpty)
        #expect(texts(standing(entry: nil), standing(handling: "tunnelled", entry: "b")).isEmpty)
    }

    @Test func `several values may differ`() {
        #expect(
            texts(
                standing(handling: "tunnelled", entry: "a", rule: ""),
                standing(handling: "inspected", entry: "b", rule: "r"))
                == [
                    "handling: inspected (was: tunnelled)", "entry: b (was: a)",
                    "rule: r (was: none)",
                ])
    }
}
