import HTTPCore
import Testing

@Suite("Framing that only a user agent reads")
struct UserAgentFramingTests {
    private func head(
        _ text: String, to method: HTTPCore.Method = .get, isUserAgent: Bool
    ) throws -> ResponseHead {
        let bytes = latin1(text)
        var (parser, head) = (ResponseHeadParser(), ResponseHead())
        let context = ResponseContext(method: method, isUserAgent: isUserAgent)
        var progress = ParseProgress.needMore
        // Byte by byte: what was read before the last byte must not count twice.
        for count in 1...bytes.count {
            progress = try parser.parse(
                bytes.span.extracting(0..<count), answering: context, into: &head)
        }
        guard progress == .complete(headBytes: bytes.count) else { throw IncompleteError() }
        return head
    }

    @Test(
        arguments: [
            (
                "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", .chunked, false,
                .contentLengthWithTransferEncoding
            ),
            (
                "Content-Length: 5, 6\r\nTransfer-Encoding: Chunked\r\n", .chunked, false,
                .contentLengthWithTransferEncoding
            ),
            ("Transfer-Encoding: identity\r\n", .untilClose, false, .unknownTransferCoding),
            (
                "Transfer-Encoding: Identity\r\nContent-Length: 5\r\n", .length(5), false,
                .contentLengthWithTransferEncoding
            ),
            (
                "Transfer-Encoding: identity, chunked\r\n", .chunked, true,
                .unknownTransferCoding
            ),
        ] as [(String, BodyFraming, Bool, WireError)])
    func `is read, ends the connection, and stays refused for a gateway`(
        fields: String, framing: BodyFraming, keepAlive: Bool, error: WireError
    ) throws {
        let text = "HTTP/1.1 200 OK\r\n\(fields)\r\n"
        let read = try head(text, isUserAgent: true)
        #expect(read.framing == framing)
        #expect(read.keepAlive == keepAlive)
        #expect(try head(text, to: .head, isUserAgent: true).framing == .none)
        #expect(throws: error) { try head(text, isUserAgent: false) }
    }

    @Test(
        arguments: [
            ("1.1", "Transfer-Encoding: gzip, chunked\r\n", .unknownTransferCoding),
            ("1.1", "Transfer-Encoding: chunked, gzip\r\n", .chunkedNotFinal),
            ("1.1", "Transfer-Encoding: chunked, chunked\r\n", .repeatedChunked),
            ("1.1", "Transfer-Encoding: \r\n", .malformedTransferEncoding),
            ("1.0", "Transfer-Encoding: chunked\r\n", .transferEncodingInHTTP10),
            (
                "1.1", "Transfer-Encoding: identity\r\nContent-Length: 5, 6\r\n",
                .repeatedContentLength
            ),
        ] as [(String, String, WireError)])
    func `is no other`(version: String, fields: String, error: WireError) {
        #expect(throws: error) {
            try head("HTTP/\(version) 200 OK\r\n\(fields)\r\n", isUserAgent: true)
        }
    }

    private func content(_ text: String, isUserAgent: Bool) throws -> String {
        let bytes = latin1(text)
        var decoder = BodyDecoder(.chunked, isUserAgent: isUserAgent)
        var content: [UInt8] = []
        for index in bytes.indices {
            let step = try decoder.decode(bytes.span.extracting(index..<index + 1))
            if case .data(_, let count, _) = step { content += bytes[index..<index + count] }
        }
        guard decoder.isComplete else { throw IncompleteError() }
        return String(decoding: content, as: UTF8.self)
    }

    @Test(arguments: [
        "5 \r\nhello\r\n0\r\n\r\n", "5   \t\r\nhello\r\n0 \r\n\r\n", "5 ;a=b\r\nhello\r\n0\r\n\r\n",
    ])
    func `has white space behind the size of a chunk`(text: String) throws {
        #expect(try content(text, isUserAgent: true) == "hello")
        #expect(throws: WireError.malformedChunkSize) { try content(text, isUserAgent: false) }
    }

    @Test(
        arguments: [
            ("5 x\r\n", .malformedChunkSize), ("5 5\r\n", .malformedChunkSize),
            (" 5\r\n", .malformedChunkSize), ("5 \nhello", .bareLineFeed),
            ("5 \rhello", .bareCarriageReturn),
            ("5" + String(repeating: " ", count: 4097) + "\r\n", .chunkExtensionsTooLarge),
        ] as [(String, WireError)])
    func `has it nowhere else, and not without end`(text: String, error: WireError) {
        #expect(throws: error) { try content(text + "hello\r\n0\r\n\r\n", isUserAgent: true) }
    }
}
