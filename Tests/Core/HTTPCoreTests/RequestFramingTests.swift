import HTTPCore
import Testing

/// RFC 9112 §6.3 for requests, and the ways in which two programs have been made to disagree on it.
@Suite("Framing of requests (RFC 9112 §6.3)")
struct RequestFramingTests {
    private func head(_ fields: String, _ version: String = "1.1") -> String {
        "POST / HTTP/\(version)\r\nHost: a\r\n\(fields)\r\n"
    }

    @Test(
        arguments: [
            ("", BodyFraming.none),
            ("Content-Length: 0\r\n", .length(0)),
            ("Content-Length: 5\r\n", .length(5)),
            ("content-LENGTH:5\r\n", .length(5)),
            ("Content-Length: \t 5 \t\r\n", .length(5)),
            ("Content-Length: 0000000000000000000000000005\r\n", .length(5)),
            ("Content-Length: 9223372036854775807\r\n", .length(9_223_372_036_854_775_807)),
            ("Transfer-Encoding: chunked\r\n", .chunked),
            ("transfer-encoding: CHUNKED\r\n", .chunked),
            ("Transfer-Encoding:\t chunked \t\r\n", .chunked),
            ("X-Transfer-Encoding: x\r\nX-Content-Length: y\r\n", .none),
        ] as [(String, BodyFraming)])
    func `the body ends by one unambiguous field`(
        fields: String, framing: BodyFraming
    ) throws {
        #expect(requestOutcome(head(fields)).isComplete)
        #expect(try requestHead(head(fields)).framing == framing)
    }

    @Test(arguments: [
        ("", WireError.malformedContentLength), (" ", .malformedContentLength),
        ("+5", .malformedContentLength), ("-5", .malformedContentLength),
        ("-0", .malformedContentLength), ("0x5", .malformedContentLength),
        ("5x", .malformedContentLength), ("5.0", .malformedContentLength),
        ("5 5", .malformedContentLength), ("5;q=1", .malformedContentLength),
        ("\"5\"", .malformedContentLength), ("5e1", .malformedContentLength),
        ("1_000", .malformedContentLength), ("\u{B2}", .malformedContentLength),
        ("\u{660}", .malformedContentLength), ("five", .malformedContentLength),
        ("5,5", .repeatedContentLength), ("5, 5", .repeatedContentLength),
        ("5,6", .repeatedContentLength), ("5,", .repeatedContentLength),
        (",5", .repeatedContentLength),
        ("9223372036854775808", .contentLengthTooLarge),
        ("18446744073709551615", .contentLengthTooLarge),
        ("18446744073709551616", .contentLengthTooLarge),
        ("18446744073709551621", .contentLengthTooLarge),
        ("36893488147419103232", .contentLengthTooLarge),
        ("99999999999999999999999999999999", .contentLengthTooLarge),
        ("9223372036854775808x", .malformedContentLength),
        ("\u{B}5", .badFieldValueByte), ("5\u{0}", .badFieldValueByte),
    ])
    func `Content-Length is one decimal number below 2^63`(value: String, error: WireError) {
        // Latin-1 holds no Arabic digits; their UTF-8 stands in for them.
        let bytes =
            latin1("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ")
            + (value == "\u{660}" ? Array(value.utf8) : latin1(value)) + latin1("\r\n\r\n")
        #expect(requestOutcome(bytes).error == error)
    }

    @Test(arguments: [
        ("", WireError.malformedTransferEncoding),
        (" ", .malformedTransferEncoding),
        (",", .malformedTransferEncoding),
        ("chunked,", .malformedTransferEncoding),
        (",chunked", .malformedTransferEncoding),
        ("chunked, ,", .malformedTransferEncoding),
        ("chunked;q=1", .malformedTransferEncoding),
        ("chunked ;x", .malformedTransferEncoding),
        ("chunked chunked", .malformedTransferEncoding),
        ("x chunked", .malformedTransferEncoding),
        ("\"chunked\"", .malformedTransferEncoding),
        ("'chunked'", .unknownTransferCoding),
        ("chunked\u{80}", .malformedTransferEncoding),
        ("chunked/1", .malformedTransferEncoding),
        ("(chunked)", .malformedTransferEncoding),
        (":chunked", .malformedTransferEncoding),
        ("=chunked", .malformedTransferEncoding),
        ("xchunked", .unknownTransferCoding),
        ("chunkedx", .unknownTransferCoding),
        ("chunke", .unknownTransferCoding),
        ("chunk", .unknownTransferCoding),
        ("identity", .unknownTransferCoding),
        ("cow", .unknownTransferCoding),
        ("gzip", .unknownTransferCoding),
        ("gzip, chunked", .unknownTransferCoding),
        ("identity, chunked", .unknownTransferCoding),
        ("chunked, gzip", .chunkedNotFinal),
        ("chunked, identity", .chunkedNotFinal),
        ("gzip, chunked, gzip", .chunkedNotFinal),
        ("chunked, chunked", .repeatedChunked),
        ("chunked,chunked", .repeatedChunked),
        ("\u{B}chunked", .badFieldValueByte),
        ("chunked\u{C}", .badFieldValueByte),
        ("\u{0}chunked", .badFieldValueByte),
    ])
    func `Transfer-Encoding is chunked, once, and nothing else`(value: String, error: WireError) {
        #expect(requestOutcome(head("Transfer-Encoding: \(value)\r\n")).error == error)
    }

