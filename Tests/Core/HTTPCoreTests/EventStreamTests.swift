import HTTPCore
import Testing

@Suite("Event streams")
struct EventStreamTests {
    @Test(arguments: [
        ("Content-Type: text/event-stream", true),
        ("Content-Type: TEXT/Event-Stream", true),
        ("Content-Type:text/event-stream;charset=utf-8", true),
        ("Content-Type: text/event-stream ; charset=utf-8", true),
        ("Content-Type: text/event-streams", false),
        ("Content-Type: text/event", false),
        ("Content-Type: text/plain", false),
        ("Content-Type:", false),
        ("X-Type: text/event-stream", false),
        ("Content-Type: text/event-stream\r\nContent-Type: text/plain", false),
        ("Content-Type: text/event-stream\r\nContent-Length: 5", false),
    ])
    func `an event stream is known by its type, if its end is not known`(
        fields: String, isStream: Bool
    ) throws {
        let bytes = latin1("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n")
        var parser = ResponseHeadParser(limits: HeadLimits())
        var head = ResponseHead()
        let progress = try parser.parse(
            bytes.span, answering: ResponseContext(method: .get), into: &head)
        #expect(progress == .complete(headBytes: bytes.count))
        #expect(head.isEventStream(in: bytes.span) == isStream)
    }
}
