import ContentCoding
import HTTPCore
import PinfoldConfiguration
import Testing

@testable import Transformation

@Suite("Random heads, rules and requests")
struct RandomHeadTests {
    private static let names = [
        "X-A", "x-a", "X-B", "Authorization", "Cache-Control", "Pragma", "Accept", "Content-Type",
        "Accept-Encoding", "If-None-Match", "If-Match", "If-Modified-Since", "Range", "If-Range",
        "ETag", "Vary", "Content-Encoding", "Digest", "TE", "Connection", "Keep-Alive", "Expect",
    ]
    private static let values = [
        "", "X-A", "close, X-B,, x-a", "no-store, x=\"no-transform\"", "\"a\", W/\"b-00c0ffee\"",
        "*", "gzip, *;q=0.5, zstd", "\"a,b-00c0ffee-gzip\"", "\u{FF}\u{80}", "a/b;c=\"d", "\"",
        "no-cache", "bytes=0-1", "trailers", "keep-alive", " , ,", "x\ty", "identity;q=0", "W/\"",
    ]
    private static let paths = [
        "/", "/a", "/a/b?c=d&e", "/a?", "http://h", "http://h?q=%zz&a+b", "https://h:1/a//?&&",
        "/ab?x-a=%41&%", "//?a=1&a=2",
    ]

    private func pick<Element>(_ list: [Element], _ random: inout SplitMix) -> Element {
        list[Int.random(in: 0..<list.count, using: &random)]
    }

    private func fields(_ random: inout SplitMix) -> [String] {
        (0..<Int.random(in: 0...8, using: &random)).map { _ in
            pick(Self.names, &random) + ":" + pick(["", " ", "\t "], &random)
                + pick(Self.values, &random)
        }
    }

    private func pairs(_ random: inout SplitMix, _ names: [String]) -> [NamedValue] {
        (0..<Int.random(in: 0...2, using: &random)).map { _ in
            NamedValue(pick(names, &random), pick(Self.values + names, &random))
        }
    }

    private func rules(_ random: inout SplitMix) -> RequestRules {
        var rules = RequestRules()
        rules.headers.remove = pairs(&random, Self.names).map(\.name)
        rules.headers.rename = pairs(&random, Self.names)
        rules.headers.set = pairs(&random, Self.names)
        rules.headers.add = pairs(&random, Self.names)
        rules.headers.defaults = pairs(&random, Self.names)
        rules.pathPrefixes = [PrefixReplacement("/a", pick(["/", "/b", "/ü/"], &random))]
        let parameters = ["a", "c", "x-a", "", "a b", "%"]
        rules.query.remove = pairs(&random, parameters).map(\.name)
        rules.query.rename = pairs(&random, parameters)
        rules.query.set = pairs(&random, parameters)
        rules.query.add = pairs(&random, parameters)
        rules.query.defaults = pairs(&random, parameters)
        rules.cachePolicy = pick(RequestCachePolicy.allCases, &random)
        return rules
    }

    /// What no rule may change.
    private struct Kept: Equatable {
        let host: String
        let framing: BodyFraming
        let keepsAlive: Bool
        let expectsContinue: Bool
        let acceptsTrailers: Bool
        let form: TargetForm

        init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) {
            host = bytes.text(at: head.authority)
            framing = head.framing
            keepsAlive = head.keepAlive
            expectsContinue = head.expectsContinue
            acceptsTrailers = head.acceptsTrailers
            form = head.form
        }
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func `whatever is rewritten is a head again, framed and sent to the same host`(
        seed: UInt64
    ) throws {
        var random = SplitMix(state: seed)
        var count = 0
        for round in 0..<1500 {
            let lines =
                ["\(pick(["GET", "POST", "M"], &random)) \(pick(Self.paths, &random)) HTTP/1.1"]
                + fields(&random) + ["Host: h", pick(["A: b", "Content-Length: 2"], &random)]
            let bytes = headBytes(lines)
            // Some are invalid: an unknown expectation, a Connection that is not a list.
            guard isRequest(bytes) else { continue }
            count += 1
            try check(
                bytes, RequestHeadRules(rules(&random)),
                Comment(rawValue: "seed \(seed), round \(round): \(lines)"))
        }
        #expect(count > 500)
    }

