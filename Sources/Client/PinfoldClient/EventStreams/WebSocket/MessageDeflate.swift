import CZlib

/// The extension permessage-deflate (RFC 7692) without context takeover: each message is compressed
/// on its own. So an idle connection keeps no window, and the content of one message cannot
/// influence the size of another.
enum MessageDeflate {
    /// The client's offer, and what a server has to accept.
    static let offer =
        "permessage-deflate; server_no_context_takeover; client_no_context_takeover"

    /// Content with fewer bytes is sent uncompressed.
    static let minimumBytes = 64
    /// The end of a flushed block, which is not sent (section 7.2.1).
    private static let tail: [UInt8] = [0x00, 0x00, 0xFF, 0xFF]
    private static let blockBytes = 65_536

    /// Whether a server's parameters are a valid response to the offer (section 7.1).
    static func accepts(_ parameters: [String]) -> Bool {
        var seen: Set<String> = []
        for parameter in parameters {
            let name = String(parameter.prefix { $0 != "=" })
            guard seen.insert(name).inserted else { return false }
            switch parameter {
            case "server_no_context_takeover", "client_no_context_takeover": break
            case _ where name == "server_max_window_bits":
                // The server may use a smaller window than it was offered.
                let bits = parameter.dropFirst(name.count + 1).filter { $0 != "\"" }
                guard (8...15).map(String.init).contains(bits) else { return false }
            default: return false
            }
        }
        return seen.contains("server_no_context_takeover")
    }

    /// Returns the compressed content, or `nil` if it would not be smaller.
    static func compressed(_ content: [UInt8]) -> [UInt8]? {
        guard content.count >= minimumBytes, content.count < 1 << 30 else { return nil }
        // Allocated on the heap because zlib checks that the structure has not moved.
        let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        stream.initialize(to: z_stream())
        defer { stream.deallocate() }
        let status = deflateInit2_(
            stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
            Int32(MemoryLayout<z_stream>.size))
        guard status == Z_OK else { return nil }
        defer { deflateEnd(stream) }
        var input = content
        var output = [UInt8](repeating: 0, count: content.count)
        let isDone = input.withUnsafeMutableBufferPointer { input in
            output.withUnsafeMutableBufferPointer { output in
                (stream.pointee.next_in, stream.pointee.avail_in) = (
                    input.baseAddress, UInt32(input.count)
                )
                (stream.pointee.next_out, stream.pointee.avail_out) = (
                    output.baseAddress, UInt32(output.count)
                )
                // If there is space left, all output has been written (zlib.h, deflate).
                return deflate(stream, Z_SYNC_FLUSH) == Z_OK && stream.pointee.avail_out > 0
            }
        }
        output.removeLast(Int(stream.pointee.avail_out))
        guard isDone, output.suffix(tail.count).elementsEqual(tail) else { return nil }
        return Array(output.dropLast(tail.count))
    }

    /// Decompresses the content of a message.
    ///
    /// - Parameter most: The maximum size of the decompressed content, in bytes.
    static func decompressed(
        _ content: [UInt8], most: Int
    ) throws(WebSocketError) -> [UInt8] {
        // Allocated on the heap because zlib checks that the structure has not moved.
        let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        stream.initialize(to: z_stream())
        defer { stream.deallocate() }
        let status = inflateInit2_(stream, -15, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        guard status == Z_OK else { throw .corruptCompression }
        defer { inflateEnd(stream) }
        var input = content + tail
        guard input.count < 1 << 30 else { throw .tooLarge }
        var output: [UInt8] = []
        let error = input.withUnsafeMutableBufferPointer { input in
            (stream.pointee.next_in, stream.pointee.avail_in) = (
                input.baseAddress, UInt32(input.count)
            )
            return inflateAll(stream, most: most, into: &output)
        }
        if let error { throw error }
        return output
    }

    /// Consumes all of the stream's input. Returns an error if the input is invalid or too large.
    private static func inflateAll(
        _ stream: UnsafeMutablePointer<z_stream>, most: Int, into output: inout [UInt8]
    ) -> WebSocketError? {
        // Small for small messages: all of it is cleared first.
        let blockBytes = min(blockBytes, max(256, 4 * Int(stream.pointee.avail_in)))
        var block = [UInt8](repeating: 0, count: blockBytes)
        while true {
            let status = block.withUnsafeMutableBufferPointer { block in
                (stream.pointee.next_out, stream.pointee.avail_out) = (
                    block.baseAddress, UInt32(blockBytes)
                )
                return inflate(stream, Z_SYNC_FLUSH)
            }
            let count = blockBytes - Int(stream.pointee.avail_out)
            guard output.count + count <= most else { return .tooLarge }
            output += block[..<count]
            switch status {
            case Z_STREAM_END where stream.pointee.avail_in > 0:
                // A final block is allowed, and so are further blocks after it (section 7.2.3.5).
                guard inflateReset(stream) == Z_OK else { return .corruptCompression }
            case Z_OK, Z_BUF_ERROR, Z_STREAM_END:
                // Whether the input ends at the end of a block, on a byte boundary. This must be
                // checked even if the output is exactly full: a further call without input would no
                // longer report it.
                let isAtEnd =
                    stream.pointee.avail_in == 0 && stream.pointee.data_type & 0x87 == 0x80
                if isAtEnd { return nil }
                guard stream.pointee.avail_out == 0 else { return .corruptCompression }
            default: return .corruptCompression
            }
        }
    }
}