    @Test(arguments: [
        // CL.CL
        ("Content-Length: 5\r\nContent-Length: 5\r\n", WireError.repeatedContentLength),
        ("Content-Length: 5\r\nX: y\r\ncontent-length: 6\r\n", .repeatedContentLength),
        ("Content-Length: 0\r\nContent-Length: 44\r\n", .repeatedContentLength),
        // CL.TE and TE.CL
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", .contentLengthWithTransferEncoding),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", .contentLengthWithTransferEncoding),
        ("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", .contentLengthWithTransferEncoding),
        ("Content-Length: x\r\nTransfer-Encoding: chunked\r\n", .contentLengthWithTransferEncoding),
        (
            "Content-Length: 5\r\nTransfer-Encoding: identity\r\n",
            .contentLengthWithTransferEncoding
        ),
        ("Content-Length: 5\r\nTransfer-Encoding:\r\n", .contentLengthWithTransferEncoding),
        // TE.TE
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", .repeatedChunked),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", .chunkedNotFinal),
        ("Transfer-Encoding: chunked\r\nTransfer-encoding: cow\r\n", .chunkedNotFinal),
        ("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", .unknownTransferCoding),
        ("Transfer-Encoding: x\r\nTransfer-Encoding:\r\n", .malformedTransferEncoding),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding:\r\n", .malformedTransferEncoding),
        // Names and values that one side reads as framing and the other does not.
        ("Transfer-Encoding : chunked\r\n", .spaceBeforeColon),
        ("Transfer-Encoding\t: chunked\r\n", .spaceBeforeColon),
        (" Transfer-Encoding: chunked\r\n", .obsoleteLineFolding),
        ("Transfer-Encoding:\r\n chunked\r\n", .obsoleteLineFolding),
        ("Transfer-Encoding:\n chunked\r\n", .bareLineFeed),
        ("X: y\nTransfer-Encoding: chunked\r\n", .bareLineFeed),
        ("X: y\rTransfer-Encoding: chunked\r\n", .bareCarriageReturn),
        ("X:\u{0}\r\nTransfer-Encoding: chunked\r\n", .badFieldValueByte),
        ("Transfer\u{0}Encoding: chunked\r\n", .badFieldNameByte),
        ("\u{0}Transfer-Encoding: chunked\r\n", .badFieldNameByte),
        ("Transfer-Encoding\u{A0}: chunked\r\n", .badFieldNameByte),
        ("Content-Length\r\n: 5\r\n", .missingColon),
        ("Content-Length : 5\r\n", .spaceBeforeColon),
        ("Content-Length: 5\r\n 6\r\n", .obsoleteLineFolding),
    ])
    func `a message that two programs could end at different places is refused`(
        fields: String, error: WireError
    ) {
        #expect(requestOutcome(head(fields)).error == error)
        // A response may give the same length twice (RFC 9110 §8.6).
        let isOneLength = fields == "Content-Length: 5\r\nContent-Length: 5\r\n"
        let response = "HTTP/1.1 200 OK\r\nX: a\r\n\(fields)\r\n"
        #expect(responseOutcome(response).error == (isOneLength ? nil : error))
    }

    @Test func `names that only look like framing are other fields`() throws {
        for name in ["Transfer-Encodin", "Content-Lengths", "Transfer_Encodings", "_Connection"] {
            let parsed = try requestHead(head("\(name): 5\r\n"))
            #expect(parsed.framing == .none)
            #expect(parsed.fields[1].id == .other)
        }
    }

    @Test func `an HTTP 1.0 message with Transfer-Encoding is refused`() throws {
        #expect(
            requestOutcome(head("Transfer-Encoding: chunked\r\n", "1.0")).error
                == .transferEncodingInHTTP10)
        #expect(
            requestOutcome(head("Transfer-Encoding: x\r\nContent-Length: 1\r\n", "1.0")).error
                == .transferEncodingInHTTP10)
        #expect(try requestHead(head("Content-Length: 5\r\n", "1.0")).framing == .length(5))
    }

    @Test(
        arguments: [
            ("Content-Length: 0\r\n", nil), ("", nil),
            ("Content-Length: 1\r\n", .contentInTrace),
            ("Transfer-Encoding: chunked\r\n", .contentInTrace),
        ] as [(String, WireError?)])
    func `TRACE has no content`(fields: String, error: WireError?) throws {
        let text = "TRACE / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n"
        #expect(requestOutcome(text).error == error)
        if error == nil { #expect(try requestHead(text).framing == .none) }
    }

    @Test(
        arguments: [
            ("Content-Length: 0\r\n", nil), ("", nil),
            ("Content-Length: 1\r\n", .contentInConnect),
            ("Transfer-Encoding: chunked\r\n", .contentInConnect),
        ] as [(String, WireError?)])
    func `CONNECT has no content`(fields: String, error: WireError?) throws {
        let text = "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\(fields)\r\n"
        #expect(requestOutcome(text).error == error)
        if error == nil { #expect(try requestHead(text).framing == .none) }
    }
}
