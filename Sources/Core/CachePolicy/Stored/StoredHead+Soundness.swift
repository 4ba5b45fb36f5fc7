import HTTPCore

// Heads that were not stored here: of a file that may come from anywhere.
extension StoredHead {
    /// Whether a head is one as `write` makes it, and says of the content what is true. A hit
    /// copies both: if they contradict each other, what follows is read as the next response (RFC
    /// 9112 §6.3).
    ///
    /// - Parameters:
    ///   - head: bytes that have metadata (`StoredMetadata.init(storedHead:…)`).
    ///   - contentBytes: the bytes of content stored with it; of a head of parts, of what says
    ///     where they are.
    package static func isSound(_ head: [UInt8], contentBytes: UInt64) -> Bool {
        guard let sent = message(of: head), !sent.fields.present.intersects(excluded) else {
            return false
        }
        if isOfParts(head.span) {
            // The positions of parts are counted in the whole, whose length is below 2^63.
            guard case .length(let complete) = sent.framing else { return false }
            return complete > 0 && sent.status == 200 && !sent.fields.contains(.contentRange)
        }
        switch (sent.status, sent.framing) {
        // They are not stored as such, but as what they are about.
        case (206, _), (304, _): return false
        case (_, .none): return contentBytes == 0
        case (_, .length(let count)): return count == contentBytes
        case (_, .untilClose): return true
        case (_, .chunked): return false
        }
    }

    /// The head as the message that is sent.
    private static func message(of head: [UInt8]) -> ResponseHead? {
        // In place of the version that only a head of parts has.
        var message = Array("HTTP".utf8)
        message += withoutTrailers(head).dropFirst(4)
        message += [0x0D, 0x0A]
        var parsed = ResponseHead()
        var parser = ResponseHeadParser(
            limits: HeadLimits(headBytes: message.count + 1, fields: message.count))
        let progress = try? parser.parse(
            message.span, answering: ResponseContext(method: .get, repairsLines: false),
            into: &parsed)
        return progress == .complete(headBytes: message.count) ? parsed : nil
    }
}
