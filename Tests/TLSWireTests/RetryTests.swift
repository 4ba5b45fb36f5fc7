import Testing

@testable import TLSWire

/// Hellos around a HelloRetryRequest, put together for tests.
private enum Retry {
    static let group = 24
    static let retryRandom: [UInt8] = [
        0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8,
        0x91, 0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8,
        0x33, 0x9C,
    ]
    static let session: [UInt8] = [7, 7, 7]
    static let sign = Wire.ext(43, [3, 4])
    static let versions = Wire.ext(43, [4, 3, 4, 3, 3])
    static let groups = Wire.ext(
        10, Wire.vector([29, 23, 24, 25].flatMap(Wire.short), lengthBytes: 2))
    static let protocols = Wire.ext(16, Wire.vector([2] + Array("h2".utf8), lengthBytes: 2))
    static let encrypted = Wire.ext(
        0xFE0D,
        [0, 0, 1, 0, 1, 9] + Wire.vector([1, 2], lengthBytes: 2) + Wire.vector([3], lengthBytes: 2))
    static let unknown = Wire.ext(0x0A0A, [1])
    static let early = Wire.ext(42, [])
    static let cookie = Wire.ext(44, Wire.vector([5, 6], lengthBytes: 2))

    /// Keys of these groups.
    static func keys(_ groups: [Int]) -> [UInt8] {
        Wire.ext(
            51,
            Wire.vector(
                groups.flatMap { Wire.short($0) + Wire.vector([1, 2, 3], lengthBytes: 2) },
                lengthBytes: 2))
    }

    static func preShared(_ identities: [[UInt8]], age: UInt8 = 0, binder: UInt8 = 1) -> [UInt8] {
        Wire.ext(
            41,
            Wire.vector(
                identities.flatMap { Wire.vector($0, lengthBytes: 2) + [0, 0, 0, age] },
                lengthBytes: 2)
                + Wire.vector(
                    identities.flatMap { _ in
                        Wire.vector([UInt8](repeating: binder, count: 32), lengthBytes: 1)
                    }, lengthBytes: 2))
    }

    /// What is the same in both ClientHellos.
    static let fixed = [
        Wire.name("a.test"), versions, groups, protocols, encrypted, unknown, Wire.ext(35, []),
    ]

    static func body(
        session: [UInt8] = session, suites: [Int] = [0x1301, 0x1302], _ extensions: [[UInt8]]
    ) -> [UInt8] {
        Wire.clientHello(session: session, suites: suites, extensions: extensions)
    }

    static func request(_ extensions: [[UInt8]]) -> [UInt8] {
        Wire.serverHello(
            random: retryRandom, session: session, suite: 0x1301, extensions: [sign] + extensions)
    }

    static let asked = Wire.ext(51, Wire.short(group))

    /// How it goes on after a first ClientHello and what came of the server.
    static func start(
        _ first: [UInt8], _ answer: [UInt8], pieces: Int = 1 << 16, then: [UInt8] = []
    ) throws -> HelloRetry? {
        var flight = ServerFlight(answering: try ClientHello(first))
        let bytes = Wire.handshake(answer) + then
        #expect(try Wire.finding(bytes, &flight, pieces: pieces) == .encrypted)
        return try flight.retry()
    }

    /// What comes of a client's bytes in pieces of a size.
    static func say(
        _ bytes: [UInt8], to retry: inout HelloRetry, pieces: Int = 1 << 16
    ) throws -> HelloRetry.Saying? {
        for start in stride(from: 0, to: bytes.count, by: pieces) {
            let piece = bytes[start..<min(start + pieces, bytes.count)]
            switch try piece.withUnsafeBytes({ try retry.takeFromClient($0) }) {
            case .agrees(let count): return .agrees(count: start + count)
            case .leaves: return .leaves
            case nil: continue
            }
        }
        return nil
    }

    static func answer(
        _ bytes: [UInt8], to retry: inout HelloRetry, pieces: Int = 1 << 16
    ) throws -> HelloRetry.Answer? {
        for start in stride(from: 0, to: bytes.count, by: pieces) {
            let piece = bytes[start..<min(start + pieces, bytes.count)]
            if let found = try piece.withUnsafeBytes({ try retry.takeFromServer($0) }) {
                return found
            }
        }
        return nil
    }

    /// Whether a second ClientHello is taken for the first's, and if not, why.
    static func fault(
        first: [[UInt8]], second: [UInt8], request: [[UInt8]] = [asked]
    ) throws -> TLSWireError? {
        guard var retry = try start(body(first), Self.request(request)) else {
            Issue.record("no request")
            return nil
        }
        do {
            #expect(try say(Wire.handshake(Wire.message(1, second)), to: &retry) != nil)
            #expect(retry.isAgreed)
            return nil
        } catch let error as TLSWireError {
            #expect(!retry.isAgreed)
            return error
        }
    }
}

