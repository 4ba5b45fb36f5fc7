import CLinux
import HTTPTypes
import Locking
import TestSupport
import Testing

@testable import PinfoldClient

@Suite("A connection that is made in advance")
struct PreconnectTests {
    /// A server whose answers wait at a gate, and a session.
    private func with(
        _ gate: AnswerGate, secure isSecure: Bool = false, requests: Int = 6,
        _ body: (TestServer, SessionManager) async throws -> Void
    ) async throws {
        try await withServer(secure: isSecure) { connection, request in
            connection.wait(at: gate)
            connection.respond("200 OK", [], request.path)
            return true
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.maximumRequestsPerOrigin = requests
            if isSecure { configuration.securityPolicy = try TestAuthority.policy() }
            try await body(
                server, try SessionManager(configuration: configuration, runtime: runtime))
        }
    }

    /// Whether each of several requests that are active at the same time has found a connection.
    ///
    /// - Parameter active: The number of requests that are active at the same time.
    private func reuse(
        _ count: Int, of active: Int, at url: String, _ gate: AnswerGate, in session: SessionManager
    ) async throws -> [Bool] {
        let tasks = (0..<count).map { _ in
            Task { try await session.data(for: try HTTPRequest(.get, url)) }
        }
        await gate.arrival(of: active)
        gate.open()
        var reuse: [Bool] = []
        for task in tasks {
            reuse.append(try await task.value.metrics.transactions[0].reusedConnection)
        }
        return reuse
    }

    @Test(arguments: [false, true])
    func `is used by the next request, and nothing is sent before`(isSecure: Bool) async throws {
        let gate = try AnswerGate()
        try await with(gate, secure: isSecure) { server, session in
            try await session.preconnect(to: server.url + "/path?query")
            #expect(session.tasks.isEmpty)
            let reuse = try await reuse(1, of: 1, at: server.url, gate, in: session)
            #expect(reuse == [true])
            #expect(server.connections == 1)
            #expect(server.requests.count == 1)
        }
    }

    @Test(arguments: [false, true])
    func `is one of several for requests at the same time`(isSecure: Bool) async throws {
        let gate = try AnswerGate()
        try await with(gate, secure: isSecure) { server, session in
            // Those that are idle count.
            for _ in 0..<2 { try await session.preconnect(to: server.url, count: 3) }
            let reuse = try await reuse(3, of: 3, at: server.url, gate, in: session)
            #expect(reuse == [true, true, true])
            #expect(server.connections == 3)
        }
    }

    @Test func `is not made beyond the limit of active requests`() async throws {
        let gate = try AnswerGate()
        try await with(gate, requests: 2) { server, session in
            try await session.preconnect(to: server.url, count: 100)
            let waiting = (0..<2).map { number in
                Task { try await session.data(for: try HTTPRequest(.get, server.url)) }
            }
            await gate.arrival(of: 2)
            // There is room for none.
            try await session.preconnect(to: server.url, count: 2)
            gate.open()
            for task in waiting { _ = try await task.value }
            #expect(server.connections == 2)
            try await session.preconnect(to: server.url, count: 0)
            try await session.preconnect(to: server.url, count: -1)
        }
    }

    @Test func `makes requests wait only until it is there`() async throws {
        let gate = try AnswerGate(isOpen: true)
        try await with(gate, secure: true, requests: 1) { server, session in
            async let made: Void = session.preconnect(to: server.url)
            async let response = session.data(for: try HTTPRequest(.get, server.url))
            _ = try await (made, response)
            #expect(server.connections == 1)
        }
    }

    @Test(.enabled(if: TestProgram.python != nil))
    func `is shared over HTTP/2, unless HTTP/1.1 is asked for`() async throws {
        try await withServer { connection, request in
            connection.respond("200 OK", [], request.field("x-connection") ?? "none")
            return true
        } _: { server, runtime in
            let nginx = try Nginx(before: server.url, speaksHTTP2: true)
            defer { nginx.close() }
            var configuration = SessionConfiguration.patient
            configuration.securityPolicy = try nginx.policy()
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            try await session.preconnect(to: nginx.url, count: 4)
            var options = RequestOptions()
            options.httpVersion = .http1Only
            try await session.preconnect(to: nginx.url, options: options)
            var connections: [String?] = []
            for version in [nil, nil, .http1Only, .http1Only] as [HTTPVersionChoice?] {
                options.httpVersion = version
                let response = try await session.data(
                    for: try HTTPRequest(.get, nginx.url), options: options)
                let transaction = response.metrics.transactions[0]
                #expect(transaction.reusedConnection)
                #expect(transaction.protocolName == (version == nil ? "h2" : "http/1.1"))
                connections.append(response.text)
            }
            #expect(Set(connections).count == 2)
            #expect(connections[0] == connections[1] && connections[2] == connections[3])
        }
    }

