import HTTPCore

/// The keys of the open dictionaries, for detecting duplicates.
struct KeySets {
    private struct Key {
        var start: Int
        var count: Int
        /// Its last bytes, at most eight: they distinguish most keys.
        var tail: UInt64
    }

    /// The dictionary's first key and, if it has many, a hash table of them: 1 plus the index of
    /// the key, or 0.
    private struct Level {
        var first: Int
        var table: [UInt32] = []
    }

    private var bytes = OutputBytes(capacity: 64)
    private var keys: [Key] = []
    private var levels: [Level] = []
    private static let walked = 12

    mutating func begin() { levels.append(Level(first: keys.count)) }

    mutating func end() {
        guard let level = levels.popLast(), level.first < keys.count else { return }
        bytes.cut(to: keys[level.first].start)
        keys.removeLast(keys.count - level.first)
    }

    /// Adds a key to the innermost dictionary. Returns whether it is new.
    mutating func insert(_ key: borrowing OutputBytes) -> Bool {
        key.withBytes { insert($0) }
    }

    /// Adds a key to the innermost dictionary. Returns whether it is new.
    mutating func insert(_ key: UnsafeRawBufferPointer) -> Bool {
        guard let last = levels.indices.last else { return true }
        let first = levels[last].first
        let tail = Self.tail(of: key)
        if keys.count - first < Self.walked {
            if walk(from: first, key, tail) { return false }
            append(key, tail)
            return true
        }
        if (keys.count - first) * 2 >= levels[last].table.count { rehash(last) }
        let slot = slot(of: key, tail, in: levels[last])
        guard levels[last].table[slot] == 0 else { return false }
        append(key, tail)
        levels[last].table[slot] = UInt32(keys.count - first)
        return true
    }

    private static func tail(of key: UnsafeRawBufferPointer) -> UInt64 {
        guard key.count < 8 else {
            return key.loadUnaligned(fromByteOffset: key.count - 8, as: UInt64.self)
        }
        var tail: UInt64 = 0
        for byte in key { tail = tail << 8 | UInt64(byte) }
        return tail
    }

    /// Whether a key is among those from an index on.
    private func walk(from first: Int, _ key: UnsafeRawBufferPointer, _ tail: UInt64) -> Bool {
        keys.withUnsafeBufferPointer { keys in
            for index in first..<keys.count where isSame(keys[index], key, tail) { return true }
            return false
        }
    }

    private mutating func append(_ key: UnsafeRawBufferPointer, _ tail: UInt64) {
        keys.append(Key(start: bytes.count, count: key.count, tail: tail))
        bytes.append(key)
    }

    private func isSame(
        _ key: Key, _ other: UnsafeRawBufferPointer, _ tail: UInt64
    ) -> Bool {
        guard key.count == other.count, key.tail == tail else { return false }
        guard key.count > 8 else { return true }
        return bytes.withBytes {
            UnsafeRawBufferPointer(rebasing: $0[key.start..<key.start + key.count])
                .hasSameBytes(as: other)
        }
    }

    /// The slot of a key in a table, or a free slot for it.
    private func slot(
        of key: UnsafeRawBufferPointer, _ tail: UInt64, in level: Level
    ) -> Int {
        var hasher = Hasher()
        hasher.combine(bytes: key)
        var slot = hasher.finalize() & (level.table.count - 1)
        while level.table[slot] != 0,
            !isSame(keys[level.first + Int(level.table[slot]) - 1], key, tail)
        { slot = (slot + 1) & (level.table.count - 1) }
        return slot
    }

    private mutating func rehash(_ index: Int) {
        var level = levels[index]
        level.table = [UInt32](repeating: 0, count: max(64, level.table.count * 2))
        for place in level.first..<keys.count {
            let key = keys[place]
            let slot = bytes.withBytes { bytes in
                self.slot(
                    of: UnsafeRawBufferPointer(rebasing: bytes[key.start..<key.start + key.count]),
                    key.tail, in: level)
            }
            level.table[slot] = UInt32(place - level.first + 1)
        }
        levels[index] = level
    }
}
