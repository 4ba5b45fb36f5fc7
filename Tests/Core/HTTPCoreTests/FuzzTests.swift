import HTTPCore
import TestSupport
import Testing

/// The contract: any bytes are accepted or refused with a typed error, never a trap; how they are
/// split changes nothing; and what is accepted means the same once written and parsed again.
@Suite("Any bytes")
struct FuzzTests {
    private static let requests = [
        "GET / HTTP/1.1\r\nHost: example.com\r\nUser-Agent: curl/8\r\nAccept: */*\r\n\r\n",
        "GET http://a.example:81/x?y HTTP/1.1\r\nHost: b\r\nConnection: keep-alive, x-a\r\n"
            + "X-A: 1\r\nTE: trailers\r\n\r\n",
        "POST /p HTTP/1.1\r\nHost: [::1]:8080\r\nContent-Length: 12\r\n"
            + "Expect: 100-continue\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\nTrailer: x\r\n\r\n",
        "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nProxy-Connection: close\r\n\r\n",
        "OPTIONS * HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
    ]
    private static let responses = [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n",
        "HTTP/1.0 404 Not Found\r\nConnection: keep-alive\r\nServer:\r\n\r\n",
        "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\nConnection: x, close\r\nX: \t1\t\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 5\nX: y\n\n", "HTTP/1.0 302\nLocation: /\n\n",
    ]
    private static let bodies = [
        "5\r\nhello\r\n0\r\n\r\n", "5;a=b;c=\"d\\\"e\"\r\nhello\r\n00\r\nX-Sum: 1\r\nY: 2\r\n\r\n",
        "a\r\n0123456789\r\n1\r\nx\r\n0;z\r\nETag: \"q\"\r\n\r\n",
        "5; a = b ;c\r\nhello\r\n0\t;\td=\t\"e\"\r\nKeep_Alive: x\r\n\r\n",
    ]
    /// Bytes and fragments that are significant in the grammar.
    private static let pieces = [
        "\r", "\n", "\r\n", " ", "\t", ":", ",", ";", "\0", "#", "?", "/", "@", "[", "]", "0", "9",
        "f", "\u{7F}", "\u{80}", "\u{FF}", "=", "\"", "\\", "%", "*", "\r\n\r\n", "\r\n ",
        "chunked",
        "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "Host: a\r\n", "HTTP/1.1",
        "Transfer_Encoding: chunked\r\n", "X: y\n", "\n\n", "%41", "a=b",
        "Connection: host\r\n", "18446744073709551616", "8000000000000000", "://", "0x", "::",
    ].map(latin1)

