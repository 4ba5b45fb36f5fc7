import Activity
import CLinux
import EngineTestSupport
import EventLoop
import HTTPCore
import Logging
import PinfoldMetrics
import ProxyProtocols
import Testing

@testable import PinfoldEngine

/// The result of a tunnel.
private enum Outcome: Equatable {
    case opened
    case failed(String)
    /// With this status and the fields' values.
    case refused(UInt16, [String])

    init(_ result: Result<ProxyTunnel.Opened, ExchangeError>) {
        switch result {
        case .success: self = .opened
        case .failure(.proxy(.refused(let answer))):
            self = .refused(answer.status, answer.fields.map { "\($0.name)=\($0.value)" })
        case .failure(let fault): self = .failed(fault.reason.token)
        }
    }
}

/// An environment for one connection, whose other end is the test's.
private final class Bench {
    let loop: EventLoop
    let environment: Environment
    private let resolver: ScriptedResolver
    let near: Int32
    let far: Int32
    var outcome: Outcome?

    init() throws {
        loop = try EventLoop()
        resolver = try ScriptedResolver { 0 }
        let shared = SharedEnvironment(
            mailboxes: [try Mailbox<EngineMessage>()], resolver: resolver.resolver, store: nil,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, labels: RouteLabels(),
            activity: ActivityMonitor(delays: ActivityDelays()))
        environment = Environment(
            index: 0, loop: loop, policy: try testPolicy(), shared: shared,
            metrics: WorkerMetrics(
                dimensions: MetricsDimensions(reasons: Reason.tokens.count)))
        (near, far) = try #require(ScriptedSockets.pair())
    }

    deinit {
        environment.closeConnections()
        environment.close()
        Descriptors.close(far)
        if outcome == .opened { Descriptors.close(near) }
    }

    func open(
        host: String = "origin.test", through proxy: UpstreamProxy? = nil,
        address: IPAddress? = nil, via: String = "", takesEarlyData: Bool = false
    ) throws {
        let proxy =
            proxy ?? UpstreamProxy(host: "proxy.test", port: 1, isSecure: false)
        let name = Array(host.utf8)
        let found = environment.origins.origin(
            host: name.span, port: 443, scheme: .https, through: ProxyRoute(proxy),
            policy: environment.policy)
        let origin = try #require(found)
        let tunnel = ProxyTunnel(
            environment: environment,
            subject: ProxyTunnel.Subject(
                authority: BoundAuthority(host: origin.key.host, port: 443), proxy: proxy,
                policy: environment.policy, address: address, via: Array(via.utf8),
                takesEarlyData: takesEarlyData),
            connection: Transport(descriptor: near)
        ) { [unowned self] result in
            #expect(outcome == nil)
            outcome = Outcome(result)
        }
        tunnel.start(timeoutMilliseconds: 3_600_000)
        turn()
    }

    func turn() { for _ in 0..<3 { loop.turn(waitingAtMost: 0) } }

    func send(_ bytes: some Collection<UInt8>) {
        let bytes = Array(bytes)
        _ = CLinux.send(far, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        turn()
    }

    /// What has arrived at the proxy.
    func received() -> String {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(far, &buffer, buffer.count, 0)
        return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    }
}

/// What a proxy sends, and the result.
private let answers: [(String, Outcome)] = [
    ("HTTP/1.1 200 OK\r\n\r\n", .opened), ("HTTP/1.0 200\r\nA: b\r\n\r\n", .opened),
    ("HTTP/1.1 299 Odd\r\n\r\n", .opened), ("HTTP/1.1 200 OK\n\n", .opened),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", .opened),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", .opened),
    (
        "HTTP/1.1 100 Wait\r\n\r\nHTTP/1.1 103 On\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        .opened
    ),
    (
        "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic\r\nA: b\r\n\r\n",
        .refused(407, ["Proxy-Authenticate=Basic", "A=b"])
    ),
    ("HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno", .refused(503, ["Content-Length=2"])),
    ("HTTP/1.1 404 No\nA: b\n\n", .refused(404, ["A=b"])),
    ("HTTP/1.1 101 Switch\r\n\r\n", .failed("proxy-bad-response")),
    ("HTTP/1.1 2000 OK\r\n\r\n", .failed("proxy-bad-response")),
    ("HTTP/2 200\r\n\r\n", .failed("proxy-bad-response")),
    ("HTTP/1.1 200 OK\r\nA : b\r\n\r\n", .failed("proxy-bad-response")),
    ("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}xyz", .failed("proxy-bad-response")),
    (String(repeating: "HTTP/1.1 103 On\r\n\r\n", count: 9), .failed("proxy-bad-response")),
]

@Suite("A tunnel through a proxy")
struct ProxyTunnelTests {
    @Test(
        arguments: [
            ("origin.test", "origin.test:443"), ("2001:db8::1", "[2001:db8::1]:443"),
            ("192.0.2.1", "192.0.2.1:443"), ("ORIGIN.test", "origin.test:443"),
        ])
    func `is requested with host and port`(host: String, authority: String) throws {
        let bench = try Bench()
        try bench.open(host: host)
        #expect(
            bench.received() == "CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
    }

