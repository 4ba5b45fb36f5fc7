/// The dynamic table of a decoder (RFC 7541 §2.3.2).
///
/// Each field is kept as the line `name: value CRLF`, next to its successor, so that a field that a
/// block refers to is handed on in one piece. The memory behind the last line is where the next one
/// is decoded to.
struct DecodingTable: ~Copyable {
    private struct Entry {
        /// Where the line begins, counted over all lines ever appended.
        var position: UInt32
        var nameCount: UInt16
        var valueCount: UInt16
        var role: FieldRole
        var fault: MessageError?
    }

    /// What each field counts beside its bytes (RFC 7541 §4.1).
    static let entryOverhead = 32
    /// The largest table size: lengths fit 16 bits.
    static let maximumSize = 65_535

    private var memory = LineMemory()

    /// A ring of a power of two of entries.
    private var entries: UnsafeMutablePointer<Entry>?
    private var mask = -1
    /// The number of entries ever added.
    private var added = 0
    /// The number of entries.
    private(set) var count = 0

    /// The size (RFC 7541 §4.1).
    private(set) var size = 0
    /// The largest size, as the peer last chose it.
    private(set) var limit: Int

    init(limit: Int) { self.limit = limit }

    deinit { entries?.deallocate() }

    @inline(__always)
    private func entry(_ index: Int) -> Entry {
        entries.unsafelyUnwrapped[(added &- index) & mask]
    }

    /// The field that was added `index` fields ago; the last one has index 1.
    @inline(__always)
    func line(_ index: Int) -> HeaderLine {
        let entry = entry(index)
        return HeaderLine(
            start: memory.line(entry.position), nameCount: Int(entry.nameCount),
            valueCount: Int(entry.valueCount),
            traits: FieldTraits(role: entry.role, fault: entry.fault), isSensitive: false)
    }

    /// Where a line of at most `count` bytes can be written; moves the lines in the table.
    @inline(__always)
    mutating func room(_ count: Int) -> UnsafeMutableRawPointer {
        let first = self.count == 0 ? memory.end : entry(self.count).position
        return memory.room(count, keepingFrom: first)
    }

    /// Adds the field whose line was written where there was ``room(_:)``. One that is larger than
    /// the table empties it (RFC 7541 §4.4).
    @inline(__always)
    mutating func add(nameCount: Int, valueCount: Int, traits: FieldTraits) {
        let entrySize = nameCount &+ valueCount &+ Self.entryOverhead
        evict(to: limit &- entrySize)
        guard entrySize <= limit else { return }
        if count > mask { growEntries() }
        (entries.unsafelyUnwrapped + (added & mask)).initialize(
            to: Entry(
                position: memory.end, nameCount: UInt16(truncatingIfNeeded: nameCount),
                valueCount: UInt16(truncatingIfNeeded: valueCount), role: traits.role,
                fault: traits.fault))
        added &+= 1
        count &+= 1
        size &+= entrySize
        memory.append(nameCount &+ valueCount &+ 4)
    }

    @inline(never)
    private mutating func growEntries() { moveEntries(to: max(16, (mask + 1) * 2)) }

    private mutating func moveEntries(to capacity: Int) {
        let moved = UnsafeMutablePointer<Entry>.allocate(capacity: capacity)
        for index in stride(from: count, to: 0, by: -1) {
            (moved + ((added - index) & (capacity - 1))).initialize(to: entry(index))
        }
        entries?.deallocate()
        entries = moved
        mask = capacity - 1
    }

    /// Gives back memory that the fields in the table do not need.
    mutating func trim() {
        memory.trim(keepingFrom: count == 0 ? memory.end : entry(count).position)
        var capacity = 16
        while capacity < count { capacity *= 2 }
        guard count > 0 else {
            entries?.deallocate()
            entries = nil
            mask = -1
            return
        }
        if capacity <= mask { moveEntries(to: capacity) }
    }

    /// Sets the largest size, and drops the oldest fields beyond it (RFC 7541 §4.3).
    mutating func setLimit(_ limit: Int) {
        self.limit = limit
        evict(to: limit)
    }

    @inline(__always)
    private mutating func evict(to allowed: Int) {
        while size > allowed, count > 0 {
            let oldest = entry(count)
            size &-= Int(oldest.nameCount) &+ Int(oldest.valueCount) &+ Self.entryOverhead
            count &-= 1
        }
    }
}
