import EngineTestSupport
import HTTPCore
import Testing

@testable import PinfoldEngine

/// The most origins that a table keeps when nothing uses them.
private let capacity = 4096

extension OriginTable {
    fileprivate func named(
        _ host: String, _ port: UInt16 = 80, _ scheme: Scheme = .http, under policy: PolicySnapshot
    ) throws -> Origin {
        let bytes = Array(host.utf8)
        let found = origin(host: bytes.span, port: port, scheme: scheme, policy: policy)
        return try #require(found)
    }
}

@Suite("The table of origins")
struct OriginTableTests {
    private let table = OriginTable()

    @Test func `a host is the same in any case`() throws {
        let policy = try testPolicy()
        let origin = try table.named("api.example.com", under: policy)
        for host in ["API.EXAMPLE.COM", "Api.Example.Com", "api.example.com"] {
            #expect(try table.named(host, under: policy) === origin)
        }
        #expect(origin.key.host == "api.example.com")
        #expect(table.all.count == 1)
    }

    @Test func `host, port and scheme distinguish origins`() throws {
        let policy = try testPolicy()
        let origins = [
            try table.named("a.test", 80, .http, under: policy),
            try table.named("a.test", 8080, .http, under: policy),
            try table.named("a.test", 80, .https, under: policy),
            try table.named("a.test", 443, .https, under: policy),
            try table.named("b.test", 80, .http, under: policy),
            try table.named("a.test.", 80, .http, under: policy),
        ]
        #expect(Set(origins.map { ObjectIdentifier($0) }).count == origins.count)
        #expect(table.all.count == origins.count)
    }

    @Test(
        arguments: [
            ("a.test", 80, .http, "a.test", "http://a.test"),
            ("a.test", 8080, .http, "a.test:8080", "http://a.test:8080"),
            ("a.test", 443, .http, "a.test:443", "http://a.test:443"),
            ("a.test", 443, .https, "a.test", "https://a.test"),
            ("a.test", 80, .https, "a.test:80", "https://a.test:80"),
            ("192.0.2.1", 80, .http, "192.0.2.1", "http://192.0.2.1"),
            ("2001:db8::1", 80, .http, "[2001:db8::1]", "http://[2001:db8::1]"),
            ("2001:db8::1", 81, .https, "[2001:db8::1]:81", "https://[2001:db8::1]:81"),
        ] as [(String, UInt16, Scheme, String, String)])
    func `an origin is named without its default port`(
        host: String, port: UInt16, scheme: Scheme, authority: String, prefix: String
    ) throws {
        let origin = try table.named(host, port, scheme, under: try testPolicy())
        #expect(String(decoding: origin.authority, as: UTF8.self) == authority)
        #expect(String(decoding: origin.keyStart.bytes, as: UTF8.self) == prefix)
        #expect((origin.tls != nil) == (scheme == .https))
        #expect(origin.key.isSecure == (scheme == .https))
    }

    @Test func `after a burst those that nothing uses any more are forgotten`() throws {
        let policy = try testPolicy()
        for number in 0..<3000 { try table.named("n\(number).test", under: policy).open = 1 }
        for number in 0..<2990 {
            let origin = try table.named("n\(number).test", under: policy)
            origin.open = 0
            table.becameUnused(origin)
        }
        #expect(table.all.count < 1500)
        #expect(table.all.count { $0.open == 1 } == 10)
    }

    @Test func `an origin that repeatedly fails does not cause others to be forgotten`() throws {
        let policy = try testPolicy()
        try fill(100, policy)
        let failing = try table.named("down.test", under: policy)
        for _ in 0..<5000 { table.becameUnused(failing) }
        #expect(table.all.count == 101)
    }

    @Test(arguments: [(0, false), (1, true), (255, true), (256, false), (5000, false)])
    func `a host has from 1 to 255 bytes`(length: Int, isHost: Bool) throws {
        let policy = try testPolicy()
        let host = [UInt8](repeating: UInt8(ascii: "a"), count: length)
        let origin = table.origin(host: host.span, port: 80, scheme: .http, policy: policy)
        #expect((origin != nil) == isHost)
        #expect(table.all.count == (isHost ? 1 : 0))
    }

    // MARK: Upgrades

    private let upgrading = """
        hosts:
          - match: [up.test]
            upgrade: https
          - match: ["*.ports.test:8080"]
            upgrade: https
        """

    @Test(
        arguments: [
            ("up.test", 80, .http, 443, true), ("up.test", 8080, .http, 8080, true),
            ("up.test", 443, .http, 443, true), ("up.test", 443, .https, 443, true),
            ("up.test", 80, .https, 80, true), ("UP.test", 80, .http, 443, true),
            ("other.test", 80, .http, 80, false), ("a.ports.test", 8080, .http, 8080, true),
            ("a.ports.test", 80, .http, 80, false),
        ] as [(String, UInt16, Scheme, UInt16, Bool)])
    func `an upgrade moves the default port and keeps an explicit one`(
        host: String, port: UInt16, scheme: Scheme, connected: UInt16, isSecure: Bool
    ) throws {
        let origin = try table.named(host, port, scheme, under: try testPolicy(upgrading))
        #expect(origin.key.port == connected)
        #expect(origin.key.requestedPort == port)
        #expect(origin.key.isSecure == isSecure)
        #expect((origin.tls != nil) == isSecure)
        #expect(!origin.key.isFixed)
    }

