import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

private struct SampleError: Error {}

/// A session that a mock answers, in a runtime of its own.
func withMock(
    _ mock: MockTransport, _ configure: (inout SessionConfiguration) -> Void = { _ in },
    _ body: (SessionManager) async throws -> Void
) async throws {
    let runtime = try ClientRuntime()
    defer { runtime.close() }
    var configuration = SessionConfiguration.patient
    configuration.transport = mock
    configure(&configuration)
    try await body(try SessionManager(configuration: configuration, runtime: runtime))
    #expect(await runtime.transferCount == 0)
}

/// Parts of content, one after another; then an error, if there is one.
func parts(_ parts: [String], then error: (any Error)? = nil)
    -> AsyncThrowingStream<[UInt8], any Error>
{
    AsyncThrowingStream { continuation in
        for part in parts { continuation.yield(Array(part.utf8)) }
        continuation.finish(throwing: error)
    }
}

@Suite("A session's transport")
struct SessionTransportTests {
    private static let url = "https://api.test/users?page=2"

    @Test func `answers requests as they would be sent`() async throws {
        let mock = MockTransport { request in
            let content = try await request.content.collect()
            return TransportResponse(
                status: .created, fields: [.server: "mock"],
                text: "\(request.head.method) \(request.head.url) "
                    + String(decoding: content, as: UTF8.self))
        }
        try await withMock(mock) { session in
            let response = try await session.data(
                for: try HTTPRequest(.post, Self.url, fields: [.accept: "text/*"]),
                content: .text("hello"))
            #expect(response.head.status == .created)
            #expect(response.text == "POST \(Self.url) hello")
            #expect(response.head.headerFields[.server] == "mock")
            #expect(response.head.headerFields[.contentType] == "text/plain; charset=utf-8")
            let seen = try #require(mock.requests.first)
            #expect(seen.headerFields[.accept] == "text/*")
            #expect(seen.headerFields[.contentLength] == "5")
            #expect(seen.headerFields[.acceptEncoding] == "gzip, deflate, br, zstd")
            #expect(response.metrics.transactions[0].server == nil)
        }
    }

    @Test func `has responses without content`() async throws {
        let mock = MockTransport { request in
            TransportResponse(
                status: request.head.path == "/none" ? .noContent : .ok, text: "text")
        }
        try await withMock(mock) { session in
            for (method, path) in [
                (HTTPRequest.Method.head, "/"), (.get, "/none"), (.head, "/none"),
            ] {
                let response = try await session.data(
                    for: try HTTPRequest(method, "http://api.test\(path)"))
                #expect(response.content.isEmpty)
            }
        }
    }

    @Test func `is behind redirects, cookies and retries`() async throws {
        let mock = MockTransport()
        let count = Locked(0)
        mock.on(.get, "http://a.test/first") { _ in
            TransportResponse(
                status: .found, fields: [.location: "/second", .setCookie: "a=1; Path=/"])
        }
        mock.on(.get, "http://a.test/second") { request in
            let number = count.withLock { count in
                count += 1
                return count
            }
            return TransportResponse(
                status: number == 1 ? .serviceUnavailable : .ok,
                text: request.head.headerFields[.cookie] ?? "none")
        }
        try await withMock(mock) { configuration in
            configuration.retries = RetryPolicy(
                firstDelayMilliseconds: 0, maximumElapsedMilliseconds: 3_600_000)
        } _: { session in
            let response = try await session.data(
                for: try HTTPRequest(.get, "http://a.test/first"))
            #expect(response.text == "a=1")
            #expect(response.metrics.transactions.map(\.status) == [302, 503, 200])
            #expect(mock.requests.count == 3)
        }
    }

    @Test func `is behind the cache, which asks it to confirm what is stale`() async throws {
        let mock = MockTransport()
        mock.on(.get, "http://a.test/fresh") { _ in
            TransportResponse(fields: [.cacheControl: "max-age=3600"], text: "fresh")
        }
        mock.on(.get, "http://a.test/stale") { request in
            if request.head.headerFields[.ifNoneMatch] == "\"1\"" {
                return TransportResponse(status: .notModified, fields: [.eTag: "\"1\""])
            }
            return TransportResponse(
                fields: [.cacheControl: "no-cache", .eTag: "\"1\""], text: "stale")
        }
        try await withMock(mock) { configuration in
            configuration.cacheMemoryBytes = 1 << 20
        } _: { session in
            for (path, requests, use) in [
                ("fresh", 1, CacheUse.hit), ("stale", 2, .confirmed),
            ] {
                let request = try HTTPRequest(.get, "http://a.test/\(path)")
                let before = mock.requests.count
                let text1 = try await session.data(for: request).text
                #expect(text1 == path)
                let again = try await session.data(for: request)
                #expect(again.text == path)
                #expect(again.metrics.transactions[0].cache == use)
                #expect(mock.requests.count - before == requests)
            }
        }
    }

