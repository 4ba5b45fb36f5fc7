import HTTPTypes
import Locking
import TestSupport
import Testing

@testable import PinfoldClient

@Suite("An error of a download")
struct DownloadErrorTests {
    private let folder = TemporaryFolder()

    /// The errors of a failing request, as a data task and as a download. Checks that they agree.
    private func errors(
        _ session: SessionManager, _ url: String, _ options: RequestOptions = RequestOptions()
    ) async throws -> (data: ClientError, failure: DownloadError) {
        let request = try HTTPRequest(.get, url)
        let plain = await failure { _ = try await session.data(for: request, options: options) }
        let data = try #require(plain)
        var downloading = DownloadOptions()
        downloading.request = options
        let downloaded = await failure { [downloading] in
            _ = try await session.download(request, to: folder.destination, options: downloading)
        }
        let error = try #require(downloaded)
        #expect(error.reason == data.reason && error.token == data.token)
        #expect(error.url == data.url && error.host == data.host)
        #expect(error.wasNotProcessed == data.wasNotProcessed)
        #expect(error.proxyResponse == data.proxyResponse)
        let inner = try #require(error.underlying as? DownloadError)
        #expect(inner.reason == .transfer && inner.response == nil)
        return (data, inner)
    }

    @Test func `reports that nothing was sent, like that of any request`() async throws {
        let port = ClosedPort()
        try await withServer { _, _ in
            false
        } _: { _, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            #expect(try await errors(session, "http://\(port.place)/").data.wasNotProcessed)
        }
    }

    @Test func `has the cause of a request's queue timeout as its underlying error`() async throws {
        try await withServer { connection, request in
            connection.waitForEnd()
            return false
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.maximumRequestsPerOrigin = 1
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let silent = Task {
                try await session.data(for: try HTTPRequest(.get, "\(server.url)/silent"))
            }
            while server.requests.isEmpty { await Task.yield() }
            var options = RequestOptions()
            options.queueTimeout = .milliseconds(100)
            let (data, failure) = try await errors(session, "\(server.url)/", options)
            #expect(data.wasNotProcessed && data.underlying is QueueTimeoutError)
            #expect(failure.underlying is QueueTimeoutError)
            silent.cancel()
        }
    }

    @Test func `has the proxy's response`() async throws {
        try await withServer { connection, _ in
            connection.send("HTTP/1.1 403 Forbidden\r\nA: b\r\nContent-Length: 0\r\n\r\n")
            return false
        } _: { server, runtime in
            let session = try SessionManager(
                configuration: try .through(server), runtime: runtime)
            let data = try await errors(session, "https://origin.test/").data
            #expect(data.proxyResponse?.status.code == 403)
        }
    }

    @Test func `does not claim that nothing was sent once a part has arrived`() async throws {
        let content = RangedContent(count: 10)
        let server = Locked<TestServer?>(nil)
        defer { server.withLock { $0 = nil } }
        try await withServer { connection, request in
            server.withLock { $0 }?.refuse()
            return content.answer(connection, request, atMost: 5)
        } _: { listener, runtime in
            server.withLock { $0 = listener }
            var configuration = SessionConfiguration.patient
            configuration.retries = RetryPolicy(
                maximumAttempts: 3, firstDelayMilliseconds: 0,
                maximumElapsedMilliseconds: 3_600_000)
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let error = await failure {
                _ = try await session.download(
                    try HTTPRequest(.get, "\(listener.url)/a"), to: folder.destination,
                    options: .resuming)
            }
            #expect(error?.reason == .cannotConnect)
            #expect(error?.wasNotProcessed == false)
            #expect(error?.resumeData?.receivedBytes == 5)
        }
    }

    @Test func `reports that nothing was sent if the file is in the way`() async throws {
        folder.write([1], to: "a.bin")
        try await withServer { connection, _ in
            connection.respond()
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let error = await failure {
                _ = try await session.download(
                    try HTTPRequest(.get, server.url), to: folder.destination)
            }
            #expect(error?.downloadReason == .destinationExists(folder.file("a.bin")))
            #expect(error?.wasNotProcessed == true)
            #expect(server.requests.isEmpty)
        }
    }
}
