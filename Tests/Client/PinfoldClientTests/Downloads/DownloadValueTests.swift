import HTTPTypes
import Testing

@testable import PinfoldClient

@Suite("The values of downloads")
struct DownloadValueTests {
    @Test(
        arguments: [
            ("bytes 0-0/1", .part(first: 0, last: 0, total: 1)),
            ("bytes 5-9/*", .part(first: 5, last: 9, total: nil)),
            ("BYTES 0-4294967296/5000000000", .part(first: 0, last: 1 << 32, total: 5_000_000_000)),
            ("bytes */10", .unsatisfied(total: 10)), ("bytes */*", nil), ("bytes 5-4/10", nil),
            ("bytes 0-10/10", nil), ("bytes=0-1/2", nil), ("bytes 0-1", nil), ("bytes -1/2", nil),
            ("bytes 0-1/2, bytes 2-3/4", nil), ("items 0-1/2", nil), ("bytes 0-+1/2", nil),
            ("bytes 0-1/99999999999999999999", nil), ("", nil),
            ("bytes 0-9223372036854775807/*", nil),
            ("bytes 0-9223372036854775806/*", .part(first: 0, last: .max - 1, total: nil)),
        ] as [(String, ContentRange?)])
    func `a Content-Range is one range of bytes in order`(text: String, range: ContentRange?) {
        #expect(ContentRange(text) == range)
    }

    @Test(
        arguments: [
            (["ETag": "\"a\""], .entityTag("\"a\"")), (["ETag": "W/\"a\""], nil),
            (["ETag": "a"], nil), (["ETag": "\""], nil), (["ETag": "\"a\"b\""], nil),
            // With a weak tag, the bytes may differ, and the date does not disprove that.
            (["ETag": "W/\"a\"", "Last-Modified": past, "Date": "\(later)"], nil),
            (["Last-Modified": past, "Date": later], .lastModified(past)),
            (["Last-Modified": past, "Date": soon], nil), (["Last-Modified": past], nil),
            (["Last-Modified": "yesterday", "Date": later], nil), ([:], nil),
        ] as [([String: String], RangeValidator?)])
    func `only a strong validator holds parts together`(
        fields: [String: String], validator: RangeValidator?
    ) {
        var response = HTTPResponse(status: .ok)
        for (name, value) in fields { response.headerFields[HTTPField.Name(name)!] = value }
        #expect(RangeValidator(response, now: 1_700_000_000) == validator)
    }

