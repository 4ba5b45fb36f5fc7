/// The kind of route along which a response is obtained, which is part of its cache key: one origin
/// may be asked under other rules of trust and access, and with other request fields, along each.
/// What is stored along one never answers along another, and never takes its place.
package enum CacheRoute: UInt8, Sendable, CaseIterable {
    /// A forward proxy's request, to the scheme and port that it names.
    case direct
    /// A forward proxy's clear-text request that goes out as TLS to another port, where the host
    /// entry of the port it names trusts otherwise than that of the port it goes to.
    case upgraded
    /// A reverse listener's request to its upstream.
    case reverse

    /// What stands before the URI in keys. No URI of a key begins so.
    package var prefix: StaticString {
        switch self {
        case .direct: ""
        case .upgraded: "upgraded:"
        case .reverse: "reverse:"
        }
    }
}

extension CacheKey {
    /// The key of the same URI along a route.
    package func along(_ route: CacheRoute) -> CacheKey {
        let prefix = "\(route.prefix)".utf8
        return CacheKey(bytes: Array(prefix) + bytes[uriStart...])
    }

    /// Where the URI begins in the bytes.
    var uriStart: Int {
        for route in CacheRoute.allCases.dropFirst()
        where bytes.starts(with: "\(route.prefix)".utf8) {
            return route.prefix.utf8CodeUnitCount
        }
        return 0
    }
}