    @Test func `an upgraded origin shares its cache keys with the secure one`() throws {
        let policy = try testPolicy(upgrading)
        let upgraded = try table.named("up.test", 80, .http, under: policy)
        let secure = try table.named("up.test", 443, .https, under: policy)
        #expect(upgraded !== secure)
        #expect(upgraded.keyStart.bytes == secure.keyStart.bytes)
        #expect(upgraded.fingerprint == secure.fingerprint)
    }

    @Test func `an upgrade that keeps the port leads to the same origin as an https request`()
        throws
    {
        let policy = try testPolicy(upgrading)
        for port: UInt16 in [443, 8080] {
            let upgraded = try table.named("up.test", port, .http, under: policy)
            #expect(try table.named("up.test", port, .https, under: policy) === upgraded)
            #expect(try table.named("up.test", port, .http, under: policy) === upgraded)
        }
        #expect(table.all.count == 2)
        try fill(capacity, policy)
        #expect(!table.all.contains { $0.key.host == "up.test" }, "it can be forgotten")
    }

    // MARK: What applies to an origin

    @Test func `the entry of a host applies`() throws {
        let policy = try testPolicy(
            """
            cache: { disk: 0B }
            timeouts: { firstByte: 60s }
            hosts:
              - match: [one.test]
                request: { timeout: 5s }
                cache: { store: false }
              - match: ["*.two.test"]
            """)
        let one = try table.named("one.test", under: policy)
        let two = try table.named("x.two.test", under: policy)
        let none = try table.named("three.test", under: policy)
        #expect([one, two, none].map(\.entryIndex) == [0, 1, nil])
        #expect([one, two, none].map(\.timeouts.firstByteMilliseconds) == [5000, 60_000, 60_000])
        #expect([one, two, none].map(\.cacheStores) == [false, true, true])
        #expect(one.reachability?.host == "one.test")
        #expect(two.reachability?.host == "x.two.test")
        #expect(two.reachability?.entry.label == "*.two.test")
        #expect(none.reachability == nil)
        #expect(none.route == policy.defaultRoute)
        #expect(Set([one, two, none].map(\.route)).count == 3)
    }

    @Test func `nothing is stored when the cache is off`() throws {
        let policy = try testPolicy("cache: { enabled: false }")
        #expect(try !table.named("a.test", under: policy).cacheStores)
    }

    @Test(
        arguments: [
            ("127.0.0.1", .scope(.loopback)), ("::1", .scope(.loopback)),
            ("10.1.2.3", .scope(.private)), ("169.254.169.254", .scope(.metadata)),
            ("0.0.0.0", .scope(.unspecified)), ("8.8.8.8", nil),
            ("denied.test", .deniedHost), ("10.9.9.9", nil), ("192.0.2.77", .deniedNetwork),
            ("example.com", nil),
        ] as [(String, DestinationRefusalReason?)])
    func `what is known of a destination by its name is decided once`(
        host: String, refusal: DestinationRefusalReason?
    ) throws {
        let policy = try testPolicy(
            """
            access:
              destinations:
                allow: [10.9.0.0/16]
                deny: [denied.test, 192.0.2.0/24]
            """)
        let found = try table.named(host, under: policy).refusal
        let expected = refusal.map { ExchangeError.destinationRefused($0) }
        #expect(found?.explanation == expected?.explanation)
    }

    @Test(
        arguments: [
            ("pinned.test", 80, .http, "clear-text-refused"), ("pinned.test", 443, .https, nil),
            ("port.test", 80, .http, "pinned-port-refused"), ("port.test", 443, .https, nil),
            ("port.test", 8443, .https, "pinned-port-refused"), ("up.test", 80, .http, nil),
            ("open.test", 80, .http, nil), ("other.test", 80, .http, nil),
        ] as [(String, UInt16, Scheme, String?)])
    func `what would go around pinsets is refused`(
        host: String, port: UInt16, scheme: Scheme, reason: String?
    ) throws {
        let policy = try testPolicy(
            """
            hosts:
              - { match: [pinned.test], pinsets: [p] }
              - { match: ["port.test:443"], pinsets: [p] }
              - { match: [up.test], upgrade: https, pinsets: [p] }
              - { match: [open.test], clearText: allow, pinsets: [p] }
            pinsets: { p: { mode: none } }
            """)
        #expect(try table.named(host, port, scheme, under: policy).refusal?.reason.token == reason)
        let upstream = ReverseUpstream(host: host, port: port, isSecure: scheme == .https)
        // A reverse listener's upstream is not upgraded.
        let expected = host == "up.test" ? "clear-text-refused" : reason
        #expect(table.origin(of: upstream, policy: policy).refusal?.reason.token == expected)
    }

