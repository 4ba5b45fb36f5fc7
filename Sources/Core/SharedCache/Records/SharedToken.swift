/// 16 bytes that are never the same twice: the identity of a body, of an index or of a lease.
package struct SharedToken: Sendable, Hashable {
    /// The first eight bytes and the others, the lowest first in each: every response that is read
    /// has one or two, and an array would be memory of its own.
    package let low: UInt64
    private let high: UInt64

    package static let byteCount = 16

    /// - Parameter random: 16 bytes of a generator that nobody can predict.
    package init(random: (UInt64, UInt64)) { (low, high) = random }

    init(_ bytes: UnsafeRawBufferPointer) {
        low = SharedBytes.number(bytes, at: 0)
        high = SharedBytes.number(bytes, at: 8)
    }

    /// All 16.
    package var bytes: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.byteCount) { memory, count in
            let memory = UnsafeMutableRawBufferPointer(memory)
            memory.storeBytes(of: low.littleEndian, as: UInt64.self)
            memory.storeBytes(of: high.littleEndian, toByteOffset: 8, as: UInt64.self)
            count = Self.byteCount
        }
    }

    /// What changes whenever one of two changes.
    package static func ^ (left: SharedToken, right: SharedToken) -> SharedToken {
        SharedToken(random: (left.low ^ right.low, left.high ^ right.high))
    }
}
