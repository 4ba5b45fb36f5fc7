import ContentCoding
import HTTPCore
import Testing

@testable import Transformation

@Suite("Heads of requests whose content was translated")
struct ContentHeadTests {
    private func head(
        _ lines: [String], contentType: String? = "application/json", length: Int? = 5,
        query: String? = nil, queryRemoved: Bool = false
    ) throws -> [String] {
        let bytes = headBytes(lines)
        let new = try withRequest(bytes) { head, span in
            RequestHeads.head(
                replacingContentOf: head, in: span, contentType: contentType, length: length,
                query: query, queryRemoved: queryRemoved)
        }
        let framing = try withRequest(new) { head, _ in head.framing }
        #expect(framing == length.map { .length(UInt64($0)) } ?? .none)
        return try headLines(new)
    }

    @Test func `type and length stand where they were`() throws {
        #expect(
            try head([
                "POST /a HTTP/1.1", "content-type: text/plain", "Host: h", "Content-Length: 99",
                "A:  \u{FF}",
            ]) == [
                "POST /a HTTP/1.1", "content-type: application/json", "Host: h",
                "Content-Length: 5", "A:  \u{FF}",
            ])
    }

    @Test func `a chunked request gets a length, and loses what is no longer true`() throws {
        #expect(
            try head([
                "POST /a HTTP/1.1", "Host: h", "Transfer-Encoding: chunked", "Trailer: X",
                "TE: trailers", "Expect: 100-continue", "Content-Encoding: gzip", "Content-MD5: x",
                "Digest: a", "Digest: b", "content-digest: c", "Repr-Digest: d",
                "Signature: sig=:a:", "Content-Language: de", "Content-Disposition: x",
            ]) == [
                "POST /a HTTP/1.1", "Host: h", "TE: trailers", "Signature: sig=:a:",
                "Content-Language: de", "Content-Disposition: x",
                "Content-Type: application/json", "Content-Length: 5",
            ])
    }

    @Test func `several types become one`() throws {
        #expect(
            try head(["PUT /a HTTP/1.0", "Content-Type: a/b", "X: y", "Content-Type:"])
                == [
                    "PUT /a HTTP/1.0", "Content-Type: application/json", "X: y",
                    "Content-Length: 5",
                ])
    }

    @Test func `without content there is neither type nor length`() throws {
        #expect(
            try head(
                [
                    "GET /a HTTP/1.1", "Host: h", "Content-Type: a/b", "Content-Length: 3",
                    "Connection: close",
                ], contentType: nil, length: nil) == [
                    "GET /a HTTP/1.1", "Host: h", "Connection: close",
                ])
        #expect(
            try head(["POST /a HTTP/1.1", "Host: h"], contentType: nil, length: 0)
                == ["POST /a HTTP/1.1", "Host: h", "Content-Length: 0"])
    }

    @Test(
        arguments: [
            ("/a", "x=1", false, "/a?x=1"), ("/a?", "x=1", false, "/a?x=1"),
            ("/a?b", "x=1", false, "/a?b&x=1"), ("/a?b&", "x=1", false, "/a?b&&x=1"),
            ("/a?b?", "x=1", false, "/a?b?x=1"), ("/a", "", false, "/a"), ("/a?", "", false, "/a?"),
            ("/a?b", nil, true, "/a"), ("/a?", nil, true, "/a"), ("/a", nil, true, "/a"),
            ("/a?b?c", "x=1", true, "/a?x=1"), ("http://h", "x=1", false, "http://h?x=1"),
            ("http://h?b", "x=1", false, "http://h?b&x=1"), ("http://h?b", nil, true, "http://h"),
            ("http://h/a?b", nil, true, "http://h/a"), ("/a", "x=\r\n1 \u{FC}#", false, "/a?x=1"),
        ] as [(String, String?, Bool, String)])
    func `the query is added to the target, or taken out of it`(
        target: String, query: String?, isRemoved: Bool, expected: String
    ) throws {
        let new = try head(
            ["GET \(target) HTTP/1.1", "Host: h"], contentType: nil, length: nil, query: query,
            queryRemoved: isRemoved)
        #expect(new == ["GET \(expected) HTTP/1.1", "Host: h"])
    }

    @Test func `a target that has no query stays`() throws {
        #expect(
            try head(
                ["OPTIONS * HTTP/1.1", "Host: h"], contentType: nil, length: nil, query: "a=b",
                queryRemoved: true) == ["OPTIONS * HTTP/1.1", "Host: h"])
    }
}

@Suite("Fields of heads about content")
struct MessageFactsTests {
    private func request<Value>(
        _ fields: [String], _ body: (borrowing RequestHead, Span<UInt8>) throws -> Value
    ) throws -> Value {
        try withRequest(headBytes(["GET / HTTP/1.1", "Host: h"] + fields), body)
    }

