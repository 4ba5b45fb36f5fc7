import CLinux
import HTTPTypes
import Locking
import TestSupport
import Testing

@testable import PinfoldClient

@Suite("A download")
struct DownloadTests {
    private let folder = TemporaryFolder()

    @Test(arguments: [0, 1, 100_000, 3_000_000])
    func `becomes a file of the content`(count: Int) async throws {
        let content = RangedContent(count: count)
        try await withServer {
            content.answer($0, $1)
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            var options = DownloadOptions()
            let progress = TransferProgress()
            options.request.progress = progress
            let response = try await session.download(
                try HTTPRequest(.get, "\(server.url)/a"), to: folder.destination, options: options)
            #expect(response.length == Int64(count))
            #expect(response.path == folder.file("a.bin"))
            #expect(response.resumedBytes == 0)
            #expect(response.metrics.transactions.count == 1)
            #expect(folder.bytes(of: "a.bin") == content.bytes)
            #expect(folder.names == ["a.bin"])
            let seen = try #require(server.requests.first)
            #expect(seen.field("accept-encoding") == "identity")
            #expect(seen.field("range") == nil)
            let value = progress.value
            #expect(value.received == Int64(count))
            #expect(value.expectedToReceive == Int64(count))
            #expect(value.isFinished)
        }
    }

    @Test func `goes to the destination chosen by the response`() async throws {
        try await withServer { connection, _ in
            connection.respond(
                "200 OK", ["Content-Disposition: attachment; filename=\"b.txt\""], "hello")
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let place = folder.path
            let response = try await session.download(
                try HTTPRequest(.get, "\(server.url)/a"),
                to: .chosen { "\(place)/\(DownloadResponse.suggestedName(for: $0, $1))" })
            #expect(response.path == folder.file("b.txt"))
            #expect(folder.bytes(of: "b.txt") == Array("hello".utf8))
        }
    }

    @Test func `accepts content of unknown length`() async throws {
        try await withServer { connection, _ in
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            connection.send("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let response = try await session.download(
                try HTTPRequest(.get, server.url), to: folder.destination)
            #expect(response.length == 5)
            #expect(folder.bytes(of: "a.bin") == Array("abcde".utf8))
        }
    }

    @Test func `resumes where it was interrupted, with its error's resume data`() async throws {
        let content = RangedContent(count: 1_000_000)
        let isBroken = Locked(true)
        try await withServer { connection, request in
            content.answer(
                connection, request, atMost: isBroken.withLock { $0 } ? 600_000 : nil)
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(
                .get, "\(server.url)/a", fields: [.accept: "x/y", .authorization: "secret"])
            let error = await failure {
                _ = try await session.download(request, to: folder.destination)
            }
            #expect(error?.reason == .connectionLost)
            #expect(error?.downloadReason == .transfer)
            let data = try #require(error?.resumeData)
            #expect(data.receivedBytes == 600_000)
            #expect(data.expectedBytes == 1_000_000)
            #expect(folder.names == ["a.bin.part", "a.bin.part.resume"])
            isBroken.withLock { $0 = false }
            var options = DownloadOptions()
            let progress = TransferProgress()
            options.request.progress = progress
            let response = try await session.download(
                resuming: try ResumeData(text: data.text), fields: [.authorization: "other"],
                to: folder.destination, options: options)
            #expect(response.head.status.code == 206)
            #expect(response.resumedBytes == 600_000)
            #expect(response.length == 1_000_000)
            #expect(folder.bytes(of: "a.bin") == content.bytes)
            #expect(folder.names == ["a.bin"])
            let second = try #require(server.requests.last)
            #expect(second.field("range") == "bytes=600000-")
            #expect(second.field("if-range") == "\"1\"")
            #expect(second.field("accept") == "x/y")
            #expect(second.field("authorization") == "other")
            // The existing bytes count, and nothing counts twice.
            let value = progress.value
            #expect(value.received == 1_000_000)
            #expect(value.expectedToReceive == 1_000_000)
            #expect(value.isFinished)
        }
    }

