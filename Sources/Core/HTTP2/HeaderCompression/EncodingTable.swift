/// The dynamic table of an encoder (RFC 7541 §2.3.2).
///
/// Fields are kept as the lines that the encoder was given, in their letter case, because they are
/// compared with lines and never sent. Each remembers which field followed it the last time: most
/// messages on a connection repeat the fields of those before in the same order, and a line that is
/// the expected one is found by a single comparison, without looking for its end. Others are found
/// by a hash of the line. A response of 10 fields like the one before takes a quarter of the
/// instructions that libnghttp2 takes.
struct EncodingTable: ~Copyable {
    /// A field. Fields are numbered from 1 in the order of their addition; 0 is none.
    struct Entry {
        var position: UInt32
        /// The bytes of the line.
        var lineCount: UInt16
        /// The bytes of the name, which is at the line's beginning.
        var nameCount: UInt16
        /// The size of the field (RFC 7541 §4.1).
        var size: UInt16
        /// The number of the field that followed this one.
        var next: UInt32
        var hash: UInt32
        /// The number of an older field whose hash selects the same chain.
        var older: UInt32
    }

    /// The table's size in both directions unless SETTINGS says otherwise (RFC 9113 §6.5.2), and
    /// the largest that is used.
    static let defaultLimit = 4096
    /// Powers of two.
    private static let chains = 32
    private static let names = 16

    private var memory = LineMemory()
    /// A ring of entries by their numbers; `nil` before the first one.
    private var entries: UnsafeMutablePointer<Entry>?
    private var mask = -1
    /// For each chain the number of its newest field; then for each hash of a name the number of a
    /// field with it; then for each hash of a line, those seen lately.
    private var index: UnsafeMutablePointer<UInt32>?

    /// The number of the newest field.
    private(set) var newest = 0
    private(set) var count = 0
    private(set) var size = 0
    private(set) var limit = defaultLimit
    /// The numbers of the fields that came first in the last head and in the last trailers.
    private var firstInHead: UInt32 = 0
    private var firstInTrailers: UInt32 = 0

    /// In place of a field's number: the beginning of a head, and of trailers.
    static let headStart = 0
    static let trailerStart = -1

    init() {}

    deinit {
        entries?.deallocate()
        index?.deallocate()
    }

    @inline(__always)
    private func entry(_ number: Int) -> UnsafeMutablePointer<Entry> {
        entries.unsafelyUnwrapped + (number & mask)
    }

    /// Whether a field is in the table; 0 is not.
    @inline(__always)
    private func isLive(_ number: Int) -> Bool { number > newest &- count }

    /// The index of a field on the wire (RFC 7541 §2.3.3).
    @inline(__always)
    func wireIndex(_ number: Int) -> Int { StaticTable.count &+ 1 &+ newest &- number }

    /// The field that is expected after another one, or at the beginning, if the bytes from `line`
    /// on begin with it.
    @inline(__always)
    func expected(
        after previous: Int, _ line: UnsafeRawPointer, _ available: Int
    ) -> (number: Int, lineCount: Int)? {
        let number: Int
        if previous > 0 {
            // Even if it has just been dropped: what comes of it is compared.
            number = Int(entry(previous).pointee.next)
        } else {
            number = Int(previous == Self.headStart ? firstInHead : firstInTrailers)
        }
        guard isLive(number) else { return nil }
        let expected = entry(number)
        let count = Int(expected.pointee.lineCount)
        guard count <= available,
            WordCopy.equal(memory.line(expected.pointee.position), line, count: count)
        else { return nil }
        return (number, count)
    }

    /// Remembers that a field followed another one, or was the first.
    mutating func note(_ number: Int, after previous: Int) {
        let number = UInt32(truncatingIfNeeded: number)
        if previous > 0 {
            if isLive(previous) { entry(previous).pointee.next = number }
        } else if previous == Self.headStart {
            firstInHead = number
        } else {
            firstInTrailers = number
        }
    }

    /// The number of the field with a line.
    func find(_ line: UnsafeRawPointer, _ count: Int, hash: UInt32) -> Int? {
        guard let index else { return nil }
        var number = Int(index[Int(hash) & (Self.chains - 1)])
        while isLive(number) {
            let entry = entry(number).pointee
            if entry.hash == hash, Int(entry.lineCount) == count,
                WordCopy.equal(memory.line(entry.position), line, count: count)
            {
                return number
            }
            number = Int(entry.older)
        }
        return nil
    }

