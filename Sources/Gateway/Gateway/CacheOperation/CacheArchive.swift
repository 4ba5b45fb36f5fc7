import HTTPCore

/// The format of files that `pinfold cache export` writes and `pinfold cache import` reads.
///
/// A line `PINFOLD-CACHE-2`, then records: a kind (1 byte), a length (4 bytes, the highest first)
/// and as many bytes. An entry is a record `entry`, or `slice` if it is a slice of a representation
/// (`PartsBody`), its content in any number of records `content`, and `entryEnd` with the FNV-1a
/// hash (64 bits) of the bytes of these records. `archiveEnd` has the number of entries (8 bytes);
/// what follows it does not belong to the file.
///
/// Version 1 has no slices, and does not say since when an entry is stale. It is only read.
package enum CacheArchive {
    /// The version that is written.
    package static let version: UInt8 = 2
    /// What the first line begins with; the version follows, a digit.
    static let name = Array("PINFOLD-CACHE-".utf8)
    /// The first line.
    package static let magic = name + Array("\(version)\n".utf8)
    /// The most bytes of a record.
    package static let maximumRecord = 1 << 20

    package enum Kind: UInt8, Sendable {
        case entry = 1
        case content = 2
        case entryEnd = 3
        case archiveEnd = 4
        case slice = 5
    }

    /// A record that was read.
    package struct Record {
        package let kind: Kind
        package let bytes: ArraySlice<UInt8>
        /// The version of the archive.
        package let version: UInt8
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

/// What a file says of a stored response, or of a slice of one, besides its content.
struct ArchivedEntry: Sendable, Equatable {
    /// The fingerprint of what it was obtained under; of a slice, that of its head.
    var policy: UInt64
    /// The times that it was stored with (`StoredTimes`).
    var requestTime: Int64
    var responseTime: Int64
    var initialAge: Int64
    /// Since when a soft purge has made it stale, in seconds since 1970; 0 if none has.
    var staleSince: Int64
    /// Bytes of content; of a response in slices, of what says where they are.
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
        CacheArchive.append(staleSince, to: &record)
        CacheArchive.append(bytes, to: &record)
        for part in [key, vary, head] {
            CacheArchive.append(UInt32(part.count), to: &record)
            record += part
        }
        return record
    }

    init(
        policy: UInt64, requestTime: Int64, responseTime: Int64, initialAge: Int64,
        staleSince: Int64, bytes: UInt64, key: [UInt8], vary: [UInt8], head: [UInt8]
    ) {
        (self.policy, self.requestTime, self.responseTime) = (policy, requestTime, responseTime)
        (self.initialAge, self.staleSince, self.bytes) = (initialAge, staleSince, bytes)
        (self.key, self.vary, self.head) = (key, vary, head)
    }

    /// Reads a record of an archive of this version; `nil` if it is none.
    init?(_ record: ArraySlice<UInt8>, version: UInt8 = CacheArchive.version) {
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
            // What is not known to be fresh must not become so.
            let stale = version > 1 ? number(UInt64.self) : 0, stale <= Int64.max,
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
            staleSince: Int64(stale), bytes: bytes, key: parts[0], vary: parts[1], head: parts[2])
    }
}

/// Why a file is no such archive.
package enum ArchiveError: Error, Equatable, Sendable, CustomStringConvertible {
    case otherFormat
    case otherVersion
    case malformed
    /// It ends before its end.
    case truncated

    package var description: String {
        switch self {
        case .otherFormat: "it does not begin with PINFOLD-CACHE- and a version"
        case .otherVersion:
            "it has a version that is not known here; expected PINFOLD-CACHE-1 or PINFOLD-CACHE-2"
        case .malformed: "it has a record that cannot be read"
        case .truncated: "it ends before its last record"
        }
    }
}

/// Finds the records of an archive that arrives in pieces.
package struct ArchiveReader: Sendable {
    /// The beginning of a record that is not complete yet.
    private(set) var held: [UInt8] = []
    /// `nil` before the first line has been read.
    private var version: UInt8?
    /// Whether the last record has been read.
    package private(set) var isComplete = false

    package init() {}

    /// Adds a piece, and passes on each record that is complete by then. What follows the last
    /// record is dropped.
    package mutating func read(
        _ piece: some Collection<UInt8>,
        _ body: (CacheArchive.Record) throws(ArchiveError) -> Void
    ) throws(ArchiveError) {
        guard !isComplete else { return }
        held += piece
        var position = 0
        defer { held.removeFirst(isComplete ? held.count : position) }
        if version == nil {
            version = try Self.version(of: held)
            position = version == nil ? 0 : CacheArchive.magic.count
        }
        guard let version else { return }
        while !isComplete, held.count - position >= 5 {
            guard let kind = CacheArchive.Kind(rawValue: held[position]),
                kind != .slice || version > 1
            else { throw .malformed }
            let length = held[(position + 1)..<(position + 5)].reduce(0) { $0 << 8 | Int($1) }
            guard length <= CacheArchive.maximumRecord else { throw .malformed }
            guard held.count - position - 5 >= length else { return }
            let start = position + 5
            position = start + length
            if kind == .archiveEnd { isComplete = true }
            try body(
                CacheArchive.Record(
                    kind: kind, bytes: held[start..<(start + length)], version: version))
        }
    }

    /// The version in the first line; `nil` if that is not complete.
    private static func version(of bytes: [UInt8]) throws(ArchiveError) -> UInt8? {
        guard
            bytes.prefix(CacheArchive.name.count).elementsEqual(
                CacheArchive.name.prefix(bytes.count))
        else { throw .otherFormat }
        guard bytes.count >= CacheArchive.magic.count else { return nil }
        let digit = bytes[CacheArchive.name.count]
        guard bytes[CacheArchive.name.count + 1] == UInt8(ascii: "\n"),
            UInt8(ascii: "1")...UInt8(ascii: "0") + CacheArchive.version ~= digit
        else { throw .otherVersion }
        return digit - UInt8(ascii: "0")
    }
}
