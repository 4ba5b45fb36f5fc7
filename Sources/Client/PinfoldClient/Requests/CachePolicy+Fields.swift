import HTTPCore
import HTTPTypes
import Serialization

extension RequestProperties.CachePolicy {
    /// Whatever is stored answers, also what its server wants to be asked about. No directive says
    /// that: the engine is told.
    var takesWhatIsStored: Bool { self == .returnCacheElseLoad || self == .returnCacheDontLoad }

    /// The directives that say it, as far as any do (RFC 9111 section 5.2.1); nil: none do.
    private var directives: String? {
        switch self {
        case .useProtocol: nil
        case .reloadIgnoringCache: "no-cache"
        case .returnCacheElseLoad: "max-stale"
        case .returnCacheDontLoad: "only-if-cached, max-stale"
        }
    }

    /// Directives about which a policy decides.
    private static let decided: Set<String> = [
        "no-cache", "max-age", "min-fresh", "max-stale", "only-if-cached",
    ]

    /// Puts the policy in place of what the fields say about the same; other directives, such as
    /// `no-store` and `no-transform`, stay.
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
