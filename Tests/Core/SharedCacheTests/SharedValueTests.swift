import CachePolicy
import TestSupport
import Testing

@testable import SharedCache

@Suite("Responses in the engine")
struct SharedValueTests {
    private let body = Array("the body".utf8)

    private func stored(
        _ draft: SharedValueDraft = Sample.draft(), by keyring: SharedKeyring
    ) throws -> [UInt8] {
        let record = body.withUnsafeBytes {
            draft.record(body: $0, under: Sample.name, by: keyring)
        }
        return try #require(record) + body
    }

    @Test func `are read as they were written`() throws {
        let keyring = try Sample.keyring(1)
        for since in [nil, 1234] as [Int64?] {
            let bytes = try stored(Sample.draft(staleSince: since), by: keyring)
            let value = try Sample.value(bytes, by: keyring)
            #expect(value.times == Sample.times)
            #expect(value.trust == Sample.trust)
            #expect(value.instance == Sample.token(1))
            #expect(value.born == Sample.position(7))
            #expect(value.staleSince == since)
            #expect(Array(bytes[value.head]) == Sample.head)
            #expect(value.vary.isEmpty)
            #expect(value.recordCount == bytes.count - body.count)
            #expect(try Sample.use(bytes, by: keyring) == body)
        }
    }

    @Test func `may have no body`() throws {
        let keyring = try Sample.keyring(1)
        let none: [UInt8] = []
        let record = none.withUnsafeBytes {
            Sample.draft().record(body: $0, under: Sample.name, by: keyring)
        }
        #expect(try Sample.use(try #require(record), by: keyring) == [])
    }

