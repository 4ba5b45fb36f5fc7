/// A member's name.
struct JSONName: BitwiseCopyable {
    /// Where its bytes are: in the text or, if it has escapes, among the decoded bytes.
    let offset: UInt32
    let length: UInt32
    /// Where its quotation mark is in the text, and the index behind the closing one.
    let mark: UInt32
    let end: UInt32

    @inline(__always)
    init(offset: Int, length: Int, mark: Int, end: Int) {
        self.offset = UInt32(truncatingIfNeeded: offset)
        self.length = UInt32(truncatingIfNeeded: length)
        self.mark = UInt32(truncatingIfNeeded: mark)
        self.end = UInt32(truncatingIfNeeded: end)
    }

    /// Whether it has escapes: each makes it shorter.
    @inline(__always)
    var isDecoded: Bool { end - mark - 2 != length }

    var asDuplicate: JSONParsingError {
        JSONParsingError(.duplicateName, at: Int(mark), length: Int(end - mark))
    }
}

/// The names of the open objects; an object's come after those of the enclosing object.
///
/// While an object has few names, each is compared with those before it, by digests, several at a
/// time. Many are sorted when their object ends: n log n comparisons whatever the names are,
/// whereas a hash table would need a secret to withstand names that were chosen to collide.
struct JSONNames: ~Copyable {
    static let few = 64

    private var names = PlainArray<JSONName>()
    private var digests = PlainArray<UInt32>()

    init() {}

    var count: Int { names.count }

    mutating func cut(to index: Int) {
        names.cut(to: index)
        digests.cut(to: index)
    }

    /// The bytes of a name.
    func bytes(
        of index: Int, _ text: UnsafeRawPointer, _ decoded: UnsafeBufferPointer<UInt8>
    ) -> UnsafeRawBufferPointer {
        let name = names.first[index]
        let start = name.isDecoded ? decoded.baseAddress.map { UnsafeRawPointer($0) } : text
        return UnsafeRawBufferPointer(
            start: start.map { $0 + Int(name.offset) }, count: Int(name.length))
    }

    /// Adds a name to the object whose names begin at an index.
    ///
    /// - Throws: `duplicateName` if it is one of the object's few names; it is then the last one.
    @inline(__always)
    mutating func add(
        _ name: JSONName, digest: UInt32, from first: Int, _ text: UnsafeRawPointer,
        _ decoded: UnsafeBufferPointer<UInt8>, within memory: inout Int
    ) throws(JSONParsingError) {
        let end = count
        let mayBeThere = end &- first < Self.few && has(digest, from: first)
        try names.append(name, within: &memory)
        try digests.append(digest, within: &memory)
        if mayBeThere, isThere(digest, in: first..<end, text, decoded) { throw name.asDuplicate }
    }

    /// Without a branch for each name, so that the compiler compares several at a time.
    @inline(__always)
    private func has(_ digest: UInt32, from first: Int) -> Bool {
        guard first < count else { return false }
        let digests = digests.first
        var found: UInt32 = 0
        var index = first
        while index < count {
            found |= digests[index] == digest ? 1 : 0
            index &+= 1
        }
        return found != 0
    }

    /// Whether the last name is among those of a range, of which one has its digest.
    @inline(never)
    private func isThere(
        _ digest: UInt32, in range: Range<Int>, _ text: UnsafeRawPointer,
        _ decoded: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        range.contains {
            digests.first[$0] == digest && order($0, count - 1, text, decoded) == 0
        }
    }

    /// Of the names of an object that has many, from an index on, the first that occurs for the
    /// second time; it is then the last of them. Or that there is no memory to look for it.
    mutating func duplicate(
        from first: Int, _ text: UnsafeRawPointer, _ decoded: UnsafeBufferPointer<UInt8>,
        within memory: Int
    ) -> JSONParsingError? {
        guard count &- first > Self.few else { return nil }
        // One key for each name, given back before anything else is kept.
        guard (count &- first) * MemoryLayout<UInt64>.size <= memory else {
            return JSONParsingError(.outOfMemory, at: 0)
        }
        return duplicateOfMany(from: first, text, decoded)
    }

    @inline(never)
    private mutating func duplicateOfMany(
        from first: Int, _ text: UnsafeRawPointer, _ decoded: UnsafeBufferPointer<UInt8>
    ) -> JSONParsingError? {
        // By their digests, and those with the same digest by their bytes.
        var keys = (first..<count).map { UInt64(digests.first[$0]) << 32 | UInt64($0) }
        keys.sort()
        var found: Int?
        var start = 0
        while start < keys.count {
            var end = start + 1
            while end < keys.count, keys[end] >> 32 == keys[start] >> 32 { end += 1 }
            if end - start > 1 {
                let again = duplicate(of: &keys[start..<end], text, decoded)
                if let again { found = min(found ?? again, again) }
            }
            start = end
        }
        guard let found else { return nil }
        let name = names.first[found]
        names.last.pointee = name
        return name.asDuplicate
    }

    /// Of names with the same digest, the first that occurs for the second time.
    private func duplicate(
        of keys: inout ArraySlice<UInt64>, _ text: UnsafeRawPointer,
        _ decoded: UnsafeBufferPointer<UInt8>
    ) -> Int? {
        func index(_ key: UInt64) -> Int { Int(key & 0xFFFF_FFFF) }
        keys.sort { left, right in
            let difference = order(index(left), index(right), text, decoded)
            return difference == 0 ? left < right : difference < 0
        }
        var found: Int?
        for (one, next) in zip(keys, keys.dropFirst())
        where order(index(one), index(next), text, decoded) == 0 {
            found = min(found ?? index(next), index(next))
        }
        return found
    }

    /// Below 0, 0 or above 0: an order of names by their lengths and bytes.
    private func order(
        _ left: Int, _ right: Int, _ text: UnsafeRawPointer,
        _ decoded: UnsafeBufferPointer<UInt8>
    ) -> Int {
        let left = bytes(of: left, text, decoded)
        let right = bytes(of: right, text, decoded)
        guard left.count == right.count else { return left.count - right.count }
        var offset = 0
        while offset + 8 <= left.count {
            let one = left.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            let other = right.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            guard one == other else { return one < other ? -1 : 1 }
            offset += 8
        }
        while offset < left.count {
            guard left[offset] == right[offset] else {
                return Int(left[offset]) - Int(right[offset])
            }
            offset += 1
        }
        return 0
    }

    /// A digest of a name's length and its first and last bytes, at most eight each.
    @inline(__always)
    static func digest(_ start: UnsafeRawPointer, _ count: Int) -> UInt32 {
        var first: UInt64 = 0
        var last: UInt64 = 0
        if count >= 8 {
            first = start.loadUnaligned(as: UInt64.self)
            last = start.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self)
        } else if count >= 4 {
            first = UInt64(start.loadUnaligned(as: UInt32.self))
            last = UInt64(start.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self))
        } else if count > 0 {
            first = UInt64(start.load(as: UInt8.self))
            last =
                UInt64(start.load(fromByteOffset: count / 2, as: UInt8.self)) << 8
                | UInt64(start.load(fromByteOffset: count &- 1, as: UInt8.self))
        }
        let mixed =
            (first &+ UInt64(truncatingIfNeeded: count)) &* 0x9E37_79B9_7F4A_7C15
            ^ last &* 0xC2B2_AE3D_27D4_EB4F
        return UInt32(truncatingIfNeeded: mixed >> 32)
    }
}
