import Testing

@testable import RedisProtocol

@Suite("What is too much in a reply of Redis")
struct RESPLimitTests {
    private static let small: RESPLimits = {
        var limits = RESPLimits()
        limits.lineBytes = 4
        limits.bulkBytes = 10
        limits.depth = 2
        limits.elements = 5
        limits.replyBytes = 12
        return limits
    }()

    /// What is just allowed, what is just not, and why not.
    private static let cases: [(allowed: String, refused: String, RESPError)] = [
        ("+abcd\r\n", "+abcde\r\n", .lineTooLong(limit: 4)),
        ("$0010\r\n0123456789\r\n", "$00010\r\n", .lineTooLong(limit: 4)),
        ("*0000\r\n", "*00000\r\n", .lineTooLong(limit: 4)),
        ("$10\r\n0123456789\r\n", "$11\r\n", .bulkTooLong(limit: 10)),
        (
            "$?\r\n;9\r\n012345678\r\n;1\r\n9\r\n;0\r\n",
            "$?\r\n;9\r\n012345678\r\n;2\r\n", .bulkTooLong(limit: 10)
        ),
        ("*1\r\n*0\r\n", "*1\r\n*1\r\n*0\r\n", .tooDeep(limit: 2)),
        ("*?\r\n*?\r\n.\r\n.\r\n", "*?\r\n*?\r\n*?\r\n", .tooDeep(limit: 2)),
        ("*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n", "*5\r\n", .tooManyElements(limit: 5)),
        ("%2\r\n:1\r\n:1\r\n:1\r\n:1\r\n", "%3\r\n", .tooManyElements(limit: 5)),
        (
            "*?\r\n:1\r\n:1\r\n:1\r\n:1\r\n.\r\n", "*?\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n",
            .tooManyElements(limit: 5)
        ),
        (
            "*2\r\n$6\r\n012345\r\n$6\r\n012345\r\n", "*2\r\n$6\r\n012345\r\n$7\r\n",
            .replyTooLong(limit: 12)
        ),
        (
            "*2\r\n$?\r\n;6\r\n012345\r\n;0\r\n$6\r\n012345\r\n",
            "*2\r\n$?\r\n;6\r\n012345\r\n;0\r\n$?\r\n;7\r\n0123456\r\n",
            .replyTooLong(limit: 12)
        ),
        (
            "*3\r\n+abcd\r\n+abcd\r\n+abcd\r\n", "*4\r\n+abcd\r\n+abcd\r\n+abcd\r\n+a\r\n",
            .replyTooLong(limit: 12)
        ),
        // What is said about a reply counts with it.
        (
            "|1\r\n:1\r\n:1\r\n*1\r\n:1\r\n", "|1\r\n:1\r\n:1\r\n*2\r\n",
            .tooManyElements(limit: 5)
        ),
    ]

    @Test func `is refused, and just less is not`() {
        for (allowed, refused, error) in Self.cases {
            for feeding in Feeding.each(allowed, limits: Self.small) {
                #expect(feeding.error == nil, "\(allowed)")
                #expect(feeding.items.count == 1, "\(allowed)")
            }
            for feeding in Feeding.each(refused, limits: Self.small) {
                #expect(feeding.error == error, "\(refused)")
            }
        }
    }

    @Test func `is counted anew for each reply`() {
        let two = "*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n$10\r\n0123456789\r\n"
        let text = String(repeating: two, count: 9)
        for feeding in Feeding.each(text, limits: Self.small) {
            #expect(feeding.error == nil)
            #expect(feeding.items.count == 18)
        }
    }

    @Test func `is counted anew after each message`() {
        let text = String(repeating: ">2\r\n$6\r\n012345\r\n$6\r\n012345\r\n", count: 9)
        for feeding in Feeding.each(text, limits: Self.small) {
            #expect(feeding.error == nil)
            #expect(feeding.items.count == 9)
        }
    }

    @Test func `does not count if it is read in pieces`() {
        var limits = Self.small
        limits.bulkBytes = 100
        let long = String(repeating: "x", count: 100)
        for feeding in Feeding.each("$100\r\n\(long)\r\n", limits: limits, streams: true) {
            #expect(feeding.items == [.streamed(Array(long.utf8))])
        }
        for feeding in Feeding.each("$100\r\n\(long)\r\n", limits: limits) {
            #expect(feeding.error == .replyTooLong(limit: 12))
        }
    }
}
