extension ResponseHead {
    /// Whether the content is an event stream (`text/event-stream`, WHATWG HTML §9.2), in which
    /// long pauses are normal.
    /// - Parameter bytes: the head.
    @inline(__always)
    @inlinable public func isEventStream(in bytes: Span<UInt8>) -> Bool {
        switch framing {
        case .none, .length: false
        case .chunked, .untilClose: contentIsEventStream(bytes)
        }
    }

    @inline(never)
    @usableFromInline func contentIsEventStream(_ bytes: Span<UInt8>) -> Bool {
        guard let field = fields.only(.contentType) else { return false }
        let name: StaticString = "text/event-stream"
        let value = bytes.extracting(field.value.indices)
        guard value.starts(withLowercase: name) else { return false }
        let end = name.utf8CodeUnitCount
        return end == value.count || value[end] == 0x3B || ASCII.isWhitespace(value[end])
    }
}