    /// The number of a field whose line begins with the same name and a colon.
    func findName(_ line: UnsafeRawPointer, _ nameCount: Int, hash: UInt32) -> Int? {
        guard let index else { return nil }
        let number = Int(index[Self.chains + Int(hash) & (Self.names - 1)])
        guard isLive(number) else { return nil }
        let entry = entry(number).pointee
        guard Int(entry.nameCount) == nameCount,
            WordCopy.equal(memory.line(entry.position), line, count: nameCount &+ 1)
        else { return nil }
        return number
    }

    /// Whether a field should be added. The first half of the table takes whatever comes; after
    /// that only fields that came before, so that values that differ in each message do not
    /// displace those that do not.
    mutating func wants(_ fieldSize: Int, hash: UInt32) -> Bool {
        guard fieldSize <= limit / 2 else { return false }
        if size + fieldSize <= limit / 2 { return true }
        guard let index else { return true }
        let seen = index + (Self.chains + Self.names + Int(hash >> 16) & (Self.chains - 1))
        if seen.pointee == hash { return true }
        seen.pointee = hash
        return false
    }

    /// Whether a field is in the table whose value was added by ``addValue(_:_:size:)``.
    @inline(__always)
    func holds(_ number: Int, _ value: UnsafeRawPointer, _ count: Int) -> Bool {
        isLive(number) && Int(entry(number).pointee.lineCount) == count
            && WordCopy.equal(memory.line(entry(number).pointee.position), value, count: count)
    }

    /// Adds a pseudo-field, of which only the value is kept, and which is not found by its line.
    mutating func addValue(_ value: UnsafeRawPointer, _ count: Int, size: Int) -> Int {
        add(value, count, nameCount: 0, size: size, hash: 0, nameHash: 0)
    }

    /// Adds a field; the oldest ones make room. It must be one that the table ``wants(_:hash:)``.
    mutating func add(
        _ line: UnsafeRawPointer, _ lineCount: Int, nameCount: Int, size fieldSize: Int,
        hash: UInt32, nameHash: UInt32
    ) -> Int {
        evict(to: limit &- fieldSize)
        if count > mask { growEntries() }
        let index = index ?? makeIndex()
        let oldest = count == 0 ? memory.end : entry(newest &- count &+ 1).pointee.position
        memory.room(lineCount, keepingFrom: oldest).copyMemory(from: line, byteCount: lineCount)
        newest &+= 1
        count &+= 1
        size &+= fieldSize
        let chain = index + (Int(hash) & (Self.chains - 1))
        entry(newest).initialize(
            to: Entry(
                position: memory.end, lineCount: UInt16(truncatingIfNeeded: lineCount),
                nameCount: UInt16(truncatingIfNeeded: nameCount),
                size: UInt16(truncatingIfNeeded: fieldSize), next: 0, hash: hash,
                older: chain.pointee))
        memory.append(lineCount)
        chain.pointee = UInt32(truncatingIfNeeded: newest)
        index[Self.chains + Int(nameHash) & (Self.names - 1)] = UInt32(truncatingIfNeeded: newest)
        return newest
    }

    private mutating func makeIndex() -> UnsafeMutablePointer<UInt32> {
        let size = Self.chains * 2 + Self.names
        let made = UnsafeMutablePointer<UInt32>.allocate(capacity: size)
        made.initialize(repeating: 0, count: size)
        index = made
        return made
    }

    private mutating func growEntries() {
        let larger = max(16, (mask + 1) * 2)
        let moved = UnsafeMutablePointer<Entry>.allocate(capacity: larger)
        for number in (newest - count + 1)..<(newest + 1) {
            (moved + (number & (larger - 1))).initialize(to: entry(number).pointee)
        }
        entries?.deallocate()
        entries = moved
        mask = larger - 1
    }

    /// Sets the largest size, and drops the oldest fields beyond it (RFC 7541 §4.3).
    mutating func setLimit(_ limit: Int) {
        self.limit = limit
        evict(to: limit)
    }

    private mutating func evict(to allowed: Int) {
        while size > allowed, count > 0 {
            size &-= Int(entry(newest &- count &+ 1).pointee.size)
            count &-= 1
        }
    }
}