    @Test func `is behind the decoding of content`() async throws {
        // gzip of "abc".
        let encoded: [UInt8] = [
            0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0x4B, 0x4C, 0x4A, 6, 0, 0xC2, 0x41, 0x24, 0x35, 3,
            0, 0, 0,
        ]
        let mock = MockTransport { _ in
            TransportResponse(fields: [.contentEncoding: "gzip"], content: encoded)
        }
        try await withMock(mock) { session in
            let response = try await session.data(for: try HTTPRequest(.get, Self.url))
            #expect(response.text == "abc")
            #expect(!response.head.headerFields.contains(.contentEncoding))
        }
    }

    @Test func `streams content, no faster than it is read`() async throws {
        let asked = Locked(0)
        let count = 64
        let mock = MockTransport { _ in
            // Each part is more than a quarter of what may wait.
            let part = [UInt8](repeating: 1, count: 100 << 10)
            return TransportResponse(
                stream: AsyncStream<[UInt8]> {
                    let number = asked.withLock { asked in
                        asked += 1
                        return asked
                    }
                    return number > count ? nil : part
                })
        }
        try await withMock(mock) { session in
            let response = try await session.response(for: try HTTPRequest(.get, Self.url))
            var bytes = 0
            var mostAhead = 0
            for try await part in response.content {
                bytes += part.count
                mostAhead = max(mostAhead, asked.withLock { $0 } - bytes / (100 << 10))
            }
            #expect(bytes == count * (100 << 10))
            #expect(mostAhead < 10)
        }
    }

    @Test func `reads content of any length that is sent to it`() async throws {
        let mock = MockTransport { request in
            var count = 0
            for try await part in request.content { count += part.count }
            return TransportResponse(text: "\(count)")
        }
        try await withMock(mock) { session in
            for length in [0, 1, 70_000, 3 << 20] {
                let bytes = [UInt8](repeating: 1, count: length)
                let request = try HTTPRequest(.put, Self.url)
                let text2 = try await session.data(for: request, content: .bytes(bytes)).text
                #expect(text2 == "\(length)")
                let stream = AsyncStream<[UInt8]> { continuation in
                    continuation.yield(bytes)
                    continuation.finish()
                }
                let text3 = try await session.data(for: request, content: .stream(stream)).text
                #expect(text3 == "\(length)")
            }
            // One that answers without reading.
            mock.on(.put, "http://a.test/") { _ in TransportResponse(text: "early") }
            let large = [UInt8](repeating: 1, count: 3 << 20)
            let early = try await session.data(
                for: try HTTPRequest(.put, "http://a.test/"), content: .bytes(large))
            #expect(early.text == "early")
        }
    }

    /// What each fault is for the session.
    private static let faults: [(TransportError, ClientError.Reason, Bool)] = [
        (.nameNotResolved, .nameNotResolved, true), (.connectionRefused, .cannotConnect, true),
        (.connectTimedOut, .timedOut, true), (.notTrusted, .secureConnectionFailed, true),
        (.connectionLost, .connectionLost, false), (.timedOut, .timedOut, false),
    ]

    @Test func `has the faults of a network`() async throws {
        #expect(Set(Self.faults.map(\.0)) == Set(TransportError.allCases))
        for (fault, reason, isBefore) in Self.faults {
            let mock = MockTransport { _ in throw fault }
            try await withMock(mock) { session in
                let error = await failure {
                    _ = try await session.data(for: try HTTPRequest(.get, Self.url))
                }
                #expect(error?.reason == reason, "\(fault)")
                #expect(error?.wasNotProcessed == isBefore, "\(fault)")
            }
        }
    }

    @Test func `can fail within the content`() async throws {
        for error in [TransportError.connectionLost, .timedOut] as [any Error] + [SampleError()] {
            let mock = MockTransport { _ in
                TransportResponse(stream: parts(["one", "two"], then: error))
            }
            try await withMock(mock) { session in
                let response = try await session.response(for: try HTTPRequest(.get, Self.url))
                let read = Locked("")
                let failed = await failure {
                    for try await part in response.content {
                        read.withLock { $0 += String(decoding: part, as: UTF8.self) }
                    }
                }
                #expect(read.withLock { $0 } == "onetwo")
                switch error as? TransportError {
                case .connectionLost: #expect(failed?.reason == .connectionLost)
                case .timedOut: #expect(failed?.reason == .timedOut)
                default:
                    #expect(failed?.reason == .transportFailed)
                    #expect(failed?.underlying is SampleError)
                }
            }
        }
    }

    @Test func `can cut content off, by its length or by an error`() async throws {
        let mock = MockTransport()
        mock.on(.get, "http://a.test/short") { _ in
            TransportResponse(fields: [.contentLength: "10"], text: "12345")
        }
        mock.on(.get, "http://a.test/cut") { _ in
            var response = TransportResponse(text: "12345")
            response.error = .connectionLost
            return response
        }
        mock.on(.get, "http://a.test/none") { _ in
            var response = TransportResponse()
            response.error = .connectionLost
            return response
        }
        mock.on(.get, "http://a.test/long") { _ in
            TransportResponse(fields: [.contentLength: "3"], text: "12345")
        }
        try await withMock(mock) { session in
            for path in ["short", "cut", "none"] {
                let error = await failure {
                    _ = try await session.data(for: try HTTPRequest(.get, "http://a.test/\(path)"))
                }
                #expect(error?.reason == .connectionLost)
            }
            let long = try await session.data(for: try HTTPRequest(.get, "http://a.test/long"))
            #expect(long.text == "123")
        }
    }

