import Foundation
import Testing

@testable import Documents

@Suite("The bounds of documents")
struct BoundsTests {
    @Test func `names of a form are made one at a time, and bounded`() {
        var members = DocumentDictionary()
        for number in 0..<20_000 { members["\(number)"] = .number(1) }
        let value: DocumentValue = [
            String(repeating: "k", count: 1 << 20): .dictionary(members)
        ]
        var limits = DocumentLimits.standard
        limits.output = 8 << 20
        let error = #expect(throws: DocumentError.self) {
            try QueryString.encode(value, limits: limits)
        }
        #expect(error?.reason == .outputTooLarge(maximum: limits.output))
    }

    @Test func `an element with many attributes is written in linear time, no name twice`() throws {
        var writer = XMLWriter()
        try writer.start("a")
        for number in 0..<200_000 { try writer.attribute("n\(number)", "") }
        #expect(throws: DocumentError(.xml, .duplicateKey("n77"))) {
            try writer.attribute("n77", "")
        }
        try writer.start("b")
        try writer.attribute("n77", "")
    }

    /// Apple's reader refuses references that cannot distinguish more objects than there are.
    @Test(arguments: [
        (253, 1), (254, 1), (255, 2), (256, 2), (65_533, 2), (65_534, 2), (65_535, 4),
    ])
    func `a binary property list has room for one reference more`(count: Int, width: UInt8) throws {
        let value = DocumentValue.array((0..<count).map { .number(DocumentNumber($0)) })
        var writer = BinaryPropertyListWriter()
        try value.replay(into: &writer)
        let bytes = try writer.finish()
        #expect(bytes[bytes.count - 25] == width)
        #expect(try PropertyListReader.value(of: bytes) == value)
        let list = try PropertyListSerialization.propertyList(from: Data(bytes), format: nil)
        #expect((list as? [Int])?.count == count)
    }

    @Test func `limits may be as large as numbers are`() throws {
        let limits = DocumentLimits(
            bytes: .max, depth: .max, values: .max, digits: .max, output: .max)
        var writer = JSONWriter(limits: limits)
        try DocumentValue.array([.number(1)]).replay(into: &writer)
        #expect(try writer.finish() == Array("[1]".utf8))
        let value = try JSONDocument.value(of: Array("[1]".utf8), limits: limits)
        #expect(value == .array([.number(1)]))
    }

    @Test func `trees are no deeper than can be freed, whatever the limits`() {
        let limits = DocumentLimits(depth: 1_000_000)
        let depth = 100_000
        let text = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        let error = #expect(throws: DocumentError.self) {
            try JSONDocument.value(of: Array(text.utf8), limits: limits)
        }
        #expect(error?.reason == .tooDeep(maximum: DocumentBuilder.maximumDepth))
    }

    @Test func `an error's text has no control characters of the document's`() {
        let error = DocumentError(
            .json, .duplicateKey("a\nb\u{1B}[2J"), path: "x\u{9B}y")
        #expect(
            !error.description.unicodeScalars.contains { $0.properties.generalCategory == .control }
        )
    }

    @Test(arguments: ["filename*0=x", "filename*=x", "name*=x", "filename*0*=x"])
    func `a part with split parameters is refused`(parameter: String) {
        let head = "Content-Disposition: form-data; name=f; \(parameter)"
        let body = Array("--b\r\n\(head)\r\n\r\nx\r\n--b--\r\n".utf8)
        #expect(throws: DocumentError.self) {
            try MultipartDocument.parts(of: body, boundary: "b")
        }
    }
}
