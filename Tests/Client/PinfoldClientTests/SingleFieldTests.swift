import HTTPTypes
import Testing

@testable import PinfoldClient

@Suite("A field with one value")
struct SingleFieldTests {
    private func response(
        _ name: HTTPField.Name, _ values: [String], status: Int = 200, _ others: HTTPFields = [:]
    ) -> HTTPResponse {
        var response = HTTPResponse(status: .init(code: status), headerFields: others)
        for value in values { response.headerFields.append(HTTPField(name: name, value: value)) }
        return response
    }

    @Test(
        arguments: [
            ([], nil), (["/one"], "/one"), (["/one", "/one"], "/one"), ([""], ""),
            (["a, b", "a, b", "a, b"], "a, b"),
        ] as [([String], String?)])
    func `is parsed once, however often its line arrives`(values: [String], value: String?) throws {
        #expect(try response(.location, values).headerFields.single(.location) == value)
    }

    @Test func `is an error if its lines differ`() throws {
        let fields = response(.location, ["/one", "/two", "/one"]).headerFields
        let error = #expect(throws: ConflictingFieldLinesError.self) {
            try fields.single(.location)
        }
        #expect(error?.values == ["/one", "/two"])
        #expect(error.map { "\($0)" } == "2 different Location fields (/one, /two)")
        // The text for logs is limited.
        let long = (0..<9).map { "\($0)" + String(repeating: "x", count: 5000) }
        let many = response(.location, long).headerFields
        let shown = #expect(throws: ConflictingFieldLinesError.self) { try many.single(.location) }
        #expect(shown.map { "\($0)".count < 500 } ?? false)
    }

    @Test func `names a file once`() throws {
        let request = try HTTPRequest(.get, "http://a.test/from-url.bin")
        let one = "attachment; filename=\"a.txt\""
        for (values, name) in [
            ([one], "a.txt"), ([one, one], "a.txt"), ([one, "attachment"], "from-url.bin"),
        ] {
            let response = response(.contentDisposition, values)
            #expect(DownloadResponse.suggestedName(for: response, request) == name)
        }
    }

    @Test func `names one content type`() {
        let json = "application/json; charset=utf-8"
        let serializer = JSONResponseSerializer()
        for (values, isAccepted) in [
            ([json], true), ([json, json], true), ([json, "text/html"], false),
            ([json, "application/json; charset=latin1"], false),
        ] {
            let read = serializer.serialize(
                response(.contentType, values), content: Array("[1]".utf8))
            #expect((read.error == nil) == isAccepted, "\(values)")
        }
    }

    @Test func `connects parts of a file only if there is one`() {
        let tag = "\"a\""
        #expect(RangeValidator(response(.eTag, [tag, tag])) == .entityTag(tag))
        #expect(RangeValidator(response(.eTag, [tag, "\"b\""])) == nil)
        let validator = RangeValidator.entityTag(tag)
        #expect(!validator.isContradicted(by: response(.eTag, [tag, tag])))
        #expect(validator.isContradicted(by: response(.eTag, [tag, "\"b\""])))
        let past = "Tue, 14 Nov 2023 22:13:20 GMT"
        let later: HTTPFields = [.date: "Tue, 14 Nov 2023 22:24:20 GMT"]
        let dated = response(.lastModified, [past, past], later)
        #expect(RangeValidator(dated, now: 1_700_000_000) == .lastModified(past))
        let twice = response(.lastModified, [past, later[values: .date][0]], later)
        #expect(RangeValidator(twice, now: 1_700_000_000) == nil)
    }

    @Test func `identifies the bytes of a part only if there is one value`() throws {
        let resume = ResumeData(
            url: "http://a.test/f", responseURL: "http://a.test/f", fields: [:],
            validator: .entityTag("\"a\""), receivedBytes: 10, expectedBytes: 20,
            partialFile: "/tmp/f.part", boot: "b")
        let asked = DownloadStep.RangeRequest(offset: 10, resume: resume)
        func step(_ ranges: [String]) -> DownloadStep {
            DownloadStep(
                asked, response(.contentRange, ranges, status: 206), from: "http://a.test/f")
        }
        let range = "bytes 10-19/20"
        #expect(step([range]) == .take(from: 10, count: 10, total: 20))
        #expect(step([range, range]) == .take(from: 10, count: 10, total: 20))
        guard case .refuse(.range(let text)) = step([range, "bytes 0-9/20"]) else {
            Issue.record("taken")
            return
        }
        #expect(text.hasPrefix("2 different Content-Range fields"))
    }
}
