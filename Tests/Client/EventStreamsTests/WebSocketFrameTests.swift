import TestSupport
import Testing

@testable import PinfoldClient

@Suite("Frames of WebSocket")
struct WebSocketFrameTests {
    @Test(
        arguments: [
            (0, [0x82, 0x00]), (125, [0x82, 0x7D]), (126, [0x82, 0x7E, 0, 0x7E]),
            (65_535, [0x82, 0x7E, 0xFF, 0xFF]),
            (65_536, [0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] as [(UInt64, [UInt8])])
    func `have the shortest length`(length: UInt64, bytes: [UInt8]) throws {
        let head = WebSocketFrameHead(isFinal: true, opcode: .binary, length: length)
        var output: [UInt8] = []
        head.append(to: &output)
        #expect(output == bytes)
        let found = try #require(try WebSocketFrameHead.parse(bytes + [9, 9, 9, 9]))
        #expect(found.head == head && found.count == bytes.count)
        for count in bytes.indices {
            #expect(try WebSocketFrameHead.parse(Array(bytes[..<count])) == nil)
        }
    }

    @Test(
        arguments: [
            ([0xC1], WebSocketError.reservedBits), ([0xA1], .reservedBits), ([0x91], .reservedBits),
            ([0x83], .unknownOpcode), ([0x8B], .unknownOpcode), ([0x09], .fragmentedControl),
            ([0x08], .fragmentedControl), ([0x89, 0x7E], .controlTooLong),
            ([0x88, 0xFF], .controlTooLong), ([0x82, 0x7E, 0, 0x7D], .badLength),
            ([0x82, 0x7F, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], .badLength),
            ([0x82, 0x7F, 0x80, 0, 0, 0, 0, 0, 0, 0], .badLength),
        ] as [([UInt8], WebSocketError)])
    func `are refused at the first byte that is wrong`(bytes: [UInt8], error: WebSocketError) {
        #expect(throws: error) { try WebSocketFrameHead.parse(bytes) }
    }

    @Test func `are masked from any offset`() {
        let plain = (0..<100).map { UInt8($0) }
        var whole = plain
        WebSocketFrameHead.mask(&whole, from: 0, key: 0x37FA_213D, offset: 0)
        #expect(whole.prefix(5) == [0x37, 0xFB, 0x23, 0x3E, 0x33])
        for cut in plain.indices {
            var (first, second) = (Array(plain[..<cut]), Array(plain[cut...]))
            WebSocketFrameHead.mask(&first, from: 0, key: 0x37FA_213D, offset: 0)
            WebSocketFrameHead.mask(&second, from: 0, key: 0x37FA_213D, offset: UInt64(cut))
            #expect(first + second == whole)
        }
    }

    @Test func `have text that is checked as the standard library does`() {
        var check = UTF8Check()
        #expect(check.isComplete)
        // All sequences of two and three of these bytes.
        let edges: [UInt8] = [
            0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1,
            0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF,
        ]
        for first in edges {
            for second in edges {
                for third in edges {
                    for fourth: [UInt8] in [[], [0x80], [0xBF], [0x41]] {
                        let bytes = [first, second, third] + fourth
                        check = UTF8Check()
                        let isValid = check.take(bytes) && check.isComplete
                        let isText = String(validating: bytes, as: UTF8.self) != nil
                        #expect(isValid == isText, "\(bytes)")
                    }
                }
            }
        }
    }
}

@Suite("The handshake of WebSocket")
struct WebSocketHandshakeTests {
    private static let answer = [
        "upgrade": ["websocket"], "connection": ["Upgrade"],
        "sec-websocket-accept": ["s3pPLMBiTxaQ9kYGzzhZRbK+xOo="],
    ]
    private let handshake = WebSocketHandshake(
        key: "dGhlIHNhbXBsZSBub25jZQ==", protocols: ["chat", "superchat"])

    /// RFC 6455, section 1.3.
    @Test func `has the example of RFC 6455`() throws {
        #expect(
            try WebSocketHandshake.accept(for: handshake.key) == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        #expect(try handshake.check(status: 101) { Self.answer[$0] ?? [] }.subprotocol == nil)
        #expect(
            handshake.fields.map { "\($0.name): \($0.value)" } == [
                "Upgrade: websocket", "Connection: Upgrade",
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
                "Sec-WebSocket-Protocol: chat, superchat",
            ])
    }

    @Test func `has a key of its own each time`() {
        var generator = SeededRandom(seed: 1)
        let keys = (0..<50).map { _ in WebSocketHandshake(using: &generator).key }
        #expect(Set(keys).count == 50 && keys.allSatisfy { $0.count == 24 })
    }

    @Test(
        arguments: [
            ("upgrade", ["h2c, WebSocket"], nil), ("connection", ["close", "x , upgrade"], nil),
            ("upgrade", [], .noUpgrade), ("upgrade", ["websockets"], .noUpgrade),
            ("connection", ["close"], .noUpgrade), ("sec-websocket-accept", [], .wrongAccept),
            ("sec-websocket-accept", ["S3pPLMBiTxaQ9kYGzzhZRbK+xOo="], .wrongAccept),
            ("sec-websocket-extensions", ["permessage-deflate"], .unknownExtension),
            ("sec-websocket-extensions", [""], nil),
            ("sec-websocket-protocol", ["Chat"], .unknownProtocol),
            ("sec-websocket-protocol", ["chat", "superchat"], .unknownProtocol),
        ] as [(String, [String], WebSocketHandshakeError?)])
    func `is accepted only with a matching key`(
        name: String, values: [String], error: WebSocketHandshakeError?
    ) throws {
        var answer = Self.answer
        answer[name] = values
        if let error {
            #expect(throws: error) { try handshake.check(status: 101) { answer[$0] ?? [] } }
        } else {
            let agreement = try handshake.check(status: 101) { answer[$0] ?? [] }
            #expect(agreement.subprotocol == nil && !agreement.compresses)
        }
    }

    @Test func `has the chosen subprotocol, or none`() throws {
        var answer = Self.answer
        answer["sec-websocket-protocol"] = [" superchat"]
        let agreement = try handshake.check(status: 101) { answer[$0] ?? [] }
        #expect(agreement.subprotocol == "superchat")
        #expect(throws: WebSocketHandshakeError.status(200)) {
            try handshake.check(status: 200) { answer[$0] ?? [] }
        }
    }
}
