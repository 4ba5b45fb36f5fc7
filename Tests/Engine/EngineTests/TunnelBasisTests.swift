import Authentication
import Clocks
import EngineTestSupport
import HTTPCore
import PinfoldConfiguration
import Testing
import Trust

@testable import PinfoldEngine

/// Which open tunnels a reload ends because of the rules of `access.rules`.
@Suite("The basis of a tunnel")
struct TunnelBasisTests {
    private static let now = Clock.wallSeconds()
    /// Three hours ago.
    private static let begun = now - 3 * 3600

    /// `HH:MM-HH:MM`, the two minutes that begin at a time.
    private static func hours(at seconds: Int64) -> String {
        func text(_ minute: Int) -> String {
            let time = minute % (24 * 60)
            func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
            return "\(two(time / 60)):\(two(time % 60))"
        }
        let minute = Clock.localMinuteOfWeek(at: seconds)
        return "\(text(minute))-\(text(minute + 2))"
    }

    private func policy(
        _ rules: String, generation: UInt64 = 1, following previous: PolicySnapshot? = nil,
        rest: String = ""
    ) throws -> PolicySnapshot {
        let text = "access: { default: deny, rules: [\(rules)] }\n\(rest)"
        return try testPolicy(
            try testConfiguration(text), generation: generation, following: previous)
    }

    private func basis(
        under policy: PolicySnapshot, at seconds: Int64 = Self.begun,
        since generations: PolicySnapshot.Generations? = nil, as identity: Identity? = nil
    ) throws -> TunnelBasis {
        let client = try #require(IPAddress("192.0.2.1"))
        let subject = AccessRules.Subject(listener: "proxy", client: client, method: .connect)
        return TunnelBasis(
            BoundAuthority(host: "a.test", port: 443), by: .tunnel, from: nil,
            as: identity,
            request: AccessRequest(
                subject: subject, methodName: Array("CONNECT".utf8), scope: .authority, path: [],
                at: seconds),
            at: nil, proof: .none, under: policy, since: generations)
    }

    @Test func `a time that is over ends no tunnel when something else changes`() throws {
        let rule = "{ name: a, times: [\"\(Self.hours(at: Self.begun))\"], action: allow }"
        let first = try policy(rule)
        let basis = try basis(under: first)
        #expect(!basis.isSuperseded(by: first))
        let second = try policy(
            rule + ", { name: b, ports: [8443], action: allow }", generation: 2, following: first)
        #expect(basis.isOlder(than: second))
        #expect(!basis.isSuperseded(by: second))
        // One that begins now would not be allowed.
        #expect(try self.basis(under: first, at: Self.now).isSuperseded(by: second))
    }

    @Test func `a change of the time itself does`() throws {
        let first = try policy("{ name: a, action: allow }")
        let basis = try basis(under: first)
        let now = try policy(
            "{ name: a, times: [\"\(Self.hours(at: Self.now))\"], action: allow }", generation: 2,
            following: first)
        #expect(basis.isSuperseded(by: now))
        let then = try policy(
            "{ name: a, times: [\"\(Self.hours(at: Self.begun))\"], action: allow }",
            generation: 2, following: first)
        #expect(!basis.isSuperseded(by: then))
    }

    @Test func `trust and rules have generations of their own`() throws {
        let first = try policy("{ name: a, action: allow }")
        let second = try policy(
            "{ name: a, ports: [443], action: allow }", generation: 2, following: first)
        #expect(second.generations.trust == first.generations.trust)
        #expect(second.generations.rules == 2)
        let third = try policy(
            "{ name: a, ports: [443], action: allow }", generation: 3, following: second,
            rest: "hosts: [{ match: [b.test] }]")
        #expect(third.generations.trust == 3 && third.generations.rules == 2)
        // Admitted under the first policy, and verified under the second.
        let basis = try basis(under: second, since: first.generations)
        #expect(basis.isOlder(than: second))
        #expect(try !self.basis(under: second).isOlder(than: second))
    }

