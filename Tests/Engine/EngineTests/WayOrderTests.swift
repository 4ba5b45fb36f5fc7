import EngineTestSupport
import HTTPCore
import PinfoldConfiguration
import PinfoldMetrics
import PinfoldTLS
import ProxyProtocols
import Testing
import Trust

@testable import PinfoldEngine

private func way(_ name: String) -> Way {
    .proxy(UpstreamProxy(host: name, port: 1, scheme: .http))
}

@Suite("The ways to a server")
struct WayOrderTests {
    private func order(_ ways: [Way], down: Set<String> = []) -> [String] {
        var order = WayOrder(ways) { down.contains($0.proxy?.host ?? "direct") }
        var found: [String] = []
        while let next = order.next() { found.append(next.proxy?.host ?? "direct") }
        return found
    }

    @Test func `are tried in their order, without those that are down`() {
        let ways = [way("a"), way("b"), Way.direct]
        #expect(order(ways) == ["a", "b", "direct"])
        #expect(order(ways, down: ["a"]) == ["b", "direct"])
        #expect(order(ways, down: ["a", "b"]) == ["direct"])
        #expect(order([Way.direct, way("a")], down: ["a"]) == ["direct"])
    }

    @Test func `are all tried if all are down, and never one that is not listed`() {
        #expect(order([way("a"), way("b")], down: ["a", "b"]) == ["a", "b"])
        #expect(order([way("a")], down: ["a"]) == ["a"])
    }

    /// Errors, and whether the next way is tried.
    static let errors: [(ExchangeError, Bool)] = [
        (.proxy(.unreachable(.connectFailed(.connectionRefused))), true),
        (.proxy(.unreachable(.gateway(.descriptorsExhausted))), false),
        (.proxy(.tlsFailed(.notTLS)), true), (.proxy(.timeout), true), (.proxy(.closed), true),
        (.proxy(.badAnswer(.headTooLarge)), true), (.proxy(.tooManyInterim), true),
        (.proxy(.refused(ProxyAnswer(status: 502))), true),
        (.proxy(.refused(ProxyAnswer(status: 503))), true),
        (.proxy(.refused(ProxyAnswer(status: 403))), false),
        (.proxy(.refused(ProxyAnswer(status: 407))), false), (.proxy(.loop), false),
        (.proxy(.spokeUnasked), false), (.proxy(.ownAddress), true),
        (.proxy(.socks(.refused(SOCKS5RefusalReason(code: 1)))), true),
        (.proxy(.socks(.refused(SOCKS5RefusalReason(code: 2)))), false),
        (.proxy(.socks(.authenticationFailed)), false), (.proxy(.socks(.malformed)), true),
        (.proxy(.nameUnchecked(.nameNotResolved(.nxdomain))), true),
        (.nameNotResolved(.nxdomain), true), (.nameNotResolved(.clientLimit), false),
        (.connectFailed(.connectionRefused), true), (.connectTimeout, true),
        (.tlsFailed(.notTLS), false), (.tlsTimeout, false),
        (.destinationRefused(.deniedHost), false), (.gateway(.superseded), false),
        (.gateway(.tooManyPending), false), (.server(.upstreamClosed), false),
    ]

    @Test(arguments: errors.indices)
    func `follow one that led nowhere, and not one that decided`(index: Int) {
        let (error, goesOn) = Self.errors[index]
        var order = WayOrder([way("a"), way("b")]) { _ in false }
        _ = order.next()
        #expect(order.goesOn(after: error) == goesOn)
        _ = order.next()
        #expect(!order.goesOn(after: error), "there is none left")
    }

    @Test func `need not one refused address if the parent chooses`() {
        let (good, bad) = (IPAddress.v4(0x0808_0808), IPAddress.v4(0x0A00_0001))
        func judge(_ found: [IPAddress], _ choice: AddressCheck.Choice) -> String {
            let result = AddressCheck.judge(found, choice) {
                $0 == bad ? .destinationRefused(.deniedNetwork) : nil
            }
            switch result {
            case .success(let allowed): return "\(allowed)"
            case .failure(let error): return error.reason.token
            }
        }
        #expect(judge([good], .proxy) == "[\(good)]")
        #expect(judge([good, bad], .proxy) == "destination-refused")
        #expect(judge([bad, good], .proxy) == "destination-refused")
        #expect(judge([bad, good], .gateway) == "[\(good)]")
        #expect(judge([bad], .gateway) == "destination-refused")
        #expect(judge([], .proxy) == judge([], .gateway))
        #expect(judge([], .proxy).hasPrefix("dns"))
    }

    @Test(
        arguments: [
            ("Basic YTpi", true), ("basic x", true), ("Bearer t", true), ("Digest a=b", false),
            ("Negotiate x", false), ("NTLM x", false), ("", false),
        ])
    func `get only credentials that are worth nothing to the next request`(
        value: String, isPassed: Bool
    ) {
        #expect(Passage.mayPass(value) == isPassed)
    }
}

@Suite("The ways of a configuration")
struct ConfiguredWaysTests {
    private static func policy(
        _ change: (inout ConfigurationSnapshot) throws -> Void = { _ in }
    ) throws -> PolicySnapshot {
        var parent = ParentConfiguration(name: "corp")
        (parent.host, parent.port) = ("proxy.test", 3128)
        var snapshot = ConfigurationSnapshot(workers: .fixed(1), listeners: [])
        snapshot.parents = [parent]
        snapshot.ways.parents = [.parent("corp"), .direct]
        try change(&snapshot)
        return try PolicySnapshot(forQueries: snapshot, preparesTLS: false)
    }

