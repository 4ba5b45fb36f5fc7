import ContentCoding
import HTTPCore
import Testing

@testable import Transformation

@Suite("Heads of responses whose content was looked at")
struct ResponseHeadChangeTests {
    private func head(
        _ lines: [String], to method: Method = .get, changesContent: Bool = true,
        length: Int? = 7, by change: (inout ResponseHeadChange) -> Void = { _ in }
    ) throws -> [String] {
        var value = ResponseHeadChange(changesContent: changesContent, length: length)
        change(&value)
        let new = try withResponse(headBytes(lines), to: method) { head, bytes in
            value.head(of: head, in: bytes)
        }
        let (framing, status) = try withResponse(new, to: method) { head, _ in
            (head.framing, head.status)
        }
        if let length, method != .head, status != 304, status != 204 {
            #expect(framing == .length(UInt64(length)))
        } else {
            #expect(framing == .none)
        }
        return try headLines(new)
    }

    private let mapping = EntityTagMapping(identity: "00c0ffee")

    @Test func `what was only looked at keeps all but the framing`() throws {
        let fields = [
            "ETag: \"a\"", "Content-Type:  text/plain ", "Content-Encoding: gzip",
            "Content-MD5: x", "Accept-Ranges: bytes", "Digest: d", "X: \u{FF}",
        ]
        #expect(
            try head(
                ["HTTP/1.1 200 Fine"] + fields + ["Transfer-Encoding: chunked", "Trailer: Digest"],
                changesContent: false
            ) {
                $0.entityTags = mapping
                $0.contentType = "a/b"
                $0.contentEncoding = .replaced(.identity)
            } == ["HTTP/1.1 200 Fine"] + fields + ["Content-Length: 7"])
        #expect(
            try head(["HTTP/1.1 200 OK", "content-length:  7"], changesContent: false)
                == ["HTTP/1.1 200 OK", "content-length:  7"])
    }

    @Test func `changed content is described anew`() throws {
        #expect(
            try head([
                "HTTP/1.1 200 OK", "content-type: application/json; charset=utf-8",
                "Content-Length: 9", "ETag: W/\"a\"", "Content-Encoding: gzip",
                "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT", "Cache-Control: max-age=5",
                "Content-Language: de", "Vary: Accept", "Date: x",
            ]) {
                $0.contentType = "application/x-plist"
                $0.contentEncoding = .replaced(.identity)
                $0.entityTags = mapping
            } == [
                "HTTP/1.1 200 OK", "content-type: application/x-plist", "Content-Length: 7",
                "ETag: W/\"a-00c0ffee\"", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
                "Cache-Control: max-age=5", "Content-Language: de", "Vary: Accept", "Date: x",
            ])
    }

    @Test(
        arguments: [
            "Content-MD5: x", "Digest: sha-256=x", "content-digest: a=:b:", "Repr-Digest: a=:b:",
            "Signature: s=:a:", "Signature-Input: s=()", "Accept-Ranges: bytes",
            "Transfer-Encoding: chunked", "Trailer: X", "accept-ranges:",
        ])
    func `what describes only the origin's bytes is removed`(line: String) throws {
        #expect(
            try head(["HTTP/1.1 200 OK", "A: 1", line, "B: 2"])
                == ["HTTP/1.1 200 OK", "A: 1", "B: 2", "Content-Length: 7"])
    }

    @Test(
        arguments: [
            (["ETag: \"a\""], .identity, ["ETag: \"a-00c0ffee\""]),
            (["ETag: \"a\""], .gzip, ["ETag: \"a-00c0ffee-gzip\""]),
            (["etag: W/\"a\""], .brotli, ["etag: W/\"a-00c0ffee-br\""]),
            (["ETag: \"a\""], .deflate, []), (["ETag:"], .identity, []),
            (["ETag: \"a\"", "ETag: \"a\""], .identity, []), (["ETag: \"a"], .identity, []),
            (["ETag: \"a,b\u{FF}\""], .identity, ["ETag: \"a,b\u{FF}-00c0ffee\""]), ([], .gzip, []),
        ] as [([String], ContentCoding, [String])])
    func `the entity tag is that of the change and its coding, or is removed`(
        fields: [String], coding: ContentCoding, expected: [String]
    ) throws {
        let new = try head(["HTTP/1.1 200 OK"] + fields) {
            $0.entityTags = mapping
            $0.contentEncoding = .replaced(coding)
        }
        #expect(new.filter { $0.lowercased().hasPrefix("etag") } == expected)
        let without = try head(["HTTP/1.1 200 OK"] + fields) {
            $0.contentEncoding = .replaced(coding)
        }
        #expect(without.filter { $0.lowercased().hasPrefix("etag") } == [])
    }

    @Test func `the coding is replaced where it stands, or added`() throws {
        func coding(_ fields: [String], _ new: ResponseHeadChange.Encoding) throws -> [String] {
            try head(["HTTP/1.1 200 OK"] + fields) { $0.contentEncoding = new }
                .dropFirst().filter { !$0.hasPrefix("Content-Length") }
        }
        let fields = ["content-encoding: br", "A: b", "Content-Encoding: gzip"]
        #expect(try coding(fields, .kept) == fields)
        #expect(try coding(fields, .replaced(.identity)) == ["A: b"])
        #expect(try coding(fields, .replaced(.gzip)) == ["content-encoding: gzip", "A: b"])
        #expect(try coding(["A: b"], .replaced(.brotli)) == ["A: b", "Content-Encoding: br"])
    }

    @Test(
        arguments: [
            ([], ["Vary: Accept-Encoding"]), (["Vary: Accept"], ["Vary: Accept-Encoding"]),
            (["Vary: *"], []), (["vary: a, ACCEPT-encoding ,b"], []), (["Vary: a", "Vary: *"], []),
            (["Vary:"], ["Vary: Accept-Encoding"]),
            (["Vary: X-Accept-Encoding"], ["Vary: Accept-Encoding"]),
        ] as [([String], [String])])
    func `Vary names Accept-Encoding where the coding depends on it`(
        fields: [String], added: [String]
    ) throws {
        let lines = ["HTTP/1.1 200 OK", "Content-Length: 7"] + fields
        for changesContent in [true, false] {
            #expect(
                try head(lines, changesContent: changesContent) {
                    $0.dependsOnAcceptEncoding = true
                } == lines + added)
            #expect(try head(lines, changesContent: changesContent) == lines)
        }
    }

    @Test func `HEAD is answered like GET, without the length`() throws {
        let lines = [
            "HTTP/1.1 200 OK", "Content-Type: a/b", "Content-Length: 9", "ETag: \"a\"",
            "Accept-Ranges: bytes",
        ]
        #expect(
            try head(lines, to: .head, length: nil) {
                $0.contentType = "c/d"
                $0.entityTags = mapping
            } == ["HTTP/1.1 200 OK", "Content-Type: c/d", "ETag: \"a-00c0ffee\""])
        #expect(try head(lines, to: .head, changesContent: false, length: nil) == lines)
    }

    @Test func `304 has the fields of the changed representation`() throws {
        let start = ["HTTP/1.1 304 Not Modified", "Date: x"]
        func changed(_ fields: [String]) throws -> [String] {
            try head(start + fields) {
                $0.contentType = "c/d"
                $0.contentEncoding = .replaced(.gzip)
                $0.entityTags = mapping
                $0.dependsOnAcceptEncoding = true
            }
        }
        #expect(
            try changed(["ETag: \"a\"", "Cache-Control: max-age=1"]) == start + [
                "ETag: \"a-00c0ffee-gzip\"", "Cache-Control: max-age=1", "Vary: Accept-Encoding",
            ])
        #expect(
            try changed([
                "Content-Type: a/b", "Content-Length: 9", "Content-Encoding: br", "Digest: d",
                "Vary: Accept-Encoding", "Accept-Ranges: bytes",
            ]) == start + [
                "Content-Type: c/d", "Content-Encoding: gzip", "Vary: Accept-Encoding",
            ])
        #expect(try changed([]) == start + ["Vary: Accept-Encoding"])
    }

    @Test func `204 has no length`() throws {
        #expect(
            try head(["HTTP/1.1 204 No Content", "A: b"], length: 0)
                == ["HTTP/1.1 204 No Content", "A: b"])
    }

    @Test func `a response without fields gets those that it needs`() throws {
        #expect(
            try head(["HTTP/1.0 200"]) {
                $0.contentType = "a/b"
                $0.contentEncoding = .replaced(.gzip)
                $0.dependsOnAcceptEncoding = true
            } == [
                "HTTP/1.0 200", "Content-Length: 7", "Content-Type: a/b",
                "Content-Encoding: gzip", "Vary: Accept-Encoding",
            ])
    }
}
