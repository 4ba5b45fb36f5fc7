import Notation

/// The keys of the dictionaries that are open, so that one that comes twice is seen.
struct KeySets {
    private struct Key {
        var start: Int
        var count: Int
    }

    /// The dictionary's first key, and, where it has many, a table of them by their hash: 1 more
    /// than the key's place, or 0.
    private struct Level {
        var first: Int
        var table: [UInt32] = []
    }

    private var bytes: [UInt8] = []
    private var keys: [Key] = []
    private var levels: [Level] = []
    private static let walked = 12

    mutating func begin() { levels.append(Level(first: keys.count)) }

    mutating func end() {
        guard let level = levels.popLast(), level.first < keys.count else { return }
        bytes.removeLast(bytes.count - keys[level.first].start)
        keys.removeLast(keys.count - level.first)
    }

    /// Adds a key of the innermost dictionary. Returns whether it is new.
    mutating func insert(_ key: UnsafeRawBufferPointer) -> Bool {
        guard let last = levels.indices.last else { return true }
        let first = levels[last].first
        let count = keys.count - first
        if count < Self.walked {
            for other in keys[first...] where isSame(other, key) { return false }
            append(key)
            return true
        }
        if count * 2 >= levels[last].table.count { rehash(last) }
        let slot = slot(of: key, in: levels[last])
        guard levels[last].table[slot] == 0 else { return false }
        append(key)
        levels[last].table[slot] = UInt32(keys.count - first)
        return true
    }

    private mutating func append(_ key: UnsafeRawBufferPointer) {
        keys.append(Key(start: bytes.count, count: key.count))
        bytes.append(contentsOf: key)
    }

    private func isSame(_ key: Key, _ other: UnsafeRawBufferPointer) -> Bool {
        guard key.count == other.count else { return false }
        return bytes.withUnsafeBytes {
            UnsafeRawBufferPointer(rebasing: $0[key.start..<key.start + key.count])
                .hasSameBytes(as: other)
        }
    }

    /// Where a key is in a table, or its free place there.
    private func slot(of key: UnsafeRawBufferPointer, in level: Level) -> Int {
        var hasher = Hasher()
        hasher.combine(bytes: key)
        var slot = hasher.finalize() & (level.table.count - 1)
        while level.table[slot] != 0,
            !isSame(keys[level.first + Int(level.table[slot]) - 1], key)
        { slot = (slot + 1) & (level.table.count - 1) }
        return slot
    }

    private mutating func rehash(_ index: Int) {
        var level = levels[index]
        level.table = [UInt32](repeating: 0, count: max(64, level.table.count * 2))
        for place in level.first..<keys.count {
            let key = keys[place]
            let slot = bytes.withUnsafeBytes { bytes in
                self.slot(
                    of: UnsafeRawBufferPointer(rebasing: bytes[key.start..<key.start + key.count]),
                    in: level)
            }
            level.table[slot] = UInt32(place - level.first + 1)
        }
        levels[index] = level
    }
}
