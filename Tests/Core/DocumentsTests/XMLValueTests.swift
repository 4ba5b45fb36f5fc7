import Foundation
import TestSupport
import Testing

@testable import Documents

private func xml(
    _ value: DocumentValue, limits: DocumentLimits = .standard
) throws -> String {
    let bytes = try written(value, XMLValueWriter(limits: limits)) { try $0.finish() }
    let text = String(decoding: bytes, as: UTF8.self)
    let head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    #expect(text.hasPrefix(head) && text.hasSuffix("\n"))
    return String(text.dropFirst(head.count).dropLast())
}

/// A value, and the XML that it becomes: all rows of the page are among them.
private let writingRules: [(DocumentValue, String)] = [
    (["a": .null], "<a/>"), (["a": .boolean(true)], "<a>true</a>"),
    (["a": .number(DocumentNumber(verified: "1.50"))], "<a>1.50</a>"),
    (["a": .data([1, 2])], "<a>AQI=</a>"),
    (["a": .date(1_811_808_000.25)], "<a>2027-06-01T00:00:00.25Z</a>"),
    (["a": ["@b": .number(1), "#text": .null]], "<a b=\"1\"/>"),
    (["a": ["@b": .null]], "<a b=\"\"/>"),
    (
        ["a": ["#text": .string("t"), "b": .null, "@c": .boolean(false)]],
        "<a c=\"false\"><b/>t</a>"
    ),
    (["a": ["b": .array([.number(1), .null, .string("")])]], "<a><b>1</b><b/><b/></a>"),
    (["a": ["b": .array([])]], "<a/>"), (["a": .array([.string("x")])], "<a>x</a>"),
    (["a": .array([.number(1), .number(2)])], "<root><a>1</a><a>2</a></root>"),
    (["a": .array([])], "<root/>"), (["a": .null, "b": .null], "<root><a/><b/></root>"),
    (.dictionary([:]), "<root/>"), (["@a": .number(1)], "<root a=\"1\"/>"),
    (["#text": .string("x")], "<root>x</root>"),
    (.array([.number(1), .null]), "<root><item>1</item><item/></root>"),
    (.array([]), "<root/>"), (.string("<"), "<root>&lt;</root>"), (.null, "<root/>"),
]

@Suite("XML as a value")
struct XMLValueTests {
    @Test(arguments: XmltodictVectors.rows)
    func `is that of Python's xmltodict`(row: (xml: String, json: String, again: String)) throws {
        let value = try XMLValueReader.value(of: Array(row.xml.utf8))
        #expect(dump(value) == row.json)
        // Written again, it is equivalent to what xmltodict writes.
        let ours = try XMLTree(Array(try xml(value).utf8))
        #expect(try ours == XMLTree(Array(row.again.utf8)))
        #expect(try XMLValueReader.value(of: Array(try xml(value).utf8)) == value)
    }

    @Test(arguments: writingRules)
    func `is written by the rules`(value: DocumentValue, text: String) throws {
        #expect(try xml(value) == text)
    }

    @Test(
        arguments: [
            (["a": ["b c": .null]], "the name \"b c\"", "a.b c"),
            (["a": ["": .null]], "the name \"\"", "a."),
            (["a": ["#comment": .null]], "the name \"#comment\"", "a.#comment"),
            (["a": ["@": .null]], "the name \"\"", "a.@"),
            (["a": ["@b": .array([])]], "an array as an attribute", "a.@b"),
            (["a": ["#text": .dictionary([:])]], "a dictionary as a text", "a.#text"),
            (["a": ["b": .array([.null, .array([])])]], "an array in an array", "a.b[1]"),
            (["a": .string("\u{8}")], "the character U+0008", "a"),
            (["a": .date(1e15)], "a date outside the years 0 to 9999", "a"),
        ] as [(DocumentValue, String, String)])
    func `is refused where XML cannot express it, with the path`(
        value: DocumentValue, what: String, path: String
    ) {
        let error = #expect(throws: DocumentError.self) { try xml(value) }
        #expect(error?.reason == .unrepresentable(what))
        #expect(error?.path == path || path.hasSuffix("."))
    }

    @Test func `is bounded`() throws {
        var value: DocumentValue = .null
        for _ in 0..<200 { value = ["a": value] }
        let error = #expect(throws: DocumentError.self) {
            try xml(value, limits: .init(depth: 1000))
        }
        #expect(error?.reason == .tooDeep(maximum: 128))
        let other = #expect(throws: DocumentError.self) {
            try xml(["a": .string("0123456789")], limits: .init(output: 45))
        }
        #expect(other?.reason == .outputTooLarge(maximum: 45))
        let deep = Array((String(repeating: "<a>", count: 3) + "</a></a></a>").utf8)
        let third = #expect(throws: DocumentError.self) {
            try XMLValueReader.value(of: deep, limits: .init(depth: 2))
        }
        #expect(third?.reason == .tooDeep(maximum: 2))
    }

    @Test func `is as on the page for users, row by row`() throws {
        let page = try page().components(separatedBy: "## ")
        let part = try #require(page.first { $0.hasPrefix("XML and JSON") })
        let tables = part.components(separatedBy: "From JSON:")
        let reading = rows(of: tables[0])
        #expect(reading.count == 12)
        for row in reading {
            for (index, xml) in row[0].enumerated() {
                let value = try XMLValueReader.value(of: Array(xml.utf8))
                #expect(dump(value) == row[1][min(index, row[1].count - 1)], "\(xml)")
            }
        }
        let writing = rows(of: tables[1])
        #expect(writing.count == 11)
        for row in writing {
            for (json, xml) in zip(row[0], row[1]) {
                #expect(
                    writingRules.contains { dump($0.0) == json && $0.1 == xml }, "\(json)")
            }
        }
    }

    private func page() throws -> String {
        try Checkout.page("Documents")
    }

    /// What is between backticks in the two columns of a table's rows.
    private func rows(of text: String) -> [[[String]]] {
        text.split(separator: "\n").filter { $0.hasPrefix("| `") }.map { line in
            line.components(separatedBy: " | ").prefix(2).map { cell in
                cell.components(separatedBy: "`").enumerated().filter { $0.offset % 2 == 1 }
                    .map(\.element)
            }
        }
    }
}
