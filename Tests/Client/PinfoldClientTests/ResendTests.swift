import HTTPTypes
import Locking
import TestSupport
import Testing

@testable import PinfoldClient

@Suite("A request whose kept connection is closed without an answer")
struct ResendTests {
    /// The first connection carries one request, and is closed when `/closed` is requested on it.
    private static let closing: TestServer.Answer = { connection, request in
        guard request.connection > 0 || request.path != "/closed" else { return false }
        connection.respond("200 OK", [], request.text + "!")
        return true
    }

    /// - Parameter uses: The number of requests that the first connection has carried before.
    private func withKeptConnection(
        resends: Bool, uses: Int = 1, _ answer: @escaping TestServer.Answer = closing,
        _ body: (TestServer, SessionManager) async throws -> Void
    ) async throws {
        try await withServer(answer) { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.resendsUnansweredRequests = resends
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            for _ in 0..<uses {
                _ = try await session.data(for: try HTTPRequest(.get, "\(server.url)/first"))
            }
            try await body(server, session)
            #expect(await runtime.transferCount == 0)
        }
    }

    @Test func `is sent again on a new connection, if configured`() async throws {
        let long = String(repeating: "x", count: 200_000)
        for text in ["x", long] {
            try await withKeptConnection(resends: true) { server, session in
                let response = try await session.data(
                    for: try HTTPRequest(.post, "\(server.url)/closed"), content: .text(text))
                #expect(response.text == text + "!")
                #expect(server.requests.map(\.connection) == [0, 0, 1])
                #expect(response.metrics.transactions.map(\.status) == [nil, 200])
                #expect(response.metrics.transactions.map(\.cause) == [.task, .resend])
                #expect(response.metrics.resends == 1 && response.metrics.retries == 0)
            }
        }
    }

    @Test func `fails otherwise, and is not known to be unprocessed`() async throws {
        #expect(!SessionConfiguration().resendsUnansweredRequests)
        try await withKeptConnection(resends: false) { server, session in
            let request = try HTTPRequest(.post, "\(server.url)/closed")
            let error = await failure {
                _ = try await session.data(for: request, content: .text("x"))
            }
            #expect(error?.reason == .connectionLost)
            #expect(error?.wasNotProcessed == false)
            #expect(error?.explanation.hasSuffix("processed is not known") ?? false)
            #expect(server.requests.map(\.connection) == [0, 0])
            var options = RequestOptions()
            options.resendsUnansweredRequests = true
            #expect(try await session.data(for: request, options: options).text == "!")
        }
    }

    @Test(arguments: [HTTPRequest.Method.delete, .put, .get])
    func `may have been processed if only its second connection fails`(
        method: HTTPRequest.Method
    ) async throws {
        let server = Locked<TestServer?>(nil)
        defer { server.withLock { $0 = nil } }
        let leaving: TestServer.Answer = { connection, request in
            guard request.path == "/closed" else {
                connection.respond()
                return true
            }
            server.withLock { $0 }?.refuse()
            return false
        }
        try await withKeptConnection(resends: false, leaving) { listener, session in
            server.withLock { $0 = listener }
            let error = await failure {
                _ = try await session.data(for: try HTTPRequest(method, "\(listener.url)/closed"))
            }
            #expect(error?.reason == .cannotConnect)
            #expect(error?.wasNotProcessed == false)
            #expect(error?.explanation.hasSuffix("whether it was processed is not known") == true)
            // For a retry policy, it has been sent, too.
            #expect(error?.retryFailure == .noResponse)
            #expect(listener.requests.map(\.path) == ["/first", "/closed"])
        }
    }

    @Test func `is not taken for a TLS error if the server has answered before`() async throws {
        try await withServer { connection, request in
            guard request.path == "/first" else { return false }
            connection.respond()
            return true
        } _: { server, runtime in
            for resends in [true, false] {
                var configuration = SessionConfiguration.patient
                configuration.resendsUnansweredRequests = resends
                let session = try SessionManager(configuration: configuration, runtime: runtime)
                let early = await failure {
                    _ = try await session.data(for: try HTTPRequest(.post, "\(server.url)/closed"))
                }
                #expect(early?.explanation.hasSuffix("expected an https URL") == true)
                _ = try await session.data(for: try HTTPRequest(.get, "\(server.url)/first"))
                let late = await failure {
                    _ = try await session.data(for: try HTTPRequest(.post, "\(server.url)/closed"))
                }
                #expect(late?.reason == .connectionLost)
                #expect(late?.explanation.contains("TLS") == false)
            }
            #expect(server.requests.map(\.connection) == [0, 1, 1, 2, 3, 4, 4])
        }
    }

    @Test func `is not sent again if its connection was new, or its content is gone`() async throws
    {
        try await withKeptConnection(resends: true, uses: 0) { server, session in
            let error = await failure {
                _ = try await session.data(
                    for: try HTTPRequest(.post, "\(server.url)/closed"), content: .text("x"))
            }
            #expect(error?.reason == .connectionLost)
            #expect(server.requests.count == 1)
        }
        try await withKeptConnection(resends: true) { server, session in
            let parts = AsyncStream<[UInt8]> { continuation in
                continuation.yield([0x78])
                continuation.finish()
            }
            let error = await failure {
                _ = try await session.data(
                    for: try HTTPRequest(.post, "\(server.url)/closed"), content: .stream(parts))
            }
            #expect(error?.reason == .connectionLost)
            #expect(server.requests.count == 2)
        }
    }

    @Test func `was not processed if no attempt had a connection`() async throws {
        let port = ClosedPort()
        let leading: TestServer.Answer = { connection, _ in
            connection.respond("307 Over there", ["Location: http://\(port.place)/"])
            return true
        }
        try await withKeptConnection(resends: true, uses: 0, leading) { server, session in
            for (url, isKnown) in [("http://\(port.place)/", true), (server.url, false)] {
                let error = await failure {
                    _ = try await session.data(for: try HTTPRequest(.post, url))
                }
                #expect(error?.reason == .cannotConnect)
                #expect(error?.wasNotProcessed == isKnown)
            }
            let refused = await failure {
                let host = try #require(HTTPField.Name("Host"))
                _ = try await session.data(
                    for: try HTTPRequest(.post, server.url, fields: [host: "b.test"]))
            }
            #expect(refused?.reason == .invalidRequest)
            #expect(refused?.wasNotProcessed == true)
        }
    }
}
