import HTTPTypes
import Testing

@testable import PinfoldClient

@Suite("Resume data")
struct ResumeDataTests {
    private static let request = try! HTTPRequest(
        .get, "https://a.test/f?q=1",
        fields: [
            .accept: "text/*", .authorization: "Basic eDp5", .cookie: "a=b", .userAgent: "x",
            .acceptEncoding: "identity",
        ])

    private func data(
        _ fields: HTTPFields, status: Int = 200, of request: HTTPRequest = request
    ) -> ResumeData? {
        ResumeData(
            of: request, HTTPResponse(status: .init(code: status), headerFields: fields),
            from: "https://b.test/f", in: "/tmp/a \"b\"\n.part", boot: "1-2")
    }

    @Test func `is read as it was written`() throws {
        let made = try #require(data([.eTag: "\"x\\y\"", .contentLength: "100"]))
        #expect(try ResumeData(text: made.text) == made)
        var dated = try #require(
            data([
                .lastModified: "Tue, 14 Nov 2023 22:13:20 GMT",
                .date: "Tue, 14 Nov 2023 22:15:20 GMT", .vary: "user-agent, cookie",
            ]))
        (dated.receivedBytes, dated.durableBytes) = (6 << 30, 5 << 30)
        let read = try ResumeData(text: dated.text)
        #expect(read == dated)
        #expect(read.validator == .lastModified("Tue, 14 Nov 2023 22:13:20 GMT"))
        #expect(read.expectedBytes == nil)
        #expect(read.receivedBytes == 6 << 30)
        #expect(read.partialFile == "/tmp/a \"b\"\n.part")
    }

    @Test func `keeps the selecting fields, and no credentials`() throws {
        let made = try #require(data([.eTag: "\"x\"", .vary: "user-agent, cookie"]))
        #expect(made.fields == [.accept: "text/*", .userAgent: "x"])
        #expect(made.matches(Self.request))
        var other = Self.request
        other.headerFields[.cookie] = nil
        #expect(made.matches(other))
        other.headerFields[.userAgent] = "y"
        #expect(!made.matches(other))
        other = Self.request
        other.headerFields[.acceptLanguage] = "de"
        #expect(!made.matches(other))
        #expect(!made.matches(try HTTPRequest(.get, "https://a.test/f?q=2")))
    }

    @Test func `exists only if a server can send the rest`() throws {
        let tag: HTTPFields = [.eTag: "\"x\""]
        #expect(data(tag) != nil)
        #expect(data([:]) == nil)
        #expect(data(tag, status: 203) == nil)
        #expect(data([.eTag: "\"x\"", .contentEncoding: "gzip"]) == nil)
        #expect(data([.eTag: "\"x\"", .contentEncoding: "identity"]) != nil)
        #expect(data([.eTag: "\"x\"", .acceptRanges: "none"]) == nil)
        #expect(data(tag, of: try HTTPRequest(.post, "https://a.test/")) == nil)
        let own = try HTTPRequest(.get, "https://a.test/", fields: [.range: "bytes=0-1"])
        #expect(data(tag, of: own) == nil)
    }

    private static let whole =
        #"{"pinfoldResumeData":1,"method":"GET","url":"http://a/","responseURL":"http://a/","#
        + #""fields":[["accept","*/*"]],"entityTag":"\"1\"","receivedBytes":10,"durableBytes":5,"#
        + #""expectedBytes":20,"partialFile":"/a.part","boot":"b"}"#

    @Test(
        arguments: [
            ("", "", nil),
            ("\"pinfoldResumeData\":1", "\"pinfoldResumeData\":2", .version("2")),
            ("\"pinfoldResumeData\":1", "\"other\":1", malformed),
            ("{\"pinf", "[\"pinf", malformed),
            ("\"GET\"", "\"POST\"", .member("method", expected: "GET")),
            ("\"method\":\"GET\",", "", .member("method", expected: "a string")),
            ("\"url\":\"http://a/\"", "\"url\":\"a/\"", url("url")),
            ("responseURL\":\"http://a/", "responseURL\":\"ftp://a/", url("responseURL")),
            ("[[\"accept\",\"*/*\"]]", "[[\"accept\"]]", fields),
            ("[[\"accept\",\"*/*\"]]", "[[\"a b\",\"*/*\"]]", fields),
            ("[[\"accept\",\"*/*\"]]", "[[\"a\",\"\\n\"]]", fields),
            ("[[\"accept\",\"*/*\"]]", "{}", fields),
            (
                #""\"1\"""#, #""W/\"1\"""#,
                .member("entityTag", expected: "a strong entity tag in quotes")
            ),
            (
                #""entityTag":"\"1\"""#, #""lastModified":"today""#,
                .member("lastModified", expected: "a date as in RFC 9110")
            ),
            (
                #""entityTag":"\"1\"""#, #""a":1"#,
                .member("entityTag", expected: "a string, or one as lastModified")
            ),
            ("receivedBytes\":10", "receivedBytes\":-1", count("receivedBytes")),
            ("receivedBytes\":10", "receivedBytes\":1e3", count("receivedBytes")),
            ("receivedBytes\":10", "receivedBytes\":99999999999999999999", count("receivedBytes")),
            (
                "receivedBytes\":10", "receivedBytes\":21",
                .member("receivedBytes", expected: "no more than expectedBytes")
            ),
            (
                "durableBytes\":5", "durableBytes\":11",
                .member("durableBytes", expected: "no more than receivedBytes")
            ),
            ("expectedBytes\":20", "expectedBytes\":\"20\"", count("expectedBytes")),
            ("\"/a.part\"", "\"a.part\"", .member("partialFile", expected: "an absolute path")),
            ("\"boot\":\"b\"", "\"boot\":null", .member("boot", expected: "a string")),
        ] as [(String, String, ResumeDataError?)])
    func `is rejected if a part of it is invalid`(
        from: String, to: String, expected: ResumeDataError?
    ) {
        let text = Self.whole.replacing(from, with: to, maxReplacements: from.isEmpty ? 0 : 1)
        var found: ResumeDataError?
        do throws(ResumeDataError) { _ = try ResumeData(text: text) } catch { found = error }
        if case .malformed = expected, case .malformed = found { return }
        #expect(found == expected)
    }

    @Test func `is rejected if it is too long`() {
        let text = String(repeating: " ", count: ResumeData.maximumTextBytes + 1)
        #expect(throws: ResumeDataError.tooLong(maximumBytes: ResumeData.maximumTextBytes)) {
            try ResumeData(text: text)
        }
    }

    @Test func `every truncation of it is rejected`() {
        for count in 0..<Self.whole.count {
            #expect(throws: ResumeDataError.self) {
                try ResumeData(text: String(Self.whole.prefix(count)))
            }
        }
    }

    private static let malformed = ResumeDataError.malformed("")
    private static let fields = ResumeDataError.member(
        "fields", expected: "a list of pairs of a field's name and its value")
    private static func count(_ name: String) -> ResumeDataError {
        .member(name, expected: "a number of bytes")
    }
    private static func url(_ name: String) -> ResumeDataError {
        .member(name, expected: "an absolute http or https URL")
    }
}
