import HTTPTypes
import PinfoldClient
import Testing

/// What a program outside the library can do: change what goes through a transport.
private struct Decorator: SessionTransport {
    let base: any SessionTransport

    func response(to request: TransportRequest) async throws -> TransportResponse {
        var request = request
        request.head.headerFields[.userAgent] = "probe"
        request.content = TransportContent(Upper(base: request.content))
        var response = try await base.response(to: request)
        response.head.headerFields[.server] = "decorated"
        response.head.headerFields[.contentLength] = nil
        response.content = TransportContent(Upper(base: response.content))
        return response
    }
}

/// Content in upper case, part by part.
private struct Upper: AsyncSequence, Sendable {
    let base: TransportContent

    struct Iterator: AsyncIteratorProtocol {
        var parts: TransportContent.Iterator

        mutating func next() async throws -> [UInt8]? {
            try await parts.next().map { part in
                part.map { (0x61...0x7A).contains($0) ? $0 - 0x20 : $0 }
            }
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(parts: base.makeAsyncIterator()) }
}

private struct PartError: Error {}

@Suite("A decorated transport")
struct TransportDecoratorTests {
    private static let echo: MockTransport.Handler = { request in
        let content = try await request.content.collect()
        return TransportResponse(
            stream: parts([
                "is ", request.head.headerFields[.userAgent] ?? "", " ",
                String(decoding: content, as: UTF8.self),
            ]))
    }

    @Test func `changes the request, its content, and the response`() async throws {
        let runtime = try ClientRuntime()
        defer { runtime.close() }
        var configuration = SessionConfiguration.patient
        configuration.transport = Decorator(base: MockTransport(Self.echo))
        let session = try SessionManager(configuration: configuration, runtime: runtime)
        let response = try await session.data(
            for: try HTTPRequest(.post, "http://a.test/"), content: .text("sent"))
        #expect(response.text == "IS PROBE SENT")
        #expect(response.head.headerFields[.server] == "decorated")
    }

    @Test func `is called by a test without a session`() async throws {
        let transport = Decorator(base: MockTransport(Self.echo))
        let request = TransportRequest(
            head: try HTTPRequest(.put, "http://a.test/"),
            content: TransportContent(Array("own".utf8)))
        #expect(request.framing == .length(3))
        let response = try await transport.response(to: request)
        #expect(try await response.content.collect() == Array("IS PROBE OWN".utf8))
    }

    @Test func `has requests whose framing follows from the content`() throws {
        let head = try HTTPRequest(.put, "http://a.test/")
        #expect(TransportRequest(head: head).framing == .none)
        #expect(TransportRequest(head: head, content: TransportContent([])).framing == .length(0))
        let stream = TransportContent(parts(["a"]))
        #expect(TransportRequest(head: head, content: stream).framing == .unknown)
        #expect(
            TransportRequest(head: head, content: stream, framing: .length(1)).framing
                == .length(1))
    }

    @Test func `reads content part by part, without empty parts, and with its error`() async throws
    {
        let content = TransportContent(parts(["", "a", "", "b"], then: PartError()))
        var read: [[UInt8]] = []
        await #expect(throws: PartError.self) {
            for try await part in content { read.append(part) }
        }
        #expect(read == [Array("a".utf8), Array("b".utf8)])
        var none = TransportContent([]).makeAsyncIterator()
        #expect(try await none.next() == nil)
        var one = TransportContent([1, 2]).makeAsyncIterator()
        #expect(try await one.next() == [1, 2])
        #expect(try await one.next() == nil)
    }

    @Test func `answers with the closure that was added last`() async throws {
        let mock = MockTransport()
        func text(_ path: String) async throws -> String? {
            let request = TransportRequest(head: try HTTPRequest(.get, "http://a.test/\(path)"))
            let content = try await mock.response(to: request).content.collect()
            return String(decoding: content, as: UTF8.self)
        }
        mock.on(.get, "http://a.test/one") { _ in TransportResponse(text: "common") }
        mock.on(.get, "http://a.test/two") { _ in TransportResponse(text: "common") }
        mock.on(nil, "http://a.test/one") { _ in TransportResponse(text: "special") }
        #expect(try await text("one") == "special")
        #expect(try await text("two") == "common")
    }
}
