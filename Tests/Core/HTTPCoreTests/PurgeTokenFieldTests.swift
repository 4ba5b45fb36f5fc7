import Testing

@testable import HTTPCore

@Suite("X-Purge-Token")
struct PurgeTokenFieldTests {
    private struct Parsed: ~Copyable {
        var head = RequestHead()
        let bytes: [UInt8]
    }

    private func parsed(_ fields: [String]) throws -> Parsed {
        let lines = ["PURGE /x HTTP/1.1", "Host: a"] + fields
        let bytes = Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
        var parsed = Parsed(bytes: bytes)
        var parser = RequestHeadParser()
        let progress = try parser.parse(bytes.span, into: &parsed.head)
        #expect(progress == .complete(headBytes: bytes.count))
        return parsed
    }

    private func values(_ fields: String...) throws -> [String] {
        let request = try parsed(fields)
        let bytes = request.bytes
        return request.head.purgeTokens(in: bytes.span).map {
            String(decoding: bytes[$0.indices], as: UTF8.self)
        }
    }

    @Test func `its values are found whatever the case of its name, and each of them`() throws {
        #expect(try values("X-Purge-Token: s3cret") == ["s3cret"])
        #expect(try values("x-purge-TOKEN:  s3cret ", "A: b") == ["s3cret"])
        #expect(try values("X-Purge-Token: 1", "X-Purge-Token: 2") == ["1", "2"])
        #expect(try values("X_Purge_Token: 1", "X-Purge-Tokem: 2", "Purge-Token: 3") == [])
        #expect(try values("X-Purge-Token:") == [""])
    }

    @Test func `it is not forwarded where it is for the gateway, nor what looks like it`() throws {
        var request = try parsed([
            "X-Purge-Token: 1", "A: b", "X_purge-token: 2", "x-purge-token: 3", "X-Purge-Tokens: 4",
        ])
        let bytes = request.bytes
        request.head.endPurgeTokens(in: bytes.span)
        var memory = [UInt8](repeating: 0, count: 512)
        let count = memory.withUnsafeMutableBytes { buffer in
            var writer = HeadWriter(buffer)
            writer.appendForwardedFields(request.head.fields, of: bytes.span, omitting: [])
            return writer.count
        }
        #expect(
            String(decoding: memory[..<count], as: UTF8.self)
                == "Host: a\r\nA: b\r\nX-Purge-Tokens: 4\r\n")
        // It can still be read here.
        let tokens = request.head.purgeTokens(in: bytes.span).count
        #expect(tokens == 2)
    }
}