    @Test(
        arguments: [
            ([], false), (["Cache-Control: no-transform"], true),
            (["Cache-Control: max-age=1,NO-Transform"], true),
            (["Cache-Control: a", "Cache-Control: no-transform"], true),
            (["Cache-Control: x=\"no-transform\""], false),
            (["Cache-Control: x=\"a, no-transform\", b"], false),
            (["Cache-Control: x=\"a\\\", no-transform"], false),
            (["Cache-Control: x=\"a\\\\\", no-transform"], true),
            (["Cache-Control: no-transformer"], false), (["Pragma: no-transform"], false),
            (["Cache-Control: no-transform=\"x\""], true), (["Cache-Control:"], false),
            (["Cache-Control: \u{80}, no-transform"], true),
        ])
    func `no-transform is a directive of Cache-Control, on any line and not in quotes`(
        fields: [String], expected: Bool
    ) throws {
        #expect(try request(fields, MessageFacts.noTransform(request:in:)) == expected)
        let response = headBytes(["HTTP/1.1 200 OK"] + fields)
        #expect(try withResponse(response, MessageFacts.noTransform(response:in:)) == expected)
    }

    @Test(
        arguments: [
            ([], .absent), (["Content-Type:"], .absent),
            (["Content-Type: application/json"], .known("application/json")),
            (["Content-Type: Application/JSON;charset=utf-8"], .known("application/json")),
            (["Content-Type: a/b \t; x=\"text/html, c/d\""], .known("a/b")),
            (["Content-Type: a/b;"], .known("a/b")),
            (["Content-Type: application/vnd.a+json"], .known("application/vnd.a+json")),
            (["Content-Type: a/b", "Content-Type: A/B; c=d"], .known("a/b")),
            (["Content-Type: a/b", "Content-Type:"], .known("a/b")),
            (["Content-Type: a/b", "Content-Type: a/c"], .malformed),
            (["Content-Type: a/b, c/d"], .malformed), (["Content-Type: a/b c"], .malformed),
            (["Content-Type: json"], .malformed), (["Content-Type: /b"], .malformed),
            (["Content-Type: a/"], .malformed), (["Content-Type: a/b/c"], .malformed),
            (["Content-Type: a/\u{FC}"], .malformed), (["Content-Type: a/;b"], .malformed),
            (["Content-Type: \"a/b\""], .malformed), (["Content-Type: ;a/b"], .malformed),
            (["Content-Type: a/b;;c=d; "], .known("a/b")), (["Content-Type: a/b;,c/d"], .malformed),
            (["Content-Type: a/b; c=d, e/f"], .malformed),
            (["Content-Type: a/b; c"], .known("a/b")),
            (["Content-Type: a/b; c=\"d"], .malformed),
        ] as [([String], MessageFacts.MediaType)])
    func `the media type is without parameters, in lower case`(
        fields: [String], expected: MessageFacts.MediaType
    ) throws {
        let found = try request(fields) { head, bytes in
            MessageFacts.mediaType(of: head.fields, in: bytes)
        }
        #expect(found == expected)
    }

    @Test(
        arguments: [
            ([], []), (["Content-Encoding: gzip"], [.gzip]), (["Content-Encoding:"], []),
            (["Content-Encoding: identity"], []), (["Content-Encoding: dcz"], nil),
            (["Content-Encoding: gzip", "Content-Encoding: br, x-gzip"], [.gzip, .brotli, .gzip]),
            (["Content-Encoding: zstd"], [.zstd]),
            (["Content-Encoding: gzip", "Content-Encoding: compress"], nil),
        ] as [([String], [ContentCoding]?)])
    func `codings are those of all lines`(fields: [String], expected: [ContentCoding]?) throws {
        let found = try request(fields) { head, bytes in
            MessageFacts.codings(of: head.fields, in: bytes)
        }
        #expect(found == expected)
    }

    @Test func `accepted codings are those of all lines that go on`() throws {
        func accepted(_ fields: [String]) throws -> [Int] {
            let codings = try request(fields, MessageFacts.acceptedCodings)
            return ContentCoding.allCases.map(codings.weight)
        }
        #expect(try accepted([]) == [1000, 1, 1, 1, 1])
        #expect(
            try accepted(["Accept-Encoding: gzip;q=0.5", "accept-encoding: br"])
                == [1, 500, 0, 1000, 0])
        #expect(
            try accepted(["Connection: accept-encoding", "Accept-Encoding: gzip"])
                == [1000, 1, 1, 1, 1])
    }
}
