import HTTPTypes
import Locking
import TestSupport
import Testing

@testable import PinfoldClient

@Suite("A session's cache")
struct SessionCacheTests {
    /// A server whose responses say which request they answer, and may be cached.
    private func withCountingServer(
        _ cacheControl: String = "private, max-age=86400", fields: [String] = [], bytes: Int = 0,
        _ body: (TestServer, ClientRuntime) async throws -> Void
    ) async throws {
        try await withServer { connection, request in
            connection.respond(
                "200 OK", ["Cache-Control: \(cacheControl)"] + fields,
                (request.field("authorization") ?? "nobody")
                    + String(repeating: "x", count: bytes))
            return true
        } _: { server, runtime in
            try await body(server, runtime)
        }
    }

    private func configuration(_ folder: TemporaryFolder? = nil) -> SessionConfiguration {
        var configuration = SessionConfiguration.patient
        configuration.cacheMemoryBytes = 4 << 20
        if let folder {
            configuration.cacheDiskBytes = 20 << 20
            configuration.cacheDirectory = folder.path
        }
        return configuration
    }

    private func use(_ response: DataResponse) -> CacheUse? {
        response.metrics.transactions.last?.cache
    }

    @Test func `keeps what is private`() async throws {
        try await withCountingServer { server, runtime in
            let session = try SessionManager(configuration: configuration(), runtime: runtime)
            let request = try HTTPRequest(.get, server.url)
            #expect(use(try await session.data(for: request)) == .miss)
            #expect(use(try await session.data(for: request)) == .hit)
            #expect(server.requests.count == 1)
        }
    }

    @Test func `does not make a task wait for the response to another`() async throws {
        let gate = try AnswerGate()
        let count = Locked(0)
        try await withServer { connection, _ in
            let isFirst = count.withLock { count in
                count += 1
                return count == 1
            }
            if isFirst { connection.wait(at: gate) }
            connection.respond("200 OK", ["Cache-Control: max-age=86400"], "x")
            return true
        } _: { server, runtime in
            #expect(try configuration().snapshot().timeouts.collapseMilliseconds == 0)
            let session = try SessionManager(configuration: configuration(), runtime: runtime)
            let request = try HTTPRequest(.get, server.url)
            let first = Task { try await session.data(for: request) }
            await gate.arrival()
            #expect(use(try await session.data(for: request)) == .miss)
            gate.open()
            #expect(use(try await first.value) == .miss)
        }
    }

    @Test func `stores responses to Authorization for the same one only`() async throws {
        try await withCountingServer { server, runtime in
            let session = try SessionManager(configuration: configuration(), runtime: runtime)
            var seen: [String] = []
            for user in ["Basic one", "Basic two", "Basic one", "Basic two"] {
                let request = try HTTPRequest(.get, server.url, fields: [.authorization: user])
                seen.append(try await session.data(for: request).text)
            }
            seen.append(try await session.data(for: try HTTPRequest(.get, server.url)).text)
            #expect(seen == ["Basic one", "Basic two", "Basic one", "Basic two", "nobody"])
            #expect(server.requests.count == 3)
        }
    }

