import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

@Suite("Requests through a proxy")
struct ProxyTests {
    @Test func `in clear text are given to it, and share connections whatever their server`()
        async throws
    {
        try await withProxy { proxy, runtime in
            let session = try SessionManager(
                configuration: try .through(proxy.proxy), runtime: runtime)
            let urls = [
                "http://one.test/a?b=c", "http://two.test:8080/", "http://[2001:db8::1]:81/x",
                "http://192.0.2.1",
            ]
            for url in urls {
                let response = try await session.data(for: try HTTPRequest(.get, url))
                #expect(response.text.hasPrefix("forwarded http://"))
            }
            #expect(
                proxy.asked == [
                    "GET http://one.test/a?b=c HTTP/1.1", "GET http://two.test:8080/ HTTP/1.1",
                    "GET http://[2001:db8::1]:81/x HTTP/1.1", "GET http://192.0.2.1/ HTTP/1.1",
                ])
            let hosts = proxy.proxy.requests.map { $0.field("host") }
            #expect(hosts == ["one.test", "two.test:8080", "[2001:db8::1]:81", "192.0.2.1"])
            #expect(proxy.proxy.connections == 1)
            #expect(proxy.proxy.requests.allSatisfy { $0.field("proxy-authorization") == nil })
        }
    }

    @Test func `in clear text carry their content`() async throws {
        try await withProxy(secure: true) { proxy, runtime in
            let session = try SessionManager(
                configuration: try .through(proxy.proxy, policy: try TestOrigin.policy(.none)),
                runtime: runtime)
            let content = [UInt8](repeating: 7, count: 300_000)
            _ = try await session.data(
                for: try HTTPRequest(.put, "http://origin.test/file"), content: .bytes(content))
            let seen = try #require(proxy.proxy.requests.first)
            #expect(seen.startLine == "PUT http://origin.test/file HTTP/1.1")
            #expect(seen.content == content)
        }
    }

    @Test(arguments: [false, true])
    func `by TLS go through a tunnel, which is used again`(isSecure: Bool) async throws {
        try await withProxy(secure: isSecure) { proxy, runtime in
            let session = try SessionManager(
                configuration: try .through(proxy.proxy, policy: try TestOrigin.policy()),
                runtime: runtime)
            let content = [UInt8](repeating: 7, count: 1 << 20)
            for path in ["/a", "/b", "/c"] {
                let response = try await session.data(
                    for: try HTTPRequest(.post, "https://origin.test:8443\(path)"),
                    content: .bytes(content))
                #expect(response.text == "\(path) \(content.count)")
                let transaction = response.metrics.transactions[0]
                #expect(transaction.reusedConnection == (path != "/a"))
                #expect((transaction.tunnel != nil) == (path == "/a"))
                #expect((transaction.handshake != nil) == (path == "/a"))
            }
            #expect(proxy.asked == ["CONNECT origin.test:8443 HTTP/1.1"])
            #expect(proxy.proxy.requests[0].field("host") == "origin.test:8443")
            #expect(proxy.origin.connections == 1)
            #expect(proxy.origin.requests[0].startLine == "POST /a HTTP/1.1")
            #expect(proxy.origin.requests[0].field("host") == "origin.test:8443")
        }
    }

    @Test(arguments: [false, true])
    func `get long responses through a tunnel whole`(isSecure: Bool) async throws {
        let long = String(repeating: "0123456789abcdef", count: 1 << 16)
        let origin = try TestOrigin.server { connection, _ in
            connection.respond("200 OK", [], long)
            return true
        }
        try await withProxy(secure: isSecure, origin: origin) { proxy, runtime in
            let session = try SessionManager(
                configuration: try .through(proxy.proxy, policy: try TestOrigin.policy()),
                runtime: runtime)
            for _ in 0..<2 {
                let response = try await session.data(
                    for: try HTTPRequest(.get, "https://origin.test/"))
                #expect(response.text == long)
            }
        }
    }

    @Test func `by TLS have a tunnel for each server`() async throws {
        try await withProxy { proxy, runtime in
            let session = try SessionManager(
                configuration: try .through(proxy.proxy, policy: try TestOrigin.policy()),
                runtime: runtime)
            for host in ["origin.test", "other.test", "origin.test:444", "origin.test"] {
                _ = try await session.data(for: try HTTPRequest(.get, "https://\(host)/"))
            }
            #expect(
                proxy.asked == [
                    "CONNECT origin.test:443 HTTP/1.1", "CONNECT other.test:443 HTTP/1.1",
                    "CONNECT origin.test:444 HTTP/1.1",
                ])
        }
    }

    @Test(arguments: [false, true])
    func `that ask for another protocol go through a tunnel in clear text too`(
        isSecure: Bool
    ) async throws {
        let origin = try TestOrigin.server(secure: false)
        try await withProxy(secure: isSecure, origin: origin) { proxy, runtime in
            let session = try SessionManager(
                configuration: try .through(proxy.proxy, policy: try TestOrigin.policy(.none)),
                runtime: runtime)
            let request = try HTTPRequest(
                .get, "http://origin.test/chat", fields: [.upgrade: "websocket"])
            for _ in 0..<2 {
                #expect(try await session.data(for: request).text == "/chat 0")
            }
            #expect(proxy.asked == ["CONNECT origin.test:80 HTTP/1.1"])
            #expect(origin.requests[0].startLine == "GET /chat HTTP/1.1")
        }
    }

    @Test func `are never sent on a connection for direct requests, or for another user`()
        async throws
    {
        let origin = try TestServer(secure: true) { connection, _ in
            connection.respond("200 OK", [], "yes")
            return true
        }
        try await withProxy(origin: origin) { proxy, runtime in
            var configuration = SessionConfiguration.patient
            configuration.securityPolicy = try TestAuthority.policy()
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let request = try HTTPRequest(.get, origin.url)
            let place = proxy.proxy.url.dropFirst("http://".count)
            let ways: [ProxyConfiguration?] = [
                nil, .fixed(try Proxy("\(place)")), .fixed(try Proxy("one:1@\(place)")),
                .fixed(try Proxy("two:2@\(place)")),
            ]
            for _ in 0..<2 {
                for way in ways {
                    var options = RequestOptions()
                    options.proxies = way
                    _ = try await session.data(for: request, options: options)
                }
            }
            #expect(origin.connections == ways.count)
            #expect(
                proxy.proxy.requests.map { $0.field("proxy-authorization") }
                    == [nil, "Basic b25lOjE=", "Basic dHdvOjI="])
        }
    }

    @Test func `give credentials to the proxy and not to servers`() async throws {
        try await withProxy { proxy, runtime in
            let configuration = try SessionConfiguration.through(
                proxy.proxy, credentials: "user:p%40ss@", policy: try TestOrigin.policy(.none))
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            _ = try await session.data(for: try HTTPRequest(.get, "https://origin.test/"))
            _ = try await session.data(for: try HTTPRequest(.get, "http://origin.test/"))
            let values = proxy.proxy.requests.map { $0.field("proxy-authorization") }
            #expect(values == ["Basic dXNlcjpwQHNz", "Basic dXNlcjpwQHNz"])
            #expect(proxy.origin.requests.count == 1)
            #expect(proxy.origin.requests[0].field("proxy-authorization") == nil)
        }
    }

    @Test func `follow redirects, each with its own proxy`() async throws {
        let origin = try TestServer { connection, request in
            connection.respond(
                "302 Found", ["Location: http://behind.test/\(request.path.dropFirst())"])
            return true
        }
        try await withProxy(origin: origin) { proxy, runtime in
            var configuration = try SessionConfiguration.through(proxy.proxy)
            configuration.proxies = .fixed(
                try Proxy(proxy.proxy.url), bypass: try ProxyBypass("127.0.0.1"))
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let response = try await session.data(for: try HTTPRequest(.get, "\(origin.url)/x"))
            #expect(response.text == "forwarded http://behind.test/x")
            #expect(origin.requests.map(\.startLine) == ["GET /x HTTP/1.1"])
        }
    }

    @Test func `use the proxy in the environment`() async throws {
        try await withProxy { proxy, runtime in
            var configuration = SessionConfiguration.patient
            configuration.proxies = .variables([
                "http_proxy": proxy.proxy.url, "https_proxy": "socks4://127.0.0.1:1",
            ])
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let response = try await session.data(for: try HTTPRequest(.get, "http://origin.test"))
            #expect(response.text == "forwarded http://origin.test/")
            let error = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, "https://origin.test/"))
            }
            #expect(error?.reason == .invalidProxy)
            #expect(error?.url == "https://origin.test/")
        }
    }

    @Test func `are within the session's limits, which exceed those for one server`()
        async throws
    {
        let state = Monitor((seen: 0, atOnce: 0, most: 0))
        let proxy = try TestServer { connection, _ in
            // None is answered before the maximum number has arrived.
            state.wait { state -> Waiting<Void> in
                state.seen += 1
                state.atOnce += 1
                state.most = max(state.most, state.atOnce)
                return .done(())
            }
            state.broadcast()
            state.wait { $0.seen >= 20 ? .done(()) : .signal }
            state.withLock { $0.atOnce -= 1 }
            connection.respond("200 OK", [], "")
            return true
        }
        defer { proxy.close() }
        let runtime = try ClientRuntime()
        defer { runtime.close() }
        var configuration = try SessionConfiguration.through(proxy)
        configuration.maximumRequestsPerOrigin = 1
        let session = try SessionManager(configuration: configuration, runtime: runtime)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<40 {
                group.addTask {
                    let request = try HTTPRequest(.get, "http://h\(number % 20).test/")
                    _ = try await session.data(for: request)
                }
            }
            try await group.waitForAll()
        }
        #expect(state.withLock { $0.seen } == 40)
        #expect(state.withLock { $0.most } == 20)
    }
}
