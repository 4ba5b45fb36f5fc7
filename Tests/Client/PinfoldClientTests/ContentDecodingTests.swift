import ContentCoding
import HTTPTypes
import Testing

@testable import PinfoldClient

@Suite("Content codings of responses")
struct ContentDecodingTests {
    private static let text = String(repeating: "hello world ", count: 20_000)

    /// Answers with content in the codings named by the path, in one part or byte by byte.
    private static let answer: TestServer.Answer = { connection, request in
        let words = request.path.split(separator: "/").map(String.init)
        let codings = words.first?.split(separator: ",").map { Array($0.utf8) } ?? []
        var content = Array(text.utf8)
        for coding in ContentCoding.parse(codings) ?? [] {
            content = (try? ContentCodings.encode(content, as: coding)) ?? []
        }
        if words.contains("cut") { content.removeLast(3) }
        if words.contains("broken") { content[0] ^= 0xFF }
        let status = words.contains("206") ? "206 Partial Content" : "200 OK"
        connection.send(
            "HTTP/1.1 \(status)\r\nContent-Length: \(content.count)\r\nETag: \"1\"\r\n"
                + "Content-Encoding: \(words.first ?? "")\r\n\r\n")
        if !request.startLine.hasPrefix("HEAD") { connection.send(content) }
        return true
    }

    private func withSession(
        decodes: Bool = true, _ body: (String, TestServer, SessionManager) async throws -> Void
    ) async throws {
        try await withServer(Self.answer) { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.decodesContent = decodes
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            try await body(server.url, server, session)
            #expect(await runtime.transferCount == 0)
        }
    }

    @Test(arguments: [
        "gzip", "x-gzip", "deflate", "br", "zstd", "gzip,br", "zstd,gzip", "identity,gzip",
    ])
    func `are decoded, and removed from the head`(codings: String) async throws {
        try await withSession { url, server, session in
            let response = try await session.data(for: try HTTPRequest(.get, "\(url)/\(codings)"))
            #expect(response.text == Self.text)
            #expect(response.head.headerFields[.contentEncoding] == nil)
            #expect(response.head.headerFields[.contentLength] == nil)
            #expect(response.head.headerFields[.eTag] == "\"1\"")
            #expect(server.requests.first?.field("accept-encoding") == "gzip, deflate, br, zstd")
            // The number of bytes transferred, not decoded.
            #expect((response.metrics.transactions.first?.receivedBytes ?? 0) < 20_000)
        }
    }

    @Test func `are kept if they cannot be decoded`() async throws {
        try await withSession { url, server, session in
            for (path, method) in [("gzip/206", HTTPRequest.Method.get), ("gzip", .head)] {
                let request = try HTTPRequest(
                    method, "\(url)/\(path)", fields: [.range: "bytes=0-"])
                let response = try await session.data(for: request)
                #expect(response.head.headerFields[.contentEncoding] == "gzip")
                #expect(response.text != Self.text)
            }
            let unknown = try await session.data(for: try HTTPRequest(.get, "\(url)/dcz"))
            #expect(unknown.head.headerFields[.contentEncoding] == "dcz")
            #expect(unknown.text == Self.text)
            // A range refers to the encoded content.
            #expect(
                server.requests.map { $0.field("accept-encoding") }
                    == ["identity", "identity", "gzip, deflate, br, zstd"])
        }
    }

    @Test func `are kept if decoding is disabled`() async throws {
        try await withSession(decodes: false) { url, server, session in
            let request = try HTTPRequest(.get, "\(url)/gzip")
            let response = try await session.data(for: request)
            #expect(response.head.headerFields[.contentEncoding] == "gzip")
            #expect(response.content.count < Self.text.utf8.count)
            var options = RequestOptions()
            options.decodesContent = true
            let accept = try HTTPRequest(.get, "\(url)/br", fields: [.acceptEncoding: "br"])
            #expect(try await session.data(for: accept, options: options).text == Self.text)
            #expect(server.requests.map { $0.field("accept-encoding") } == [nil, "br"])
        }
    }

    @Test(arguments: [
        "gzip/cut", "gzip/broken", "br/cut", "deflate/cut", "zstd/cut", "zstd/broken",
        "gzip,gzip,gzip",
    ])
    func `that are invalid are an error`(path: String) async throws {
        try await withSession { url, _, session in
            let error = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, "\(url)/\(path)"))
            }
            #expect(error?.reason == .contentUndecodable)
            #expect(error?.underlying is ContentCodingError)
        }
    }

    @Test func `count after decoding if the content is collected`() async throws {
        try await withSession { url, _, session in
            var options = RequestOptions()
            options.maximumContentBytes = Self.text.utf8.count - 1
            let request = try HTTPRequest(.get, "\(url)/gzip")
            let error = await failure { [options] in
                _ = try await session.data(for: request, options: options)
            }
            #expect(error?.reason == .contentTooLong)
        }
    }
}