    @Test func `is made through a proxy's tunnel`() async throws {
        try await withProxy { proxy, runtime in
            let session = try SessionManager(
                configuration: try .through(proxy.proxy, policy: try TestOrigin.policy()),
                runtime: runtime)
            try await session.preconnect(to: "https://origin.test/")
            #expect(proxy.asked == ["CONNECT origin.test:443 HTTP/1.1"])
            let response = try await session.data(
                for: try HTTPRequest(.get, "https://origin.test/a"))
            #expect(response.metrics.transactions[0].reusedConnection)
            #expect(proxy.origin.connections == 1)
        }
    }

    @Test func `is kept as long as others`() async throws {
        let gate = try AnswerGate(isOpen: true)
        try await with(gate) { server, session in
            try await session.preconnect(to: server.url)
            // A gateway closes those that were not used for five seconds.
            try await Task.sleep(for: .milliseconds(5500))
            let response = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(response.metrics.transactions[0].reusedConnection)
            #expect(server.connections == 1)
        }
    }

    // MARK: Errors

    @Test func `is refused if no pin matches`() async throws {
        try await withServer(secure: true) { connection, _ in
            connection.respond()
            return true
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.securityPolicy = try TestAuthority.policy()
            configuration.securityPolicy.mode = .publicKey
            configuration.securityPolicy.pins = try CertificatePin.pins(
                in: TestAuthority.certificate(
                    of: TestAuthority.makePEM(name: "other.test")))
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let requested = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, server.url + "/"))
            }
            let error = await failure { try await session.preconnect(to: server.url, count: 3) }
            #expect(error?.reason == .secureConnectionFailed)
            #expect(error?.presentedPins == requested?.presentedPins)
            #expect(error?.presentedPins.isEmpty == false)
            #expect(error?.explanation == requested?.explanation)
            #expect(error?.token == requested?.token && error?.url == requested?.url)
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `fails as a request would`() async throws {
        let port = ClosedPort()
        let runtime = try ClientRuntime()
        defer { runtime.close() }
        var configuration = SessionConfiguration.patient
        configuration.securityPolicy = try TestOrigin.policy()
        let session = try SessionManager(configuration: configuration, runtime: runtime)
        for (url, reason) in [
            ("https://\(port.place)/", .cannotConnect),
            ("http://\(port.place)/", .clearTextRefused),
            ("/path", .invalidRequest), ("ftp://a.test/", .invalidRequest),
            ("https://a.test:99999/", .invalidRequest),
        ] as [(String, ClientError.Reason)] {
            let error = await failure { try await session.preconnect(to: url, count: 2) }
            #expect(error?.reason == reason, "\(url)")
        }
        session.invalidate(cancelling: true)
        let error = await failure { try await session.preconnect(to: "https://\(port.place)/") }
        #expect(error?.reason == .sessionInvalidated)
    }

    /// A server that never answers in TLS.
    private func withSilence(
        _ body: (String, SessionManager, ClientRuntime) async throws -> Void
    ) async throws {
        try await withServer { connection, _ in
            connection.waitForEnd()
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            try await body("https://\(server.endpoint)/", session, runtime)
            // The places are free again.
            #expect(session.tasks.isEmpty)
        }
    }

    @Test func `is not waited for longer than the timeout`() async throws {
        try await withSilence { url, session, _ in
            var options = RequestOptions()
            options.timeout = .milliseconds(20)
            for _ in 0..<2 {
                let error = await failure {
                    try await session.preconnect(to: url, count: 9, options: options)
                }
                #expect(error?.reason == .timedOut)
                #expect(error?.url == url)
            }
        }
    }

    @Test func `can be cancelled, at any stage`() async throws {
        try await withSilence { url, session, _ in
            for delay in [0, 1, 5, 20] {
                let task = Task { try await session.preconnect(to: url, count: 2) }
                if delay > 0 { try await Task.sleep(for: .milliseconds(delay)) }
                task.cancel()
                let error = await failure { try await task.value }
                #expect(error?.reason == .cancelled)
            }
        }
    }

    @Test func `ends with its session, and with the runtime`() async throws {
        try await withSilence { url, session, runtime in
            let first = Task { try await session.preconnect(to: url) }
            try await Task.sleep(for: .milliseconds(20))
            session.invalidate(cancelling: true)
            let error = await failure { try await first.value }
            #expect(error?.reason == .sessionInvalidated)
            let other = try SessionManager(configuration: .patient, runtime: runtime)
            let second = Task { try await other.preconnect(to: url) }
            try await Task.sleep(for: .milliseconds(20))
            runtime.close()
            let end = await failure { try await second.value }
            #expect(end?.reason == .sessionInvalidated)
        }
    }

    @Test func `is not needed where a transport answers`() async throws {
        let mock = MockTransport { _ in TransportResponse(text: "answer") }
        try await withMock(mock) { session in
            try await session.preconnect(to: "https://a.test/")
        }
    }
}
