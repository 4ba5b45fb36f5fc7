import HTTPCore

/// The primary cache key (RFC 9111 §2): the normalised target URI, after the kind of route
/// (`CacheRoute`) if that is not the usual one.
///
/// `scheme://host[:port]/path[?query]`: scheme and host in lower case, the scheme's default port
/// left out, an empty path written as `/`, everything else byte for byte (two spellings of the same
/// percent-encoding are two keys, which costs a hit and never serves the wrong thing). GET and HEAD
/// share a key. The scheme, host and port are those the request is *sent to*, so that what came
/// over plain HTTP is never served where verified TLS is configured.
package struct CacheKey: Sendable, Hashable {
    /// The normalised URI. The disk tier is keyed by these bytes.
    package let bytes: [UInt8]
    /// The bytes' hash in this process, as `CacheKeyView.hash`.
    package let hash: UInt64

    /// The longest key, in bytes. A request whose key is longer is not looked up and not stored.
    package static let maximumBytes = 16 << 10

    /// The most bytes a key has beyond its host and path: `https://`, brackets, `:65535`, `/`.
    package static let reservedBytes = 17

    /// A key from bytes made by `CacheKeyView.write` in this process or an earlier one.
    package init(bytes: [UInt8]) {
        self.bytes = bytes
        hash = bytes.withUnsafeBytes { CacheKeyView.hash(of: $0) }
    }

    /// An owning copy of a view.
    package init(_ view: CacheKeyView) {
        bytes = [UInt8](view.bytes)
        hash = view.hash
    }

    /// Whether the key is the one that the view shows.
    package func matches(_ view: CacheKeyView) -> Bool {
        guard hash == view.hash, bytes.count == view.bytes.count else { return false }
        return bytes.withUnsafeBytes { $0.hasSameBytes(as: view.bytes) }
    }

    /// Calls `body` with a view of this key, valid during the call.
    package func withView<R>(_ body: (CacheKeyView) -> R) -> R {
        bytes.withUnsafeBytes { body(CacheKeyView(bytes: $0, hash: hash)) }
    }

    /// Whether the URI has a query part.
    package var hasQuery: Bool { bytes.contains(UInt8(ascii: "?")) }

    /// Equality of the URI's bytes.
    package static func == (left: CacheKey, right: CacheKey) -> Bool {
        left.hash == right.hash && left.bytes == right.bytes
    }

    /// Feeds the precomputed hash; the bytes are not read again.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(hash)
    }
}

/// A cache key that lies in memory of the caller's: what the hot path looks up with.
///
/// Not to be kept: the bytes are valid only as long as the memory given to `write` is unchanged.
package struct CacheKeyView {
    /// The normalised URI.
    package let bytes: UnsafeRawBufferPointer
    /// The bytes' hash (``KeyHasher``) under the process's random seed. Differs from run to run:
    /// never to be stored.
    package let hash: UInt64

    /// A view of bytes whose hash is known.
    package init(bytes: UnsafeRawBufferPointer, hash: UInt64) {
        self.bytes = bytes
        self.hash = hash
    }

    /// The hash of a key's bytes.
    package static func hash(of bytes: UnsafeRawBufferPointer) -> UInt64 {
        var hasher = KeyHasher()
        hasher.combine(bytes)
        return hasher.finalize()
    }

    /// Whether the URI has a query part.
    package var hasQuery: Bool { bytes.contains(UInt8(ascii: "?")) }

    /// Writes the key of a request's target into `memory`: as the general form, with the target's
    /// host, port and path.
    ///
    /// - Parameter scheme: the scheme the request goes out with, which may be https although the
    ///   target says http.
    package static func write(
        _ request: borrowing RequestHead, in bytes: Span<UInt8>, scheme: Scheme,
        into memory: UnsafeMutableRawBufferPointer
    ) -> CacheKeyView? {
        let upgraded = scheme != request.scheme && !request.hasExplicitPort
        return write(
            scheme: scheme, host: bytes.extracting(request.host.indices),
            port: upgraded ? scheme.defaultPort : request.port,
            path: bytes.extracting(request.path.indices), into: memory)
    }

    /// Writes the key of a target into `memory`.
    ///
    /// - Parameters:
    ///   - scheme: the scheme the request goes out with.
    ///   - host: host name or address literal (IPv6 without brackets), any case.
    ///   - port: the port, also when it is the scheme's default.
    ///   - path: path and query; empty or starting with `?` stands for the path `/`.
    ///   - memory: where to write; at most `CacheKey.maximumBytes` are used, and up to
    ///     `CacheKey.reservedBytes` more than host and path together.
    /// - Returns: nil when it does not fit.
    package static func write(
        scheme: Scheme, host: Span<UInt8>, port: UInt16, path: Span<UInt8>,
        into memory: UnsafeMutableRawBufferPointer
    ) -> CacheKeyView? {
        let needed = host.count + path.count + CacheKey.reservedBytes
        guard needed <= min(memory.count, CacheKey.maximumBytes) else { return nil }
        var writer = KeyWriter(memory)
        writer.append(scheme == .https ? "https://" : "http://")
        // A registered name has no colon, an IPv6 literal always has.
        let isIPv6 = host.contains(UInt8(ascii: ":"))
        if isIPv6 { writer.append(UInt8(ascii: "[")) }
        for index in host.indices { writer.append(ASCII.lowercased(host[index])) }
        if isIPv6 { writer.append(UInt8(ascii: "]")) }
        if port != scheme.defaultPort { writer.append(port: port) }
        if path.isEmpty || path[0] == UInt8(ascii: "?") { writer.append(UInt8(ascii: "/")) }
        writer.append(path)
        let bytes = UnsafeRawBufferPointer(rebasing: memory[..<writer.count])
        return CacheKeyView(bytes: bytes, hash: hash(of: bytes))
    }
}

/// Puts a key together in memory that is known to be large enough.
private struct KeyWriter {
    private let memory: UnsafeMutableRawBufferPointer
    private(set) var count = 0

    init(_ memory: UnsafeMutableRawBufferPointer) { self.memory = memory }

    @inline(__always)
    mutating func append(_ byte: UInt8) {
        memory[count] = byte
        count &+= 1
    }

    mutating func append(_ text: StaticString) {
        append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    mutating func append(_ bytes: Span<UInt8>) {
        bytes.withUnsafeBytes { append($0) }
    }

    private mutating func append(_ bytes: UnsafeRawBufferPointer) {
        UnsafeMutableRawBufferPointer(rebasing: memory[count...]).copyMemory(from: bytes)
        count += bytes.count
    }

    mutating func append(port: UInt16) {
        append(UInt8(ascii: ":"))
        var divisor: UInt16 = 10_000
        while divisor > port, divisor > 1 { divisor /= 10 }
        while divisor > 0 {
            append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: port / divisor % 10))
            divisor /= 10
        }
    }
}

extension Span where Element == UInt8 {
    /// Whether the byte occurs.
    func contains(_ byte: UInt8) -> Bool {
        for index in indices where self[index] == byte { return true }
        return false
    }
}
