import HTTPCore
import Testing

@Suite("The chunked coding (RFC 9112 §7.1)")
struct ChunkedTests {
    @Test(arguments: [
        ("0\r\n\r\n", ""), ("00000\r\n\r\n", ""), ("0000000000000000\r\n\r\n", ""),
        ("5\r\nhello\r\n0\r\n\r\n", "hello"),
        ("1\r\na\r\n2\r\nbc\r\nA\r\n0123456789\r\n0\r\n\r\n", "abc0123456789"),
        ("a\r\n0123456789\r\n00\r\n\r\n", "0123456789"),
        ("0000000000000005\r\nhello\r\n0\r\n\r\n", "hello"),
        ("2\r\n\r\n\r\n0\r\n\r\n", "\r\n"), ("5\r\n0\r\n\r\n\r\n0\r\n\r\n", "0\r\n\r\n"),
        ("5;a\r\nhello\r\n0;b\r\n\r\n", "hello"), ("5;a=b\r\nhello\r\n0\r\n\r\n", "hello"),
        ("5;a=\"b c;\\\"\\\\\t\u{E9}\"\r\nhello\r\n0\r\n\r\n", "hello"),
        ("5;a;b=c;d=\"\"\r\nhello\r\n0\r\n\r\n", "hello"), ("0;x=\"\"\r\n\r\n", ""),
        ("5; a\r\nhello\r\n0\r\n\r\n", "hello"), ("5;a =b\r\nhello\r\n0\r\n\r\n", "hello"),
        ("5;a= b\r\nhello\r\n0\r\n\r\n", "hello"),
        ("5;\t a \t= \tb\t ; c ;d=\"e\" ; f\r\nhello\r\n0; g\r\n\r\n", "hello"),
    ])
    func `chunks are joined up to the last one`(text: String, content: String) {
        let body = bodyOutcome(text + "GET / HTTP/1.1")
        #expect(body.error == nil)
        #expect(body.isComplete)
        #expect(String(decoding: body.content, as: UTF8.self) == content)
        #expect(body.consumed == latin1(text).count)
    }

    @Test(
        arguments: [
            ("\r\n", .malformedChunkSize), ("\n", .bareLineFeed), ("x\r\n", .malformedChunkSize),
            ("g\r\n", .malformedChunkSize), ("-1\r\n", .malformedChunkSize),
            ("+5\r\n", .malformedChunkSize), ("0x5\r\n", .malformedChunkSize),
            (" 5\r\n", .malformedChunkSize), ("\t5\r\n", .malformedChunkSize),
            ("5 \r\n", .malformedChunkSize), ("5\t\r\n", .malformedChunkSize),
            ("5 ;a\r\n", .malformedChunkSize), ("5_0\r\n", .malformedChunkSize),
            ("5,5\r\n", .malformedChunkSize), ("5.0\r\n", .malformedChunkSize),
            ("\u{0}5\r\n", .malformedChunkSize), ("5\u{0}\r\n", .malformedChunkSize),
            ("\u{FF}5\r\n", .malformedChunkSize), (";a\r\n", .malformedChunkSize),
            ("\r5\r\n", .malformedChunkSize),
            ("5\nhello\r\n", .bareLineFeed), ("5\rhello\r\n", .bareCarriageReturn),
            ("5\r\r\nhello\r\n", .bareCarriageReturn),
            ("8000000000000000\r\n", .chunkTooLarge), ("ffffffffffffffff\r\n", .chunkTooLarge),
            ("10000000000000000\r\n", .chunkTooLarge), ("00000000000000000\r\n", .chunkTooLarge),
            ("100000000000000005\r\n", .chunkTooLarge),
            ("1\r\nab\r\n", .unterminatedChunk), ("1\r\na\n", .unterminatedChunk),
            ("1\r\na\r\r\n", .unterminatedChunk), ("1\r\na0\r\n", .unterminatedChunk),
            ("2\r\na\r\n0\r\n\r\n", .unterminatedChunk),
            ("5;\r\n", .malformedChunkExtension), ("5;;a\r\n", .malformedChunkExtension),
            ("5; \r\n", .malformedChunkExtension), ("5;a \r\n", .malformedChunkExtension),
            ("5;a b\r\n", .malformedChunkExtension), ("5;a= \r\n", .malformedChunkExtension),
            ("5;a=b \r\n", .malformedChunkExtension), ("5;a=\"b\" \r\n", .malformedChunkExtension),
            ("5;a=\"b\" c\r\n", .malformedChunkExtension), ("5;a =\nx", .bareLineFeed),
            ("5; \nx", .bareLineFeed), ("5;a=b \nx", .bareLineFeed),
            ("5;a ;\u{0}", .malformedChunkExtension), ("5;a=b \r", .malformedChunkExtension),
            ("5;a=b c\r\n", .malformedChunkExtension), ("5;=b\r\n", .malformedChunkExtension),
            ("5;a=\r\n", .malformedChunkExtension), ("5;a=;b\r\n", .malformedChunkExtension),
            ("5;a=\"b\r\n", .malformedChunkExtension), ("5;a=\"b\"c\r\n", .malformedChunkExtension),
            ("5;a=\"\\\r\n\"\r\n", .malformedChunkExtension),
            ("5;a=b=c\r\n", .malformedChunkExtension),
            ("5;a\u{0}\r\n", .malformedChunkExtension),
            ("5;a=\"\u{7F}\"\r\n", .malformedChunkExtension),
            ("5;a\u{80}\r\n", .malformedChunkExtension),
            ("5;a\nhello\r\n", .bareLineFeed), ("5;\nhello\r\n", .bareLineFeed),
            ("5;a=\"\n\"\r\n", .bareLineFeed), ("5;a\rX\r\n", .bareCarriageReturn),
            ("5;a=b\rhello\r\n", .bareCarriageReturn), ("0\n\r\n", .bareLineFeed),
            ("0\r\n\n", .bareLineFeed), ("0\r\n\r\r\n", .bareCarriageReturn),
            ("0\r\n X: y\r\n\r\n", .whitespaceBeforeFirstField),
            ("0\r\nX y\r\n\r\n", .missingColon),
            ("0\r\nX: y\n\r\n", .bareLineFeed), ("0\r\nX: y\r\n z\r\n\r\n", .obsoleteLineFolding),
        ] as [(String, WireError)])
    func `whatever is not the coding's grammar is refused`(text: String, error: WireError) {
        let first = bodyOutcome(text + "X: y\r\n\r\n")
        #expect(first.error == error)
        let later = bodyOutcome("3;a=b\r\nabc\r\n" + text + "X: y\r\n\r\n")
        #expect(later.error == error)
        #expect(later.content.starts(with: latin1("abc")))
    }

