import TestSupport
import Testing

@testable import RedisProtocol

/// What a server sends, and what it is.
private let replies: [(String, RESPValue)] = [
    ("+OK\r\n", .word("OK")),
    ("+\r\n", .word("")),
    ("-ERR no\r\n", .failing("ERR no")),
    (":0\r\n", .integer(0)),
    (":+7\r\n", .integer(7)),
    (":-12\r\n", .integer(-12)),
    (":9223372036854775807\r\n", .integer(.max)),
    (":-9223372036854775808\r\n", .integer(.min)),
    ("_\r\n", .null),
    ("$-1\r\n", .null),
    ("*-1\r\n", .null),
    ("#t\r\n", .boolean(true)),
    ("#f\r\n", .boolean(false)),
    (",1.5\r\n", .double(1.5)),
    (",-10\r\n", .double(-10)),
    (",+.5e1\r\n", .double(5)),
    (",2E-1\r\n", .double(0.2)),
    (",inf\r\n", .double(.infinity)),
    (",-inf\r\n", .double(-.infinity)),
    (
        "(-3492890328409238509324850943850943825024385\r\n",
        .bigNumber(Array("-3492890328409238509324850943850943825024385".utf8))
    ),
    ("$0\r\n\r\n", .string("")),
    ("$5\r\nhe\r\no\r\n", .string("he\r\no")),
    ("$000000005\r\nhello\r\n", .string("hello")),
    ("$0000000005\r\nhello\r\n", .string("hello")),
    ("!8\r\nERR a\r\nb\r\n", .failing("ERR a\r\nb")),
    ("=8\r\ntxt:Some\r\n", .verbatim(format: Array("txt".utf8), Array("Some".utf8))),
    ("=4\r\nmkd:\r\n", .verbatim(format: Array("mkd".utf8), [])),
    ("*0\r\n", .array([])),
    ("~0\r\n", .set([])),
    ("%0\r\n", .map([])),
    ("*3\r\n:1\r\n$1\r\na\r\n_\r\n", .array([.integer(1), .string("a"), .null])),
    ("*2\r\n*1\r\n*0\r\n*0\r\n", .array([.array([.array([])]), .array([])])),
    ("~2\r\n+a\r\n#t\r\n", .set([.word("a"), .boolean(true)])),
    (
        "%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n*1\r\n:2\r\n",
        .map([RESPEntry("a", .integer(1)), RESPEntry("b", .array([.integer(2)]))])
    ),
    ("$?\r\n;0\r\n", .string("")),
    ("$?\r\n;4\r\nHell\r\n;1\r\no\r\n;0\r\n", .string("Hello")),
    ("*?\r\n.\r\n", .array([])),
    ("*?\r\n:1\r\n*?\r\n:2\r\n.\r\n.\r\n", .array([.integer(1), .array([.integer(2)])])),
    ("~?\r\n:1\r\n.\r\n", .set([.integer(1)])),
    ("%?\r\n+a\r\n:1\r\n.\r\n", .map([RESPEntry(key: .word("a"), value: .integer(1))])),
    ("|1\r\n+ttl\r\n:3\r\n$1\r\na\r\n", .string("a")),
    ("|0\r\n:1\r\n", .integer(1)),
    ("*2\r\n|1\r\n+a\r\n*1\r\n:9\r\n:1\r\n:2\r\n", .array([.integer(1), .integer(2)])),
    ("*?\r\n|1\r\n+a\r\n+b\r\n:1\r\n.\r\n", .array([.integer(1)])),
]

/// What is no reply, and why not.
private let malformed: [(String, RESPError)] = [
    ("HTTP/1.1 400\r\n", .unknownType(UInt8(ascii: "H"))),
    ("\r\n", .unknownType(0x0D)),
    ("+OK\n", .malformedLineEnd),
    ("+O\rK\r\n", .malformedLineEnd),
    (":\r\n", .malformedInteger),
    (":-\r\n", .malformedInteger),
    (":1a\r\n", .malformedInteger),
    (": 1\r\n", .malformedInteger),
    (":9223372036854775808\r\n", .malformedInteger),
    (":-9223372036854775809\r\n", .malformedInteger),
    (",\r\n", .malformedDouble),
    (",.\r\n", .malformedDouble),
    (",0x1p3\r\n", .malformedDouble),
    (",infinity\r\n", .malformedDouble),
    (",1e\r\n", .malformedDouble),
    (",1 \r\n", .malformedDouble),
    ("(\r\n", .malformedBigNumber),
    ("(1.0\r\n", .malformedBigNumber),
    ("#\r\n", .malformedBoolean),
    ("#true\r\n", .malformedBoolean),
    ("_x\r\n", .malformedNull),
    ("$\r\n", .malformedLength),
    ("$-2\r\n", .malformedLength),
    ("$+1\r\n", .malformedLength),
    ("$99999999999999999999\r\n", .malformedLength),
    ("!-1\r\n", .malformedLength),
    ("!?\r\n", .malformedLength),
    ("=?\r\n", .malformedLength),
    ("=3\r\n", .malformedVerbatim),
    ("=4\r\ntxt.\r\n", .malformedVerbatim),
    ("*-2\r\n", .malformedLength),
    ("%-1\r\n", .malformedLength),
    ("~-1\r\n", .malformedLength),
    (">?\r\n", .malformedLength),
    ("|?\r\n", .malformedLength),
    ("$1\r\nab\r\n", .malformedBulkEnd),
    ("$1\r\na\rb", .malformedBulkEnd),
    ("$0\r\nx", .malformedBulkEnd),
    ("$?\r\n+a\r\n", .misplacedPart),
    ("$?\r\n;-1\r\n", .malformedLength),
    (";1\r\n", .misplacedPart),
    (".\r\n", .misplacedEnd),
    ("*1\r\n.\r\n", .misplacedEnd),
    ("%?\r\n+a\r\n.\r\n", .misplacedEnd),
    ("*?\r\n|0\r\n.\r\n", .misplacedEnd),
    ("*?\r\n.x\r\n", .malformedNull),
    ("*1\r\n>1\r\n", .misplacedPush),
]

