import EventLoop
import HTTPCore

extension ResponseHeadParser {
    /// Rewrites a head whose lines end in bare line feeds, and parses the result. This is separate,
    /// out of the way of ordinary heads.
    ///
    /// - Parameter received: the whole head, with the length that `parse` returned.
    /// - Returns: the head as it was parsed.
    @inline(never)
    mutating func parseRewritten(
        _ received: UnsafeRawBufferPointer, answering context: ResponseContext,
        into head: inout ResponseHead, buffers: BufferPool
    ) throws(WireError) -> Buffer {
        let bytes = received.octets
        let buffer = buffers.take(bytes: BareLineHead.rewrittenBytes(bytes))
        var writer = HeadWriter(buffer.writable)
        BareLineHead.rewrite(bytes, to: &writer)
        buffer.end = writer.count
        var strict = context
        strict.repairsLines = false
        let progress = try parse(buffer.readable.octets, answering: strict, into: &head)
        guard progress == .complete(headBytes: buffer.count) else { throw .malformedStatusLine }
        return buffer
    }
}
