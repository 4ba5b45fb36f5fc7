import EventLoop
import HTTP2
import HTTPCore

/// What an HTTP/2 connection writes: its own frames, field blocks, and the content of its streams.
///
/// Frames are written into one buffer after the other, and content is not copied. What follows a
/// change of settings, or their acknowledgment, must be behind it: the connection's own frames are
/// therefore queued before anything else is.
package struct FrameOutput: ~Copyable {
    /// Streams' output is moved here up to so many bytes, and one frame.
    private static let backlogBytes = 128 << 10
    /// How much is written in a turn before others go first, in bytes: streams that have nothing
    /// for the moment would otherwise leave all of a long turn to those that have much.
    package static let bytesPerTurn: UInt64 = 256 << 10
    /// A connection with so many open streams expects more of them to be answered soon.
    package static let sharedFrom = 4
    /// The largest content of a DATA frame.
    package static let frameBytes = 16 << 10

    package var queue = OutputQueue()
    /// How much has been queued so far, in bytes.
    package private(set) var totalBytes: UInt64 = 0
    private let buffers: BufferPool
    /// Where frames are written; they are parts of `queue`.
    private var frames: Buffer?

    package init(_ buffers: BufferPool) { self.buffers = buffers }

    package var isEmpty: Bool { queue.isEmpty }
    package var pendingBytes: Int { queue.pendingBytes }
    /// Whether as much is waiting to be written as should be.
    package var hasBacklog: Bool { queue.pendingBytes >= Self.backlogBytes }

    /// A buffer with room for `count` more bytes of frames.
    private mutating func frameBuffer(_ count: Int) -> Buffer {
        if let frames, frames.writable.count >= count { return frames }
        let taken = buffers.take(atLeast: count)
        frames = taken
        return taken
    }

    private mutating func append(_ count: Int, writtenTo buffer: Buffer) {
        totalBytes += UInt64(count)
        queue.appendWritten(count, to: buffer)
    }

    /// Queues the connection's own frames.
    package mutating func appendControl(of http: inout HTTP2Connection) {
        guard http.hasControl else { return }
        let bytes = http.control
        let buffer = frameBuffer(bytes.count)
        buffer.writable.copyMemory(from: bytes)
        append(bytes.count, writtenTo: buffer)
        http.tookControl(bytes.count)
    }

    /// Queues a field block, in as many frames as it needs.
    /// - Parameters:
    ///   - room: the block's greatest size, in bytes.
    ///   - encode: writes the block.
    /// - Returns: the size of the frames, in bytes; `nil` if the block is larger than `room`.
    package mutating func appendBlock(
        of stream: UInt32, room: Int, endsStream: Bool, in http: inout HTTP2Connection,
        _ encode: (inout HeadWriter) -> Void
    ) -> Int? {
        appendControl(of: &http)
        let buffer = frameBuffer(FrameHeader.bytes + room)
        let memory = buffer.writable
        var writer = HeadWriter(
            UnsafeMutableRawBufferPointer(rebasing: memory[FrameHeader.bytes...]))
        encode(&writer)
        guard !writer.overflowed, let start = memory.baseAddress else { return nil }
        let count = FrameHeader.bytes + writer.count
        guard writer.count <= http.peer.maxFrameSize else {
            return appendParts(
                UnsafeRawBufferPointer(rebasing: memory[FrameHeader.bytes..<count]), of: stream,
                endsStream: endsStream, size: http.peer.maxFrameSize)
        }
        FrameHeader(
            length: writer.count, type: .headers,
            flags: endsStream ? [.endHeaders, .endStream] : .endHeaders, streamID: stream
        ).store(to: start)
        append(count, writtenTo: buffer)
        return count
    }

    /// Queues a field block that needs several frames.
    private mutating func appendParts(
        _ block: UnsafeRawBufferPointer, of stream: UInt32, endsStream: Bool, size: Int
    ) -> Int {
        let frames = block.count / size + 1
        let whole = buffers.take(bytes: block.count + frames * FrameHeader.bytes)
        var writer = HeadWriter(whole.writable)
        writer.appendHeaders(
            block.octets, streamID: stream, endsStream: endsStream, maxFrameSize: size)
        append(writer.count, writtenTo: whole)
        return writer.count
    }

    /// Queues trailers, which end their stream.
    /// - Returns: the size of the frames, in bytes.
    package mutating func appendTrailers(
        _ trailers: TrailerSection, of stream: UInt32, in http: inout HTTP2Connection,
        by encoder: inout HeaderEncoder
    ) -> Int? {
        let lines = buffers.take(atLeast: trailers.bytes.count + 2)
        var writer = HeadWriter(lines.writable)
        writer.appendForwardedFields(trailers)
        lines.end = writer.count
        return appendBlock(
            of: stream, room: HeaderEncoder.bound(lines.count), endsStream: true, in: &http
        ) { encoder.encodeTrailers(lines: lines.readable.octets, into: &$0) }
    }

    /// Moves `count` bytes of content here, in one frame.
    /// - Returns: the size of the frame, in bytes.
    package mutating func appendData(
        _ count: Int, of stream: UInt32, endsStream: Bool, from content: inout OutputQueue,
        in http: inout HTTP2Connection
    ) -> Int {
        appendControl(of: &http)
        // What is copied needs room behind the header: a run of its own costs more.
        let copied = count <= OutputQueue.copiedBytes ? count : 0
        let buffer = frameBuffer(FrameHeader.bytes + copied)
        if let start = buffer.writable.baseAddress {
            FrameHeader(
                length: count, type: .data, flags: endsStream ? .endStream : [], streamID: stream
            ).store(to: start)
        }
        append(FrameHeader.bytes, writtenTo: buffer)
        if count > 0 {
            totalBytes += UInt64(count)
            content.move(count, to: &queue)
        }
        return FrameHeader.bytes + count
    }

    /// Everything has been written: the frames' memory is used again.
    package mutating func wasWritten() { frames?.clear() }

    /// Gives back the memory for frames, if none of them waits to be written.
    package mutating func trim() {
        if queue.isEmpty { Buffer.release(&frames) }
    }

    /// Nothing can be written any more.
    package mutating func discard() {
        queue.discard()
        frames = nil
    }
}
