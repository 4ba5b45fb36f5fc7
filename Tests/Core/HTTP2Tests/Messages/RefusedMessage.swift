@testable import HTTP2

/// Fields of a message that is refused, and the token of the reason.
struct RefusedMessage: CustomStringConvertible {
    var fields: [(String, String)]
    var reason: String
    var style = RequestStyle()

    init(_ fields: [(String, String)], _ reason: String, _ style: RequestStyle = RequestStyle()) {
        (self.fields, self.reason, self.style) = (fields, reason, style)
    }

    var description: String {
        let lines = fields.map { "\($0.0.debugDescription): \($0.1.debugDescription)" }
        return "\(reason): " + lines.joined(separator: ", ")
    }
}

/// The pseudo-fields of a request, without some, and with others in their place or added.
func pseudoFields(
    without names: String..., adding fields: [(String, String)] = []
) -> [(String, String)] {
    let all = [
        (":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", "/"),
    ]
    return all.filter { !names.contains($0.0) } + fields
}

/// A request with one pseudo-field that has another value.
private func with(_ name: String, _ value: String) -> [(String, String)] {
    pseudoFields().map { $0.0 == name ? (name, value) : $0 }
}

/// A request with ordinary fields.
private func and(_ fields: (String, String)...) -> [(String, String)] {
    pseudoFields(adding: fields)
}

extension RefusedMessage {
    /// Every request that is refused, and why.
    static let requests: [RefusedMessage] = names + pseudo + methods + targets + hosts + content

    /// Names and values (RFC 9113 §8.2).
    private static let names: [RefusedMessage] =
        [
            RefusedMessage(and(("", "x")), "empty-field-name"),
            RefusedMessage(and(("X-Upper", "x")), "capital-in-field-name"),
            RefusedMessage(and(("hosT", "x")), "capital-in-field-name"),
            RefusedMessage(and(("content-lengtH", "1")), "capital-in-field-name"),
            RefusedMessage(and(("te", "gzip")), "forbidden-te"),
            RefusedMessage(and(("te", "trailers, gzip")), "forbidden-te"),
            RefusedMessage(and(("te", "")), "forbidden-te"),
        ]
        + ["x y", "x:", "x:y", "x\r", "x\n", "x\0", " x", "x ", "x\t", "x\u{7F}", "x\u{E9}", "(x"]
        .map { RefusedMessage(and(($0, "x")), "bad-field-name-byte") }
        + ["\r", "\n", "\0", "a\rb", "a\nb", "a\0b", "a\r\nx: y", "\u{1}", "a\u{7F}", "\u{1F}z"]
        .flatMap { value in
            ["x", "cookie", "priority", "accept"].map {
                RefusedMessage(and(($0, value)), "bad-field-value-byte")
            }
        }
        + [" a", "a ", "\ta", "a\t", " ", "\t"].map {
            RefusedMessage(and(("x", $0)), "whitespace-around-value")
        }
        + [
            "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade",
            "http2-settings",
        ].flatMap { name in
            ["", "chunked", "close"].map { RefusedMessage(and((name, $0)), "connection-field") }
        }

    /// Which pseudo-fields there are, and where (RFC 9113 §8.3).
    private static let pseudo: [RefusedMessage] =
        [":method", ":scheme", ":path"].map {
            RefusedMessage(pseudoFields(without: $0), $0.dropFirst() + "-missing")
        }
        + [
            RefusedMessage([], "method-missing"),
            RefusedMessage([("x", "y")], "method-missing"),
            RefusedMessage([("x", "y")] + pseudoFields(), "method-missing"),
            RefusedMessage(pseudoFields(without: ":authority"), "authority-missing"),
            RefusedMessage(and((":status", "200")), "misplaced-pseudo-field"),
            RefusedMessage([(":status", "200")], "misplaced-pseudo-field"),
            RefusedMessage(and((":x", "y")), "unknown-pseudo-field"),
            RefusedMessage(and((":", "y")), "unknown-pseudo-field"),
            RefusedMessage(and((":Path", "/")), "unknown-pseudo-field"),
            RefusedMessage(and((":path ", "/")), "unknown-pseudo-field"),
            RefusedMessage(and((":host", "a.example")), "unknown-pseudo-field"),
        ]
        + pseudoFields().map { RefusedMessage(pseudoFields(adding: [$0]), "repeated-pseudo-field") }
        + pseudoFields().map {
            RefusedMessage(
                pseudoFields(without: $0.0, adding: [("x", "y"), $0]),
                $0.0 == ":authority" ? "late-pseudo-field" : $0.0.dropFirst() + "-missing")
        }
        + pseudoFields().map { RefusedMessage(and(("x", "y"), $0), "late-pseudo-field") }
        + [RefusedMessage(and(("x", "y"), (":protocol", "y")), "late-pseudo-field")]