@Suite("A second ClientHello")
struct SecondHelloTests {
    private static let first = Retry.fixed + [Retry.keys([29])]
    private static let second = Retry.fixed + [Retry.keys([Retry.group])]

    @Test func `may have another key, as the server asked`() throws {
        #expect(try Retry.fault(first: Self.first, second: Retry.body(Self.second)) == nil)
        #expect(
            try Retry.fault(
                first: Retry.fixed + [Retry.keys([])], second: Retry.body(Self.second)) == nil)
    }

    /// Every exception that RFC 8446 §4.1.2 lists.
    @Test func `may lose early data, have a cookie and other padding and keys of sessions`() throws
    {
        let (one, two, three): ([UInt8], [UInt8], [UInt8]) = ([1], [2, 2], [3])
        let keys = Retry.preShared([one, two, three])
        let padding = Wire.ext(21, [UInt8](repeating: 0, count: 40))
        let before = Retry.fixed + [Retry.keys([29]), Retry.early, padding, keys]
        for pads in [[], [Wire.ext(21, [])], [padding]] {
            for after in [
                [], [Retry.preShared([one, two, three], age: 9, binder: 7)],
                [Retry.preShared([one, three])], [Retry.preShared([two])],
            ] {
                let second = Self.second + [Retry.cookie] + pads + after
                #expect(
                    try Retry.fault(
                        first: before, second: Retry.body(second),
                        request: [Retry.asked, Retry.cookie]) == nil)
            }
        }
        // A cookie alone asks for no other key.
        #expect(
            try Retry.fault(
                first: Self.first, second: Retry.body(Self.first + [Retry.cookie]),
                request: [Retry.cookie]) == nil)
    }

    private static func with(_ index: Int, _ other: [UInt8]) -> [[UInt8]] {
        var extensions = second
        extensions[index] = other
        return extensions
    }

    private static let changed: [(second: [UInt8], what: StaticText)] = [
        (Retry.body(with(0, Wire.name("b.test"))), "the server's name"),
        (Retry.body(Array(second.dropFirst())), "the server's name"),
        (Retry.body(session: [7, 7], second), "the session"),
        (Retry.body(session: [], second), "the session"),
        (Retry.body(suites: [0x1301], second), "the cipher suites"),
        (Retry.body(suites: [0x1302, 0x1301], second), "the cipher suites"),
        (Retry.body(suites: [0x1301, 0x1302, 0x1303], second), "the cipher suites"),
        (Retry.body(with(1, Wire.ext(43, [2, 3, 4]))), "the versions"),
        (
            Retry.body(with(2, Wire.ext(10, Wire.vector(Wire.short(24), lengthBytes: 2)))),
            "the groups"
        ),
        (
            Retry.body(
                with(3, Wire.ext(16, Wire.vector([2] + Array("h3".utf8), lengthBytes: 2)))),
            "the protocols (ALPN)"
        ),
        (Retry.body(with(5, Wire.ext(0x0A0A, [2]))), "an extension"),
        (Retry.body(with(6, Wire.ext(35, [1]))), "the session's ticket"),
        (Retry.body(second + [Wire.ext(0x1A1A, [])]), "the list of extensions"),
        (Retry.body(second.filter { $0 != Retry.protocols }), "the list of extensions"),
        (Retry.body(second.filter { $0 != Retry.encrypted }), "the list of extensions"),
        (Retry.body(Array(second.reversed())), "the list of extensions"),
        (Retry.body(first), "the keys, which are not the one asked for"),
        (
            Retry.body(Retry.fixed + [Retry.keys([24, 29])]),
            "the keys, which are not the one asked for"
        ),
        (
            Retry.body(Retry.fixed + [Retry.keys([25])]),
            "the keys, which are not the one asked for"
        ),
        (Retry.body(Retry.fixed + [Retry.keys([])]), "the keys, which are not the one asked for"),
        (Retry.body(second + [Retry.early]), "early data, which may no longer be announced"),
        (Retry.body(second + [Retry.cookie]), "the cookie"),
        (Retry.body(second + [Wire.ext(21, [0, 1])]), "the padding, to what is none"),
        (Retry.body(second + [Retry.preShared([[1]])]), "the pre-shared keys"),
    ]

    @Test func `is the first one otherwise, to the byte`() throws {
        for (second, what) in Self.changed {
            #expect(
                try Retry.fault(first: Self.first, second: second) == .changed(what), "\(what)")
        }
        var random = Retry.body(Self.second)
        random[5] ^= 1
        #expect(
            try Retry.fault(first: Self.first, second: random) == .changed("the random"))
        var version = Retry.body(Self.second)
        version[1] = 2
        #expect(
            try Retry.fault(first: Self.first, second: version) == .changed("the version"))
        let compression = Wire.clientHello(
            session: Retry.session, suites: [0x1301, 0x1302], compression: [0, 1],
            extensions: Self.second)
        #expect(
            try Retry.fault(first: Self.first, second: compression) == .changed("the compression"))
    }

    /// What is in it changes what the client asks for, also where nobody can read it.
    @Test func `has the same encrypted ClientHello, to the byte`() throws {
        for index in 4..<Retry.encrypted.count {
            var other = Retry.encrypted
            other[index] ^= 1
            let second = Retry.body(Self.with(4, other))
            let fault = try Retry.fault(first: Self.first, second: second)
            #expect(fault == .changed("the encrypted ClientHello"), "\(index)")
        }
    }

    @Test func `changes no byte that it may not, wherever that is`() throws {
        let body = Retry.body(Self.second)
        // The key itself is the client's to choose.
        let key = body.count - 3
        for index in body.indices {
            var other = body
            other[index] ^= 0x41
            let fault = try Retry.fault(first: Self.first, second: other)
            #expect((fault == nil) == (index >= key), "\(index): \(String(describing: fault))")
        }
    }

    @Test func `sends back the cookie that the server gave, and no other`() throws {
        let request = [Retry.asked, Retry.cookie]
        let other = Wire.ext(44, Wire.vector([5, 7], lengthBytes: 2))
        for second in [Self.second, Self.second + [other]] {
            #expect(
                try Retry.fault(first: Self.first, second: Retry.body(second), request: request)
                    == .changed("the cookie"))
        }
    }

    @Test func `adds no pre-shared key, nor puts them in another order`() throws {
        let first = Self.first + [Retry.preShared([[1], [2], [3]])]
        for identities: [[UInt8]] in [
            [[4]], [[1], [4]], [[2], [1]], [[1], [1]], [[1], [2], [3], [1]], [[1, 2]],
        ] {
            let second = Retry.body(Self.second + [Retry.preShared(identities)])
            #expect(
                try Retry.fault(first: first, second: second) == .changed("the pre-shared keys"))
        }
        let keys = Retry.preShared([[1]])
        let inFront = Retry.body([keys] + Self.second)
        #expect(
            try Retry.fault(first: first, second: inFront)
                == .malformed("pre-shared keys that are not the last extension"))
        // Without a binder; with one too many; without an identity.
        let binder = Wire.vector([UInt8](repeating: 1, count: 32), lengthBytes: 1)
        let identity = Wire.vector([1], lengthBytes: 2) + [0, 0, 0, 0]
        for (identities, binders) in [
            (identity, []), (identity, binder + binder), ([], []),
            (Wire.vector([], lengthBytes: 2) + [0, 0, 0, 0], binder),
        ] as [([UInt8], [UInt8])] {
            let keys = Wire.ext(
                41,
                Wire.vector(identities, lengthBytes: 2) + Wire.vector(binders, lengthBytes: 2))
            #expect(
                try Retry.fault(first: first, second: Retry.body(Self.second + [keys]))
                    == .malformed("the pre-shared keys of the ClientHello"))
        }
    }

    // MARK: How it comes

    @Test func `is the same however records and bytes are cut`() throws {
        let message = Wire.message(1, Retry.body(Self.second))
        for records in [1, 2, 7, 50, message.count] {
            let bytes = Wire.changeOfCipher + Wire.handshake(message, records: records)
            let stream = bytes + Wire.record(23, [1, 2, 3])
            for pieces in [1, 2, 13, stream.count] {
                var retry = try #require(
                    try Retry.start(Retry.body(Self.first), Retry.request([Retry.asked])))
                #expect(
                    try Retry.say(stream, to: &retry, pieces: pieces)
                        == .agrees(count: bytes.count))
                var other = try #require(
                    try Retry.start(Retry.body(Self.first), Retry.request([Retry.asked])))
                let lie = Wire.handshake(
                    Wire.message(1, Retry.body(Self.with(0, Wire.name("b.test")))),
                    records: records)
                #expect(throws: TLSWireError.changedName) {
                    try Retry.say(lie, to: &other, pieces: pieces)
                }
            }
        }
    }

    @Test func `is not agreed a byte before its end`() throws {
        let stream = Wire.handshake(Wire.message(1, Retry.body(Self.second)))
        var retry = try #require(
            try Retry.start(Retry.body(Self.first), Retry.request([Retry.asked])))
        #expect(try Retry.say(Array(stream.dropLast()), to: &retry, pieces: 1) == nil)
        #expect(!retry.isAgreed)
    }

    private static let hello = Wire.message(1, Retry.body(second))

    private static let wrong: [(bytes: [UInt8], error: TLSWireError)] = [
        // A change of cipher between its fragments: the server would put them together.
        (
            Wire.record(22, Array(hello.prefix(9))) + Wire.changeOfCipher,
            .unexpected("another record within a message")
        ),
        (Wire.handshake(hello, hello), .unexpected("something else than a second ClientHello")),
        (Wire.handshake(Wire.done), .unexpected("something else than a second ClientHello")),
        (Wire.record(23, [1]), .unexpected("encrypted data")),
        (
            (0..<5).flatMap { _ in Wire.changeOfCipher },
            .tooLong("the series of changes of cipher")
        ),
        (Wire.record(20, [2]), .malformed("a change of cipher")),
        (Array("GET / HTTP/1.1".utf8), .notTLS),
    ]

    @Test(arguments: [1, 3, 1 << 16])
    func `is all that the client may say`(pieces: Int) throws {
        for (bytes, error) in Self.wrong {
            var retry = try #require(
                try Retry.start(Retry.body(Self.first), Retry.request([Retry.asked])))
            #expect(throws: error, "\(error)") {
                try Retry.say(bytes, to: &retry, pieces: pieces)
            }
            #expect(!retry.isAgreed)
        }
    }

    @Test func `comes behind early data only where the first announced it`() throws {
        let data = Wire.record(23, [UInt8](repeating: 9, count: 3000))
        let bytes = Wire.changeOfCipher + data + data + Wire.handshake(Self.hello)
        for pieces in [1, 1000, bytes.count] {
            var retry = try #require(
                try Retry.start(
                    Retry.body(Self.first + [Retry.early, Retry.preShared([[1]])]),
                    Retry.request([Retry.asked])))
            #expect(
                try Retry.say(bytes, to: &retry, pieces: pieces) == .agrees(count: bytes.count))
        }
        // As much as is held back.
        var retry = try #require(
            try Retry.start(
                Retry.body(Self.first + [Retry.early, Retry.preShared([[1]])]),
                Retry.request([Retry.asked])))
        let flood = (0..<200).flatMap { _ in data }
        #expect(throws: TLSWireError.tooLong("the handshake")) {
            try Retry.say(flood, to: &retry)
        }
    }

    @Test func `need not come`() throws {
        var retry = try #require(
            try Retry.start(Retry.body(Self.first), Retry.request([Retry.asked])))
        #expect(try Retry.say(Wire.record(21, [2, 47]), to: &retry, pieces: 1) == .leaves)
        #expect(!retry.isAgreed)
    }
}

