import HTTPCore

/// SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF") of bytes that arrive in
/// parts, under the process's random seed: nobody outside can choose keys that collide.
///
/// The same algorithm as `Hasher`, but only for bytes, and with a guarantee about parts: the hash
/// is that of their concatenation. So the common beginning of keys can be hashed once for all of
/// them.
public struct KeyHasher: Sendable {
    private var state: SipState
    /// The bytes that do not fill a word yet, the first one lowest, padded with zeros.
    private var tail: UInt64 = 0
    private var count: UInt64 = 0

    /// Derived from the standard library's seed, which differs in each process.
    private static let seed: (UInt64, UInt64) = {
        func draw(_ number: Int) -> UInt64 {
            var hasher = Hasher()
            hasher.combine(number)
            return UInt64(bitPattern: Int64(hasher.finalize()))
        }
        return (draw(0), draw(1))
    }()

    /// Creates a hasher that has hashed nothing.
    public init() { self.init(seed: Self.seed) }

    init(seed: (UInt64, UInt64)) { state = SipState(key: seed) }

    /// Hashes the next bytes.
    @inline(__always)
    public mutating func combine(_ bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress else { return }
        let filled = count & 7
        count &+= UInt64(truncatingIfNeeded: bytes.count)
        var offset = 0
        while offset &+ 8 <= bytes.count {
            take(
                UInt64(
                    littleEndian: base.loadUnaligned(fromByteOffset: offset, as: UInt64.self)),
                behind: filled)
            offset &+= 8
        }
        let left = UInt64(truncatingIfNeeded: bytes.count &- offset)
        var rest: UInt64 = 0
        var index = bytes.count
        while index > offset {
            index &-= 1
            rest = rest &<< 8 | UInt64(base.load(fromByteOffset: index, as: UInt8.self))
        }
        if filled &+ left < 8 {
            tail |= rest &<< (filled &* 8)
        } else {
            take(rest, behind: filled)
        }
    }

    /// Fills the current word and absorbs it; the remaining bytes begin the next one.
    @inline(__always)
    private mutating func take(_ word: UInt64, behind filled: UInt64) {
        state.absorb(tail | word &<< (filled &* 8), rounds: 1)
        // A shift by 64 gives 0.
        tail = word >> (64 &- filled &* 8)
    }

    /// The hash of all bytes so far.
    @inline(__always)
    public consuming func finalize() -> UInt64 {
        state.absorb(tail | count &<< 56, rounds: 1)
        return state.finish(rounds: 3)
    }
}

/// The common beginning of all keys of an origin (the kind of route, `scheme://host[:port]`), and
/// its hash.
public struct CacheKeyStart: Sendable {
    public let bytes: [UInt8]
    private let hasher: KeyHasher
    /// The length that a key must not reach for ``key(path:into:)`` to make it: 0 if others do.
    private let limit: Int

    /// Creates the beginning from its bytes.
    /// - Parameter isByRules: whether the keys depend on rules, so that ``key(path:into:)`` makes
    ///   none.
    public init(_ bytes: [UInt8], isByRules: Bool = false) {
        self.bytes = bytes
        limit = isByRules ? 0 : CacheKey.maximumBytes
        var hasher = KeyHasher()
        bytes.withUnsafeBytes { hasher.combine($0) }
        self.hasher = hasher
    }

    /// Whether keys depend on rules.
    public var isByRules: Bool { limit == 0 }

    /// Writes the key of a path and query into `memory`.
    ///
    /// - Parameters:
    ///   - path: if empty or starting with `?`, the path is `/`.
    ///   - memory: `CacheKey.maximumBytes` bytes.
    /// - Returns: `nil` if the key would be too long, or depends on rules.
    @inline(__always)
    public func key(
        path: Span<UInt8>, into memory: UnsafeMutableRawBufferPointer
    ) -> CacheKeyView? {
        key(path: path, into: memory, below: limit)
    }

    /// The same, of a path and query to which the rules have been applied.
    /// - Returns: `nil` if the key would be too long.
    @inline(never)
    public func keyByRules(
        path: Span<UInt8>, into memory: UnsafeMutableRawBufferPointer
    ) -> CacheKeyView? {
        key(path: path, into: memory, below: CacheKey.maximumBytes)
    }

    @inline(__always)
    private func key(
        path: Span<UInt8>, into memory: UnsafeMutableRawBufferPointer, below limit: Int
    ) -> CacheKeyView? {
        guard let place = memory.baseAddress, bytes.count + path.count < min(memory.count, limit)
        else { return nil }
        bytes.withUnsafeBytes { start in
            if let start = start.baseAddress {
                place.copyMemory(from: start, byteCount: bytes.count)
            }
        }
        var count = bytes.count
        if path.isEmpty || path[0] == UInt8(ascii: "?") {
            place.storeBytes(of: UInt8(ascii: "/"), toByteOffset: count, as: UInt8.self)
            count &+= 1
        }
        path.withUnsafeBytes { path in
            guard let source = path.baseAddress else { return }
            (place + count).copyMemory(from: source, byteCount: path.count)
            count &+= path.count
        }
        var hasher = hasher
        hasher.combine(
            UnsafeRawBufferPointer(start: place + bytes.count, count: count &- bytes.count))
        return CacheKeyView(
            bytes: UnsafeRawBufferPointer(start: place, count: count), hash: hasher.finalize())
    }
}