    /// `:method`, `:scheme` and CONNECT (RFC 9113 §8.5, RFC 8441 §4).
    private static let methods: [RefusedMessage] =
        ["", "GET ", "G T", "GET\r", "GET\n", "GET\0", "G:T", "GET /", "G\u{E9}T"].map {
            RefusedMessage(with(":method", $0), "malformed-method")
        }
        + ["", "ftp", "http ", "https:", "https://", "h ttp", "http\r\n", "\0", "javascript"].map {
            RefusedMessage(with(":scheme", $0), "unsupported-scheme")
        }
        + [
            RefusedMessage(with(":method", String(repeating: "A", count: 33)), "method-too-long"),
            RefusedMessage(with(":scheme", "http"), "scheme-mismatch"),
            RefusedMessage(
                with(":scheme", "https"), "scheme-mismatch", RequestStyle(isSecure: false)),
            RefusedMessage(with(":method", "CONNECT"), "pseudo-field-in-connect"),
            RefusedMessage(
                [(":method", "CONNECT"), (":authority", "a:1"), (":scheme", "https")],
                "pseudo-field-in-connect"),
            RefusedMessage(
                [(":method", "CONNECT"), (":authority", "a:1"), (":path", "/")],
                "pseudo-field-in-connect"),
            RefusedMessage([(":method", "CONNECT")], "authority-missing"),
            RefusedMessage([(":method", "CONNECT"), ("host", "a:1")], "authority-missing"),
            RefusedMessage(
                [(":method", "CONNECT"), (":authority", "a:1"), ("host", "b:1")],
                "host-mismatch"),
            RefusedMessage(
                pseudoFields(adding: [(":protocol", "websocket")]), "protocol-without-connect"),
            RefusedMessage(
                with(":method", "CONNECT").filter { $0.0 != ":path" } + [(":protocol", "x")],
                "path-missing"),
            RefusedMessage(
                with(":method", "CONNECT").filter { $0.0 != ":scheme" } + [(":protocol", "x")],
                "scheme-missing"),
            RefusedMessage(
                pseudoFields(
                    without: ":method", ":path",
                    adding: [(":method", "CONNECT"), (":protocol", "x"), (":path", "*")]),
                "asterisk-forbidden"),
        ]
        + ["", "web socket", "x\r\ny: z", "a/b", String(repeating: "a", count: 65)].map {
            RefusedMessage(with(":method", "CONNECT") + [(":protocol", $0)], "malformed-protocol")
        }

    /// `:path` (RFC 9113 §8.3.1).
    private static let targets: [RefusedMessage] =
        [
            RefusedMessage(with(":path", ""), "empty-path"),
            RefusedMessage(with(":path", "/a#b"), "fragment-in-path"),
            RefusedMessage(with(":path", "#"), "fragment-in-path"),
            RefusedMessage(with(":path", "*"), "asterisk-forbidden"),
            RefusedMessage(
                with(":path", "/" + String(repeating: "a", count: 16 * 1024)), "target-too-long"),
        ]
        + ["a", "a/b", "?x", "**", "*/", "http://b.example/", "//", "b.example:80"].compactMap {
            $0 == "//" ? nil : RefusedMessage(with(":path", $0), "malformed-path")
        }
        + [
            "/a b", " /", "/ ", "/ HTTP/1.1", "/\r\nx: y", "/\r", "/\n", "/\0", "/\t", "/\u{7F}",
            "/\u{E9}", "/12345678 ", "\u{1}",
        ].map { RefusedMessage(with(":path", $0), "bad-path-byte") }

    /// `:authority` and Host (RFC 9113 §8.3.1).
    private static let hosts: [RefusedMessage] =
        [
            RefusedMessage(with(":authority", ""), "empty-authority"),
            RefusedMessage(
                pseudoFields(without: ":authority", adding: [("host", "")]), "empty-authority"),
            RefusedMessage(and(("host", "")), "empty-authority"),
            RefusedMessage(with(":authority", "user@a.example"), "userinfo-in-authority"),
            RefusedMessage(with(":authority", "a:b@a.example"), "userinfo-in-authority"),
            RefusedMessage(and(("host", "u@a.example")), "userinfo-in-authority"),
            RefusedMessage(and(("host", "a.example"), ("host", "a.example")), "host-repeated"),
            RefusedMessage(
                pseudoFields(
                    without: ":authority", adding: [("host", "a.example"), ("host", "a.example")]),
                "host-repeated"),
        ]
        + [
            "a.example/", "a.example/x", "/", "a?b", "a#b", "a b", " a", "a ", "a\r", "a\r\nx: y",
            "a\0", "a\t", "a\u{E9}", "a\\b", "a\"b", "http://a.example",
            String(repeating: "a", count: 261),
        ].flatMap {
            [
                RefusedMessage(with(":authority", $0), "malformed-authority"),
                RefusedMessage(and(("host", $0)), "malformed-authority"),
            ]
        }
        + [
            "b.example", "a.example.", "a.example:80", "a.example:444", "a.exampl", "aa.example",
            "a.example:4430",
        ].map { RefusedMessage(and(("host", $0)), "host-mismatch") }

    /// Content-Length (RFC 9113 §8.1.1).
    private static let content: [RefusedMessage] =
        ["", "x", "-1", "+1", "1,1", "1, 1", "1 ", " 1", "0x1", "1.0", "1\r\n", "1\0"].map {
            RefusedMessage(and(("content-length", $0)), "malformed-content-length")
        }
        + [
            RefusedMessage(
                and(("content-length", "1"), ("content-length", "1")), "repeated-content-length"),
            RefusedMessage(
                and(("content-length", "0"), ("content-length", "5")), "repeated-content-length"),
            RefusedMessage(
                and(("content-length", "9223372036854775808")), "content-length-too-large"),
            RefusedMessage(
                and(("content-length", String(repeating: "9", count: 40))),
                "content-length-too-large"),
            RefusedMessage(
                and(("content-length", "1")), "content-length-without-content",
                RequestStyle(endsStream: true)),
        ]
}
