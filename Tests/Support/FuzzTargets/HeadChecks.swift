import HTTPCore
import PinfoldConfiguration
import Transformation

extension FuzzTarget {
    /// A request's head rewritten by rules of every kind is a valid head again, and rewriting it a
    /// second time does not change it unless something is added.
    func checkHead(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        guard isHead(bytes) else { return false }
        let once = try rewritten(bytes)
        guard isHead(once) else { throw FuzzCheckError("what was written is no head") }
        let twice = try rewritten(once)
        guard twice == (try rewritten(twice)) else {
            throw FuzzCheckError("a head that does not come to rest")
        }
        var ask = UpstreamRequestChange()
        ask.examinesContent = true
        ask.entityTags = EntityTagMapping(identity: "0123abcd")
        ask.accept = "application/json"
        let lines = Array(once.dropLast(2))
        guard let asked = ask.upstreamLines(lines.span) else { return true }
        guard isHead(asked + "\r\n".utf8) else { throw FuzzCheckError("what is asked is no head") }
        return true
    }

    private static let limits = HeadLimits(headBytes: 1 << 16, fields: 4096, targetBytes: 1 << 15)

    private func isHead(_ bytes: [UInt8]) -> Bool {
        var parser = RequestHeadParser(limits: Self.limits)
        var head = RequestHead()
        let progress = try? parser.parse(bytes.span, into: &head)
        return progress == .complete(headBytes: bytes.count)
    }

    private static let rules: RequestHeadRules = {
        var rules = RequestRules()
        rules.headers.remove = ["X-Debug", "Cookie"]
        rules.headers.rename = [NamedValue("X-Old", "X-New")]
        rules.headers.set = [NamedValue("X-Gateway", "pinfold")]
        rules.headers.defaults = [NamedValue("User-Agent", "Legacy/1.0")]
        rules.pathPrefixes = [PrefixReplacement("/v1", "/v2")]
        rules.query.remove = ["debug"]
        rules.query.rename = [NamedValue("old", "new")]
        rules.query.set = [NamedValue("key", "a b")]
        rules.cachePolicy = .reloadIgnoringCache
        return RequestHeadRules(rules)
    }()

    /// The head after the rules, and as the head of translated content.
    private func rewritten(_ bytes: [UInt8]) throws(FuzzCheckError) -> [UInt8] {
        var result = bytes
        for step in 0..<2 {
            var parser = RequestHeadParser(limits: Self.limits)
            var head = RequestHead()
            guard (try? parser.parse(result.span, into: &head)) != nil else {
                throw FuzzCheckError("what was written is no head, before step \(step)")
            }
            if step == 0 {
                let changed = try? Self.rules.head(rewriting: head, in: result.span, isSecure: true)
                result = (changed ?? nil) ?? result
            } else if head.form != .authority {
                result = RequestHeads.head(
                    replacingContentOf: head, in: result.span, contentType: "application/json",
                    length: 2)
            }
        }
        return result
    }
}