    @Test func `are refused with any bit changed`() throws {
        let keyring = try Sample.keyring(1)
        let good = try stored(by: keyring)
        for place in good.indices {
            for bit in 0..<8 {
                var bytes = good
                bytes[place] ^= 1 << bit
                #expect(throws: SharedRecordError.self, "\(place) \(bit)") {
                    try Sample.use(bytes, by: keyring)
                }
            }
        }
    }

    @Test func `are refused if they are cut, or longer`() throws {
        let keyring = try Sample.keyring(1)
        let good = try stored(by: keyring)
        for count in 0..<good.count {
            #expect(throws: SharedRecordError.self, "\(count)") {
                try Sample.use(Array(good[..<count]), by: keyring)
            }
        }
        #expect(throws: SharedRecordError.wrongLength) {
            try Sample.use(good + [0], by: keyring)
        }
    }

    @Test func `are verified before their bodies have arrived`() throws {
        let keyring = try Sample.keyring(1)
        let good = try stored(by: keyring)
        let value = try Sample.value(Array(good.dropLast(body.count)), by: keyring)
        #expect(throws: SharedRecordError.wrongLength) {
            try good.dropLast().withUnsafeBytes { [UInt8](try value.inlineBody($0)) }
        }
        #expect(try good.withUnsafeBytes { [UInt8](try value.inlineBody($0)) } == body)
    }

    @Test func `are not those of another key or variant`() throws {
        let keyring = try Sample.keyring(1)
        let bytes = try stored(by: keyring)
        for key in [Sample.key + [0x62], Array(Sample.key.dropLast()), []] {
            #expect(throws: SharedRecordError.otherKey) {
                try Sample.value(bytes, of: key, by: keyring)
            }
        }
        let other = try #require(SharedName.variant(.none, trust: Sample.trust ^ 1))
        #expect(throws: SharedRecordError.otherKey) {
            try Sample.value(bytes, variant: other, by: keyring)
        }
        // A name that nominates nothing that is there.
        let vary = try #require(VaryKey(bytes: [1, 1, 0x61, 0]))
        let varying = try stored(Sample.draft(vary: vary), by: keyring)
        #expect(throws: SharedRecordError.otherKey) { try Sample.value(varying, by: keyring) }
        let value = try Sample.value(varying, variant: try Sample.variant(vary), by: keyring)
        #expect(Array(varying[value.vary]) == vary.bytes)
    }

    @Test func `keep their bodies when their heads are replaced`() throws {
        let keyring = try Sample.keyring(1)
        let old = try Sample.value(try stored(by: keyring), by: keyring)
        var draft = Sample.draft()
        draft.head = Array("HTTP/1.1 200 OK\r\nDate: y\r\n".utf8)
        let record = try #require(draft.record(old.body, under: Sample.name, by: keyring))
        let value = try Sample.value(record + body, by: keyring)
        #expect(Array((record + body)[value.head]) == draft.head)
        #expect(try Sample.use(record + body, by: keyring) == body)
    }

    @Test func `are not written if they are too long`() throws {
        let keyring = try Sample.keyring(1)
        let room = SharedValue.maximumTextBytes - Sample.key.count
        var draft = Sample.draft()
        draft.head = [UInt8](repeating: 0x61, count: room)
        let longest = try stored(draft, by: keyring)
        #expect(try Sample.use(longest, by: keyring) == body)
        draft.head.append(0x61)
        #expect(
            body.withUnsafeBytes {
                draft.record(body: $0, under: Sample.name, by: keyring)
            } == nil)
        draft.head = []
        #expect(
            body.withUnsafeBytes {
                draft.record(body: $0, under: Sample.name, by: keyring)
            } == nil)
    }

    @Test func `are malformed without a field that they need, or with two bodies`() throws {
        let keyring = try Sample.keyring(1)
        let position = Sample.position(7).bytes
        let digest = [UInt8](repeating: 0, count: 40)
        let chunks = try #require(
            SharedChunks(body: Sample.token(2), chunkBytes: 4096, count: 5000)
        ).bytes
        let all: [(SharedField, [UInt8])] = [
            (.key, Sample.key), (.varyKey, []), (.times, [UInt8](repeating: 0, count: 24)),
            (.trust, SharedBytes.number(Sample.trust)), (.head, Sample.head),
            (.instance, Sample.token(1).bytes), (.born, position), (.body, digest),
        ]
        func error(_ fields: [(SharedField, [UInt8])]) throws -> SharedRecordError? {
            let record = SharedRecord.write(.value, fields, under: Sample.name, by: keyring)
            do {
                _ = try Sample.value(try #require(record), by: keyring)
                return nil
            } catch let error as SharedRecordError {
                return error
            }
        }
        #expect(try error(all) == nil)
        for index in all.indices {
            var fields = all
            fields.remove(at: index)
            #expect(try error(fields) == .malformed, "\(all[index].0)")
            // Longer than it is.
            guard index > 1, all[index].0 != .head else { continue }
            fields = all
            fields[index].1.append(0)
            #expect(try error(fields) == .malformed, "\(all[index].0)")
        }
        #expect(try error(all + [(.chunks, chunks)]) == .malformed)
        #expect(try error(all.dropLast() + [(.chunks, chunks)]) == nil)
        let zeros = [UInt8](repeating: 0, count: 28)
        #expect(try error(all.dropLast() + [(.chunks, zeros)]) == .malformed)
        #expect(try error(all + [(.staleSince, [1])]) == .malformed)
        var fields = all
        fields[1].1 = [9]
        #expect(try error(fields) == .otherKey)
        fields = all
        fields[4].1 = []
        #expect(try error(fields) == .malformed)
    }
}

