import HTTPCore
import Testing

@testable import CachePolicy

@Suite("Completing a response that broke off, by RFC 9110 §13.1.5 and §14.4")
struct RestOfResponseTests {
    private func rest(
        _ fields: [String] = ["ETag: \"a\""], status: Int = 200, of body: UInt64? = 100,
        from offset: UInt64 = 40
    ) -> RestOfResponse? {
        let stored = Stored(fields, status: status, body: body)
        return RestOfResponse(of: stored.metadata, storedHead: stored.head.span, offset: offset)
    }

    @Test func `needs a 200 with a strong entity tag, of which there is a part`() {
        #expect(rest() != nil)
        #expect(rest(of: nil) != nil)
        #expect(rest([]) == nil)
        #expect(rest(["ETag: W/\"a\""]) == nil)
        #expect(rest(["Last-Modified: \(date(-1000))"]) == nil)
        #expect(rest(status: 203) == nil)
        #expect(rest(from: 0) == nil)
        #expect(rest(from: 99) != nil && rest(from: 100) == nil)
    }

    @Test func `asks for the rest, and for the whole if that has changed`() throws {
        let made = try #require(rest())
        var bytes = [UInt8](repeating: 0, count: 200)
        let text = bytes.withUnsafeMutableBytes { memory in
            var writer = HeadWriter(memory)
            made.appendFields(to: &writer)
            #expect(writer.count <= made.maximumFieldBytes)
            return String(decoding: memory[..<writer.count], as: UTF8.self)
        }
        #expect(text == "Range: bytes=40-\r\nIf-Range: \"a\"\r\n")
    }

    @Test(
        arguments: [
            ("bytes 40-99/100", .rest), ("Bytes 40-99/100", .rest), ("bytes 41-99/100", .unusable),
            ("bytes 39-99/100", .unusable), ("bytes 40-98/100", .unusable),
            ("bytes 40-99/101", .unusable), ("bytes 40-100/101", .unusable),
            ("bytes 40-99/*", .unusable), ("bytes */100", .unusable),
            ("lines 40-99/100", .unusable),
            ("bytes=40-99/100", .unusable), ("bytes 40-99", .unusable), ("", .unusable),
            ("bytes 40-99/100 ", .rest), ("bytes 40-99/100x", .unusable),
            ("bytes 40 - 99/100", .unusable), ("bytes -99/100", .unusable),
            ("bytes 99999999999999999999-99/100", .unusable),
        ] as [(String, RestOfResponse.Answer)])
    func `a 206 must be exactly the rest`(range: String, expected: RestOfResponse.Answer) throws {
        let response = Response(
            ["ETag: \"a\"", "Content-Range: \(range)", "Content-Length: 60"], status: 206)
        let made = try #require(rest())
        #expect(made.answer(response.head, in: response.bytes.span) == expected)
    }

    @Test(
        arguments: [
            ("\"a\"", 206, .rest), ("W/\"a\"", 206, .unusable), ("\"b\"", 206, .unusable),
            ("\"a\"", 200, .whole(known: 40)), ("\"b\"", 200, .unusable), ("\"a\"", 304, .unusable),
            ("\"a\"", 416, .unusable), ("\"a\"", 503, .unusable), ("\"a\"", 404, .unusable),
        ] as [(String, Int, RestOfResponse.Answer)])
    func `an answer must have the same entity tag`(
        tag: String, status: Int, expected: RestOfResponse.Answer
    ) throws {
        let length = status == 200 ? 100 : 60
        let response = Response(
            ["ETag: \(tag)", "Content-Range: bytes 40-99/100", "Content-Length: \(length)"],
            status: status)
        let made = try #require(rest())
        #expect(made.answer(response.head, in: response.bytes.span) == expected)
    }

    @Test func `a whole one must be as long as announced`() throws {
        let made = try #require(rest())
        for (length, expected) in [
            ("100", .whole(known: 40)), ("99", .unusable), ("101", .unusable),
        ] as [(String, RestOfResponse.Answer)] {
            let response = Response(["ETag: \"a\"", "Content-Length: \(length)"])
            #expect(made.answer(response.head, in: response.bytes.span) == expected)
        }
        let chunked = Response(["ETag: \"a\"", "Transfer-Encoding: chunked"])
        #expect(made.answer(chunked.head, in: chunked.bytes.span) == .whole(known: 40))
    }

    @Test func `without a known length any complete length will do`() throws {
        let made = try #require(rest(of: nil))
        let response = Response(
            ["ETag: \"a\"", "Content-Range: bytes 40-499/500", "Content-Length: 460"], status: 206)
        #expect(made.answer(response.head, in: response.bytes.span) == .rest)
    }

    @Test func `repeated fields are of no use`() throws {
        let made = try #require(rest())
        let response = Response(
            [
                "ETag: \"a\"", "ETag: \"a\"", "Content-Range: bytes 40-99/100",
                "Content-Length: 60",
            ], status: 206)
        #expect(made.answer(response.head, in: response.bytes.span) == .unusable)
    }
}
