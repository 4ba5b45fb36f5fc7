import AccessPolicy
import Authentication
import HTTPCore
import Trust

/// The rules of `access.rules`, ready to be applied: the first one that matches decides.
package final class AccessRules: Sendable {
    package let rules: [AccessRule]
    /// Their names, in UTF-8.
    package let names: [[UInt8]]
    /// Whether a request that no rule matches is served (`access.default`).
    package let allowsByDefault: Bool
    /// Whether any of them says how tunnels are handled.
    package let decideOnTunnels: Bool
    /// Whether any of them names ways.
    package let decideOnWays: Bool
    /// The index of each rule's host patterns; `nil` if it applies to all hosts.
    private let hosts: [HostIndex?]
    private let methods: [MethodSet?]
    /// Which of the other conditions each rule has.
    private let conditions: [Conditions]
    /// The lists that each rule names.
    private let lists: [[DomainList]]

    /// - Parameter lists: the lists that rules may name.
    /// - Returns: `nil` if every request is served.
    package init?(
        _ rules: [AccessRule], lists: [AccessList] = [], allowsByDefault: Bool
    ) {
        if rules.isEmpty, allowsByDefault { return nil }
        self.rules = rules
        names = rules.map { Array($0.name.utf8) }
        self.allowsByDefault = allowsByDefault
        decideOnTunnels = rules.contains { $0.tunnels != .none }
        decideOnWays = rules.contains { !$0.parents.isEmpty }
        hosts = rules.map { rule in
            rule.hosts.isEmpty || rule.hosts.contains(.everything)
                ? nil : HostIndex(patterns: [rule.hosts])
        }
        methods = rules.map { $0.methods.isEmpty ? nil : MethodSet($0.methods) }
        conditions = rules.map(Conditions.init)
        self.lists = rules.map { rule in
            rule.lists.compactMap { name in lists.first { $0.name == name }?.domains }
        }
    }

    /// Conditions that are neither about the origin nor about the method. Without one it is not
    /// looked for in the rule.
    private struct Conditions: OptionSet, Sendable {
        let rawValue: UInt8
        init(rawValue: UInt8) { self.rawValue = rawValue }

        static let clients = Conditions(rawValue: 1)
        static let listeners = Conditions(rawValue: 2)
        static let identity = Conditions(rawValue: 4)
        static let times = Conditions(rawValue: 8)
        static let paths = Conditions(rawValue: 16)

        init(_ rule: AccessRule) {
            self = []
            if !rule.clients.isEmpty { insert(.clients) }
            if !rule.listeners.isEmpty { insert(.listeners) }
            if !rule.users.isEmpty || !rule.groups.isEmpty { insert(.identity) }
            if !rule.times.isEmpty { insert(.times) }
            if !rule.paths.isEmpty { insert(.paths) }
        }
    }

    /// Methods by name, which is case-sensitive (RFC 9110 §9.1).
    private struct MethodSet: Sendable {
        private var known: UInt16 = 0
        private var others: [[UInt8]] = []

        init(_ names: [String]) {
            for name in names {
                if let method = Method.allCases.first(where: { "\($0.name)" == name }) {
                    known |= 1 << UInt16(method.rawValue)
                } else {
                    others.append(Array(name.utf8))
                }
            }
        }

        func contains(_ method: Method, _ name: Span<UInt8>) -> Bool {
            if method != .other { return known & 1 << UInt16(method.rawValue) != 0 }
            for other in others where other.count == name.count {
                if other.indices.allSatisfy({ other[$0] == name[$0] }) { return true }
            }
            return false
        }
    }

    /// The rules whose conditions on host and port are fulfilled, in their order.
    ///
    /// An address that delivers to an IPv4 address that it embeds (``IPAddress/embeddedV4``) is
    /// denied like that one, but not allowed like it.
    /// - Parameters:
    ///   - host: The host name, or the address without brackets; no port.
    ///   - port: The port of the request's target.
    package func candidates(host: Span<UInt8>, port: UInt16) -> [Int] {
        let embedded = IPAddress(literal: host)?.embeddedV4s.map(\.description) ?? []
        return rules.indices.filter { index in
            let ports = rules[index].ports
            guard ports.isEmpty || ports.contains(port) else { return false }
            if isAbout(host, port, index) { return true }
            if case .allow = rules[index].action { return false }
            return embedded.contains { isAbout($0.utf8.span, port, index) }
        }
    }

    /// Whether a rule's conditions on the host are fulfilled.
    private func isAbout(_ host: Span<UInt8>, _ port: UInt16, _ index: Int) -> Bool {
        if let table = hosts[index], table.entry(host: host, port: port) == nil { return false }
        return rules[index].lists.isEmpty || isListed(host, by: index)
    }

    private func isListed(_ host: Span<UInt8>, by index: Int) -> Bool {
        for list in lists[index] where list.contains(host: host) { return true }
        return false
    }

    /// What the rules say of a request.
    package struct Judgement: Sendable, Equatable {
        package enum Verdict: Sendable, Equatable {
            case allowed
            case denied
            /// It depends on how its path is read.
            case ambiguous
        }

        package var verdict: Verdict
        /// The rule that decides; `nil` for the default.
        package var rule: Int?
        /// The rules before it that only report, in their order.
        package var reported: [Int] = []

        /// Whether the request fares no better and no worse. Rules that report decide nothing.
        func decidesLike(_ other: Judgement) -> Bool {
            verdict == other.verdict && (verdict == .allowed || rule == other.rule)
        }
    }

    /// What a request is, as far as it is not in its origin.
    package struct Subject: Sendable {
        package var listener: String
        package var client: IPAddress
        /// Who asks; `nil` if that is not known.
        package var identity: Identity?
        package var method: Method

        package init(
            listener: String, client: IPAddress, identity: Identity? = nil, method: Method
        ) {
            self.listener = listener
            self.client = client
            self.identity = identity
            self.method = method
        }
    }

    /// What can be seen of a request's target behind its authority.
    package enum Scope: Sendable, Equatable {
        /// Its path.
        case path
        /// Nothing: the tunnel is relayed, or it is a request without a path.
        case authority
        /// Nothing yet: the requests in the tunnel will be judged themselves. A rule that allows
        /// some of them allows the tunnel.
        case interceptedTunnel
    }

    /// Judges a request.
    /// - Parameters:
    ///   - candidates: the rules for its host and port.
    ///   - methodName: the name of a method that has no case.
    ///   - path: the path as sent, without the query.
    ///   - minuteOfWeek: the minute of the week in local time; called only if a rule needs it.
    package func judge(
        _ subject: Subject, _ candidates: [Int], methodName: Span<UInt8>, scope: Scope,
        path: Span<UInt8>, minuteOfWeek: () -> Int
    ) -> Judgement {
        func judgement(of path: Span<UInt8>) -> Judgement {
            judge(subject, candidates, methodName, scope, path, minuteOfWeek)
        }
        guard case .path = scope, candidates.contains(where: { conditions[$0].contains(.paths) }),
            !PathForms.isPlain(path)
        else { return judgement(of: path) }
        guard let forms = PathForms(of: path) else {
            return Judgement(verdict: .ambiguous, rule: nil)
        }
        let canonical = judgement(of: forms.canonical.span)
        guard canonical.decidesLike(judgement(of: forms.lenient.span)),
            canonical.decidesLike(judgement(of: forms.cut.span)),
            path.count == 0 || canonical.decidesLike(judgement(of: path))
        else { return Judgement(verdict: .ambiguous, rule: nil) }
        return canonical
    }

    /// Whether all requests that may be in a tunnel are allowed, whatever their methods and paths.
    package func allowsEveryRequest(
        _ subject: Subject, _ candidates: [Int], minuteOfWeek: () -> Int
    ) -> Bool {
        for index in candidates where matches(index, subject, minuteOfWeek) {
            switch rules[index].action {
            case .report: continue
            // There is no CONNECT in a tunnel.
            case .deny: guard rules[index].methods == ["CONNECT"] else { return false }
            case .allow:
                guard rules[index].methods.isEmpty, rules[index].paths.isEmpty else { continue }
                return true
            }
        }
        return allowsByDefault
    }

    /// The first rule that allows an intercepted tunnel, or some of the requests in it; `nil` if
    /// none does.
    package func firstToAllowSome(
        _ subject: Subject, _ candidates: [Int], minuteOfWeek: () -> Int
    ) -> Int? {
        for index in candidates where matches(index, subject, minuteOfWeek) {
            switch rules[index].action {
            case .report: continue
            case .allow: return index
            case .deny: guard isAboutRequests(index) else { return nil }
            }
        }
        return nil
    }

    private func judge(
        _ subject: Subject, _ candidates: [Int], _ methodName: Span<UInt8>, _ scope: Scope,
        _ path: Span<UInt8>, _ minuteOfWeek: () -> Int
    ) -> Judgement {
        var reported: [Int] = []
        for index in candidates {
            guard matches(index, subject, minuteOfWeek) else { continue }
            if case .interceptedTunnel = scope, isAboutRequests(index) {
                guard case .allow = rules[index].action else { continue }
                return Judgement(verdict: .allowed, rule: nil, reported: reported)
            }
            if let methods = methods[index], !methods.contains(subject.method, methodName) {
                continue
            }
            if conditions[index].contains(.paths) {
                guard case .path = scope, matchesPath(index, path) else { continue }
            }
            switch rules[index].action {
            case .allow: return Judgement(verdict: .allowed, rule: index, reported: reported)
            case .deny: return Judgement(verdict: .denied, rule: index, reported: reported)
            case .report: reported.append(index)
            }
        }
        return Judgement(
            verdict: allowsByDefault ? .allowed : .denied, rule: nil, reported: reported)
    }

    /// Whether the conditions that are neither in the origin nor in the request line are fulfilled.
    @inline(__always)
    private func matches(
        _ index: Int, _ subject: Subject, _ minuteOfWeek: () -> Int
    ) -> Bool {
        let conditions = conditions[index]
        if conditions.contains(.clients), !isFrom(subject.client, rules[index]) { return false }
        if conditions.contains(.listeners), !rules[index].listeners.contains(subject.listener) {
            return false
        }
        if conditions.contains(.identity) {
            guard let identity = subject.identity, isNamed(identity, by: rules[index]) else {
                return false
            }
        }
        guard conditions.contains(.times) else { return true }
        let minute = minuteOfWeek()
        return rules[index].times.contains { $0.contains(minuteOfWeek: minute) }
    }

    private func isFrom(_ client: IPAddress, _ rule: AccessRule) -> Bool {
        for network in rule.clients where network.contains(client: client) { return true }
        if case .allow = rule.action { return false }
        return client.embedsV4 { address in
            rule.clients.contains { $0.contains(address) }
        }
    }

    private func isNamed(_ identity: Identity, by rule: AccessRule) -> Bool {
        (rule.users.isEmpty || rule.users.contains(identity.user))
            && (rule.groups.isEmpty || rule.groups.contains(where: identity.isMember))
    }

    /// Whether a rule is about requests in tunnels, and not about tunnels.
    private func isAboutRequests(_ index: Int) -> Bool {
        let rule = rules[index]
        return !rule.paths.isEmpty || !rule.methods.isEmpty && !rule.methods.contains("CONNECT")
    }

    private func matchesPath(_ index: Int, _ path: Span<UInt8>) -> Bool {
        for pattern in rules[index].paths where pattern.matches(path) { return true }
        return false
    }
}
