import HTTPTypes
import TestSupport
import Testing

@testable import PinfoldClient

@Suite("A proxy that does not let a request through")
struct ProxyFaultTests {
    /// The result of a TLS request through a proxy that answers CONNECT in this way.
    private func ask(_ answer: String) async throws -> ClientError? {
        var error: ClientError?
        try await withServer { connection, _ in
            connection.send(answer)
            return false
        } _: { server, runtime in
            let session = try SessionManager(
                configuration: try .through(server), runtime: runtime)
            error = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, "https://origin.test/"))
            }
            #expect(server.connections == 1)
        }
        return error
    }

    @Test(
        arguments: [
            ("403 Forbidden", ClientError.Reason.proxyFailed, "proxy-refused"),
            ("502 Bad Gateway", .proxyFailed, "proxy-refused"),
            ("302 Found", .proxyFailed, "proxy-refused"),
            ("407 Who", .proxyAuthenticationRequired, "proxy-authentication-required"),
        ])
    func `is reported with its status and fields`(
        status: String, reason: ClientError.Reason, token: String
    ) async throws {
        let error = try await ask(
            "HTTP/1.1 \(status)\r\nProxy-Authenticate: Basic realm=\"a\"\r\n"
                + "Proxy-Authenticate: Digest realm=\"b\"\r\nContent-Length: 3\r\n\r\nno!")
        #expect(error?.reason == reason)
        #expect(error?.token == token)
        #expect(error?.url == "https://origin.test/")
        let answer = try #require(error?.proxyResponse)
        #expect(answer.status.code == Int(status.prefix(3)))
        #expect(
            answer.headerFields[values: .proxyAuthenticate]
                == ["Basic realm=\"a\"", "Digest realm=\"b\""])
    }

    @Test(
        arguments: [
            "", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n", "SSH-2.0-x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA b: c\r\n\r\n", "HTTP/1.1 101 Switching\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: " + String(repeating: "a", count: 70_000) + "\r\n\r\n",
            String(repeating: "HTTP/1.1 103 Early\r\n\r\n", count: 20),
        ])
    func `is reported if its answer opens no tunnel`(answer: String) async throws {
        let error = try await ask(answer)
        #expect(error?.reason == .proxyFailed)
        #expect(error?.token == "proxy-bad-response")
        #expect(error?.proxyResponse == nil)
    }

    @Test func `is reported if it takes too long`() async throws {
        try await withServer { connection, _ in
            connection.send("HTTP/1.1 200 ")
            connection.waitForEnd()
            return false
        } _: { server, runtime in
            var configuration = try SessionConfiguration.through(server)
            configuration.connectTimeout = .milliseconds(300)
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let error = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, "https://origin.test/"))
            }
            #expect(error?.reason == .timedOut)
            #expect(error?.token.hasPrefix("proxy-") == true)
        }
    }

    @Test(arguments: ["http", "https"])
    func `is reported if nothing listens`(scheme: String) async throws {
        let runtime = try ClientRuntime()
        defer { runtime.close() }
        let port = ClosedPort()
        var configuration = SessionConfiguration.patient
        configuration.proxies = .fixed(try Proxy(port.place))
        let session = try SessionManager(configuration: configuration, runtime: runtime)
        let error = await failure {
            _ = try await session.data(for: try HTTPRequest(.get, "\(scheme)://origin.test/"))
        }
        #expect(error?.reason == .proxyFailed)
        #expect(error?.token == "proxy-unreachable")
    }

    @Test(arguments: ["http", "https"])
    func `is not trusted by pins of servers, but by the session's roots`(
        scheme: String
    ) async throws {
        try await withProxy(secure: true) { proxy, runtime in
            var policy = try TestOrigin.policy(.none)
            policy.anchors.removeFirst()
            // Any server would be accepted, but that does not apply to proxies.
            policy.allowsInvalidCertificates = true
            policy.validatesDomainName = false
            let session = try SessionManager(
                configuration: try .through(proxy.proxy, policy: policy), runtime: runtime)
            let error = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, "\(scheme)://origin.test/"))
            }
            #expect(error?.reason == .proxyFailed)
            #expect(error?.token == "proxy-tls-failed")
            #expect(proxy.asked.isEmpty)
        }
    }

    @Test(arguments: [false, true])
    func `does not change which servers the session trusts behind it`(isSecure: Bool) async throws {
        try await withProxy(secure: isSecure) { proxy, runtime in
            var policy = try TestOrigin.policy()
            policy.pins = try CertificatePin.pins(in: TestAuthority.certificate)
            var session = try SessionManager(
                configuration: try .through(proxy.proxy, policy: policy), runtime: runtime)
            var error = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, "https://origin.test/"))
            }
            #expect(error?.reason == .secureConnectionFailed)
            #expect(error?.token == "tls-no-pin-matches")
            // The name in the URL counts, not that of the proxy.
            session = try SessionManager(
                configuration: try .through(proxy.proxy, policy: try TestOrigin.policy()),
                runtime: runtime)
            error = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, "https://wrong.test/"))
            }
            #expect(error?.reason == .secureConnectionFailed)
            // With pins, clear text is refused before anyone is contacted.
            error = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, "http://origin.test/"))
            }
            #expect(error?.reason == .clearTextRefused)
            #expect(proxy.origin.requests.isEmpty)
            #expect(proxy.asked.allSatisfy { $0.hasPrefix("CONNECT ") })
        }
    }

    @Test func `requires credentials in clear text by a response`() async throws {
        try await withServer { connection, _ in
            connection.respond(
                "407 Who", ["Proxy-Authenticate: Basic realm=\"a\"", "Cache-Control: max-age=99"],
                "who?")
            return true
        } _: { server, runtime in
            var configuration = try SessionConfiguration.through(server)
            configuration.cacheMemoryBytes = 1 << 20
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            for _ in 0..<2 {
                let response = try await session.data(
                    for: try HTTPRequest(.get, "http://origin.test/"))
                #expect(response.head.status.code == 407)
                #expect(response.head.headerFields[.proxyAuthenticate] == "Basic realm=\"a\"")
            }
            #expect(server.requests.count == 2)
            // A server that responds in this way is not a proxy.
            var options = RequestOptions()
            options.proxies = .direct
            let response = try await session.data(
                for: try HTTPRequest(.get, server.url), options: options)
            #expect(response.head.headerFields[.proxyAuthenticate] == nil)
        }
    }

    @Test func `is given up with the request's task, and with the session`() async throws {
        let (asked, note) = AsyncStream.makeStream(of: Void.self)
        try await withServer { connection, _ in
            note.yield()
            connection.waitForEnd()
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: try .through(server), runtime: runtime)
            // Of one server, both would wait for the same connection.
            let tasks = try ["one.test", "two.test"].map { host in
                let request = try HTTPRequest(.get, "https://\(host)/")
                return Task { await failure { _ = try await session.data(for: request) } }
            }
            var iterator = asked.makeAsyncIterator()
            for _ in tasks { await iterator.next() }
            tasks[0].cancel()
            #expect(await tasks[0].value?.reason == .cancelled)
            session.invalidate(cancelling: true)
            #expect(await tasks[1].value?.reason == .sessionInvalidated)
        }
    }
}