    @Test func `is requested with the proxy's credentials, unless they are no field value`()
        throws
    {
        for value in ["Basic YTpi", "Basic a\r\nEvil: yes", nil] {
            let bench = try Bench()
            try bench.open(
                through: UpstreamProxy(host: "proxy.test", port: 1, isSecure: false) {
                    method, target in
                    method == "CONNECT" && target == "origin.test:443" ? value : "wrong"
                })
            let line = value == "Basic YTpi" ? "Proxy-Authorization: Basic YTpi\r\n" : ""
            #expect(
                bench.received()
                    == "CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\(line)\r\n")
        }
    }

    @Test(arguments: answers.indices, [true, false])
    func `ends as the proxy answers, whole or byte by byte`(
        index: Int, isWhole: Bool
    ) throws {
        let (answer, expected) = answers[index]
        let bench = try Bench()
        try bench.open()
        if isWhole {
            bench.send(answer.utf8)
        } else {
            for byte in answer.utf8 where bench.outcome == nil { bench.send([byte]) }
        }
        #expect(bench.outcome == expected)
        #expect(bench.environment.loop.handlers.isEmpty)
    }

    @Test func `fails if data follows the head that opens it`() throws {
        let bench = try Bench()
        try bench.open()
        bench.send("HTTP/1.1 200 OK\r\n\r\nx".utf8)
        #expect(bench.outcome == .failed("proxy-bad-response"))
    }

    @Test(arguments: ["", "HTTP/1.1 2", "HTTP/1.1 100 Wait\r\n\r\n", "HTTP/1.1 200 OK\r\n"])
    func `fails if the proxy ends the connection`(answer: String) throws {
        let bench = try Bench()
        try bench.open()
        bench.send(answer.utf8)
        #expect(bench.outcome == nil)
        shutdown(bench.far, Int32(SHUT_WR))
        bench.turn()
        #expect(bench.outcome == .failed("proxy-bad-response"))
        #expect(bench.environment.loop.handlers.isEmpty)
    }

    @Test func `has a head within the limits of heads`() throws {
        let bench = try Bench()
        try bench.open()
        bench.send("HTTP/1.1 200 OK\r\nA: ".utf8)
        let part = [UInt8](repeating: 0x61, count: 4096)
        for _ in 0..<7 { bench.send(part) }
        #expect(bench.outcome == nil)
        bench.send(part)
        #expect(bench.outcome == .failed("proxy-bad-response"))
    }

    @Test func `ends with its environment, without calling anyone`() throws {
        let bench = try Bench()
        try bench.open()
        bench.environment.closeConnections()
        #expect(bench.environment.loop.handlers.isEmpty)
        #expect(bench.outcome == nil)
        #expect(bench.received().hasPrefix("CONNECT "))
        #expect(bench.received().isEmpty)
    }
}

@Suite("Origins behind a proxy")
struct ProxiedOriginsTests {
    private let table = OriginTable()
    private let proxy = UpstreamProxy(host: "proxy.test", port: 1, isSecure: true)

    private func named(
        _ host: String, _ port: UInt16, _ scheme: Scheme, _ route: ProxyRoute,
        under policy: PolicySnapshot
    ) throws -> Origin {
        let name = Array(host.utf8)
        let found = table.origin(
            host: name.span, port: port, scheme: scheme, through: route, policy: policy)
        return try #require(found)
    }

