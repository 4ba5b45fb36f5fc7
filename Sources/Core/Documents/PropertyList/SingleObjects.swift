/// The objects of a binary property list that are no arrays and dictionaries, by their bytes, so
/// that equal ones are written once.
///
/// An object's first bytes say how long it is. So two are equal where the bytes of one of them are
/// those at the other's place, too.
struct SingleObjects {
    private struct Entry {
        /// Where the object begins.
        var start: UInt32 = 0
        var hash: UInt32 = 0
        /// 1 more than its number; 0: the entry is free.
        var number: UInt32 = 0
    }

    /// Entries that are looked at for an object, whatever hashes somebody finds. Where no more are
    /// free, it is written though an equal one may be there.
    private static let steps = 64

    private var table: [Entry]
    private var count = 0

    /// - Parameter capacity: about the entries for which there is room from the start.
    init(capacity: Int) {
        var size = 64
        while size < capacity { size *= 2 }
        table = [Entry](repeating: Entry(), count: size)
    }

    /// The number of the object that equals the one at the end of `body`, from `start` on; where
    /// there is none, `number`, which is then that object's.
    ///
    /// - Parameter hash: of what the object says, the same of all that are equal.
    mutating func number(
        from start: Int, of body: borrowing OutputBytes, hash: UInt64, else number: UInt32
    ) -> UInt32 {
        if 3 * count >= 2 * table.count { grow() }
        // Objects further on are each written, equal or not.
        guard let place = UInt32(exactly: start) else { return number }
        let hash = UInt32(truncatingIfNeeded: hash)
        let (there, slot) = body.withBytes { body in
            let bytes = UnsafeRawBufferPointer(rebasing: body[start...])
            return find(hash) { entry in
                let begin = Int(entry.start)
                return UnsafeRawBufferPointer(rebasing: body[begin..<begin + bytes.count])
                    .hasSameBytes(as: bytes)
            }
        }
        if let there { return there }
        if let slot {
            table[slot] = Entry(start: place, hash: hash, number: number + 1)
            count += 1
        }
        return number
    }

    /// The number of the entry with a hash that `isEqual`, or a free one's place.
    @inline(__always)
    private func find(
        _ hash: UInt32, _ isEqual: (Entry) -> Bool
    ) -> (there: UInt32?, slot: Int?) {
        table.withUnsafeBufferPointer { table in
            var slot = Int(hash) & (table.count - 1)
            for _ in 0..<Self.steps {
                let entry = table[slot]
                if entry.number == 0 { return (nil, slot) }
                if entry.hash == hash, isEqual(entry) { return (entry.number - 1, nil) }
                slot = (slot + 1) & (table.count - 1)
            }
            return (nil, nil)
        }
    }

    private mutating func grow() {
        let old = table
        table = [Entry](repeating: Entry(), count: 2 * old.count)
        count = 0
        for entry in old where entry.number > 0 {
            guard let slot = find(entry.hash, { _ in false }).slot else { continue }
            table[slot] = entry
            count += 1
        }
    }
}
