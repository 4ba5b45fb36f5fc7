import Clocks
import HTTPCore

/// How a lookup ended.
package enum ResolveResult: Sendable, Hashable {
    /// The name has addresses.
    case resolved(ResolvedAnswer)
    /// It has none, or it is unknown whether it has any.
    case failed(ResolveError)
}

/// The addresses of a name.
package struct ResolvedAnswer: Sendable, Hashable {
    /// The source of an answer.
    package enum Source: Sendable, Hashable, CaseIterable {
        /// The name is an address.
        case literal
        /// `localhost` and the names under it (RFC 6761 §6.3).
        case localhost
        /// The hosts file.
        case hosts
        /// A DNS server.
        case dns
    }

    /// The addresses, at least one and without duplicates: IPv6 before IPv4, in the server's order
    /// within each family.
    package let addresses: [IPAddress]
    /// Their source.
    package let source: Source
    /// Whether both families have answered. If not, the complete answer follows through `later` of
    /// ``Resolver/resolve(name:later:completion:)``.
    package let isComplete: Bool
    /// When the answer expires, on the resolver's clock; immediately for a TTL of 0.
    package let expiresAtMilliseconds: Int64

    /// An answer of its parts.
    package init(
        addresses: [IPAddress], source: Source, isComplete: Bool, expiresAtMilliseconds: Int64
    ) {
        self.addresses = addresses
        self.source = source
        self.isComplete = isComplete
        self.expiresAtMilliseconds = expiresAtMilliseconds
    }
}

/// Why a name yielded no address. The raw value is the token in metrics and logs.
package enum ResolveError: String, Error, Sendable, Hashable, CaseIterable {
    /// The name does not exist (RCODE 3).
    case nxdomain = "nxdomain"
    /// The name exists and has neither A nor AAAA records.
    case noData = "nodata"
    /// No server answered in time.
    case timeout = "timeout"
    /// A server reported a failure (RCODE 2 and those without a case here).
    case serverFailure = "servfail"
    /// A server refused to answer (RCODE 5).
    case refused = "refused"
    /// No server could be reached: the query could not be sent, or its port is closed.
    case unreachable = "unreachable"
    /// An answer that is not a DNS message or not an answer to the question.
    case badResponse = "bad_response"
    /// Not a name that may be looked up; see ``DomainName``.
    case badName = "bad_name"
    /// The maximum number of lookups is pending.
    case overloaded = "overloaded"
    /// The client has used up its share of concurrent lookups.
    case clientLimit = "client-limit"
    /// The zone has used up its share of them, or keeps timing out and is limited to a few.
    case zoneLimit = "zone-limit"
    /// The resolver was closed.
    case cancelled = "cancelled"

    /// Whether the resolver itself refused the lookup, because of a limit or because it is closing.
    package var isOwn: Bool {
        switch self {
        case .overloaded, .clientLimit, .zoneLimit, .cancelled: true
        case .nxdomain, .noData, .timeout, .serverFailure, .refused, .unreachable, .badResponse,
            .badName:
            false
        }
    }

    /// The `rcode` parameter of Proxy-Status (RFC 9209 §2.3.2), if a server gave one.
    package var rcode: StaticString? {
        switch self {
        case .nxdomain: "NXDOMAIN"
        case .noData: "NOERROR"
        case .serverFailure: "SERVFAIL"
        case .refused: "REFUSED"
        case .timeout, .unreachable, .badResponse, .badName, .overloaded, .clientLimit,
            .zoneLimit, .cancelled:
            nil
        }
    }
}

