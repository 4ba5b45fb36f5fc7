extension ResponseHead {
    /// Whether the content is a stream of events (`text/event-stream`, WHATWG HTML §9.2), in which
    /// long pauses are usual.
    /// - Parameter bytes: the head.
    @inline(__always)
    package func isEventStream(in bytes: Span<UInt8>) -> Bool {
        switch framing {
        case .none, .length: false
        case .chunked, .untilClose: contentIsEventStream(bytes)
        }
    }

    @inline(never)
    private func contentIsEventStream(_ bytes: Span<UInt8>) -> Bool {
        guard let field = fields.only(.contentType) else { return false }
        let name: StaticString = "text/event-stream"
        let (start, end) = (Int(field.value.start), Int(field.value.end))
        let nameEnd = start + name.utf8CodeUnitCount
        guard nameEnd <= end else { return false }
        for index in start..<nameEnd
        where ByteClass.lowercased(bytes[index]) != name.utf8Start[index - start] { return false }
        return nameEnd == end || [0x3B, 0x20, 0x09].contains(bytes[nameEnd])
    }
}
