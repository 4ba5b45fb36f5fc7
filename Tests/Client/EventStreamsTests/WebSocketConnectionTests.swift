import PinfoldClient
import Testing

@Suite("A WebSocket connection")
struct WebSocketConnectionTests {
    private typealias Event = WebSocketConnection.Event

    private static func connection(
        _ role: WebSocketConnection.Role = .client, messageBytes: Int = 1000,
        sentFrameBytes: Int = 65_536
    ) -> WebSocketConnection {
        WebSocketConnection(
            role: role,
            limits: WebSocketConnection.Limits(
                messageBytes: messageBytes, sentFrameBytes: sentFrameBytes),
            maskingKey: { 0x37FA_213D })
    }

    /// Receives bytes as a whole and byte by byte.
    private func receive(
        _ bytes: [UInt8], _ connection: WebSocketConnection = connection()
    ) -> (events: [WebSocketConnection.Event], output: [UInt8]) {
        var (whole, single) = (connection, connection)
        let events = whole.receive(bytes)
        #expect(bytes.flatMap { single.receive([$0]) } == events)
        let output = whole.takeOutput()
        #expect(single.takeOutput() == output)
        return (events, output)
    }

    /// RFC 6455, section 5.7.
    @Test(
        arguments: [
            ([0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f], [Event.text("Hello")]),
            ([0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f], [.text("Hello")]),
            (
                [0x89, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f], [.ping([0x48, 0x65, 0x6c, 0x6c, 0x6f])]
            ),
            (
                [0x82, 0x7E, 0x01, 0x00] + [UInt8](repeating: 7, count: 256),
                [
                    .binary([UInt8](repeating: 7, count: 256))
                ]
            ),
            ([0x81, 0x00, 0x82, 0x00, 0x8A, 0x00], [.text(""), .binary([]), .pong([])]),
            // A ping among the fragments of a message, one of them empty, one ending within a
            // character.
            (
                [0x01, 0x01, 0xC3, 0x00, 0x00, 0x89, 0x00, 0x80, 0x01, 0xA9],
                [.ping([]), .text("é")]
            ),
            ([0x88, 0x00], [.closed(code: nil, reason: "")]),
            ([0x88, 0x04, 0x03, 0xE8, 0x6F, 0x6B], [.closed(code: 1000, reason: "ok")]),
            // Nothing follows the end.
            ([0x88, 0x00, 0x81, 0x00, 0xFF], [.closed(code: nil, reason: "")]),
        ] as [([UInt8], [WebSocketConnection.Event])])
    func `reads frames in any chunks`(bytes: [UInt8], events: [WebSocketConnection.Event]) {
        #expect(receive(bytes).events == events)
    }

    @Test(
        arguments: [
            ([0x81, 0x80, 0, 0, 0, 0], WebSocketError.wrongMasking, 1002),
            ([0x80, 0x00], .unexpectedContinuation, 1002),
            ([0x01, 0x00, 0x81, 0x00], .messageWithinMessage, 1002),
            ([0x01, 0x00, 0x82, 0x00], .messageWithinMessage, 1002),
            ([0x88, 0x01, 0x03], .badClose, 1002), ([0x88, 0x02, 0x03, 0xED], .badClose, 1002),
            ([0x88, 0x02, 0x03, 0xEE], .badClose, 1002),
            ([0x88, 0x02, 0x03, 0xEC], .badClose, 1002),
            ([0x88, 0x02, 0x00, 0x00], .badClose, 1002),
            ([0x88, 0x02, 0x13, 0x88], .badClose, 1002),
            ([0x88, 0x02, 0x07, 0xD0], .badClose, 1002),
            ([0x88, 0x02, 0x03, 0xF7], .badClose, 1002),
            ([0x88, 0x03, 0x03, 0xE8, 0xFF], .notUTF8, 1007), ([0x81, 0x01, 0xFF], .notUTF8, 1007),
            // At the byte that is wrong, whether or not it ends the message.
            ([0x01, 0x7D, 0xED, 0xA0], .notUTF8, 1007), ([0x81, 0x01, 0xC3], .notUTF8, 1007),
            ([0x01, 0x01, 0xC3, 0x80, 0x01, 0x41], .notUTF8, 1007),
            ([0x82, 0x7E, 0x03, 0xE9], .tooLarge, 1009),
            ([0x82, 0x7F, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], .tooLarge, 1009),
            ([0x02, 0x02, 0x00, 0x00, 0x80, 0x7E, 0x03, 0xE7], .tooLarge, 1009),
            ([0xF1], .reservedBits, 1002),
        ] as [([UInt8], WebSocketError, UInt16)])
    func `closes with the code of the error`(bytes: [UInt8], error: WebSocketError, code: UInt16) {
        let (events, output) = receive(bytes)
        #expect(events == [.failed(error)])
        var peer = Self.connection(.server)
        #expect(peer.receive(output) == [.closed(code: code, reason: "")])
        #expect(error.closeCode == code)
    }

