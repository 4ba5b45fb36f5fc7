import Testing
import Trust

@Suite("ClientHello and ServerHello")
struct HelloTests {
    @Test func `a ClientHello has what it offers`() throws {
        let hello = try Wire.hello(
            session: [1, 2, 3],
            extensions: [
                Wire.name("API.Example.COM."), Wire.ext(43, [4, 3, 4, 3, 3]),
                Wire.ext(16, Wire.vector([2] + Array("h2".utf8), lengthBytes: 2)),
                Wire.ext(35, [7, 7]), Wire.ext(42, []), Wire.ext(41, [0]), Wire.ext(0x0A0A, []),
            ])
        #expect(hello.serverName == "api.example.com")
        #expect(hello.random == Wire.clientRandom)
        #expect(hello.sessionID == [1, 2, 3])
        #expect(hello.suites == [0xC02B, 0xC02F, 0x002F])
        #expect(hello.versions == [0x0304, 0x0303])
        #expect(hello.applicationProtocols == [2] + Array("h2".utf8))
        #expect(hello.ticket == [7, 7])
        #expect(hello.offersEarlyData && hello.offersPreSharedKey)
        #expect(hello.encryptedHello == .none)
        #expect(hello.offers(version: 0x0304) && !hello.offers(version: 0x0302))
    }

    @Test func `an old ClientHello has no extensions`() throws {
        let hello = try Wire.hello(version: 0x0301, extensions: nil)
        #expect(hello.serverName == nil && hello.versions == nil && hello.ticket.isEmpty)
        #expect(hello.offers(version: 0x0301) && !hello.offers(version: 0x0302))
        #expect(hello.recordVersion == 0x0301)
    }

    private static let ech: [UInt8] =
        [0, 0, 1, 0, 1, 9] + Wire.vector([1, 2], lengthBytes: 2) + Wire.vector([3], lengthBytes: 2)

    private static let encrypted: [(extension: [UInt8], found: ClientHello.EncryptedHello)] = [
        (Wire.ext(0xFE0D, ech), .outer), (Wire.ext(0xFE0D, ech + [0]), .unknown),
        (Wire.ext(0xFE0D, [1]), .unknown), (Wire.ext(0xFE0D, []), .unknown),
        (Wire.ext(0xFE0D, [0, 0, 1, 0, 1, 9, 0, 0, 0, 0]), .unknown),
        (Wire.ext(0xFFCE, []), .unknown), (Wire.ext(0xFE0C, ech), .unknown),
        (Wire.ext(0xFD00, []), .unknown), (Wire.ext(0xFE0E, []), .none),
    ]

    @Test func `an encrypted ClientHello is distinguished from what only looks like one`() throws {
        for (content, found) in Self.encrypted {
            let hello = try Wire.hello(extensions: [Wire.name("a.test"), content])
            #expect(hello.encryptedHello == found, "\(content)")
        }
    }

    private static let malformed: [[UInt8]] = [
        [], Wire.clientHello() + [0], Array(Wire.clientHello().dropLast()),
        Wire.clientHello(session: [UInt8](repeating: 0, count: 33)), Wire.clientHello(suites: []),
        Wire.clientHello(compression: [1]), Wire.clientHello(compression: []),
        Wire.clientHello(extensions: [Wire.name("a.test"), Wire.name("a.test")]),
        Wire.clientHello(extensions: [Wire.name("")]),
        Wire.clientHello(extensions: [Wire.name("a test")]),
        Wire.clientHello(extensions: [Wire.name("a\u{0}.test")]),
        Wire.clientHello(extensions: [Wire.ext(0, [])]),
        Wire.clientHello(extensions: [Wire.ext(0, [0, 4, 1, 0, 1, 97])]),
        Wire.clientHello(extensions: [Wire.ext(0, [0, 8, 0, 0, 1, 97, 0, 0, 1, 98])]),
        Wire.clientHello(extensions: [Wire.ext(43, [])]),
        Wire.clientHello(extensions: [Wire.ext(43, [3, 3, 4, 3])]),
        Wire.clientHello(extensions: [Wire.ext(16, [0, 1, 0])]),
    ]

