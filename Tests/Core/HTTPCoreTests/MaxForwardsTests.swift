import HTTPCore
import Testing

/// RFC 9110 §7.6.2.
@Suite("Max-Forwards (RFC 9110 §7.6.2)")
struct MaxForwardsTests {
    @Test(
        arguments: [
            ("0", nil), ("1", 0), ("3", 2), ("010", 9), ("000", nil),
            ("4294967295", 4_294_967_294), ("4294967296", 4_294_967_295),
            ("4294967297", 4_294_967_295), ("99999999999", 4_294_967_295),
            (String(repeating: "9", count: 400), 4_294_967_295),
            (String(repeating: "0", count: 400), nil),
        ] as [(String, UInt64?)])
    func `the value sent on is one less, and the maximum at most`(
        text: String, forwarded: UInt64?
    ) throws {
        let bytes = Array(text.utf8)
        let alone = MaxForwards(bytes.span)
        #expect(try #require(alone).forwarded == forwarded)
        for method in ["TRACE", "OPTIONS"] {
            let head = "\(method) / HTTP/1.1\r\nHost: a\r\nMax-Forwards:\(text)\r\n\r\n"
            let read = Array(head.utf8)
            let inHead = try requestHead(head).maxForwards(in: read.span)
            #expect(try #require(inHead).forwarded == forwarded)
        }
    }

    @Test(arguments: ["", "-1", "+1", "1.5", "1, 0", "1,1", "a", "1 1", "0x1", "1;a", "\u{B2}"])
    func `what is no number is refused where forwards are counted`(value: String) {
        let bytes = Array(value.utf8)
        let alone = MaxForwards(bytes.span)
        #expect(alone == nil)
        let fields = "Host: a\r\nMax-Forwards: \(value)\r\n\r\n"
        for method in ["TRACE", "OPTIONS"] {
            #expect(
                requestOutcome("\(method) / HTTP/1.1\r\n\(fields)").error == .malformedMaxForwards)
        }
        for method in ["GET", "HEAD", "POST", "trace"] {
            #expect(requestOutcome("\(method) / HTTP/1.1\r\n\(fields)").isComplete)
        }
    }

    @Test(arguments: ["0", "1", "", "a"])
    func `several are refused where forwards are counted, even equal ones`(second: String) throws {
        let fields = "Host: a\r\nMax-Forwards: 1\r\nX: y\r\nmax-forwards: \(second)\r\n\r\n"
        for method in ["TRACE", "OPTIONS"] {
            #expect(
                requestOutcome("\(method) / HTTP/1.1\r\n\(fields)").error == .repeatedMaxForwards)
        }
        let get = "GET / HTTP/1.1\r\n\(fields)"
        let bytes = Array(get.utf8)
        let left = try requestHead(get).maxForwards(in: bytes.span)
        #expect(left == nil)
    }

    @Test func `a request without the field counts nothing`() throws {
        let text = "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n"
        let bytes = Array(text.utf8)
        let left = try requestHead(text).maxForwards(in: bytes.span)
        #expect(left == nil)
    }
}
