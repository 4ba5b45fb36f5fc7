/// The objects of a binary property list other than arrays and dictionaries, indexed by their bytes
/// so that equal ones are written once.
///
/// An object's first bytes determine its length. So two objects are equal if the bytes of one also
/// occur at the other's offset.
struct SingleObjects {
    private struct Entry {
        /// Where the object begins.
        var start: UInt32 = 0
        var hash: UInt32 = 0
        /// 1 plus its number; 0 if the entry is free.
        var number: UInt32 = 0
    }

    /// The maximum number of entries that are searched for an object, whatever hashes somebody
    /// crafts. If none of them is free, the object is written even if an equal one exists.
    private static let steps = 64

    private var table: [Entry]
    private var count = 0

    /// - Parameter capacity: the approximate number of entries for which space is reserved
    ///   initially.
    init(capacity: Int) {
        var size = 64
        while size < capacity { size *= 2 }
        table = [Entry](repeating: Entry(), count: size)
    }

    /// The number of the object that equals the one at the end of `body`, from `start` on; if there
    /// is none, `number`, which then becomes that object's.
    ///
    /// - Parameter hash: a hash of the object's value, the same for all equal objects.
    mutating func number(
        from start: Int, of body: borrowing OutputBytes, hash: UInt64, else number: UInt32
    ) -> UInt32 {
        if 3 * count >= 2 * table.count { grow() }
        // Objects at larger offsets are always written, whether equal or not.
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

    /// The number of the entry with this hash for which `isEqual` is true, or the position of a
    /// free one.
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
