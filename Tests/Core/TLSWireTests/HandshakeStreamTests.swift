import Testing
import Trust

@Suite("Records and messages")
struct HandshakeStreamTests {
    private static let messages: [[UInt8]] = [
        Wire.message(2, [1, 2, 3, 4, 5]), Wire.message(11, [UInt8](repeating: 7, count: 40)),
        Wire.message(14, []),
    ]
    private static let expected: [HandshakeStream.Item] = [
        .message(HandshakeMessage(kind: .serverHello, body: [1, 2, 3, 4, 5])),
        .message(HandshakeMessage(kind: .certificate, body: [UInt8](repeating: 7, count: 40))),
        .message(HandshakeMessage(kind: .serverHelloDone, body: [])),
    ]

    @Test func `are put together however they are cut`() throws {
        let bytes = Self.messages.flatMap { $0 }
        for records in 1...bytes.count {
            let stream = Wire.handshake(bytes, records: records) + Wire.changeOfCipher + [1, 2, 3]
            for pieces in [1, 2, 3, 5, 7, 16, stream.count] {
                #expect(
                    try Wire.items(stream, pieces: pieces) == Self.expected + [.changeCipherSpec])
            }
        }
    }

    @Test func `are put together when cut in two records anywhere`() throws {
        let bytes = Self.messages.flatMap { $0 }
        for cut in 1..<bytes.count {
            let stream =
                Wire.record(22, Array(bytes[..<cut])) + Wire.record(22, Array(bytes[cut...]))
            for end in 1..<stream.count {
                var flight = HandshakeStream()
                var items: [HandshakeStream.Item] = []
                for part in [stream[..<end], stream[end...]] {
                    try part.withUnsafeBytes { raw in
                        var rest = raw[...]
                        while let item = try flight.next(&rest) { items.append(item) }
                    }
                }
                #expect(items == Self.expected)
                #expect(flight.isBetweenMessages)
            }
        }
    }

    @Test func `leave what follows an item where it is`() throws {
        var stream = HandshakeStream()
        let bytes = Wire.handshake(Wire.message(2, [1])) + Wire.record(23, [9, 9])
        var (first, left, error): (HandshakeStream.Item?, Int, TLSWireError?) = (nil, 0, nil)
        bytes.withUnsafeBytes { raw in
            var rest = raw[...]
            do throws(TLSWireError) {
                first = try stream.next(&rest)
                left = rest.count
                _ = try stream.next(&rest)
            } catch let thrown {
                error = thrown
            }
        }
        #expect(first == .message(HandshakeMessage(kind: .serverHello, body: [1])))
        #expect(left == 7)
        #expect(error == .unexpected("encrypted data"))
    }

    @Test(arguments: [1, 1000])
    func `bring alerts`(pieces: Int) throws {
        let stream = Wire.record(21, [1, 112]) + Wire.record(21, [2, 40])
        #expect(
            try Wire.items(stream, pieces: pieces) == [
                .alert(isFatal: false, code: 112), .alert(isFatal: true, code: 40),
            ])
    }

    private static let wrong: [(bytes: [UInt8], error: TLSWireError)] = [
        (Array("SSH-2.0".utf8), .notTLS), (Array("GET / HTTP/1.1".utf8), .notTLS),
        ([0x80, 0x2E, 1, 3, 1], .notTLS), ([22, 2], .notTLS), ([23, 3, 3], .notTLS),
        ([22, 3, 3, 0, 0], .malformed("an empty record")),
        ([22, 3, 3, 0x40, 1], .tooLong("a record")),
        (Wire.record(22, [99, 0, 0, 0]), .unexpected("a message of an unknown type")),
        (Wire.record(22, [1, 0, 0x40, 1]), .tooLong("the ClientHello")),
        (Wire.record(22, [11, 1, 0x90, 1]), .tooLong("the certificates")),
        (Wire.record(22, [11, 0x10, 0, 0]), .tooLong("the certificates")),
        (Wire.record(22, [13, 1, 0, 1]), .tooLong("a message")),
        (
            Wire.record(22, [2, 0, 0, 2, 1]) + Wire.record(21, [2, 0]),
            .unexpected("another record within a message")
        ),
        (
            Wire.record(22, [2, 0]) + Wire.changeOfCipher,
            .unexpected("another record within a message")
        ),
        (Wire.record(21, [2]), .malformed("an alert")),
        (Wire.record(21, [2, 40, 2]), .malformed("an alert")),
        (Wire.record(21, [3, 40]), .malformed("an alert")),
        (Wire.record(20, [2]), .malformed("a ChangeCipherSpec")),
        (Wire.record(20, [1, 1]), .malformed("a ChangeCipherSpec")),
        ((0..<5).flatMap { _ in Wire.record(21, [1, 0]) }, .tooLong("the series of alerts")),
    ]

    @Test(arguments: [1, 2, 1000])
    func `that are malformed are reported with what is wrong`(pieces: Int) {
        for (bytes, error) in Self.wrong {
            #expect(throws: error, "\(bytes)") { try Wire.items(bytes, pieces: pieces) }
        }
    }

    @Test func `are distinguished from something else by the first byte`() {
        for byte in UInt8.min...UInt8.max where ![20, 21, 22].contains(byte) {
            #expect(throws: TLSWireError.notTLS) { try Wire.items([byte], pieces: 1) }
        }
    }

    @Test func `are bounded in all`() throws {
        var limits = HandshakeStream.Limits()
        limits.total = 100
        let message = Wire.handshake(Wire.message(4, [UInt8](repeating: 0, count: 41)))
        #expect(message.count == 50)
        #expect(try Wire.items(message + message, pieces: 1, limits: limits).count == 2)
        #expect(throws: TLSWireError.tooLong("the handshake")) {
            try Wire.items(message + message + [22], pieces: 1, limits: limits)
        }
    }

    @Test(arguments: [1, 2, 1000])
    func `that are malformed before the bound are not too long, however they arrive`(
        pieces: Int
    ) throws {
        var limits = HandshakeStream.Limits()
        limits.total = 20
        for content: [UInt8] in [[UInt8](repeating: 1, count: 30), [3, 40]] {
            let alert = Wire.record(21, content)
            let before = Wire.handshake(Wire.message(4, [UInt8](repeating: 0, count: 5)))
            #expect(before.count == 14)
            #expect(throws: TLSWireError.malformed("an alert")) {
                try Wire.items(before + alert, pieces: pieces, limits: limits)
            }
        }
    }
}
