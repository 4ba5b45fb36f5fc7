import HTTPTypes
import TestSupport
import Testing

@testable import PinfoldClient

@Suite("httpbin, asked by a session", .enabled(if: TestProgram.python != nil), .serialized)
struct HTTPBinTests {
    /// How the server is reached.
    enum Way: Sendable, CaseIterable {
        case clearText
        case nginxWithTLS
    }

    private func ask(
        _ way: Way, _ user: Credential? = nil,
        _ body: (SessionManager, String) async throws -> Void
    ) async throws {
        let server = try HTTPBin()
        defer { server.close() }
        let hook: ChallengeHook = { challenge in
            guard challenge.serverTrust == nil else { return .performDefaultHandling }
            return user.map { .useCredential($0) } ?? .performDefaultHandling
        }
        var configuration = SessionConfiguration.patient(challenges: hook)
        var nginx: Nginx?
        defer { nginx?.close() }
        if way == .nginxWithTLS {
            let started = try Nginx(before: server.url)
            nginx = started
            configuration.securityPolicy = try started.policy()
        }
        let runtime = try ClientRuntime()
        defer { runtime.close() }
        let session = try SessionManager(configuration: configuration, runtime: runtime)
        try await body(session, nginx?.url ?? server.url)
    }

    @Test(arguments: Way.allCases)
    func `takes Basic and Digest credentials`(way: Way) async throws {
        try await ask(way, Credential(user: "user", password: "secret")) { session, url in
            /// The status of each response; the last one is the task's.
            func statuses(_ path: String) async throws -> [Int?] {
                try await session.data(for: try HTTPRequest(.get, url + path)).metrics
                    .transactions.map(\.status)
            }
            let first = try await statuses("/basic-auth/user/secret")
            #expect(first == [401, 200])
            #expect(try await statuses("/basic-auth/user/secret") == [200])
            #expect(try await statuses("/basic-auth/user/wrong") == [401])
            for algorithm in ["MD5", "SHA-256"] {
                for protection in ["auth", "auth-int"] {
                    let path = "/digest-auth/\(protection)/user/secret/\(algorithm)"
                    #expect(try await statuses(path).last == 200, "\(path)")
                }
            }
            // Each nonce is valid for one request, and a cookie counts them.
            for _ in 0..<3 {
                let path = "/digest-auth/auth/user/secret/MD5/1"
                #expect(try await statuses(path).last == 200)
            }
        }
    }

    @Test(arguments: Way.allCases)
    func `refuses wrong Digest credentials`(way: Way) async throws {
        try await ask(way, Credential(user: "user", password: "wrong")) { session, url in
            let request = try HTTPRequest(.get, "\(url)/digest-auth/auth/user/pass/MD5")
            let response = try await session.data(for: request)
            #expect(response.metrics.transactions.map(\.status) == [401, 401])
        }
    }

    @Test func `does not ask for hidden Basic credentials`() async throws {
        try await ask(.clearText, Credential(user: "user", password: "pass")) { session, url in
            let request = try HTTPRequest(.get, "\(url)/hidden-basic-auth/user/pass")
            #expect(try await session.data(for: request).head.status.code == 404)
        }
    }

    @Test(arguments: Way.allCases)
    func `sets cookies, and removes them`(way: Way) async throws {
        try await ask(way) { session, url in
            func text(_ path: String) async throws -> String {
                let response = try await session.data(for: try HTTPRequest(.get, url + path))
                return response.text.filter { !$0.isWhitespace }
            }
            let first = try await text("/cookies/set?a=1&b=2")
            #expect(first == #"{"cookies":{"a":"1","b":"2"}}"#)
            #expect(try await text("/cookies") == #"{"cookies":{"a":"1","b":"2"}}"#)
            #expect(try await text("/cookies/delete?a") == #"{"cookies":{"b":"2"}}"#)
        }
    }

    @Test(arguments: Way.allCases)
    func `receives what is sent, with every method`(way: Way) async throws {
        try await ask(way) { session, url in
            for method in [HTTPRequest.Method.post, .put, .patch, .delete] {
                let path = method.rawValue.lowercased()
                let response = try await session.data(
                    for: try HTTPRequest(method, "\(url)/\(path)"),
                    content: .text(String(repeating: "x", count: 200_000)))
                #expect(response.head.status == .ok)
                let made = try #require(response.metrics.transactions.first)
                #expect((made.handshake != nil) == (way == .nginxWithTLS && method == .post))
                #expect(response.text.contains(String(repeating: "x", count: 200_000)))
            }
            let head = try await session.data(for: try HTTPRequest(.head, "\(url)/get"))
            #expect(head.content.isEmpty)
        }
    }

    @Test(arguments: Way.allCases)
    func `has its redirects followed, and its codings undone`(way: Way) async throws {
        try await ask(way) { session, url in
            let response = try await session.data(
                for: try HTTPRequest(.get, "\(url)/relative-redirect/3"))
            #expect(response.metrics.redirects == 3)
            #expect(response.request.path == "/get")
            for (path, word) in [
                ("gzip", "gzipped"), ("deflate", "deflated"), ("brotli", "brotli"),
            ] {
                let coded = try await session.data(for: try HTTPRequest(.get, "\(url)/\(path)"))
                #expect(coded.text.contains("\"\(word)\": true"), "\(coded.text)")
                #expect(coded.head.headerFields[.contentEncoding] == nil)
            }
        }
    }

    @Test(arguments: Way.allCases)
    func `fills a file`(way: Way) async throws {
        try await ask(way) { session, url in
            let folder = TemporaryFolder()
            let response = try await session.download(
                try HTTPRequest(.get, "\(url)/range/100000"), to: folder.destination)
            #expect(response.length == 100_000)
            #expect(folder.bytes(of: "a.bin") == (0..<100_000).map { UInt8(97 + $0 % 26) })
        }
    }
}
