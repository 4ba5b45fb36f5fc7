import HTTPCore
import HTTPTypes

extension RequestProperties.CachePolicy {
    /// Whether any stored response is used, even if its server requires validation. There is no
    /// directive for that: the engine has an option.
    var acceptsAnyStored: Bool { self == .returnCacheElseLoad || self == .returnCacheDontLoad }

    /// The corresponding directives (RFC 9111 section 5.2.1), or `nil` if there are none.
    private var directives: String? {
        switch self {
        case .useProtocol: nil
        case .reloadIgnoringCache: "no-cache"
        case .returnCacheElseLoad: "max-stale"
        case .returnCacheDontLoad: "only-if-cached, max-stale"
        }
    }

    /// The directives that a policy replaces.
    private static let decided: Set<String> = [
        "no-cache", "max-age", "min-fresh", "max-stale", "only-if-cached",
    ]

    /// Replaces the directives that the policy decides. Others, such as `no-store` and
    /// `no-transform`, are kept.
    func apply(to fields: inout HTTPFields) {
        guard let directives else { return }
        let others = fields[values: .cacheControl].flatMap { value in
            value.split(separator: ",").map(\.withoutOuterSpace).filter { directive in
                let name = directive.prefix { $0 != "=" }.withoutOuterSpace.lowercasedASCII
                return !name.isEmpty && !Self.decided.contains(name)
            }
        }
        fields[.cacheControl] = (others + [directives[...]]).joined(separator: ", ")
    }
}