    @Test func `restarts if the content has changed`() async throws {
        let old = RangedContent(count: 500_000)
        var new = RangedContent(count: 300_000, seed: 9)
        new.tag = "\"2\""
        let asked = Locked(0)
        try await withServer { [new] connection, request in
            let count = asked.withLock { count in
                count += 1
                return count
            }
            return count == 1
                ? old.answer(connection, request, atMost: 400_000)
                : new.answer(connection, request)
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, "\(server.url)/a")
            let error = await failure {
                _ = try await session.download(
                    request, to: folder.destination, options: .resuming)
            }
            #expect(error?.resumeData?.receivedBytes == 400_000)
            var options = DownloadOptions.resuming
            let progress = TransferProgress()
            options.request.progress = progress
            let response = try await session.download(
                request, to: folder.destination, options: options)
            #expect(server.requests.last?.field("range") == "bytes=400000-")
            #expect(response.head.status.code == 200)
            #expect(response.resumedBytes == 0)
            #expect(folder.bytes(of: "a.bin") == new.bytes)
            #expect(progress.value.received == 300_000)
        }
    }

    @Test func `has its last byte confirmed if everything was there already`() async throws {
        let content = RangedContent(count: 300_000)
        let place = folder
        try await withServer { connection, request in
            // The destination appears during the download.
            if request.field("range") == nil { place.write([1], to: "a.bin") }
            return content.answer(connection, request)
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, "\(server.url)/a")
            let error = await failure {
                _ = try await session.download(
                    request, to: folder.destination, options: .resuming)
            }
            #expect(error?.downloadReason == .destinationExists(folder.file("a.bin")))
            #expect(error?.resumeData?.receivedBytes == 300_000)
            unlink(folder.file("a.bin"))
            let response = try await session.download(
                request, to: folder.destination, options: .resuming)
            #expect(server.requests.last?.field("range") == "bytes=299999-")
            #expect(response.resumedBytes == 299_999)
            #expect(folder.bytes(of: "a.bin") == content.bytes)
            #expect(folder.names == ["a.bin"])
        }
    }

    @Test func `accepts parts until everything is there`() async throws {
        let content = RangedContent(count: 10)
        try await withServer { connection, request in
            guard let range = request.field("range") else {
                return content.answer(connection, request, atMost: 3)
            }
            let first = Int(range.dropFirst(6).dropLast()) ?? 0
            let last = min(first + 2, 9)
            connection.send(
                "HTTP/1.1 206 Partial Content\r\nContent-Length: \(last - first + 1)\r\n"
                    + "Content-Range: bytes \(first)-\(last)/10\r\n\r\n")
            connection.send(Array(content.bytes[first...last]))
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, "\(server.url)/a")
            _ = await failure {
                _ = try await session.download(
                    request, to: folder.destination, options: .resuming)
            }
            let response = try await session.download(
                request, to: folder.destination, options: .resuming)
            #expect(folder.bytes(of: "a.bin") == content.bytes)
            #expect(response.resumedBytes == 3)
            #expect(response.metrics.transactions.count == 3)
            #expect(
                server.requests.compactMap { $0.field("range") }
                    == ["bytes=3-", "bytes=6-", "bytes=9-"])
        }
    }

    @Test func `leaves resume data if cancelled for that, and nothing else`() async throws {
        let content = RangedContent(count: 1_000_000)
        try await withServer { connection, request in
            if content.answer(connection, request, atMost: 500_000) { return true }
            connection.waitForEnd()
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            for produces in [true, false] {
                let (results, continuation) = AsyncStream.makeStream(
                    of: Result<DownloadResponse, ClientError>.self)
                let task = session.downloadTask(
                    try HTTPRequest(.get, "\(server.url)/a"), to: folder.destination
                ) { continuation.yield($0) }
                task.resume()
                for await value in task.progress.updates() where value.received >= 500_000 {
                    break
                }
                if produces { task.cancelProducingResumeData() } else { task.cancel() }
                guard case .failure(let error) = await results.first(where: { _ in true }) else {
                    Issue.record("it did not fail")
                    return
                }
                #expect(error.reason == .cancelled)
                // What had arrived and was not written yet may be lost.
                #expect((error.resumeData?.receivedBytes ?? 0 > 0) == produces)
                #expect(folder.names == (produces ? ["a.bin.part", "a.bin.part.resume"] : []))
            }
        }
    }

    @Test func `leaves what there is if its Swift task is cancelled and it resumes`()
        async throws
    {
        let content = RangedContent(count: 1_000_000)
        try await withServer { connection, request in
            let most = request.field("range") == nil ? 500_000 : nil
            if content.answer(connection, request, atMost: most) { return true }
            connection.waitForEnd()
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            var options = DownloadOptions.resuming
            let progress = TransferProgress()
            options.request.progress = progress
            let request = try HTTPRequest(.get, "\(server.url)/a")
            let task = Task { [options, folder] in
                await failure {
                    _ = try await session.download(
                        request, to: folder.destination, options: options)
                }
            }
            for await value in progress.updates() where value.received >= 500_000 { break }
            task.cancel()
            let left = try #require(await task.value?.resumeData).receivedBytes
            #expect(left > 0)
            let response = try await session.download(
                request, to: folder.destination, options: .resuming)
            #expect(response.resumedBytes == left)
            #expect(folder.bytes(of: "a.bin") == content.bytes)
        }
    }

    @Test func `is completed when its runtime is closed`() async throws {
        let content = RangedContent(count: 1_000_000)
        try await withServer { connection, request in
            if content.answer(connection, request, atMost: 500_000) { return true }
            connection.waitForEnd()
            return false
        } _: { server, _ in
            let runtime = try ClientRuntime()
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            var options = DownloadOptions()
            let progress = TransferProgress()
            options.request.progress = progress
            let request = try HTTPRequest(.get, "\(server.url)/a")
            let task = Task { [options, folder] in
                await failure {
                    _ = try await session.download(
                        request, to: folder.destination, options: options)
                }
            }
            for await value in progress.updates() where value.received >= 500_000 { break }
            runtime.close()
            let error = await task.value
            #expect(error?.reason == .sessionInvalidated)
            #expect(error?.resumeData?.receivedBytes == 500_000)
        }
    }

    @Test func `reports its progress where handlers are called, the end last, also for its rest`()
        async throws
    {
        let content = RangedContent(count: 1_000_000)
        try await withServer { connection, request in
            let most = request.field("range") == nil ? 500_000 : nil
            return content.answer(connection, request, atMost: most)
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let (values, continuation) = AsyncStream.makeStream(of: (Int64, Bool).self)
            let (results, end) = AsyncStream.makeStream(of: ResumeData?.self)
            let completion = { @Sendable (result: Result<DownloadResponse, ClientError>) in
                continuation.yield((-1, false))
                if case .failure(let error) = result { end.yield(error.resumeData) }
            }
            session.downloadTask(
                try HTTPRequest(.get, "\(server.url)/a"), to: folder.destination
            ) {
                continuation.yield(($0.received, $0.isFinished))
            } completion: {
                completion($0)
            }.resume()
            let rest = try #require(await results.first { _ in true } ?? nil)
            try session.downloadTask(resuming: rest, to: folder.destination) {
                continuation.yield(($0.received, $0.isFinished))
            } completion: {
                completion($0)
            }.resume()
            var (before, ends) = ((Int64(0), false), [(Int64, Bool)]())
            for await value in values {
                if value.0 < 0 { ends.append(before) }
                if ends.count == 2 { break }
                before = value
            }
            #expect(ends.map(\.0) == [500_000, 1_000_000])
            #expect(ends.allSatisfy { $0.1 })
        }
    }

    @Test func `is one task, with its events`() async throws {
        let content = RangedContent(count: 1_000_000)
        try await withServer { connection, request in
            let most = request.field("range") == nil ? 500_000 : nil
            _ = content.answer(connection, request, atMost: most)
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let events = session.events()
            let (results, continuation) = AsyncStream.makeStream(
                of: Result<DownloadResponse, ClientError>.self)
            func begin() throws -> SessionTask<DownloadResponse> {
                let task = session.downloadTask(
                    try HTTPRequest(.get, "\(server.url)/a"), to: folder.destination,
                    options: .resuming
                ) { continuation.yield($0) }
                task.resume()
                return task
            }
            // The server interrupts it, and the next one resumes it.
            let first = try begin()
            guard case .failure = await results.first(where: { _ in true }) else {
                Issue.record("it did not fail")
                return
            }
            let second = try begin()
            second.suspend()
            second.resume()
            let response = try #require(await results.first { _ in true }).get()
            #expect(response.path == folder.file("a.bin"))
            // There is a file now, which is not replaced.
            let third = try begin()
            guard case .failure = await results.first(where: { _ in true }) else {
                Issue.record("it did not fail")
                return
            }
            session.invalidate()
            var seen: [String] = []
            for await event in events {
                switch event {
                case .downloadMoved(second.identifier, let path): seen.append("moved \(path)")
                case .didComplete(let end):
                    let task = [first, second, third].firstIndex { $0.identifier == end.task }
                    seen.append("\(task ?? 9) \(end.error == nil)")
                case .didResume, .didSuspend, .sessionInvalidated: break
                default: seen.append("\(event)")
                }
            }
            #expect(
                seen == ["0 false", "moved \(folder.file("a.bin"))", "1 true", "2 false"])
        }
    }
}