    @Test func `a date that a cache may have written proves nothing`() {
        var response = HTTPResponse(status: .ok)
        response.headerFields = [.lastModified: Self.past, .date: Self.later]
        #expect(RangeValidator(response, isStored: true, now: 1_700_000_000) == nil)
        response.headerFields[.eTag] = "\"a\""
        #expect(
            RangeValidator(response, isStored: true, now: 1_700_000_000) == .entityTag("\"a\""))
    }

    private static let past = "Tue, 14 Nov 2023 22:13:20 GMT"
    private static let soon = "Tue, 14 Nov 2023 22:14:19 GMT"
    private static let later = "Tue, 14 Nov 2023 22:14:20 GMT"

    // MARK: Steps

    private static let url = "http://a.test/f"

    private static func resume(expected: Int64? = 20) -> ResumeData {
        ResumeData(
            url: url, responseURL: url + "?signed=1", fields: [:], validator: .entityTag("\"a\""),
            receivedBytes: 10, expectedBytes: expected, partialFile: "/tmp/f.part", boot: "b")
    }

    private static func part(
        _ range: String?, _ others: HTTPFields = [:], status: Int = 206
    ) -> HTTPResponse {
        var response = HTTPResponse(status: .init(code: status), headerFields: others)
        if let range { response.headerFields[.contentRange] = range }
        return response
    }

    private func step(
        _ response: HTTPResponse, offset: Int64? = 10, expected: Int64? = 20,
        from place: String = url, _ change: (inout DownloadStep.RangeRequest) -> Void = { _ in }
    ) -> DownloadStep {
        var asked = DownloadStep.RangeRequest(
            offset: offset, resume: offset == nil ? nil : Self.resume(expected: expected))
        change(&asked)
        return DownloadStep(asked, response, from: place)
    }

    @Test func `the requested part is accepted`() {
        #expect(
            step(Self.part("bytes 10-19/20")) == .take(from: 10, count: 10, total: 20))
        // Less than requested is accepted, too; the rest is requested then.
        #expect(step(Self.part("bytes 10-14/20")) == .take(from: 10, count: 5, total: 20))
        #expect(step(Self.part("bytes 10-14/*")) == .take(from: 10, count: 5, total: 20))
        #expect(
            step(Self.part("bytes 10-14/*"), expected: nil)
                == .take(from: 10, count: 5, total: nil))
        #expect(
            step(Self.part("bytes 10-19/20", [.eTag: "\"a\"", .contentLength: "10"]))
                == .take(from: 10, count: 10, total: 20))
    }

    @Test(
        arguments: [
            part(nil), part("bytes 9-19/20"), part("bytes 11-19/20"), part("bytes 10-20/21"),
            part("bytes 10-19/20, bytes 0-1/20"), part("bytes */20"), part("nonsense"),
            part("bytes 10-19/20", [.contentLength: "11"]),
            part("bytes 10-19/20", [.eTag: "\"b\""]), part("bytes 10-19/20", [.eTag: "W/\"a\""]),
            part("bytes 10-19/20", [.contentEncoding: "gzip"]),
            part(nil, [.contentType: "multipart/byteranges; boundary=x"]),
            part("bytes 10-19/20", [.contentType: "Multipart/Byteranges; boundary=x"]),
        ])
    func `another part is refused`(response: HTTPResponse) {
        guard case .refuse(.range) = step(response) else {
            Issue.record("\(step(response))")
            return
        }
    }

    @Test func `a part is refused if the whole was requested`() {
        guard case .refuse(.range) = step(Self.part("bytes 0-9/20"), offset: nil) else {
            Issue.record("it was taken")
            return
        }
        // A range in the caller's own request is the caller's responsibility.
        #expect(
            step(Self.part("bytes 0-9/20", [.contentLength: "10"]), offset: nil) {
                $0.hasOwnRange = true
            } == .take(from: 0, count: 10, total: 10))
    }

    @Test func `a part from another URL restarts, but queries may differ`() {
        let response = Self.part("bytes 10-19/20")
        #expect(step(response, from: "http://b.test/f") == .restart)
        #expect(
            step(response, from: Self.url + "?signed=2") == .take(from: 10, count: 10, total: 20))
    }

    @Test func `an unsatisfiable range restarts, or has the last byte confirmed`() {
        #expect(step(Self.part("bytes */5", status: 416)) == .restart)
        #expect(step(Self.part(nil, status: 416)) == .restart)
        #expect(step(Self.part("bytes */10", status: 416)) == .stepBack)
        #expect(
            step(Self.part("bytes */10", status: 416)) { $0.hasSteppedBack = true } == .restart)
        #expect(step(Self.part(nil, status: 416), offset: nil) == .refuse(.status(416)))
    }

    @Test func `the whole instead of a part is written from its beginning`() {
        #expect(
            step(Self.part(nil, [.contentLength: "7"], status: 200))
                == .take(from: 0, count: 7, total: 7))
        #expect(step(Self.part(nil, status: 200)) == .take(from: 0, count: nil, total: nil))
        #expect(step(Self.part(nil, status: 404)) == .refuse(.status(404)))
        #expect(
            step(Self.part(nil, status: 404)) { $0.acceptedStatusCodes = 100...599 }
                == .take(from: 0, count: nil, total: nil))
    }

    // MARK: Names

    @Test(
        arguments: [
            (nil, "/a/b.iso?x=/y", "b.iso"), (nil, "/", "download"), (nil, "/a%20b", "a b"),
            (nil, "/..", "download"), (nil, "/.hidden", "hidden"), (nil, "/a%2Fb", "b"),
            ("attachment; filename=x.txt", "/a", "x.txt"),
            ("attachment; filename=\"x; \\\"y\\\".txt\"", "/a", "x; \"y\".txt"),
            ("attachment; filename=\"../../etc/passwd\"", "/a", "passwd"),
            ("attachment; filename=\"..\\\\win.ini\"", "/a", "win.ini"),
            ("attachment; filename=a.txt; filename*=UTF-8''%e2%82%ac.txt", "/a", "€.txt"),
            ("attachment; filename*=utf-8'en'%2e%2e", "/a", "a"), ("inline", "/a", "a"),
            ("attachment; filename=\"\"", "/a", "a"), (nil, "/a%+1b", "a%+1b"),
            (nil, "/a%-0b", "a%-0b"), (nil, "/100%", "100%"),
            ("attachment; filename=a.txt; filename*=UTF-8''%+1.txt", "/a", "a.txt"),
            ("attachment; filename=a.txt; filename*=UTF-8''50%.txt", "/a", "a.txt"),
            ("attachment; \tfilename\t = \ta.txt\t", "/b", "a.txt"),
        ] as [(String?, String, String)])
    func `a suggested name never leads to another folder`(
        disposition: String?, path: String, name: String
    ) {
        #expect(SuggestedName.name(disposition: disposition, path: path) == name)
    }

    @Test func `a suggested name may be in ISO 8859-1`() throws {
        let start = "attachment; filename=\"caf"
        for (bytes, name) in [
            ([0xE9], "café"), (Array("é".utf8), "café"), ([0x9B, 0xE9], "café"),
        ] as [([UInt8], String)] {
            var response = HTTPResponse(status: .ok)
            response.headerFields.append(
                HTTPField(
                    name: .contentDisposition,
                    value: Array(start.utf8) + bytes + Array(".txt\"".utf8)))
            let request = try HTTPRequest(.get, "http://a.test/")
            #expect(
                DownloadResponse.suggestedName(for: response, request) == "\(name).txt")
        }
    }

    @Test func `a suggested name leaves space for suffixes`() {
        let name = SuggestedName.name(
            disposition: nil, path: "/" + String(repeating: "ü", count: 300))
        #expect(name.utf8.count <= SuggestedName.maximumBytes)
        #expect(name.allSatisfy { $0 == "ü" })
    }
}
