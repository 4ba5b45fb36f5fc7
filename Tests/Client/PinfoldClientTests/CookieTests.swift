import HTTPTypes
import TestSupport
import Testing

@testable import PinfoldClient

@Suite("A session's cookies")
struct CookieTests {
    /// Returns the Cookie field that it received; `/set` sets a cookie and redirects to `/`.
    private static let echo: TestServer.Answer = { connection, request in
        let cookie = request.field("cookie") ?? "none"
        switch request.path {
        case "/set": connection.respond("302 Found", ["Location: /", "Set-Cookie: a=1"])
        case "/who":
            connection.respond(
                "401 Who", ["WWW-Authenticate: Basic realm=r", "Set-Cookie: b=\(cookie)"])
        default: connection.respond("200 OK", ["Set-Cookie: c=3; Path=/c"], cookie)
        }
        return true
    }

    private func session(
        _ runtime: ClientRuntime, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> SessionManager {
        var configuration = SessionConfiguration.patient
        change(&configuration)
        return try SessionManager(configuration: configuration, runtime: runtime)
    }

    @Test func `are kept of every response, and sent with every request`() async throws {
        try await withServer(Self.echo) { server, runtime in
            let session = try session(runtime)
            func text(_ path: String) async throws -> String {
                try await session.data(for: try HTTPRequest(.get, server.url + path)).text
            }
            #expect(try await text("/") == "none")
            #expect(try await text("/set") == "a=1")
            #expect(try await text("/c/d") == "c=3; a=1")
            // In a challenge, too.
            session.credentials.set(
                Credential(user: "u", password: "p"),
                for: try ProtectionSpace(server.url, realm: "r"))
            _ = try await text("/who")
            let last = server.requests.suffix(2)
            #expect(last.map { $0.field("cookie") } == ["a=1", "a=1; b=a=1"])
            // One field for all cookies (RFC 6265, section 5.4).
            #expect(last.allSatisfy { $0.head.ranges(of: "Cookie:").count <= 1 })
            let store = try #require(session.configuration.cookies)
            #expect(Set(store.cookies.map(\.name)) == ["a", "b", "c"])
            #expect(store.cookies(for: "\(server.url)/c").count == 3)
            store.removeAll { $0.name != "a" }
            #expect(try await text("/") == "a=1")
        }
    }

    @Test func `yield to a field set by the caller`() async throws {
        try await withServer(Self.echo) { server, runtime in
            let session = try session(runtime)
            session.configuration.cookies?.set(
                Cookie(name: "a", value: "1", domain: "127.0.0.1"))
            let request = try HTTPRequest(.get, server.url, fields: [.cookie: "mine=1"])
            #expect(try await session.data(for: request).text == "mine=1")
        }
    }

    @Test func `are disabled for a request or a session`() async throws {
        try await withServer(Self.echo) { server, runtime in
            let first = try session(runtime)
            first.configuration.cookies?.set(Cookie(name: "a", value: "1", domain: "127.0.0.1"))
            var options = RequestOptions()
            options.handlesCookies = false
            let request = try HTTPRequest(.get, "\(server.url)/c")
            #expect(try await first.data(for: request, options: options).text == "none")
            #expect(first.configuration.cookies?.cookies.count == 1)
            let second = try session(runtime) { $0.cookies = nil }
            #expect(try await second.data(for: request).text == "none")
            #expect(try await second.data(for: request).text == "none")
            // Another configuration has another store.
            #expect(try await session(runtime).data(for: request).text == "none")
        }
    }

    @Test func `are shared by sessions of one configuration`() async throws {
        try await withServer(Self.echo) { server, runtime in
            let configuration = SessionConfiguration.patient
            for expected in ["none", "c=3"] {
                let session = try SessionManager(configuration: configuration, runtime: runtime)
                let request = try HTTPRequest(.get, "\(server.url)/c")
                #expect(try await session.data(for: request).text == expected)
            }
        }
    }

    @Test(arguments: [
        (CookieStore.Policy.always, ["a", "b"]), (.never, []),
        (.onlyFromMainDocumentDomain, ["a"]),
    ])
    func `are accepted according to the store's policy`(
        policy: CookieStore.Policy, names: [String]
    ) throws {
        let store = CookieStore(policy: policy)
        let cookies = TaskCookies(store, first: try HTTPRequest(.get, "https://www.example.com/"))
        func receive(_ url: String, _ field: String, _ cache: CacheUse = .none) throws {
            let request = try HTTPRequest(.get, url)
            _ = cookies.prepared(request)
            cookies.received(
                HTTPResponse(status: .ok, headerFields: [.setCookie: field]), for: request,
                cache: cache)
        }
        try receive("https://www.example.com/", "a=1; Domain=example.com")
        try receive("https://login.other.example/", "b=1")
        // Cookies in cached responses were stored when they first arrived.
        try receive("https://www.example.com/", "c=1", .hit)
        #expect(store.cookies.map(\.name) == names)
        let next = try HTTPRequest(.get, "https://api.example.com/")
        #expect(
            cookies.prepared(next).headerFields[.cookie] == (names.contains("a") ? "a=1" : nil))
    }

    @Test func `outlast the process in a file`() throws {
        let folder = TemporaryFolder()
        let path = folder.file("cookies.txt")
        let store = try CookieStore(file: path)
        #expect(store.cookies.isEmpty && store.path == path)
        #expect(store.set(field: "a=1; Max-Age=1000", from: "https://x.example/") == .stored)
        store.set(field: "session=1", from: "https://x.example/")
        #expect(store.set(field: "a=1", from: "no URL") == nil)
        try store.save()
        let again = try CookieStore(file: path)
        #expect(again.cookies.map(\.pair) == ["a=1"])
        #expect(again.cookies(for: "https://x.example/").count == 1)
        #expect(again.cookies(for: "https://y.example/").isEmpty)
        let whole = try CookieStore(file: path, keepsSessionCookies: true)
        whole.set(field: "session=1", from: "https://x.example/")
        try whole.save()
        #expect(try CookieStore(file: path).cookies.map(\.pair) == ["a=1", "session=1"])
        let error = #expect(throws: ClientError.self) { try CookieStore(file: folder.path) }
        #expect(error?.reason == .contentFailed)
    }
}
