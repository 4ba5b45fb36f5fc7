import HTTPCore
import Testing

@testable import CachePolicy

@Suite("The head as it is stored (RFC 9111 §3.1)")
struct StoredHeadTests {
    private func stored(_ fields: [String], status: Int = 200) -> String {
        text(Stored(fields, status: status).head)
    }

    @Test func `fields keep their order and bytes; the head has no empty line`() {
        let head = stored([
            "Date: \(date())", "X-B:  1 ", "x-a:", "X-B: 2", "Content-Length: 5",
        ])
        #expect(
            head == "HTTP/1.1 200 Reason\r\nDate: \(date())\r\nX-B:  1 \r\nx-a:\r\nX-B: 2\r\n"
                + "Content-Length: 5\r\n")
    }

    @Test(
        arguments: [
            "Connection: close", "Keep-Alive: timeout=5", "Proxy-Connection: keep-alive",
            "TE: trailers", "Trailer: X-Sum", "Transfer-Encoding: chunked",
            "Proxy-Authenticate: Basic", "Proxy-Authentication-Info: a", "Age: 5",
        ])
    func `hop-by-hop fields, Trailer and Age are left out`(field: String) {
        #expect(
            stored(["Date: \(date())", field, "Kept: 1"])
                == "HTTP/1.1 200 Reason\r\nDate: \(date())\r\nKept: 1\r\n")
    }

    @Test func `fields that Connection names are left out`() {
        let head = stored([
            "Date: \(date())", "Connection: a, B", "A: 1", "b: 2", "c: 3",
        ])
        #expect(head == "HTTP/1.1 200 Reason\r\nDate: \(date())\r\nc: 3\r\n")
    }

    @Test(
        arguments: [
            "Set-Cookie: a=b", "Via: 1.1 up", "Cache-Status: up; hit", "Warning: 110",
            "Content-Encoding: gzip", "WWW-Authenticate: Basic", "Clear-Site-Data: \"*\"",
            "Strict-Transport-Security: max-age=5", "Content-Length: 0", "Vary: a",
        ])
    func `end-to-end fields are kept`(field: String) {
        #expect(stored(["Date: \(date())", field]).hasSuffix("\r\n\(field)\r\n"))
    }

    @Test(
        arguments: [
            [], ["Date: now"], ["Date: "], ["Date: \(date(-5))", "Date: \(date(-9))"],
        ])
    func `a Date that is missing, no date, or there twice becomes the time of receipt`(
        fields: [String]
    ) {
        #expect(
            stored(fields + ["A: 1"]) == "HTTP/1.1 200 Reason\r\nA: 1\r\nDate: \(date())\r\n")
        #expect(Stored(fields).metadata.date == start)
    }

    @Test func `the version is HTTP/1.1 whatever upstream's was; an empty reason is kept`() {
        #expect(stored([], status: 404).hasPrefix("HTTP/1.1 404 Reason\r\n"))
        let bare = Array("HTTP/1.0 299 \r\n\r\n".utf8)
        var response = ResponseHead()
        response.status = 299
        response.length = bare.count
        var head: [UInt8] = []
        StoredHead.append(response, in: bare.span, responseTime: start, to: &head)
        #expect(text(head) == "HTTP/1.1 299 \r\nDate: \(date())\r\n")
    }

    @Test func `the head written for a decision is the one that is appended to an array`() {
        for fields in [["A: 1"], ["Date: \(date(-3))"], ["Date: x"], ["Date:  ", "Age: 3"]] {
            let response = Response(fields + ["Cache-Control: max-age=5"])
            guard case .store(let storable) = storing(response) else {
                Issue.record("not stored: \(fields)")
                continue
            }
            let head = written(capacity: response.bytes.count + StoredHead.maximumAddedBytes) {
                StoredHead.write(response.head, in: response.bytes.span, for: storable, to: &$0)
            }
            #expect(head == text(Stored(fields + ["Cache-Control: max-age=5"]).head))
        }
    }

    @Test func `the metadata is the same when it is rebuilt from what the disk keeps`() {
        let stored = Stored([
            "Date: \(date(-4))", "Cache-Control: s-maxage=60, immutable, stale-if-error=9",
            "ETag: W/\"abc\"", "Last-Modified: \(date(-100))", "Vary: a", "Age: 30",
        ])
        var again = StoredMetadata(
            storedHead: stored.head.span, times: stored.metadata.times, hasQuery: false,
            options: PolicyOptions())
        #expect(again?.bodyBytes == nil)
        again?.bodyBytes = 100
        #expect(again == stored.metadata)
        let metadata = stored.metadata
        #expect(metadata.times.initialAge == 30)
        #expect(metadata.freshUntil == start + 30)
        #expect(text(stored.head[metadata.entityTag.indices]) == "W/\"abc\"")
        #expect(text(stored.head[metadata.lastModified.indices]) == date(-100))
        #expect(metadata.lastModifiedTime == start - 100)
        #expect(metadata.staleIfErrorSeconds == 9)
        #expect(metadata.headBytes == stored.head.count)
        #expect(
            metadata.flags == [
                .neverStale, .sharedWithAuthorized, .immutable, .weakEntityTag,
                .strongLastModified, .hasVary,
            ])
    }

    @Test func `Content-Length gives the body's length; one that is no number does not`() {
        func length(_ fields: String) -> (UInt64?, Bool) {
            let head = Array("HTTP/1.1 200 OK\r\n\(fields)".utf8)
            let metadata = StoredMetadata(
                storedHead: head.span,
                times: StoredTimes(requestTime: 0, responseTime: 0, initialAge: 0),
                hasQuery: false, options: PolicyOptions())
            return (metadata?.bodyBytes, metadata?.flags.contains(.hasContentLength) ?? false)
        }
        #expect(length("Content-Length: 5\r\n") == (5, true))
        #expect(length("") == (nil, false))
        #expect(length("Content-Length: 18446744073709551616\r\n") == (nil, true))
    }

    @Test(
        arguments: [
            "", "HTTP/1.1", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\n", "HTTP/1.0 200 OK\r\n",
            "HTTP/1.1 2x0 OK\r\n", "HTTP/1.1 100 OK\r\n", "HTTP/1.1 200 OK\r\nA",
            "HTTP/1.1 200 OK\r\nA: 1", "HTTP/1.1 200 OK\r\nA: 1\n", "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\n: 1\r\n", "HTTP/1.1 200 OK\r\nA : 1\r\n",
            "HTTP/1.1 200 OK\r\nA: 1\r\nB\r\n", "\r\n",
        ])
    func `bytes that are not a stored head are recognized`(head: String) {
        let bytes = Array(head.utf8)
        let metadata = StoredMetadata(
            storedHead: bytes.span,
            times: StoredTimes(requestTime: 0, responseTime: 0, initialAge: 0), hasQuery: false,
            options: PolicyOptions())
        #expect(metadata == nil)
    }

    @Test
    func `every prefix of a head, and every head with one byte changed, is read without harm`() {
        let head = Stored([
            "Cache-Control: max-age=\"5\", no-cache=\"a\"", "ETag: W/\"x\"", "Vary: a, b",
            "Expires: \(date(5))", "Age: 3",
        ]).head
        let times = StoredTimes(requestTime: start, responseTime: start, initialAge: 0)
        for count in 0..<head.count {
            let prefix = Array(head[..<count])
            _ = StoredMetadata(
                storedHead: prefix.span, times: times, hasQuery: false, options: PolicyOptions())
            for byte in [0x00, 0x0A, 0x0D, 0x22, 0x2C, 0x3A, 0x3D, 0xFF] as [UInt8] {
                var changed = head
                changed[count] = byte
                _ = StoredMetadata(
                    storedHead: changed.span, times: times, hasQuery: false,
                    options: PolicyOptions())
            }
        }
    }
}