/// The servers that a resolver asks, how long it caches answers, and its limits.
package struct ResolverOptions: Sendable {
    /// Where the DNS servers' addresses come from.
    package enum Servers: Sendable, Hashable {
        /// A file in the format of resolv.conf(5), reread when it changes.
        case file(path: String)
        /// These servers, in this order.
        case list([Endpoint])

        /// `/etc/resolv.conf`.
        package static let system = Servers.file(path: "/etc/resolv.conf")
    }

    /// The servers to ask.
    package var servers = Servers.system
    /// The port of the servers that a file names, since its format cannot specify one.
    package var filePort: UInt16 = 53
    /// The hosts file, reread when it changes.
    package var hostsPath = "/etc/hosts"
    /// The minimum time an answer is cached, whatever its TTL.
    package var minimumTTLSeconds: Int64 = 0
    /// The maximum time an answer is cached.
    package var maximumTTLSeconds: Int64 = 3600
    /// The maximum time "no such name" and "no such data" are cached (RFC 2308 §5).
    package var maximumNegativeTTLSeconds: Int64 = 300
    /// How long they are cached if the server does not say.
    package var defaultNegativeTTLSeconds: Int64 = 10
    /// How long a server failure is cached: enough to spare the servers a storm.
    package var failureTTLSeconds: Int64 = 1
    /// The maximum time one family's addresses are cached if the other family's query failed.
    package var halfAnswerTTLSeconds: Int64 = 30
    /// How long to wait for a server's first answer; doubled in each round over the servers.
    package var timeoutMilliseconds: Int32 = 1500
    /// How often each server is asked.
    package var tries: Int32 = 2
    /// How long to wait for the other family after one family's addresses have arrived (RFC 8305
    /// §3).
    package var resolutionDelayMilliseconds: Int64 = 50
    /// The maximum age of the last check of the hosts file when a cached answer is used.
    package var hostsCheckMilliseconds: Int64 = 5000
    /// The maximum number of cached names; beyond it, the least recently used one is dropped.
    package var maximumEntries = 4096
    /// The maximum number of names being looked up; beyond it, lookups fail with `overloaded`. Once
    /// half of these permits are taken, one client, and one zone, gets at most a quarter of them.
    package var maximumPending = 1024
    /// The maximum number of waiting callers, over all names; beyond it, lookups fail with
    /// `overloaded`.
    package var maximumWaiting = 65536
    /// The resolver's clock: monotonic milliseconds.
    package var clock: @Sendable () -> Int64 = Clock.monotonicMilliseconds

    /// The defaults as written above.
    package init() {}
}

/// A resolver's counts since it was started.
package struct ResolverStatistics: Sendable, Hashable {
    /// Upper bounds of ``latencyCounts``' buckets in milliseconds; there is one more bucket after
    /// them.
    package static let latencyBoundsMilliseconds: [Int64] = [
        1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000,
    ]

    /// Questions sent to DNS servers (A and AAAA count separately; retransmissions do not count).
    package var queries: UInt64 = 0
    /// Names looked up: not literals, `localhost`, cached answers, or lookups joined to another.
    package var lookups: UInt64 = 0
    /// Lookups that the hosts file answered.
    package var hostsAnswers: UInt64 = 0
    /// Answers with addresses returned from the cache.
    package var cacheHits: UInt64 = 0
    /// Failures returned from the cache.
    package var negativeCacheHits: UInt64 = 0
    /// Callers that joined a lookup already under way.
    package var merged: UInt64 = 0
    /// Lookups that ended with addresses.
    package var resolved: UInt64 = 0
    /// Lookups that failed, and callers refused, by ``ResolveError`` in the order of its cases.
    package var failures = [UInt64](repeating: 0, count: ResolveError.allCases.count)
    /// Finished lookups by duration; not cumulative.
    package var latencyCounts = [UInt64](
        repeating: 0, count: latencyBoundsMilliseconds.count + 1)
    /// The total duration of all finished lookups.
    package var latencySumMilliseconds: UInt64 = 0
    /// Names cached now.
    package var entries = 0
    /// Names being looked up now, and how many may be.
    package var pending = 0
    package var pendingLimit = 0
    /// Callers waiting now.
    package var waiting = 0

    /// All counts zero.
    package init() {}

    /// How many lookups failed for this reason.
    package func count(of failure: ResolveError) -> UInt64 {
        guard let index = ResolveError.allCases.firstIndex(of: failure) else { return 0 }
        return failures[index]
    }

    mutating func add(failure: ResolveError) {
        guard let index = ResolveError.allCases.firstIndex(of: failure) else { return }
        failures[index] += 1
    }

    mutating func add(latencyMilliseconds: Int64) {
        let bounds = ResolverStatistics.latencyBoundsMilliseconds
        let index = bounds.firstIndex { latencyMilliseconds <= $0 } ?? bounds.count
        latencyCounts[index] += 1
        latencySumMilliseconds += UInt64(max(latencyMilliseconds, 0))
    }
}
