/// The kind of route by which a response is obtained, which is part of its cache key: the same
/// origin may be contacted under different trust and access rules, and with different request
/// fields, on each. A response stored for one route never answers requests on another, and never
/// replaces what is stored for another.
public enum CacheRoute: Sendable, Hashable {
    /// A forward proxy's request, to the scheme and port that it names.
    case direct
    /// A forward proxy's clear-text request that is sent as TLS to another port, if the host
    /// entries of the two ports differ in what they trust.
    case upgraded
    /// A reverse listener's request to its upstream.
    case reverse(ReverseTraits)

    /// All possible routes.
    public static let all: [CacheRoute] =
        [.direct, .upgraded] + ReverseTraits.all.map { .reverse($0) }

    /// The prefix of the URI in keys: nothing, or a word and a colon that is not followed by
    /// slashes.
    public var prefix: String {
        switch self {
        case .direct: ""
        case .upgraded: "upgraded:"
        case .reverse(let traits): "reverse\(traits.rawValue):"
        }
    }
}

/// What a reverse listener sends upstream in addition to the client's request line.
public struct ReverseTraits: OptionSet, Sendable, Hashable {
    /// One bit for each trait.
    public let rawValue: UInt8
    /// Creates a set from its bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The host that the client requested is sent in X-Forwarded-Host and Forwarded.
    public static let forwardsHost = ReverseTraits(rawValue: 1)
    /// The host that the client requested is sent in Host.
    public static let keepsHost = ReverseTraits(rawValue: 2)
    /// The scheme and host come from a trusted proxy.
    public static let trustsProxies = ReverseTraits(rawValue: 4)
    /// X-Forwarded-Proto and Forwarded state that clients used TLS.
    public static let forwardsTLS = ReverseTraits(rawValue: 8)

    /// All possible sets.
    static let all = (0..<16).map { ReverseTraits(rawValue: $0) }

    /// The request fields, in lower case, that an upstream's response may depend on: they are part
    /// of the key.
    public var nominatedFields: [String] {
        var names: [String] = []
        if !isDisjoint(with: [.forwardsHost, .keepsHost]) { names.append("host") }
        if contains(.trustsProxies) { names += ["x-forwarded-host", "x-forwarded-proto"] }
        return names
    }
}

extension CacheRoute {
    /// The prefix for what is obtained in clear text by other ways than those of its host: whoever
    /// forwards it there may answer as it likes, and must not answer those who ask another way.
    /// - Parameter ways: a number for these ways; `nil` for those of the host.
    public func prefix(by ways: UInt64?) -> String {
        guard let ways else { return prefix }
        let name = "ways" + String(ways, radix: 16)
        return prefix.isEmpty ? name + ":" : name + "-" + prefix
    }
}

extension CacheKey {
    /// The key of the same URI for another route.
    /// - Parameter ways: by which ways; see ``CacheRoute/prefix(by:)``.
    public func along(_ route: CacheRoute, by ways: UInt64? = nil) -> CacheKey {
        CacheKey(bytes: Array(route.prefix(by: ways).utf8) + bytes[uriStart...])
    }

    /// Where the URI begins in the bytes.
    var uriStart: Int {
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return 0 }
        let rest = bytes[(colon + 1)...]
        return rest.starts(with: "//".utf8) ? 0 : rest.startIndex
    }
}
