/// The kind of route along which a response is obtained, which is part of its cache key: one origin
/// may be asked under other rules of trust and access, and with other request fields, along each.
/// What is stored along one never answers along another, and never takes its place.
package enum CacheRoute: Sendable, Hashable {
    /// A forward proxy's request, to the scheme and port that it names.
    case direct
    /// A forward proxy's clear-text request that goes out as TLS to another port, where the host
    /// entry of the port it names trusts otherwise than that of the port it goes to.
    case upgraded
    /// A reverse listener's request to its upstream.
    case reverse(ReverseTraits)

    /// Every route there can be.
    package static let all: [CacheRoute] =
        [.direct, .upgraded] + ReverseTraits.all.map { .reverse($0) }

    /// What stands before the URI in keys: nothing, or a word and a colon that is not followed by
    /// slashes.
    package var prefix: String {
        switch self {
        case .direct: ""
        case .upgraded: "upgraded:"
        case .reverse(let traits): "reverse\(traits.rawValue):"
        }
    }
}

/// What a reverse listener's requests tell the upstream beyond what the client's request line says.
package struct ReverseTraits: OptionSet, Sendable, Hashable {
    /// One bit for each.
    package let rawValue: UInt8
    /// The set with these bits.
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The host that the client named, in X-Forwarded-Host and Forwarded.
    package static let tellsHost = ReverseTraits(rawValue: 1)
    /// The host that the client named, in Host.
    package static let keepsHost = ReverseTraits(rawValue: 2)
    /// What a trusted proxy says of scheme and host.
    package static let trustsProxies = ReverseTraits(rawValue: 4)
    /// That clients spoke TLS, in X-Forwarded-Proto and Forwarded.
    package static let tellsTLS = ReverseTraits(rawValue: 8)

    /// Every set.
    static let all = (0..<16).map { ReverseTraits(rawValue: $0) }

    /// The request fields, in lower case, that an upstream may answer by: they are part of the key.
    package var nominatedFields: [String] {
        var names: [String] = []
        if !isDisjoint(with: [.tellsHost, .keepsHost]) { names.append("host") }
        if contains(.trustsProxies) { names += ["x-forwarded-host", "x-forwarded-proto"] }
        return names
    }
}

extension CacheKey {
    /// The key of the same URI along a route.
    package func along(_ route: CacheRoute) -> CacheKey {
        CacheKey(bytes: Array(route.prefix.utf8) + bytes[uriStart...])
    }

    /// Where the URI begins in the bytes.
    var uriStart: Int {
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return 0 }
        let rest = bytes[(colon + 1)...]
        return rest.starts(with: "//".utf8) ? 0 : rest.startIndex
    }
}
