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
}
