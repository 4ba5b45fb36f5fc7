import HTTPTypes
import Locking
import PinfoldTLS
import TestSupport
import Testing

@testable import PinfoldClient

/// Runs a test with a runtime and a server.
func withServer(
    secure: Bool = false, context: TLSServerContext? = nil, _ answer: @escaping TestServer.Answer,
    _ body: (TestServer, ClientRuntime) async throws -> Void
) async throws {
    let server = try TestServer(secure: secure, context: context, answer)
    let runtime = try ClientRuntime()
    defer {
        runtime.close()
        server.close()
    }
    try await body(server, runtime)
}

/// The error of a call, or `nil` if it succeeds.
func failure(_ body: () async throws -> Void) async -> ClientError? {
    do {
        try await body()
        return nil
    } catch {
        return error as? ClientError
    }
}

@Suite("A session")
struct SessionManagerTests {
    @Test func `sends a request and collects the response`() async throws {
        try await withServer { connection, request in
            connection.respond("200 Fine", ["X-A: ü", "Via: 1.1 other"], "hello \(request.path)")
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, "\(server.url)/a?b", fields: [.accept: "text/*"])
            let response = try await session.data(for: request)
            #expect(response.head.status.code == 200)
            #expect(response.head.status.reasonPhrase == "Fine")
            #expect(response.head.headerFields[.init("X-A")!] == "ü")
            #expect(response.text == "hello /a?b")
            let seen = try #require(server.requests.first)
            #expect(seen.startLine == "GET /a?b HTTP/1.1")
            #expect(seen.field("accept") == "text/*")
            #expect(seen.field("host") == String(server.url.dropFirst(7)))
            // It is not a gateway, and no field on either side claims that it is.
            #expect(seen.field("via") == nil)
            #expect(response.head.headerFields[.init("Via")!] == "1.1 other")
            #expect(response.head.headerFields[.init("Cache-Status")!] == nil)
            #expect(response.head.headerFields[.date] == nil)
        }
    }

    @Test func `reuses a connection`() async throws {
        try await withServer { connection, _ in
            connection.respond("200 OK", [], "x")
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let first = try await session.data(for: try HTTPRequest(.get, server.url))
            let second = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(server.connections == 1)
            let (made, used) = (first.metrics.transactions[0], second.metrics.transactions[0])
            #expect(made.receivedBytes == 1)
            #expect(!made.reusedConnection)
            #expect(made.connect != nil)
            #expect(made.lookup == nil)
            #expect(made.handshake == nil)
            #expect(used.reusedConnection)
            #expect(used.connect == nil)
        }
    }

    @Test(arguments: [0, 1, 1000, 70_000, 3_000_000])
    func `sends content of any length and reads as much`(count: Int) async throws {
        let content = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        try await withServer { connection, request in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(request.content.count)\r\n\r\n")
            connection.send(request.content)
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.post, server.url)
            let response = try await session.data(for: request, content: .bytes(content))
            #expect(response.content == content)
            #expect(server.requests.first?.field("content-length") == "\(count)")
        }
    }

    @Test func `sends a sequence in chunks`() async throws {
        try await withServer { connection, request in
            connection.respond("200 OK", [], request.text)
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let parts = AsyncStream<[UInt8]> { continuation in
                for text in ["one ", "", "two ", "three"] { continuation.yield(Array(text.utf8)) }
                continuation.finish()
            }
            let response = try await session.data(
                for: try HTTPRequest(.put, server.url), content: .stream(parts))
            #expect(response.text == "one two three")
            #expect(server.requests.first?.field("transfer-encoding") == "chunked")
        }
    }

    @Test(arguments: [3, 9])
    func `rejects content whose length was declared differently`(length: Int64) async throws {
        try await withServer { connection, request in
            connection.respond("200 OK", [], request.text)
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let parts = AsyncStream<[UInt8]> { continuation in
                continuation.yield(Array("12345".utf8))
                continuation.finish()
            }
            let error = await failure {
                _ = try await session.data(
                    for: try HTTPRequest(.put, server.url),
                    content: .stream(parts, length: length))
            }
            #expect(error?.reason == .contentFailed)
        }
    }

    @Test func `reads no faster than the caller consumes`() async throws {
        let sent = Locked(0)
        let part = [UInt8](repeating: 7, count: 1 << 20)
        let parts = 32
        try await withServer { connection, _ in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(part.count * parts)\r\n\r\n")
            for _ in 0..<parts {
                connection.send(part)
                sent.withLock { $0 += 1 }
            }
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let response = try await session.response(for: try HTTPRequest(.get, server.url))
            var count = 0
            for try await bytes in response.content {
                count += bytes.count
                // What the kernel buffers on both sides, and the channel.
                #expect(sent.withLock { $0 } * part.count <= count + (24 << 20))
            }
            #expect(count == part.count * parts)
        }
    }

    @Test func `stops reading content that is longer than the caller allows`() async throws {
        try await withServer { connection, _ in
            connection.respond("200 OK", [], "12345")
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            var options = RequestOptions()
            options.maximumContentBytes = 4
            let error = await failure { [options] in
                _ = try await session.data(for: try HTTPRequest(.get, server.url), options: options)
            }
            #expect(error?.reason == .contentTooLong)
        }
    }

    @Test func `reports an interrupted response`() async throws {
        try await withServer { connection, _ in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let error = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, server.url))
            }
            #expect(error?.reason == .connectionLost)
            #expect(error?.url == "\(server.url)/")
        }
    }

    @Test func `reports that nothing listens`() async throws {
        let port = ClosedPort()
        let request = try HTTPRequest(.get, "http://\(port.place)")
        let runtime = try ClientRuntime()
        defer { runtime.close() }
        let session = try SessionManager(configuration: .patient, runtime: runtime)
        let error = await failure { _ = try await session.data(for: request) }
        #expect(error?.reason == .cannotConnect)
        #expect(error?.host == "127.0.0.1")
    }

    @Test func `reports an idle timeout`() async throws {
        try await withServer { connection, _ in
            connection.waitForEnd()
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            var options = RequestOptions()
            options.timeout = .milliseconds(50)
            let error = await failure { [options] in
                _ = try await session.data(for: try HTTPRequest(.get, server.url), options: options)
            }
            #expect(error?.reason == .timedOut)
        }
    }

    @Test func `ends a task that takes too long in total, however often it is redirected`()
        async throws
    {
        try await withServer { connection, request in
            connection.respond("302 Found", ["Location: /again"])
            return true
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.resourceTimeout = .milliseconds(200)
            configuration.redirects = .follow(maximum: .max)
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let error = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, server.url))
            }
            #expect(error?.reason == .timedOut)
            #expect(error?.explanation == "it took longer than 200 ms")
        }
    }

    @Test func `ends a task that is queued for too long`() async throws {
        try await withServer { connection, _ in
            connection.waitForEnd()
            return false
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.maximumRequestsPerOrigin = 1
            configuration.resourceTimeout = .milliseconds(200)
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let request = try HTTPRequest(.get, server.url)
            let first = Task { await failure { _ = try await session.data(for: request) } }
            // One of the two waits for the other one.
            let second = await failure { _ = try await session.data(for: request) }
            #expect(second?.reason == .timedOut)
            #expect(await first.value?.reason == .timedOut)
        }
    }

    @Test func `gives each task a unique number`() async throws {
        try await withServer { connection, _ in
            connection.respond()
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let other = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, server.url)
            let first = try await session.data(for: request).metrics.task
            let second = try await other.data(for: request).metrics.task
            #expect(first < second)
        }
    }

    @Test func `closes the connection of a task that is cancelled`() async throws {
        let (asked, whenAsked) = AsyncStream.makeStream(of: Void.self)
        let (closed, whenClosed) = AsyncStream.makeStream(of: Void.self)
        try await withServer { connection, _ in
            whenAsked.yield()
            connection.waitForEnd()
            whenClosed.yield()
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, server.url)
            let task = Task { await failure { _ = try await session.data(for: request) } }
            _ = await asked.first { true }
            task.cancel()
            #expect(await task.value?.reason == .cancelled)
            _ = await closed.first { true }
        }
    }

    @Test func `ends its tasks when it is invalidated`() async throws {
        let (asked, whenAsked) = AsyncStream.makeStream(of: Void.self)
        try await withServer { connection, _ in
            whenAsked.yield()
            connection.waitForEnd()
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, server.url)
            let task = Task { await failure { _ = try await session.data(for: request) } }
            _ = await asked.first { true }
            session.invalidate(cancelling: true)
            #expect(await task.value?.reason == .sessionInvalidated)
            let later = await failure { _ = try await session.data(for: request) }
            #expect(later?.reason == .sessionInvalidated)
        }
    }

    @Test func `ends without harm to others of its runtime`() async throws {
        let gate = try AnswerGate()
        try await withServer { connection, request in
            if request.path == "/slow" {
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
                connection.wait(at: gate)
                connection.send("cd")
            } else {
                connection.respond("200 OK", [], "x")
            }
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let slow = try HTTPRequest(.get, "\(server.url)/slow")
            let task = Task { try await session.data(for: slow) }
            await gate.arrival()
            let other = try SessionManager(configuration: .patient, runtime: runtime)
            _ = try await other.data(for: try HTTPRequest(.get, server.url))
            other.invalidate(cancelling: true)
            let late = await failure {
                _ = try await other.data(for: try HTTPRequest(.get, server.url))
            }
            #expect(late?.reason == .sessionInvalidated)
            gate.open()
            #expect(try await task.value.text == "abcd")
        }
    }

    @Test func `allows a queued request to be cancelled`() async throws {
        let gate = try AnswerGate()
        try await withServer { connection, request in
            connection.wait(at: gate)
            connection.respond("200 OK", [], request.path)
            return true
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.maximumRequestsPerOrigin = 1
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let (first, second) = (
                try HTTPRequest(.get, "\(server.url)/1"), try HTTPRequest(.get, "\(server.url)/2")
            )
            let running = Task { try await session.data(for: first) }
            await gate.arrival()
            let waiting = Task { await failure { _ = try await session.data(for: second) } }
            waiting.cancel()
            #expect(await waiting.value?.reason == .cancelled)
            gate.open()
            #expect(try await running.value.text == "/1")
            #expect(server.requests.map(\.path) == ["/1"])
        }
    }

    @Test func `answers from its cache`() async throws {
        try await withServer { connection, request in
            connection.respond("200 OK", ["Cache-Control: max-age=86400"], request.path)
            return true
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.cacheMemoryBytes = 1 << 20
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let request = try HTTPRequest(.get, "\(server.url)/a")
            var options = RequestOptions()
            options.cachePolicy = .returnCacheDontLoad
            let before = await failure { [options] in
                _ = try await session.data(for: request, options: options)
            }
            #expect(before?.reason == .notCached)
            #expect(try await session.data(for: request).metrics.transactions[0].cache == .miss)
            let hit = try await session.data(for: request, options: options)
            #expect(hit.text == "/a")
            #expect(hit.metrics.transactions[0].cache == .hit)
            options.cachePolicy = .reloadIgnoringCache
            _ = try await session.data(for: request, options: options)
            #expect(server.requests.count == 2)
        }
    }
}
