import CLinux
import Dispatch
import HTTPTypes
import Locking
import TestSupport
import Testing

@testable import PinfoldClient

/// The behaviour of AFNetworking's session managers that no other suite covers.
@Suite("A session in place of AFNetworking's")
struct ListedSessionTests {
    private static let echo: TestServer.Answer = { connection, request in
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(request.content.count)\r\n\r\n")
        connection.send(request.content)
        return true
    }

    @Test func `uploads bytes, a file, a source and a sequence`() async throws {
        let bytes = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        let folder = TemporaryFolder()
        folder.write(bytes, to: "content")
        let path = folder.file("content")
        let contents: [RequestContent] = [
            .bytes(bytes), try .file(path), .source { try FileSource(path) },
            .stream(
                AsyncStream { continuation in
                    continuation.yield(Array(bytes.prefix(70_000)))
                    continuation.yield(Array(bytes.dropFirst(70_000)))
                    continuation.finish()
                }, length: Int64(bytes.count)),
        ]
        try await withServer(Self.echo) { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            for content in contents {
                var options = RequestOptions()
                let progress = TransferProgress()
                options.progress = progress
                let response = try await session.data(
                    for: try HTTPRequest(.put, server.url), content: content, options: options)
                #expect(response.content == bytes)
                #expect(progress.value.sent == Int64(bytes.count))
                #expect(progress.value.expectedToSend == content.length)
            }
            #expect(contents.map { $0.length == nil } == [false, false, true, false])
        }
    }

    @Test func `calls handlers on the queue of the caller's choice`() async throws {
        let key = DispatchSpecificKey<String>()
        let queue = DispatchQueue(label: "callbacks")
        queue.setSpecific(key: key, value: "the caller's")
        var configuration = SessionConfiguration.patient
        configuration.callbacks = .custom { handler in
            await withCheckedContinuation { continuation in
                queue.async {
                    handler()
                    continuation.resume()
                }
            }
        }
        try await withServer(Self.echo) { [configuration] server, runtime in
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let (places, tell) = AsyncStream.makeStream(of: String?.self)
            session.dataTask(for: try HTTPRequest(.get, server.url)) { _ in
                tell.yield(DispatchQueue.getSpecific(key: key))
            }.resume()
            #expect(await places.first { _ in true } == "the caller's")
        }
    }

    @Test(arguments: [false, true])
    func `calls handlers one after the other, in their order`(isCustom: Bool) async {
        let (numbers, tell) = AsyncStream.makeStream(of: Int.self)
        let (running, most) = (Locked(0), Locked(0))
        let line = CallbackQueue(
            isCustom
                ? .custom { handler in
                    await Task.yield()
                    await Task.detached { handler() }.value
                } : .serial)
        for number in 0..<1000 {
            line.run {
                let now = running.withLock { running in
                    running += 1
                    return running
                }
                most.withLock { $0 = max($0, now) }
                tell.yield(number)
                if number == 999 { tell.finish() }
                running.withLock { $0 -= 1 }
            }
        }
        let seen = await numbers.reduce(into: [Int]()) { $0.append($1) }
        #expect(seen == Array(0..<1000))
        #expect(most.withLock { $0 } == 1)
    }

    /// The number of this process's threads with a name (proc(5)).
    private func threads(named name: String) throws -> Int {
        let folder = try #require(opendir("/proc/self/task"))
        defer { closedir(folder) }
        var count = 0
        while let entry = readdir(folder) {
            let task = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            // It may have ended in the meantime.
            guard let file = fopen("/proc/self/task/\(task)/comm", "r") else { continue }
            defer { fclose(file) }
            var line = [CChar](repeating: 0, count: 64)
            guard fgets(&line, Int32(line.count), file) != nil else { continue }
            let found = line.prefix { $0 != 0x0A && $0 != 0 }
            if found.elementsEqual(name.utf8CString.dropLast()) { count += 1 }
        }
        return count
    }

    @Test func `serves all requests of all sessions by one resident thread`() async throws {
        let gate = try AnswerGate()
        let server = try TestServer { connection, _ in
            connection.wait(at: gate)
            connection.respond()
            return true
        }
        let runtime = try ClientRuntime(name: "resident-test")
        defer {
            gate.open()
            runtime.close()
            server.close()
        }
        let request = try HTTPRequest(.get, server.url)
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<3 {
                let session = try SessionManager(configuration: .patient, runtime: runtime)
                for _ in 0..<4 {
                    group.addTask { try await session.data(for: request).head.status.code }
                }
            }
            await gate.arrival(of: 12)
            #expect(try threads(named: "resident-test") == 1)
            gate.open()
            #expect(try await group.reduce(0) { $0 + ($1 == 200 ? 1 : 0) } == 12)
        }
    }

    @Test func `reports which server was not trusted, with the URL and the presented pins`()
        async throws
    {
        try await withServer(secure: true, Self.echo) { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.securityPolicy = try TestAuthority.policy()
            configuration.securityPolicy.mode = .publicKey
            configuration.securityPolicy.pins = [
                try CertificatePin("sha256/" + String(repeating: "A", count: 43) + "=")
            ]
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let error = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, "\(server.url)/a?b=c"))
            }
            #expect(error?.reason == .secureConnectionFailed)
            #expect(error?.url == "\(server.url)/a?b=c")
            #expect(error?.host == "127.0.0.1")
            #expect(error?.presentedPins.count == 1)
            #expect(error?.presentedPins.first?.hasPrefix("sha256/") == true)
        }
    }

    @Test(arguments: [
        ("http://a.test", "http://a.test/"), ("http://a.test/v1", "http://a.test/v1/"),
        ("https://a.test:8443/v1/?q#f", "https://a.test:8443/v1/"),
    ])
    func `has a base that ends in a slash`(given: String, base: String) throws {
        let runtime = try ClientRuntime()
        defer { runtime.close() }
        let api = try HTTPSessionManager(
            baseURL: given, configuration: .patient, runtime: runtime,
            responses: HTTPResponseSerializer())
        #expect(api.baseURL == base)
    }

    @Test func `keeps responses within 4 MB of memory and 20 MB on disk`() async throws {
        let folder = TemporaryFolder()
        let text = String(repeating: "x", count: 400_000)
        try await withServer { connection, _ in
            connection.respond("200 OK", ["Cache-Control: max-age=86400"], text)
            return true
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.cacheMemoryBytes = 4 << 20
            configuration.cacheDiskBytes = 20 << 20
            configuration.cacheDirectory = folder.path
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let cache = try #require(session.cache)
            await cache.waitUntilOpen()
            for number in 0..<70 {
                _ = try await session.data(for: try HTTPRequest(.get, "\(server.url)/\(number)"))
                await cache.flush()
                #expect(cache.statistics.memoryBytes <= 4 << 20)
                #expect(cache.statistics.diskBytes <= 20 << 20)
            }
            #expect(cache.disk == .ready)
            #expect(cache.statistics.memoryBytes > 2 << 20)
            #expect(cache.statistics.diskBytes > 10 << 20)
            session.invalidate()
        }
    }
}
