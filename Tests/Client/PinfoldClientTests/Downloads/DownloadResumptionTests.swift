import CLinux
import HTTPTypes
import Locking
import TestSupport
import Testing

@testable import PinfoldClient

@Suite("A download whose content breaks off")
struct DownloadResumptionTests {
    private let folder = TemporaryFolder()

    /// A policy without delays.
    private static func policy(_ attempts: Int) -> RetryPolicy {
        RetryPolicy(
            maximumAttempts: attempts, firstDelayMilliseconds: 0,
            maximumElapsedMilliseconds: 3_600_000)
    }

    /// A server that sends the first 100 bytes of the whole, and then ranges of at most 100 bytes
    /// without the complete length.
    private static func answerParts(
        of content: RangedContent, _ connection: TestConnection, _ range: String?, beyond: [String]
    ) -> Bool {
        guard let range, let first = Int(range.dropFirst("bytes=".count).dropLast()) else {
            connection.send(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nETag: \"1\"\r\n\r\n64\r\n")
            connection.send(Array(content.bytes[..<100]))
            return false
        }
        guard first < content.bytes.count else {
            connection.respond("416 Range Not Satisfiable", beyond)
            return true
        }
        let last = min(first + 99, content.bytes.count - 1)
        connection.send(
            "HTTP/1.1 206 Partial Content\r\nContent-Length: \(last - first + 1)\r\n"
                + "ETag: \"1\"\r\nContent-Range: bytes \(first)-\(last)/*\r\n\r\n")
        connection.send(Array(content.bytes[first...last]))
        return true
    }

