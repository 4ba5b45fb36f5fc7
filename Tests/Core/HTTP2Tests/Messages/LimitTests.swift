import HTTPCore
import Testing

@testable import HTTP2

private func fault(_ assemble: () throws -> Void) -> MessageError? {
    do {
        try assemble()
        return nil
    } catch { return error as? MessageError }
}

@Suite("The limits of messages")
struct LimitTests {
    static let requests: [(name: String, fields: [(String, String)], style: RequestStyle)] = [
        ("ordinary", pseudoFields(adding: [("x", "y"), ("z", "")]), RequestStyle()),
        ("absolute", pseudoFields(adding: [("x", "y")]), RequestStyle(style: .absolute)),
        ("without fields", pseudoFields(), RequestStyle()),
        (
            "by Host", pseudoFields(without: ":authority", adding: [("host", "a.example")]),
            RequestStyle(style: .absolute)
        ),
        ("tunnel", [(":method", "CONNECT"), (":authority", "a.example:443")], RequestStyle()),
        (
            "upgrade",
            pseudoFields(
                without: ":method", adding: [(":method", "CONNECT"), (":protocol", "websocket")]),
            RequestStyle()
        ),
        (
            "cookies", pseudoFields(adding: [("cookie", "a=1"), ("x", "y"), ("cookie", "b=2")]),
            RequestStyle()
        ),
        (
            "adjacent cookies", pseudoFields(adding: [("cookie", "a=1"), ("cookie", "b=2")]),
            RequestStyle()
        ),
    ]

    /// A head of exactly the limit is accepted, one byte less is too little; by the limit, and by
    /// the memory.
    @Test(arguments: requests.indices)
    func `are exact for the size of a request`(index: Int) throws {
        let (name, fields, style) = Self.requests[index]
        let whole = try request(fields, style)
        let size = whole.text.utf8.count
        for byMemory in [false, true] {
            for allowed in (size - 12)...(size + 2) {
                var style = style
                if byMemory {
                    style.memoryBytes = allowed + RequestAssembler.overhead
                } else {
                    style.limits.headBytes = allowed
                }
                // Cookies that are apart have a line each until they are joined, and the place of
                // a path that comes before its method is not known.
                let margin = name == "cookies" ? 8 : 0
                let fault = fault {
                    let made = try request(fields, style)
                    #expect(made == whole)
                }
                if allowed < size {
                    #expect(fault == .headTooLarge, "\(name): \(allowed) of \(size)")
                } else if allowed >= size + margin {
                    #expect(fault == nil, "\(name): \(allowed) of \(size)")
                }
            }
        }
    }

    @Test func `are exact for the number of fields`() throws {
        var style = RequestStyle()
        style.limits.fields = 4
        let three = [("a", "1"), ("b", "2"), ("c", "3")]
        #expect(try request(pseudoFields(adding: three), style).text.contains("c: 3"))
        let more = pseudoFields(adding: three + [("d", "4")])
        #expect(fault { _ = try request(more, style) } == .tooManyFields)
        // The parts of a line of cookies are not lines.
        let cookies = Array(repeating: ("cookie", "a=b"), count: 20)
        let few = pseudoFields(adding: Array(three.dropLast()) + cookies)
        #expect(try request(few, style).text.contains("cookie: a=b; a=b;"))
        var limits = HeadLimits()
        limits.fields = 2
        let status = (":status", "200")
        let two = [status] + three.dropLast()
        #expect(try response(two, limits: limits).text == "HTTP/2.0 200 \r\na: 1\r\nb: 2\r\n\r\n")
        let response = fault { _ = try HTTP2Tests.response([status] + three, limits: limits) }
        #expect(response == .tooManyFields)
    }

    @Test func `are exact for methods and targets`() throws {
        var style = RequestStyle()
        style.limits.methodBytes = 5
        style.limits.targetBytes = 7
        for (method, path, expected) in [
            ("AAAAA", "/123456", nil), ("AAAAAA", "/", MessageError.methodTooLong),
            ("GET", "/1234567", .targetTooLong),
        ] {
            for order in permutations([(":method", method), (":path", path)]) {
                let fields = pseudoFields(without: ":method", ":path", adding: order)
                #expect(fault { _ = try request(fields, style) } == expected)
            }
        }
    }

    @Test func `are exact for the sizes of responses and trailers`() throws {
        let fields = [("x", "y"), ("z", "")]
        let head = try response([(":status", "200")] + fields).text
        let section = try trailers(fields)
        #expect(section == "x: y\r\nz: \r\n\r\n")
        for extra in -20...1 {
            var limits = HeadLimits()
            limits.headBytes = head.utf8.count + extra
            let response = fault {
                let made = try HTTP2Tests.response([(":status", "200")] + fields, limits: limits)
                #expect(made.text == head)
            }
            #expect(response == (extra < 0 ? .headTooLarge : nil))
            guard section.utf8.count + extra > 0 else { continue }
            let trailerLimits = ChunkedLimits(trailerBytes: section.utf8.count + extra)
            let trailers = fault {
                let made = try HTTP2Tests.trailers(fields, limits: trailerLimits)
                #expect(made == section)
            }
            #expect(trailers == (extra < 0 ? .trailersTooLarge : nil))
        }
    }

    /// Each field is a byte, and has four thousand: the head is refused, and no more is copied.
    @Test func `hold for blocks that expand`() throws {
        var decoder = HeaderDecoder()
        let value = String(repeating: "v", count: 4000)
        let start = block(pseudoFields()) + literal("cookie", value, pattern: 0x40)
        for name in ["cookie", "x"] {
            let field = literal(name, value, pattern: 0x40)
            let bomb = start + field + [UInt8](repeating: 0x80 | 62, count: 10_000)
            #expect(
                fault { _ = try request(bomb, RequestStyle(), by: &decoder) } == .headTooLarge)
        }
    }
}
