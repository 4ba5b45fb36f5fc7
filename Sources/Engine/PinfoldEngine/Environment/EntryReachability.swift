import Activity
import HTTPCore
import Locking
import PinfoldConfiguration

/// The reachability of a host entry's servers, each told apart by its name, shared by all workers
/// and read by the scrape.
///
/// There is one object of a server as long as anybody refers to it, so that all evidence comes to
/// the same state. The configuration's exact names are kept as long as it says them; an origin and
/// a probe keep theirs; and so that what was learnt outlasts them, the latest of each state are
/// kept besides.
package final class EntryReachability: Sendable {
    /// How many servers are kept that can be reached, and how many that cannot, besides those that
    /// the configuration says exactly. Those of a wildcard are as many as clients ask for.
    package static let maximumServers = 100

    /// The entry's name, as all of its metrics have it.
    package let label: String
    private let counts = ReachabilityCounts()
    private let servers = Locked(Servers())

    /// An entry none of whose servers is known.
    package init(label: String) { self.label = label }

    /// The server of a name, which is unknown if the name is new. To be asked for once a
    /// connection's origin, not for each request.
    package func server(_ name: String) -> ServerReachability {
        ServerReachability(
            entry: self, server: servers.withLock { $0.server(name, countedBy: counts) })
    }

    /// The configuration says these names exactly: they are there from now on.
    func add(exactly names: [String]) {
        servers.withLock { servers in
            for name in names where servers.exact[name] == nil {
                let server = servers.server(name, countedBy: counts)
                servers.forget(server)
                servers.exact[name] = server
            }
        }
    }

    /// The configuration in force says no other names exactly than these: what is known of others
    /// is kept like that of a wildcard's servers.
    package func keepExactly(_ names: Set<String>) {
        servers.withLock { servers in
            for (name, server) in servers.exact where !names.contains(name) {
                servers.exact[name] = nil
                servers.others[name] = .init(server: server)
                _ = servers.keep(server, for: nil)
            }
        }
    }

    /// Takes a piece of evidence about a server of the entry; returns the transition if it made one
    /// that is news.
    fileprivate func note(
        _ event: ReachabilityEvent, about server: HostReachability, for client: IPNetwork?
    ) -> ReachabilityChange? {
        guard let change = server.note(event) else { return nil }
        let mayHaveBeenKnown = servers.withLock { $0.keep(server, for: client) }
        if change.from == .unknown, change.to == .reachable, mayHaveBeenKnown { return nil }
        counts.tell(change)
        return change
    }

    /// How many servers are in a state now.
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

        /// Those that the configuration says exactly.
        var exact: [String: HostReachability] = [:]
        /// The others that somebody refers to.
        var others: [String: Reference] = [:]
        /// At how many references those to nothing are looked for.
        private var sweepAt = 1024
        private var reachable = ShareTable<String, HostReachability>(limit: maximumServers)
        private var notReachable = ShareTable<String, HostReachability>(limit: maximumServers)
        /// Some server was kept no longer: from then on a new one may be one that was known.
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

        /// Keeps a server whose state has changed, among those of its state. What gives way is of
        /// the client that holds the most of that state: nobody pushes out what others have found
        /// unreachable.
        ///
        /// - Returns: whether the server may have been known before it was unknown.
        mutating func keep(_ server: HostReachability, for client: IPNetwork?) -> Bool {
            guard exact[server.host] == nil else { return false }
            forget(server)
            // The state now: another thread may have changed it again.
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

        mutating func forget(_ server: HostReachability) {
            reachable.remove(server.host)
            notReachable.remove(server.host)
        }
    }
}

/// The reachability of one server, for whoever has evidence of it.
package struct ServerReachability: Sendable {
    package let entry: EntryReachability
    private let server: HostReachability

    fileprivate init(entry: EntryReachability, server: HostReachability) {
        self.entry = entry
        self.server = server
    }

    /// The server's name, with the port where the configuration names that.
    package var host: String { server.host }

    /// The state now.
    package var state: ReachabilityState { server.state }

    /// Takes a piece of evidence; returns the transition if it made one that is news. The first
    /// answer of a server is none once the entry has had to forget servers, for it may be one of
    /// those.
    ///
    /// - Parameter client: in whose share the server is kept; nil: no client's.
    package func note(
        _ event: ReachabilityEvent, for client: IPNetwork?
    ) -> ReachabilityChange? {
        entry.note(event, about: server, for: client)
    }
}

extension HostEntry {
    /// The names of servers that the entry says exactly, with their ports where it has them.
    package var exactNames: [String] {
        match.filter { $0.exactName != nil }.map { "\($0)" }
    }
}
