import HTTPCore
import PinfoldConfiguration

// The ways that rules of `access.rules` name for the requests that they allow. For such requests an
// origin is another one, with other ways and, in clear text, another part of the cache: it leads to
// the connections of the first by these ways.

extension OriginTable {
    /// The origin for a request whose rule names ways.
    /// - Parameter names: those; empty if it names none.
    func origin(of base: Origin, by names: [WayName]) -> Origin {
        // A route with several servers may have some on sockets, and others that are not.
        guard !names.isEmpty, base.balancer != nil || base.key.unixPath == nil else { return base }
        return ruled(base, names)
    }
}

extension Origin {
    /// Whether rules may name the ways for requests to it. One of several servers may have another
    /// host than the one that the rules are asked about.
    var mayBeRuled: Bool {
        rules?.haveWays ?? false
            || key.set != nil && policy.accessRules?.decideOnWays ?? false
    }
}

extension PolicySnapshot {
    /// A number for ways in keys of the cache, whatever their order.
    func number(ofWays names: [WayName]) -> UInt64 { configuration.number(ofWays: names) }

    /// The trust under which responses are obtained by other ways.
    func fingerprint(_ trust: TrustFingerprint, by names: [WayName]) -> TrustFingerprint {
        var form = TrustForm()
        form.add(-5)
        form.add(trust.digest.bytes)
        for url in configuration.written(names) { form.add(url.utf8) }
        // Without a digest, the part of the cache is another one still.
        return (try? TrustFingerprint(form)) ?? trust
    }
}

extension ConfigurationSnapshot {
    fileprivate func number(ofWays names: [WayName]) -> UInt64 {
        FNV1a.hash(written(names).joined(separator: "\n"))
    }

    /// The numbers of all ways that rules name.
    /// - Parameter former: those of configurations before.
    func numbersOfRuleWays(besides former: Set<UInt64>?) -> Set<UInt64> {
        access.rules.map(\.parents).filter { !$0.isEmpty }
            .reduce(into: former ?? []) { $0.insert(number(ofWays: $1)) }
    }

    /// Where ways lead, whatever their order: whoever forwards a request in clear text may answer
    /// as it likes, and nothing else about the ways says what may be stored.
    func written(_ ways: [WayName]) -> [String] {
        ways.map { way in
            switch way {
            case .direct: way.text
            case .parent(let name): parent(named: name)?.url ?? name
            }
        }.sorted()
    }
}

extension Exchange {
    /// Goes on by the ways that a rule names.
    /// - Returns: the origin by these ways.
    func goes(by judgement: AccessRules.Judgement, of rules: HostRules, to origin: Origin) -> Origin
    {
        let names = rules.ways(by: judgement)
        guard !names.isEmpty else { return origin }
        let ruled = origins.origin(of: origin, by: names)
        forwarding.go(to: ruled)
        return ruled
    }

    /// The origin by the ways that apply under the current rules, which are asked again after a
    /// reload.
    /// - Throws: if they do not allow the request any more.
    func renewed(_ found: Origin) throws(ExchangeError) -> Origin {
        guard let rules = found.rules, rules.haveWays || origin?.key.ruleWays != nil else {
            return found
        }
        guard let request = accessRequest(scope: .path) else {
            // A request of the gateway's own goes on by its ways as long as they are there.
            let names = origin?.key.ruleWays ?? []
            let known = Set(environment.policy.configuration.parents.map(\.name))
            let areThere = names.allSatisfy { way in
                if case .parent(let name) = way { known.contains(name) } else { true }
            }
            guard areThere else { throw .gateway(.superseded) }
            return origins.origin(of: found, by: names)
        }
        let judgement = rules.judge(request)
        if let refusal = rules.refusal(judgement) { throw refusal }
        return origins.origin(of: found, by: rules.ways(by: judgement))
    }
}

extension Environment {
    /// The origin of an intercepted tunnel's host over TLS, by the ways that the rule names which
    /// allows it.
    /// - Parameter request: what asked for the tunnel, for rules; `nil` if none apply.
    func origin(
        ofTunnelTo authority: BoundAuthority, for request: @autoclosure () -> AccessRequest?,
        _ policy: PolicySnapshot
    ) -> Origin? {
        let found = origins.origin(
            host: authority.host.utf8.span, port: authority.port, scheme: .https, policy: policy)
        return found.map {
            origins.origin(of: $0, by: policy.ruleWays(ofIntercepted: request(), to: authority))
        }
    }
}
