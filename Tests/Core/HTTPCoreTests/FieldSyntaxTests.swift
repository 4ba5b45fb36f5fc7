import HTTPCore
import Testing

@Suite("Field lines (RFC 9112 §5)")
struct FieldSyntaxTests {
    @Test(
        arguments: [
            ("Host: a\r\nX: y\r\n\r\n", nil),
            ("Host:a\r\n\r\n", nil),
            ("Host: \t a \t \r\n\r\n", nil),
            ("Host: a\r\nX:\r\n\r\n", nil),
            ("Host: a\r\nX: \r\n\r\n", nil),
            ("Host: a\r\nX: a\tb  c\r\n\r\n", nil),
            ("Host: a\r\nX: a\tb\t\tc\t\r\nY: \t\t\r\n\r\n", nil),
            ("Host: a\r\nX: caf\u{C3}\u{A9} \u{80}\u{FF}\r\n\r\n", nil),
            ("Host: a\r\nX: a:b: c\r\n\r\n", nil),
            ("Host: a\r\n!#$%&'*+-.^_`|~: y\r\n\r\n", nil),
            ("Host: a\r\nX : y\r\n\r\n", .spaceBeforeColon),
            ("Host: a\r\nX\t: y\r\n\r\n", .spaceBeforeColon),
            ("Host: a\r\nX y: z\r\n\r\n", .badFieldNameByte),
            ("Host : a\r\n\r\n", .spaceBeforeColon),
            ("Host: a\r\n: y\r\n\r\n", .emptyFieldName),
            ("Host: a\r\n:\r\n\r\n", .emptyFieldName),
            ("Host: a\r\nX: y\r\n z\r\n\r\n", .obsoleteLineFolding),
            ("Host: a\r\nX: y\r\n\tz\r\n\r\n", .obsoleteLineFolding),
            ("Host: a\r\nX: y\r\n \r\n\r\n", .obsoleteLineFolding),
            (" Host: a\r\n\r\n", .whitespaceBeforeFirstField),
            ("\tHost: a\r\n\r\n", .whitespaceBeforeFirstField),
            (" \r\nHost: a\r\n\r\n", .whitespaceBeforeFirstField),
            ("Host: a\r\nX\r\n\r\n", .missingColon),
            ("Host: a\r\nX\n\r\n", .bareLineFeed),
            ("Host: a\n\r\n", .bareLineFeed),
            ("Host: a\r\nX: y\nZ: w\r\n\r\n", .bareLineFeed),
            ("Host: a\r\n\n", .bareLineFeed),
            ("Host: a\r\nX: y\r\n\rZ: w\r\n\r\n", .bareCarriageReturn),
            ("Host: a\r\nX: y\rZ: w\r\n\r\n", .bareCarriageReturn),
            ("Host: a\r\nX: y\r\r\n\r\n", .bareCarriageReturn),
            ("Host: a\r\nX: y\r\n\r\r\n", .bareCarriageReturn),
            ("Host: a\r\nX: \u{0}\r\n\r\n", .badFieldValueByte),
            ("Host: a\r\nX: y\u{0}z\r\n\r\n", .badFieldValueByte),
            ("Host: a\r\nX: y\u{1F}\r\n\r\n", .badFieldValueByte),
            ("Host: a\r\nX: y\u{7F}\r\n\r\n", .badFieldValueByte),
            ("Host: a\r\nX: y\u{B}z\r\n\r\n", .badFieldValueByte),
            ("Host: a\r\nX: \u{C}\r\n\r\n", .badFieldValueByte),
            ("Host: a\r\n\u{0}X: y\r\n\r\n", .badFieldNameByte),
            ("Host: a\r\nX\u{0}: y\r\n\r\n", .badFieldNameByte),
            ("Host: a\r\nX\u{E9}: y\r\n\r\n", .badFieldNameByte),
            ("Host: a\r\nX(y): z\r\n\r\n", .badFieldNameByte),
            ("Host: a\r\n\"X\": z\r\n\r\n", .badFieldNameByte),
            ("Host: a\r\nX/y: z\r\n\r\n", .badFieldNameByte),
            ("Host: a\r\nX,Y: z\r\n\r\n", .badFieldNameByte),
            ("Host: a\r\nGET / HTTP/1.1\r\n\r\n", .missingColon),
            ("Host: a\r\nServer X\r\n\r\n", .missingColon),
            ("Host: a\r\nServer \t \r\nX: y\r\n\r\n", .missingColon),
            ("Host: a\r\nX \t : y\r\n\r\n", .spaceBeforeColon),
            ("Host: a\r\nServer X\nY: z\r\n\r\n", .bareLineFeed),
        ] as [(String, WireError?)])
    func `a field line is a token, a colon and a value without control characters`(
        fields: String, error: WireError?
    ) {
        let request = requestOutcome("GET / HTTP/1.1\r\n" + fields)
        #expect(request.error == error)
        #expect(request.isComplete == (error == nil))
        // The same lines are refused from an upstream, unless they can be repaired
        // (LineRepairTests), and in a trailer section.
        let mended = ["X : y", "X\t: y", "X \t : y", "Host : a", "\n z", "\n\tz", "\n \r"]
        let response = responseOutcome("HTTP/1.1 204 No\r\n" + fields)
        let expected = mended.contains { fields.contains($0) } ? nil : error
        #expect(response.error == expected)
        #expect(response.isComplete == (expected == nil))
        let body = bodyOutcome("0\r\n" + fields)
        #expect(body.error == error)
        #expect(body.isComplete == (error == nil))
    }

