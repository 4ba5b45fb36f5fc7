import Testing

@testable import AccessPolicy

@Suite("The hashes of names")
struct NameHashTests {
    /// The vectors of the reference implementation (`vectors_sip128`): the key is 0, 1, … 15, the
    /// message 0, 1, …
    @Test(
        arguments: [
            (0, "a3817f04ba25a8e66df67214c7550293"), (1, "da87c1d86b99af44347659119b22fc45"),
            (2, "8177228da4a45dc7fca38bdef60affe4"), (7, "a1f1ebbed8dbc153c0b84aa61ff08239"),
            (8, "3b62a9ba6258f5610f83e264f31497b4"), (15, "5493e99933b0a8117e08ec0f97cfc3d9"),
        ])
    func `are those of SipHash with 128 bits`(count: Int, hash: String) {
        let key = DomainListKey(
            first: 0x0706_0504_0302_0100, second: 0x0f0e_0d0c_0b0a_0908)
        // A name is hashed from its end, in words of eight bytes.
        let message = (0..<count).map { UInt8($0) }
        let name = Array(message.dropFirst(8)) + Array(message.prefix(8))
        let ordered = count < 8 ? message : name
        let found = ordered.withUnsafeBytes { NameHasher.hash($0, from: 0, key) }
        #expect(Self.hexadecimal(found) == hash)
    }

    private static func hexadecimal(_ hash: NameHash) -> String {
        [hash.high, hash.low].map { word in
            (0..<8).map { index in
                let byte = UInt8(truncatingIfNeeded: word >> UInt64(8 * index))
                return (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }.joined()
        }.joined()
    }

    @Test func `of the end of a name are those of the name that it is`() {
        let host = Array("x.WWW.Example-long-name.test".utf8)
        for start in host.indices {
            let rest = Array(String(decoding: host[start...], as: UTF8.self).lowercased().utf8)
            let end = host.withUnsafeBytes { NameHasher.hash($0, from: start, .fixed) }
            let own = rest.withUnsafeBytes { NameHasher.hash($0, from: 0, .fixed) }
            #expect(end == own)
        }
    }

    @Test func `ignore the case of ASCII letters and of no other byte`() {
        for byte in UInt8.min...UInt8.max {
            let word = NameWord(value: UInt64(byte) &* 0x0101_0101_0101_0101)
            let isUppercase = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
            let lowercase = isUppercase ? byte + 32 : byte
            #expect(word.lowercased.value == UInt64(lowercase) &* 0x0101_0101_0101_0101)
            #expect(word.dots == (byte == UInt8(ascii: ".") ? 0x8080_8080_8080_8080 : 0))
        }
    }

    @Test func `find exactly the dots of a word`() {
        var numbers = Numbers(state: 5)
        for _ in 0..<2000 {
            let bytes = (0..<8).map { _ in
                ([0x2D, 0x2E, 0x2F, 0xAE, 0x00] as [UInt8]).randomElement(using: &numbers) ?? 0
            }
            let word = bytes.withUnsafeBytes { NameWord.load($0, at: 0) }
            let dots = bytes.indices.reduce(0 as UInt64) { found, index in
                bytes[index] == 0x2E ? found | 0x80 << UInt64(8 * index) : found
            }
            #expect(word.dots == dots)
        }
    }
}

@Suite("The parts of a set of names")
struct NameSetTests {
    @Test func `a filter never denies what it was given, and rarely admits anything else`() {
        var numbers = Numbers(state: 6)
        for (expected, count) in [(0, 1000), (1000, 1000), (100_000, 1000), (10, 0)] {
            var filter = NameFilter(names: expected)
            let names = (0..<count).map { _ in numbers.next() }
            for name in names { filter.insert(name) }
            filter.fit(names: count)
            #expect(names.allSatisfy { filter.mayContain($0) })
            guard count > 0, expected >= count else { continue }
            let admitted = (0..<10_000).count { _ in filter.mayContain(numbers.next()) }
            #expect(admitted < 500, "\(expected)")
        }
    }

    @Test func `the union of two filters admits the names of both`() {
        var numbers = Numbers(state: 7)
        let names = (0..<200).map { _ in numbers.next() }
        for cut in [0, 100, 200] {
            var (left, right) = (NameFilter(names: 200), NameFilter(names: 200))
            for name in names[..<cut] { left.insert(name) }
            for name in names[cut...] { right.insert(name) }
            left.formUnion(right)
            #expect(names.allSatisfy { left.mayContain($0) })
        }
    }

    @Test func `depths are from 1 to 127`() {
        var depths = DepthSet()
        #expect(depths.maximum == 0)
        for depth in [1, 2, 63, 64, 65, 127] {
            #expect(!depths.contains(depth))
            depths.insert(depth)
            #expect(depths.contains(depth) && depths.maximum == depth)
        }
        #expect((0...127).filter { depths.contains($0) }.count == 6)
        var other = DepthSet()
        other.insert(3)
        other.formUnion(depths)
        #expect((0...127).filter { other.contains($0) }.count == 7)
    }

    @Test func `hashes that are nearly alike are told apart`() {
        var set = NameSet(expecting: 0)
        let near = (0..<200).map { NameHash(high: .max - UInt64($0 / 3), low: UInt64($0 % 3)) }
        for hash in near.shuffled() + near { set.insert(hash, 0, depth: 1) }
        set.seal(pausing: {})
        #expect(set.count == 200)
        #expect(near.allSatisfy { set.contains($0) })
        #expect(!set.contains(NameHash(high: .max, low: 3)))
        #expect(!set.contains(NameHash(high: .max - 67, low: 0)))
        #expect(!set.contains(NameHash(high: 0, low: 0)))
    }
}
