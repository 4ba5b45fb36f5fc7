import HTTPTypes
import InMemoryTracing
import Testing
import Tracing

@testable import PinfoldClient

@Suite("The span of a task")
struct TaskSpanTests {
    /// Sends a request with a tracer, and returns the spans.
    private func spans(
        _ mock: MockTransport, _ url: String, fields: HTTPFields = [:],
        _ configure: (inout SessionConfiguration) -> Void = { _ in }
    ) async throws -> [FinishedInMemorySpan] {
        let tracer = InMemoryTracer()
        try await withMock(mock) { configuration in
            configuration.tracer = tracer
            configure(&configuration)
        } _: { session in
            let request = try HTTPRequest(.get, url, fields: fields)
            _ = try? await session.data(for: request)
        }
        #expect(tracer.activeSpans.isEmpty)
        return tracer.finishedSpans
    }

    private func text(_ span: FinishedInMemorySpan, _ name: String) -> String? {
        switch span.attributes.get(name) {
        case .string(let text): text
        case .int64(let number): "\(number)"
        case .int32(let number): "\(number)"
        default: nil
        }
    }

    @Test func `describes the request and its response, without queries`() async throws {
        let mock = MockTransport { _ in TransportResponse(text: "x") }
        let span = try #require(
            try await spans(mock, "https://a.test:8443/users?token=secret").first)
        #expect(span.operationName == "GET")
        #expect(span.kind == .client)
        #expect(span.status == nil)
        #expect(text(span, "http.request.method") == "GET")
        #expect(text(span, "url.full") == "https://a.test:8443/users")
        #expect(text(span, "server.address") == "a.test")
        #expect(text(span, "server.port") == "8443")
        #expect(text(span, "http.response.status_code") == "200")
        #expect(text(span, "http.request.resend_count") == nil)
    }

    @Test func `ends with the error, or with a status that is one`() async throws {
        let mock = MockTransport()
        mock.on(.get, "http://a.test/lost") { _ in throw TransportError.connectionLost }
        mock.on(.get, "http://a.test/none") { _ in TransportResponse(status: .notFound) }
        let lost = try #require(try await spans(mock, "http://a.test/lost").first)
        #expect(lost.status?.code == .error)
        #expect(text(lost, "error.type") == "upstream-closed")
        #expect(lost.errors.count == 1)
        let none = try #require(try await spans(mock, "http://a.test/none").first)
        #expect(none.status?.code == .error)
        #expect(text(none, "error.type") == "404")
        #expect(none.errors.isEmpty)
    }

    @Test func `covers redirects, each of which continues the trace`() async throws {
        let mock = MockTransport()
        mock.on(.get, "http://a.test/") { _ in
            TransportResponse(status: .found, fields: [.location: "http://b.test/end"])
        }
        mock.on(.get, "http://b.test/end") { _ in TransportResponse() }
        let spans = try await spans(mock, "http://a.test/")
        let span = try #require(spans.first)
        #expect(spans.count == 1)
        #expect(text(span, "http.request.resend_count") == "1")
        #expect(text(span, "server.address") == "b.test")
        let name = try #require(HTTPField.Name(InMemoryTracer.spanIDKey))
        #expect(mock.requests.map { $0.headerFields[name] } == [span.spanID, span.spanID])
    }

    @Test func `leaves fields of the caller's as they are`() async throws {
        let name = try #require(HTTPField.Name(InMemoryTracer.traceIDKey))
        let mock = MockTransport { _ in TransportResponse() }
        _ = try await spans(mock, "http://a.test/", fields: [name: "own"])
        #expect(mock.requests.map { $0.headerFields[values: name] } == [["own"]])
    }

    @Test func `is within the span of the caller, with handlers as well`() async throws {
        let tracer = InMemoryTracer()
        try await withMock(MockTransport { _ in TransportResponse() }) { configuration in
            configuration.tracer = tracer
        } _: { session in
            let request = try HTTPRequest(.get, "http://a.test/")
            try await tracer.withSpan("caller") { _ in
                _ = try await session.data(for: request)
                let (ended, end) = AsyncStream.makeStream(of: Void.self)
                session.dataTask(for: request) { _ in end.finish() }.resume()
                for await _ in ended {}
            }
        }
        let spans = tracer.finishedSpans
        let caller = try #require(spans.first { $0.operationName == "caller" })
        let own = spans.filter { $0.operationName == "GET" }
        #expect(own.map(\.parentSpanID) == [caller.spanID, caller.spanID])
    }

    @Test func `ends when streamed content has been read, or with the task that is cancelled`()
        async throws
    {
        let tracer = InMemoryTracer()
        let mock = MockTransport { _ in TransportResponse(stream: parts(["a", "b"])) }
        try await withMock(mock) { configuration in
            configuration.tracer = tracer
        } _: { session in
            let request = try HTTPRequest(.get, "http://a.test/")
            let response = try await session.response(for: request)
            #expect(tracer.finishedSpans.isEmpty)
            _ = try await response.content.collect(atMost: 10)
            #expect(tracer.finishedSpans.count == 1)
            let task = session.dataTask(for: request) { _ in }
            task.cancel()
            // It never began.
            #expect(tracer.finishedSpans.count == 1)
        }
        #expect(tracer.activeSpans.isEmpty)
    }

    @Test func `is not made in a program that does not trace`() {
        #expect(SessionConfiguration().tracer == nil)
    }
}
