import HTTPCore

/// Decodes header blocks (RFC 7541): the context of one direction of a connection.
///
/// A field is decoded once, to the place where the table keeps it, and handed to a sink as a line
/// (``HeaderLine``). Nothing is allocated per field, except for single fields larger than
/// ``largeField``. To decode and assemble a browser's request of 15 fields takes 0.4 of the
/// instructions that libnghttp2 takes to decode it.
public struct HeaderDecoder: ~Copyable {
    /// Fields that may be larger than this are decoded in memory of their own.
    static let largeField = 2048
    /// The most bytes that the literal fields of a block may have decoded. A literal of two bytes
    /// can have a name of 4,000; a block of them would cost a thousand times what it should.
    static let expansionLimit = 1 << 20

    private var table: DecodingTable
    /// The largest table size that the peer may choose.
    private var tableLimit: Int
    /// Whether the peer must choose a smaller table size, as its limit was lowered.
    private var awaitsTableSize = false
    private let huffman = HuffmanDecoder.shared
    private var large: UnsafeMutableRawPointer?
    /// The bytes of the literal fields of the block so far.
    private var expanded = 0

    /// A decoder of a peer that may use a table of 4,096 bytes, the default, or of `tableLimit`
    /// once it has read so in SETTINGS_HEADER_TABLE_SIZE (RFC 9113 §6.5.2).
    public init(tableLimit: Int = 4096) {
        precondition((4096...DecodingTable.maximumSize).contains(tableLimit))
        self.tableLimit = tableLimit
        table = DecodingTable(limit: 4096)
    }

    deinit { large?.deallocate() }

    /// The size of the table (RFC 7541 §4.1).
    var tableSize: Int { table.size }

    /// Notes that the peer acknowledged a table size in our SETTINGS. If it is smaller than what
    /// the peer uses, its next block must begin with a table size (RFC 7541 §4.2).
    public mutating func peerAcknowledged(tableLimit: Int) {
        precondition((0...DecodingTable.maximumSize).contains(tableLimit))
        self.tableLimit = tableLimit
        awaitsTableSize = table.limit > tableLimit
    }

    /// Gives back memory that the table does not need, until more is added to it.
    public mutating func trim() { table.trim() }

    /// Decodes a whole header block. After an error the connection has to be closed.
    ///
    /// Callers in other modules use the functions for each kind of message, which are compiled for
    /// them.
    mutating func decodeFields<Sink: FieldSink & ~Copyable>(
        _ block: Span<UInt8>, into sink: inout Sink
    ) throws(HeaderCompressionError) {
        try block.withUnsafeBufferPointer { (bytes) throws(HeaderCompressionError) in
            guard let start = bytes.baseAddress, !bytes.isEmpty else { return }
            try decode(UnsafeRawPointer(start), count: bytes.count, into: &sink)
        }
    }

    @inline(__always)
    private mutating func decode<Sink: FieldSink & ~Copyable>(
        _ start: UnsafeRawPointer, count: Int, into sink: inout Sink
    ) throws(HeaderCompressionError) {
        var next = start
        let end = start + count
        expanded = 0
        try takeTableSizes(&next, end)
        while next < end {
            let byte = Int(next.load(as: UInt8.self))
            next += 1
            if byte & 0x80 != 0 {
                var index = byte & 0x7F
                if index == 0x7F { index = try PrefixInteger.readRest(index, &next, end: end) }
                sink.take(try field(index))
            } else if byte & 0x40 != 0 {
                try decodeLiteral(byte & 0x3F, 0x3F, .added, &next, end, &sink)
            } else if byte & 0x20 == 0 {
                let use: LiteralUse = byte & 0x10 == 0 ? .notAdded : .neverAdded
                try decodeLiteral(byte & 0x0F, 0x0F, use, &next, end, &sink)
            } else {
                throw .lateTableSize
            }
        }
    }

    /// Takes the table sizes at the beginning of a block (RFC 7541 §4.2).
    @inline(__always)
    private mutating func takeTableSizes(
        _ next: inout UnsafeRawPointer, _ end: UnsafeRawPointer
    ) throws(HeaderCompressionError) {
        while next < end, next.load(as: UInt8.self) & 0xE0 == 0x20 {
            var size = Int(next.load(as: UInt8.self) & 0x1F)
            next += 1
            if size == 0x1F { size = try PrefixInteger.readRest(size, &next, end: end) }
            guard size <= tableLimit else { throw .tableSizeTooLarge }
            table.setLimit(size)
            awaitsTableSize = false
        }
        guard !awaitsTableSize else { throw .tableSizeMissing }
    }

