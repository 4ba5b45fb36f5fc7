import PinfoldConfiguration
import Trust

/// Checks whether an entry's rules for requests and responses apply to any request, and which
/// requests bypass them.
extension SnapshotReader {
    func checkRuleReach(_ field: Field?, _ snapshot: ConfigurationSnapshot) {
        let hosts = snapshot.hosts.entries
        // With errors in the lists, entries and fields do not correspond.
        guard let elements = field?.elements, elements.count == hosts.count else { return }
        for (index, (element, entry)) in zip(elements, hosts).enumerated() {
            checkCache(element, entry, snapshot.cache)
            warnOfForm(element, entry, snapshot.cache)
            let ways = RuleWays(snapshot, index)
            if entry.hasRules { check(ways, element, entry) }
            if let authorization = entry.request.authorization {
                warn(of: authorization, ways, element, entry)
            }
        }
    }

    /// Reports rules that apply to no request, and warns of tunnels that bypass them.
    private func check(_ ways: RuleWays, _ element: Field, _ entry: HostEntry) {
        let key = entry.response.isEmpty ? "request" : "response"
        let place = element.key(key) ?? element
        let remedy = "intercept: true, upgrade: https, or a reverse listener for these hosts"
        if !ways.hasForward, ways.reverse.isEmpty {
            return place.fail(
                "applies to no request: there is no forward listener, and no reverse listener "
                    + "leads to these hosts", expected: "a listener that does")
        }
        guard let tunnels = ways.passedTunnels else { return }
        if ways.isSeen {
            place.warn(
                "does not apply to \(tunnels) to these hosts, which the gateway cannot read; write "
                    + (ways.intercepts
                        ? "tunnel: refuse to prevent that"
                        : "intercept: true, or tunnel: refuse to prevent that"))
        } else {
            let clearText =
                ways.isTLSOnly ? "the entry is for port 443" : "clear text to them is refused"
            place.fail(
                "applies to no request: the gateway cannot read \(tunnels) to these hosts, and "
                    + clearText, expected: remedy)
        }
    }

    private func checkCache(
        _ element: Field, _ entry: HostEntry, _ cache: CacheConfiguration
    ) {
        let policy = entry.request.cachePolicy
        guard policy == .returnCacheElseLoad || policy == .returnCacheDontLoad,
            let place = element.key("request")?.key("cachePolicy")
        else { return }
        if !cache.storesAnything {
            place.fail(
                "\(policy.rawValue) requires a cache, but there is none",
                expected: "useProtocol, or a cache")
        } else if !entry.cacheStores {
            place.fail(
                "\(policy.rawValue) requires stored responses, but cache.store is false",
                expected: "useProtocol, or cache: { store: true }")
        }
    }

    /// Warns of `cache.form` if responses are not changed or not stored.
    private func warnOfForm(
        _ element: Field, _ entry: HostEntry, _ cache: CacheConfiguration
    ) {
        guard entry.response.cacheForm == .origin,
            let place = element.key("cache")?.key("form")
        else { return }
        if !entry.response.translates {
            place.warn(
                "has no effect unless response changes content (body, or image with convert or "
                    + "scale)")
        } else if !cache.storesAnything {
            place.warn("has no effect without a cache")
        } else if !entry.cacheStores {
            place.warn("has no effect with store: false")
        }
    }

    private func warn(
        of authorization: RequestAuthorization, _ ways: RuleWays, _ element: Field,
        _ entry: HostEntry
    ) {
        guard let place = element.key("request")?.key("authorization") else { return }
        if authorization.allowsClearText {
            if entry.upgradesToHTTPS {
                place.key("clearText")?.warn("has no effect with upgrade: https")
            }
        } else if ways.isClearTextOnly {
            place.warn(
                "is never added: all requests that the gateway can read are sent in clear "
                    + "text, for which it is refused; write upgrade: https, or clearText: allow "
                    + "here to let anyone on the network path read it")
        }
    }
}

extension HostEntry {
    /// Whether requests or responses are changed or checked.
    fileprivate var hasRules: Bool {
        var request = request
        // This concerns only the cache, which tunnels do not use.
        request.cachePolicy = .useProtocol
        return request != RequestRules() || !response.isEmpty
    }
}

extension CacheConfiguration {
    fileprivate var storesAnything: Bool { isEnabled && (memoryBytes > 0 || diskBytes > 0) }
}
