import Testing

@testable import Documents

/// What a reader returned, and whether a part was left open.
struct MultipartLog: MultipartSink, Equatable {
    var parts: [MultipartPart] = []
    var contents: [[UInt8]] = []
    var isOpen = false

    mutating func beginPart(_ part: MultipartPart) {
        #expect(!isOpen)
        isOpen = true
        parts.append(part)
        contents.append([])
    }

    mutating func content(_ bytes: UnsafeRawBufferPointer) {
        #expect(isOpen && !bytes.isEmpty)
        contents[contents.count - 1] += Array(bytes)
    }

    mutating func endPart() {
        #expect(isOpen)
        isOpen = false
    }
}

enum MultipartRun {
    /// The result of reading a body that arrives in pieces of one size.
    static func log(
        _ body: [UInt8], pieces: Int, boundary: String = "b",
        limits: MultipartLimits = .standard
    ) -> (log: MultipartLog, error: DocumentError?) {
        var log = MultipartLog()
        do throws(DocumentError) {
            var reader = try MultipartReader(boundary: boundary, limits: limits)
            var rest = body[...]
            while !rest.isEmpty {
                let piece = Array(rest.prefix(pieces))
                try piece.withBytes { bytes throws(DocumentError) in
                    try reader.feed(bytes, into: &log)
                }
                rest = rest.dropFirst(pieces)
            }
            try reader.finish()
            return (log, nil)
        } catch {
            return (log, error)
        }
    }

    /// The body of one field, `a`, with this content.
    static func field(_ content: [UInt8]) -> [UInt8] {
        Array("--b\r\nContent-Disposition: form-data; name=a\r\n\r\n".utf8) + content
            + Array("\r\n--b--\r\n".utf8)
    }

    /// The same, with other lines of its header.
    static func part(_ header: String) -> [UInt8] {
        Array("--b\r\n\(header)\r\n\r\nx\r\n--b--\r\n".utf8)
    }
}

@Suite("Multipart bodies that are read")
struct MultipartReaderTests {
    private static let start = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n"
    private static let second = "\r\n--b\r\nContent-Disposition: form-data; name=\"c\"\r\n\r\n"

    /// Bodies, and the contents of their parts.
    private static let bodies: [(body: String, contents: [String])] = [
        (start + "x\r\n--b--\r\n", ["x"]), (start + "x\r\n--b--", ["x"]),
        (start + "\r\n--b--", [""]),
        (start + "--b--", [""]), (start + "x" + second + "y\r\n--b--\r\n", ["x", "y"]),
        (start + second + "\r\n--b--\r\n", ["", ""]),
        // Before the first delimiter and after the last.
        ("preamble\r\n" + start + "x\r\n--b--\r\n", ["x"]), ("\r\n" + start + "x\r\n--b--", ["x"]),
        ("--\r\n-b\r\n" + start + "x\r\n--b--\r\nepilogue\r\n--b\r\n--b--", ["x"]),
        (start + "x\r\n--b-- \t\r\n", ["x"]), ("--b--", []), ("--b--\r\n", []),
        ("x--b\r\n\r\n--b--", []),
        // Spaces after the boundary.
        ("--b \t \r\n" + start.dropFirst(4) + "x\r\n--b-- ", ["x"]),
        // What only resembles a delimiter.
        (start + "x--b\r\n\r\n--b--", ["x--b\r\n"]), (start + "\r\n--\r\n--b--", ["\r\n--"]),
        (start + "\r\n-\r\n--b--", ["\r\n-"]), (start + "\r\r\n--b--", ["\r"]),
        (start + "\r\n\r\n--b--", ["\r\n"]), (start + "\n\r\n--b--", ["\n"]),
        (start + "\r\n\n--\r\n--b--", ["\r\n\n--"]), (start + "\r\n -b\r\n--b--", ["\r\n -b"]),
        (start + "\r\n--B\r\n--b--", ["\r\n--B"]), (start + "\r\r\r\n-\r\n--b--", ["\r\r\r\n-"]),
        (start + " --b\r\n--b--", [" --b"]), (start + "-b--b\r\n--b--", ["-b--b"]),
        (start + "\r\n\r\n--\n--\r\r\n--b--", ["\r\n\r\n--\n--\r"]),
    ]

