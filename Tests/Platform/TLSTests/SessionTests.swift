import COpenSSL
import PinfoldTLS
import Testing
import Trust

@Suite("Resumption, by real handshakes")
struct SessionTests {
    /// The result of one connection.
    struct Outcome: Equatable {
        var isResumed = false
        var facts: TrustFacts?
        var error: TLSError?
    }

    /// One request and response.
    func connect(
        _ context: TLSClientContext, to server: TestServer, host: String = "service.test",
        namedPort: UInt16? = nil, now: Int64 = TestClient.now
    ) throws -> Outcome {
        let client = try TestClient(
            context, port: server.port, host: host, namedPort: namedPort, now: now)
        if let error = client.handshake() { return Outcome(error: error) }
        #expect(client.exchange() == "hello")
        return Outcome(isResumed: client.connection.isResumed, facts: client.connection.facts)
    }

    static let versions = [TLS1_2_VERSION, TLS1_3_VERSION]

    @Test(arguments: versions)
    func `a session is resumed with the facts of its full handshake`(_ version: Int32) throws {
        let server = TestServer(
            [PKI.direct], options: .init(maximumVersion: version), connections: 3)
        let pinset = pinset(.publicKey, PKI.direct.pins(.key))
        let context = try TLSClientContext.make([pinset], sessions: TLSSessionCache())
        let outcomes = try (0..<3).map { _ in try connect(context, to: server) }
        #expect(outcomes.map(\.isResumed) == [false, true, true])
        #expect(outcomes[0].facts != nil)
        #expect(Set(outcomes.map(\.facts)).count == 1)
        #expect(server.records().map(\.isResumed) == [false, true, true])
    }

    @Test(arguments: versions)
    func `without a cache nothing is resumed`(_ version: Int32) throws {
        let server = TestServer(
            [PKI.direct], options: .init(maximumVersion: version), connections: 2)
        let context = try TLSClientContext.make()
        _ = try connect(context, to: server)
        #expect(try !connect(context, to: server).isResumed)
        #expect(server.records().map(\.isResumed) == [false, false])
    }

    @Test func `a ticket of TLS 1.3 serves one connection, a session of TLS 1.2 many`() throws {
        let limits = TLSSessionLimits()
        for (version, expected) in [(TLS1_3_VERSION, 1), (TLS1_2_VERSION, 1)] {
            let cache = TLSSessionCache(limits: limits)
            let server = TestServer(
                [PKI.direct], options: .init(maximumVersion: version), connections: 3)
            let context = try TLSClientContext.make(sessions: cache)
            _ = try connect(context, to: server)
            let held = cache.count
            // Servers send two tickets by default.
            #expect(held == (version == TLS1_3_VERSION ? 2 : 1))
            do {
                let first = try TestClient(context, port: server.port)
                #expect(cache.count == expected)
                let second = try TestClient(context, port: server.port)
                #expect(cache.count == (version == TLS1_3_VERSION ? 0 : 1))
                #expect(first.handshake() == nil)
                #expect(first.connection.isResumed)
                #expect(first.exchange() == "hello")
                first.end()
                #expect(second.handshake() == nil)
                #expect(second.connection.isResumed)
                #expect(second.exchange() == "hello")
            }
            #expect(server.records().map(\.isResumed) == [false, true, true])
        }
    }

    @Test(arguments: versions)
    func `a changed policy verifies again: the session of the old one is not used`(
        _ version: Int32
    ) throws {
        let server = TestServer(
            [PKI.direct], options: .init(maximumVersion: version), connections: 4)
        let cache = TLSSessionCache()
        let right = pinset(.publicKey, PKI.direct.pins(.key))
        let wrong = pinset(.publicKey, PKI.leaf.pins(.key))
        let old = try TLSClientContext.make([right], sessions: cache)
        #expect(try connect(old, to: server).error == nil)
        #expect(cache.count > 0)
        let new = try TLSClientContext.make([wrong], sessions: cache)
        #expect(new.identity != old.identity)
        #expect(try connect(new, to: server).error?.token == "no-pin-matches")
        // The same policy in another context is judged again, too.
        let same = try TLSClientContext.make([right], sessions: cache)
        #expect(try connect(same, to: server) == connect(old, to: server).asFull)
        #expect(server.records().map(\.isResumed) == [false, false, false, true])
        #expect(server.records().map(\.isEstablished) == [true, false, true, true])
    }

