import AccessPolicy
import Authentication
import HTTPCore
import PinfoldConfiguration

extension RouteExplanation {
    /// Who asks, and how, as far as rules look at that.
    package struct Asker: Sendable {
        package var client = IPAddress.v4(0x7F00_0001)
        package var method = "GET"
        /// Who asks; `nil` for somebody unknown.
        package var identity: Identity?
        /// The name of the forward listener; `nil` for the first one.
        package var listener: String?

        package init() {}
    }

    /// What the rules of `access.rules` say of a form of request.
    package struct RuleExplanation: Sendable {
        /// The listener that it comes through.
        package let listener: String
        /// Why it is refused; `nil` if it is not.
        package let refusal: ExchangeError?
        /// The rule that decides; `nil` for the default.
        package let rule: String?
        /// The rules before it that only report.
        package let reported: [String]
        /// The rates of these rules, each with its name: that of the rule that decides, and those
        /// that are only reported.
        package let rates: [(rule: String, limits: RateLimits)]
        /// The ways that the rule names which decides; empty if it names none.
        package let wayNames: [WayName]
        /// The same as they are tried; `nil` if it names none.
        package let proxyWays: [ProxyWay]?
    }

    /// The listener of clients that ask a proxy, if nobody says which.
    private static func firstForward(_ policy: PolicySnapshot) -> ListenerConfiguration? {
        policy.configuration.listeners.first { $0.kind.isForward && !$0.kind.isTransparent }
    }

    /// How the rule that allows CONNECT has the tunnel handled.
    static func tunnelSettings(
        _ target: TargetURL, _ asker: Asker, _ policy: PolicySnapshot, now: Int64
    ) -> TunnelSettings {
        let forward = firstForward(policy)
        let request = AccessRequest(
            subject: AccessRules.Subject(
                listener: asker.listener ?? forward?.name ?? "", client: asker.client,
                identity: asker.identity, method: .connect),
            methodName: Array("CONNECT".utf8), scope: .authority, path: [], at: now)
        return policy.tunnelSettings(
            for: request, to: BoundAuthority(host: target.host, port: target.port))
    }

    /// What the rules say; `nil` if there are none.
    /// - Parameter way: how such a request is handled otherwise.
    static func judge(
        _ form: RequestForm, _ way: Handling, _ target: TargetURL, _ asker: Asker,
        _ policy: PolicySnapshot, now: Int64
    ) -> RuleExplanation? {
        guard policy.accessRules != nil else { return nil }
        let listener: String
        switch form {
        case .reverse(let name), .transparent(let name): listener = name
        case .connect, .absolute:
            let forward = firstForward(policy)
            listener = asker.listener ?? forward?.name ?? ""
        }
        let rules = policy.rules(host: target.host, port: target.port)
        func judge(_ method: String, _ scope: AccessRules.Scope) -> RuleExplanation {
            let known = Method.allCases.first { "\($0.name)" == method } ?? .other
            let request = AccessRequest(
                subject: AccessRules.Subject(
                    listener: listener, client: asker.client, identity: asker.identity,
                    method: known),
                methodName: Array(method.utf8), scope: scope,
                path: scope == .path ? target.path : [], at: now)
            guard let rules else {
                return RuleExplanation(
                    listener: listener, refusal: nil, rule: nil, reported: [], rates: [],
                    wayNames: [], proxyWays: nil)
            }
            let judgement = rules.judge(request)
            let names = target.unixPath == nil ? rules.ways(by: judgement) : []
            return RuleExplanation(
                listener: listener, refusal: rules.refusal(judgement),
                rule: judgement.rule.map(rules.name), reported: judgement.reported.map(rules.name),
                rates: (judgement.reported + (judgement.rule.map { [$0] } ?? [])).compactMap {
                    index in
                    rules.rules.rules[index].rate.map { (rules.name(of: index), $0) }
                },
                wayNames: names,
                proxyWays: names.isEmpty
                    ? nil
                    : proxyWays(
                        policy.ways(
                            to: BoundAuthority(host: target.host, port: target.port), by: names)))
        }
        let isTunnel =
            switch form {
            case .connect: true
            case .transparent: target.isSecure
            case .absolute, .reverse: false
            }
        guard isTunnel else { return judge(asker.method, .path) }
        switch way {
        case .intercept, .interceptOrPass, .interceptOrInspect:
            let tunnel = judge("CONNECT", .interceptedTunnel)
            return tunnel.refusal == nil ? judge(asker.method, .path) : tunnel
        case .refused, .tunnel, .inspect, .upgrade, .verified, .clearText:
            return judge("CONNECT", .authority)
        }
    }
}
