import HTTPCore

/// The primary cache key (RFC 9111 §2): the normalized target URI, prefixed by the kind of route
/// (`CacheRoute`) unless that is the usual one.
///
/// `scheme://host[:port]/path[?query]`: scheme and host in lower case, the scheme's default port
/// omitted, an empty path written as `/`, everything else byte for byte (two spellings of the same
/// percent-encoding are two keys, which may cost a hit but never serves the wrong response). GET
/// and HEAD share a key. The scheme, host and port are those to which the request is *sent*, so
/// that a response obtained over plain HTTP is never served where verified TLS is configured.
public struct CacheKey: Sendable, Hashable {
    /// The normalized URI. The disk tier is keyed by these bytes.
    public let bytes: [UInt8]
    /// The hash of the bytes in this process; see `CacheKeyView.hash`.
    public let hash: UInt64

    /// The maximum length of a key in bytes. A request whose key is longer is neither looked up nor
    /// is its response stored.
    public static let maximumBytes = 16 << 10

    /// The maximum length of a key in addition to its host and path: `https://`, brackets,
    /// `:65535`, `/`.
    public static let reservedBytes = 17

    /// Creates a key from bytes that `CacheKeyView.write` produced in this process or an earlier
    /// one.
    public init(bytes: [UInt8]) {
        self.bytes = bytes
        hash = bytes.withUnsafeBytes { CacheKeyView.hash(of: $0) }
    }

    /// Creates an owning copy of a view.
    @inlinable public init(_ view: CacheKeyView) {
        bytes = [UInt8](view.bytes)
        hash = view.hash
    }

    /// Whether a view shows this key.
    public func matches(_ view: CacheKeyView) -> Bool {
        guard hash == view.hash, bytes.count == view.bytes.count else { return false }
        return bytes.withUnsafeBytes { $0.hasSameBytes(as: view.bytes) }
    }

    /// Calls `body` with a view of this key, valid during the call.
    @inlinable public func withView<R>(_ body: (CacheKeyView) -> R) -> R {
        bytes.withUnsafeBytes { body(CacheKeyView(bytes: $0, hash: hash)) }
    }

    /// Whether the URI has a query.
    public var hasQuery: Bool { bytes.contains(UInt8(ascii: "?")) }

    /// The key of the URI's QUERYs (draft-ietf-httpbis-safe-method-w-body), which are its variants
    /// (`VaryKey.of(content:)`): the route's prefix with `query`. `self` is that of GET.
    ///
    /// It is a key of its own so that they neither are in the way of GET nor count as its variants,
    /// and one for all contents so that one invalidation removes all of them.
    public var ofQuery: CacheKey {
        let start = uriStart
        let route = start > 0 ? Array(bytes[..<(start - 1)]) + Array("-".utf8) : []
        return CacheKey(bytes: route + Array("query:".utf8) + bytes[start...])
    }

    /// Compares the URIs' bytes.
    public static func == (left: CacheKey, right: CacheKey) -> Bool {
        left.hash == right.hash && left.bytes == right.bytes
    }

    /// Feeds the precomputed hash; the bytes are not read again.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(hash)
    }
}

/// A cache key in memory that the caller owns, for lookups on the hot path.
///
/// Must not be kept: the bytes are valid only as long as the memory given to `write` is unchanged.
public struct CacheKeyView {
    /// The normalized URI.
    public let bytes: UnsafeRawBufferPointer
    /// The hash of the bytes (``KeyHasher``) under the process's random seed. Differs between
    /// processes: never store it.
    public let hash: UInt64

    /// Creates a view of bytes whose hash is known.
    public init(bytes: UnsafeRawBufferPointer, hash: UInt64) {
        self.bytes = bytes
        self.hash = hash
    }

    /// The hash of a key's bytes.
    public static func hash(of bytes: UnsafeRawBufferPointer) -> UInt64 {
        var hasher = KeyHasher()
        hasher.combine(bytes)
        return hasher.finalize()
    }

    /// Whether the URI has a query.
    public var hasQuery: Bool { bytes.contains(UInt8(ascii: "?")) }

    /// Writes the key of a request's target into `memory`: like the general form, with the target's
    /// host, port and path.
    ///
    /// - Parameter scheme: the scheme with which the request is sent, which may be https although
    ///   the target has http.
    public static func write(
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
    ///   - scheme: the scheme with which the request is sent.
    ///   - host: a host name or address literal (IPv6 without brackets), in any case.
    ///   - port: the port, even if it is the scheme's default.
    ///   - path: path and query; if empty or starting with `?`, the path is `/`.
    ///   - memory: where to write; at most `CacheKey.maximumBytes` are used, and at most
    /// `CacheKey.reservedBytes` more than host and path together.
    /// - Returns: `nil` if the key does not fit.
    public static func write(
        scheme: Scheme, host: Span<UInt8>, port: UInt16, path: Span<UInt8>,
        into memory: UnsafeMutableRawBufferPointer
    ) -> CacheKeyView? {
        let needed = host.count + path.count + CacheKey.reservedBytes
        guard needed <= min(memory.count, CacheKey.maximumBytes) else { return nil }
        var writer = KeyWriter(memory)
        writer.append(scheme == .https ? "https://" : "http://")
        // A registered name has no colon; an IPv6 literal always has one.
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

/// Assembles a key in memory that is known to be large enough.
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
    /// Whether the buffer contains the byte.
    @usableFromInline func contains(_ byte: UInt8) -> Bool {
        for index in indices where self[index] == byte { return true }
        return false
    }
}
