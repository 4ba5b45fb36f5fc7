/// A hash of bytes that is faster than the standard library's for short inputs, using the folded
/// multiplication of wyhash. Its seeds are random in each process, so that nobody can prepare many
/// inputs with the same hash; code whose work must be bounded nevertheless limits its steps.
struct SeededHash {
    private static let drawn = SeededHash(
        seed: .random(in: 0 ... .max), factor: .random(in: 0 ... .max) | 1)

    private let seed: UInt64
    private let factor: UInt64

    private init(seed: UInt64, factor: UInt64) { (self.seed, self.factor) = (seed, factor) }

    /// Uses the seeds of this process.
    init() { self = Self.drawn }

    @inline(__always)
    private func folded(_ word: UInt64) -> UInt64 {
        let product = word.multipliedFullWidth(by: factor)
        return product.high ^ product.low
    }

    @inline(__always)
    func value(of word: UInt64) -> UInt64 { folded(folded(word ^ seed) ^ seed) }

    @inline(__always)
    func value(of bytes: UnsafeRawBufferPointer) -> UInt64 {
        var value = seed
        var index = 0
        while index &+ 8 <= bytes.count {
            let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            value = folded(value ^ word)
            index &+= 8
        }
        if index < bytes.count { value = folded(value ^ Self.end(of: bytes)) }
        return folded(value ^ (seed &+ UInt64(truncatingIfNeeded: bytes.count)))
    }

    /// The last bytes, at most eight; some bytes of short inputs are included twice.
    @inline(__always)
    private static func end(of bytes: UnsafeRawBufferPointer) -> UInt64 {
        let count = bytes.count
        if count >= 8 { return bytes.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self) }
        if count >= 4 {
            let first = bytes.loadUnaligned(as: UInt32.self)
            let last = bytes.loadUnaligned(fromByteOffset: count - 4, as: UInt32.self)
            return UInt64(first) << 32 | UInt64(last)
        }
        let first = UInt64(bytes[0]) << 16
        return first | UInt64(bytes[count / 2]) << 8 | UInt64(bytes[count - 1])
    }
}