    @Test func `are distinguished by proxy, credentials and route`() throws {
        let policy = try testPolicy()
        let routes = [
            ProxyRoute(proxy), ProxyRoute(proxy, tunnelsClearText: true),
            ProxyRoute(UpstreamProxy(host: "proxy.test", port: 1, isSecure: false)),
            ProxyRoute(UpstreamProxy(host: "proxy.test", port: 2, isSecure: true)),
            ProxyRoute(UpstreamProxy(host: "proxy.test", port: 1, isSecure: true, identity: "u")),
        ]
        var origins = try routes.map { try named("A.test", $0, under: policy) }
        let name = Array("a.test".utf8)
        let direct = table.origin(host: name.span, port: 80, scheme: .http, policy: policy)
        origins.append(try #require(direct))
        #expect(Set(origins.map { ObjectIdentifier($0) }).count == origins.count)
        #expect(Set(origins.map(\.key)).count == origins.count)
        let again = ProxyRoute(UpstreamProxy(host: "proxy.test", port: 1, isSecure: true))
        #expect(try named("a.test", again, under: policy) === origins[0])
        let secure = try routes.prefix(2).map {
            try named("a.test", 443, .https, $0, under: policy)
        }
        #expect(secure[0] === secure[1], "TLS is tunnelled by either")
    }

    @Test func `share the connections of a proxy that forwards, and have tunnels of their own`()
        throws
    {
        let policy = try testPolicy()
        let route = ProxyRoute(proxy)
        let one = try named("a.test", route, under: policy)
        let two = try named("b.test", 8080, .http, route, under: policy)
        let carrier = try #require(one.carrier)
        #expect(two.carrier === carrier)
        #expect(carrier.forwards == proxy)
        #expect(carrier.key.host == "proxy.test")
        #expect(carrier.tls != nil)
        #expect(one.tls == nil)
        let tunnelled = [
            try named("a.test", 443, .https, route, under: policy),
            try named(
                "a.test", 80, .http, ProxyRoute(proxy, tunnelsClearText: true), under: policy),
        ]
        for origin in tunnelled {
            #expect(origin.carrier == nil)
            #expect(origin.tunnelProxy == proxy)
            #expect(origin.tunnelProxy?.port == 1)
            #expect(!origin.isSubjectToRules)
        }
        #expect(table.all.count == 5)
        #expect(table.removeAll().count == 5)
        #expect(table.all.isEmpty)
    }

    @Test func `are forgotten when there are too many, and their proxies with them`() throws {
        let policy = try testPolicy()
        let held = try named("a.test", ProxyRoute(proxy), under: policy)
        for number in 0..<3000 {
            let proxy = UpstreamProxy(host: "p\(number)", port: 1, isSecure: false)
            _ = try named("a.test", ProxyRoute(proxy), under: policy)
        }
        #expect(table.all.count <= 1026)
        // An exchange that holds one will request a connection of its proxy, which others share.
        let again = try named("a.test", ProxyRoute(proxy), under: policy)
        #expect(again === held)
        #expect(table.all.contains { $0 === held.carrier })
    }

    private func named(
        _ host: String, _ route: ProxyRoute, under policy: PolicySnapshot
    ) throws -> Origin {
        try named(host, 80, .http, route, under: policy)
    }
}

@Suite("A tunnel through a SOCKS5 proxy")
struct SOCKSTunnelTests {
    private static let reply: [UInt8] = [5, 0, 0, 1, 127, 0, 0, 1, 0, 80]

    private func proxy(_ user: String? = nil) -> UpstreamProxy {
        UpstreamProxy(
            host: "proxy.test", port: 1, scheme: .socks5h,
            socksCredentials: user.flatMap {
                SOCKS5ClientHandshake.Credentials(user: Array($0.utf8), password: [65])
            })
    }

    @Test(arguments: [true, false])
    func `is opened step by step`(byteByByte: Bool) throws {
        let bench = try Bench()
        try bench.open(through: proxy("me"))
        func answer(_ bytes: [UInt8]) {
            if byteByByte { for byte in bytes { bench.send([byte]) } } else { bench.send(bytes) }
        }
        #expect(Array(bench.received().utf8) == [5, 2, 0, 2])
        answer([5, 2])
        #expect(Array(bench.received().utf8) == [1, 2, 109, 101, 1, 65])
        answer([1, 0])
        #expect(bench.received().contains("origin.test"))
        #expect(bench.outcome == nil)
        answer(Self.reply)
        #expect(bench.outcome == .opened)
    }

    @Test func `names an address if it is given one`() throws {
        let bench = try Bench()
        try bench.open(through: proxy(), address: .v4(0x0102_0304))
        #expect(Array(bench.received().utf8) == [5, 1, 0])
        bench.send([5, 0])
        #expect(bench.received().unicodeScalars.map(\.value).prefix(8) == [5, 1, 0, 1, 1, 2, 3, 4])
    }

    @Test(
        arguments: [
            ([5, 0xFF], "proxy-authentication-required"), ([4, 0], "proxy-bad-response"),
            ([72, 84], "proxy-bad-response"),
        ] as [([UInt8], String)])
    func `fails with the reason of what it answers`(bytes: [UInt8], token: String) throws {
        let bench = try Bench()
        try bench.open(through: proxy())
        bench.send(bytes)
        #expect(bench.outcome == .failed(token))
    }

    @Test(arguments: [true, false])
    func `may be followed by data at once only where servers speak first`(isAllowed: Bool) throws {
        let bench = try Bench()
        try bench.open(through: proxy(), takesEarlyData: isAllowed)
        bench.send([5, 0])
        bench.send(Self.reply + [1, 2, 3])
        #expect(bench.outcome == (isAllowed ? .opened : .failed("proxy-bad-response")))
    }
}

@Suite("A CONNECT to another gateway")
struct ConnectLoopTests {
    @Test func `carries Via`() throws {
        let bench = try Bench()
        try bench.open(via: "Via: 1.1 a\r\nVia: 1.1 pinfold\r\n")
        #expect(bench.received().hasSuffix("\r\nVia: 1.1 a\r\nVia: 1.1 pinfold\r\n\r\n"))
    }

    @Test func `that goes round in a circle has its own reason`() throws {
        let bench = try Bench()
        try bench.open()
        bench.send("HTTP/1.1 508 Loop\r\n\r\n".utf8)
        #expect(bench.outcome == .failed("proxy-loop"))
    }
}
