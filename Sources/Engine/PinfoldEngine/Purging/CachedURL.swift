import CachePolicy
import HTTPCore
import PinfoldConfiguration

/// The URIs under which responses for a URL may be stored.
///
/// A URL of a host is stored as it is, or with https where its entry of `hosts` upgrades it; one of
/// a reverse listener, by the address at which it listens, as one of its upstream. Where an entry
/// rewrites paths or queries, or has rules for keys, the URI is what these make of it; the one
/// without them is among the URIs as well, because one too many harms nobody.
package struct CachedURL: Sendable, Equatable {
    /// `scheme://host[:port]/path?query`, in the form of cache keys; each once.
    package private(set) var uris: [[UInt8]] = []

    /// Where a request for the URL may go.
    private struct Target {
        var scheme: Scheme
        /// The authority in keys.
        var host: String
        var port: UInt16
        /// The host entry that applies.
        var entry: Int?
    }

    /// - Parameters:
    ///   - url: as a client would request it; a fragment is left out.
    ///   - isPrefix: whether it is the beginning of URLs, to which the rules for keys of whole ones
    ///     (`hosts[].cache.key`) cannot be applied.
    /// - Throws: the error for which a request with this URL would be refused.
    package init(
        _ url: String, isPrefix: Bool = false, under policy: PolicySnapshot
    ) throws(WireError) {
        let text = url.prefix { $0 != "#" }
        // Characters that would end the target early are refused.
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else { throw .malformedTarget }
        let bytes = Array("GET \(text) HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
        var parser = RequestHeadParser(limits: policy.headLimits)
        var head = RequestHead()
        let progress = try parser.parse(bytes.span, into: &head)
        guard progress == .complete(headBytes: bytes.count), head.form == .absolute else {
            throw .malformedTarget
        }
        let host = bytes.span.text(at: head.host).lowercasedASCII
        let path = head.path.indices.map { bytes[$0] }
        for target in Self.targets(host, head.port, head.scheme, policy) {
            add(target, path, isPrefix ? nil : policy)
            let rules = policy.transformation(entryIndex: target.entry)?.requestHead
            if let rewritten = rules?.path(rewriting: head, in: bytes.span) {
                add(target, rewritten, isPrefix ? nil : policy)
            }
        }
    }

    private static func targets(
        _ host: String, _ port: UInt16, _ scheme: Scheme, _ policy: PolicySnapshot
    ) -> [Target] {
        let target = policy.target(host: host, port: port, by: .request(isSecure: scheme == .https))
        var targets = [
            Target(scheme: scheme, host: host, port: port, entry: target.entryIndex),
            Target(
                scheme: target.isSecure ? .https : .http, host: host, port: target.port,
                entry: target.entryIndex),
        ]
        let address = IPAddress(host)
        for listener in policy.configuration.listeners {
            guard let upstream = upstream(of: listener, policy) else { continue }
            let own = listener.address.address.unmapped
            let isNamed =
                listener.unix == nil && listener.address.port == port
                && (own == address?.unmapped || own.scope == .unspecified || host == "localhost")
            // As what is stored is listed.
            if isNamed || upstream.host == host && upstream.port == port {
                targets.append(upstream)
            }
        }
        return targets
    }

    /// What a reverse listener's requests are stored as.
    private static func upstream(
        of listener: ListenerConfiguration, _ policy: PolicySnapshot
    ) -> Target? {
        func target(_ origin: UpstreamOrigin, _ name: String?) -> Target {
            let scheme: Scheme = origin.scheme == .https ? .https : .http
            return Target(
                scheme: scheme, host: name ?? origin.host,
                port: name == nil ? origin.port : scheme.defaultPort,
                entry: policy.entry(host: origin.host, port: origin.port))
        }
        switch listener.kind {
        case .reverse(let upstream):
            return target(
                upstream,
                upstream.unixPath.map {
                    "\(String(hexadecimal: FNV1a.hash($0), digits: 16)).unix.invalid"
                })
        case .balanced(let set):
            return set.servers.first.map {
                target($0.origin, "\(listener.name).upstreams.invalid")
            }
        case .forward, .socks5, .transparent: return nil
        }
    }

    /// - Parameter policy: whose rules for keys are applied as well; `nil` for none.
    private mutating func add(_ target: Target, _ path: [UInt8], _ policy: PolicySnapshot?) {
        let memory = UnsafeMutableRawBufferPointer.allocate(
            byteCount: CacheKey.maximumBytes, alignment: 1)
        defer { memory.deallocate() }
        let view = CacheKeyView.write(
            scheme: target.scheme, host: Array(target.host.utf8).span, port: target.port,
            path: path.span, into: memory)
        guard let view else { return }
        let key = CacheKey(view)
        let keyed = policy?.cacheRules(entryIndex: target.entry)?.keyed(key)
        for uri in [key.bytes, keyed?.bytes ?? key.bytes] where !uris.contains(uri) {
            uris.append(uri)
        }
    }

    /// The keys of all routes that may have stored a response for it.
    package func keys(under policy: PolicySnapshot) -> [CacheKey] {
        uris.flatMap { CacheKey(bytes: $0).alongAllRoutes(under: policy) }
    }
}

extension CacheKey {
    /// The keys of the same URI for all kinds of routes, and all ways that rules name.
    package func alongAllRoutes(under policy: PolicySnapshot) -> [CacheKey] {
        CacheRoute.all.flatMap { route in
            ([nil] + policy.numbersOfRuleWays.map { $0 }).map { along(route, by: $0) }
        }
    }
}
