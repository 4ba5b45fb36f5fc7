import Testing

@testable import Trust

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
        // A cookie alone does not ask for another key share.
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
        (Retry.body(with(0, Wire.name("b.test"))), "the server name"),
        (Retry.body(Array(second.dropFirst())), "the server name"),
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
        (Retry.body(with(6, Wire.ext(35, [1]))), "the session ticket"),
        (Retry.body(second + [Wire.ext(0x1A1A, [])]), "the list of extensions"),
        (Retry.body(second.filter { $0 != Retry.protocols }), "the list of extensions"),
        (Retry.body(second.filter { $0 != Retry.encrypted }), "the list of extensions"),
        (Retry.body(Array(second.reversed())), "the list of extensions"),
        (Retry.body(first), "the key shares, which are not the one requested"),
        (
            Retry.body(Retry.fixed + [Retry.keys([24, 29])]),
            "the key shares, which are not the one requested"
        ),
        (
            Retry.body(Retry.fixed + [Retry.keys([25])]),
            "the key shares, which are not the one requested"
        ),
        (
            Retry.body(Retry.fixed + [Retry.keys([])]),
            "the key shares, which are not the one requested"
        ),
        (Retry.body(second + [Retry.early]), "early data, which must no longer be announced"),
        (Retry.body(second + [Retry.cookie]), "the cookie"),
        (Retry.body(second + [Wire.ext(21, [0, 1])]), "the padding, to invalid padding"),
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

    /// Its contents change what the client asks for, even if no server can read them.
    @Test func `has the same encrypted ClientHello, to the byte`() throws {
        for index in 4..<Retry.encrypted.count {
            var other = Retry.encrypted
            other[index] ^= 1
            let second = Retry.body(Self.with(4, other))
            let fault = try Retry.fault(first: Self.first, second: second)
            #expect(fault == .changed("the encrypted ClientHello"), "\(index)")
        }
    }

    /// RFC 9849 §6.1.5: the second is encrypted again, with the key of the first, which is not sent
    /// again.
    @Test func `may be encrypted anew where the server reads none`() throws {
        func encrypted(
            _ payload: [UInt8], key: [UInt8] = [], head: [UInt8] = [0, 0, 1, 0, 1, 9]
        ) -> [UInt8] {
            Wire.ext(
                0xFE0D,
                head + Wire.vector(key, lengthBytes: 2) + Wire.vector(payload, lengthBytes: 2))
        }
        func fault(
            _ other: [UInt8], first: [[UInt8]] = Self.first, reads: Bool = false
        ) throws -> TLSWireError? {
            try Retry.fault(
                first: first, second: Retry.body(Self.with(4, other)), readsEncryptedHello: reads)
        }
        for payload: [UInt8] in [[3], [4], [4, 5, 6]] {
            #expect(try fault(encrypted(payload)) == nil)
            #expect(
                try fault(encrypted(payload), reads: true) == .changed("the encrypted ClientHello")
            )
        }
        #expect(try fault(Retry.encrypted, reads: true) == nil)
        for other in [
            // Another suite, configuration, form; a key; no payload; data after its fields.
            encrypted([4], head: [0, 0, 2, 0, 1, 9]), encrypted([4], head: [0, 0, 1, 0, 2, 9]),
            encrypted([4], head: [0, 0, 1, 0, 1, 8]), encrypted([4], head: [1, 0, 1, 0, 1, 9]),
            encrypted([4], key: [1, 2]), encrypted([3], key: [1]), encrypted([]),
            Wire.ext(0xFE0D, [1]), Wire.ext(0xFE0D, []),
            Wire.ext(0xFE0D, [0, 0, 1, 0, 1, 9, 0, 0, 0, 1, 4, 0]),
        ] {
            #expect(try fault(other) == .changed("the encrypted ClientHello"), "\(other)")
        }
        // A first one without a key (an empty `enc`) cannot be a real one.
        var keyless = Self.first
        keyless[4] = encrypted([3])
        #expect(
            try fault(encrypted([4]), first: keyless) == .changed("the encrypted ClientHello"))
    }

    @Test func `changes no byte that it may not, wherever that is`() throws {
        let body = Retry.body(Self.second)
        // The client may choose any key.
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
        // A ChangeCipherSpec between its fragments: the server would reassemble them.
        (
            Wire.record(22, Array(hello.prefix(9))) + Wire.changeOfCipher,
            .unexpected("another record within a message")
        ),
        (Wire.handshake(hello, hello), .unexpected("something other than a second ClientHello")),
        (Wire.handshake(Wire.done), .unexpected("something other than a second ClientHello")),
        (Wire.record(23, [1]), .unexpected("encrypted data")),
        (
            (0..<5).flatMap { _ in Wire.changeOfCipher },
            .tooLong("the series of ChangeCipherSpecs")
        ),
        (Wire.record(20, [2]), .malformed("a ChangeCipherSpec")),
        (Array("GET / HTTP/1.1".utf8), .notTLS),
    ]

    @Test(arguments: [1, 3, 1 << 16])
    func `is all that the client may send`(pieces: Int) throws {
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
        // As much as is buffered.
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
