import CBrotli
import CZlib
import CZstd

/// Applies a content coding while the content arrives. However long that is, only the library's
/// window is kept in memory: 32 KiB for gzip and deflate, at most 8 MiB for brotli and zstd.
package struct StreamEncoder: ~Copyable {
    /// The library's state.
    private enum Library {
        /// Separately allocated, because zlib compares addresses.
        case zlib(UnsafeMutablePointer<z_stream>)
        case brotli(OpaquePointer)
        case zstd(OpaquePointer)
        /// There is nothing to do.
        case identity
        /// There was no memory for it.
        case none
    }

    private let library: Library
    private static let blockBytes = 64 << 10

    /// - Parameter coding: The gzip header has neither time nor name.
    package init(_ coding: ContentCoding) {
        library =
            switch coding {
            case .gzip: Self.zlib(.gzip)
            case .deflate: Self.zlib(.zlib)
            case .brotli: Self.brotli()
            case .zstd: Self.zstd()
            case .identity: .identity
            }
    }

    private static func zlib(_ wrapper: ZlibWrapper) -> Library {
        let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        stream.initialize(to: z_stream())
        let status = deflateInit2_(
            stream, 6, Z_DEFLATED, wrapper.rawValue, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
            Int32(MemoryLayout<z_stream>.size))
        guard status == Z_OK else {
            stream.deallocate()
            return .none
        }
        return .zlib(stream)
    }

    private static func brotli() -> Library {
        guard let encoder = BrotliEncoderCreateInstance(nil, nil, nil) else { return .none }
        BrotliEncoderSetParameter(encoder, BROTLI_PARAM_QUALITY, UInt32(Brotli.quality))
        return .brotli(encoder)
    }

    private static func zstd() -> Library {
        guard let context = ZSTD_createCCtx() else { return .none }
        Zstd.configure(context)
        return .zstd(context)
    }

    deinit {
        switch library {
        case .zlib(let stream):
            deflateEnd(stream)
            stream.deallocate()
        case .brotli(let encoder): BrotliEncoderDestroyInstance(encoder)
        case .zstd(let context): ZSTD_freeCCtx(context)
        case .identity, .none: break
        }
    }

    /// Encodes a part. Returns what there is of the output, which may be nothing.
    package mutating func encode(_ part: [UInt8]) throws(ContentCodingError) -> [UInt8] {
        try run(part, isLast: false)
    }

    /// Ends the content. Returns the rest of the output.
    package mutating func finish() throws(ContentCodingError) -> [UInt8] {
        try run([], isLast: true)
    }

    private func run(_ part: [UInt8], isLast: Bool) throws(ContentCodingError) -> [UInt8] {
        var output: [UInt8] = []
        let isDone: Bool
        switch library {
        case .identity: return part
        case .none: throw .outOfMemory
        case .zlib(let stream):
            isDone = Self.run(stream, part, isLast ? Z_FINISH : Z_NO_FLUSH, &output)
        case .brotli(let encoder):
            let operation = isLast ? BROTLI_OPERATION_FINISH : BROTLI_OPERATION_PROCESS
            isDone = Self.run(encoder, part, operation, &output)
        case .zstd(let context):
            isDone = Self.run(context, part, isLast ? ZSTD_e_end : ZSTD_e_continue, &output)
        }
        guard isDone else { throw .outOfMemory }
        return output
    }

    // Each returns false if the library has failed, which has no other reason than memory.

    private static func run(
        _ stream: UnsafeMutablePointer<z_stream>, _ part: [UInt8], _ flush: Int32,
        _ output: inout [UInt8]
    ) -> Bool {
        var block = [UInt8](repeating: 0, count: blockBytes)
        defer { stream.pointee.next_in = nil }
        return part.withUnsafeBytes { input in
            stream.pointee.next_in = UnsafeMutablePointer(
                mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
            stream.pointee.avail_in = UInt32(input.count)
            while true {
                let (status, count) = block.withUnsafeMutableBufferPointer { block in
                    stream.pointee.next_out = block.baseAddress
                    stream.pointee.avail_out = UInt32(block.count)
                    let status = deflate(stream, flush)
                    return (status, block.count - Int(stream.pointee.avail_out))
                }
                output += block[..<count]
                // Without progress there is nothing more to do.
                guard status == Z_OK, count == block.count else {
                    return status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR
                }
            }
        }
    }

    private static func run(
        _ encoder: OpaquePointer, _ part: [UInt8], _ operation: BrotliEncoderOperation,
        _ output: inout [UInt8]
    ) -> Bool {
        var block = [UInt8](repeating: 0, count: blockBytes)
        return part.withUnsafeBufferPointer { input in
            var (left, next) = (input.count, input.baseAddress)
            repeat {
                let (isValid, count) = block.withUnsafeMutableBufferPointer { block in
                    var (room, place) = (block.count, block.baseAddress)
                    let isValid = BrotliEncoderCompressStream(
                        encoder, operation, &left, &next, &room, &place, nil)
                    return (isValid == BROTLI_TRUE, block.count - room)
                }
                guard isValid else { return false }
                output += block[..<count]
            } while left > 0 || BrotliEncoderHasMoreOutput(encoder) == BROTLI_TRUE
            return true
        }
    }

    private static func run(
        _ context: OpaquePointer, _ part: [UInt8], _ directive: ZSTD_EndDirective,
        _ output: inout [UInt8]
    ) -> Bool {
        var block = [UInt8](repeating: 0, count: blockBytes)
        return part.withUnsafeBytes { bytes in
            var input = ZSTD_inBuffer(src: bytes.baseAddress, size: bytes.count, pos: 0)
            while true {
                let (left, count) = block.withUnsafeMutableBytes { block in
                    var output = ZSTD_outBuffer(dst: block.baseAddress, size: block.count, pos: 0)
                    let left = ZSTD_compressStream2(context, &output, &input, directive)
                    return (left, output.pos)
                }
                guard ZSTD_isError(left) == 0 else { return false }
                output += block[..<count]
                // What is left in the library is wanted only at the end.
                if directive == ZSTD_e_end ? left == 0 : input.pos == input.size { return true }
            }
        }
    }
}
