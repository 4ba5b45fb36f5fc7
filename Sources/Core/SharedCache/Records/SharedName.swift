import CachePolicy

/// The names of what is stored in the engine.
///
///     prefix 1:i:{digest}                 what there is of a cache key (``SharedIndex``)
///     prefix 1:v:{digest}:variant         a response
///     prefix 1:c:{digest}:body:index      a chunk of a large body
///     prefix 1:l:{digest}                 the lease of who fetches it, or a note instead
///     prefix 1:p:{fleet}:all:run          the generation of everything, for one run of the engine
///     prefix 1:p:{fleet}:stream           what was purged
///     prefix 1:p:{fleet}:removed          which keys were found to be invalid
///     prefix 1:p:{fleet}:members          the gateways
///     prefix 1:p:{fleet}:policy  :policy:version
///
/// All of one cache key is in one slot of a cluster, because the digest is the hash tag. The names
/// depend on no secret, so that gateways in the middle of changing it remove each other's
/// responses; that two keys have one name is found out by the record, which has the key itself.
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
        keyBeginning?.digest(key)?.withBytes { hexadecimal($0[..<16]) }
    }

    /// - Parameter further: bytes for which there is to be room.
    private func name(_ kind: StaticString, _ digest: [UInt8], further: Int = 0) -> [UInt8] {
        let kind = UnsafeRawBufferPointer(
            start: kind.utf8Start, count: kind.utf8CodeUnitCount)
        var name: [UInt8] = []
        name.reserveCapacity(start.count + kind.count + digest.count + 2 + further)
        name.append(contentsOf: start)
        name.append(contentsOf: kind)
        name.append(UInt8(ascii: "{"))
        name.append(contentsOf: digest)
        name.append(UInt8(ascii: "}"))
        return name
    }

    package func index(_ digest: [UInt8]) -> [UInt8] { name("i:", digest) }

    /// The digest of a variant: 64 bits, in hexadecimal. Responses that were obtained under
    /// different trust do not replace each other.
    package static func variant(_ vary: VaryKey, trust: UInt64) -> [UInt8]? {
        let digest = vary.bytes.withUnsafeBytes { variantBeginning?.digest(trust, $0) }
        return digest?.withBytes { hexadecimal($0[..<8]) }
    }

    /// Whether a text is the digest of a variant (`variant(_:trust:)`).
    /// - Parameter vary: the bytes of its Vary key.
    static func isVariant(
        _ text: [UInt8], _ vary: UnsafeRawBufferPointer, trust: UInt64
    ) -> Bool {
        guard text.count == 16, let digest = variantBeginning?.digest(trust, vary) else {
            return false
        }
        return digest.withBytes { bytes in
            for index in 0..<8
            where text[2 * index] != digit(bytes[index] >> 4)
                || text[2 * index + 1] != digit(bytes[index] & 15)
            {
                return false
            }
            return true
        }
    }

    package func value(_ digest: [UInt8], variant: [UInt8]) -> [UInt8] {
        var name = name("v:", digest, further: 1 + variant.count)
        name.append(UInt8(ascii: ":"))
        name.append(contentsOf: variant)
        return name
    }

    package func chunk(_ digest: [UInt8], body: SharedToken, _ number: UInt32) -> [UInt8] {
        name("c:", digest) + [UInt8(ascii: ":")] + Self.hexadecimal(body.bytes)
            + Array(":\(number)".utf8)
    }

    package func lease(_ digest: [UInt8]) -> [UInt8] { name("l:", digest) }

    // MARK: Of the fleet

    private func fleet(_ name: String) -> [UInt8] { start + Array("p:{fleet}:\(name)".utf8) }

    /// The stream of purges (``PurgeEntry``).
    package var stream: [UInt8] { fleet("stream") }
    /// The stream of keys that are not valid any longer (``RemovedKey``).
    package var removed: [UInt8] { fleet("removed") }
    /// The gateways (``SharedMember``).
    package var members: [UInt8] { fleet("members") }
    package var policy: [UInt8] { fleet("policy") }
    package var policyVersion: [UInt8] { fleet("policy:version") }

    /// The number of the generation that everything belongs to.
    /// - Parameter run: which run of the engine it is.
    package func generation(run: [UInt8]) -> [UInt8] { fleet("all:") + run }

    // MARK: Texts

    private static let keyBeginning = DigestBeginning(
        Array("pinfold shared cache: key\0".utf8))
    private static let variantBeginning = DigestBeginning(
        Array("pinfold shared cache: variant\0".utf8))

    static func hexadecimal(_ bytes: some Collection<UInt8>) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 2 * bytes.count) { text, count in
            for byte in bytes {
                text[count] = digit(byte >> 4)
                text[count + 1] = digit(byte & 15)
                count += 2
            }
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") - 10 + value
    }

    static func hexadecimal(_ number: UInt32) -> String {
        String(decoding: hexadecimal(SharedBytes.number(number.byteSwapped)), as: UTF8.self)
    }
}
