import HTTPCore

/// What the response to an unsafe request invalidates (RFC 9111 §4.4).
public enum Invalidation {
    /// The URIs whose stored responses must be dropped, with all variants on every route
    /// (`CacheKey.along`): the target's, and those in Location and Content-Location if they have
    /// the target's origin (another origin must not be able to empty someone's cache). Empty for
    /// safe methods, for CONNECT, and for error responses.
    ///
    /// - Parameters:
    ///   - request: the request. An unknown method counts as unsafe.
    ///   - key: its key.
    ///   - response: the final response.
    ///   - bytes: the response head's bytes.
    /// - Returns: the direct keys of the URIs.
    public static func keys(
        for request: borrowing RequestHead, key: CacheKey, response: ResponseHead,
        in bytes: Span<UInt8>
    ) -> [CacheKey] {
        guard !request.isSafe, request.method != .connect,
            (200..<400).contains(response.status)
        else { return [] }
        let key = key.along(.direct)
        var keys = [key]
        let fields: [FieldID] = [.location, .contentLocation]
        for id in fields {
            guard let value = response.fields.only(id)?.value, !value.isEmpty,
                let reference = TargetReference.resolve(
                    bytes.extracting(value.indices), against: key.bytes)
            else { continue }
            let target = CacheKey(bytes: reference)
            if !keys.contains(target) { keys.append(target) }
        }
        return keys
    }
}

/// Resolves a URI reference against a key (RFC 3986 §5), within the same origin.
enum TargetReference {
    /// The key bytes of the reference's target; `nil` if it has another origin, its scheme is not
    /// http or https, or it is too long.
    static func resolve(_ reference: Span<UInt8>, against base: [UInt8]) -> [UInt8]? {
        // A fragment is not part of the target.
        let bytes = reference.withUnsafeBufferPointer { bytes in
            Array(bytes.prefix { $0 != UInt8(ascii: "#") })
        }
        guard bytes.count <= CacheKey.maximumBytes, bytes.allSatisfy({ ByteClass.isTarget($0) }),
            let base = URIReference(String(decoding: base, as: UTF8.self)),
            let reference = URIReference(String(decoding: bytes, as: UTF8.self))
        else { return nil }
        var target = reference.resolved(against: base)
        guard target.scheme == base.scheme, let authority = target.authority,
            withoutDefaultPort(authority, base.scheme == "https" ? .https : .http)
                == base.authority
        else { return nil }
        target.authority = base.authority
        if target.path.isEmpty { target.path = "/" }
        let resolved = Array(target.description.utf8)
        return resolved.count <= CacheKey.maximumBytes ? resolved : nil
    }

    /// The authority in lower case, without a trailing `:` or the scheme's default port.
    private static func withoutDefaultPort(_ authority: String, _ scheme: Scheme) -> String {
        var lower = Substring(authority.lowercasedASCII)
        let suffix = ":\(scheme.defaultPort)"
        if lower.hasSuffix(suffix) { lower = lower.dropLast(suffix.count) }
        if lower.hasSuffix(":") { lower = lower.dropLast() }
        return String(lower)
    }
}