    @Test(arguments: [200, 250])
    func `is complete when the server confirms it, if parts do not give the total`(count: Int)
        async throws
    {
        let content = RangedContent(count: count)
        try await withServer { connection, request in
            Self.answerParts(
                of: content, connection, request.field("range"),
                beyond: ["Content-Range: bytes */\(count)"])
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, "\(server.url)/a")
            let error = await failure {
                _ = try await session.download(
                    request, to: folder.destination, options: .resuming)
            }
            #expect(error?.resumeData?.receivedBytes == 100)
            #expect(error?.resumeData?.expectedBytes == nil)
            let response = try await session.download(
                request, to: folder.destination, options: .resuming)
            #expect(response.length == Int64(count))
            #expect(folder.bytes(of: "a.bin") == content.bytes)
            #expect(folder.names == ["a.bin"])
            let parts = stride(from: 100, to: count, by: 100) + [count, count - 1]
            #expect(
                server.requests.compactMap { $0.field("range") } == parts.map { "bytes=\($0)-" })
        }
    }

    @Test func `restarts if the total length is unknown`() async throws {
        let content = RangedContent(count: 150)
        let asked = Locked(0)
        try await withServer { connection, request in
            let isLast = asked.withLock { count in
                count += 1
                return count == 4
            }
            if isLast { return content.answer(connection, request) }
            return Self.answerParts(of: content, connection, request.field("range"), beyond: [])
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, "\(server.url)/a")
            _ = await failure {
                _ = try await session.download(
                    request, to: folder.destination, options: .resuming)
            }
            _ = try await session.download(request, to: folder.destination, options: .resuming)
            #expect(folder.bytes(of: "a.bin") == content.bytes)
            #expect(
                server.requests.map { $0.field("range") }
                    == [nil, "bytes=100-", "bytes=150-", nil])
        }
    }

    @Test func `is resumed according to the session's policy`() async throws {
        let content = RangedContent(count: 1_000_000)
        let asked = Locked(0)
        try await withServer { connection, request in
            let count = asked.withLock { count in
                count += 1
                return count
            }
            return content.answer(connection, request, atMost: count < 3 ? 300_000 : nil)
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.retries = Self.policy(3)
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            var options = DownloadOptions()
            let progress = TransferProgress()
            options.request.progress = progress
            let response = try await session.download(
                try HTTPRequest(.get, "\(server.url)/a"), to: folder.destination, options: options)
            #expect(folder.bytes(of: "a.bin") == content.bytes)
            #expect(folder.names == ["a.bin"])
            #expect(response.metrics.transactions.map(\.status) == [200, 206, 206])
            #expect(response.metrics.transactions.map(\.cause) == [.task, .retry, .retry])
            #expect(
                server.requests.map { $0.field("range") }
                    == [nil, "bytes=300000-", "bytes=600000-"])
            #expect(server.requests.map { $0.field("if-range") } == [nil, "\"1\"", "\"1\""])
            #expect(progress.value.received == 1_000_000)
            // All of it was downloaded by this call.
            #expect(response.resumedBytes == 0)
        }
    }

    @Test func `counts no attempt of the policy if a closed connection is replaced`() async throws {
        let content = RangedContent(count: 10)
        try await withServer { connection, request in
            switch request.path {
            case "/a" where request.connection == 0: return false
            case "/a":
                return content.answer(
                    connection, request, atMost: request.field("range") == nil ? 5 : nil)
            default:
                connection.respond()
                return true
            }
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.retries = Self.policy(2)
            configuration.resendsUnansweredRequests = true
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            _ = try await session.data(for: try HTTPRequest(.get, "\(server.url)/first"))
            // More content than the engine keeps in order to send it again by itself.
            let long = String(repeating: "x", count: 200_000)
            let response = try await session.download(
                try HTTPRequest(.get, "\(server.url)/a"), content: .text(long),
                to: folder.destination)
            #expect(folder.bytes(of: "a.bin") == content.bytes)
            #expect(response.metrics.transactions.map(\.cause) == [.task, .resend, .retry])
            #expect(response.metrics.retries == 1 && response.metrics.resends == 1)
        }
    }

    @Test func `is resumed in a separate folder whatever path its file has`() async throws {
        let content = RangedContent(count: 1000)
        try await withServer { connection, request in
            content.answer(connection, request, atMost: request.field("range") == nil ? 600 : nil)
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, "\(server.url)/a")
            mkdir(folder.file("parts"), 0o700)
            var options = DownloadOptions.resuming
            options.partialFileDirectory = folder.file("parts")
            let error = await failure { [options] in
                _ = try await session.download(request, to: folder.destination, options: options)
            }
            #expect(error?.resumeData?.receivedBytes == 600)
            options.partialFileDirectory = folder.file("parts/")
            let response = try await session.download(
                request, to: .path(folder.file("parts/.././a.bin")), options: options)
            #expect(response.resumedBytes == 600)
            #expect(folder.bytes(of: "a.bin") == content.bytes)
        }
    }

    @Test func `fails when the policy's attempts are used up, and can still be resumed`()
        async throws
    {
        let content = RangedContent(count: 1_000_000)
        try await withServer { connection, request in
            content.answer(connection, request, atMost: 300_000)
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            var options = DownloadOptions()
            options.request.retries = Self.policy(2)
            let request = try HTTPRequest(.get, "\(server.url)/a")
            let error = await failure { [options] in
                _ = try await session.download(request, to: folder.destination, options: options)
            }
            #expect(error?.reason == .connectionLost)
            #expect(error?.resumeData?.receivedBytes == 600_000)
            #expect(server.requests.count == 2)
        }
    }

    @Test func `fails if the rest cannot be requested`() async throws {
        try await withServer { connection, _ in
            // Without Date it is unknown whether it was modified in the second in which it was
            // sent.
            connection.send(
                "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n"
                    + "Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT\r\n\r\n12345")
            return false
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.retries = Self.policy(3)
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let error = await failure {
                _ = try await session.download(
                    try HTTPRequest(.get, "\(server.url)/a"), to: folder.destination)
            }
            #expect(error?.reason == .connectionLost)
            #expect(error?.resumeData == nil)
            #expect(server.requests.count == 1)
        }
    }
}
