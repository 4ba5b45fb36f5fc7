import HTTPCore
import Testing

@testable import CachePolicy

@Suite("Cache-Status (RFC 9211), and heads made from stored ones")
struct ReplyTests {
    private func line(_ status: CacheStatus) -> String {
        written { status.append(to: &$0) }
    }

    @Test func `a hit has its remaining freshness, negative when stale, and what allowed that`() {
        #expect(
            line(.hit(timeToLive: 57, stale: nil)) == "Cache-Status: pinfold; hit; ttl=57\r\n")
        #expect(
            line(.hit(timeToLive: -12, stale: .maxStale))
                == "Cache-Status: pinfold; hit; ttl=-12; detail=max-stale\r\n")
        #expect(
            line(.hit(timeToLive: 0, stale: .staleIfError))
                == "Cache-Status: pinfold; hit; ttl=0; detail=stale-if-error\r\n")
        #expect(
            line(.hit(timeToLive: .min, stale: nil))
                == "Cache-Status: pinfold; hit; ttl=-9223372036854775808\r\n")
    }

    @Test(
        arguments: [
            (CacheStatus.Forwarded(reason: .uriMiss, isStored: true), "fwd=uri-miss; stored"),
            (.init(reason: .uriMiss, notStored: .responseNoStore), "fwd=uri-miss; detail=no-store"),
            (.init(reason: .varyMiss, isStored: true), "fwd=vary-miss; stored"),
            (.init(reason: .method), "fwd=method"), (.init(reason: .bypass), "fwd=bypass"),
            (
                .init(reason: .stale, status: 304, isStored: true),
                "fwd=stale; fwd-status=304; stored"
            ),
            (
                .init(reason: .uriMiss, isStored: true, isCollapsed: true),
                "fwd=uri-miss; stored; collapsed"
            ),
            (.init(reason: .requestNoCache), "fwd=request; detail=request-no-cache"),
            (
                .init(reason: .requestNoCache, isStored: true, notStored: .method),
                "fwd=request; stored; detail=request-no-cache"
            ),
            (
                .init(reason: .requestNoStore, notStored: .requestNoStore),
                "fwd=request; detail=request-no-store"
            ),
            (
                .init(reason: .responseNoCache, status: 304),
                "fwd=stale; fwd-status=304; detail=no-cache"
            ),
            (.init(reason: .upgrade), "fwd=bypass; detail=upgrade"),
            (
                .init(reason: .uriMiss, notStored: .partialContent),
                "fwd=uri-miss; detail=partial-content"
            ),
        ] as [(CacheStatus.Forwarded, String)])
    func `a forwarded request has its reason, the status, and whether it is stored`(
        status: CacheStatus.Forwarded, expected: String
    ) {
        #expect(line(.forwarded(status)) == "Cache-Status: pinfold; \(expected)\r\n")
    }

    @Test func `only-if-cached without a hit has the reason, and neither hit nor fwd`() {
        #expect(line(.notForwarded(.uriMiss)) == "Cache-Status: pinfold; detail=uri-miss\r\n")
    }

    @Test func `no line is longer than the limit`() {
        var longest = line(.hit(timeToLive: .min, stale: .staleIfError)).utf8.count
        for reason in ForwardReason.allCases {
            for notStored in NotStoredReason.allCases {
                let status = CacheStatus.Forwarded(
                    reason: reason, status: 65_535, isStored: false, isCollapsed: true,
                    notStored: notStored)
                longest = max(longest, line(.forwarded(status)).utf8.count)
            }
        }
        #expect(longest <= CacheStatus.maximumLineBytes)
    }

    private func head(
        _ form: HitForm, of stored: Stored, status: CacheStatus? = nil, capacity: Int = 4096
    ) -> String {
        let hit = CacheHit(form: form, age: 7, timeToLive: 93, stale: nil)
        return written(capacity: capacity) {
            append(hit, stored.metadata, stored.head, status, to: &$0)
        }
    }

    private let end = "Age: 7\r\nCache-Status: pinfold; hit; ttl=93\r\n"

    @Test func `a whole hit is the stored head with Age and Cache-Status after it`() {
        let stored = Stored(["Date: \(date())", "Content-Length: 100", "Cache-Status: up; hit"])
        #expect(head(.full, of: stored) == text(stored.head) + end)
        #expect(head(.headOnly, of: stored) == text(stored.head) + end)
        let status = CacheStatus.forwarded(.init(reason: .stale, status: 304, isStored: true))
        #expect(
            head(.full, of: stored, status: status) == text(stored.head)
                + "Age: 7\r\nCache-Status: pinfold; fwd=stale; fwd-status=304; stored\r\n")
    }

    @Test func `a response that came without Content-Length gets the length of the stored body`() {
        let stored = Stored(["Date: \(date())", "Transfer-Encoding: chunked"])
        #expect(head(.full, of: stored) == text(stored.head) + "Content-Length: 100\r\n" + end)
        let empty = Stored(["Date: \(date())"], status: 204, body: 0)
        #expect(head(.full, of: empty) == text(empty.head) + end)
    }

    @Test func `a 304 carries the fields of RFC 9110 §15.4.5 and none about the body or user`() {
        let stored = Stored([
            "Date: \(date())", "Content-Type: a/b", "Content-Length: 100", "ETag: \"a\"",
            "Last-Modified: \(date(-9))", "Cache-Control: public", "Expires: \(date(9))",
            "Vary: Foo", "Content-Location: /y", "Set-Cookie: a=b", "X: 1",
        ])
        #expect(
            head(.notModified, of: stored)
                == "HTTP/1.1 304 Not Modified\r\nDate: \(date())\r\nETag: \"a\"\r\n"
                + "Cache-Control: public\r\nExpires: \(date(9))\r\nVary: Foo\r\n"
                + "Content-Location: /y\r\n" + end)
    }

    @Test func `a 206 carries all fields, with the range and its length in place of the body's`() {
        let stored = Stored([
            "Date: \(date())", "Content-Type: a/b", "Content-Length: 100", "ETag: \"a\"",
        ])
        #expect(
            head(.partial(first: 5, last: 9, complete: 100), of: stored)
                == "HTTP/1.1 206 Partial Content\r\nDate: \(date())\r\nContent-Type: a/b\r\n"
                + "ETag: \"a\"\r\nContent-Range: bytes 5-9/100\r\nContent-Length: 5\r\n" + end)
    }

    @Test func `a 416 has the complete length and no body`() {
        let stored = Stored(["Date: \(date())", "Content-Length: 100", "ETag: \"a\""])
        #expect(
            head(.rangeNotSatisfiable(complete: 100), of: stored)
                == "HTTP/1.1 416 Range Not Satisfiable\r\nDate: \(date())\r\n"
                + "Content-Range: bytes */100\r\nContent-Length: 0\r\n" + end)
    }

    @Test func `what is added beyond the stored head stays under its limit`() {
        let stored = Stored(["Date: \(date())"])
        let forms: [HitForm] = [
            .full, .notModified, .partial(first: 1 << 62, last: .max - 1, complete: .max),
            .rangeNotSatisfiable(complete: .max),
        ]
        for form in forms {
            let count = head(form, of: stored).utf8.count
            #expect(count <= stored.head.count + HitHead.maximumAddedBytes)
        }
        #expect(head(.full, of: stored, capacity: stored.head.count + 10) == "overflow")
    }
}