@Suite("A request for another ClientHello")
struct HelloRetryRequestTests {
    private static let first = Retry.body(Retry.fixed + [Retry.keys([29, 23])])

    private static func group(_ number: Int) -> [UInt8] { Wire.ext(51, Wire.short(number)) }

    private static let wrong: [(extensions: [[UInt8]], error: TLSWireError)] = [
        ([], .unexpected("a request for another ClientHello that asks for no change")),
        // Not offered; sent already.
        ([group(30)], .notOffered("the group")), ([group(29)], .notOffered("the group")),
        ([group(23)], .notOffered("the group")),
        (
            [Wire.ext(51, [0])], .malformed("the group of the request for another ClientHello")
        ),
        (
            [Wire.ext(51, [0, 24, 0])],
            .malformed("the group of the request for another ClientHello")
        ),
        ([Wire.ext(44, [0, 0])], .malformed("the cookie")),
        ([Wire.ext(44, [0, 2, 1])], .malformed("the cookie")),
        (
            [Retry.asked, Wire.ext(0xFE0D, [UInt8](repeating: 1, count: 8))],
            .notOffered("an extension of the request for another ClientHello")
        ),
        (
            [Retry.asked, Wire.ext(16, [])],
            .notOffered("an extension of the request for another ClientHello")
        ),
    ]

    @Test func `asks for what the client has offered, and for a change`() throws {
        for (extensions, error) in Self.wrong {
            #expect(throws: error, "\(extensions)") {
                try Retry.start(Self.first, Retry.request(extensions))
            }
        }
    }

    @Test func `is none where the server says that it goes on`() throws {
        let hello = Wire.serverHello(
            session: Retry.session, suite: 0x1301, extensions: [Retry.sign])
        #expect(try Retry.start(Self.first, hello) == nil)
    }

    @Test func `is none for a client of TLS 1_2, or of another session`() throws {
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
        #expect(throws: TLSWireError.unexpected("more than a request for another ClientHello")) {
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
                TLSWireError.unexpected("a second request for another ClientHello")
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
