import HTTPCore
import Testing

@testable import CachePolicy

@Suite("Asking for a part of what is stored in parts, by RFC 9111 §3.4")
struct PartRequestTests {
    private func part(
        _ fields: [String] = ["ETag: \"a\""], first: UInt64 = 40, last: UInt64 = 59,
        of body: UInt64? = 100
    ) -> PartRequest? {
        let stored = Stored(fields, body: body)
        return PartRequest(
            first: first, last: last, of: stored.metadata, storedHead: stored.head.span)
    }

    private func text(_ part: PartRequest) -> String {
        written(capacity: part.maximumFieldBytes) { part.appendFields(to: &$0) }
    }

    @Test func `needs a strong entity tag, and positions that there are`() {
        #expect(part() != nil)
        #expect(part([]) == nil)
        #expect(part(["ETag: W/\"a\""]) == nil)
        #expect(part(["Last-Modified: \(date(-1000))"]) == nil)
        #expect(part(of: nil) == nil)
        #expect(part(last: 99) != nil && part(last: 100) == nil)
        #expect(part(first: 60) == nil)
    }

    @Test func `asks for the part unless the representation has changed`() throws {
        #expect(text(try #require(part())) == "Range: bytes=40-59\r\nIf-Range: \"a\"\r\n")
        #expect(text(try #require(part(last: 99))) == "Range: bytes=40-\r\nIf-Range: \"a\"\r\n")
        #expect(text(PartRequest(first: 0, last: 9)) == "Range: bytes=0-9\r\n")
        let most = PartRequest(first: .max - 1, last: .max)
        #expect(text(most).hasSuffix("-18446744073709551615\r\n"))
    }

    @Test(
        arguments: [
            (206, "\"a\"", "bytes 40-59/100", .part), (206, "\"a\"", "bytes 40-79/100", .part),
            (206, "\"a\"", "bytes 40-58/100", .unusable),
            (206, "\"a\"", "bytes 39-59/100", .unusable),
            (206, "\"a\"", "bytes 40-59/101", .changed), (206, "\"a\"", "", .unusable),
            (206, "\"b\"", "bytes 40-59/100", .changed),
            (206, "W/\"a\"", "bytes 40-59/100", .changed),
            (206, nil, "bytes 40-59/100", .changed), (200, "\"a\"", nil, .whole),
            (200, "\"b\"", nil, .changed), (200, nil, nil, .changed), (416, nil, nil, .changed),
            (404, nil, nil, .changed), (410, nil, nil, .changed), (302, nil, nil, .changed),
            (304, "\"a\"", nil, .unusable), (401, nil, nil, .unusable),
            (429, nil, nil, .unusable), (500, nil, nil, .unusable), (503, nil, nil, .unusable),
        ] as [(Int, String?, String?, PartRequest.Answer)])
    func `an answer is the part, the whole, or news`(
        status: Int, tag: String?, range: String?, expected: PartRequest.Answer
    ) throws {
        let fields =
            (tag.map { ["ETag: \($0)"] } ?? []) + (range.map { ["Content-Range: \($0)"] } ?? [])
        let response = Response(fields, status: status)
        let made = try #require(part())
        #expect(made.answer(response.head, in: response.bytes.span) == expected)
    }

    @Test func `a whole of another length is another`() throws {
        let made = try #require(part())
        for (length, expected) in [(100, PartRequest.Answer.whole), (101, .changed)] {
            let response = Response(["ETag: \"a\"", "Content-Length: \(length)"])
            #expect(made.answer(response.head, in: response.bytes.span) == expected)
        }
    }

    @Test func `the stored head of a part is that of the whole`() throws {
        let response = Response(
            [
                "Content-Type: a/b", "Content-Range: bytes 2-3/10", "Content-Length: 2",
                "ETag: \"a\"", "Date: \(date())", "Connection: X", "X: 1",
            ], status: 206)
        guard case .store(let storable) = storing(response) else {
            Issue.record("it is not stored")
            return
        }
        var head = StoredHead.bytes(of: response.head, in: response.bytes.span, for: storable)
        StoredHead.append(completeLength: 10, to: &head)
        #expect(
            String(decoding: head, as: UTF8.self)
                == "PART/1.1 200 OK\r\nContent-Type: a/b\r\nETag: \"a\"\r\nDate: \(date())\r\n"
                + "Content-Length: 10\r\n")
        let times = StoredTimes(requestTime: 0, responseTime: 0, initialAge: 0)
        let read = StoredMetadata(
            storedHead: head.span, times: times, hasQuery: false, options: PolicyOptions())
        let metadata = try #require(read)
        #expect(metadata.flags.contains(.parts) && metadata.bodyBytes == 10)
        #expect(metadata.status == 200 && metadata.hasStrongEntityTag)
    }
}
