import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

@Suite("A task that is suspended")
struct SuspensionTests {
    /// Other requests of the session are served in the meantime.
    private func pass(_ session: SessionManager, _ server: TestServer) async throws {
        for _ in 0..<20 {
            _ = try await session.data(for: try HTTPRequest(.get, "\(server.url)/other"))
        }
    }

    @Test func `does not begin`() async throws {
        try await withServer { connection, request in
            connection.respond("200 OK", [], request.path)
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let progress = TransferProgress()
            progress.pause()
            var options = RequestOptions()
            options.progress = progress
            let (texts, tell) = AsyncStream.makeStream(of: String.self)
            let task = session.dataTask(
                for: try HTTPRequest(.get, "\(server.url)/late"), options: options
            ) { result in
                tell.yield((try? result.get().text) ?? "failed")
            }
            task.resume()
            #expect(task.state == .suspended)
            async let direct = session.data(
                for: try HTTPRequest(.get, "\(server.url)/direct"), options: options)
            try await pass(session, server)
            #expect(!server.requests.contains { $0.path != "/other" })
            progress.resume()
            #expect(try await direct.text == "/direct")
            task.handle.follow(progress)
            #expect(await texts.first { _ in true } == "/late")
        }
    }

    @Test(arguments: [true, false])
    func `is held by its session, also before it begins`(isCancelled: Bool) async throws {
        try await withServer { connection, request in
            connection.respond("200 OK", [], request.path)
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let progress = TransferProgress()
            progress.pause()
            var options = RequestOptions()
            options.progress = progress
            let (texts, tell) = AsyncStream.makeStream(of: String.self)
            func start() throws {
                session.dataTask(
                    for: try HTTPRequest(.get, "\(server.url)/late"), options: options
                ) { result in
                    tell.yield((try? result.get().text) ?? "failed")
                }.resume()
            }
            try start()
            let handle = try #require(session.tasks.first)
            #expect(handle.state == .suspended)
            #expect(server.requests.isEmpty)
            if isCancelled { progress.cancel() } else { progress.resume() }
            #expect(await texts.first { _ in true } == (isCancelled ? "failed" : "/late"))
            #expect(handle.state == .completed)
        }
    }

    @Test func `stops reading, and continues`() async throws {
        let part = [UInt8](repeating: 7, count: 1 << 20)
        let (parts, sent) = (64, Locked(0))
        try await withServer { connection, request in
            guard request.path == "/long" else {
                connection.respond("200 OK", [], "other")
                return true
            }
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(part.count * parts)\r\n\r\n")
            for _ in 0..<parts {
                connection.send(part)
                sent.withLock { $0 += 1 }
            }
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let response = try await session.response(
                for: try HTTPRequest(.get, "\(server.url)/long"))
            let handle = try #require(session.tasks.first)
            handle.suspend()
            handle.suspend()
            #expect(handle.state == .suspended)
            let count = Locked(0)
            let reader = Task {
                for try await bytes in response.content { count.withLock { $0 += bytes.count } }
            }
            try await pass(session, server)
            handle.resume()
            #expect(handle.state == .suspended)
            try await pass(session, server)
            #expect(count.withLock { $0 } == 0)
            // What the kernel buffers on both sides, and the channel.
            #expect(sent.withLock { $0 } * part.count <= 24 << 20)
            handle.resume()
            handle.resume()
            try await reader.value
            #expect(count.withLock { $0 } == part.count * parts)
            #expect(handle.state == .completed)
        }
    }

    @Test func `stops sending content, and continues`() async throws {
        try await withServer { connection, request in
            connection.respond("200 OK", [], "\(request.content.count)")
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let (asked, progress) = (Locked(0), TransferProgress())
            let content = RequestContent.stream(repeating: {
                AsyncStream<[UInt8]> {
                    let number = asked.withLock { asked in
                        asked += 1
                        return asked
                    }
                    if number == 3 { progress.pause() }
                    return number <= 6 ? [UInt8](repeating: 1, count: 1000) : nil
                }
            })
            var options = RequestOptions()
            options.progress = progress
            async let response = session.data(
                for: try HTTPRequest(.put, "\(server.url)/sent"), content: content,
                options: options)
            while asked.withLock({ $0 }) < 3 { await Task.yield() }
            try await pass(session, server)
            // The part that had already been requested, which is not sent.
            #expect(asked.withLock { $0 } <= 4)
            #expect(progress.value.sent <= 3000)
            progress.resume()
            #expect(try await response.text == "6000")
        }
    }

    @Test(arguments: [true, false])
    func `has no timeout`(isIdle: Bool) async throws {
        try await withServer { connection, request in
            if request.path == "/held" {
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
            }
            connection.waitForEnd()
            return false
        } _: { server, runtime in
            // The suspended one has to get as far as its response, and be suspended, before its
            // time is over: on a slow machine only one with more time does.
            for seconds in [2, 8, 32] {
                var configuration = SessionConfiguration.patient
                if !isIdle { configuration.resourceTimeout = .seconds(seconds) }
                let session = try SessionManager(configuration: configuration, runtime: runtime)
                var options = RequestOptions()
                if isIdle { options.timeout = .seconds(seconds) }
                if try await isHeld(by: session, options, server, runtime) { return }
            }
            Issue.record("no response came before its time was over")
        }
    }

    /// Suspends a response beyond its timeout. Returns `false` if it ended before it was suspended.
    private func isHeld(
        by session: SessionManager, _ options: RequestOptions, _ server: TestServer,
        _ runtime: ClientRuntime
    ) async throws -> Bool {
        let request = try HTTPRequest(.get, "\(server.url)/held")
        guard let response = try? await session.response(for: request, options: options),
            let handle = session.tasks.first
        else { return false }
        handle.suspend()
        guard await runtime.transferCount == 1 else { return false }
        for _ in 0..<2 {
            let error = await failure {
                _ = try await session.data(
                    for: try HTTPRequest(.get, server.url), options: options)
            }
            #expect(error?.reason == .timedOut)
        }
        #expect(await runtime.transferCount == 1)
        #expect(handle.state == .suspended)
        handle.resume()
        // And the timeout applies again when it continues.
        let error = await failure { for try await _ in response.content {} }
        #expect(error?.reason == .timedOut)
        return true
    }

    @Test func `gives up its slot in the queue`() async throws {
        let gate = try AnswerGate()
        try await withServer { connection, request in
            connection.wait(at: gate)
            connection.respond("200 OK", [], request.path)
            return true
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.maximumRequestsPerOrigin = 1
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            func begin(_ path: String) throws -> Task<String, any Error> {
                let request = try HTTPRequest(.get, server.url + path)
                return Task { try await session.data(for: request).text }
            }
            let first = try begin("/1")
            await gate.arrival()
            let second = try begin("/2")
            while await runtime.transferCount < 2 { await Task.yield() }
            let handle = try #require(session.tasks.last)
            handle.suspend()
            let third = try begin("/3")
            gate.open()
            #expect(try await first.value == "/1")
            #expect(try await third.value == "/3")
            #expect(handle.state == .suspended)
            handle.resume()
            #expect(try await second.value == "/2")
            #expect(server.requests.map(\.path) == ["/1", "/3", "/2"])
        }
    }
}