    @Test(arguments: versions)
    func `a session belongs to its host and port`(_ version: Int32) throws {
        let server = TestServer(
            [PKI.direct], options: .init(maximumVersion: version), connections: 4)
        let context = try TLSClientContext.make(sessions: TLSSessionCache())
        #expect(try !connect(context, to: server, host: "a.wild.test").isResumed)
        #expect(try !connect(context, to: server, host: "b.wild.test").isResumed)
        #expect(try !connect(context, to: server, host: "a.wild.test", namedPort: 1).isResumed)
        #expect(try connect(context, to: server, host: "A.wild.test.").isResumed)
        #expect(server.records().map(\.isResumed) == [false, false, false, true])
    }

    @Test(arguments: versions)
    func `a session is not resumed after its chain has expired`(_ version: Int32) throws {
        let server = TestServer(
            [PKI.shortLived], options: .init(maximumVersion: version), connections: 3)
        let cache = TLSSessionCache()
        let context = try TLSClientContext.make(sessions: cache)
        let expires = try #require(try connect(context, to: server).facts?.expires)
        #expect(expires < TestClient.now + 601)
        #expect(try connect(context, to: server, now: expires - 1).isResumed)
        #expect(try !connect(context, to: server, now: expires).isResumed)
        #expect(server.records().map(\.isResumed) == [false, true, false])
    }

    @Test(arguments: versions)
    func `a session is not resumed after the cache's longest age`(_ version: Int32) throws {
        var limits = TLSSessionLimits()
        limits.lifetimeSeconds = 100
        let server = TestServer(
            [PKI.direct], options: .init(maximumVersion: version), connections: 3)
        let context = try TLSClientContext.make(sessions: TLSSessionCache(limits: limits))
        let start = TestClient.now
        _ = try connect(context, to: server, now: start)
        #expect(try connect(context, to: server, now: start + 99).isResumed)
        #expect(try !connect(context, to: server, now: TestClient.now + 101).isResumed)
        #expect(server.records().count == 3)
    }

    @Test(arguments: versions)
    func `a refused server leaves no session`(_ version: Int32) throws {
        let server = TestServer(
            [PKI.direct], options: .init(maximumVersion: version), connections: 2)
        let cache = TLSSessionCache()
        let context = try TLSClientContext.make(
            [pinset(.publicKey, PKI.leaf.pins(.key))], sessions: cache)
        for _ in 0..<2 {
            #expect(try connect(context, to: server).error?.token == "no-pin-matches")
        }
        #expect(cache.count == 0)
        #expect(server.records().allSatisfy { !$0.isResumed && $0.request.isEmpty })
    }

    @Test func `a server that has forgotten the session is verified in full`() throws {
        let cache = TLSSessionCache()
        let context = try TLSClientContext.make(
            [pinset(.publicKey, PKI.direct.pins(.key))], sessions: cache)
        let first = TestServer([PKI.direct])
        _ = try connect(context, to: first, namedPort: 1)
        #expect(first.records().count == 1)
        #expect(cache.count > 0)
        // Another server under the same name and port: it cannot read the first one's tickets.
        let second = TestServer([PKI.rogueLeaf])
        #expect(
            try connect(context, to: second, namedPort: 1).error?.token == "incomplete-chain")
        #expect(second.records().allSatisfy { !$0.isEstablished })
    }

    @Test func `threads share a context and its sessions`() async throws {
        let context = try TLSClientContext.make(
            [
                pinset(.publicKey, PKI.direct.pins(.key), name: "a"),
                pinset(.certificate, PKI.root.pins(.fingerprint), name: "b"),
            ], sessions: TLSSessionCache())
        let results = try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    let server = TestServer([PKI.direct], connections: 20)
                    for index in 0..<20 {
                        let isRight = index.isMultiple(of: 2)
                        let host = isRight ? "service.test" : "other.test"
                        let outcome = try connect(context, to: server, host: host, namedPort: 1)
                        guard (outcome.error == nil) == isRight else { return false }
                    }
                    return server.records().filter(\.isEstablished).count == 10
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(results == [true, true, true, true])
    }

    @Test func `the sessions of a context go with it`() throws {
        let cache = TLSSessionCache()
        let server = TestServer([PKI.direct], connections: 2)
        let kept = try TLSClientContext.make(sessions: cache)
        _ = try connect(kept, to: server)
        let own = cache.count
        do {
            let passing = try TLSClientContext.make(sessions: cache)
            _ = try connect(passing, to: server)
            #expect(cache.count == 2 * own)
        }
        #expect(cache.count == own)
        #expect(server.records().count == 2)
        withExtendedLifetime(kept) {}
    }
}

extension SessionTests.Outcome {
    /// The same, with a full handshake.
    var asFull: Self {
        var full = self
        full.isResumed = false
        return full
    }
}
