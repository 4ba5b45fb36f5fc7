import Clocks
import HTTPCore

/// How a lookup ended.
package enum ResolveResult: Sendable, Hashable {
    /// The name has addresses.
    case resolved(ResolvedAnswer)
    /// It has none, or it is not known whether it has.
    case failed(ResolveFailure)
}

/// The addresses of a name.
package struct ResolvedAnswer: Sendable, Hashable {
    /// Where an answer comes from.
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

    /// The addresses, at least one: IPv6 before IPv4, in each family in the server's order, none
    /// twice.
    package let addresses: [IPAddress]
    /// Where they come from.
    package let source: Source
    /// False when one family's answer was still awaited: the complete answer follows through
    /// `later` of ``Resolver/resolve(name:later:completion:)``.
    package let isComplete: Bool
    /// When the answer may no longer be used, on the resolver's clock. It is in the past at once
    /// for a TTL of 0.
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

/// Why a name gave no address. The raw value is the token of metrics and logs.
package enum ResolveFailure: String, Error, Sendable, Hashable, CaseIterable {
    /// The name does not exist (RCODE 3).
    case nxdomain = "nxdomain"
    /// The name exists and has neither A nor AAAA records.
    case noData = "nodata"
    /// No server answered in time.
    case timeout = "timeout"
    /// A server answered that it failed (RCODE 2 and the ones without a case here).
    case serverFailure = "servfail"
    /// A server refused to answer (RCODE 5).
    case refused = "refused"
    /// No server could be reached: the query could not be sent, or its port is closed.
    case unreachable = "unreachable"
    /// An answer that is not a DNS message or not an answer to the question.
    case badResponse = "bad_response"
    /// Not a name that may be looked up; see ``DomainName``.
    case badName = "bad_name"
    /// As many lookups are pending as may be.
    case overloaded = "overloaded"
    /// The client has its share of the lookups that may be under way.
    case clientLimit = "client-limit"
    /// The zone has its share of them, or keeps timing out and has a few that try it.
    case zoneLimit = "zone-limit"
    /// The resolver was closed.
    case cancelled = "cancelled"

    /// Whether the resolver did not ask, for want of room or because it ends.
    package var isOwn: Bool {
        switch self {
        case .overloaded, .clientLimit, .zoneLimit, .cancelled: true
        case .nxdomain, .noData, .timeout, .serverFailure, .refused, .unreachable, .badResponse,
            .badName:
            false
        }
    }

    /// The `rcode` parameter of Proxy-Status (RFC 9209 §2.3.2), where a server gave one.
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

/// What a resolver asks, how long it remembers, and its limits.
package struct ResolverOptions: Sendable {
    /// Where the DNS servers' addresses come from.
    package enum Servers: Sendable, Hashable {
        /// A file in the form of resolv.conf(5), read again when it changes.
        case file(path: String)
        /// These, in this order.
        case list([Endpoint])

        /// `/etc/resolv.conf`.
        package static let system = Servers.file(path: "/etc/resolv.conf")
    }

    /// The servers to ask.
    package var servers = Servers.system
    /// The port of the servers that a file names, for which its form has no place.
    package var filePort: UInt16 = 53
    /// The hosts file, read again when it changes.
    package var hostsPath = "/etc/hosts"
    /// An answer is kept at least so long, whatever its TTL.
    package var minimumTTLSeconds: Int64 = 0
    /// An answer is kept at most so long.
    package var maximumTTLSeconds: Int64 = 3600
    /// "No such name" and "no such data" are kept at most so long (RFC 2308 §5).
    package var maximumNegativeTTLSeconds: Int64 = 300
    /// How long they are kept when the server does not say.
    package var defaultNegativeTTLSeconds: Int64 = 10
    /// How long a failure of the servers is kept: enough to spare them a storm.
    package var failureTTLSeconds: Int64 = 1
    /// Addresses of one family are kept at most so long when the other family's query failed.
    package var halfAnswerTTLSeconds: Int64 = 30
    /// How long a server is given for its first answer; doubled on each round over the servers.
    package var timeoutMilliseconds: Int32 = 1500
    /// How often each server is asked.
    package var tries: Int32 = 2
    /// When one family's addresses are there, how long the other's are waited for (RFC 8305 §3).
    package var resolutionDelayMilliseconds: Int64 = 50
    /// How old the last look at the hosts file may be when a cached answer is given.
    package var hostsCheckMilliseconds: Int64 = 5000
    /// Names remembered; beyond, the least recently used one is dropped.
    package var maximumEntries = 4096
    /// Names being looked up; beyond, `overloaded`. Once half of these places are taken, one
    /// client, and one zone, gets at most a quarter of them.
    package var maximumPending = 1024
    /// Callers waiting, over all names; beyond, `overloaded`.
    package var maximumWaiting = 65536
    /// The resolver's clock: milliseconds that never go back.
    package var clock: @Sendable () -> Int64 = Clock.monotonicMilliseconds

    /// The defaults as written above.
    package init() {}
}

/// What a resolver has done since it was started.
package struct ResolverStatistics: Sendable, Hashable {
    /// Upper bounds of ``latencyCounts``' buckets in milliseconds; one more bucket follows.
    package static let latencyBoundsMilliseconds: [Int64] = [
        1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000,
    ]

    /// Questions put to DNS servers (A and AAAA count apart; retransmissions do not count).
    package var queries: UInt64 = 0
    /// Names looked up: neither literal, nor `localhost`, nor cached, nor joined to another's.
    package var lookups: UInt64 = 0
    /// Lookups that the hosts file answered.
    package var hostsAnswers: UInt64 = 0
    /// Answers with addresses given from the cache.
    package var cacheHits: UInt64 = 0
    /// Failures given from the cache.
    package var negativeCacheHits: UInt64 = 0
    /// Callers that joined a lookup already on its way.
    package var merged: UInt64 = 0
    /// Lookups that ended with addresses.
    package var resolved: UInt64 = 0
    /// Lookups that failed, and callers refused, by ``ResolveFailure`` in the order of its cases.
    package var failures = [UInt64](repeating: 0, count: ResolveFailure.allCases.count)
    /// Lookups that ended, by how long they took; not cumulative.
    package var latencyCounts = [UInt64](
        repeating: 0, count: latencyBoundsMilliseconds.count + 1)
    /// The sum of all ended lookups' times.
    package var latencySumMilliseconds: UInt64 = 0
    /// Names remembered now.
    package var entries = 0
    /// Names being looked up now.
    package var pending = 0
    /// Callers waiting now.
    package var waiting = 0

    /// Nothing done yet.
    package init() {}

    /// How many lookups failed so.
    package func count(of failure: ResolveFailure) -> UInt64 {
        guard let index = ResolveFailure.allCases.firstIndex(of: failure) else { return 0 }
        return failures[index]
    }

    mutating func add(failure: ResolveFailure) {
        guard let index = ResolveFailure.allCases.firstIndex(of: failure) else { return }
        failures[index] += 1
    }

    mutating func add(latencyMilliseconds: Int64) {
        let bounds = ResolverStatistics.latencyBoundsMilliseconds
        let index = bounds.firstIndex { latencyMilliseconds <= $0 } ?? bounds.count
        latencyCounts[index] += 1
        latencySumMilliseconds += UInt64(max(latencyMilliseconds, 0))
    }
}
