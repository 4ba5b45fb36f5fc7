import HTTPCore
import Testing

@testable import HTTP2

private func reason(_ assemble: () throws -> Void) -> String? {
    do {
        try assemble()
        return nil
    } catch let error as MessageError {
        return error.reason.description
    } catch {
        return "\(error)"
    }
}

private let status = (":status", "200")

@Suite("Messages are refused")
struct RefusedMessageTests {
    @Test(arguments: RefusedMessage.requests)
    func `as requests`(message: RefusedMessage) {
        #expect(reason { _ = try request(message.fields, message.style) } == message.reason)
    }

    static let responses =
        [
            RefusedMessage([], "status-missing"),
            RefusedMessage([("x", "y"), status], "status-missing"),
            RefusedMessage([("content-length", "1"), status], "status-missing"),
            RefusedMessage([status, status], "repeated-pseudo-field"),
            RefusedMessage([status, ("x", "y"), status], "late-pseudo-field"),
            RefusedMessage([(":status", "101")], "switching-protocols"),
            RefusedMessage([status, (":x", "y")], "unknown-pseudo-field"),
            RefusedMessage([status, ("te", "trailers")], "forbidden-te"),
            RefusedMessage([status, ("X", "y")], "capital-in-field-name"),
            RefusedMessage([status, ("", "y")], "empty-field-name"),
            RefusedMessage([status, ("x y", "y")], "bad-field-name-byte"),
            RefusedMessage([status, ("x", "a\r\nb: c")], "bad-field-value-byte"),
            RefusedMessage([status, ("x", "a\0")], "bad-field-value-byte"),
            RefusedMessage([status, ("x", " a")], "whitespace-around-value"),
            RefusedMessage([status, ("host", "a\r\nb: c")], "bad-field-value-byte"),
            RefusedMessage(
                [status, ("content-length", "1"), ("content-length", "1")],
                "repeated-content-length"),
            RefusedMessage([status, ("content-length", "1, 1")], "malformed-content-length"),
            RefusedMessage(
                [status, ("content-length", "9223372036854775808")], "content-length-too-large"),
            RefusedMessage(
                [(":status", "103")], "interim-ends-stream", RequestStyle(endsStream: true)),
        ]
        + ["", "2", "20", "2000", "2x0", "000", "099", " 200", "200 ", "200 OK", "20\u{B2}"].map {
            RefusedMessage([(":status", $0)], "malformed-status")
        }
        + [":method", ":scheme", ":authority", ":path", ":protocol"].map {
            RefusedMessage([status, ($0, "x")], "misplaced-pseudo-field")
        }
        + ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"].map {
            RefusedMessage([status, ($0, "x")], "connection-field")
        }

    @Test(arguments: responses)
    func `as responses`(message: RefusedMessage) {
        let reason = reason {
            _ = try response(message.fields, endsStream: message.style.endsStream)
        }
        #expect(reason == message.reason)
    }

    static let trailerSections =
        [
            RefusedMessage([("content-length", "1")], "forbidden-trailer"),
            RefusedMessage([("host", "a")], "forbidden-trailer"),
            RefusedMessage([("te", "trailers")], "forbidden-te"),
            RefusedMessage([("x", "a\r\nb")], "bad-field-value-byte"),
            RefusedMessage([("x\r\n", "a")], "bad-field-name-byte"),
            RefusedMessage([("x", "a ")], "whitespace-around-value"),
            RefusedMessage([("X", "a")], "capital-in-field-name"),
            RefusedMessage([("", "a")], "empty-field-name"),
            RefusedMessage(
                [("x", String(repeating: "a", count: 8 * 1024))], "trailers-too-large"),
            RefusedMessage(Array(repeating: ("x", "y"), count: 33), "too-many-trailers"),
        ]
        + [":method", ":status", ":path", ":x"].map {
            RefusedMessage([("x", "y"), ($0, "x")], "pseudo-field-in-trailers")
        }
        + ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"].map {
            RefusedMessage([($0, "x")], "connection-field")
        }

    @Test(arguments: trailerSections)
    func `as trailers`(message: RefusedMessage) {
        #expect(reason { _ = try trailers(message.fields) } == message.reason)
    }

    @Test func `for reasons that each have a token, an explanation and a test`() {
        let all = MessageError.allCases
        #expect(Set(all.map(\.reason.description)).count == all.count)
        #expect(Set(all.map(\.explanation.description)).count == all.count)
        let tested = RefusedMessage.requests + Self.responses + Self.trailerSections
        // Those of the limits are tested with the limits; the last is found by the head's parser.
        let limits: Set = ["head-too-large", "too-many-fields", "unsupported-protocol"]
        #expect(Set(tested.map(\.reason)).union(limits) == Set(all.map(\.reason.description)))
        #expect(all.filter { !$0.isMalformed }.map(\.status).allSatisfy { $0 != 400 })
        #expect(MessageError.headTooLarge.status == 431)
        #expect(MessageError.badPathByte.isMalformed)
    }

    /// The table of a connection stays that of the peer, whatever was refused.
    @Test func `without effect on the table`() throws {
        let added = literal("x-added", "value", pattern: 0x40)
        for message in RefusedMessage.requests {
            var decoder = HeaderDecoder()
            _ = try? request(block(message.fields) + added, message.style, by: &decoder)
            let next = try request(
                block(pseudoFields()) + [0x80 | 62], RequestStyle(), by: &decoder)
            #expect(next.text.contains("\r\nx-added: value\r\n"))
        }
    }

    /// A field that was examined when it entered the table is refused again from there.
    @Test(arguments: [
        ("x", "a\rb", "bad-field-value-byte"), ("X", "a", "capital-in-field-name"),
        ("te", "gzip", "forbidden-te"), ("content-length", "x", "malformed-content-length"),
        (":path", "/a b", "bad-path-byte"), (":authority", "u@a", "userinfo-in-authority"),
        ("connection", "close", "connection-field"),
    ])
    func `also when a field comes from the table`(
        name: String, value: String, token: String
    ) throws {
        var decoder = HeaderDecoder()
        let others = block(pseudoFields(without: name))
        let again: [UInt8] = [0x80 | 62]
        for field in [literal(name, value, pattern: 0x40), again, again] {
            let fields = name.hasPrefix(":") ? field + others : others + field
            #expect(reason { _ = try request(fields, RequestStyle(), by: &decoder) } == token)
        }
        // The name alone brings no fault of the value with it.
        if token != "capital-in-field-name", name != "connection" {
            let values = ["te": "trailers", "content-length": "1", ":path": "/", "x": "b"]
            let good = [0x7E] + string(values[name] ?? "a.example")
            let fields = name.hasPrefix(":") ? good + others : others + good
            #expect(reason { _ = try request(fields, RequestStyle(), by: &decoder) } == nil)
        }
    }
}
