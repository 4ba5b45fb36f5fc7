import Documents
import Testing

@Suite("A value of a document, described")
struct DescriptionTests {
    @Test(
        arguments: [
            (.null, "null"), (.boolean(true), "true"), (.number(-15), "-15"),
            (.string("a\"\n"), #""a\"\n""#), (.data([1, 2, 3]), #""AQID""#),
            (.date(0.5), #""1970-01-01T00:00:00.5Z""#), (.date(1e300), "1e+300"),
            (.date(.nan), "null"),
            (
                .dictionary(["b": .array([.null, .string("x")]), "a": .date(-1e18)]),
                #"{"b":[null,"x"],"a":-1e+18}"#
            ),
        ] as [(DocumentValue, String)])
    func `is JSON, which has all of it`(value: DocumentValue, text: String) {
        #expect("\(value)" == text)
    }

    @Test func `is JSON as a dictionary, and its text as a number`() throws {
        #expect("\(["a": .number(1)] as DocumentDictionary)" == #"{"a":1}"#)
        let number = try #require(DocumentNumber("1.50e3"))
        #expect("\(number)" == "1.50e3")
    }

    @Test func `is JSON beyond the limits of documents that are written`() {
        var value = DocumentValue.null
        for _ in 0..<(DocumentLimits.standard.depth + 72) { value = .array([value]) }
        let count = DocumentLimits.standard.depth + 72
        #expect(
            "\(value)" == String(repeating: "[", count: count) + "null"
                + String(repeating: "]", count: count))
    }
}