    @Test func `the largest size is below 2^63`() throws {
        var decoder = ChunkedDecoder()
        let bytes = latin1("7fffffffffffffff\r\nabc")
        let step = try decoder.decode(bytes.span)
        #expect(step == .data(offset: 18, count: 3, consumed: 21))
        #expect(!decoder.isComplete)
    }

    @Test func `trailers are fields`() {
        let text = "1\r\na\r\n0\r\nX-Sum: 1\r\nETag: \"e\"\r\n\r\n"
        let body = bodyOutcome(text + "rest")
        #expect(body.isComplete)
        #expect(body.consumed == text.utf8.count)
        let summary = "other=X-Sum|1; etag=ETag|\"e\" [HTTPCore.FieldID.other, "
        #expect(body.trailers.hasPrefix(summary), "\(body.trailers)")
    }

    @Test func `a truncated body is distinguished from a complete one`() {
        let text = latin1("5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n")
        for count in 0...text.count {
            var decoder = BodyDecoder(.chunked)
            var offset = 0
            let prefix = Array(text[..<count])
            var isComplete = false
            while offset < count {
                switch try? decoder.decode(prefix.span.extracting(offset..<count)) {
                case .data(_, _, let consumed), .needMore(let consumed): offset += consumed
                case .end(let consumed):
                    offset += consumed
                    isComplete = true
                case nil: Issue.record("refused")
                }
            }
            #expect(isComplete == (count == text.count))
            #expect(decoder.isComplete == isComplete)
            if isComplete {
                #expect(throws: Never.self) { try decoder.endOfInput() }
            } else {
                #expect(throws: WireError.truncatedBody) { try decoder.endOfInput() }
            }
        }
    }

    @Test func `extension bytes are limited over the whole message`() {
        let limits = ChunkedLimits(extensionBytes: 8)
        #expect(bodyOutcome("1;abcdefg\r\na\r\n0\r\n\r\n", limits: limits).isComplete)
        #expect(
            bodyOutcome("1;abcdefgh\r\na\r\n0\r\n\r\n", limits: limits).error
                == .chunkExtensionsTooLarge)
        let four = "1;a=b\r\nx\r\n"
        #expect(bodyOutcome(four + four + "0\r\n\r\n", limits: limits).isComplete)
        #expect(
            bodyOutcome(four + four + "0;a\r\n\r\n", limits: limits).error
                == .chunkExtensionsTooLarge)
        let quoted = "1;a=\"" + String(repeating: " ", count: 20)
        #expect(bodyOutcome(quoted, limits: limits).error == .chunkExtensionsTooLarge)
    }

    @Test func `trailer bytes and fields are limited`() {
        let section = "X: abcdefghij\r\n\r\n"
        let exact = ChunkedLimits(trailerBytes: section.utf8.count)
        #expect(bodyOutcome("0\r\n" + section, limits: exact).isComplete)
        #expect(bodyOutcome("0\r\n" + section + "next", limits: exact).isComplete)
        let less = ChunkedLimits(trailerBytes: section.utf8.count - 1)
        #expect(bodyOutcome("0\r\n" + section, limits: less).error == .trailersTooLarge)
        let endless = "0\r\nX: " + String(repeating: "y", count: 100)
        #expect(bodyOutcome(endless, limits: exact).error == .trailersTooLarge)
        let fields = ChunkedLimits(trailerFields: 2)
        #expect(bodyOutcome("0\r\nA: 1\r\nB: 2\r\n\r\n", limits: fields).isComplete)
        #expect(
            bodyOutcome("0\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n", limits: fields).error
                == .tooManyTrailers)
    }
}
