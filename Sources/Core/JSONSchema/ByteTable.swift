/// Assigns numbers from 0 on to texts, and looks them up.
struct ByteTable: Sendable {
    private(set) var texts: [[UInt8]] = []
    /// The last text with each hash, and for each text the previous one with the same hash.
    private var last: [Int: Int] = [:]
    private var before: [Int] = []

    var count: Int { texts.count }

    /// The number of a text, which is added if it is new.
    mutating func insert(_ text: [UInt8]) -> Int {
        if let found = text.withUnsafeBytes({ find($0) }) { return found }
        let hash = text.withUnsafeBytes { Self.hash($0) }
        before.append(last.updateValue(texts.count, forKey: hash) ?? -1)
        texts.append(text)
        return texts.count - 1
    }

    /// The number of a text that was added.
    func find(_ text: UnsafeRawBufferPointer) -> Int? {
        var candidate = last[Self.hash(text)] ?? -1
        while candidate >= 0 {
            if texts[candidate].elementsEqual(text) { return candidate }
            candidate = before[candidate]
        }
        return nil
    }

    /// Seeded differently in each process, so that nobody can choose texts that collide.
    static func hash(_ text: UnsafeRawBufferPointer) -> Int {
        var hasher = Hasher()
        hasher.combine(bytes: text)
        return hasher.finalize()
    }
}
