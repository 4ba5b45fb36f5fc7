import HTTPCore

/// The result of feeding bytes to a parser: the same however the bytes were split.
enum Outcome: Equatable, CustomStringConvertible {
    case complete(String)
    case needMore
    case refused(WireError)

    var description: String {
        switch self {
        case .complete(let text): "complete: \(text)"
        case .needMore: "need more"
        case .refused(let error): "refused: \(error)"
        }
    }

    var error: WireError? {
        if case .refused(let error) = self { error } else { nil }
    }

    var isComplete: Bool {
        if case .complete = self { true } else { false }
    }
}

/// The bytes of text in Latin-1, so that `\u{FF}` is one byte.
func latin1(_ text: String) -> [UInt8] {
    text.unicodeScalars.map { UInt8($0.value) }
}

/// The prefixes that a way of splitting passes to a head parser; the last one is complete.
enum Splitting {
    case whole
    case byteByByte
    case at(Int)

    func prefixes(of count: Int) -> [Int] {
        switch self {
        case .whole: [count]
        case .byteByByte: Array(0...count)
        case .at(let position): [position, count]
        }
    }

    /// Whole, byte by byte, and in two pieces at every position.
    static func all(_ count: Int) -> [Splitting] {
        [.whole, .byteByByte] + (0...count).map { .at($0) }
    }
}

/// The outcome of a request head that follows another one on the same connection.
func parseRequest(
    _ bytes: [UInt8], _ splitting: Splitting = .whole, after before: [UInt8]
) -> Outcome {
    var parser = RequestHeadParser()
    var head = RequestHead()
    _ = feed(before, .whole, to: &parser, reusing: &head)
    parser.reset()
    return feed(bytes, splitting, to: &parser, reusing: &head)
}

func parseRequest(
    _ bytes: [UInt8], _ splitting: Splitting = .whole, limits: HeadLimits = HeadLimits(),
    reusing head: inout RequestHead
) -> Outcome {
    var parser = RequestHeadParser(limits: limits)
    return feed(bytes, splitting, to: &parser, reusing: &head)
}

private func feed(
    _ bytes: [UInt8], _ splitting: Splitting, to parser: inout RequestHeadParser,
    reusing head: inout RequestHead
) -> Outcome {
    for count in splitting.prefixes(of: bytes.count) {
        // A copy of exactly the prefix: a read beyond it is a read beyond the array.
        let prefix = Array(bytes[..<count])
        do throws(WireError) {
            let progress = try parser.parse(prefix.span, into: &head)
            guard case .complete(let headBytes) = progress else { continue }
            precondition(headBytes == head.length)
            return .complete(head.summary(prefix))
        } catch {
            return .refused(error)
        }
    }
    return .needMore
}

func parseRequest(
    _ bytes: [UInt8], _ splitting: Splitting = .whole, limits: HeadLimits = HeadLimits()
) -> Outcome {
    var head = RequestHead()
    return parseRequest(bytes, splitting, limits: limits, reusing: &head)
}

/// The outcome for a request head, if every way of splitting gives the same; otherwise a
/// description of the first that differs. The head has been used before, to show that nothing of it
/// remains.
func requestOutcome(_ text: String, limits: HeadLimits = HeadLimits()) -> Outcome {
    requestOutcome(latin1(text), limits: limits)
}

func requestOutcome(_ bytes: [UInt8], limits: HeadLimits = HeadLimits()) -> Outcome {
    let expected = parseRequest(bytes, limits: limits)
    var head = usedRequestHead()
    for splitting in Splitting.all(bytes.count) {
        let outcome = parseRequest(bytes, splitting, limits: limits, reusing: &head)
        if outcome != expected {
            return .complete("SPLIT \(splitting): \(outcome), but whole: \(expected)")
        }
    }
    return expected
}

private func usedRequestHead() -> RequestHead {
    let text = """
        OPTIONS https://[2001:db8::1]:8443/x?y HTTP/1.0\r
        Host: other.example:99\r
        Connection: keep-alive, x-a\r
        X-A: 1\r
        TE: trailers\r
        Content-Length: 77\r
        Content-Type: a/b\r
        \r

        """
    var head = RequestHead()
    guard parseRequest(latin1(text), reusing: &head).isComplete else { fatalError("fixture") }
    return head
}

func parseResponse(
    _ bytes: [UInt8], _ splitting: Splitting, _ context: ResponseContext, _ limits: HeadLimits
) -> Outcome {
    var parser = ResponseHeadParser(limits: limits)
    var head = ResponseHead()
    for count in splitting.prefixes(of: bytes.count) {
        var prefix = Array(bytes[..<count])
        do throws(WireError) {
            let progress = try parser.parse(prefix.span, answering: context, into: &head)
            switch progress {
            case .needMore: continue
            case .complete(let headBytes):
                precondition(headBytes == head.length)
                prefix.withUnsafeMutableBytes { head.repair(in: $0) }
                precondition(!head.fields.isIrregular)
                return .complete(head.summary(prefix))
            case .bareLines(let headBytes):
                // As a reader of responses does: the rewritten head is parsed.
                let rewritten = rewrittenHead(Array(prefix[..<headBytes]))
                var strict = context
                strict.repairsLines = false
                let outcome = parseResponse(rewritten, .whole, strict, limits)
                guard case .complete(let summary) = outcome else { return outcome }
                return .complete("\(headBytes) bare bytes: \(summary)")
            }
        } catch {
            return .refused(error)
        }
    }
    return .needMore
}

