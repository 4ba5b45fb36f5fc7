import HTTPCore
import Testing

/// Lines that old servers send, repaired in place (RFC 9112 §5.1, §5.2, RFC 9110 §8.6).
@Suite("Irregular lines of responses")
struct LineRepairTests {
    /// The field lines as they are passed on; `nil` if the head is refused.
    private func forwarded(
        _ fields: String, isUserAgent: Bool = false
    ) throws -> (lines: String, head: ResponseHead, bytes: [UInt8]) {
        let text = "HTTP/1.1 200 OK\r\n" + fields + "\r\n"
        var bytes = latin1(text + "x : y\r\n z\r\n\r\n")
        let behind = bytes[text.utf8.count...]
        var (parser, head) = (ResponseHeadParser(), ResponseHead())
        let progress = try parser.parse(
            bytes.span, answering: ResponseContext(method: .get, isUserAgent: isUserAgent),
            into: &head)
        #expect(progress == .complete(headBytes: text.utf8.count))
        let outcome = responseOutcome(text, isUserAgent: isUserAgent)
        bytes.withUnsafeMutableBytes { head.repair(in: $0) }
        #expect(outcome == .complete(head.summary(Array(bytes[..<text.utf8.count]))))
        #expect(bytes[text.utf8.count...] == behind, "what follows the head is none of it")
        #expect(bytes.count == text.utf8.count + behind.count)
        return (written { $0.appendForwardedFields(head.fields, of: bytes.span) }, head, bytes)
    }

    @Test(
        arguments: [
            ("A: b\r\n c\r\n", "A: b   c\r\n", ["b   c"]),
            (
                "A: b\r\n\tc\r\n  d\r\nE: f\r\n g\r\n", "A: b  \tc    d\r\nE: f   g\r\n",
                ["b  \tc    d", "f   g"]
            ),
            ("A:\r\n b\r\nC: d\r\n", "A:   b\r\nC: d\r\n", ["b", "d"]),
            ("A: b\r\n \r\nC: d\r\n", "A: b   \r\nC: d\r\n", ["b", "d"]),
            ("A:\r\n \r\n\t\r\n", "A:     \t\r\n", [""]),
            ("A:\r\n \r\n b\r\n \r\n", "A:      b   \r\n", ["b"]),
            ("A : b\r\n", "A:  b\r\n", ["b"]), ("A \t :b\r\n", "A:\t  b\r\n", ["b"]),
            ("A : b\r\n c\r\nD\t:\r\n", "A:  b   c\r\nD: \r\n", ["b   c", ""]),
            ("A : b:c : d\r\n", "A:  b:c : d\r\n", ["b:c : d"]),
        ] as [(String, String, [String])])
    func `folding becomes spaces, and the space before a colon is moved after it`(
        fields: String, lines: String, values: [String]
    ) throws {
        let mended = try forwarded(fields)
        #expect(mended.lines == lines)
        #expect(mended.head.fields.map { mended.bytes.span.text(at: $0.value) } == values)
        #expect(!mended.head.fields.isIrregular)
    }

    @Test(arguments: ["Content-Length", "transfer-encoding", "Connection", "Trailer"])
    func `a line that determines a message's end or the connection is refused if malformed`(
        name: String
    ) {
        let value = name == "Content-Length" ? "1" : "chunked"
        let outcomes: [(String, WireError)] = [
            ("\(name) : \(value)\r\n", .spaceBeforeColon),
            ("A: b\r\n\(name)\t: \(value)\r\n", .spaceBeforeColon),
            ("\(name):\r\n \(value)\r\n", .obsoleteLineFolding),
            ("\(name): \(value)\r\n \r\nA: b\r\n", .obsoleteLineFolding),
            // Some programs read such a line as a separate field.
            ("A: b\r\n \(name): \(value)\r\n", .obsoleteLineFolding),
            ("A: b\r\n c\r\n\t\(name) :\(value)\r\n", .obsoleteLineFolding),
        ]
        for (fields, error) in outcomes {
            #expect(responseOutcome("HTTP/1.1 200 OK\r\n" + fields + "\r\n").error == error)
        }
    }

    @Test func `a user agent, which forwards nothing, reads them all`() throws {
        let fields = "Connection:\r\n close,\r\n X-A\r\nX-A: 1\r\nContent-Length :\r\n 5\r\n"
        let head = try forwarded(fields, isUserAgent: true).head
        #expect(head.framing == .length(5))
        #expect(!head.keepAlive)
        #expect(head.fields.map(\.isNominated) == [false, true, false])
        let chunked = try forwarded("Transfer-Encoding:\r\n\tchunked\r\n", isUserAgent: true)
        #expect(chunked.head.framing == .chunked)
    }

    @Test(
        arguments: [
            ("Content-Length: 5\r\nContent-Length: 5\r\n", "Content-Length: 5"),
            ("Content-Length: 5, 5\r\n", "Content-Length: 5"),
            (
                "Content-Length: 5\r\nA: b\r\nContent-Length: 5 , 5\r\nC: d\r\n",
                "Content-Length: 5|A: b|C: d"
            ),
            ("A: b\r\nContent-Length: 05\r\ncontent-length:5\r\n", "A: b|Content-Length: 05"),
            (
                "Content-Length: 5\r\nA : b\r\n c\r\nContent-Length: 5\r\n",
                "Content-Length: 5|A:  b   c"
            ),
        ] as [(String, String)])
    func `a repeated length is written once`(fields: String, lines: String) throws {
        let mended = try forwarded(fields)
        #expect(mended.head.framing == .length(5))
        #expect(mended.head.fields.count(of: .contentLength) == 1)
        #expect(mended.head.fields.only(.contentLength) != nil)
        let trimmed = mended.lines.split(separator: "\r\n").map { line in
            String(line.reversed().drop { $0 == " " }.reversed())
        }
        #expect(trimmed.joined(separator: "|") == lines)
    }

    @Test func `the limits of fields and of bytes hold for repaired lines`() {
        let text = "HTTP/1.1 200 OK\r\n" + String(repeating: "A : b\r\n c\r\n", count: 4) + "\r\n"
        #expect(responseOutcome(text, limits: HeadLimits(fields: 4)).isComplete)
        #expect(responseOutcome(text, limits: HeadLimits(fields: 3)).error == .tooManyFields)
        let limits = HeadLimits(headBytes: text.utf8.count - 1)
        #expect(responseOutcome(text, limits: limits).error == .headTooLarge)
    }

    @Test(arguments: ["Content-Length: 4", "Transfer-Encoding: chunked"])
    func `to a user agent a 204 that announces content ends with its head and its connection`(
        _ field: String
    ) throws {
        let text = Array("HTTP/1.1 204 No Content\r\n\(field)\r\n\r\n".utf8)
        func parsed(isUserAgent: Bool) throws(WireError) -> ResponseHead {
            var (parser, head) = (ResponseHeadParser(), ResponseHead())
            let progress = try parser.parse(
                text.span, answering: ResponseContext(method: .get, isUserAgent: isUserAgent),
                into: &head)
            #expect(progress == .complete(headBytes: text.count))
            return head
        }
        let head = try parsed(isUserAgent: true)
        #expect(head.framing == .none)
        #expect(!head.keepAlive)
        #expect(throws: WireError.contentForbidden) { try parsed(isUserAgent: false) }
    }
}
