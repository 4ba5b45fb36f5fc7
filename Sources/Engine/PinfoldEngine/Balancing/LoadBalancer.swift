import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldMetrics
import ProxyProtocols

/// Where the requests of a reverse listener with several servers go: known by the listener's name,
/// so that a reload may change the servers.
package struct BalancedRoute: Sendable, Hashable {
    package let listener: String
    package let isSecure: Bool
    /// Which fields tell the servers about the client's side.
    package let forwarding: ForwardingConfiguration

    package init(listener: String, isSecure: Bool, forwarding: ForwardingConfiguration) {
        self.listener = listener
        self.isSecure = isSecure
        self.forwarding = forwarding
    }
}

/// One worker's view of the servers of a set: their origins, and whose turn it is.
final class LoadBalancer {
    let set: ServerSet
    /// In the order of the set.
    let servers: [Origin]
    /// What is configured of each, apart from what is not needed for every request.
    private let rules: [Rule]
    private var turns: SmoothRoundRobin
    /// The weights at the moment, in thousandths.
    private var weights: [Int]
    private let seeds: [UInt64]

    private struct Rule {
        let weight: Int
        let isBackup: Bool
        /// `Int.max`: without a limit of its own.
        let maxConnections: Int

        init(_ server: UpstreamSet.Server) {
            weight = server.weight
            isBackup = server.isBackup
            maxConnections = server.maxConnections ?? .max
        }
    }

    init(_ set: ServerSet, servers: [Origin], random: UInt64 = .random(in: 0 ... .max)) {
        self.set = set
        self.servers = servers
        rules = set.configuration.servers.map(Rule.init)
        weights = set.configuration.servers.map { $0.weight * 1000 }
        turns = SmoothRoundRobin(weights: weights, random: random)
        seeds = set.servers.map(\.seed)
    }

    /// The server for a request; `nil` if there is none.
    /// - Parameters:
    ///   - tried: those that it was sent to in vain.
    ///   - bound: the one that its client is bound to.
    ///   - value: the hash of what decides; called only if something does. `nil`: absent.
    func choose(
        besides tried: ServerMask, bound: Int?, at now: Int64, hashing value: () -> UInt64?
    ) -> Int? {
        let groups = groups(at: now)
        if let bound, groups.bindable.contains(bound), !tried.contains(bound) { return bound }
        let candidates = groups.candidates(besides: tried)
        if candidates.isEmpty { return nil }
        if candidates.count == 1 { return candidates.first }
        switch set.configuration.balance {
        case .roundRobin: break
        case .leastRequests:
            let least = leastLoaded(of: candidates, weights: weights) {
                set.servers[$0].requestsUnderWay
            }
            return turns.next(of: least, weights: weights)
        case .hash:
            guard let value = value() else { break }
            return rendezvous(value, of: candidates, weights: weights, seeds: seeds)
        }
        return turns.next(of: candidates, weights: weights)
    }

    /// Whether there is a server besides these.
    func hasOther(than tried: ServerMask, at now: Int64) -> Bool {
        !groups(at: now).candidates(besides: tried).isEmpty
    }

    private func groups(at now: Int64) -> ServerGroups {
        var groups = ServerGroups()
        let slowStart = set.slowStart
        for index in rules.indices {
            let (rule, state) = (rules[index], set.servers[index])
            if slowStart.milliseconds > 0 {
                weights[index] = slowStart.weight(rule.weight, since: state.since, at: now)
            }
            groups.add(
                .init(
                    isUp: state.isUp && servers[index].refusal == nil,
                    isEjected: state.isEjected(at: now), isBackup: rule.isBackup,
                    isFull: rule.maxConnections != .max && isFull(index), weight: rule.weight),
                at: index)
        }
        return groups
    }

    /// Whether another request would have to wait.
    private func isFull(_ index: Int) -> Bool {
        let (room, isMore) = rules[index].maxConnections.multipliedReportingOverflow(
            by: servers[index].http2.streamsPerConnection)
        return !isMore && set.servers[index].requestsUnderWay >= room
    }
}

extension OriginTable {
    /// Makes a route's balancer and its origin, with the connections of a former one.
    /// - Parameters:
    ///   - former: the balancer before a reload that kept connections.
    static func make(
        _ route: BalancedRoute, _ set: ServerSet, following former: LoadBalancer?,
        _ policy: PolicySnapshot
    ) -> Origin? {
        let known = Dictionary(
            (former?.servers ?? []).map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
        let header = ProxyHeader.Version(set.configuration.proxyProtocol)
        let servers = set.configuration.servers.map { server in
            let target = policy.target(
                host: server.origin.host, port: server.origin.port,
                by: .fixed(isSecure: route.isSecure))
            let key = Origin.Key(
                host: server.origin.host, port: server.origin.port, isSecure: route.isSecure,
                requestedPort: server.origin.port, forwarding: route.forwarding,
                takesOnlyHTTP1: header != nil, set: route.listener, proxyHeader: header,
                unixPath: server.origin.unixPath)
            let origin =
                known[key]
                ?? Origin(
                    key: key, policy: policy, entryIndex: target.entryIndex,
                    refusal: target.refusal, match: target.match)
            origin.maxConnections = server.maxConnections ?? .max
            origin.http2.sibling?.maxConnections = origin.maxConnections
            return origin
        }
        guard let first = servers.first else { return nil }
        return Origin(
            of: LoadBalancer(set, servers: servers), first: first,
            trust: policy.trust(ofSet: route.listener), policy: policy)
    }
}
