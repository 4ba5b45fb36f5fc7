import HTTPCore
import Testing

@Suite("Bodies (RFC 9112 §6)")
struct BodyDecoderTests {
    @Test func `a message without body is complete from the start`() throws {
        for framing in [BodyFraming.none, .length(0)] {
            var decoder = BodyDecoder(framing)
            #expect(decoder.isComplete)
            let next = latin1("GET")
            #expect(try decoder.decode(next.span) == .end(consumed: 0))
            try decoder.endOfInput()
        }
    }

    @Test func `a length is counted and what follows is left`() throws {
        for piece in 1...12 {
            let body = decodeBody(latin1("helloGET / "), .length(5), piece: piece)
            #expect(body.isComplete && body.consumed == 5 && body.error == nil)
            #expect(body.content == latin1("hello"))
        }
        var decoder = BodyDecoder(.length(5))
        let bytes = latin1("hel")
        #expect(try decoder.decode(bytes.span) == .data(offset: 0, count: 3, consumed: 3))
        #expect(!decoder.isComplete)
        #expect(try decoder.decode(bytes.span.extracting(0..<0)) == .needMore(consumed: 0))
        #expect(throws: WireError.truncatedBody) { try decoder.endOfInput() }
        #expect(try decoder.decode(bytes.span) == .data(offset: 0, count: 2, consumed: 2))
        #expect(decoder.isComplete)
        #expect(decoder.contentBytes == 5)
        #expect(try decoder.decode(bytes.span) == .end(consumed: 0))
        try decoder.endOfInput()
    }

    @Test func `lengths near 2^63 are counted`() throws {
        var decoder = BodyDecoder(.length(UInt64(Int64.max)))
        let bytes = latin1("abc")
        #expect(try decoder.decode(bytes.span) == .data(offset: 0, count: 3, consumed: 3))
        #expect(!decoder.isComplete && decoder.contentBytes == 3)
    }

    @Test func `a body until close ends with the connection`() throws {
        var decoder = BodyDecoder(.untilClose)
        let bytes = latin1("abc")
        #expect(try decoder.decode(bytes.span) == .data(offset: 0, count: 3, consumed: 3))
        #expect(try decoder.decode(bytes.span.extracting(0..<0)) == .needMore(consumed: 0))
        #expect(!decoder.isComplete)
        try decoder.endOfInput()
        #expect(decoder.isComplete && decoder.contentBytes == 3)
        #expect(try decoder.decode(bytes.span) == .end(consumed: 0))
    }

    @Test func `a chunked body in one piece takes one step per chunk and one for the end`() throws {
        var decoder = BodyDecoder(.chunked)
        let bytes = latin1("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nGET")
        #expect(try decoder.decode(bytes.span) == .data(offset: 3, count: 3, consumed: 6))
        let second = bytes.span.extracting(6..<bytes.count)
        #expect(try decoder.decode(second) == .data(offset: 5, count: 2, consumed: 7))
        let third = bytes.span.extracting(13..<bytes.count)
        #expect(try decoder.decode(third) == .end(consumed: 7))
        #expect(decoder.isComplete && decoder.contentBytes == 5)
        #expect(try decoder.decode(third) == .end(consumed: 0))
        var chunked = decoder.chunked
        #expect(try chunked.decode(third) == .end(consumed: 0))
        #expect(try chunked.decode(third.extracting(0..<0)) == .end(consumed: 0))
    }
}