    @Test func `fails a task with its own errors`() async throws {
        for error in [ClientError(.badResponse, "own"), SampleError()] as [any Error] {
            let mock = MockTransport { _ in throw error }
            try await withMock(mock) { session in
                let failed = await failure {
                    _ = try await session.data(for: try HTTPRequest(.get, Self.url))
                }
                if error is ClientError {
                    #expect(failed?.reason == .badResponse)
                } else {
                    #expect(failed?.reason == .transportFailed)
                    #expect(failed?.underlying is SampleError)
                }
                #expect(failed?.url == Self.url)
            }
        }
        let interim = MockTransport { _ in TransportResponse(status: .continue) }
        try await withMock(interim) { session in
            let failed = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, Self.url))
            }
            #expect(failed?.reason == .transportFailed)
        }
        try await withMock(MockTransport()) { session in
            let failed = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, Self.url))
            }
            #expect(failed?.explanation == "the mock has no answer for GET \(Self.url)")
        }
    }

    @Test func `presents the pins that it is told to`() async throws {
        let pins = ["A", "B"].map { "sha256/\(String(repeating: $0, count: 43))=" }
        let mock = MockTransport { _ in TransportResponse(text: "secret") }
        try await withMock(mock) { configuration in
            configuration.securityPolicy = SecurityPolicy(
                mode: .publicKey, pins: (try? [CertificatePin(pins[0])]) ?? [])
        } _: { session in
            let request = try HTTPRequest(.get, Self.url)
            let text4 = try await session.data(for: request).text
            #expect(text4 == "secret")
            mock.present([pins[1], pins[0]], by: "api.test")
            let text5 = try await session.data(for: request).text
            #expect(text5 == "secret")
            mock.present([pins[1]], by: "api.test")
            let error = await failure { _ = try await session.data(for: request) }
            #expect(error?.reason == .secureConnectionFailed)
            #expect(error?.presentedPins == [pins[1]])
            #expect(error?.wasNotProcessed == true)
            // Not a byte reached the server.
            #expect(mock.requests.count == 2)
            let clear = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, "http://api.test/"))
            }
            #expect(clear?.reason == .clearTextRefused)
        }
    }

    @Test func `is cancelled with the task`() async throws {
        let (entered, enter) = AsyncStream.makeStream(of: Void.self)
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let mock = MockTransport { _ in
            enter.finish()
            for await _ in AsyncStream<Void>.makeStream().stream {}
            end.finish()
            return TransportResponse()
        }
        try await withMock(mock) { session in
            let request = try HTTPRequest(.get, Self.url)
            let task = Task { await failure { _ = try await session.data(for: request) } }
            for await _ in entered {}
            task.cancel()
            #expect(await task.value?.reason == .cancelled)
            for await _ in ended {}
        }
    }

    @Test func `answers later if it is told to`() async throws {
        let mock = MockTransport { _ in
            var response = TransportResponse(text: "late")
            response.delay = .milliseconds(1)
            return response
        }
        try await withMock(mock) { session in
            let text6 = try await session.data(for: try HTTPRequest(.get, Self.url)).text
            #expect(text6 == "late")
            // The session's timeouts apply.
            mock.on(.get, "http://a.test/") { _ in
                var response = TransportResponse(text: "never")
                response.delay = .seconds(1 << 30)
                return response
            }
            var options = RequestOptions()
            options.timeout = .milliseconds(5)
            let error = await failure { [options] in
                _ = try await session.data(
                    for: try HTTPRequest(.get, "http://a.test/"), options: options)
            }
            #expect(error?.reason == .timedOut)
        }
    }

    @Test func `sends server-sent events, and opens no WebSockets`() async throws {
        let mock = MockTransport { _ in
            TransportResponse(
                fields: [.contentType: "text/event-stream"],
                stream: parts(["data: one\n\n", "data: two\n\n"]))
        }
        try await withMock(mock) { session in
            var options = EventSourceOptions()
            options.reconnects = false
            var texts: [String] = []
            let request = try HTTPRequest(.get, Self.url)
            for try await event in session.events(for: request, options: options) {
                texts.append(event.data)
            }
            #expect(texts == ["one", "two"])
            let error = await failure { _ = try await session.webSocket("wss://api.test/") }
            #expect(error?.reason == .invalidConfiguration)
        }
    }

    @Test func `uses no proxy`() async throws {
        let mock = MockTransport { _ in TransportResponse(text: "direct") }
        let proxy = try Proxy("http://127.0.0.1:1")
        try await withMock(mock) { configuration in
            configuration.proxies = .fixed(proxy)
        } _: { session in
            for url in [Self.url, "http://api.test/"] {
                let text7 = try await session.data(for: try HTTPRequest(.get, url)).text
                #expect(text7 == "direct")
            }
        }
    }
}