/// A head of bare lines with CRLF.
func rewrittenHead(_ head: [UInt8]) -> [UInt8] {
    let count = BareLineHead.rewrittenBytes(head.span)
    return [UInt8](unsafeUninitializedCapacity: count) { memory, written in
        var writer = HeadWriter(UnsafeMutableRawBufferPointer(memory))
        BareLineHead.rewrite(head.span, to: &writer)
        precondition(!writer.overflowed)
        written = writer.count
    }
}

func responseOutcome(
    _ text: String, to method: Method = .get, allowsSwitch: Bool = false,
    isUserAgent: Bool = false, limits: HeadLimits = HeadLimits()
) -> Outcome {
    let bytes = latin1(text)
    let context = ResponseContext(
        method: method, allowsSwitch: allowsSwitch, isUserAgent: isUserAgent)
    let expected = parseResponse(bytes, .whole, context, limits)
    for splitting in Splitting.all(bytes.count) {
        let outcome = parseResponse(bytes, splitting, context, limits)
        if outcome != expected {
            return .complete("SPLIT \(splitting): \(outcome), but whole: \(expected)")
        }
    }
    return expected
}

/// A request head parsed whole, for tests that look at one part of it.
func requestHead(_ text: String, over carrier: HTTPCarrier = .http1) throws -> RequestHead {
    var parser = RequestHeadParser(carrier: carrier)
    var head = RequestHead()
    let bytes = latin1(text)
    let progress = try parser.parse(bytes.span, into: &head)
    guard progress == .complete(headBytes: head.length) else { throw IncompleteError() }
    return head
}

func responseHead(
    _ text: String, to method: Method = .get, over carrier: HTTPCarrier = .http1
) throws -> ResponseHead {
    var parser = ResponseHeadParser(carrier: carrier)
    var head = ResponseHead()
    let bytes = latin1(text)
    let context = ResponseContext(
        method: method, allowsSwitch: carrier == .http1, repairsLines: carrier == .http1)
    let progress = try parser.parse(bytes.span, answering: context, into: &head)
    guard progress == .complete(headBytes: head.length) else { throw IncompleteError() }
    return head
}

struct IncompleteError: Error {}

extension FieldSection {
    func summary(_ bytes: [UInt8]) -> String {
        map { field in
            "\(field.id)\(field.isNominated ? "*" : "")="
                + "\(bytes.span.text(at: field.name))|\(bytes.span.text(at: field.value))"
        }.joined(separator: "; ") + " \(present.ids) \(repeated.ids) \(hasNominated) end \(end)"
    }
}

extension RequestHead {
    /// Everything in the head, as text to compare.
    func summary(_ bytes: [UInt8]) -> String {
        let span = bytes.span
        let flags = [
            "keepAlive": keepAlive, "upgrade": wantsUpgrade, "expects": expectsContinue,
            "trailers": acceptsTrailers, "conflict": hostConflicts, "port": hasExplicitPort,
        ].filter(\.value).keys.sorted()
        return """
            \(method) \(span.text(at: methodRange)) \(span.text(at: target)) \(form) \(version) \
            \(scheme) [\(span.text(at: authority))] [\(span.text(at: host))] \(hostKind) \(port) \
            [\(span.text(at: path))] \(framing) \(flags) length \(length) \
            \(fields.summary(bytes))
            """
    }
}

extension ResponseHead {
    /// Everything in the head, as text to compare.
    func summary(_ bytes: [UInt8]) -> String {
        "\(status) [\(bytes.span.text(at: reason))] \(version) \(framing) "
            + "keepAlive \(keepAlive) length \(length) \(fields.summary(bytes))"
    }
}

/// The result of decoding a body, fed in pieces of at most `piece` bytes, each an exact copy.
struct DecodedBody: Equatable {
    var content: [UInt8] = []
    var error: WireError?
    var isComplete = false
    /// The number of input bytes that belong to the body, if complete.
    var consumed = 0
    var trailers = ""
}

func decodeBody(
    _ bytes: [UInt8], _ framing: BodyFraming, piece: Int, limits: ChunkedLimits = ChunkedLimits()
) -> DecodedBody {
    var decoder = BodyDecoder(framing, limits: limits)
    var body = DecodedBody()
    var position = 0
    do throws(WireError) {
        while position < bytes.count, !decoder.isComplete {
            let end = min(position + piece, bytes.count)
            let window = Array(bytes[position..<end])
            var offset = 0
            feeding: while offset < window.count {
                let step = try decoder.decode(window.span.extracting(offset..<window.count))
                switch step {
                case .data(let start, let count, let consumed):
                    precondition(count > 0 && start + count <= consumed)
                    body.content += window[offset + start..<offset + start + count]
                    offset += consumed
                case .needMore(let consumed):
                    precondition(offset + consumed == window.count)
                    offset = window.count
                case .end(let consumed):
                    offset += consumed
                    break feeding
                }
            }
            position += offset
        }
        body.isComplete = decoder.isComplete
        body.consumed = position
        body.trailers = decoder.chunked.trailers.summary(Array(decoder.chunked.trailerBytes))
        precondition(decoder.contentBytes == UInt64(body.content.count))
    } catch {
        body.error = error
    }
    return body
}

/// The decoded body, if pieces of every size give the same.
func bodyOutcome(
    _ text: String, _ framing: BodyFraming = .chunked, limits: ChunkedLimits = ChunkedLimits()
) -> DecodedBody {
    let bytes = latin1(text)
    let expected = decodeBody(bytes, framing, piece: max(1, bytes.count), limits: limits)
    for piece in stride(from: 1, to: bytes.count, by: 1) {
        let body = decodeBody(bytes, framing, piece: piece, limits: limits)
        guard body == expected else {
            var mismatch = body
            mismatch.trailers = "PIECES OF \(piece): \(body), but whole: \(expected)"
            return mismatch
        }
    }
    return expected
}
