import CLinux
import ContentCoding
import HTTPTypes
import Locking
import TestSupport
import Testing

@testable import PinfoldClient

@Suite("The compression of requests")
struct RequestCompressionTests {
    private struct Sent: Sendable {
        var fields: HTTPFields
        var content: [UInt8]
    }

    /// Sends requests, and returns what arrived.
    private func sent(
        _ body: (SessionManager) async throws -> Void,
        answer: @escaping @Sendable (Int) -> TransportResponse = { _ in TransportResponse() }
    ) async throws -> [Sent] {
        let seen = Locked<[Sent]>([])
        let mock = MockTransport { request in
            let content = try await request.content.collect()
            let count = seen.withLock { seen in
                seen.append(Sent(fields: request.head.headerFields, content: content))
                return seen.count
            }
            return answer(count)
        }
        try await withMock(mock) { try await body($0) }
        return seen.withLock { $0 }
    }

    private static func options(_ compression: RequestCompression) -> RequestOptions {
        var options = RequestOptions()
        options.compression = compression
        return options
    }

    private static let text = [UInt8](repeating: UInt8(ascii: "a"), count: 200_000)

    /// The text in a file, in memory, and in streams.
    private static func contents(in folder: String) throws -> [RequestContent] {
        let path = folder + "/text"
        let file = try #require(fopen(path, "w"))
        fwrite(text, 1, text.count, file)
        fclose(file)
        let stream: @Sendable () -> AsyncStream<[UInt8]> = {
            AsyncStream { continuation in
                for part in 0..<10 {
                    continuation.yield(Array(text[(part * 20_000)..<((part + 1) * 20_000)]))
                }
                continuation.finish()
            }
        }
        return [
            .bytes(text), try .file(path), .stream(stream()),
            .stream(length: Int64(text.count), repeating: stream),
        ]
    }

    @Test(arguments: RequestCompression.allCases)
    func `applies to content of every kind`(compression: RequestCompression) async throws {
        let folder = TemporaryFolder()
        for (index, content) in try Self.contents(in: folder.path).enumerated() {
            let sent = try await sent { session in
                _ = try await session.data(
                    for: try HTTPRequest(.put, "http://a.test/"), content: content,
                    options: Self.options(compression))
            }
            let only = try #require(sent.first)
            #expect(only.fields[.contentEncoding] == compression.rawValue)
            #expect(only.content.count < 2000)
            let decoded = try ContentCodings.decode(
                only.content, codings: [compression.coding], maximum: Self.text.count)
            #expect(decoded == Self.text)
            // Only content in memory is compressed beforehand.
            let length = only.fields[.contentLength]
            #expect(length == (index == 0 ? "\(only.content.count)" : nil))
        }
    }

    @Test func `leaves alone what has a coding, and requests without content`() async throws {
        let sent = try await sent { session in
            let options = Self.options(.gzip)
            _ = try await session.data(
                for: try HTTPRequest(.put, "http://a.test/", fields: [.contentEncoding: "br"]),
                content: .text("own"), options: options)
            _ = try await session.data(
                for: try HTTPRequest(.get, "http://a.test/"), options: options)
            _ = try await session.data(
                for: try HTTPRequest(.post, "http://a.test/"), content: .text(""),
                options: options)
            _ = try await session.data(
                for: try HTTPRequest(.put, "http://a.test/"), content: .text("plain"))
        }
        #expect(sent.map { $0.fields[.contentEncoding] } == ["br", nil, nil, nil])
        #expect(sent[0].content == Array("own".utf8))
        #expect(sent[3].content == Array("plain".utf8))
    }

    @Test func `is the same when the content is sent again, and goes with it`() async throws {
        let sent = try await sent { session in
            _ = try await session.data(
                for: try HTTPRequest(.put, "http://a.test/"), content: .text("text"),
                options: Self.options(.gzip))
        } answer: { count in
            TransportResponse(
                status: [.temporaryRedirect, .seeOther, .ok][count - 1],
                fields: [.location: "/\(count)"])
        }
        #expect(sent.map { $0.fields[.contentEncoding] } == ["gzip", "gzip", nil])
        #expect(sent[0].content == sent[1].content)
        #expect(sent[2].content.isEmpty)
    }

    /// Content with a pause after each part.
    private final class PausingFeed: ContentFeed {
        private let parts: Locked<[[UInt8]]>
        let pauseMilliseconds: Int64 = 10

        init(_ parts: [[UInt8]]) { self.parts = Locked(parts.reversed()) }

        func next(_ deliver: @escaping @Sendable (ContentPart) -> Void) {
            deliver(parts.withLock { $0.popLast() }.map { .bytes($0) } ?? .end)
        }

        func close() {}
    }

    @Test(arguments: RequestCompression.allCases, [true, false])
    func `reads no more of a throttled source at a time`(
        compression: RequestCompression, isRandom: Bool
    ) throws {
        let parts = (0..<200).map { _ in
            (0..<1000).map { _ in isRandom ? UInt8.random(in: 0...255) : 7 }
        }
        let feed = CompressingFeed(PausingFeed(parts), compression)
        #expect(feed.pauseMilliseconds == 10)
        var (delivered, output, isOver) = (0, [UInt8](), false)
        while !isOver {
            let next = Locked<ContentPart?>(nil)
            feed.next { part in next.withLock { $0 = part } }
            switch next.withLock({ $0 }) {
            case .bytes(let bytes):
                delivered += 1
                output += bytes
            case .end: isOver = true
            case .failed(let error): throw error
            case nil:
                Issue.record("nothing was delivered")
                isOver = true
            }
        }
        // There is a pause after each of them, and after the rest.
        #expect(delivered == 201)
        let decoded = try ContentCodings.decode(
            output, codings: [compression.coding], maximum: 200_000)
        #expect(decoded == parts.flatMap { $0 })
    }

    @Test func `does not shorten the pauses of a throttle`() async throws {
        var form = MultipartForm()
        form.append([UInt8](repeating: 7, count: 20_000), name: "a")
        let body = form.body(throttle: Throttle(packetSize: 1000, delay: .milliseconds(5)))
        let took = try await ContinuousClock().measure {
            let sent = try await sent { session in
                _ = try await session.data(
                    for: try HTTPRequest(.put, "http://a.test/"), content: .multipart(body),
                    options: Self.options(.gzip))
            }
            #expect(sent.first?.fields[.contentEncoding] == "gzip")
        }
        #expect(took >= .milliseconds(20 * 5))
    }
}