    @Test func `has a client mask all it sends`() {
        let (events, output) = receive([0x81, 0x00], Self.connection(.server))
        #expect(events == [.failed(.wrongMasking)])
        #expect(output == [0x88, 0x02, 0x03, 0xEA])
    }

    @Test func `masks what a client sends`() {
        var client = Self.connection()
        client.send(text: "Hello")
        // RFC 6455, section 5.7.
        #expect(
            client.takeOutput()
                == [0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58])
        #expect(client.takeOutput().isEmpty)
        var server = Self.connection(.server)
        server.send(text: "Hello")
        #expect(server.takeOutput() == [0x81, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F])
    }

    @Test(arguments: [0, 1, 125, 126, 999, 1000])
    func `transfers messages of any length, fragmented or whole`(count: Int) {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        for frame in [1, 7, 125, 126, 65_536] {
            var client = Self.connection(sentFrameBytes: frame)
            let server = Self.connection(.server)
            #expect(client.send(binary: bytes) == true)
            #expect(receive(client.takeOutput(), server).events == [.binary(bytes)])
            let text = String(repeating: "é", count: count / 2)
            #expect(client.send(text: text) == true)
            #expect(receive(client.takeOutput(), server).events == [.text(text)])
        }
    }

    @Test func `answers the last of several pings`() {
        #expect(receive([0x89, 0x01, 0x01, 0x89, 0x01, 0x02], Self.connection()).output.count == 7)
        var client = Self.connection()
        _ = client.receive([0x89, 0x01, 0x01, 0x89, 0x01, 0x02])
        var server = Self.connection(.server)
        #expect(server.receive(client.takeOutput()) == [.pong([2])])
        #expect(client.takeOutput().isEmpty)
    }

    @Test func `sends pings of 125 bytes at most`() {
        var (client, server) = (Self.connection(), Self.connection(.server))
        let content = [UInt8](repeating: 1, count: 126)
        #expect(client.ping(content) == false)
        #expect(client.ping(Array(content.dropLast())) == true)
        #expect(server.receive(client.takeOutput()) == [.ping(Array(content.dropLast()))])
        #expect(client.receive(server.takeOutput()) == [.pong(Array(content.dropLast()))])
    }

    @Test func `closes in order`() {
        var (client, server) = (Self.connection(), Self.connection(.server))
        server.send(text: "late")
        #expect(client.close(4000, reason: "done") == true)
        #expect(!client.isOpen && !client.isClosed)
        #expect(!client.close() && !client.ping() && !client.send(text: "x"))
        #expect(server.receive(client.takeOutput()) == [.closed(code: 4000, reason: "done")])
        #expect(server.isClosed && !server.send(text: "x"))
        // Messages in progress are received, then the answer.
        #expect(
            client.receive(server.takeOutput())
                == [.text("late"), .closed(code: 4000, reason: "")])
        #expect(client.isClosed)
        #expect(client.receive([0x81, 0x00]).isEmpty && client.takeOutput().isEmpty)
    }

    @Test(arguments: [0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535] as [UInt16])
    func `does not close with a code that means that there was none`(code: UInt16) {
        var client = Self.connection()
        #expect(client.close(code) == false)
        #expect(client.isOpen && client.takeOutput().isEmpty)
    }

    @Test func `truncates a long reason at a character boundary`() {
        var (client, server) = (Self.connection(), Self.connection(.server))
        client.close(1000, reason: String(repeating: "é", count: 100))
        #expect(
            server.receive(client.takeOutput())
                == [.closed(code: 1000, reason: String(repeating: "é", count: 61))])
    }

    @Test func `closes without a code`() {
        var (client, server) = (Self.connection(), Self.connection(.server))
        #expect(client.close(nil, reason: "not sent") == true)
        #expect(server.receive(client.takeOutput()) == [.closed(code: nil, reason: "")])
        #expect(server.takeOutput() == [0x88, 0x00])
    }

    @Test func `gives any bytes either events or one error at the end`() {
        var generator = SystemRandomNumberGenerator()
        let starts: [UInt8] = [0x00, 0x01, 0x02, 0x80, 0x81, 0x82, 0x88, 0x89, 0x8A, 0x03]
        for _ in 0..<2000 {
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 1...6) {
                let count = UInt8.random(in: 0...4)
                bytes += [starts.randomElement(using: &generator) ?? 0, count]
                bytes += (0..<count).map { _ in UInt8.random(in: 0...255) }
            }
            let events = receive(bytes).events
            let ends = events.indices.filter {
                switch events[$0] {
                case .failed, .closed: true
                default: false
                }
            }
            #expect(ends.isEmpty || ends == [events.count - 1], "\(bytes)")
        }
    }
}
