import HTTPCore
import Testing

@Suite("The versions of HTTP")
struct HTTPVersionTests {
    @Test(arguments: HTTPVersion.allCases)
    func `a version that persists has everything else that came with HTTP/1.1`(
        _ version: HTTPVersion
    ) {
        let answers = [
            version.persistsByDefault, version.hasTransferCodings, version.hasInterimResponses,
            version.hasUpgrade, version.requiresHost,
        ]
        #expect(answers == Array(repeating: version != HTTPVersion.http10, count: 5))
    }

    @Test(
        arguments: zip(
            HTTPVersion.allCases,
            ["Via: 1.0 pinfold\r\n", "Via: 1.1 pinfold\r\n"]))
    func `Via names the version in which a message was received (RFC 9110 §7.6.3)`(
        _ version: HTTPVersion, _ line: String
    ) {
        #expect(written { $0.appendVia(received: version) } == line)
    }

    @Test(
        arguments: zip(HTTPVersion.allCases, ["1.0", "1.1"]))
    func `a request line that is passed on keeps its version`(
        _ version: HTTPVersion, _ number: String
    ) throws {
        let line = "GET /a HTTP/\(number)\r\n"
        let text = "\(line)Host: a\r\n\r\n"
        let head = try requestHead(text)
        #expect(head.version == version)
        #expect(
            written { $0.appendRequestLine(of: head, in: Array(text.utf8).span) } == line)
    }

    private func written(_ write: (inout HeadWriter) -> Void) -> String {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 1)
        defer { memory.deallocate() }
        var writer = HeadWriter(memory)
        write(&writer)
        return String(decoding: memory.prefix(writer.count), as: UTF8.self)
    }
}
