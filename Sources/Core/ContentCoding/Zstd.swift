import CZstd

/// Zstandard's decoder (RFC 8878), for content that arrives in parts of any size.
///
/// It keeps a window of up to 8 MiB in addition to its output; frames that need a larger one, which
/// RFC 9659 does not allow, are refused, and so are those that need a dictionary.
struct ZstdDecoder: ~Copyable {
    private enum Place {
        /// Before a frame, or in its header.
        case header
        /// In a frame.
        /// - Parameters:
        ///   - wanted: the number of bytes to give to the library next, which are those up to the
        ///     end of a block: then it need not copy them.
        ///   - isFull: whether there was no room for all of its output.
        case frame(wanted: Int, isFull: Bool)
        /// In a frame to be skipped, with the number of bytes that are left.
        case skippable(left: Int)
    }

    private let context: OpaquePointer
    private var place = Place.header
    /// What has arrived of a header.
    private var header: [UInt8] = []
    /// The number of bytes that have been used.
    private var offset = 0
    /// Where the last frame ended; 0 before the first.
    private var end = 0
    /// The size that the frame states, if it does, and how much of it has come.
    private var stated: UInt64?
    private var made: UInt64 = 0

    init() throws(ContentCodingError) {
        guard let context = ZSTD_createDCtx() else { throw .outOfMemory }
        ZSTD_DCtx_setParameter(
            context, ZSTD_d_windowLogMax,
            Int32(ZstdFrameHeader.maximumWindowBytes.trailingZeroBitCount))
        self.context = context
    }

    deinit { ZSTD_freeDCtx(context) }

    /// Decodes all of the input.
    static func decode(
        _ input: UnsafeRawBufferPointer, into output: inout BoundedOutput
    ) throws(ContentCodingError) {
        var decoder = try ZstdDecoder()
        let block = DecodingBlock()
        var input = input
        while let count = try decoder.next(&input, into: block) {
            try output.append(block.prefix(count))
        }
        try decoder.finish()
    }

    /// Decodes until there is a block of output.
    ///
    /// - Parameter input: what is used is removed from it.
    /// - Returns: the number of bytes in the block, which may be 0; `nil` if more input is needed.
    mutating func next(
        _ input: inout UnsafeRawBufferPointer, into block: borrowing DecodingBlock
    ) throws(ContentCodingError) -> Int? {
        while true {
            switch place {
            case .header:
                guard let byte = input.first else { return nil }
                header.append(byte)
                use(1, of: &input)
                try readHeader(block)
            case .skippable(let left):
                let count = min(left, input.count)
                use(count, of: &input)
                guard count == left else {
                    place = .skippable(left: left - count)
                    return nil
                }
                endFrame()
            case .frame(let wanted, let isFull):
                // The library takes repeated calls that cannot achieve anything for an error.
                guard !input.isEmpty || isFull else { return nil }
                let part = UnsafeRawBufferPointer(rebasing: input.prefix(wanted))
                let (used, made) = try run(part, block)
                use(used, of: &input)
                return made
            }
        }
    }

    /// Begins a frame if its header is there.
    private mutating func readHeader(
        _ block: borrowing DecodingBlock
    ) throws(ContentCodingError) {
        switch ZstdFrameHeader.read(header) {
        case .unfinished: return
        case .invalid:
            guard end == 0 else { throw .trailingData(.zstd, offset: end) }
            throw .corrupt(.zstd, offset: 0, "it does not begin with a frame")
        case .whole(.skippable(let bytes)):
            if bytes == 0 { endFrame() } else { place = .skippable(left: bytes) }
        case .whole(.frame(let windowBytes, let dictionary, let contentBytes)):
            let maximum = ZstdFrameHeader.maximumWindowBytes
            guard windowBytes <= maximum else {
                throw .corrupt(
                    .zstd, offset: end,
                    "it needs a window of \(windowBytes) bytes, and \(maximum) are allowed")
            }
            guard dictionary == 0 else {
                throw .corrupt(.zstd, offset: end, "it needs a dictionary")
            }
            (stated, made) = (contentBytes, 0)
            let header = header
            _ = try header.span.withUnsafeBytes { (bytes) throws(ContentCodingError) in
                try run(bytes, block)
            }
        }
        header = []
    }

