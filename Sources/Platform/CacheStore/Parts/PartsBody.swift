import CachePolicy

/// The body of a response of which parts are stored (RFC 9111 §3.3): where they are.
///
/// The bytes are in slices, entries of their own with keys made from the response's key, the number
/// of the set and the number of the slice (`SliceKey`). All slices of a set are of the same
/// representation: it has a strong entity tag, or they all came with one response. Each slice has
/// one run of bytes, which may be shorter than the slice. Slices are evicted one by one; those of a
/// set whose response is gone are never asked for again, and leave in the same way.
public struct PartsBody: Sendable, Equatable {
    /// The number of the set, which nobody can guess.
    public let set: UInt64
    /// Bytes of a slice.
    public let sliceBytes: UInt64

    /// A new set.
    public init(sliceBytes: Int) {
        set = .random(in: 1...(.max))
        self.sliceBytes = UInt64(max(1, sliceBytes))
    }

    private init(set: UInt64, sliceBytes: UInt64) {
        self.set = set
        self.sliceBytes = sliceBytes
    }

    /// Bytes of what is stored with a response.
    package static let byteCount: UInt64 = 16

    /// Bytes of a slice that are read back. Each slice is an entry of its own: with too few bytes,
    /// to store it would cost more than it is worth.
    private static let readSliceBytes: ClosedRange<UInt64> = 256...1 << 40
    /// The same from elsewhere. No configuration has less.
    private static let foreignSliceBytes: ClosedRange<UInt64> = 4096...1 << 40

    /// What is stored with a response.
    package var bytes: [UInt8] {
        [set, sliceBytes].flatMap { number in (0..<8).map { UInt8(number >> ($0 * 8) & 0xFF) } }
    }

    /// Reads what is stored with a response. Anything else is a set of which nothing is stored.
    init(_ bytes: UnsafeRawBufferPointer) {
        func number(_ offset: Int) -> UInt64 {
            UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        guard bytes.count == Int(Self.byteCount), Self.readSliceBytes.contains(number(8)) else {
            self.init(sliceBytes: 1 << 20)
            return
        }
        self.init(set: number(0), sliceBytes: number(8))
    }

    /// Whether what was stored elsewhere says where parts are.
    package static func isSound(_ bytes: [UInt8]) -> Bool {
        guard bytes.count == Int(byteCount) else { return false }
        let parts = bytes.withUnsafeBytes { PartsBody($0) }
        // What could not be read was replaced.
        return parts.bytes == bytes && foreignSliceBytes.contains(parts.sliceBytes)
    }

    /// The positions of the slice that has a position.
    public func slice(at offset: UInt64) -> Range<UInt64> {
        let start = offset - offset % sliceBytes
        let (end, overflow) = start.addingReportingOverflow(sliceBytes)
        return start..<(overflow ? .max : end)
    }

    /// The key of the slice that has a position.
    func key(of response: UnsafeRawBufferPointer, at offset: UInt64) -> CacheKey {
        var key = [UInt8]()
        key.reserveCapacity(response.count + 17)
        key += response
        // No URI has it: this is the key of no request.
        key.append(0)
        for number in [set, offset / sliceBytes] {
            for shift in stride(from: 56, through: 0, by: -8) {
                key.append(UInt8(number >> UInt64(shift) & 0xFF))
            }
        }
        return CacheKey(bytes: key)
    }
}

/// The key of a slice in its parts.
package struct SliceKey: Sendable, Equatable {
    /// The key of the response that it is a slice of.
    package let response: [UInt8]
    /// The number of the set.
    package let set: UInt64
    /// The number of the slice.
    package let number: UInt64

    /// `nil` if it is the key of no slice.
    package init?(_ key: [UInt8]) {
        guard key.withUnsafeBytes({ StoredURI($0).isSlice }) else { return nil }
        response = Array(key.dropLast(17))
        set = key.dropLast(8).suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
        number = key.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}

/// A slice that is stored: one run of bytes of a representation.
public struct StoredSlice: Sendable {
    public let response: CachedResponse
    /// The positions of its bytes in the representation.
    public let range: Range<UInt64>

    /// Where the head of a slice says which position its bytes begin at.
    private static let prefix = Array("HTTP/1.1 200 OK\r\nRange: bytes=".utf8)

    /// The head of a slice whose bytes begin at a position.
    static func head(from first: UInt64) -> [UInt8] { prefix + Array("\(first)-\r\n".utf8) }

    /// Whether a stored head is that of a slice, and nothing more.
    package static func isHead(_ head: [UInt8]) -> Bool {
        guard let first = head.withUnsafeBytes({ Self.first(of: $0) }) else { return false }
        return Self.head(from: first) == head
    }

    /// The position that a head says; `nil` if it is no slice's.
    private static func first(of head: UnsafeRawBufferPointer) -> UInt64? {
        guard head.starts(with: prefix) else { return nil }
        var first: UInt64 = 0
        for byte in head[prefix.count...] {
            guard byte &- 0x30 < 10 else { break }
            first = first &* 10 &+ UInt64(byte &- 0x30)
        }
        return first
    }

    /// `nil` if it is none, which cannot be.
    public init?(_ response: CachedResponse) {
        guard let first = Self.first(of: response.head) else { return nil }
        let (end, overflow) = first.addingReportingOverflow(response.bodyCount)
        guard !overflow else { return nil }
        self.response = response
        range = first..<end
    }
}
