import CLinux
import HTTPTypes
import Locking
import TestSupport
import Testing

@testable import PinfoldClient

@Suite("A download that comes to nothing")
struct DownloadRefusalTests {
    private let folder = TemporaryFolder()

    /// Interrupts a download after 5 of 10 bytes, answers the next request with a closure, and
    /// returns the result.
    private func resumed(
        _ answer: @escaping @Sendable (TestConnection) -> Void
    ) async throws -> (ClientError?, [String]) {
        let content = RangedContent(count: 10)
        var found: ClientError?
        try await withServer { connection, request in
            guard request.field("range") != nil else {
                return content.answer(connection, request, atMost: 5)
            }
            answer(connection)
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, "\(server.url)/a")
            for _ in 0..<2 {
                found = await failure {
                    _ = try await session.download(
                        request, to: folder.destination, options: .resuming)
                }
            }
            #expect(server.requests[1].field("range") == "bytes=5-")
        }
        return (found, folder.names)
    }

    @Test(
        arguments: [
            ([], "206 Partial Content without Content-Range"),
            (["Content-Range: bytes 4-8/10"], "bytes from 4; requested from 5"),
            (["Content-Range: bytes 5-9/11"], "a total of 11 bytes; before, it was 10"),
            (["Content-Range: bytes 5-8/10"], "5 bytes of content for a range of 4"),
            (
                ["Content-Range: bytes 5-9/10", "ETag: \"2\""],
                "a range of content that has changed"
            ),
            (
                ["Content-Type: multipart/byteranges; boundary=x"],
                "several ranges (multipart/byteranges) instead of one"
            ),
        ] as [([String], String)])
    func `a part other than the requested one is not written`(
        fields: [String], problem: String
    ) async throws {
        let (error, names) = try await resumed {
            $0.respond("206 Partial Content", fields, "abcde")
        }
        #expect(error?.reason == .badResponse)
        #expect(error?.downloadReason == .range(problem))
        #expect(error?.resumeData == nil)
        // The existing bytes are unchanged.
        #expect(names == ["a.bin.part", "a.bin.part.resume"])
        #expect(folder.bytes(of: "a.bin.part") == Array(RangedContent(count: 10).bytes[..<5]))
    }

    @Test func `an unsatisfiable range restarts`() async throws {
        let content = RangedContent(count: 10)
        var shorter = RangedContent(count: 4, seed: 5)
        shorter.tag = "\"2\""
        let asked = Locked(0)
        try await withServer { [shorter] connection, request in
            switch asked.withLock({ count in
                count += 1
                return count
            }) {
            case 1: return content.answer(connection, request, atMost: 5)
            case 2:
                connection.respond("416 Range Not Satisfiable", ["Content-Range: bytes */4"])
                return true
            default: return shorter.answer(connection, request)
            }
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, "\(server.url)/a")
            _ = await failure {
                _ = try await session.download(
                    request, to: folder.destination, options: .resuming)
            }
            let response = try await session.download(
                request, to: folder.destination, options: .resuming)
            #expect(response.resumedBytes == 0)
            #expect(response.metrics.transactions.map(\.status) == [416, 200])
            #expect(folder.bytes(of: "a.bin") == shorter.bytes)
        }
    }

    @Test func `a failure status writes no file`() async throws {
        try await withServer { connection, _ in
            connection.respond("404 Not Found", [], "no such thing")
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, "\(server.url)/a")
            let error = await failure {
                _ = try await session.download(request, to: folder.destination)
            }
            #expect(error?.reason == .unacceptableStatus)
            #expect(error?.downloadReason == .status(404))
            #expect((error?.underlying as? DownloadError)?.response?.status.code == 404)
            #expect(folder.names == [])
            var options = DownloadOptions()
            options.acceptedStatusCodes = 100...599
            _ = try await session.download(request, to: folder.destination, options: options)
            #expect(folder.bytes(of: "a.bin") == Array("no such thing".utf8))
        }
    }

    @Test func `nothing is requested that could not be written`() async throws {
        try await withServer { connection, _ in
            connection.respond("200 OK", [], "x")
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, "\(server.url)/a")
            func problem(
                _ destination: DownloadDestination, _ options: DownloadOptions = .init(),
                _ fields: HTTPFields = [:]
            ) async -> DownloadError.Reason? {
                var request = request
                request.headerFields = fields
                return await failure { [request] in
                    _ = try await session.download(request, to: destination, options: options)
                }?.downloadReason
            }
            folder.write([1], to: "there")
            let there = folder.file("there")
            #expect(await problem(.path(there)) == .destinationExists(there))
            guard case .destinationInvalid = await problem(.path(folder.path)) else {
                Issue.record("a folder is a destination")
                return
            }
            guard case .file(let missing) = await problem(.path("\(folder.path)/a/b")) else {
                Issue.record("a folder that is not there is a destination's")
                return
            }
            #expect(missing.code == ENOENT)
            symlink("/etc/hosts", folder.file("b.part"))
            #expect(
                await problem(.path(folder.file("b")))
                    == .partialFileUnsafe(folder.file("b.part")))
            guard case .options = await problem(.chosen { _, _ in "x" }, .resuming) else {
                Issue.record("resumed from nowhere")
                return
            }
            guard
                case .options = await problem(
                    folder.destination, .resuming, [.range: "bytes=0-1"])
            else {
                Issue.record("resumed behind a range of the caller's")
                return
            }
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `a failing choice is reported`() async throws {
        try await withServer { connection, _ in
            connection.respond("200 OK", [], "x")
            return true
        } _: { server, runtime in
            struct NoError: Error, CustomStringConvertible { var description: String { "no" } }
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, "\(server.url)/a")
            let error = await failure {
                _ = try await session.download(request, to: .chosen { _, _ in throw NoError() })
            }
            #expect(error?.downloadReason == .choosing("no"))
        }
    }

    @Test func `an unknown file at the partial file's path is kept, unless it may be replaced`()
        async throws
    {
        let content = RangedContent(count: 10)
        try await withServer {
            content.answer($0, $1)
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, "\(server.url)/a")
            folder.write([1, 2, 3], to: "a.bin.part")
            let part = folder.file("a.bin.part")
            let error = await failure {
                _ = try await session.download(
                    request, to: folder.destination, options: .resuming)
            }
            #expect(error?.downloadReason == .partialFileUnknown(part))
            #expect(error?.reason == .fileFailed)
            #expect(error?.downloadReason?.description.hasPrefix("\(part) exists") == true)
            #expect(folder.bytes(of: "a.bin.part") == [1, 2, 3])
            #expect(server.requests.isEmpty)
            var options = DownloadOptions()
            options.replacesExisting = true
            _ = try await session.download(request, to: folder.destination, options: options)
            #expect(folder.bytes(of: "a.bin") == content.bytes)
            #expect(folder.names == ["a.bin"])
        }
    }

    @Test func `a partial file that is replaced during the download is not used`()
        async throws
    {
        let content = RangedContent(count: 1_000_000)
        try await withServer { connection, request in
            _ = content.answer(connection, request, atMost: 500_000)
            // When the rest arrives, the file is a different one.
            let part = folder.file("a.bin.part")
            while (folder.bytes(of: "a.bin.part")?.count ?? 0) < 250_000 { sched_yield() }
            unlink(part)
            folder.write([9, 9, 9], to: "a.bin.part")
            connection.send(Array(content.bytes[500_000...]))
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, "\(server.url)/a")
            let error = await failure {
                _ = try await session.download(
                    request, to: folder.destination, options: .resuming)
            }
            #expect(error?.downloadReason == .partialFileLost(folder.file("a.bin.part")))
            #expect(error?.resumeData == nil)
            #expect(folder.names == ["a.bin.part"])
            #expect(folder.bytes(of: "a.bin.part") == [9, 9, 9])
        }
    }

    @Test func `two downloads do not write one file`() async throws {
        let content = RangedContent(count: 1_000_000)
        try await withServer { connection, request in
            if content.answer(connection, request, atMost: 500_000) { return true }
            connection.waitForEnd()
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, "\(server.url)/a")
            let first = session.downloadTask(request, to: folder.destination) { _ in }
            first.resume()
            for await value in first.progress.updates() where value.received > 0 { break }
            let error = await failure {
                _ = try await session.download(request, to: folder.destination)
            }
            #expect(error?.downloadReason == .busy(folder.file("a.bin.part")))
            first.cancel()
        }
    }

    @Test func `an interrupted response without a validator leaves nothing`() async throws {
        try await withServer { connection, _ in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let error = await failure {
                _ = try await session.download(
                    try HTTPRequest(.get, server.url), to: folder.destination, options: .resuming)
            }
            #expect(error?.reason == .connectionLost)
            #expect(error?.resumeData == nil)
            #expect(folder.names == [])
        }
    }

    @Test func `no file is left if the caller keeps nothing`() async throws {
        let content = RangedContent(count: 10)
        try await withServer {
            content.answer($0, $1, atMost: 5)
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            var options = DownloadOptions()
            options.keepsPartialFile = false
            let error = await failure { [options] in
                _ = try await session.download(
                    try HTTPRequest(.get, server.url), to: folder.destination, options: options)
            }
            #expect(error?.reason == .connectionLost)
            #expect(folder.names == [])
        }
    }
}