    private mutating func endFrame() {
        place = .header
        end = offset
    }

    private mutating func use(_ count: Int, of input: inout UnsafeRawBufferPointer) {
        offset += count
        input = UnsafeRawBufferPointer(rebasing: input.dropFirst(count))
    }

    /// Gives a part of a frame to the library.
    /// - Returns: the number of bytes that it has used, and of those in the block.
    private mutating func run(
        _ part: UnsafeRawBufferPointer, _ block: borrowing DecodingBlock
    ) throws(ContentCodingError) -> (used: Int, made: Int) {
        var input = ZSTD_inBuffer(src: part.baseAddress, size: part.count, pos: 0)
        var output = ZSTD_outBuffer(dst: block.base, size: DecodingBlock.size, pos: 0)
        let wanted = ZSTD_decompressStream(context, &output, &input)
        guard ZSTD_isError(wanted) == 0 else {
            if ZSTD_getErrorCode(wanted) == ZSTD_error_memory_allocation { throw .outOfMemory }
            let text = ZSTD_getErrorName(wanted).map { String(cString: $0) }
            throw .corrupt(.zstd, offset: offset, text ?? "invalid data")
        }
        made += UInt64(output.pos)
        if wanted == 0 {
            place = .header
            end = offset + input.pos
            // The library does not always look.
            guard stated == nil || stated == made else {
                throw .corrupt(.zstd, offset: end, "its content is not as long as it states")
            }
        } else {
            place = .frame(wanted: wanted, isFull: output.pos == output.size)
        }
        return (input.pos, output.pos)
    }

    /// Ends the input. Content without a byte is empty.
    borrowing func finish() throws(ContentCodingError) {
        guard case .header = place, header.isEmpty else { throw .truncated(.zstd, offset: offset) }
    }
}

/// Zstandard's encoder.
enum Zstd {
    /// From 1 to 22: for most text this is faster than gzip at its default, and shorter. From 20
    /// on the window may be larger than RFC 9659 allows.
    private static let level: Int32 = 7

    /// The number of bytes of content that are encoded at a time: the library's blocks.
    private static let part = 1 << 17

    /// Sets what holds for all content.
    static func configure(_ context: OpaquePointer) {
        ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level)
        ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)
    }

    /// Encodes the content as one frame, which states its size and has a checksum; the same content
    /// always gives the same bytes.
    static func encode(
        _ content: UnsafeRawBufferPointer, _ yieldPoint: (() -> Void)?
    ) throws(ContentCodingError) -> [UInt8] {
        let bound = ZSTD_compressBound(content.count)
        guard ZSTD_isError(bound) == 0 else { throw .tooLarge(maximum: Deflater.maximumBytes) }
        guard let context = ZSTD_createCCtx() else { throw .outOfMemory }
        defer { ZSTD_freeCCtx(context) }
        configure(context)
        ZSTD_CCtx_setPledgedSrcSize(context, UInt64(content.count))
        var isEncoded = false
        let encoded = [UInt8](unsafeUninitializedCapacity: bound) { memory, count in
            var input = ZSTD_inBuffer(src: content.baseAddress, size: 0, pos: 0)
            var output = ZSTD_outBuffer(dst: memory.baseAddress, size: bound, pos: 0)
            var left: Int
            repeat {
                input.size = min(input.pos + part, content.count)
                let isLast = input.size == content.count
                left = ZSTD_compressStream2(
                    context, &output, &input, isLast ? ZSTD_e_end : ZSTD_e_continue)
                yieldPoint?()
                isEncoded = isLast && left == 0
            } while !isEncoded && ZSTD_isError(left) == 0 && output.pos < bound
            count = isEncoded ? output.pos : 0
        }
        guard isEncoded else { throw .outOfMemory }
        return encoded
    }
}