    @Test(arguments: [
        ("s-maxage=86400", []), ("no-store", []), ("max-age=86400", ["Set-Cookie: a=b"]),
    ])
    func `ignores rules for shared caches, and does not store what sets cookies`(
        cacheControl: String, fields: [String]
    ) async throws {
        try await withCountingServer(cacheControl, fields: fields) { server, runtime in
            let session = try SessionManager(configuration: configuration(), runtime: runtime)
            let request = try HTTPRequest(.get, server.url)
            for _ in 0..<2 { #expect(use(try await session.data(for: request)) != .hit) }
            #expect(server.requests.count == 2)
        }
    }

    @Test func `reports its size, and removes everything`() async throws {
        let folder = TemporaryFolder()
        try await withCountingServer { server, runtime in
            let session = try SessionManager(
                configuration: configuration(folder), runtime: runtime)
            let cache = try #require(session.cache)
            await cache.waitUntilOpen()
            #expect(cache.disk == .ready)
            let request = try HTTPRequest(.get, server.url)
            _ = try await session.data(for: request)
            await cache.flush()
            #expect(cache.statistics.memoryResponses == 1)
            #expect(cache.statistics.memoryBytes > 0)
            #expect(cache.statistics.diskResponses == 1)
            #expect(cache.statistics.diskBytes > 0)
            cache.removeAll()
            #expect(cache.statistics.memoryResponses == 0)
            #expect(cache.statistics.diskResponses == 0)
            #expect(use(try await session.data(for: request)) == .miss)
            #expect(server.requests.count == 2)
        }
    }

    @Test func `finds on disk what an earlier session has stored`() async throws {
        let folder = TemporaryFolder()
        try await withCountingServer(bytes: 100_000) { server, runtime in
            let request = try HTTPRequest(.get, server.url, fields: [.authorization: "Basic one"])
            let own = try ClientRuntime()
            do {
                let session = try SessionManager(
                    configuration: configuration(folder), runtime: own)
                await session.cache?.waitUntilOpen()
                _ = try await session.data(for: request)
                await session.cache?.flush()
            }
            own.close()
            let session = try SessionManager(
                configuration: configuration(folder), runtime: runtime)
            let cache = try #require(session.cache)
            await cache.waitUntilOpen()
            // The file may still belong to the earlier session, which is ending.
            try #require(cache.disk == .ready)
            let response = try await session.data(for: request)
            #expect(use(response) == .hit)
            #expect(response.content.count == 100_000 + "Basic one".utf8.count)
            #expect(server.requests.count == 1)
        }
    }

    @Test func `fails if only a stored response is allowed and there is none`() async throws {
        try await withCountingServer { server, runtime in
            let session = try SessionManager(configuration: configuration(), runtime: runtime)
            var options = RequestOptions()
            options.cachePolicy = .returnCacheDontLoad
            let error = await failure { [options] in
                _ = try await session.data(for: try HTTPRequest(.get, server.url), options: options)
            }
            #expect(error?.reason == .notCached)
            #expect(server.requests.isEmpty)
        }
    }

    @Test(
        arguments: ["no-cache", "max-age=0, must-revalidate", "max-age=86400"],
        [RequestProperties.CachePolicy.returnCacheElseLoad, .returnCacheDontLoad])
    func `answers with any stored response on request, whatever its directives`(
        cacheControl: String, policy: RequestProperties.CachePolicy
    ) async throws {
        try await withCountingServer(cacheControl, fields: ["ETag: \"a\""]) { server, runtime in
            let session = try SessionManager(configuration: configuration(), runtime: runtime)
            let request = try HTTPRequest(.get, server.url)
            #expect(use(try await session.data(for: request)) == .miss)
            var options = RequestOptions()
            options.cachePolicy = policy
            let response = try await session.data(for: request, options: options)
            #expect(use(response) == .hit || use(response) == .stale)
            #expect(response.text == "nobody")
            #expect(server.requests.count == 1)
            // A field alone does not request this.
            guard cacheControl != "max-age=86400" else { return }
            let field = try HTTPRequest(
                .get, server.url, fields: [.cacheControl: "max-stale"])
            _ = try await session.data(for: field)
            #expect(server.requests.count == 2)
        }
    }

    @Test(arguments: [(0, 1, "/tmp"), (1, 1, nil), (1, 1, "relative")] as [(Int, Int, String?)])
    func `refuses a configuration without memory or folder`(
        memory: Int, disk: Int, folder: String?
    ) async throws {
        try await withRuntime { runtime in
            var configuration = SessionConfiguration.patient
            configuration.cacheMemoryBytes = memory
            configuration.cacheDiskBytes = disk
            configuration.cacheDirectory = folder
            let error = await failure { [configuration] in
                _ = try SessionManager(configuration: configuration, runtime: runtime)
            }
            #expect(error?.reason == .invalidConfiguration)
        }
    }

    @Test func `has the capacities of an image downloader on request`() {
        let configuration = SessionConfiguration.images(cacheDirectory: "/var/cache/images")
        #expect(configuration.cacheMemoryBytes == 20 << 20)
        #expect(configuration.cacheDiskBytes == 150 << 20)
        #expect(SessionConfiguration.images().cacheDiskBytes == 0)
    }
}
