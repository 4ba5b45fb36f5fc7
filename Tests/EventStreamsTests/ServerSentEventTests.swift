import EventStreams
import Testing

@Suite("Server-sent events")
struct ServerSentEventTests {
    private typealias Event = ServerSentEvent

    /// The same stream whole, byte by byte, and cut in two at every place.
    private func parse(_ bytes: [UInt8]) throws -> [ServerSentEvent] {
        var whole = ServerSentEventParser()
        let events = try whole.parse(bytes)
        var single = ServerSentEventParser()
        #expect(try bytes.flatMap { try single.parse([$0]) } == events)
        for cut in bytes.indices {
            var halves = ServerSentEventParser()
            #expect(try halves.parse(bytes[..<cut]) + halves.parse(bytes[cut...]) == events)
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
            // The four streams of the specification.
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

    @Test func `have what is not UTF-8 replaced`() throws {
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
    func `say when to come back`(text: String, milliseconds: Int64?) throws {
        var parser = ServerSentEventParser()
        #expect(try parser.parse(text.utf8).isEmpty)
        #expect(parser.reconnectionMilliseconds == milliseconds)
    }

    @Test func `keep the last ID of an event that ended`() throws {
        var parser = ServerSentEventParser(lastEventID: "old")
        #expect(parser.lastEventID == "old")
        _ = try parser.parse("id: 1\ndata: a\n".utf8)
        #expect(parser.lastEventID == "old")
        _ = try parser.parse("\n".utf8)
        #expect(parser.lastEventID == "1")
        _ = try parser.parse("id\n\n".utf8)
        #expect(parser.lastEventID.isEmpty)
    }

    @Test func `are bounded`() throws {
        let limits = ServerSentEventParser.Limits(eventBytes: 10)
        for text in ["data: 12345\n", "12345678901", "data:123\ndata:456\ndata:78\n"] {
            var parser = ServerSentEventParser(limits: limits)
            #expect(throws: ServerSentEventError.tooLarge) { try parser.parse(text.utf8) }
            #expect(throws: ServerSentEventError.tooLarge) { try parser.parse("\n".utf8) }
        }
        // Comments are not kept, and the next event begins at nothing.
        var parser = ServerSentEventParser(limits: limits)
        let events = try parser.parse(": 1234567890123\ndata:12345\n\ndata:67890\n\n".utf8)
        #expect(events.map(\.data) == ["12345", "67890"])
    }
}