    @Test(arguments: bodies.indices, [1, 2, 3, 7, 1 << 20])
    func `a body has the same parts in pieces of any size`(index: Int, pieces: Int) throws {
        let (body, contents) = Self.bodies[index]
        let (log, error) = MultipartRun.log(Array(body.utf8), pieces: pieces)
        #expect(error == nil)
        #expect(log.contents == contents.map { Array($0.utf8) })
        #expect(!log.isOpen)
        #expect(log.parts.map(\.name) == Array(["a", "c"].prefix(contents.count)))
        for (part, content) in zip(log.parts, log.contents) {
            #expect(Array(body.utf8).dropFirst(part.offset).starts(with: content))
        }
    }

    /// A body, the reason, and the byte at which it is refused.
    private static let refused: [(body: String, reason: String, offset: Int)] = {
        let ends = "the body ends before its last delimiter"
        let goesOn = "a line that begins with the boundary but continues"
        let alone = "a boundary after an LF without CR"
        let count = start.utf8.count
        return [
            ("", ends, 0), ("x", ends, 1), ("--b", ends, 3), ("--b-", ends, 4),
            ("--b\r\n", ends, 5),
            ("--b\r\nContent-Dis", ends, 16), (start, ends, count), (start + "x", ends, count + 1),
            (start + "x\r\n--b", ends, count + 6), (start + "x\r\n--b\r\n", ends, count + 8),
            (start + "x\r\n--b-", ends, count + 7), (start + "x\r\n--b--\r", ends, count + 9),
            (start + "x\r\n", ends, count + 3), ("x--b--", ends, 6),
            (start + "x\r\n--bc\r\n--b--", goesOn, count + 6), ("--bc", goesOn, 3),
            (start + "x\r\n--b-x", goesOn, count + 7), (start + "x\r\n--b--x", goesOn, count + 8),
            (start + "x\r\n--b x", goesOn, count + 7), (start + "x\r\n--b\rx", goesOn, count + 7),
            (start + "x\r\n--b---", goesOn, count + 8), (start + "--bb", goesOn, count + 3),
            (start + "x\n--b--\r\n", alone, count + 5), (start + "x\n--b\r\n", alone, count + 5),
            ("x\n--b--\r\n", alone, 5), ("\n--b\n", alone, 4),
            (start + "x\r\r\n\n--b", alone, count + 8),
            ("--b\n", "an LF without CR at the end of a delimiter", 3),
            (start + "\r\n--b--\n", "an LF without CR at the end of a delimiter", count + 7),
            ("--b \n", "an LF without CR at the end of a delimiter", 4),
            ("--b\r\nA: b\nC: d\r\n\r\n", "a lone CR or LF in a part's header", 9),
            ("--b\r\nA: b\rC: d\r\n\r\n", "a lone CR or LF in a part's header", 10),
            ("--b\r\n\n", "a lone CR or LF in a part's header", 5),
            ("--b\r\n\r\r\n", "a lone CR or LF in a part's header", 6),
        ]
    }()

    @Test(arguments: refused.indices, [1, 2, 5, 1 << 20])
    func `an ambiguous delimiter is refused at the first wrong byte`(
        index: Int, pieces: Int
    ) throws {
        let (body, reason, offset) = Self.refused[index]
        let error = try #require(MultipartRun.log(Array(body.utf8), pieces: pieces).error)
        #expect(error.reason == .malformed(reason))
        #expect(error.location?.offset == offset)
    }

    @Test func `every byte goes through as content`() {
        let bytes = (0...255).map { UInt8($0) }
        let content = bytes + bytes.reversed() + [13, 10, 13, 13, 10, 10, 45, 45]
        for pieces in [1, 3, 100, 1000] {
            let (log, error) = MultipartRun.log(MultipartRun.field(content), pieces: pieces)
            #expect(error == nil)
            #expect(log.contents == [content])
        }
    }

