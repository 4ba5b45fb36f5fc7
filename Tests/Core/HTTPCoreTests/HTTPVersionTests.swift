import HTTPCore
import Testing

@Suite("The versions of HTTP")
struct HTTPVersionTests {
    @Test(arguments: HTTPVersion.allCases)
    func `a version has what came with it, and HTTP/2 has left some of it`(
        _ version: HTTPVersion
    ) {
        let lasting = [
            version.persistsByDefault, version.hasInterimResponses, version.requiresHost,
            version.hasUpgrade,
        ]
        #expect(lasting == Array(repeating: version != .http10, count: 4))
        #expect(version.hasTransferCodings == (version == .http11))
        let ofStreams = [version.marksEnd, version.takesTrailersUnasked]
        #expect(ofStreams == Array(repeating: version == .http2, count: 2))
        #expect((version.carrier == .http2) == (version == .http2))
    }

    @Test(arguments: HTTPCarrier.allCases)
    func `the version that is expected of a connection is one of its own`(_ carrier: HTTPCarrier) {
        #expect(carrier.version.carrier == carrier)
    }

    @Test(
        arguments: zip(
            HTTPVersion.allCases,
            ["Via: 1.0 pinfold\r\n", "Via: 1.1 pinfold\r\n", "Via: 2.0 pinfold\r\n"]))
    func `Via names the version in which a message was received (RFC 9110 §7.6.3)`(
        _ version: HTTPVersion, _ line: String
    ) {
        #expect(written { $0.appendVia(received: version) } == line)
    }

    @Test(
        arguments: zip(HTTPVersion.allCases, ["1.0", "1.1", "2.0"]))
    func `a request line that is passed on keeps its version`(
        _ version: HTTPVersion, _ number: String
    ) throws {
        let line = "GET /a HTTP/\(number)\r\n"
        let text = "\(line)Host: a\r\n\r\n"
        let head = try requestHead(text, over: version.carrier)
        let read = head.version
        #expect(read == version && version.text.description == "HTTP/\(number)")
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