    private func names(_ policy: PolicySnapshot, _ host: String, port: UInt16 = 80) -> [String]? {
        policy.ways(to: BoundAuthority(host: host, port: port))?.ways.map {
            $0.proxy?.standing?.name ?? "direct"
        }
    }

    @Test func `are those of the host entry, or else the default`() throws {
        var entry = HostEntry()
        entry.match = [try HostPattern("own.test")]
        entry.parents = [.parent("corp")]
        var direct = HostEntry()
        direct.match = [try HostPattern("direct.test")]
        direct.parents = [.direct]
        let policy = try Self.policy { $0.hosts = HostTable(entries: [entry, direct]) }
        #expect(names(policy, "own.test") == ["corp"])
        #expect(names(policy, "direct.test") == nil)
        #expect(names(policy, "other.test") == ["corp", "direct"])
    }

    @Test func `are none for a host of noProxy, whatever its entry says`() throws {
        var entry = HostEntry()
        entry.match = [try HostPattern("**.own.test")]
        entry.parents = [.parent("corp")]
        entry.noProxy = DestinationList(patterns: [try HostPattern("a.own.test")])
        let policy = try Self.policy {
            $0.hosts = HostTable(entries: [entry])
            $0.ways.noProxy = DestinationList(
                networks: [try #require(IPNetwork("10.0.0.0/8"))],
                patterns: [try HostPattern("**.internal.test"), try HostPattern("b.own.test:443")])
        }
        #expect(names(policy, "a.own.test") == nil)
        #expect(names(policy, "b.own.test") == ["corp"])
        #expect(names(policy, "b.own.test", port: 443) == nil)
        #expect(names(policy, "x.internal.test") == nil)
        #expect(names(policy, "internal.test") == nil)
        #expect(names(policy, "10.1.2.3") == nil)
        #expect(names(policy, "11.1.2.3") == ["corp", "direct"])
    }

    @Test func `decide which tunnels go on after a reload`() throws {
        let authority = BoundAuthority(host: "a.test", port: 443)
        let before = try Self.policy()
        let parent = try #require(before.parents.first?.standing?.parent)
        #expect(before.allows(parent, to: authority, for: nil))
        #expect(before.allows(nil, to: authority, for: nil))
        let without = try Self.policy { $0.ways.parents = [.direct] }
        #expect(!without.allows(parent, to: authority, for: nil))
        let moved = try Self.policy { $0.parents[0].port = 1 }
        #expect(!moved.allows(parent, to: authority, for: nil))
        let only = try Self.policy { $0.ways.parents = [.parent("corp")] }
        #expect(!only.allows(nil, to: authority, for: nil))
    }

    @Test func `are part of what stored responses are obtained by, without credentials`() throws {
        let plain = try Self.policy { $0.ways.parents = [] }
        let first = try Self.policy()
        let other = try Self.policy { $0.parents[0].port = 1 }
        let secret = try Self.policy {
            ($0.parents[0].user, $0.parents[0].password) = ("me", SecretText("pwd"))
        }
        func print(_ policy: PolicySnapshot) -> TrustFingerprint {
            policy.fingerprint(entryIndex: nil, isFixed: false)
        }
        #expect(print(plain) != print(first))
        #expect(print(first) != print(other))
        #expect(print(first) == print(secret))
        #expect(first.configuration.hasSamePolicy(as: first.configuration))
        #expect(!first.configuration.hasSamePolicy(as: secret.configuration))
    }

    @Test func `are known by what is in force, and not by what has been refused`() throws {
        let labels = RouteLabels()
        func policy(port: UInt16) throws -> PolicySnapshot {
            try testPolicy(
                try testConfiguration("parents: { corp: { url: 'http://proxy.test:\(port)' } }"),
                labels: labels)
        }
        func states() -> [Bool] { labels.countedParents.map(\.isDown) }
        let first = try policy(port: 1)
        labels.activate(first)
        let standing = try #require(first.parents.first?.standing)
        #expect(standing.failed(.unreachable(.connectTimeout), at: 0))
        #expect(states() == [true])
        // It is read, but cannot come into force.
        let refused = try policy(port: 2)
        #expect(refused.parents.first?.standing !== standing)
        #expect(states() == [true])
        #expect(try policy(port: 1).parents.first?.standing === standing)
        labels.activate(try policy(port: 2))
        #expect(states() == [false])
    }

    @Test func `share connections only with the same credentials`() {
        func proxy(_ change: (inout ParentConfiguration) -> Void = { _ in }) -> UpstreamProxy {
            var parent = ParentConfiguration(name: "corp")
            (parent.host, parent.port) = ("proxy.test", 3128)
            change(&parent)
            return UpstreamProxy(
                parent, ParentStanding(parent, EventCountsOfParents.counts, .init(), at: 0))
        }
        #expect(proxy() == proxy())
        #expect(proxy() != proxy { $0.scheme = .https })
        #expect(proxy() != proxy { $0.scheme = .socks5h })
        #expect(proxy() != proxy { ($0.user, $0.password) = ("a", SecretText("b")) })
        let passing = proxy { $0.authorization = .pass }
        #expect(passing.passing("Basic x") == passing.passing("Basic x"))
        #expect(passing.passing("Basic x") != passing.passing("Basic y"))
        #expect(passing.passing(nil) == passing)
        #expect(proxy().passing("Basic x") == proxy())
    }
}

private enum EventCountsOfParents {
    static var counts: EventCounts<ParentEvent> { EventCounts() }
}