    /// The field at an index of both tables (RFC 7541 §2.3.3).
    @inline(__always)
    private func field(_ index: Int) throws(HeaderCompressionError) -> HeaderLine {
        if index > StaticTable.count {
            let index = index &- StaticTable.count
            guard index <= table.count else { throw .indexOutOfRange }
            return table.line(index)
        }
        guard index > 0 else { throw .indexZero }
        return StaticTable.line(index)
    }

    /// What becomes of a literal field (RFC 7541 §6.2).
    private enum LiteralUse { case added, notAdded, neverAdded }

    /// A string in a block (RFC 7541 §5.2).
    private struct CodedString {
        var start: UnsafeRawPointer
        var count: Int
        var isCoded: Bool

        /// The most bytes that it may have decoded.
        @inline(__always)
        var bound: Int { isCoded ? HuffmanDecoder.bound(count) : count }

        @inline(__always)
        init(
            _ next: inout UnsafeRawPointer, _ end: UnsafeRawPointer
        ) throws(HeaderCompressionError) {
            guard next < end else { throw .truncatedBlock }
            let byte = next.load(as: UInt8.self)
            next += 1
            isCoded = byte & 0x80 != 0
            count = Int(byte & 0x7F)
            if count == 0x7F { count = try PrefixInteger.readRest(count, &next, end: end) }
            guard count <= end - next else { throw .truncatedBlock }
            start = next
            next += count
        }
    }

    /// Writes a decoded string; returns where it ends.
    @inline(__always)
    private func write(
        _ string: CodedString, to place: UnsafeMutableRawPointer
    ) throws(HeaderCompressionError) -> UnsafeMutableRawPointer {
        if string.isCoded {
            return try huffman.decode(string.start, count: string.count, to: place)
        }
        place.copyMemory(from: string.start, byteCount: string.count)
        return place + string.count
    }

    @inline(never)
    private mutating func decodeLiteral<Sink: FieldSink & ~Copyable>(
        _ prefix: Int, _ mask: Int, _ use: LiteralUse, _ next: inout UnsafeRawPointer,
        _ end: UnsafeRawPointer, _ sink: inout Sink
    ) throws(HeaderCompressionError) {
        var index = prefix
        if index == mask { index = try PrefixInteger.readRest(index, &next, end: end) }
        var role: FieldRole
        var nameFault: MessageError?
        let start: UnsafeMutableRawPointer
        let nameEnd: UnsafeMutableRawPointer
        let value: CodedString
        if index > 0 {
            let named = try field(index)
            let count = named.nameCount
            value = try CodedString(&next, end)
            start = room(count &+ value.bound &+ 4)
            // Making room may have moved the table.
            let name = index > StaticTable.count ? try field(index).start : named.start
            WordCopy.copy(name, to: start, count: count)
            nameEnd = start + count
            (role, nameFault) = (named.traits.role, named.traits.fault)
        } else {
            let name = try CodedString(&next, end)
            value = try CodedString(&next, end)
            start = room(name.bound &+ value.bound &+ 4)
            nameEnd = try write(name, to: start)
            (role, nameFault) = NameSyntax.examine(start, nameEnd - start)
        }
        nameEnd.storeBytes(of: UInt16(0x203A).littleEndian, as: UInt16.self)
        let valueStart = nameEnd + 2
        let valueEnd = try write(value, to: valueStart)
        valueEnd.storeBytes(of: UInt16(0x0A0D).littleEndian, as: UInt16.self)
        let line = HeaderLine(
            start: start, nameCount: nameEnd - start, valueCount: valueEnd - valueStart,
            traits: FieldTraits(
                role: role, nameFault: nameFault, value: valueStart,
                count: valueEnd - valueStart),
            isSensitive: use == .neverAdded)
        expanded &+= line.count
        guard expanded <= Self.expansionLimit else { throw .expandsTooMuch }
        sink.take(line)
        if case .added = use { add(line) }
        if large != nil { freeLarge() }
    }

    /// Where a line of at most `count` bytes can be written.
    @inline(__always)
    private mutating func room(_ count: Int) -> UnsafeMutableRawPointer {
        count <= Self.largeField ? table.room(count) : allocateLarge(count)
    }

    @inline(never)
    private mutating func allocateLarge(_ count: Int) -> UnsafeMutableRawPointer {
        let memory = UnsafeMutableRawPointer.allocate(
            byteCount: count + WordCopy.slack, alignment: 16)
        large?.deallocate()
        large = memory
        return memory
    }

    @inline(never)
    private mutating func freeLarge() {
        large?.deallocate()
        large = nil
    }

    @inline(__always)
    private mutating func add(_ line: HeaderLine) {
        if large != nil, line.count <= table.limit {
            table.room(line.count).copyMemory(from: line.start, byteCount: line.count)
        }
        table.add(nameCount: line.nameCount, valueCount: line.valueCount, traits: line.traits)
    }
}
