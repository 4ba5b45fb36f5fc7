import Testing

@testable import Trust

@Suite("A server's flight")
struct FlightTests {
    private static let chain: [[UInt8]] = [
        [UInt8](repeating: 1, count: 30), [UInt8](repeating: 2, count: 20),
    ]
    private static let full: [[UInt8]] = [
        Wire.serverHello(session: [5]), Wire.certificates(chain), Wire.keyExchange, Wire.done,
    ]

    private static func proof(_ sessionID: [UInt8] = [5]) throws -> ServerProof {
        ServerProof(
            version: 0x0303, suite: 0xC02F, chain: chain,
            keyExchange: try ServerKeyExchange(
                Array(Wire.keyExchange.dropFirst(4)), kind: .signedCurve, version: 0x0303),
            randoms: Wire.clientRandom + Wire.serverRandom, sessionID: sessionID)
    }

    private static func finding(
        _ messages: [[UInt8]], _ hello: ClientHello? = nil, then: [UInt8] = []
    ) throws -> ServerFlight.Finding? {
        try Wire.finding(
            Wire.handshake(messages.flatMap { $0 }) + then, answering: try hello ?? Wire.hello(),
            pieces: 1 << 16)
    }

    @Test func `is the same however records and messages are cut`() throws {
        let bytes = Self.full.flatMap { $0 }
        let expected = ServerFlight.Finding.presented(try Self.proof())
        for records in 1...bytes.count {
            let stream = Wire.handshake(bytes, records: records)
            for pieces in [1, 2, 5, 9, stream.count] {
                #expect(
                    try Wire.finding(stream, answering: Wire.hello(), pieces: pieces) == expected)
            }
        }
    }

    @Test func `has the timestamps and the stapled response that came with it`() throws {
        let hello = Wire.serverHello(session: [5], extensions: [Wire.ext(18, [1, 2, 3])])
        let staples: [(body: [UInt8], response: [UInt8]?)] = [
            ([1] + Wire.vector([7, 8, 9], lengthBytes: 3), [7, 8, 9]),
            ([1] + Wire.vector([], lengthBytes: 3), []),
            // Of another kind, truncated, with trailing data: none of them can be read.
            ([2] + Wire.vector([7, 8, 9], lengthBytes: 3), nil), ([1, 0, 0, 3, 7], nil), ([], nil),
            ([1, 0, 0, 1, 7, 8], nil),
        ]
        for (body, response) in staples {
            var expected = try Self.proof()
            expected.timestamps = [1, 2, 3]
            expected.staple = response
            let flight =
                [hello, Wire.certificates(Self.chain), Wire.message(22, body)]
                + Self.full.suffix(2)
            #expect(try Self.finding(flight) == .presented(expected))
        }
    }

    @Test func `is not complete a byte before its end`() throws {
        let stream = Wire.handshake(Self.full.flatMap { $0 })
        for end in stream.indices {
            #expect(
                try Wire.finding(
                    Array(stream[..<end]), answering: Wire.hello(), pieces: 1 << 16) == nil)
        }
    }

    @Test func `may have a status and a request for a certificate`() throws {
        let status = Wire.message(22, [1, 0, 0, 1, 9])
        let request = Wire.message(13, [1, 1, 0, 2, 4, 3, 0, 0])
        let found = try Self.finding([
            Self.full[0], Self.full[1], status, Self.full[2], request, Wire.done,
        ])
        var expected = try Self.proof()
        expected.staple = [9]
        #expect(found == .presented(expected))
    }

    @Test(arguments: [
        [], [1], [1, 0, 0], [1, 0, 0, 2, 9], [1, 0, 0, 1, 9, 9], [2, 0, 0, 1, 9],
        [0, 0, 0, 1, 9],
    ])
    func `has no staple where the status is malformed or of another kind`(status: [UInt8]) throws {
        let found = try Self.finding([
            Self.full[0], Self.full[1], Wire.message(22, status), Self.full[2], Wire.done,
        ])
        #expect(found == .presented(try Self.proof()))
    }

    @Test func `of RSA key exchange has no key of its own`() throws {
        let hello = Wire.serverHello(suite: 0x002F)
        let request = Wire.message(13, [0])
        for middle in [[], [request]] {
            let found = try Self.finding([hello, Self.full[1]] + middle + [Wire.done])
            guard case .presented(let proof) = found else {
                Issue.record("\(String(describing: found))")
                return
            }
            #expect(proof.keyExchange == nil && proof.suite == 0x002F)
        }
        #expect(throws: TLSWireError.unexpected("a ServerKeyExchange")) {
            try Self.finding([hello, Self.full[1], Wire.keyExchange, Wire.done])
        }
    }

    @Test func `that leaves out its key is refused`() {
        #expect(throws: TLSWireError.unexpected("the order of messages")) {
            try Self.finding([Self.full[0], Self.full[1], Wire.done])
        }
    }

    @Test func `is taken in one order only`() throws {
        let messages = Self.full
        for first in messages.indices {
            for second in messages.indices where second != first {
                var other = messages
                other.swapAt(first, second)
                #expect(throws: TLSWireError.self) { try Self.finding(other) }
            }
        }
        for left in messages.indices {
            var other = messages
            other.insert(messages[left], at: left)
            #expect(throws: TLSWireError.self) { try Self.finding(other) }
        }
    }

    @Test func `ends where it ends`() {
        for behind in [Wire.ticket([1]), Wire.serverHello()] {
            #expect(throws: TLSWireError.unexpected("data after the flight")) {
                try Self.finding(Self.full + [behind])
            }
        }
        #expect(throws: TLSWireError.unexpected("data after the flight")) {
            try Self.finding(Self.full, then: Wire.changeOfCipher)
        }
    }

    @Test(arguments: [0x0000, 0x0005, 0x0018, 0x0034, 0x00A8, 0xC018, 0xC02D, 0xC037, 0x1301])
    func `of a suite that proves nothing is refused`(suite: Int) throws {
        let hello = try Wire.hello(suites: [suite])
        #expect(throws: TLSWireError.unprovable("the cipher suite")) {
            try Self.finding([Wire.serverHello(suite: suite)], hello)
        }
    }

    @Test func `has a limited number of certificates`() throws {
        let most = ServerFlight.maximumCertificates
        for (count, isTaken) in [(most, true), (most + 1, false), (100, false)] {
            let chain = [[UInt8]](repeating: [1], count: count)
            let messages = [Self.full[0], Wire.certificates(chain), Self.full[2], Wire.done]
            if isTaken {
                #expect(try Self.finding(messages) != nil)
            } else {
                #expect(throws: TLSWireError.tooLong("the chain")) { try Self.finding(messages) }
            }
        }
        #expect(throws: TLSWireError.unprovable("a flight without a certificate")) {
            try Self.finding([Self.full[0], Wire.certificates([])])
        }
    }

    @Test func `of TLS 1_3 shows nothing, also when it asks for another ClientHello`() throws {
        let hello = try Wire.hello(
            suites: [0x1301], extensions: [Wire.name("a.test"), Wire.ext(43, [2, 3, 4])])
        let sign = Wire.ext(43, [3, 4])
        for then in [[], Wire.record(23, [1, 2, 3]), Wire.changeOfCipher] {
            let answer = Wire.serverHello(suite: 0x1301, extensions: [sign])
            #expect(try Self.finding([answer], hello, then: then) == .encrypted)
        }
    }

    @Test func `may be an alert instead, and warnings are ignored`() throws {
        let warning = Wire.record(21, [1, 112])
        let fatal = Wire.record(21, [2, 40])
        #expect(
            try Wire.finding(warning + fatal, answering: Wire.hello(), pieces: 1)
                == .alert(code: 40))
        #expect(
            try Wire.finding(
                warning + Wire.handshake(Self.full.flatMap { $0 }), answering: Wire.hello(),
                pieces: 1) == .presented(try Self.proof()))
    }

    // MARK: Resumption

    private static let offers: [(session: [UInt8], ticket: [UInt8], echo: [UInt8], goes: Bool)] = [
        ([1], [], [1], true), ([1], [], [2], false), ([1], [], [], false), ([], [], [], false),
        ([], [9], [], true), ([1], [9], [1], true), ([1], [9], [], false), ([1], [9], [2], false),
    ]

    @Test func `resumes a session only where the client offered it`() throws {
        for (session, ticket, echo, goesOn) in Self.offers {
            let hello = try Wire.hello(
                session: session, extensions: [Wire.name("a.test"), Wire.ext(35, ticket)])
            for given in [[], [Wire.ticket([4, 4])]] {
                let bytes =
                    Wire.handshake(([Wire.serverHello(session: echo)] + given).flatMap { $0 })
                    + Wire.changeOfCipher
                var flight = ServerFlight(answering: hello)
                if goesOn {
                    #expect(
                        try Wire.finding(bytes, &flight, pieces: 1) == .resumed(version: 0x0303))
                    #expect(flight.ticket == (given.isEmpty ? [] : [4, 4]))
                } else {
                    #expect(throws: TLSWireError.self) {
                        try Wire.finding(bytes, &flight, pieces: 1)
                    }
                }
            }
        }
    }

    @Test func `changes its cipher nowhere else`() throws {
        let hello = try Wire.hello(session: [5])
        for count in 0..<Self.full.count where count != 1 {
            #expect(throws: TLSWireError.unexpected("a ChangeCipherSpec")) {
                try Self.finding(Array(Self.full.prefix(count)), hello, then: Wire.changeOfCipher)
            }
        }
    }

    @Test func `has no certificate behind a ticket`() throws {
        let hello = try Wire.hello(session: [5])
        #expect(throws: TLSWireError.unexpected("a certificate")) {
            try Self.finding([Self.full[0], Wire.ticket([1]), Self.full[1]], hello)
        }
    }

    // MARK: The key of the handshake

    private static func exchange(_ parameters: [UInt8], _ kind: ServerProofKind) throws
        -> ServerKeyExchange
    {
        try ServerKeyExchange(
            parameters + Wire.short(0x0804) + Wire.vector([7], lengthBytes: 2), kind: kind,
            version: 0x0303)
    }

    @Test func `has a key on a curve that is named and strong`() throws {
        let point = Wire.vector([4, 5], lengthBytes: 1)
        let found = try Self.exchange([3, 0, 29] + point, .signedCurve)
        #expect(found.parameters == [3, 0, 29] + point)
        #expect(found.scheme == 0x0804 && found.signature == [7])
        for wrong: [UInt8] in [[1, 0, 23], [2, 0, 23], [3, 0, 16], [3, 0xFF, 1], [3, 0, 1]] {
            #expect(throws: TLSWireError.unprovable("an unknown curve")) {
                try Self.exchange(wrong + point, .signedCurve)
            }
        }
        #expect(throws: TLSWireError.self) { try Self.exchange([3, 0, 29, 0], .signedCurve) }
    }

    @Test func `has a group of 2048 bits at least`() throws {
        func group(_ prime: [UInt8]) -> [UInt8] {
            [prime, [2], [3]].flatMap { Wire.vector($0, lengthBytes: 2) }
        }
        let strong = [0x80] + [UInt8](repeating: 1, count: 255)
        for prime in [strong, [0] + strong, [1] + strong] {
            #expect(try Self.exchange(group(prime), .signedGroup).parameters == group(prime))
        }
        let weak = [0x7F] + [UInt8](repeating: 1, count: 255)
        for prime in [
            weak, Array(strong.dropLast()), [0, 0] + weak, [UInt8](repeating: 9, count: 64),
        ] {
            #expect(
                throws: TLSWireError.unprovable("a Diffie-Hellman group of less than 2048 bits")
            ) { try Self.exchange(group(prime), .signedGroup) }
        }
    }

    @Test func `has its signature algorithm from TLS 1_2 on`() throws {
        let old = Wire.curveParameters + Wire.vector([7, 8], lengthBytes: 2)
        let found = try ServerKeyExchange(old, kind: .signedCurve, version: 0x0302)
        #expect(found.scheme == nil && found.signature == [7, 8])
        #expect(throws: TLSWireError.self) {
            try ServerKeyExchange(old + [0], kind: .signedCurve, version: 0x0302)
        }
    }

    // MARK: The end of the handshake

    private static let clientEnd =
        Wire.handshake(Wire.message(16, [1, 2]), records: 3) + Wire.changeOfCipher
        + Wire.record(22, [9, 9, 9])
    private static let serverEnd =
        Wire.handshake(Wire.ticket([6, 6]), records: 2) + Wire.changeOfCipher
        + Wire.record(22, [8, 8])

    private static func feed(
        _ ending: inout HandshakeEnding, client: [UInt8] = [], server: [UInt8] = []
    ) throws {
        for byte in client {
            try [byte].withUnsafeBytes { try ending.takeFromClient($0) }
        }
        for byte in server {
            try [byte].withUnsafeBytes { try ending.takeFromServer($0) }
        }
    }

    @Test func `is followed until both sides are encrypted`() throws {
        var ending = HandshakeEnding()
        try Self.feed(&ending, client: Self.clientEnd)
        #expect(!ending.isOver)
        try Self.feed(&ending, server: Self.serverEnd)
        #expect(ending.isOver && !ending.isBroken && ending.ticket == [6, 6])
    }

    @Test func `is not followed by what comes too early, or is not due`() throws {
        for server in [
            Wire.changeOfCipher, Wire.handshake(Wire.ticket([1])), Wire.handshake(Wire.done),
            Wire.handshake(Wire.serverHello()), Wire.handshake(Wire.message(0, [])),
            Wire.record(23, [1]),
        ] {
            var ending = HandshakeEnding()
            #expect(throws: TLSWireError.self) { try Self.feed(&ending, server: server) }
        }
        for server in [Wire.handshake(Wire.message(0, [])), Wire.handshake(Wire.serverHello())] {
            var ending = HandshakeEnding()
            try Self.feed(&ending, client: Self.clientEnd)
            #expect(throws: TLSWireError.self) { try Self.feed(&ending, server: server) }
        }
        var ending = HandshakeEnding()
        #expect(throws: TLSWireError.self) {
            try Self.feed(&ending, client: Wire.handshake(Wire.message(1, Wire.clientHello())))
        }
    }

    @Test func `of a session that goes on waits for the client alone`() throws {
        var ending = HandshakeEnding(resumedWith: [3])
        try Self.feed(&ending, server: [1, 2, 3, 4, 5])
        #expect(!ending.isOver && ending.ticket == [3])
        try Self.feed(&ending, client: Wire.changeOfCipher)
        #expect(ending.isOver)
        var other = HandshakeEnding(resumedWith: [])
        #expect(throws: TLSWireError.self) { try Self.feed(&other, client: Self.clientEnd) }
    }

    @Test func `is broken by an alert of either side`() throws {
        for isClient in [true, false] {
            var ending = HandshakeEnding()
            let (warning, fatal) = (Wire.record(21, [1, 0]), Wire.record(21, [2, 42]))
            try Self.feed(&ending, client: isClient ? warning : [], server: isClient ? [] : warning)
            #expect(!ending.isBroken)
            try Self.feed(&ending, client: isClient ? fatal : [], server: isClient ? [] : fatal)
            #expect(ending.isBroken && !ending.isOver)
        }
    }
}