    private func mutate(_ seed: [UInt8], _ random: inout SeededRandom) -> [UInt8] {
        var bytes = seed
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            let position = Int.random(in: 0...bytes.count, using: &random)
            let end = min(bytes.count, position + Int.random(in: 0...8, using: &random))
            switch Int.random(in: 0..<6, using: &random) {
            case 0 where position < bytes.count:
                bytes[position] = UInt8.random(in: 0...255, using: &random)
            case 1 where position < bytes.count:
                bytes[position] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 2: bytes.removeSubrange(position..<end)
            case 3: bytes.insert(contentsOf: Array(bytes[position..<end]), at: position)
            case 4: bytes.removeSubrange(end...)
            default:
                let piece = Self.pieces.randomElement(using: &random) ?? []
                bytes.insert(contentsOf: piece, at: position)
            }
        }
        return bytes
    }

    @Test(arguments: 1...4)
    func `requests are accepted or refused, and splitting changes nothing`(seed: UInt64) {
        var random = SeededRandom(seed: seed &* 0x9E37_79B9_7F4A_7C15)
        let limits = HeadLimits(headBytes: 200, fields: 6, targetBytes: 60, connectionOptions: 3)
        var counts = (accepted: 0, refused: 0)
        var head = RequestHead()
        for _ in 0..<2500 {
            let bytes = mutate(
                latin1(Self.requests.randomElement(using: &random) ?? ""), &random)
            for limits in [limits, HeadLimits()] {
                let whole = parseRequest(bytes, limits: limits, reusing: &head)
                counts.accepted += whole.isComplete ? 1 : 0
                counts.refused += whole.error != nil ? 1 : 0
                if whole.isComplete { checkRoundTrip(head, bytes) }
                let splittings: [Splitting] = [
                    .byteByByte, .at(Int.random(in: 0...bytes.count, using: &random)),
                ]
                for splitting in splittings {
                    let split = parseRequest(bytes, splitting, limits: limits, reusing: &head)
                    if split != whole { Issue.record("\(bytes) \(splitting) \(split) \(whole)") }
                }
            }
        }
        #expect(counts.accepted > 500 && counts.refused > 500, "\(counts)")
    }

    /// Forwards an accepted head, and parses what was written.
    private func checkRoundTrip(_ head: borrowing RequestHead, _ bytes: [UInt8]) {
        guard head.method != .connect, head.hostKind != .none else { return }
        let text = withUnsafeTemporaryAllocation(byteCount: 2048, alignment: 1) { memory in
            var writer = HeadWriter(memory)
            writer.appendMethod(of: head, in: bytes.span)
            writer.append(" ")
            writer.appendOriginForm(of: head, in: bytes.span)
            writer.append(" HTTP/1.1\r\nHost: ")
            if head.hostKind == .ipv6 { writer.append("[") }
            writer.append(bytes.span.extracting(Int(head.host.start)..<Int(head.host.end)))
            if head.hostKind == .ipv6 { writer.append("]") }
            if head.port != head.scheme.defaultPort { writer.append(text: ":\(head.port)") }
            writer.appendLineEnd()
            writer.appendForwardedFields(
                head.fields, of: bytes.span, omitting: FieldIDSet(.host))
            if head.framing == .chunked { writer.append(field: .transferEncoding, "chunked") }
            writer.appendLineEnd()
            return Array(memory[..<writer.count])
        }
        var again = RequestHead()
        let outcome = parseRequest(text, limits: HeadLimits(headBytes: 4096), reusing: &again)
        guard outcome.isComplete, again.length == text.count else {
            Issue.record("\(bytes) was forwarded as \(text): \(outcome)")
            return
        }
        let sameHost =
            text.span.text(at: again.host) == bytes.span.text(at: head.host)
            && again.hostKind == head.hostKind
            && (again.port == head.port || head.scheme == .https)
        let dropped = FieldIDSet.hopByHop.union(FieldIDSet(.host))
        let kept = head.fields.filter { !dropped.contains($0.id) && !$0.isNominated }
        let keptAgain = again.fields.filter { !dropped.contains($0.id) }
        let sameFields =
            kept.count == keptAgain.count
            && zip(kept, keptAgain).allSatisfy {
                $0.id == $1.id
                    && bytes.span.text(at: $0.name) == text.span.text(at: $1.name)
                    && bytes.span.text(at: $0.value) == text.span.text(at: $1.value)
            }
        if again.method != head.method || again.framing != head.framing || !sameHost || !sameFields
        {
            Issue.record("\(bytes) was forwarded as \(text), which means something else")
        }
    }

    @Test(arguments: 1...4)
    func `responses are accepted or refused, and splitting changes nothing`(seed: UInt64) {
        var random = SeededRandom(seed: seed &* 0xD1B5_4A32_D192_ED03)
        var counts = (accepted: 0, refused: 0)
        for _ in 0..<1500 {
            let bytes = mutate(
                latin1(Self.responses.randomElement(using: &random) ?? ""), &random)
            let method = HTTPCore.Method.allCases.randomElement(using: &random) ?? .get
            let context = ResponseContext(method: method, allowsSwitch: Bool.random(using: &random))
            for limits in [HeadLimits(headBytes: 80, fields: 2), HeadLimits()] {
                let whole = parseResponse(bytes, .whole, context, limits)
                counts.accepted += whole.isComplete ? 1 : 0
                counts.refused += whole.error != nil ? 1 : 0
                let split = parseResponse(bytes, .byteByByte, context, limits)
                if split != whole { Issue.record("\(bytes) \(split) \(whole)") }
            }
        }
        #expect(counts.accepted > 300 && counts.refused > 300, "\(counts)")
    }

    @Test(arguments: 1...4)
    func `chunked bodies are accepted or refused, and splitting changes nothing`(seed: UInt64) {
        var random = SeededRandom(seed: seed &* 0xA076_1D64_78BD_642F)
        let limits = ChunkedLimits(extensionBytes: 12, trailerBytes: 20, trailerFields: 2)
        var counts = (accepted: 0, refused: 0)
        for _ in 0..<1500 {
            let bytes = mutate(latin1(Self.bodies.randomElement(using: &random) ?? ""), &random)
            for limits in [limits, ChunkedLimits()] {
                let whole = decodeBody(bytes, .chunked, piece: bytes.count + 1, limits: limits)
                counts.accepted += whole.isComplete ? 1 : 0
                counts.refused += whole.error != nil ? 1 : 0
                for piece in [1, 2, Int.random(in: 3...9, using: &random)] {
                    let split = decodeBody(bytes, .chunked, piece: piece, limits: limits)
                    if split != whole { Issue.record("\(bytes) by \(piece): \(split) \(whole)") }
                }
            }
        }
        #expect(counts.accepted > 150 && counts.refused > 600, "\(counts)")
    }

    @Test func `bytes without any structure are safe`() {
        var random = SeededRandom(seed: 0xBEEF)
        for _ in 0..<2000 {
            let count = Int.random(in: 0...64, using: &random)
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
            #expect(!parseRequest(bytes).isComplete)
            let context = ResponseContext(method: .get)
            #expect(!parseResponse(bytes, .whole, context, HeadLimits()).isComplete)
            let body = decodeBody(bytes, .chunked, piece: 7)
            #expect(body.consumed <= count)
            #expect(HTTPDate.parse(bytes.span, now: 0) == nil)
        }
    }
}