    @Test(arguments: [
        "", " ", "b ", "b\"", "b\n", "b;", "bé", "b[", String(repeating: "b", count: 71),
    ])
    func `a boundary that RFC 2046 does not allow is refused`(boundary: String) {
        #expect(throws: DocumentError(.multipart, .malformed("an invalid boundary"))) {
            try MultipartReader(boundary: boundary)
        }
    }

    @Test(arguments: [
        "b", "a b", "'()+_,-./:=?", "----WebKitFormBoundary7MA4YWxkTrZu0gW", "--", "-",
    ])
    func `each boundary that RFC 2046 allows is found`(boundary: String) {
        let text =
            "--\(boundary)\r\nContent-Disposition: form-data; name=a\r\n\r\n"
            + "\r\n--\r\n-\r\n--\(boundary)--"
        for pieces in [1, 1000] {
            let (log, error) = MultipartRun.log(
                Array(text.utf8), pieces: pieces, boundary: boundary)
            guard boundary.contains(where: { $0 != "-" }) else { continue }
            #expect(error == nil)
            #expect(log.contents == [Array("\r\n--\r\n-".utf8)])
        }
    }

    @Test func `limits are held exactly`() {
        func reason(_ body: [UInt8], _ limits: MultipartLimits) -> DocumentError.Reason? {
            let whole = MultipartRun.log(body, pieces: 1 << 20, limits: limits).error?.reason
            #expect(MultipartRun.log(body, pieces: 1, limits: limits).error?.reason == whole)
            return whole
        }
        let body = MultipartRun.field([1, 2, 3, 13, 10, 45])
        #expect(reason(body, MultipartLimits(bytes: body.count)) == nil)
        #expect(
            reason(body, MultipartLimits(bytes: body.count - 1))
                == .tooLarge(maximum: body.count - 1))
        #expect(reason(body, MultipartLimits(partBytes: 6)) == nil)
        #expect(reason(body, MultipartLimits(partBytes: 5)) == .tooLarge(maximum: 5))
        let header = Self.start.utf8.count - 5
        let one = Array((Self.start + "x\r\n--b--").utf8)
        #expect(reason(one, MultipartLimits(headerBytes: header)) == nil)
        #expect(
            reason(one, MultipartLimits(headerBytes: header - 1)) == .tooLarge(maximum: header - 1))
        let two = Array((Self.start + "x" + Self.second + "y\r\n--b--").utf8)
        #expect(reason(two, MultipartLimits(parts: 2, partBytes: 1)) == nil)
        #expect(reason(two, MultipartLimits(parts: 1)) == .tooManyValues(maximum: 1))
    }

    @Test func `a reader that has refused a body keeps refusing it`() throws {
        var reader = try MultipartReader(boundary: "b")
        var log = MultipartLog()
        let expected = DocumentError(
            .multipart, .malformed("a line that begins with the boundary but continues"),
            at: DocumentLocation(offset: 3))
        for body in ["--bc", MultipartReaderTests.start] {
            #expect(throws: expected) {
                try Array(body.utf8).withBytes { bytes throws(DocumentError) in
                    try reader.feed(bytes, into: &log)
                }
            }
        }
        #expect(throws: expected) { try reader.finish() }
        #expect(log == MultipartLog())
    }

    @Test func `changed bytes are parts or a typed error, in pieces as well`() {
        let seed = UInt64.random(in: 0..<1_000_000)
        let body = Array((Self.start + "x\r\n-\r\n" + Self.second + "y\r\n--b--\r\n").utf8)
        var refused = 0
        for seed in seed..<seed + 2000 {
            var dice = JSONDice(seed: seed)
            let bytes = dice.mutated(body)
            let (log, error) = MultipartRun.log(bytes, pieces: 1 << 20)
            let (again, error2) = MultipartRun.log(bytes, pieces: 1 + Int(seed % 5))
            #expect(error == error2, "seed \(seed)")
            if error == nil { #expect(log == again, "seed \(seed)") } else { refused += 1 }
        }
        #expect(refused > 200 && refused < 2000, "seed \(seed)")
    }
}
