import CBrotli

/// Brotli's decoder and encoder.
///
/// The decoder keeps a window of up to 16 MiB in addition to its output; large windows, which are
/// not part of RFC 7932, are refused by the library.
enum Brotli {
    /// Decodes all of the input.
    static func decode(
        _ input: UnsafeRawBufferPointer, into output: inout BoundedOutput
    ) throws(ContentCodingError) {
        guard let decoder = BrotliDecoderCreateInstance(nil, nil, nil) else { throw .outOfMemory }
        defer { BrotliDecoderDestroyInstance(decoder) }
        let block = DecodingBlock()
        var left = input.count
        var next = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        while true {
            var room = DecodingBlock.size
            var place: UnsafeMutablePointer<UInt8>? = block.base
            let result = BrotliDecoderDecompressStream(
                decoder, &left, &next, &room, &place, nil)
            try output.append(block.prefix(DecodingBlock.size - room))
            switch result {
            case BROTLI_DECODER_RESULT_SUCCESS:
                guard left == 0 else {
                    throw .trailingData(.brotli, offset: input.count - left)
                }
                return
            case BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT: continue
            case BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT:
                throw .truncated(.brotli, offset: input.count)
            default: throw fault(of: decoder, at: input.count - left)
            }
        }
    }

    static func fault(of decoder: OpaquePointer, at offset: Int?) -> ContentCodingError {
        let code = BrotliDecoderGetErrorCode(decoder)
        // BROTLI_DECODER_ERROR_ALLOC_…
        if (-30 ... -21).contains(code.rawValue) { return .outOfMemory }
        let text = BrotliDecoderErrorString(code).map { String(cString: $0) }
        return .corrupt(.brotli, offset: offset, text ?? "invalid data")
    }

    /// From 0 to 11: this is as fast as gzip at its default, and compresses better.
    static let quality: Int32 = 5

    /// Encodes the content as one stream; the same content always gives the same bytes.
    static func encode(_ content: UnsafeRawBufferPointer) throws(ContentCodingError) -> [UInt8] {
        let bound = BrotliEncoderMaxCompressedSize(content.count)
        guard bound > 0 else { throw .tooLarge(maximum: Deflater.maximumBytes) }
        var isEncoded = false
        let output = [UInt8](unsafeUninitializedCapacity: bound) { memory, count in
            count = bound
            isEncoded =
                BrotliEncoderCompress(
                    quality, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_GENERIC, content.count,
                    content.baseAddress?.assumingMemoryBound(to: UInt8.self), &count,
                    memory.baseAddress) == BROTLI_TRUE
            if !isEncoded { count = 0 }
        }
        guard isEncoded else { throw .outOfMemory }
        return output
    }
}