@Suite("Large bodies in the engine")
struct SharedChunksTests {
    @Test func `are in chunks of one size, but for the last`() throws {
        for (count, sizes) in [
            (1, [1]), (4095, [4095]), (4096, [4096]), (4097, [4096, 1]),
            (10_000, [4096, 4096, 1808]),
        ] as [(UInt64, [Int])] {
            let chunks = try #require(
                SharedChunks(body: Sample.token(1), chunkBytes: 4096, count: count))
            #expect(Int(chunks.chunkCount) == sizes.count)
            #expect((0..<chunks.chunkCount).map { chunks.count(of: $0) } == sizes)
            let bytes = chunks.bytes
            #expect(bytes.withUnsafeBytes { SharedChunks($0) } == chunks)
        }
    }

    @Test func `are bounded`() {
        func make(_ size: UInt32, _ count: UInt64) -> SharedChunks? {
            SharedChunks(body: Sample.token(1), chunkBytes: size, count: count)
        }
        #expect(make(4095, 1) == nil)
        #expect(make((1 << 20) + 1, 1) == nil)
        #expect(make(4096, 0) == nil)
        #expect(make(4096, 4096 << 16) != nil)
        #expect(make(4096, (4096 << 16) + 1) == nil)
        #expect(make(4096, .max) == nil)
        #expect(make(0, 0) == nil)
    }

    @Test func `are verified chunk by chunk`() throws {
        let keyring = try Sample.keyring(1)
        let content = [UInt8](repeating: 7, count: 5000)
        let chunks = try #require(
            SharedChunks(body: Sample.token(1), chunkBytes: 4096, count: 5000))
        let names = [Array("n0".utf8), Array("n1".utf8)]
        let pieces = [Array(content[..<4096]), Array(content[4096...])]
        let stored = try (0..<2).map { index in
            try #require(
                pieces[index].withUnsafeBytes {
                    SharedChunks.record(
                        of: $0, UInt32(index), of: chunks.body, under: names[index], by: keyring)
                }) + pieces[index]
        }
        func read(
            _ bytes: [UInt8], _ number: UInt32, under name: [UInt8],
            of chunks: SharedChunks = chunks
        ) throws -> [UInt8] {
            try bytes.withUnsafeBytes {
                [UInt8](try chunks.chunk(number, $0, under: name, by: keyring))
            }
        }
        for index in 0..<2 {
            #expect(try read(stored[index], UInt32(index), under: names[index]) == pieces[index])
        }
        #expect(throws: SharedRecordError.wrongCode) {
            try read(stored[0], 1, under: names[1])
        }
        #expect(throws: SharedRecordError.otherKey) { try read(stored[0], 1, under: names[0]) }
        let other = try #require(
            SharedChunks(body: Sample.token(2), chunkBytes: 4096, count: 5000))
        #expect(throws: SharedRecordError.otherKey) {
            try read(stored[0], 0, under: names[0], of: other)
        }
        // The same chunk of a body that is longer, or ends before it.
        let longer = try #require(
            SharedChunks(body: Sample.token(1), chunkBytes: 4096, count: 5001))
        #expect(throws: SharedRecordError.wrongLength) {
            try read(stored[1], 1, under: names[1], of: longer)
        }
        let shorter = try #require(
            SharedChunks(body: Sample.token(1), chunkBytes: 4096, count: 4096))
        #expect(throws: SharedRecordError.wrongLength) {
            try read(stored[1], 1, under: names[1], of: shorter)
        }
        for place in stored[1].indices {
            var bytes = stored[1]
            bytes[place] ^= 1
            #expect(throws: SharedRecordError.self) { try read(bytes, 1, under: names[1]) }
            #expect(throws: SharedRecordError.self) {
                try read(Array(stored[1][..<place]), 1, under: names[1])
            }
        }
    }
}

@Suite("What there is of a key in the engine")
struct SharedIndexTests {
    /// A script of the engine compares these bytes.
    @Test func `has its instance always at the same place`() throws {
        let keyring = try Sample.keyring(1)
        let index = SharedIndex(instance: Sample.token(5))
        let record = try #require(index.record(under: Sample.name, by: keyring))
        #expect(Array(record[22..<38]) == Sample.token(5).bytes)
    }

    /// Gateways of earlier versions write lists of names, and later ones may leave the field out.
    @Test func `is read whatever names it has`() throws {
        let keyring = try Sample.keyring(1)
        let instance = (SharedField.instance.rawValue, Sample.token(5).bytes)
        let names = SharedField.varyNames.rawValue
        let contents: [[(UInt16, [UInt8])]] = [
            [instance], [instance, (names, [])], [instance, (names, [1, 0, 0, 0, 7])],
        ]
        for fields in contents {
            let bytes = try #require(
                SharedRecord.write(.index, numbered: fields, under: Sample.name, by: keyring))
            let index = try bytes.withUnsafeBytes {
                try SharedIndex($0, under: Sample.name, by: keyring)
            }
            #expect(index.instance == Sample.token(5))
        }
    }
}

