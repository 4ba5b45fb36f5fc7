/// The servers of a reverse route that has several, and how requests are divided among them.
///
/// All of them are asked for the same resources: a response may come from any, and is stored as
/// that of the route.
package struct UpstreamSet: Sendable, Equatable {
    /// The most servers of a set.
    package static let maximumServers = 64

    /// One server.
    package struct Server: Sendable, Equatable {
        /// The largest weight.
        package static let maximumWeight = 256

        package var origin: UpstreamOrigin
        /// Its share of the requests, in proportion to those of the others; 0: only those of
        /// clients that a cookie binds to it.
        package var weight = 1
        /// Whether it is asked only while none of the others can be.
        package var isBackup = false
        /// The most connections to it, of all workers; `nil` for `limits.upstreamPerHost`.
        package var maxConnections: Int?

        package init(origin: UpstreamOrigin) { self.origin = origin }
    }

    /// How a server is chosen for a request.
    package enum Balance: Sendable, Equatable {
        /// Smooth weighted round robin, by each worker for itself.
        case roundRobin
        /// The one with the fewest requests under way, over all workers, in proportion to its
        /// weight.
        case leastRequests
        /// The same server for the same value, by rendezvous hashing.
        case hash(HashedValue)
    }

    /// What decides the server.
    package enum HashedValue: Sendable, Equatable {
        /// The client's address.
        case client
        /// The path, without the query.
        case path
        /// The value of a request field, in lower case; requests without it go round robin.
        case field(String)
    }

    /// Requests that check whether a server works.
    package struct HealthCheck: Sendable, Equatable {
        /// Path and query; `nil` for no checks.
        package var path: String?
        package var intervalMilliseconds: Int64 = 5_000
        package var timeoutMilliseconds: Int64 = 2_000
        /// The statuses by which a check passes.
        package var statusCodes: [ClosedRange<UInt16>] = [200...299]
        /// How many checks in a row must pass before a server is used again.
        package var rise = 2
        /// How many must fail before it is not used any more.
        package var fall = 3

        package init() {}
    }

    /// When a server that fails requests is left out for a while.
    package struct Ejection: Sendable, Equatable {
        /// After how many failures in a row; 0: never.
        package var failures = 5
        /// The time within which they must happen.
        package var windowMilliseconds: Int64 = 10_000
        /// How long the first time; it grows with each time.
        package var periodMilliseconds: Int64 = 30_000
        /// The most servers that are left out at once, in percent of all.
        package var sharePercent = 50

        package init() {}
    }

    /// When a request that one server failed is sent to another.
    package struct Retries: Sendable, Equatable {
        /// How often for one request; 0: never.
        package var attempts = 1
        /// The most retries, in percent of all requests.
        package var budgetPercent = 20

        package init() {}
    }

    /// In the order written, at least one; all have the same scheme.
    package var servers: [Server] = []
    package var balance = Balance.leastRequests
    package var health = HealthCheck()
    package var ejection = Ejection()
    package var retries = Retries()
    /// How long a server that comes back, or is new, takes to get its whole share; 0: no time.
    package var slowStartMilliseconds: Int64 = 0
    /// The name of the cookie that binds a client to a server; `nil` for none.
    package var stickyCookie: String?
    /// How its servers are told who the client is.
    package var proxyProtocol = UpstreamProxyProtocol.none

    package init() {}

    /// What its servers speak.
    package var scheme: UpstreamOrigin.Scheme { servers.first?.origin.scheme ?? .http }
}

extension ListenerConfiguration {
    /// All servers that a reverse listener sends requests to; empty for others.
    package var upstreamOrigins: [UpstreamOrigin] {
        switch kind {
        case .forward, .socks5, .transparent: []
        case .reverse(let origin): [origin]
        case .balanced(let set): set.servers.map(\.origin)
        }
    }
}

extension ListenerConfiguration {
    /// How the servers of a reverse listener are told who the client is.
    package var upstreamProxyProtocol: UpstreamProxyProtocol {
        switch kind {
        case .forward, .socks5, .transparent: .none
        case .reverse: sendsProxyProtocol
        case .balanced(let set): set.proxyProtocol
        }
    }
}

extension ConfigurationSnapshot {
    /// Whether cookies bind clients to servers.
    package var hasStickyRoutes: Bool {
        listeners.contains { listener in
            if case .balanced(let set) = listener.kind { set.stickyCookie != nil } else { false }
        }
    }
}
