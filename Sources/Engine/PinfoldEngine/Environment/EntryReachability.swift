import Activity
import HTTPCore
import Locking
import PinfoldConfiguration

/// The reachability of a host entry's servers, by their names, shared by all workers and read by
/// scrapes.
///
/// There is one object per server as long as anything refers to it, so that all evidence updates
/// the same state. The configuration's exact names are kept as long as it contains them; an origin
/// and a probe keep theirs. So that what was learnt outlasts them, the latest servers of each state
/// are kept as well.
package final class EntryReachability: Sendable {
    /// How many reachable and how many unreachable servers are kept, in addition to those that the
    /// configuration names exactly. A wildcard has as many servers as clients ask for.
    package static let maximumServers = 100

    /// The entry's name, as in all of its metrics.
    package let label: String
    private let counts = ReachabilityCounts()
    private let servers = Locked(Servers())
    private let latest = Locked<[Change]>([])
    /// How many of the latest changes are kept.
    private static let keptChanges = 32

    /// A server has entered another state.
    package struct Change: Sendable, Equatable {
        /// In milliseconds since 1970.
        package var time: Int64
        package var server: String
        package var from: ReachabilityState
        package var to: ReachabilityState
    }

    /// Creates an entry without known servers.
    package init(label: String) { self.label = label }

    /// The server with a name; its state is unknown if the name is new. Call it once per origin,
    /// not for each request.
    package func server(_ name: String) -> ServerReachability {
        ServerReachability(
            entry: self, server: servers.withLock { $0.server(name, countedBy: counts) })
    }

    /// Adds the names that the configuration contains exactly.
    func add(exactly names: [String]) {
        servers.withLock { servers in
            for name in names where servers.exact[name] == nil {
                let server = servers.server(name, countedBy: counts)
                servers.forget(server)
                servers.exact[name] = server
            }
        }
    }

    /// The current configuration contains exactly these names: others are from now on kept like a
    /// wildcard's servers.
    package func keepOnly(_ names: Set<String>) {
        servers.withLock { servers in
            for (name, server) in servers.exact where !names.contains(name) {
                servers.exact[name] = nil
                servers.others[name] = .init(server: server)
                _ = servers.keep(server, for: nil)
            }
        }
    }

    /// Handles a piece of evidence about a server of the entry; returns the transition if it caused
    /// one that is news.
    fileprivate func note(
        _ event: ReachabilityEvent, about server: HostReachability, for client: IPNetwork?
    ) -> ReachabilityChange? {
        guard let change = server.note(event) else { return nil }
        let mayHaveBeenKnown = servers.withLock { $0.keep(server, for: client) }
        if change.from == .unknown, change.to == .reachable, mayHaveBeenKnown { return nil }
        counts.countTransition(change)
        return change
    }

    /// Keeps a change that is news.
    func keep(_ change: ReachabilityChange, of server: String, at time: Int64) {
        latest.withLock { latest in
            if latest.count >= Self.keptChanges { latest.removeFirst() }
            latest.append(
                Change(time: time, server: server, from: change.from, to: change.to))
        }
    }

    /// The latest changes, the oldest first.
    package var changes: [Change] { latest.withLock { $0 } }

    /// The servers that are kept, by their names.
    package var known: [(server: String, state: ReachabilityState)] {
        servers.withLock { $0.kept }.map { ($0.host, $0.state) }.sorted { $0.0 < $1.0 }
    }

    /// How many servers are currently in a state.
    package func count(in state: ReachabilityState) -> Int { counts.hosts(in: state) }

    /// How often servers have entered a state from another one.
    package func transitions(to state: ReachabilityState) -> UInt64 {
        counts.transitions(to: state)
    }
}

extension EntryReachability {
    /// The servers of an entry, by their names.
    private struct Servers {
        struct Reference {
            weak var server: HostReachability?
        }

        /// The servers that the configuration names exactly.
        var exact: [String: HostReachability] = [:]
        /// The other servers that something refers to.
        var others: [String: Reference] = [:]
        /// The number of references at which dead ones are searched for.
        private var sweepAt = 1024
        private var reachable = ShareTable<String, HostReachability>(limit: maximumServers)
        private var notReachable = ShareTable<String, HostReachability>(limit: maximumServers)
        /// Whether a server has been dropped: from then on a new one may have been known before.
        private var hasForgotten = false

        mutating func server(
            _ name: String, countedBy counts: ReachabilityCounts
        ) -> HostReachability {
            if let known = exact[name] ?? others[name]?.server { return known }
            let made = HostReachability(host: name, countedBy: counts)
            others[name] = Reference(server: made)
            if others.count >= sweepAt {
                others = others.filter { $0.value.server != nil }
                sweepAt = max(1024, others.count * 2)
            }
            return made
        }

        /// Keeps a server whose state has changed, with those of its state. If one must be dropped,
        /// it belongs to the client that has the most in that state, so that no client can push out
        /// what others have found unreachable.
        ///
        /// - Returns: whether the server may have been known before.
        mutating func keep(_ server: HostReachability, for client: IPNetwork?) -> Bool {
            guard exact[server.host] == nil else { return false }
            forget(server)
            // The current state: another thread may have changed it again.
            switch server.state {
            case .unknown: break
            case .reachable: reachable.insert(server, for: server.host, of: client)
            case .notReachable: notReachable.insert(server, for: server.host, of: client)
            }
            while reachable.weight > reachable.limit {
                reachable.removeNext()
                hasForgotten = true
            }
            while notReachable.weight > notReachable.limit {
                notReachable.removeNext()
                hasForgotten = true
            }
            return hasForgotten
        }

        /// Those that are kept.
        var kept: [HostReachability] {
            Array(exact.values) + reachable.values + notReachable.values
        }

        mutating func forget(_ server: HostReachability) {
            reachable.remove(server.host)
            notReachable.remove(server.host)
        }
    }
}

/// The reachability of one server, for reporting evidence about it.
package struct ServerReachability: Sendable {
    package let entry: EntryReachability
    private let server: HostReachability

    fileprivate init(entry: EntryReachability, server: HostReachability) {
        self.entry = entry
        self.server = server
    }

    /// The server's name, with the port if the configuration names it.
    package var host: String { server.host }

    /// The current state.
    package var state: ReachabilityState { server.state }

    /// Handles a piece of evidence; returns the transition if it caused one that is news. Once the
    /// entry has had to drop servers, the first response of a server is not news, because it may be
    /// one of those.
    ///
    /// - Parameter client: the client in whose share the server is kept; `nil` for no client's.
    package func note(
        _ event: ReachabilityEvent, for client: IPNetwork?
    ) -> ReachabilityChange? {
        entry.note(event, about: server, for: client)
    }
}

extension HostEntry {
    /// The names of servers that the entry names exactly, with their ports if it has them.
    package var exactNames: [String] {
        match.filter { $0.exactName != nil }.map { "\($0)" }
    }
}
