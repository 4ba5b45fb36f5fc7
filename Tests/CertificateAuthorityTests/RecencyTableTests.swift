import Testing

@testable import CertificateAuthority

@Suite("A table of the most recently used") struct RecencyTableTests {
    /// The same by lists.
    private struct Model {
        var entries: [(key: Int, value: Int)] = []
        var limit: Int

        mutating func use(_ key: Int) -> Int? {
            guard let index = entries.firstIndex(where: { $0.key == key }) else { return nil }
            let entry = entries.remove(at: index)
            entries.append(entry)
            return entry.value
        }

        mutating func set(_ value: Int, for key: Int) {
            entries.removeAll { $0.key == key }
            entries.append((key, value))
            setLimit(limit)
        }

        mutating func setLimit(_ limit: Int) {
            self.limit = max(1, limit)
            entries.removeFirst(max(0, entries.count - self.limit))
        }
    }

    @Test(arguments: 0..<50)
    func `does what lists do`(seed: Int) {
        var state = UInt64(seed) &* 0x9E37_79B9_7F4A_7C15 | 1
        func random(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % bound
        }
        var model = Model(limit: 5)
        var table = RecencyTable<Int, Int>(limit: 5)
        for step in 0..<2000 {
            let key = random(12)
            switch random(8) {
            case 0...2:
                model.set(step, for: key)
                table.set(step, for: key)
            case 3:
                model.entries.removeAll { $0.key == key }
                table.remove(key)
            case 4 where random(10) == 0:
                let limit = random(9)
                model.setLimit(limit)
                table.setLimit(limit)
            default:
                let (expected, found) = (model.use(key), table.use(key))
                #expect(found == expected)
            }
            #expect(table.count == model.entries.count)
            #expect(table.limit == model.limit)
        }
        for key in 0..<12 {
            let (expected, found) = (model.use(key), table.use(key))
            #expect(found == expected)
        }
    }
}