    @Test func `a value is given without the whitespace around it`() throws {
        let text = "GET / HTTP/1.1\r\nHost:a\r\nX: \t b \tc\t \r\nY:\t \r\nZ:\r\n\r\n"
        let head = try requestHead(text)
        let bytes = latin1(text)
        let values = head.fields.map { bytes.span.text(at: $0.value) }
        #expect(values == ["a", "b \tc", "", ""])
        #expect(head.fields.map { bytes.span.text(at: $0.name) } == ["Host", "X", "Y", "Z"])
        #expect(Int(head.fields.end) == bytes.count - 2)
        #expect(head.length == bytes.count)
    }

    @Test func `every byte is allowed or not alike, wherever it stands in a value`() {
        for byte in UInt8.min...UInt8.max {
            for position in 0...17 {
                var value = [UInt8](repeating: 0x61, count: 18)
                value[position] = byte
                let bytes =
                    latin1("GET / HTTP/1.1\r\nHost: a\r\nX:") + value + latin1("\r\n\r\n")
                let whole = parseRequest(bytes)
                if whole.isComplete != ByteClass.isFieldValue(byte) {
                    Issue.record("\(byte) at \(position): \(whole)")
                }
                if parseRequest(bytes, .byteByByte) != whole {
                    Issue.record("\(byte) at \(position) byte by byte")
                }
            }
        }
    }

    @Test func `every byte is allowed or not alike, wherever it stands in a name`() {
        for byte in UInt8.min...UInt8.max {
            for position in 0...9 {
                var name = [UInt8](repeating: 0x61, count: 10)
                name[position] = byte
                let bytes =
                    latin1("GET / HTTP/1.1\r\nHost: a\r\n") + name + latin1(": b\r\n\r\n")
                // A colon inside ends the name early; at the start there is no name.
                let isFine = ByteClass.isToken(byte) || (byte == 0x3A && position > 0)
                let whole = parseRequest(bytes)
                if whole.isComplete != isFine { Issue.record("\(byte) at \(position): \(whole)") }
                if parseRequest(bytes, .byteByByte) != whole {
                    Issue.record("\(byte) at \(position) byte by byte")
                }
            }
        }
    }
}
