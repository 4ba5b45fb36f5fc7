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
        guard let pathStart = pathStart(of: base) else { return nil }
        var reference = reference.withUnsafeBufferPointer { Array($0) }
        // A fragment is not part of the target.
        if let hash = reference.firstIndex(of: UInt8(ascii: "#")) {
            reference.removeSubrange(hash...)
        }
        guard reference.count <= CacheKey.maximumBytes,
            reference.allSatisfy({ ByteClass.isTarget($0) })
        else { return nil }
        let origin = Array(base[..<pathStart])
        let path = Array(base[pathStart...])
        if reference.starts(with: "//".utf8) {
            let scheme = Array(base[...(base.firstIndex(of: UInt8(ascii: ":")) ?? 0)])
            reference.insert(contentsOf: scheme, at: 0)
        }
        let resolved: [UInt8]
        if hasScheme(reference) {
            guard let absolute = normalized(reference), let start = self.pathStart(of: absolute),
                Array(absolute[..<start]) == origin
            else { return nil }
            resolved = origin + removingDots(Array(absolute[start...]))
        } else if reference.first == UInt8(ascii: "/") {
            resolved = origin + removingDots(reference)
        } else if reference.isEmpty {
            resolved = base
        } else if reference.first == UInt8(ascii: "?") {
            resolved = origin + path.prefix { $0 != UInt8(ascii: "?") } + reference
        } else {
            resolved = origin + removingDots(directory(of: path) + reference)
        }
        return resolved.count <= CacheKey.maximumBytes ? resolved : nil
    }

    /// The index of the path in a key: after `scheme://authority`.
    private static func pathStart(of key: [UInt8]) -> Int? {
        let prefix =
            key.starts(with: "https://".utf8) ? 8 : key.starts(with: "http://".utf8) ? 7 : 0
        guard prefix > 0 else { return nil }
        return key[prefix...].firstIndex(of: UInt8(ascii: "/"))
    }

    /// Whether it has `scheme ":"` before any `/` or `?`.
    private static func hasScheme(_ reference: [UInt8]) -> Bool {
        for byte in reference {
            switch byte {
            case UInt8(ascii: ":"): return true
            case UInt8(ascii: "/"), UInt8(ascii: "?"): return false
            default: continue
            }
        }
        return false
    }

    /// The path up to and including its last `/`, without the query.
    private static func directory(of path: [UInt8]) -> [UInt8] {
        let bare = path.prefix { $0 != UInt8(ascii: "?") }
        return Array(bare[...(bare.lastIndex(of: UInt8(ascii: "/")) ?? bare.startIndex)])
    }

    /// An absolute URI in the form of a key; `nil` if it is not one, or contains user information.
    private static func normalized(_ uri: [UInt8]) -> [UInt8]? {
        let lower = uri.prefix(8).map { ASCII.lowercased($0) }
        let scheme: Scheme
        if lower.starts(with: "https://".utf8) {
            scheme = .https
        } else if lower.starts(with: "http://".utf8) {
            scheme = .http
        } else {
            return nil
        }
        let rest = uri.dropFirst(scheme == .https ? 8 : 7)
        let authority = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        guard !authority.isEmpty, !authority.contains(UInt8(ascii: "@")) else { return nil }
        var path = Array(rest[authority.endIndex...])
        if path.first != UInt8(ascii: "/") { path.insert(UInt8(ascii: "/"), at: 0) }
        let name: [UInt8] = scheme == .https ? Array("https://".utf8) : Array("http://".utf8)
        return name + withoutDefaultPort(authority, scheme) + path
    }

    /// The authority in lower case, without a trailing `:` or the scheme's default port.
    private static func withoutDefaultPort(_ authority: ArraySlice<UInt8>, _ scheme: Scheme)
        -> [UInt8]
    {
        var lower = authority.map { ASCII.lowercased($0) }
        let suffix: [UInt8] = scheme == .https ? Array(":443".utf8) : Array(":80".utf8)
        if lower.suffix(suffix.count).elementsEqual(suffix) { lower.removeLast(suffix.count) }
        if lower.last == UInt8(ascii: ":") { lower.removeLast() }
        return lower
    }

    /// Removes dot segments (RFC 3986 §5.2.4) from the path; the query stays as it is.
    private static func removingDots(_ target: [UInt8]) -> [UInt8] {
        let path = target.prefix { $0 != UInt8(ascii: "?") }
        let query = target[path.endIndex...]
        let segments = path.dropFirst().split(
            separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        var kept: [ArraySlice<UInt8>] = []
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            if segment.elementsEqual(".".utf8) {
                if isLast { kept.append([]) }
            } else if segment.elementsEqual("..".utf8) {
                if !kept.isEmpty { kept.removeLast() }
                if isLast { kept.append([]) }
            } else {
                kept.append(segment)
            }
        }
        var out: [UInt8] = []
        for segment in kept {
            out.append(UInt8(ascii: "/"))
            out += segment
        }
        if out.isEmpty { out = [UInt8(ascii: "/")] }
        return out + query
    }
}
