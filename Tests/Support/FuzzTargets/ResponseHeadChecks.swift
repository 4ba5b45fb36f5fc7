import HTTPCore

extension FuzzTarget {
    /// The first byte selects what is known of the request, and the limits; the head follows.
    ///
    /// A head is read the same however it arrives. After irregular lines have been repaired, the
    /// strict parser reads the same from it. What a gateway forwards of it means the same.
    func checkResponseHead(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        guard let selector = bytes.first else { return false }
        let methods: [HTTPCore.Method] = [.get, .head, .connect, .post]
        let context = ResponseContext(
            method: methods[Int(selector & 3)], allowsSwitch: selector & 4 != 0,
            isUserAgent: selector & 8 != 0, repairsLines: selector & 16 == 0)
        let limits =
            selector & 32 == 0
            ? HeadLimits() : HeadLimits(headBytes: 200, fields: 4, connectionOptions: 3)
        let reading = HeadReading(bytes: Array(bytes.dropFirst()), context: context, limits: limits)
        switch try Arrivals.read(reading.bytes, { ends in reading.outcome(ends).outcome }) {
        case .incomplete, .refused: return false
        case .complete:
            try reading.checkComplete()
            return true
        case .bare(let count): return try reading.checkBare(count)
        }
    }
}

/// What was read of a response's head.
private enum HeadOutcome: Equatable {
    case incomplete
    case refused(WireError)
    /// All lines of these first bytes end in a bare line feed.
    case bare(Int)
    case complete(Facts)

    struct Facts: Equatable {
        var length: Int
        var status: UInt16
        var version: HTTPVersion
        var reason: ByteRange
        var framing: BodyFraming
        var keepAlive: Bool
        var fields: [Field]
        var present: FieldIDSet

        init(_ head: ResponseHead) {
            (length, status, version) = (head.length, head.status, head.version)
            (reason, framing, keepAlive) = (head.reason, head.framing, head.keepAlive)
            // Where an empty value is means nothing.
            fields = head.fields.map { field in
                var field = field
                if field.value.isEmpty { field.value = ByteRange() }
                return field
            }
            present = head.fields.present
        }
    }
}

private struct HeadReading {
    var bytes: [UInt8]
    var context: ResponseContext
    var limits: HeadLimits

    func outcome(_ ends: [Int]) -> (outcome: HeadOutcome, head: ResponseHead) {
        let bytes = bytes
        var parser = ResponseHeadParser(limits: limits)
        var head = ResponseHead()
        for end in ends {
            do throws(WireError) {
                let visible = bytes.span.extracting(0..<end)
                switch try parser.parse(visible, answering: context, into: &head) {
                case .needMore: continue
                case .complete: return (.complete(HeadOutcome.Facts(head)), head)
                case .bareLines(let count): return (.bare(count), head)
                }
            } catch {
                return (.refused(error), head)
            }
        }
        return (.incomplete, head)
    }

    /// The strict reading of other bytes in the same context.
    private func strictly(_ bytes: [UInt8]) -> HeadOutcome {
        var other = self
        other.bytes = bytes
        other.context.repairsLines = false
        other.limits = HeadLimits(headBytes: 1 << 20, fields: 1 << 16, connectionOptions: 1 << 12)
        return other.outcome([bytes.count]).outcome
    }

    func checkComplete() throws(FuzzCheckError) {
        var head = outcome([bytes.count]).head
        guard head.length <= min(bytes.count, limits.headBytes),
            head.fields.count <= limits.fields
        else {
            throw FuzzCheckError("\(head.length) bytes, \(head.fields.count) fields beyond limits")
        }
        let parts = head.fields.flatMap { [$0.name, $0.value] } + [head.reason]
        guard parts.allSatisfy({ Int($0.end) <= head.length }) else {
            throw FuzzCheckError("a part of the head that is outside of it")
        }
        var repaired = Array(bytes[..<head.length])
        repaired.withUnsafeMutableBytes { head.repair(in: $0) }
        guard !head.fields.isIrregular else { throw FuzzCheckError("a head that stays irregular") }
        let facts = HeadOutcome.Facts(head)
        let again = strictly(repaired)
        guard again == .complete(facts) else {
            throw FuzzCheckError("repaired, \(facts) is \(again)")
        }
        try checkForwarded(head, repaired)
    }

    /// Forwards a repaired head as a gateway does.
    private func checkForwarded(
        _ head: ResponseHead, _ bytes: [UInt8]
    ) throws(FuzzCheckError) {
        guard !context.isUserAgent, context.method != .connect else { return }
        let capacity = bytes.count + 100
        let written = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
            var writer = HeadWriter(UnsafeMutableRawBufferPointer(buffer))
            writer.append("HTTP/1.1 ")
            writer.append(status: head.status)
            writer.append(" ")
            writer.append(head.reason, of: bytes.span)
            writer.appendLineEnd()
            writer.appendForwardedFields(head.fields, of: bytes.span)
            if head.framing == .chunked { writer.append(field: .transferEncoding, "chunked") }
            writer.appendLineEnd()
            count = writer.overflowed ? 0 : writer.count
        }
        guard case .complete(let again) = strictly(written), again.length == written.count else {
            throw FuzzCheckError("\(written) was forwarded, which is no head")
        }
        let dropped = FieldIDSet.hopByHop
        let kept = head.fields.filter { !dropped.contains($0.id) && !$0.isNominated }
        let keptAgain = again.fields.filter { !dropped.contains($0.id) }
        let isSame =
            again.status == head.status && again.framing == head.framing
            && kept.count == keptAgain.count
            && zip(kept, keptAgain).allSatisfy {
                $0.id == $1.id && bytes[$0.name.indices] == written[$1.name.indices]
                    && bytes[$0.value.indices] == written[$1.value.indices]
            }
        guard isSame else {
            throw FuzzCheckError("\(written) was forwarded, which means something else")
        }
    }

    /// Rewrites a head with bare line feeds and reads the result.
    ///
    /// - Returns: whether it is accepted.
    func checkBare(_ count: Int) throws(FuzzCheckError) -> Bool {
        guard (1...min(bytes.count, limits.headBytes)).contains(count) else {
            throw FuzzCheckError("\(count) bytes with bare line feeds")
        }
        let head = Array(bytes[..<count])
        let size = BareLineHead.rewrittenBytes(head.span)
        var isExact = false
        let rewritten = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            var writer = HeadWriter(UnsafeMutableRawBufferPointer(buffer))
            BareLineHead.rewrite(head.span, to: &writer)
            isExact = !writer.overflowed && writer.count == size
            count = writer.count
        }
        guard isExact else { throw FuzzCheckError("a rewritten head of another size") }
        switch strictly(rewritten) {
        case .complete(let facts):
            guard facts.length == size else {
                throw FuzzCheckError("a rewritten head ends after \(facts.length) of \(size) bytes")
            }
            return true
        case .refused: return false
        case .incomplete, .bare: throw FuzzCheckError("a rewritten head without an end")
        }
    }
}
