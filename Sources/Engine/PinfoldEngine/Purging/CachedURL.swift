import CachePolicy
import HTTPCore
import PinfoldConfiguration

/// The URIs under which responses for a URL may be stored.
///
/// A URL of a host is stored as it is, or with https where its entry of `hosts` upgrades it; one of
/// a reverse listener, by the address at which it listens, as one of its upstream.
package struct CachedURL: Sendable, Equatable {
    /// `scheme://host[:port]/path?query`, in the form of cache keys; each once.
    package private(set) var uris: [[UInt8]] = []
    private let isPrefix: Bool

    /// - Parameters:
    ///   - url: as a client would request it; a fragment is left out.
    ///   - isPrefix: whether it is the beginning of URLs, to which the rules for keys of whole ones
    ///     (`hosts[].cache.key`) cannot be applied.
    /// - Throws: the error for which a request with this URL would be refused.
    package init(
        _ url: String, isPrefix: Bool = false, under policy: PolicySnapshot
    ) throws(WireError) {
        self.isPrefix = isPrefix
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
        add(head.scheme, host, head.port, path, policy)
        let target = policy.target(
            host: host, port: head.port, by: .request(isSecure: head.scheme == .https))
        add(target.isSecure ? .https : .http, host, target.port, path, policy)
        let address = IPAddress(host)
        for listener in policy.configuration.listeners
        where listener.address.port == head.port && listener.unix == nil {
            let own = listener.address.address.unmapped
            guard own == address?.unmapped || own.scope == .unspecified || host == "localhost"
            else { continue }
            add(listener, path, policy)
        }
    }

    /// What a reverse listener's path is stored as.
    private mutating func add(
        _ listener: ListenerConfiguration, _ path: [UInt8], _ policy: PolicySnapshot
    ) {
        switch listener.kind {
        case .reverse(let upstream):
            if let socket = upstream.unixPath {
                let name = String(hexadecimal: FNV1a.hash(socket), digits: 16)
                return add(.http, "\(name).unix.invalid", 80, path, policy)
            }
            add(
                upstream.scheme == .https ? .https : .http, upstream.host, upstream.port, path,
                policy)
        case .balanced(let set):
            guard let first = set.servers.first?.origin else { return }
            let scheme: Scheme = first.scheme == .https ? .https : .http
            add(
                scheme, "\(listener.name).upstreams.invalid", scheme.defaultPort, path, policy)
        case .forward, .socks5, .transparent: break
        }
    }

    private mutating func add(
        _ scheme: Scheme, _ host: String, _ port: UInt16, _ path: [UInt8],
        _ policy: PolicySnapshot
    ) {
        let memory = UnsafeMutableRawBufferPointer.allocate(
            byteCount: CacheKey.maximumBytes, alignment: 1)
        defer { memory.deallocate() }
        let view = CacheKeyView.write(
            scheme: scheme, host: Array(host.utf8).span, port: port, path: path.span,
            into: memory)
        guard let view else { return }
        let rules =
            isPrefix
            ? nil : policy.cacheRules(entryIndex: policy.entry(host: host, port: port))
        let uri = rules?.keyed(CacheKey(view)).bytes ?? [UInt8](view.bytes)
        if !uris.contains(uri) { uris.append(uri) }
    }

    /// The keys of all routes that may have stored a response for it.
    package func keys(under policy: PolicySnapshot) -> [CacheKey] {
        uris.flatMap { uri -> [CacheKey] in
            let key = CacheKey(bytes: uri)
            return CacheRoute.all.flatMap { route in
                ([nil] + policy.numbersOfRuleWays.map { $0 }).map { key.along(route, by: $0) }
            }
        }
    }
}
