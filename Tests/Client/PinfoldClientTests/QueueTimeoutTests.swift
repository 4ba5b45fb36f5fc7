import CLinux
import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

/// Delivers 110 bytes slowly, once they are requested.
private struct SlowSource: ByteSource {
    let isOrdered: Locked<Bool>
    private var count = 0

    init(isOrdered: Locked<Bool>) { self.isOrdered = isOrdered }

    mutating func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        while !isOrdered.withLock({ $0 }) { _ = poll(nil, 0, 5) }
        guard count < 110 else { return 0 }
        // The pace of the content, which the server has to bear.
        _ = poll(nil, 0, 75)
        count += 1
        buffer[0] = 0x78
        return 1
    }
}

@Suite("A request that waits for its turn")
struct QueueTimeoutTests {
    /// A server with responses of many kinds, according to their paths.
    ///
    /// - Parameter goesOn: Whether the slow one sends its content.
    private func withResponses(
        goesOn: Locked<Bool> = Locked(true),
        _ body: (TestServer, ClientRuntime) async throws -> Void
    ) async throws {
        try await withServer { connection, request in
            switch request.path {
            case "/unread":
                // More than is buffered for a reader, so that the server's time does not run.
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n")
                connection.send([UInt8](repeating: 7, count: 1 << 20))
            case "/silent": break
            case "/endless":
                connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            case "/slow", "/chunks":
                let isChunked = request.path == "/chunks"
                connection.send(
                    "HTTP/1.1 200 OK\r\n"
                        + (isChunked ? "Transfer-Encoding: chunked" : "Content-Length: 110")
                        + "\r\n\r\n")
                while !goesOn.withLock({ $0 }) { _ = poll(nil, 0, 5) }
                for _ in 0..<110 {
                    connection.send(isChunked ? "1\r\nx\r\n" : "x")
                    // The pace of the content, which the client has to bear.
                    _ = poll(nil, 0, 75)
                }
                if isChunked { connection.send("0\r\n\r\n") }
                return true
            case "/stream":
                connection.send(
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
                while connection.send("1\r\nx\r\n") { _ = poll(nil, 0, 10) }
                return false
            case "/events":
                connection.send(TestConnection.eventStream + "data: a\n\n")
            default:
                connection.respond("200 OK", [], request.path)
                return true
            }
            connection.waitForEnd()
            return false
        } _: { server, runtime in
            try await body(server, runtime)
        }
    }

    /// The same with a separate thread for the body: time matters in these tests, and the threads
    /// that all tests share may be blocked by others for minutes.
    private func withResponsesOnOwnThread(
        goesOn: Locked<Bool> = Locked(true),
        _ body: (TestServer, ClientRuntime, ReadingThread) async throws -> Void
    ) async throws {
        let thread = try ReadingThread()
        defer { thread.close() }
        try await withTaskExecutorPreference(thread) {
            try await withResponses(goesOn: goesOn) { server, runtime in
                try await body(server, runtime, thread)
            }
        }
    }

    private func response(
        _ path: String, _ server: TestServer, _ session: SessionManager
    ) async throws -> StreamedResponse {
        try await session.response(for: try HTTPRequest(.get, "\(server.url)\(path)"))
    }

    /// The error of a request that should have become active.
    private func failure(
        _ server: TestServer, _ session: SessionManager, _ options: RequestOptions
    ) async throws -> (error: ClientError, timeout: QueueTimeoutError) {
        let error = try await #require(throws: ClientError.self) {
            try await session.data(
                for: try HTTPRequest(.get, "\(server.url)/last"), options: options)
        }
        return (error, try #require(error.underlying as? QueueTimeoutError))
    }

    /// The setting that determines the timeout.
    enum Setting: CaseIterable { case session, request, requestsTimeout, sessionsTimeout }

    @Test(arguments: Setting.allCases)
    func `fails behind unread responses, which its error reports`(setting: Setting) async throws {
        try await withResponses { server, runtime in
            var configuration = SessionConfiguration.patient
            var options = RequestOptions()
            var waited = Duration.milliseconds(150)
            switch setting {
            case .session: configuration.queueTimeout = waited
            case .request: options.queueTimeout = waited
            case .requestsTimeout: options.timeout = waited
            case .sessionsTimeout:
                // Those ahead of it have to observe it, too.
                waited = .seconds(4)
                configuration.requestTimeout = waited
            }
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            var held: [StreamedResponse] = []
            for _ in 0..<6 { held.append(try await response("/unread", server, session)) }
            let (error, timeout) = try await failure(server, session, options)
            #expect(error.reason == .timedOut && error.token == "queue-timeout")
            #expect(timeout.limit == .requestsPerOrigin(6) && timeout.origin == server.url)
            #expect(timeout.waited == waited && timeout.unreadResponses == 6)
            #expect(error.explanation.contains("6 requests to \(server.url)"))
            #expect(!server.requests.contains { $0.path == "/last" })
            // Releasing one gives its slot to the next.
            held.removeAll()
            let next = try await session.data(for: try HTTPRequest(.get, "\(server.url)/next"))
            #expect(next.text == "/next")
        }
    }

    @Test func `fails behind anything without progress, counted by kind`() async throws {
        try await withResponses { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.maximumRequests = 4
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let suspended = try await response("/unread", server, session)
            try #require(session.tasks.first).suspend()
            let unread = try await response("/unread", server, session)
            let endless = try await response("/endless", server, session)
            let silent = Task { try await response("/silent", server, session) }
            while !server.requests.contains(where: { $0.path == "/silent" }) { await Task.yield() }
            var options = RequestOptions()
            options.queueTimeout = .milliseconds(100)
            let (error, timeout) = try await failure(server, session, options)
            #expect(timeout.limit == .requests(4) && timeout.origin == server.url)
            #expect(timeout.unreadResponses == 1 && timeout.suspendedTasks == 1)
            #expect(timeout.unansweredRequests == 1 && timeout.unfinishedResponses == 1)
            #expect(error.explanation.contains("1 suspended"))
            silent.cancel()
            _ = (unread, suspended, endless)
        }
    }

    @Test(arguments: ["/slow", "/chunks"])
    func `continues to wait while those ahead make progress`(path: String) async throws {
        let isOrdered = Locked(false)
        try await withResponsesOnOwnThread(goesOn: isOrdered) { server, runtime, thread in
            defer { isOrdered.withLock { $0 = true } }
            var configuration = SessionConfiguration.patient
            configuration.maximumRequestsPerOrigin = 1
            configuration.queueTimeout = .seconds(6)
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let slow = try await response(path, server, session)
            let read = Task(executorPreference: thread) {
                try await slow.content.collect(atMost: 200)
            }
            async let answer = session.data(for: try HTTPRequest(.get, "\(server.url)/next"))
            while session.tasks.count < 2 { await Task.yield() }
            isOrdered.withLock { $0 = true }
            let next = try await answer
            #expect(next.text == "/next")
            let queued = try #require(next.metrics.transactions.first).queued
            #expect(queued > .seconds(6))
            #expect(try await read.value.count == 110)
        }
    }

    @Test func `continues to wait while content of unknown length is sent`() async throws {
        try await withResponsesOnOwnThread { server, runtime, _ in
            var configuration = SessionConfiguration.patient
            configuration.maximumRequestsPerOrigin = 1
            configuration.queueTimeout = .seconds(6)
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let isOrdered = Locked(false)
            defer { isOrdered.withLock { $0 = true } }
            let content = RequestContent.source { SlowSource(isOrdered: isOrdered) }
            async let sent = session.data(
                for: try HTTPRequest(.post, "\(server.url)/sent"), content: content)
            while session.tasks.isEmpty { await Task.yield() }
            async let answer = session.data(for: try HTTPRequest(.get, "\(server.url)/next"))
            while session.tasks.count < 2 { await Task.yield() }
            isOrdered.withLock { $0 = true }
            #expect(try await answer.text == "/next")
            #expect(try await sent.text == "/sent")
            #expect(server.requests.first?.content.count == 110)
        }
    }

    @Test func `fails behind an endless stream of unknown length`() async throws {
        try await withResponsesOnOwnThread { server, runtime, thread in
            var configuration = SessionConfiguration.patient
            configuration.maximumRequestsPerOrigin = 2
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let streams = [
                try await response("/stream", server, session),
                try await response("/stream", server, session),
            ]
            let readers = streams.map { stream in
                Task(executorPreference: thread) { for try await _ in stream.content {} }
            }
            var options = RequestOptions()
            options.queueTimeout = .milliseconds(500)
            let (error, timeout) = try await failure(server, session, options)
            #expect(timeout.unfinishedResponses == 2 && timeout.responsesOfUnknownLength == 2)
            #expect(error.explanation.hasSuffix(": 2 with a response whose length is not known"))
            for reader in readers {
                reader.cancel()
                _ = await reader.result
            }
        }
    }

    @Test func `fails behind a stream that is not read`() async throws {
        try await withResponsesOnOwnThread { server, runtime, _ in
            var configuration = SessionConfiguration.patient
            configuration.maximumRequestsPerOrigin = 1
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let stream = try await response("/stream", server, session)
            var options = RequestOptions()
            // The reading of the head, which a busy machine delays, may count ten times as long.
            options.queueTimeout = .seconds(2)
            let timeout = try await failure(server, session, options).timeout
            #expect(timeout.unreadResponses == 1 && timeout.unfinishedResponses == 0, "\(timeout)")
            _ = stream
        }
    }

    @Test(
        arguments: [
            (0, 1000), (1500, 1500), (10_999, 10_999), (11_000, 11_000), (60_000, 11_000),
        ] as [(Int64, Int64)])
    func `waits for content of unknown length for a bounded time`(
        streamedAt: Int64, latest: Int64
    ) {
        var advance = TransferAdvance()
        (advance.advancedAt, advance.streamedAt) = (1000, streamedAt)
        #expect(advance.latest(streamingAtMost: 10_000) == latest)
    }

    @Test func `does not wait for event streams`() async throws {
        try await withResponses { server, runtime in
            var configuration = SessionConfiguration.patient
            (configuration.maximumRequestsPerOrigin, configuration.maximumRequests) = (2, 2)
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let request = try HTTPRequest(.get, "\(server.url)/events")
            var iterators: [EventSource.Iterator] = []
            for _ in 0..<8 {
                var iterator = session.events(for: request).makeAsyncIterator()
                #expect(try await iterator.next()?.data == "a")
                iterators.append(iterator)
            }
            // With every interface that reads them.
            var plain: [StreamedResponse] = []
            for _ in 0..<4 { plain.append(try await response("/events", server, session)) }
            let next = try await session.data(for: try HTTPRequest(.get, "\(server.url)/next"))
            #expect(next.text == "/next")
            // An event stream does not wait in the queue either.
            let held = [
                try await response("/unread", server, session),
                try await response("/unread", server, session),
            ]
            var late = session.events(for: request).makeAsyncIterator()
            #expect(try await late.next()?.data == "a")
            _ = (held, plain)
        }
    }

    @Test func `leaves no more event streams than allowed`() async throws {
        try await withResponses { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.maximumEventStreams = 2
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let source = session.events(for: try HTTPRequest(.get, "\(server.url)/events"))
            var iterators = [source.makeAsyncIterator(), source.makeAsyncIterator()]
            for index in iterators.indices {
                #expect(try await iterators[index].next()?.data == "a")
            }
            var third = source.makeAsyncIterator()
            let error = await #expect(throws: ClientError.self) { try await third.next() }
            #expect(error?.reason == .outOfResources)
            #expect(error?.explanation == "2 event streams are open already")
            // One that is read like any response counts as an active request instead.
            let plain = try await response("/events", server, session)
            // One that has ended makes room.
            iterators.removeLast()
            while await runtime.transferCount > 2 { await Task.yield() }
            var fourth = source.makeAsyncIterator()
            #expect(try await fourth.next()?.data == "a")
            _ = (plain, iterators)
        }
    }
}