    private func isRequest(_ bytes: [UInt8]) -> Bool {
        var parser = RequestHeadParser(limits: wide)
        var head = RequestHead()
        do {
            return try parser.parse(bytes.span, into: &head) == .complete(headBytes: bytes.count)
        } catch {
            return false
        }
    }

    private func check(_ bytes: [UInt8], _ rules: RequestHeadRules, _ comment: Comment) throws {
        let new = try withRequest(bytes) { head, span in
            try rules.head(rewriting: head, in: span, isSecure: true)
        }
        let kept = try withRequest(bytes) { head, span in Kept(head, span) }
        if let new {
            #expect(new != bytes, comment)
            let keptOfNew = try withRequest(new) { head, span in Kept(head, span) }
            #expect(keptOfNew == kept, comment)
        }
        try checkContentHead(new ?? bytes, comment)
        try checkUpstream(new ?? bytes, comment)
    }

    private func checkContentHead(_ bytes: [UInt8], _ comment: Comment) throws {
        let new = try withRequest(bytes) { head, span in
            RequestHeads.head(
                replacingContentOf: head, in: span, contentType: "a/b", length: 3, query: "q=1")
        }
        let (framing, query) = try withRequest(new) { head, span in
            (head.framing, span.text(at: head.path).hasSuffix("q=1"))
        }
        #expect(framing == .length(3), comment)
        #expect(query, comment)
    }

    private func checkUpstream(_ bytes: [UInt8], _ comment: Comment) throws {
        var asks = UpstreamRequestChange()
        asks.examinesContent = true
        asks.entityTags = EntityTagMapping(identity: "00c0ffee")
        let lines = Array(bytes.dropLast(2))
        let asked = asks.upstreamLines(lines.span) ?? lines
        let hasRange = try withRequest(asked + [0x0D, 0x0A]) { head, _ in
            head.fields.contains(.range) || head.fields.contains(.ifRange)
        }
        #expect(!hasRange, comment)
        // A second application changes nothing, except for tags, which are now the origin's.
        asks.entityTags = nil
        let again = asks.upstreamLines(asked.span)
        #expect(again == nil, comment)
    }

    @Test(arguments: [5, 6] as [UInt64])
    func `a changed response is a head again, of the announced length`(
        seed: UInt64
    ) throws {
        var random = SplitMix(state: seed)
        for round in 0..<1500 {
            let lines = ["HTTP/1.1 \(pick([200, 304, 404, 204], &random)) x"] + fields(&random)
            let bytes = headBytes(lines)
            guard isResponse(bytes) else { continue }
            try checkResponse(
                bytes, changes(&random),
                Comment(rawValue: "seed \(seed), round \(round): \(lines)"))
        }
    }

    private func changes(_ random: inout SplitMix) -> ResponseHeadChange {
        var change = ResponseHeadChange(changesContent: Bool.random(using: &random), length: 5)
        change.contentType = "a/b"
        change.contentEncoding = .replaced(pick(ContentCoding.allCases, &random))
        change.entityTags = EntityTagMapping(identity: "00c0ffee")
        change.dependsOnAcceptEncoding = Bool.random(using: &random)
        return change
    }

    private func checkResponse(
        _ bytes: [UInt8], _ change: ResponseHeadChange, _ comment: Comment
    ) throws {
        let new = try withResponse(bytes) { head, span in change.head(of: head, in: span) }
        let (framing, status) = try withResponse(new) { head, _ in (head.framing, head.status) }
        #expect(framing == (status == 204 || status == 304 ? .none : .length(5)), comment)
        let again = try withResponse(new) { head, span in change.head(of: head, in: span) }
        // Apart from the tag, which gets another suffix, nothing changes twice.
        let lines = try headLines(new).filter { !$0.hasPrefix("ETag") }
        #expect(try headLines(again).filter { !$0.hasPrefix("ETag") } == lines, comment)
    }

    private func isResponse(_ bytes: [UInt8]) -> Bool {
        var parser = ResponseHeadParser(limits: wide)
        var head = ResponseHead()
        do {
            return try parser.parse(
                bytes.span, answering: ResponseContext(method: .get), into: &head)
                == .complete(headBytes: bytes.count)
        } catch {
            return false
        }
    }
}