@Suite("Tokens in the engine")
struct SharedTokenTests {
    @Test func `are 16 bytes, the lowest of each number first`() {
        let token = SharedToken(random: (0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908))
        #expect(token.bytes == Array(0..<16))
        #expect(token.low == 0x0706_0504_0302_0100)
        #expect(token.bytes.withUnsafeBytes { SharedToken($0) } == token)
        // From where no number would be.
        let bytes = [0xFF] + token.bytes
        #expect(
            bytes.withUnsafeBytes { SharedToken(UnsafeRawBufferPointer(rebasing: $0[1...])) }
                == token)
    }

    @Test func `of two are combined byte by byte`() {
        let (one, other) = (Sample.token(0x0123_4567), Sample.token(0x89AB_CDEF << 30))
        #expect((one ^ other).bytes == zip(one.bytes, other.bytes).map { $0 ^ $1 })
        #expect(one ^ other == other ^ one)
        #expect(one ^ other ^ other == one)
    }
}

@Suite("Names in the engine")
struct SharedNameTests {
    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test func `have what belongs to one key in one slot`() throws {
        let names = try #require(SharedName(prefix: Array("p:".utf8)))
        let digest = try #require(Sample.key.withUnsafeBytes { SharedName.digest(of: $0) })
        #expect(digest.count == 32)
        let all = [
            names.index(digest), names.value(digest, variant: try Sample.variant()),
            names.chunk(digest, body: Sample.token(1), 7), names.lease(digest),
        ]
        for name in all {
            #expect(text(name).hasPrefix("p:1:"))
            #expect(text(name).dropFirst(6).hasPrefix("{\(text(digest))}"))
        }
        #expect(Set(all).count == all.count)
        #expect(try Sample.variant().count == 16)
    }

    /// Gateways of all versions have to find the same: computed by Python's hashlib.
    @Test func `have the digests that another program computes`() throws {
        let digest = try #require(Sample.key.withUnsafeBytes { SharedName.digest(of: $0) })
        #expect(text(digest) == "de8aaf5bd7897853547daeadfb8c5df3")
        let vary = try #require(VaryKey(bytes: [1, 1, 0x61, 0]))
        #expect(text(try Sample.variant()) == "4c8da4af2902dcbe")
        #expect(text(try Sample.variant(vary)) == "9fef8ae4e7f7ad49")
    }

    @Test func `of a variant are no other's`() throws {
        let vary = try #require(VaryKey(bytes: [1, 1, 0x61, 0]))
        func isVariant(_ text: [UInt8], of vary: VaryKey, _ trust: UInt64 = Sample.trust) -> Bool {
            vary.bytes.withUnsafeBytes { SharedName.isVariant(text, $0, trust: trust) }
        }
        let field = try Sample.variant(vary)
        #expect(isVariant(field, of: vary))
        #expect(!isVariant(field, of: .none))
        #expect(!isVariant(field, of: vary, Sample.trust ^ 1))
        #expect(!isVariant(Array(field.dropLast()), of: vary))
        #expect(!isVariant(field + [0x30], of: vary))
        #expect(!isVariant([], of: vary))
        for place in field.indices {
            var other = field
            other[place] ^= 1
            #expect(!isVariant(other, of: vary), "\(place)")
        }
    }

    @Test func `are different for different keys, variants and trust`() throws {
        var digests: Set<[UInt8]> = []
        for number in 0..<1000 {
            let key = Array("https://example.com/\(number)".utf8)
            digests.insert(try #require(key.withUnsafeBytes { SharedName.digest(of: $0) }))
        }
        #expect(digests.count == 1000)
        let vary = try #require(VaryKey(bytes: [1, 1, 0x61, 0]))
        let variants = [
            SharedName.variant(.none, trust: 1), SharedName.variant(.none, trust: 2),
            SharedName.variant(vary, trust: 1),
        ]
        #expect(Set(variants).count == 3)
    }

    @Test func `of the fleet are in one slot, and different`() throws {
        let names = try #require(SharedName(prefix: []))
        let all = [
            names.stream, names.removed, names.members, names.policy, names.policyVersion,
            names.generation(run: []), names.generation(run: [1]),
        ]
        #expect(Set(all).count == all.count)
        for name in all { #expect(text(name).hasPrefix("1:p:{fleet}:")) }
    }

    @Test func `have a prefix without braces`() {
        #expect(SharedName(prefix: Array("a{b".utf8)) == nil)
        #expect(SharedName(prefix: Array("a}b".utf8)) == nil)
        #expect(SharedName(prefix: [UInt8](repeating: 0x61, count: 64)) != nil)
        #expect(SharedName(prefix: [UInt8](repeating: 0x61, count: 65)) == nil)
    }
}