    // MARK: Reverse routes

    @Test func `the upstream of a route is one origin without refusal`() throws {
        let policy = try testPolicy()
        let upstream = ReverseUpstream(host: "127.0.0.1", port: 8443, isSecure: true)
        let origin = table.origin(of: upstream, policy: policy)
        #expect(table.origin(of: upstream, policy: policy) === origin)
        #expect(origin.key.isFixed)
        #expect(origin.key.isSecure)
        #expect(origin.refusal == nil)
        #expect(origin.tls != nil)
        // A forward request for the same address is refused: it has an origin of its own.
        let forward = try table.named("127.0.0.1", 8443, .https, under: policy)
        #expect(forward !== origin)
        #expect(forward.refusal?.explanation.contains("loopback") == true)
        let clear = ReverseUpstream(host: "127.0.0.1", port: 8443, isSecure: false)
        #expect(table.origin(of: clear, policy: policy) !== origin)
        #expect(table.all.count == 3)
    }

    // MARK: Capacity

    private func fill(_ count: Int, _ policy: PolicySnapshot) throws {
        for index in 0..<count { _ = try table.named("h\(index).test", under: policy) }
    }

    @Test func `beyond the capacity only the unused are forgotten`() throws {
        let policy = try testPolicy()
        weak let unused = try table.named("unused.test", under: policy)
        let held = try table.named("held.test", under: policy)
        let open = try table.named("open.test", under: policy)
        let connecting = try table.named("connecting.test", under: policy)
        let waiting = try table.named("waiting.test", under: policy)
        let reverse = table.origin(
            of: ReverseUpstream(host: "r.test", port: 80, isSecure: false), policy: policy)
        open.open = 1
        connecting.connecting = 1
        waiting.waiters.append(IdleConsumer(), wantsFresh: false)
        try fill(capacity - 5, policy)
        // At the capacity nothing is forgotten.
        #expect(table.all.count == capacity + 1)
        #expect(unused != nil)
        let last = try table.named("one-more.test", under: policy)
        #expect(table.all.count == 6)
        #expect(unused == nil)
        // Its holder will request a connection, which others are to find.
        #expect(try table.named("held.test", under: policy) === held)
        #expect(try table.named("open.test", under: policy) === open)
        #expect(try table.named("connecting.test", under: policy) === connecting)
        #expect(try table.named("waiting.test", under: policy) === waiting)
        #expect(try table.named("one-more.test", under: policy) === last)
        #expect(
            table.origin(
                of: ReverseUpstream(host: "r.test", port: 80, isSecure: false), policy: policy)
                === reverse)
    }

    @Test func `origins in use are kept beyond the capacity`() throws {
        let policy = try testPolicy()
        try fill(capacity, policy)
        for origin in table.all { origin.open = 1 }
        _ = try table.named("one-more.test", under: policy)
        #expect(table.all.count == capacity + 1)
    }

    @Test func `after forgetting there is room again`() throws {
        let policy = try testPolicy()
        try fill(capacity + 1, policy)
        #expect(table.all.count == 1)
        for index in 0..<(capacity - 1) { _ = try table.named("g\(index).test", under: policy) }
        #expect(table.all.count == capacity)
    }

    @Test func `removing all returns all and leaves none`() throws {
        let (policy, next) = (try testPolicy(), try testPolicy())
        try fill(3, policy)
        let upstream = ReverseUpstream(host: "r.test", port: 80, isSecure: false)
        let reverse = table.origin(of: upstream, policy: policy)
        let removed = table.removeAll()
        #expect(removed.count == 4)
        #expect(removed.contains { $0 === reverse })
        #expect(table.all.isEmpty)
        let made = try table.named("h0.test", under: next)
        #expect(made.policy === next)
        #expect(table.origin(of: upstream, policy: next) !== reverse)
    }

    @Test func `another snapshot is taken over with its limits and times`() throws {
        let first = try testPolicy("hosts: [{ match: [h1.test] }]")
        let configuration = try testConfiguration(
            """
            hosts: [{ match: [h1.test] }]
            timeouts: { firstByte: 7s }
            cache: { enabled: false }
            """)
        let next = try testPolicy(configuration, generation: 2, following: first)
        let origin = try table.named("h1.test", under: first)
        let upstream = ReverseUpstream(host: "r.test", port: 80, isSecure: false)
        weak let reverse = table.origin(of: upstream, policy: first)
        let held = table.origin(
            of: ReverseUpstream(host: "held.test", port: 80, isSecure: false), policy: first)
        _ = table.adopt(next)
        #expect(try table.named("h1.test", under: next) === origin)
        #expect(origin.policy === next)
        #expect(origin.timeouts.firstByteMilliseconds == 7000)
        #expect(!origin.cacheStores)
        // Its listener may be gone, and nothing uses it: found again if it is not.
        #expect(reverse == nil)
        #expect(table.all.contains { $0 === held })
        #expect(held.policy === next)
    }
}
