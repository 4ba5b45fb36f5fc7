import Clocks
import HTTPCore
import PinfoldConfiguration
import PinfoldMetrics

/// The rules of `access.rules` for the requests to one host and port: those whose conditions on
/// these are fulfilled.
final class HostRules: Sendable {
    let rules: AccessRules
    /// Whether any of them has a rate.
    let haveRates: Bool
    /// Whether any of them names ways.
    let haveWays: Bool
    /// In their order.
    private let candidates: [Int]
    private let counts: [EventCounts<RuleEvent>]
    private let filter: RuleFilter

    fileprivate init(
        _ rules: AccessRules, _ candidates: [Int], _ counts: [EventCounts<RuleEvent>]
    ) {
        self.rules = rules
        self.candidates = candidates
        self.counts = counts
        haveRates = candidates.contains { rules.rules[$0].rate != nil }
        haveWays = candidates.contains { !rules.rules[$0].parents.isEmpty }
        filter = RuleFilter(candidates.map { rules.rules[$0] })
    }

    /// Whether nothing but the default decides, and it is to serve the request.
    /// - Parameter isKnown: whether somebody has proved who asks.
    func allowsAtOnce(_ method: Method, from client: IPAddress, isKnown: Bool) -> Bool {
        rules.allowsByDefault && !filter.mayMatch(method, from: client, isKnown: isKnown)
    }

    /// Judges a request; see ``AccessRules/judge(_:_:methodName:scope:path:minuteOfWeek:)``.
    func judge(
        _ subject: AccessRules.Subject, methodName: Span<UInt8>, scope: AccessRules.Scope,
        path: Span<UInt8>, minuteOfWeek: () -> Int
    ) -> AccessRules.Judgement {
        rules.judge(
            subject, candidates, methodName: methodName, scope: scope, path: path,
            minuteOfWeek: minuteOfWeek)
    }

    /// The same for a request that was kept, as of the time at which it was made.
    func judge(_ request: AccessRequest) -> AccessRules.Judgement {
        judge(
            request.subject, methodName: request.methodName.span, scope: request.scope,
            path: request.path.span,
            minuteOfWeek: { Clock.localMinuteOfWeek(at: request.seconds) })
    }

    /// Whether a tunnel may be relayed in which the gateway would otherwise judge each request:
    /// only if all that may be requested in it is allowed, like the tunnel itself.
    func allowsUnseen(in tunnel: AccessRequest) -> Bool {
        judge(tunnel).verdict == .allowed
            && rules.allowsEveryRequest(
                tunnel.subject, candidates,
                minuteOfWeek: { Clock.localMinuteOfWeek(at: tunnel.seconds) })
    }

    /// The ways that the rule names which decides; empty if it names none.
    func ways(by judgement: AccessRules.Judgement) -> [WayName] {
        guard case .allowed = judgement.verdict else { return [] }
        return judgement.rule.map { rules.rules[$0].parents } ?? []
    }

    /// The ways to the server of a tunnel in which each request will be judged itself.
    func ways(ofIntercepted tunnel: AccessRequest) -> [WayName] {
        let judgement = judge(tunnel)
        if case .allowed = judgement.verdict { return ways(by: judgement) }
        let first = rules.firstToAllowSome(
            tunnel.subject, candidates,
            minuteOfWeek: { Clock.localMinuteOfWeek(at: tunnel.seconds) })
        return first.map { rules.rules[$0].parents } ?? []
    }

    func name(of rule: Int) -> String { rules.rules[rule].name }

    /// The name of a rule, in UTF-8.
    func nameBytes(of rule: Int) -> [UInt8] { rules.names[rule] }

    func counts(of rule: Int) -> EventCounts<RuleEvent> { counts[rule] }

    /// Counts the rule that decided, and those that reported.
    func count(_ judgement: AccessRules.Judgement) {
        if let rule = judgement.rule { counts[rule].add(to: .matched) }
        for rule in judgement.reported { counts[rule].add(to: .matched) }
    }

    /// Why a request that was judged is refused; `nil` if it is not.
    func refusal(_ judgement: AccessRules.Judgement) -> ExchangeError? {
        switch judgement.verdict {
        case .allowed: return nil
        case .ambiguous: return .access(.ambiguousPath)
        case .denied:
            guard let index = judgement.rule, case .deny(let denial) = rules.rules[index].action
            else { return .access(.deniedByDefault) }
            return .deniedByRule(RuleDenial(rule: rules.rules[index].name, denial))
        }
    }
}

/// A request as rules see it, without its host and port.
package struct AccessRequest: Sendable {
    package var subject: AccessRules.Subject
    /// The name of the method.
    package var methodName: [UInt8]
    package var scope: AccessRules.Scope
    /// The path as sent, without the query.
    package var path: [UInt8]
    /// When it was made, in seconds since 1970 (UTC): rules about times judge it by that, however
    /// long it takes.
    package var seconds: Int64

    package init(
        subject: AccessRules.Subject, methodName: [UInt8], scope: AccessRules.Scope,
        path: [UInt8], at seconds: Int64
    ) {
        self.subject = subject
        self.methodName = methodName
        self.scope = scope
        self.path = path
        self.seconds = seconds
    }
}

/// A rule's refusal of a request.
package final class RuleDenial: Sendable {
    /// The name of the rule.
    package let rule: String
    private let denial: AccessDenial

    init(rule: String, _ denial: AccessDenial) {
        self.rule = rule
        self.denial = denial
    }

    /// The status of the reply.
    package var status: UInt16 { denial.status }
    /// The content of the reply; `nil` for the gateway's own.
    var page: DenialPage? { denial.page }
}

extension PolicySnapshot {
    /// The rules that requests to a host may match; `nil` if all of them are served.
    /// - Parameter port: the port that the request names.
    func rules(host: String, port: UInt16) -> HostRules? {
        guard let accessRules else { return nil }
        let candidates = accessRules.candidates(host: host.utf8.span, port: port)
        if candidates.isEmpty, accessRules.allowsByDefault { return nil }
        return HostRules(accessRules, candidates, ruleCounts)
    }

    /// How the rule that allows a CONNECT has its tunnel handled.
    /// - Parameter request: the request for the tunnel; `nil` if no rule applies to it.
    package func tunnelSettings(
        for request: AccessRequest?, to authority: BoundAuthority
    ) -> TunnelSettings {
        guard let accessRules, accessRules.decideOnTunnels, var request,
            let rules = rules(host: authority.host, port: authority.port)
        else { return .none }
        request.scope = .authority
        let judgement = rules.judge(request)
        guard case .allowed = judgement.verdict, let rule = judgement.rule else { return .none }
        return accessRules.rules[rule].tunnels
    }
}
