import CachePolicy

/// The names of what is stored in the engine.
///
///     prefix 1:{digest}                   what there is of a cache key (``SharedIndex``)
///     prefix 1:{digest}:v:variant         a response
///     prefix 1:{digest}:c:body:index      a chunk of a large body
///     prefix 1:{digest}:l                 the lease of who fetches it
///     prefix 1:{digest}:n                 a note that it is not stored
///     prefix 1:g:all  g:h:digest  g:t:digest    generations: of all, a host, a tag
///     prefix 1:{purges}:stream  :epoch  :members
///
/// All of one cache key is in one slot of a cluster, because the digest is the hash tag: one script
/// can change it. Different keys are in different slots. The names depend on no secret, so that
/// gateways in the middle of changing it remove each other's responses; that two keys have one name
/// is found out by the record, which has the key itself.
package struct SharedName: Sendable, Hashable {
    /// The beginning of all names.
    private let start: [UInt8]

    /// The longest prefix.
    package static let maximumPrefixBytes = 64

    /// - Parameter prefix: what distinguishes this fleet from others in the engine; `nil` is
    ///   returned if it is too long, or has a brace, which would become a hash tag.
    package init?(prefix: [UInt8]) {
        guard prefix.count <= Self.maximumPrefixBytes,
            !prefix.contains(UInt8(ascii: "{")), !prefix.contains(UInt8(ascii: "}"))
        else { return nil }
        start = prefix + Array("1:".utf8)
    }

    // MARK: Of a cache key

    /// The digest of a cache key: 128 bits, in hexadecimal. `nil` only without memory.
    package static func digest(of key: UnsafeRawBufferPointer) -> [UInt8]? {
        digest("key", key)
    }

    package func index(_ digest: [UInt8]) -> [UInt8] {
        start + [UInt8(ascii: "{")] + digest + [UInt8(ascii: "}")]
    }

    /// The digest of a variant: 64 bits, in hexadecimal. Responses that were obtained under
    /// different trust do not replace each other.
    package static func variant(_ vary: VaryKey, trust: UInt64) -> [UInt8]? {
        let all = SharedBytes.number(trust) + vary.bytes
        return all.withUnsafeBytes { digest("variant", $0) }.map { Array($0.prefix(16)) }
    }

    package func value(_ digest: [UInt8], variant: [UInt8]) -> [UInt8] {
        index(digest) + Array(":v:".utf8) + variant
    }

    package func chunk(_ digest: [UInt8], body: SharedToken, _ number: UInt32) -> [UInt8] {
        index(digest) + Array(":c:".utf8) + Self.hexadecimal(body.bytes)
            + Array(":\(number)".utf8)
    }

    package func lease(_ digest: [UInt8]) -> [UInt8] { index(digest) + Array(":l".utf8) }
    package func note(_ digest: [UInt8]) -> [UInt8] { index(digest) + Array(":n".utf8) }

    // MARK: Of purges

    package var stream: [UInt8] { start + Array("{purges}:stream".utf8) }
    package var epoch: [UInt8] { start + Array("{purges}:epoch".utf8) }
    package var members: [UInt8] { start + Array("{purges}:members".utf8) }

    /// The record of generations of a scope.
    package func generations(_ scope: GenerationScope) -> [UInt8]? {
        switch scope {
        case .all: return start + Array("g:all".utf8)
        case .host(let host):
            return host.withUnsafeBytes { Self.digest("host", $0) }
                .map { start + Array("g:h:".utf8) + $0 }
        case .tag(let tag):
            return tag.withUnsafeBytes { Self.digest("tag", $0) }
                .map { start + Array("g:t:".utf8) + $0 }
        }
    }

    /// The prefixes of names whose changes are to be told (`CLIENT TRACKING`): none begins with
    /// another.
    package var tracked: [[UInt8]] {
        [start + Array("{".utf8), start + Array("g:".utf8)]
    }

    // MARK: Texts

    static func digest(_ purpose: StaticString, _ bytes: UnsafeRawBufferPointer) -> [UInt8]? {
        let start = UnsafeRawBufferPointer(
            start: purpose.utf8Start, count: purpose.utf8CodeUnitCount)
        let domain = Array("pinfold shared cache: ".utf8) + start + [0]
        return SharedDigest.sha256(domain, bytes).map { hexadecimal(Array($0[..<16])) }
    }

    static func hexadecimal(_ bytes: [UInt8]) -> [UInt8] {
        let digits = Array("0123456789abcdef".utf8)
        return bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    }

    static func hexadecimal(_ number: UInt32) -> String {
        String(decoding: hexadecimal(SharedBytes.number(number.byteSwapped)), as: UTF8.self)
    }
}

/// 16 bytes that are never the same twice: the identity of a body, of an index or of a lease.
package struct SharedToken: Sendable, Hashable {
    package let bytes: [UInt8]

    package static let byteCount = 16

    /// - Parameter random: 16 bytes of a generator that nobody can predict.
    package init(random: (UInt64, UInt64)) {
        bytes = SharedBytes.number(random.0) + SharedBytes.number(random.1)
    }

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = [UInt8](bytes) }
}
