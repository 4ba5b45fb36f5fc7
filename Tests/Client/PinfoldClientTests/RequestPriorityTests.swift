import HTTPTypes
import Locking
import TestSupport
import Testing

@testable import PinfoldClient

@Suite("The priority of a request")
struct RequestPriorityTests {
    private static func options(_ priority: RequestPriority) -> RequestOptions {
        var options = RequestOptions()
        options.priority = priority
        return options
    }

    private static let echo: TestServer.Answer = { connection, request in
        connection.respond("200 OK", [], request.field("priority") ?? "none")
        return true
    }

    @Test func `is told to the server if it is not the usual one`() async throws {
        try await withServer(Self.echo) { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            for (priority, value) in [
                (.normal, "none"), (.high, "u=1"), (.low, "u=5"),
                (.init(urgency: 3, isIncremental: true), "i"),
                (.init(urgency: 0, isIncremental: true), "u=0, i"),
                (.init(urgency: 7), "u=7"), (.init(urgency: 3), "none"),
            ] as [(RequestPriority, String)] {
                let response = try await session.data(
                    for: try HTTPRequest(.get, server.url), options: Self.options(priority))
                #expect(response.text == value)
            }
        }
    }

    @Test(.enabled(if: TestProgram.python != nil))
    func `is told over HTTP/2 as well`() async throws {
        try await withServer(Self.echo) { server, runtime in
            let nginx = try Nginx(before: server.url, speaksHTTP2: true)
            defer { nginx.close() }
            var configuration = SessionConfiguration.patient
            configuration.securityPolicy = try nginx.policy()
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let response = try await session.data(
                for: try HTTPRequest(.get, nginx.url),
                options: Self.options(.init(urgency: 2, isIncremental: true)))
            #expect(response.text == "u=2, i")
            #expect(response.metrics.transactions[0].protocolName == "h2")
        }
    }

    @Test func `is what the caller's own field says`() async throws {
        try await withServer(Self.echo) { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, server.url, fields: [.priority: "u=6"])
            let response = try await session.data(for: request, options: Self.options(.high))
            #expect(response.text == "u=6")
        }
    }

    @Test func `keeps within what there is`() {
        #expect(RequestPriority(urgency: -1) == RequestPriority(urgency: 0))
        #expect(RequestPriority(urgency: 8) == RequestPriority(urgency: 7))
        #expect(RequestPriority(urgency: 1) == .high)
    }

    @Test func `decides who is next among those that wait for the same server`() async throws {
        let gate = try AnswerGate()
        try await withServer { connection, request in
            if request.path == "/first" { connection.wait(at: gate) }
            connection.respond()
            return true
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.maximumRequestsPerOrigin = 1
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let first = Task {
                try await session.data(for: try HTTPRequest(.get, server.url + "/first"))
            }
            await gate.arrival()
            var tasks: [Task<DataResponse, any Error>] = []
            for urgency in [7, 3, 0, 5] {
                let url = server.url + "/\(urgency)"
                tasks.append(
                    Task {
                        try await session.data(
                            for: try HTTPRequest(.get, url),
                            options: Self.options(.init(urgency: urgency)))
                    })
            }
            while await runtime.transferCount < 5 { await Task.yield() }
            gate.open()
            _ = try await first.value
            for task in tasks { _ = try await task.value }
            #expect(server.requests.map(\.path) == ["/first", "/0", "/3", "/5", "/7"])
        }
    }
}
