import HTTPCore

/// The format of files that `pinfold cache export` writes and `pinfold cache import` reads.
///
/// A line `PINFOLD-CACHE-1`, then records: a kind (1 byte), a length (4 bytes, the highest first)
/// and as many bytes. An entry is a record `entry`, its content in any number of records `content`,
/// and `entryEnd` with the FNV-1a hash (64 bits) of the bytes of these records. `archiveEnd` has
/// the number of entries (8 bytes); what follows it does not belong to the file.
package enum CacheArchive {
    /// The first line.
    package static let magic = Array("PINFOLD-CACHE-1\n".utf8)
    /// The most bytes of a record.
    package static let maximumRecord = 1 << 20

    package enum Kind: UInt8, Sendable {
        case entry = 1
        case content = 2
        case entryEnd = 3
        case archiveEnd = 4
    }

    /// Appends a record.
    package static func append(
        _ kind: Kind, _ bytes: some Collection<UInt8>, to output: inout [UInt8]
    ) {
        output.append(kind.rawValue)
        append(UInt32(bytes.count), to: &output)
        output += bytes
    }

    static func append(_ number: some FixedWidthInteger, to output: inout [UInt8]) {
        withUnsafeBytes(of: number.bigEndian) { output += $0 }
    }
}

/// A hash that is computed piece by piece (FNV-1a, 64 bits).
package struct ArchiveHash: Sendable, Equatable {
    package private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

    package init() {}

    package mutating func add(_ bytes: some Sequence<UInt8>) {
        for byte in bytes { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 }
    }
}

/// What a file says of a stored response besides its content.
struct ArchivedEntry: Sendable, Equatable {
    /// The fingerprint of what it was obtained under.
    var policy: UInt64
    /// The times that it was stored with (`StoredTimes`).
    var requestTime: Int64
    var responseTime: Int64
    var initialAge: Int64
    /// Bytes of content.
    var bytes: UInt64
    var key: [UInt8]
    /// The serialized `VaryKey`. It has values of request fields: such a file is as confidential as
    /// the cache.
    var vary: [UInt8]
    /// The stored head.
    var head: [UInt8]

    /// The bytes of its record.
    var record: [UInt8] {
        var record: [UInt8] = []
        CacheArchive.append(policy, to: &record)
        CacheArchive.append(requestTime, to: &record)
        CacheArchive.append(responseTime, to: &record)
        CacheArchive.append(initialAge, to: &record)
        CacheArchive.append(bytes, to: &record)
        for part in [key, vary, head] {
            CacheArchive.append(UInt32(part.count), to: &record)
            record += part
        }
        return record
    }

    init(
        policy: UInt64, requestTime: Int64, responseTime: Int64, initialAge: Int64, bytes: UInt64,
        key: [UInt8], vary: [UInt8], head: [UInt8]
    ) {
        (self.policy, self.requestTime, self.responseTime) = (policy, requestTime, responseTime)
        (self.initialAge, self.bytes) = (initialAge, bytes)
        (self.key, self.vary, self.head) = (key, vary, head)
    }

    /// Reads a record; `nil` if it is none.
    init?(_ record: ArraySlice<UInt8>) {
        var rest = record
        func number<Number: FixedWidthInteger>(_ type: Number.Type) -> Number? {
            let size = MemoryLayout<Number>.size
            guard rest.count >= size else { return nil }
            let value = rest.prefix(size).reduce(Number(0)) { $0 << 8 | Number($1) }
            rest = rest.dropFirst(size)
            return value
        }
        guard let policy = number(UInt64.self), let requested = number(UInt64.self),
            let responded = number(UInt64.self), let age = number(UInt64.self),
            let bytes = number(UInt64.self)
        else { return nil }
        var parts: [[UInt8]] = []
        for _ in 0..<3 {
            guard let count = number(UInt32.self), rest.count >= count else { return nil }
            parts.append(Array(rest.prefix(Int(count))))
            rest = rest.dropFirst(Int(count))
        }
        guard rest.isEmpty else { return nil }
        self.init(
            policy: policy, requestTime: Int64(bitPattern: requested),
            responseTime: Int64(bitPattern: responded), initialAge: Int64(bitPattern: age),
            bytes: bytes, key: parts[0], vary: parts[1], head: parts[2])
    }
}

/// Why a file is no such archive.
package enum ArchiveError: Error, Equatable, Sendable, CustomStringConvertible {
    case otherFormat
    case malformed
    /// It ends before its end.
    case truncated

    package var description: String {
        switch self {
        case .otherFormat: "it does not begin with PINFOLD-CACHE-1"
        case .malformed: "it has a record that cannot be read"
        case .truncated: "it ends before its last record"
        }
    }
}

/// Finds the records of an archive that arrives in pieces.
package struct ArchiveReader: Sendable {
    private var held: [UInt8] = []
    private var hasBegun = false
    /// Whether the last record has been read.
    package private(set) var isComplete = false

    package init() {}

    /// Adds a piece, and passes on each record that is complete by then.
    package mutating func read(
        _ piece: some Collection<UInt8>,
        _ body: (CacheArchive.Kind, ArraySlice<UInt8>) throws(ArchiveError) -> Void
    ) throws(ArchiveError) {
        held += piece
        var position = 0
        defer { held.removeFirst(position) }
        if !hasBegun {
            guard held.count >= CacheArchive.magic.count else {
                guard CacheArchive.magic.starts(with: held) else { throw .otherFormat }
                return
            }
            guard held.starts(with: CacheArchive.magic) else { throw .otherFormat }
            hasBegun = true
            position = CacheArchive.magic.count
        }
        while !isComplete, held.count - position >= 5 {
            guard let kind = CacheArchive.Kind(rawValue: held[position]) else { throw .malformed }
            let length = held[(position + 1)..<(position + 5)].reduce(0) { $0 << 8 | Int($1) }
            guard length <= CacheArchive.maximumRecord else { throw .malformed }
            guard held.count - position - 5 >= length else { return }
            let start = position + 5
            position = start + length
            if kind == .archiveEnd { isComplete = true }
            try body(kind, held[start..<(start + length)])
        }
    }
}
