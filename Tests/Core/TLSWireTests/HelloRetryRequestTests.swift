import Testing

@testable import Trust

@Suite("A request for another ClientHello")
struct HelloRetryRequestTests {
    private static let first = Retry.body(Retry.fixed + [Retry.keys([29, 23])])

    private static func group(_ number: Int) -> [UInt8] { Wire.ext(51, Wire.short(number)) }

    private static let wrong: [(extensions: [[UInt8]], error: TLSWireError)] = [
        ([], .unexpected("a HelloRetryRequest that asks for no change")),
        // Not offered; sent already.
        ([group(30)], .notOffered("the group")), ([group(29)], .notOffered("the group")),
        ([group(23)], .notOffered("the group")),
        (
            [Wire.ext(51, [0])], .malformed("the group of the HelloRetryRequest")
        ),
        (
            [Wire.ext(51, [0, 24, 0])],
            .malformed("the group of the HelloRetryRequest")
        ),
        ([Wire.ext(44, [0, 0])], .malformed("the cookie")),
        ([Wire.ext(44, [0, 2, 1])], .malformed("the cookie")),
        (
            [Retry.asked, Wire.ext(0xFE0D, [UInt8](repeating: 1, count: 8))],
            .notOffered("an extension of the HelloRetryRequest")
        ),
        (
            [Retry.asked, Wire.ext(16, [])],
            .notOffered("an extension of the HelloRetryRequest")
        ),
    ]

    @Test func `asks for what the client has offered, and for a change`() throws {
        for (extensions, error) in Self.wrong {
            #expect(throws: error, "\(extensions)") {
                try Retry.start(Self.first, Retry.request(extensions))
            }
        }
    }

    @Test func `is absent where the server continues`() throws {
        let hello = Wire.serverHello(
            session: Retry.session, suite: 0x1301, extensions: [Retry.sign])
        #expect(try Retry.start(Self.first, hello) == nil)
    }

    @Test func `is refused for a client of TLS 1_2, or of another session`() throws {
        let old = Wire.clientHello(suites: [0xC02F], extensions: [Wire.name("a.test")])
        for (first, answer) in [
            (old, Wire.serverHello(random: Retry.retryRandom)),
            (
                old,
                Wire.serverHello(
                    random: Retry.retryRandom, extensions: [Retry.sign, Retry.asked])
            ),
            (
                Self.first,
                Wire.serverHello(
                    random: Retry.retryRandom, session: [1], suite: 0x1301,
                    extensions: [Retry.sign, Retry.asked])
            ),
        ] {
            var flight = ServerFlight(answering: try ClientHello(first))
            #expect(throws: TLSWireError.self) {
                try Wire.finding(Wire.handshake(answer), &flight, pieces: 1)
            }
        }
    }

    @Test func `is followed by a change of cipher or nothing`() throws {
        let request = Retry.request([Retry.asked])
        for pieces in [1, 1 << 16] {
            #expect(
                try Retry.start(Self.first, request, pieces: pieces, then: Wire.changeOfCipher)
                    != nil)
        }
        let going = Wire.serverHello(
            session: Retry.session, suite: 0x1301, extensions: [Retry.sign])
        for then in [
            Wire.handshake(going), Wire.handshake(request), Wire.record(21, [2, 40]),
            Wire.record(23, [1]), Wire.record(20, [2]),
        ] {
            #expect(throws: TLSWireError.self, "\(then)") {
                try Retry.start(Self.first, request, then: then)
            }
        }
        // In the same record.
        #expect(throws: TLSWireError.unexpected("data after a HelloRetryRequest")) {
            try Retry.start(Self.first, request + going)
        }
    }

    // MARK: What follows the second ClientHello

    private static func agreed() throws -> HelloRetry {
        var retry = try #require(try Retry.start(first, Retry.request([Retry.asked])))
        let second = Retry.body(Retry.fixed + [Retry.keys([Retry.group])])
        _ = try Retry.say(Wire.handshake(Wire.message(1, second)), to: &retry)
        return retry
    }

    @Test func `is made good by a ServerHello of the same suite`() throws {
        let going = Wire.serverHello(
            session: Retry.session, suite: 0x1301, extensions: [Retry.sign])
        for pieces in [1, 2, 1 << 16] {
            var retry = try Self.agreed()
            let bytes = Wire.changeOfCipher + Wire.handshake(going, records: 11)
            #expect(try Retry.answer(bytes, to: &retry, pieces: pieces) == .encrypted)
        }
        var refused = try Self.agreed()
        #expect(
            try Retry.answer(Wire.record(21, [2, 47]), to: &refused, pieces: 1)
                == .alert(code: 47))
    }

    @Test func `is not made twice, nor answered by something else`() throws {
        let going = Wire.serverHello(
            session: Retry.session, suite: 0x1301, extensions: [Retry.sign])
        for (answer, error) in [
            (
                Retry.request([Wire.ext(51, Wire.short(25))]),
                TLSWireError.unexpected("a second HelloRetryRequest")
            ),
            (
                Wire.serverHello(
                    session: Retry.session, suite: 0x1302, extensions: [Retry.sign]),
                .unexpected("another version or cipher suite than before")
            ),
            (
                Wire.serverHello(session: Retry.session, suite: 0x1301),
                .unexpected("another version or cipher suite than before")
            ),
            (Wire.done, .unexpected("a message before the second ClientHello")),
        ] {
            var retry = try Self.agreed()
            #expect(throws: error) { try Retry.answer(Wire.handshake(answer), to: &retry) }
        }
        var early = try #require(try Retry.start(Self.first, Retry.request([Retry.asked])))
        #expect(throws: TLSWireError.unexpected("a message before the second ClientHello")) {
            try Retry.answer(Wire.handshake(going), to: &early)
        }
    }
}
