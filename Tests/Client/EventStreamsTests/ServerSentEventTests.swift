import PinfoldClient
import Testing

@Suite("Server-sent events")
struct ServerSentEventTests {
    private typealias Event = ServerSentEvent

    /// Parses a stream as a whole, byte by byte, and split in two at every position.
    private func parse(_ bytes: [UInt8]) throws -> [ServerSentEvent] {
        var whole = ServerSentEventParser()
        var events: [ServerSentEvent] = []
        try whole.parse(bytes, into: &events)
        var single = ServerSentEventParser()
        var found: [ServerSentEvent] = []
        for byte in bytes { try single.parse([byte], into: &found) }
        #expect(found == events)
        for cut in bytes.indices {
            var halves = ServerSentEventParser()
            found = []
            try halves.parse(bytes[..<cut], into: &found)
            try halves.parse(bytes[cut...], into: &found)
            #expect(found == events)
            #expect(halves.lastEventID == whole.lastEventID)
        }
        return events
    }

    @Test(
        arguments: [
            ("", []), ("data: a", []), ("data: a\n", []),
            ("data: a\n\n", [Event(data: "a")]), ("data:a\r\r", [Event(data: "a")]),
            ("data:  a\r\n\r\n", [Event(data: " a")]),
            ("data: a\r\n\n", [Event(data: "a")]), ("data: a\n\r\n", [Event(data: "a")]),
            ("data: a\r\n\r\ndata: b\r\n\r\n", [Event(data: "a"), Event(data: "b")]),
            // The four streams in the specification.
            (
                "data: YHOO\ndata: +2\ndata: 10\n\n", [Event(data: "YHOO\n+2\n10")]
            ),
            (
                ": test stream\n\ndata: first event\nid: 1\n\n"
                    + "data:second event\nid\n\ndata:  third event\n",
                [Event(data: "first event", lastEventID: "1"), Event(data: "second event")]
            ),
            ("data\n\ndata\ndata\n\ndata:", [Event(data: ""), Event(data: "\n")]),
            ("data:test\n\ndata: test\n\n", [Event(data: "test"), Event(data: "test")]),
            (
                "event: add\ndata: 1\n\ndata: 2\n\n",
                [Event(type: "add", data: "1"), Event(data: "2")]
            ),
            ("event: add\n\ndata: 2\n\n", [Event(data: "2")]),
            ("event\ndata: 2\n\n", [Event(data: "2")]),
            ("id: 7\n\ndata: a\n\n", [Event(data: "a", lastEventID: "7")]),
            ("id: 7\nid: a\u{0}b\ndata: a\n\n", [Event(data: "a", lastEventID: "7")]),
            ("Data: a\ndata : b\nother: c\n:data: d\n\n", []),
            ("data: a:b: c\n\n", [Event(data: "a:b: c")]),
            ("\u{FEFF}data: a\n\n", [Event(data: "a")]),
            ("\u{FEFF}\u{FEFF}data: a\n\n", []),
            ("data: a\n\n\u{FEFF}data: b\n\n", [Event(data: "a")]),
            ("data: é 😀\n\n", [Event(data: "é 😀")]),
        ])
    func `are read in any chunks`(text: String, events: [ServerSentEvent]) throws {
        #expect(try parse(Array(text.utf8)) == events)
    }

    @Test func `have invalid UTF-8 replaced`() throws {
        #expect(
            try parse(Array("data: ".utf8) + [0xC3, 0x0A, 0x0A]) == [Event(data: "\u{FFFD}")])
        #expect(try parse([0xEF, 0xBB, 0x0A] + Array("data:a\n\n".utf8)) == [Event(data: "a")])
        #expect(try parse([0xEF] + Array("data:a\n\n".utf8)).isEmpty)
    }

    @Test(
        arguments: [
            ("retry: 1500\n", 1500), ("retry:0\n", 0), ("retry: 1.5\n", nil), ("retry\n", nil),
            ("retry: -1\n", nil), ("retry: 1\nretry: x\n", 1), ("retry: ٣\n", nil),
            ("retry: 99999999999999999999\n", .max), ("retry: 5", nil),
        ] as [(String, Int64?)])
    func `determine when to reconnect`(text: String, milliseconds: Int64?) throws {
        var parser = ServerSentEventParser()
        var events: [ServerSentEvent] = []
        try parser.parse(text.utf8, into: &events)
        #expect(events.isEmpty)
        #expect(parser.reconnectionMilliseconds == milliseconds)
    }

    @Test func `keep the last ID of a completed event`() throws {
        var parser = ServerSentEventParser(lastEventID: "old")
        var events: [ServerSentEvent] = []
        #expect(parser.lastEventID == "old")
        try parser.parse("id: 1\ndata: a\n".utf8, into: &events)
        #expect(parser.lastEventID == "old")
        try parser.parse("\n".utf8, into: &events)
        #expect(parser.lastEventID == "1")
        try parser.parse("id\n\n".utf8, into: &events)
        #expect(parser.lastEventID.isEmpty)
    }

    private typealias Failure = ServerSentEventError

    @Test(
        arguments: [
            ("data:12345\n\n", ["12345"], nil), ("data:123456\n\n", [], .lineTooLong),
            ("1234567890\ndata:1\n\n", ["1"], nil), ("12345678901", [], .lineTooLong),
            ("data:1234\ndata:5\n\n", ["1234\n5"], nil),
            ("data:1234\ndata:56\n\n", [], .eventTooLarge),
            // The events before the error are delivered.
            ("data:1\n\ndata:2\n\ndata:123456", ["1", "2"], .lineTooLong),
            ("data:1\n\ndata:1234\ndata:56\n\ndata:3\n\n", ["1"], .eventTooLarge),
            // Comments are not stored, and the next event starts from nothing.
            (": 1234567890123\ndata:12345\n\ndata:67890\n\n", ["12345", "67890"], nil),
        ] as [(String, [String], ServerSentEventError?)])
    func `are limited, and lost only beyond the limit`(
        text: String, data: [String], failure: ServerSentEventError?
    ) {
        let limits = ServerSentEventParser.Limits(eventBytes: 6, lineBytes: 10)
        for chunk in [1, 2, 7, 1000] {
            var parser = ServerSentEventParser(limits: limits)
            var (events, found): ([ServerSentEvent], Failure?) = ([], nil)
            var rest = Array(text.utf8)[...]
            while !rest.isEmpty {
                do throws(ServerSentEventError) {
                    try parser.parse(rest.prefix(chunk), into: &events)
                } catch { found = error }
                rest = rest.dropFirst(chunk)
            }
            #expect(events.map(\.data) == data)
            #expect(found == failure)
        }
    }

    @Test(
        arguments: [
            ("text/event-stream", true), ("Text/Event-Stream;charset=utf-8", true),
            (" text/event-stream ; x", true), ("text/event-streams", false), ("", false),
            ("text/plain; text/event-stream", false), ("text / event-stream", false),
        ])
    func `are known by their type`(value: String, isEventStream: Bool) {
        #expect(ServerSentEventParser.isEventStream(contentType: value) == isEventStream)
    }
}
