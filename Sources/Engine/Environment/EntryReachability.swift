import Activity
import Locking

/// The reachability of a host entry's servers, each told apart by its name, shared by all workers
/// and read by the scrape.
package final class EntryReachability: Sendable {
    /// Servers that are told apart. Those of a wildcard are as many as clients ask for: beyond, one
    /// that is reachable is forgotten first, for it is not what anybody looks for.
    package static let maximumServers = 100

    /// The entry's name, as all of its metrics have it.
    package let label: String
    private let transitions = ReachabilityTransitions()
    private let servers = Locked<[String: HostReachability]>([:])

    /// An entry none of whose servers is known.
    package init(label: String) { self.label = label }

    /// The state of a server, which is kept if it is new. To be asked for once a connection's
    /// origin, not for each request.
    package func server(_ name: String) -> HostReachability {
        servers.withLock { servers in
            if let known = servers[name] { return known }
            if servers.count >= Self.maximumServers, let least = Self.least(of: servers) {
                servers[least] = nil
            }
            let made = HostReachability(host: name, entry: label, transitions: transitions)
            servers[name] = made
            return made
        }
    }

    /// The server that is missed least.
    private static func least(of servers: [String: HostReachability]) -> String? {
        servers.first { $0.value.state == .reachable }?.key
            ?? servers.first { $0.value.state == .unknown }?.key ?? servers.first?.key
    }

    /// How many servers are in a state now.
    package func count(in state: ReachabilityState) -> Int {
        servers.withLock { $0.values.count { $0.state == state } }
    }

    /// How often servers have entered a state from another one.
    package func transitions(to state: ReachabilityState) -> UInt64 {
        transitions.count(to: state)
    }
}
