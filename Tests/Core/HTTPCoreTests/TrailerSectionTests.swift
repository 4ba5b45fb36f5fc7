import HTTPCore
import Testing

@Suite("A trailer section that arrives whole")
struct TrailerSectionTests {
    @Test func `is what the same lines are at the end of a chunked body`() throws {
        let lines = Array("Checksum: 1\r\nX-Other:  two \r\nHost: a\r\n\r\n".utf8)
        let section = try TrailerSection(parsing: lines.span, limits: ChunkedLimits())
        var decoder = ChunkedDecoder()
        let body = Array("0\r\n".utf8) + lines
        #expect(try decoder.decode(body.span) == .end(consumed: body.count))
        let expected = try #require(decoder.trailerSection)
        #expect(section.bytes == expected.bytes)
        #expect(section.fields.count == expected.fields.count)
        for index in 0..<section.fields.count {
            #expect(section.fields[index] == expected.fields[index])
        }
    }

    @Test(arguments: [
        ("A: 1\r\n", WireError.truncatedBody), ("", .truncatedBody),
        ("\r\n\r\n", .truncatedBody), ("A: 1\r\n\r\nB: 2\r\n\r\n", .truncatedBody),
        ("A : 1\r\n\r\n", .spaceBeforeColon), ("A: \u{1}\r\n\r\n", .badFieldValueByte),
        ("A\r\n\r\n", .missingColon), ("A: 1\n\r\n", .bareLineFeed),
    ])
    func `is refused if it is malformed or not all of what arrived`(
        text: String, fault: WireError
    ) {
        let bytes = Array(text.utf8)
        #expect(throws: fault) {
            _ = try TrailerSection(parsing: bytes.span, limits: ChunkedLimits())
        }
    }

    @Test func `has the limits of a chunked body`() throws {
        let limits = ChunkedLimits(trailerBytes: 20, trailerFields: 2)
        let largest = Array("A: 1234567890123\r\n\r\n".utf8)
        #expect(largest.count == 20)
        _ = try TrailerSection(parsing: largest.span, limits: limits)
        let larger = Array("A: 12345678901234\r\n\r\n".utf8)
        #expect(throws: WireError.trailersTooLarge) {
            _ = try TrailerSection(parsing: larger.span, limits: limits)
        }
        let more = Array("A:1\r\nB:2\r\nC:3\r\n\r\n".utf8)
        #expect(throws: WireError.tooManyTrailers) {
            _ = try TrailerSection(parsing: more.span, limits: limits)
        }
    }
}
