import HTTP2
import HTTPCore

// The first byte of each selects how the message is read; the header block follows.
extension FuzzTarget {
    /// A request that is accepted has no control characters but line ends; the parser of HTTP/1
    /// reads the same fields and the same length from it, or refuses it; and it is the same after
    /// it has been encoded and read again.
    func checkRequestMessage(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        guard let selector = bytes.first else { return false }
        let reading = RequestReading(selector)
        guard let (head, facts) = reading.read(Array(bytes.dropFirst())) else { return false }
        let start = head.firstIndex(of: 0x0A).map { $0 + 1 } ?? 0
        let line = Array(head[..<start])
        guard head.count <= reading.limits.headBytes, Self.isSection(Array(head[start...])),
            line.suffix(11) == Array(" HTTP/2.0\r\n".utf8),
            line.dropLast(2).allSatisfy({ (0x20..<0x7F).contains($0) }),
            line.count(where: { $0 == 0x20 }) == 2
        else { throw FuzzCheckError("\(head) was assembled") }
        guard let parsed = reading.parse(head) else { return true }
        guard facts.kind == .ordinary else { return true }
        guard parsed.framing == facts.contentLength.map({ .length(UInt64($0)) }) ?? .none,
            parsed.fields.only(.host) != nil
        else { throw FuzzCheckError("\(head) has the content \(parsed.framing)") }
        try reading.checkAgain(head, parsed, fieldsStart: start, facts)
        return true
    }

    /// The same for a response.
    func checkResponseMessage(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        guard let selector = bytes.first else { return false }
        let endsStream = selector & 1 != 0
        guard let (head, facts) = Self.response(Array(bytes.dropFirst()), endsStream) else {
            return false
        }
        let line = Array("HTTP/2.0 \(facts.status) \r\n".utf8)
        guard head.starts(with: line), Self.isSection(Array(head[line.count...])),
            facts.status != 101, (100...999).contains(facts.status)
        else { throw FuzzCheckError("\(head) was assembled") }
        var http1 = head
        http1[5] = 0x31
        http1[7] = 0x31
        var parser = ResponseHeadParser()
        var parsed = ResponseHead()
        let context = ResponseContext(method: .get, repairsLines: false)
        if let progress = try? parser.parse(http1.span, answering: context, into: &parsed) {
            guard progress == .complete(headBytes: head.count), parsed.status == facts.status else {
                throw FuzzCheckError("\(head) is read as \(progress)")
            }
        }
        let lines = Array(head[line.count...].dropLast(2))
        var encoder = HeaderEncoder()
        let block = try Self.encoded(lines.count) { writer in
            encoder.encodeResponse(status: facts.status, lines: lines.span, into: &writer)
        }
        guard let (again, _) = Self.response(block, endsStream), again == head else {
            throw FuzzCheckError("\(head) is another response when it was encoded")
        }
        return true
    }

    private static func response(
        _ block: [UInt8], _ endsStream: Bool
    ) -> (head: [UInt8], facts: AssembledResponse)? {
        let limits = HeadLimits()
        var memory = [UInt8](
            repeating: 0xEE, count: limits.headBytes + ResponseAssembler.overhead)
        var decoder = HeaderDecoder()
        let facts = memory.withUnsafeMutableBytes { memory -> AssembledResponse? in
            var assembler = ResponseAssembler(memory, limits: limits)
            guard (try? decoder.decode(block.span, into: &assembler)) != nil else { return nil }
            return try? assembler.finish(endsStream: endsStream)
        }
        return facts.map { (Array(memory[..<$0.count]), $0) }
    }
}

/// How a request is read.
private struct RequestReading {
    let style: RequestAssembler.TargetStyle
    let isSecure: Bool
    let endsStream: Bool
    let limits: HeadLimits

    init(_ selector: UInt8) {
        style = selector & 1 == 0 ? .origin : .absolute
        isSecure = selector & 2 == 0
        endsStream = selector & 4 != 0
        limits =
            selector & 8 == 0
            ? HeadLimits() : HeadLimits(headBytes: 200, fields: 4, targetBytes: 30, methodBytes: 8)
    }

    func read(_ block: [UInt8]) -> (head: [UInt8], facts: AssembledRequest)? {
        var memory = [UInt8](
            repeating: 0xEE, count: limits.headBytes + RequestAssembler.overhead)
        var decoder = HeaderDecoder()
        let facts = memory.withUnsafeMutableBytes { memory -> AssembledRequest? in
            var assembler = RequestAssembler(
                memory, style: style, isSecure: isSecure, limits: limits)
            guard (try? decoder.decode(block.span, into: &assembler)) != nil else { return nil }
            return try? assembler.finish(endsStream: endsStream)
        }
        return facts.map { (Array(memory[..<$0.count]), $0) }
    }

    /// The head as HTTP/1, unless the parser refuses it.
    func parse(_ head: [UInt8]) -> RequestHead? {
        var http1 = head
        let end = head.firstIndex(of: 0x0A) ?? 0
        http1[end - 4] = 0x31
        http1[end - 2] = 0x31
        var parser = RequestHeadParser(
            limits: HeadLimits(headBytes: 1 << 17, fields: 1 << 14, targetBytes: 1 << 16))
        var parsed = RequestHead()
        let progress = try? parser.parse(http1.span, into: &parsed)
        return progress == .complete(headBytes: head.count) ? consume parsed : nil
    }

    func checkAgain(
        _ head: [UInt8], _ parsed: borrowing RequestHead, fieldsStart: Int,
        _ facts: AssembledRequest
    ) throws(FuzzCheckError) {
        guard let host = parsed.fields.only(.host), parsed.form != .asterisk,
            Int(host.name.start) == fieldsStart, limits == HeadLimits()
        else { return }
        let isAbsolute = parsed.form == .absolute
        let lines = Array(head[fieldsStart...].dropLast(2))
        let method = Array(head[parsed.methodRange.indices])
        let authority = Array(head[host.value.indices])
        var path = Array(head[parsed.path.indices])
        if path.first != 0x2F { path.insert(0x2F, at: 0) }
        guard path.count == parsed.path.count else { return }
        let scheme: Scheme = isAbsolute ? parsed.scheme : isSecure ? .https : .http
        var encoder = HeaderEncoder()
        let block = try FuzzTarget.encoded(
            lines.count + method.count + authority.count + path.count + 128
        ) { writer in
            encoder.encodeRequest(
                method: method.span, scheme: scheme, authority: authority.span, path: path.span,
                lines: lines.span, into: &writer)
        }
        guard let (again, _) = read(block), again == head else {
            throw FuzzCheckError("\(head) is another request when it was encoded")
        }
    }
}