    @Test(arguments: ["https", "http"])
    func `what a parent must prove is part of the way`(scheme: String) throws {
        func policy(_ hosts: String, _ generation: UInt64 = 1) throws -> PolicySnapshot {
            try testPolicy(
                try testConfiguration(
                    """
                    parents: { corp: { url: "\(scheme)://proxy.test:3128" } }
                    ways: { parents: [corp] }
                    hosts: [\(hosts)]
                    pinsets: { p: { mode: publicKey, pins: ["sha256/\(Self.pin)"] } }
                    """), generation: generation)
        }
        func basis(_ policy: PolicySnapshot) -> TunnelBasis {
            TunnelBasis(
                BoundAuthority(host: "a.test", port: 443), by: .tunnel, from: nil, as: nil,
                request: nil, at: nil, through: policy.parents.first, proof: .none,
                under: policy)
        }
        let first = basis(try policy(""))
        #expect(!first.isSuperseded(by: try policy("{ match: [other.test], http2: off }", 2)))
        let pinned = "{ match: [proxy.test], pinsets: [p], clearText: allow }"
        #expect(first.isSuperseded(by: try policy(pinned, 2)) == (scheme == "https"))
        let kept = "\(pinned), { match: [a.test], liveTunnels: keep }"
        #expect(!first.isSuperseded(by: try policy(kept, 2)))
        #expect(
            try basis(policy(pinned)).isSuperseded(by: try policy("", 2))
                == (scheme == "https"))
    }

    private static let pin = String(repeating: "A", count: 43) + "="

    @Test(arguments: [true, false])
    func `a server on a Unix socket is reached without the parents of others`(isOnSocket: Bool)
        throws
    {
        func policy(_ more: String, _ generation: UInt64) throws -> PolicySnapshot {
            try testPolicy(
                try testConfiguration(
                    """
                    parents: { corp: { url: "http://proxy.test:3128" } }
                    ways: { parents: [corp] }
                    \(more)
                    """), generation: generation)
        }
        let first = try policy("", 1)
        let server =
            isOnSocket
            ? UpstreamOrigin(unixPath: "/run/a.sock")
            : UpstreamOrigin(scheme: .http, host: "localhost", port: 80)
        let origin = OriginTable().origin(
            of: ReverseUpstream(server, forwarding: ForwardingConfiguration(), telling: .none),
            policy: first)
        let basis = origin.basis(from: nil, as: nil, request: nil, at: nil, through: nil)
        let next = try policy("hosts: [{ match: [other.test], http2: off }]", 2)
        #expect(basis.isOlder(than: next))
        #expect(basis.isSuperseded(by: next) != isOnSocket)
    }

    @Test func `it lasts until the proof of who asked expires, unless it is kept`() throws {
        func identity(until end: Int64?) -> Identity {
            Identity(user: "ann", groups: [], by: .certificate(CertificateNames()), expires: end)
        }
        let rule = "{ name: a, action: allow }"
        let first = try policy(rule)
        let rows: [(Identity?, Int64, Int64)] = [
            (nil, 0, .max), (identity(until: nil), 0, .max),
            (identity(until: 100), 98_500, 1500), (identity(until: 100), 99_999, 1),
            (identity(until: 100), 100_000, 0), (identity(until: 100), 200_000, 0),
        ]
        for (identity, now, milliseconds) in rows {
            let basis = try basis(under: first, as: identity)
            #expect(basis.millisecondsOfProof(at: now, under: first) == milliseconds)
        }
        for (mode, milliseconds) in [("auto", 0), ("close", 0), ("keep", Int64.max)] {
            // That of another configuration than the one under which it was begun.
            let next = try policy(
                rule, generation: 2, following: first,
                rest: "hosts: [{ match: [a.test], liveTunnels: \(mode) }]")
            let basis = try basis(under: first, as: identity(until: 100))
            #expect(basis.millisecondsOfProof(at: 100_000, under: next) == milliseconds)
        }
    }
}
