import Trust

/// TLS bytes, assembled for tests.
enum Wire {
    static func short(_ number: Int) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 0xFF)] }

    static func vector(_ bytes: [UInt8], lengthBytes: Int) -> [UInt8] {
        (0..<lengthBytes).reversed().map { UInt8(bytes.count >> (8 * $0) & 0xFF) } + bytes
    }

    static func record(_ type: UInt8, _ content: [UInt8], version: Int = 0x0303) -> [UInt8] {
        [type] + short(version) + vector(content, lengthBytes: 2)
    }

    static func message(_ type: UInt8, _ body: [UInt8]) -> [UInt8] {
        [type] + vector(body, lengthBytes: 3)
    }

    /// A message in records of this many bytes each.
    static func handshake(_ messages: [UInt8]..., records: Int = 1 << 14) -> [UInt8] {
        let bytes = messages.flatMap { $0 }
        return stride(from: 0, to: bytes.count, by: records).flatMap {
            record(22, Array(bytes[$0..<min($0 + records, bytes.count)]))
        }
    }

    static func ext(_ type: Int, _ content: [UInt8]) -> [UInt8] {
        short(type) + vector(content, lengthBytes: 2)
    }

    static func name(_ host: String) -> [UInt8] {
        ext(0, vector([0] + vector(Array(host.utf8), lengthBytes: 2), lengthBytes: 2))
    }

    static let clientRandom = [UInt8](repeating: 0xC1, count: 32)
    static let serverRandom = [UInt8](repeating: 0x5E, count: 32)
    static let changeOfCipher = record(20, [1])

    /// The body of a ClientHello.
    static func clientHello(
        version: Int = 0x0303, session: [UInt8] = [], suites: [Int] = [0xC02B, 0xC02F, 0x002F],
        compression: [UInt8] = [0], extensions: [[UInt8]]? = [name("a.test")]
    ) -> [UInt8] {
        short(version) + clientRandom + vector(session, lengthBytes: 1)
            + vector(suites.flatMap(short), lengthBytes: 2) + vector(compression, lengthBytes: 1)
            + (extensions.map { vector($0.flatMap { $0 }, lengthBytes: 2) } ?? [])
    }

    static func hello(
        version: Int = 0x0303, session: [UInt8] = [], suites: [Int] = [0xC02B, 0xC02F, 0x002F],
        extensions: [[UInt8]]? = [name("a.test")]
    ) throws -> ClientHello {
        try ClientHello(
            clientHello(
                version: version, session: session, suites: suites, extensions: extensions))
    }

    static func serverHello(
        version: Int = 0x0303, random: [UInt8] = serverRandom, session: [UInt8] = [],
        suite: Int = 0xC02F, extensions: [[UInt8]]? = nil
    ) -> [UInt8] {
        message(
            2,
            short(version) + random + vector(session, lengthBytes: 1) + short(suite) + [0]
                + (extensions.map { vector($0.flatMap { $0 }, lengthBytes: 2) } ?? []))
    }

    static func certificates(_ chain: [[UInt8]]) -> [UInt8] {
        message(11, vector(chain.flatMap { vector($0, lengthBytes: 3) }, lengthBytes: 3))
    }

    static let curveParameters: [UInt8] = [3, 0, 23] + vector([4, 1, 2, 3], lengthBytes: 1)
    static let keyExchange = message(
        12, curveParameters + short(0x0403) + vector([9, 9, 9], lengthBytes: 2))
    static let done = message(14, [])

    static func ticket(_ bytes: [UInt8]) -> [UInt8] {
        message(4, [0, 0, 14, 16] + vector(bytes, lengthBytes: 2))
    }

    /// All items of a stream whose bytes arrive in pieces of a size.
    static func items(
        _ bytes: [UInt8], pieces: Int, limits: HandshakeStream.Limits = .init()
    ) throws -> [HandshakeStream.Item] {
        var stream = HandshakeStream(limits: limits)
        var items: [HandshakeStream.Item] = []
        for start in stride(from: 0, to: bytes.count, by: pieces) {
            let piece = bytes[start..<min(start + pieces, bytes.count)]
            try piece.withUnsafeBytes { raw in
                var rest = raw[...]
                while let item = try stream.next(&rest) { items.append(item) }
            }
        }
        return items
    }

    /// The result of a flight whose bytes arrive in pieces of a size.
    static func finding(
        _ bytes: [UInt8], answering hello: ClientHello, pieces: Int
    ) throws -> ServerFlight.Finding? {
        var flight = ServerFlight(answering: hello)
        return try finding(bytes, &flight, pieces: pieces)
    }

    static func finding(
        _ bytes: [UInt8], _ flight: inout ServerFlight, pieces: Int
    ) throws -> ServerFlight.Finding? {
        for start in stride(from: 0, to: bytes.count, by: pieces) {
            let piece = bytes[start..<min(start + pieces, bytes.count)]
            if let found = try piece.withUnsafeBytes({ try flight.take($0) }) { return found }
        }
        return nil
    }
}
