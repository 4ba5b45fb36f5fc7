// Blocks of each kind of message.
extension HeaderDecoder {
    /// Decodes a whole block and passes its fields to `request`. After an error the connection has
    /// to be closed (RFC 9113 §4.3).
    public mutating func decode(
        _ block: Span<UInt8>, into request: inout RequestAssembler
    ) throws(HeaderCompressionError) {
        try decodeFields(block, into: &request)
    }

    /// The same for a response.
    public mutating func decode(
        _ block: Span<UInt8>, into response: inout ResponseAssembler
    ) throws(HeaderCompressionError) {
        try decodeFields(block, into: &response)
    }

    /// The same for trailers.
    public mutating func decode(
        _ block: Span<UInt8>, into trailers: inout TrailerAssembler
    ) throws(HeaderCompressionError) {
        try decodeFields(block, into: &trailers)
    }

    /// Decodes a block of a stream that no longer matters: the table must stay that of the peer.
    public mutating func discard(_ block: Span<UInt8>) throws(HeaderCompressionError) {
        var nowhere = NoFields()
        try decodeFields(block, into: &nowhere)
    }
}

/// Takes fields and does nothing with them.
private struct NoFields: ~Copyable, FieldSink {
    mutating func take(_ line: HeaderLine) {}
}

extension RequestAssembler: FieldSink {}
extension ResponseAssembler: FieldSink {}
extension TrailerAssembler: FieldSink {}
