import AccessPolicy
import HTTPCore
import Trust

/// A rule of `access.rules`: what happens to the requests that fulfil all of its conditions. A
/// condition that is empty is fulfilled by every request.
package struct AccessRule: Sendable, Equatable {
    /// What happens.
    package enum Action: Sendable, Equatable {
        /// The request is served, as far as nothing else refuses it.
        case allow
        /// The request is refused.
        case deny(AccessDenial)
        /// The match is logged and counted, and the next rule is tried.
        case report

        /// The word in configurations.
        package var name: String {
            switch self {
            case .allow: "allow"
            case .deny: "deny"
            case .report: "report"
            }
        }
    }

    package var name = ""
    /// The names of the listeners that the request comes through.
    package var listeners: [String] = []
    /// The networks of the client's address.
    package var clients: [IPNetwork] = []
    /// The names of those who ask, where the listener wants to know. A request of nobody known
    /// fulfils neither this nor ``groups``.
    package var users: [String] = []
    /// The groups of those who ask.
    package var groups: [String] = []
    /// The requested host.
    package var hosts: [HostPattern] = []
    /// The names of lists that the requested host is in.
    package var lists: [String] = []
    /// The requested port.
    package var ports: [UInt16] = []
    /// The method, in upper case; CONNECT for a tunnel.
    package var methods: [String] = []
    /// The path, if the gateway can see it.
    package var paths: [PathPattern] = []
    /// The local time.
    package var times: [WeeklyHours] = []
    package var action = Action.allow
    /// How much of the requests that it decides may pass; `nil` for any number.
    package var rate: RateLimits?
    /// How tunnels that it allows are handled.
    package var tunnels = TunnelSettings.none
    /// The ways of the requests that it allows, in the order in which they are tried; empty for
    /// those of their host.
    package var parents: [WayName] = []

    package init() {}

    /// Whether every request that fulfils the conditions of another rule fulfils these as well, as
    /// far as that is obvious.
    package func covers(_ other: AccessRule) -> Bool {
        func all<Value: Equatable>(_ mine: [Value], _ others: [Value]) -> Bool {
            mine.isEmpty || !others.isEmpty && others.allSatisfy(mine.contains)
        }
        return all(listeners, other.listeners) && all(users, other.users)
            && all(groups, other.groups) && all(lists, other.lists) && all(ports, other.ports)
            && all(methods, other.methods) && all(paths, other.paths) && all(times, other.times)
            && coversClients(of: other) && coversHosts(of: other)
    }

    private func coversClients(of other: AccessRule) -> Bool {
        if clients.isEmpty { return true }
        return !other.clients.isEmpty
            && other.clients.allSatisfy { inner in
                clients.contains {
                    $0.contains(client: inner.address) && $0.prefixLength <= inner.prefixLength
                }
            }
    }

    private func coversHosts(of other: AccessRule) -> Bool {
        if hosts.isEmpty || hosts.contains(.everything) { return true }
        var coverage = PatternCoverage<Void>()
        for pattern in hosts { coverage.insert(pattern, owner: ()) }
        return !other.hosts.isEmpty
            && other.hosts.allSatisfy { coverage.owner(covering: $0) != nil }
    }
}

/// How a rule refuses requests.
package struct AccessDenial: Sendable, Equatable {
    /// The status of the reply.
    package var status: UInt16 = 403
    /// The content of the reply in place of the gateway's own; `nil` for that.
    package var page: DenialPage?

    package init() {}
}

/// A page with which a rule refuses requests.
package typealias DenialPage = PageTemplate<DenialPageValue>

/// What a name in double braces stands for in the page of a rule.
package enum DenialPageValue: String, Sendable, Equatable, CaseIterable {
    /// The requested host and, if it is not the scheme's, its port.
    case host
    /// The request's target, without userinfo.
    case url
    /// The name of the rule.
    case rule
    /// The client's address.
    case client
    /// The number under which the request is logged.
    case id
}