    @Test func `a ClientHello that can be read in two ways is refused`() {
        for (index, body) in Self.malformed.enumerated() {
            #expect(throws: TLSWireError.self, "\(index)") { try ClientHello(body) }
        }
    }

    @Test func `a truncated ClientHello is refused`() throws {
        let body = Wire.clientHello(extensions: [Wire.name("a.test"), Wire.ext(43, [2, 3, 4])])
        for end in body.indices where body[..<end] != Wire.clientHello(extensions: nil)[...] {
            #expect(throws: TLSWireError.self, "\(end)") { try ClientHello(Array(body[..<end])) }
        }
    }

    @Test func `an opening ends with the ClientHello, wherever that is cut`() throws {
        let message = Wire.message(1, Wire.clientHello())
        for records in 1...message.count {
            let bytes = Wire.handshake(message, records: records)
            let stream = bytes + Wire.changeOfCipher + Wire.record(23, [1, 2])
            for pieces in [1, 3, stream.count] {
                var opening = ClientOpening()
                var (taken, found): (Int, ClientHello?) = (0, nil)
                for start in stride(from: 0, to: stream.count, by: pieces) where found == nil {
                    let piece = stream[start..<min(start + pieces, stream.count)]
                    if let result = try piece.withUnsafeBytes({ try opening.take($0) }) {
                        (taken, found) = (start + result.count, result.hello)
                    }
                }
                #expect(taken == bytes.count)
                #expect(found?.serverName == "a.test")
            }
        }
    }

    @Test func `an opening is a ClientHello and nothing else`() {
        for bytes in [
            Wire.handshake(Wire.serverHello()), Wire.changeOfCipher, Wire.record(21, [2, 0]),
            Wire.handshake(Wire.message(1, Wire.clientHello()), Wire.done),
        ] {
            var opening = ClientOpening()
            #expect(throws: TLSWireError.self) {
                try bytes.withUnsafeBytes { try opening.take($0) }
            }
        }
    }

    // MARK: ServerHello

    private static func read(_ message: [UInt8], _ hello: ClientHello) throws -> ServerHello {
        try ServerHello(Array(message.dropFirst(4)), answering: hello)
    }

    @Test func `a ServerHello has the version`() throws {
        let new = try Wire.hello(
            suites: [0x1301, 0xC02F],
            extensions: [Wire.name("a.test"), Wire.ext(43, [6, 3, 4, 3, 3, 3, 1])])
        let old = try Wire.hello()
        let sign = Wire.ext(43, [3, 4])
        #expect(
            try Self.read(Wire.serverHello(suite: 0x1301, extensions: [sign]), new).version
                == 0x0304)
        #expect(try Self.read(Wire.serverHello(), new).version == 0x0303)
        #expect(try Self.read(Wire.serverHello(version: 0x0301), new).version == 0x0301)
        #expect(try Self.read(Wire.serverHello(version: 0x0301), old).version == 0x0301)
        for (message, hello, what) in [
            // A client that does not know TLS 1.3 would continue with TLS 1.2.
            (Wire.serverHello(extensions: [sign]), old, "the version"),
            (Wire.serverHello(extensions: [Wire.ext(43, [3, 3])]), new, "the version"),
            (Wire.serverHello(version: 0x0301, extensions: [sign]), new, "the version"),
            (Wire.serverHello(version: 0x0304), new, "the version"),
            (Wire.serverHello(version: 0x0300), old, "the version"),
            (Wire.serverHello(version: 0x0302), new, "the version"),
            (Wire.serverHello(suite: 0xC030), old, "the cipher suite"),
        ] as [([UInt8], ClientHello, StaticString)] {
            #expect(throws: TLSWireError.notOffered(.init(stringLiteral: "\(what)"))) {
                try Self.read(message, hello)
            }
        }
    }
}