@Suite("Replies of Redis")
struct RESPReaderTests {
    @Test func `are read the same however they arrive`() {
        for (text, value) in replies {
            for feeding in Feeding.each(text) {
                #expect(feeding.items == [.reply(value)], "\(text)")
                #expect(feeding.error == nil, "\(text)")
                #expect(feeding.isBetweenReplies, "\(text)")
            }
        }
    }

    @Test func `may have more values than there is room for at first`() {
        for count in [63, 64, 65, 1000] {
            let numbers = (0..<Int64(count)).map { $0 }
            let values = numbers.map { ":\($0)\r\n" }.joined()
            let entries = numbers.map { "+k\($0)\r\n:\($0)\r\n" }.joined()
            for feeding in Feeding.each("*\(count)\r\n\(values)%\(count)\r\n\(entries)") {
                let array = RESPValue.array(numbers.map { .integer($0) })
                let map = RESPValue.map(
                    numbers.map { RESPEntry(key: .word("k\($0)"), value: .integer($0)) })
                #expect(feeding.items == [.reply(array), .reply(map)])
                #expect(feeding.error == nil)
            }
        }
    }

    @Test func `are not complete before their last byte`() {
        for (text, _) in replies {
            let bytes = Array(text.utf8)
            for count in 1..<bytes.count {
                let feeding = Feeding(Array(bytes[..<count]), inPiecesOf: 1, streams: false)
                #expect(feeding.items.isEmpty, "\(text) to \(count)")
                #expect(feeding.error == nil, "\(text) to \(count)")
                #expect(!feeding.isBetweenReplies, "\(text) to \(count)")
            }
        }
    }

    @Test func `follow each other without anything between`() {
        let text = replies.map(\.0).joined()
        for feeding in Feeding.each(text) {
            #expect(feeding.items == replies.map { .reply($0.1) })
            #expect(feeding.error == nil)
        }
    }

    @Test func `are refused if they are malformed`() {
        for (text, error) in malformed {
            for feeding in Feeding.each(text) {
                #expect(feeding.items.isEmpty, "\(text)")
                #expect(feeding.error == error, "\(text)")
                #expect(!feeding.isBetweenReplies, "\(text)")
            }
        }
    }

    @Test func `are refused again after the first error`() {
        var parser = RESPParser()
        let bytes = Array("?+OK\r\n".utf8)
        for _ in 0..<3 {
            var position = 0
            var found: RESPError?
            do throws(RESPError) {
                _ = try parser.next(bytes.span, at: &position)
            } catch {
                found = error
            }
            #expect(found == .unknownType(UInt8(ascii: "?")))
        }
    }

    @Test func `have a number that is none`() {
        for feeding in Feeding.each(",nan\r\n") {
            guard case .reply(.double(let number))? = feeding.items.first else {
                Issue.record("\(feeding)")
                continue
            }
            #expect(number.isNaN)
        }
    }

    @Test func `come between messages that answer nothing`() {
        let text =
            ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n+OK\r\n"
            + ">3\r\n+message\r\n+c\r\n+x\r\n>0\r\n:1\r\n"
        for feeding in Feeding.each(text) {
            #expect(
                feeding.items == [
                    .push([.string("invalidate"), .array([.string("k")])]), .reply(.word("OK")),
                    .push([.word("message"), .word("c"), .word("x")]), .push([]),
                    .reply(.integer(1)),
                ])
        }
    }

    @Test func `are read in pieces only if they are strings of their own`() {
        let text = "$5\r\nhello\r\n*1\r\n$1\r\na\r\n$?\r\n;2\r\nhe\r\n;0\r\n+x\r\n$-1\r\n$0\r\n\r\n"
        for feeding in Feeding.each(text, streams: true) {
            #expect(
                feeding.items == [
                    .streamed(Array("hello".utf8)), .reply(.array([.string("a")])),
                    .streamed(Array("he".utf8)), .reply(.word("x")), .reply(.null),
                    .streamed([]),
                ])
        }
    }

    @Test func `say where the bytes of a string are`() throws {
        var reader = RESPReader()
        let bytes = Array("$5\r\nhello\r\n:1\r\n".utf8)
        var position = 0
        var events: [RESPReader.Event] = []
        while let event = try reader.next(bytes.span, at: &position, streamsBulk: true) {
            events.append(event)
        }
        #expect(
            events == [
                .bulkBegins(count: 5), .bulkBytes(4..<9), .bulkEnds, .reply(.integer(1)),
            ])
        #expect(position == bytes.count)
    }

    @Test func `that look random are read or refused, and never more than was sent`() {
        var random = SeededRandom(seed: 43)
        let alphabet = Array("+-:_#,($!=*~%>|;.?0123tf\r\n\r\n\r\n".utf8)
        var read = 0
        for _ in 0..<3000 {
            let bytes = (0..<random.below(60)).map { _ in random.pick(alphabet) }
            let whole = Feeding(bytes, inPiecesOf: max(1, bytes.count), streams: false)
            #expect(Feeding(bytes, inPiecesOf: 1, streams: false) == whole, "\(bytes)")
            read += whole.items.count
        }
        #expect(read > 0)
    }
}
