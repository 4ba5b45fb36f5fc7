import CZlib

/// Applies a content coding of zlib while the content arrives. However long that is, only zlib's
/// window is kept in memory.
package struct StreamEncoder: ~Copyable {
    /// Separately allocated, because zlib compares addresses.
    private let stream: UnsafeMutablePointer<z_stream>
    private static let blockBytes = 64 << 10

    /// Whether zlib had the memory that it needs.
    private let isValid: Bool

    /// - Parameter coding: gzip or deflate. The gzip header has neither time nor name.
    package init(_ coding: ContentCoding) {
        let wrapper = coding == .gzip ? ZlibWrapper.gzip : .zlib
        stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        stream.initialize(to: z_stream())
        let status = deflateInit2_(
            stream, 6, Z_DEFLATED, wrapper.rawValue, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
            Int32(MemoryLayout<z_stream>.size))
        isValid = status == Z_OK
    }

    deinit {
        if isValid { deflateEnd(stream) }
        stream.deallocate()
    }

    /// Encodes a part. Returns what there is of the output, which may be nothing.
    package mutating func encode(_ part: [UInt8]) throws(ContentCodingError) -> [UInt8] {
        try run(part, Z_NO_FLUSH)
    }

    /// Ends the content. Returns the rest of the output.
    package mutating func finish() throws(ContentCodingError) -> [UInt8] {
        try run([], Z_FINISH)
    }

    private func run(
        _ part: [UInt8], _ flush: Int32
    ) throws(ContentCodingError) -> [UInt8] {
        guard isValid else { throw .outOfMemory }
        let stream = stream
        var output: [UInt8] = []
        var isDone = true
        part.withUnsafeBytes { input in
            stream.pointee.next_in = UnsafeMutablePointer(
                mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
            stream.pointee.avail_in = UInt32(input.count)
            var block = [UInt8](repeating: 0, count: Self.blockBytes)
            while true {
                let (status, count) = block.withUnsafeMutableBufferPointer { block in
                    stream.pointee.next_out = block.baseAddress
                    stream.pointee.avail_out = UInt32(block.count)
                    let status = deflate(stream, flush)
                    return (status, block.count - Int(stream.pointee.avail_out))
                }
                output += block[..<count]
                // Without progress there is nothing more to do.
                isDone = status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR
                if status != Z_OK || count < block.count { return }
            }
        }
        stream.pointee.next_in = nil
        guard isDone else { throw .outOfMemory }
        return output
    }
}
