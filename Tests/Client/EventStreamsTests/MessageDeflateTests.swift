import PinfoldClient
import Testing

@Suite("The extension permessage-deflate")
struct MessageDeflateTests {
    private static func connection(
        _ role: WebSocketConnection.Role = .client, messageBytes: Int = 200_000,
        sentFrameBytes: Int = 65_536
    ) -> WebSocketConnection {
        WebSocketConnection(
            role: role,
            limits: WebSocketConnection.Limits(
                messageBytes: messageBytes, sentFrameBytes: sentFrameBytes),
            compresses: true)
    }

    /// RFC 7692, section 7.2.3.
    @Test(
        arguments: [
            [0xC1, 0x07, 0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00],
            [0x41, 0x03, 0xF2, 0x48, 0xCD, 0x80, 0x04, 0xC9, 0xC9, 0x07, 0x00],
            [0xC1, 0x0B, 0x00, 0x05, 0x00, 0xFA, 0xFF, 0x48, 0x65, 0x6C, 0x6C, 0x6F, 0x00],
            [0xC1, 0x08, 0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00],
            [
                0xC1, 0x0D, 0xF2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xCA, 0xC9, 0xC9, 0x07,
                0x00,
            ],
            // An uncompressed message is allowed.
            [0x81, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F],
        ] as [[UInt8]])
    func `has the examples of RFC 7692`(bytes: [UInt8]) {
        var whole = Self.connection()
        #expect(whole.receive(bytes) == [.text("Hello")])
        var single = Self.connection()
        #expect(bytes.flatMap { single.receive([$0]) } == [.text("Hello")])
    }

    @Test(
        arguments: [
            // It refers to the content of the previous message.
            ([0xC1, 0x05, 0xF2, 0x00, 0x11, 0x00, 0x00], WebSocketError.corruptCompression),
            ([0xC1, 0x03, 0xF2, 0x48, 0xCD], .corruptCompression),
            ([0xC1, 0x02, 0xFF, 0xFF], .corruptCompression),
            // U+D800, in a stored block.
            ([0xC1, 0x09, 0x00, 0x03, 0x00, 0xFC, 0xFF, 0xED, 0xA0, 0x80, 0x00], .notUTF8),
            ([0xC9, 0x00], .reservedBits), ([0xC0, 0x00], .reservedBits),
            ([0xA1, 0x00], .reservedBits), ([0x91, 0x00], .reservedBits),
        ] as [([UInt8], WebSocketError)])
    func `is rejected if it is used incorrectly`(bytes: [UInt8], error: WebSocketError) {
        var client = Self.connection()
        #expect(client.receive(bytes) == [.failed(error)])
        #expect(client.isClosed)
    }

    @Test(arguments: [0, 1, 63, 64, 65, 1000, 65_536, 70_000, 131_072, 200_000])
    func `transfers messages of any length`(count: Int) {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 / 7) }
        let text = String(repeating: "é", count: count / 2)
        for frame in [7, 65_536] {
            var client = Self.connection(sentFrameBytes: frame)
            var server = Self.connection(.server)
            client.send(binary: bytes)
            client.send(text: text)
            let output = client.takeOutput()
            #expect(server.receive(output) == [.binary(bytes), .text(text)])
            if count >= 1000, frame > 7 { #expect(output.count < count / 2) }
        }
    }

    @Test func `sends uncompressed what would not become smaller`() {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<1000).map { _ in UInt8.random(in: 0...255, using: &generator) }
        var (client, server) = (Self.connection(), Self.connection(.server))
        client.send(binary: bytes)
        let output = client.takeOutput()
        #expect(output.count == 1008 && output[0] == 0x82)
        #expect(server.receive(output) == [.binary(bytes)])
    }

    @Test func `is bounded by the size before compression`() {
        var client = Self.connection()
        client.send(binary: [UInt8](repeating: 0, count: 99_999))
        let output = client.takeOutput()
        #expect(output.count < 1000)
        var small = Self.connection(.server, messageBytes: 99_998)
        #expect(small.receive(output) == [.failed(.tooLarge)])
        var enough = Self.connection(.server, messageBytes: 99_999)
        #expect(enough.receive(output) == [.binary([UInt8](repeating: 0, count: 99_999))])
    }

    @Test(
        arguments: [
            ("permessage-deflate; server_no_context_takeover", true),
            ("Permessage-Deflate;client_no_context_takeover ; server_no_context_takeover", true),
            ("permessage-deflate; server_no_context_takeover; server_max_window_bits=10", true),
            ("permessage-deflate; server_no_context_takeover; server_max_window_bits=7", false),
            ("permessage-deflate; server_no_context_takeover; server_max_window_bits", false),
            ("permessage-deflate; server_no_context_takeover; client_max_window_bits=15", false),
            (
                "permessage-deflate; server_no_context_takeover; server_no_context_takeover", false
            ),
            ("permessage-deflate", false), ("permessage-deflate;", false),
            ("x-webkit-deflate-frame", false),
            ("permessage-deflate; server_no_context_takeover, x", false),
        ])
    func `is accepted only as it was offered`(answer: String, isAgreed: Bool) throws {
        let handshake = WebSocketHandshake(
            key: "dGhlIHNhbXBsZSBub25jZQ==", offersCompression: true)
        #expect(
            handshake.fields.last?.value
                == "permessage-deflate; server_no_context_takeover; client_no_context_takeover")
        let fields = [
            "upgrade": ["websocket"], "connection": ["Upgrade"],
            "sec-websocket-accept": ["s3pPLMBiTxaQ9kYGzzhZRbK+xOo="],
            "sec-websocket-extensions": [answer],
        ]
        if isAgreed {
            #expect(try handshake.check(status: 101) { fields[$0] ?? [] }.compresses)
        } else {
            #expect(throws: WebSocketHandshakeError.unknownExtension) {
                try handshake.check(status: 101) { fields[$0] ?? [] }
            }
        }
    }
}
