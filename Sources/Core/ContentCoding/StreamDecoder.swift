import CBrotli
import CZlib

/// Decodes content codings while the content arrives. The output is taken block by block, and each
/// block is decoded when it is requested: however much the content expands, only one block of 64
/// KiB per coding is kept in memory, plus its window: up to 16 MiB for brotli, and 8 MiB for zstd.
///
/// Empty content is empty in every coding, as in ``ContentCodings``.
package struct StreamDecoder: ~Copyable {
    /// The outermost coding first.
    private let stages: [any DecodingStage]

    /// - Parameter codings: in the order of Content-Encoding, in which they were applied.
    package init(_ codings: [ContentCoding]) throws(ContentCodingError) {
        let applied = codings.filter { $0 != .identity }
        guard applied.count <= ContentCodings.maximumCodings else {
            throw .tooManyCodings(maximum: ContentCodings.maximumCodings)
        }
        var stages: [any DecodingStage] = []
        for coding in applied.reversed() {
            switch coding {
            case .identity: break
            case .gzip, .deflate: stages.append(InflatingStage(coding))
            case .brotli: stages.append(try BrotliStage())
            case .zstd: stages.append(try ZstdStage())
            }
        }
        if stages.isEmpty { stages = [PlainStage()] }
        self.stages = stages
    }

    /// Provides the next part of the content; ``next()`` must have returned `nil` before.
    package mutating func feed(_ part: [UInt8]) { stages.first?.feed(part) }

    /// The next block of output, which is not empty; `nil` if more of the content is needed.
    package mutating func next() throws(ContentCodingError) -> [UInt8]? {
        try next(of: stages.count - 1)
    }

    private func next(of stage: Int) throws(ContentCodingError) -> [UInt8]? {
        while true {
            if let block = try stages[stage].next() { return block }
            guard stage > 0, let part = try next(of: stage - 1) else { return nil }
            stages[stage].feed(part)
        }
    }

    /// Ends the content; ``next()`` must have returned `nil` before.
    package mutating func finish() throws(ContentCodingError) {
        for stage in stages { try stage.finish() }
    }
}

/// One coding.
private protocol DecodingStage: AnyObject {
    func feed(_ part: [UInt8])
    func next() throws(ContentCodingError) -> [UInt8]?
    func finish() throws(ContentCodingError)
}

private final class PlainStage: DecodingStage {
    private var part: [UInt8]?

    func feed(_ part: [UInt8]) { self.part = part.isEmpty ? nil : part }
    func next() -> [UInt8]? { part.take() }
    func finish() {}
}

/// Input that has not been used yet.
private struct PendingInput {
    private(set) var bytes: [UInt8] = []
    var used = 0
    /// Whether there was any input.
    private(set) var hasBegun = false

    var left: Int { bytes.count - used }
    var isEmpty: Bool { left == 0 }

    mutating func feed(_ part: [UInt8]) {
        if isEmpty { bytes = part } else { bytes = bytes[used...] + part }
        used = 0
        if !part.isEmpty { hasBegun = true }
    }
}

private final class InflatingStage: DecodingStage {
    private let coding: ContentCoding
    private var input = PendingInput()
    /// Separately allocated, because zlib compares addresses; `nil` before the first bytes.
    private var stream: UnsafeMutablePointer<z_stream>?
    private let block = DecodingBlock()
    /// Whether a member of a gzip file, or the whole content, has ended.
    private var isComplete = false
    /// Whether zero bytes have followed the end: nothing else may follow then.
    private var isPadded = false

    init(_ coding: ContentCoding) { self.coding = coding }

    deinit {
        guard let stream else { return }
        inflateEnd(stream)
        stream.deallocate()
    }

    func feed(_ part: [UInt8]) { input.feed(part) }

    /// Returns `nil` until the first bytes, which determine the format, have arrived.
    private func begun() throws(ContentCodingError) -> UnsafeMutablePointer<z_stream>? {
        if let stream { return stream }
        guard input.left >= 2 else { return nil }
        let wrapper =
            coding == .gzip
            ? ZlibWrapper.gzip : input.bytes.withUnsafeBytes { ZlibWrapper.ofDeflate($0) }
        let made = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        made.initialize(to: z_stream())
        let status = inflateInit2_(
            made, wrapper.rawValue, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        guard status == Z_OK else {
            made.deallocate()
            throw .outOfMemory
        }
        stream = made
        return made
    }

    func next() throws(ContentCodingError) -> [UInt8]? {
        guard let stream = try begun() else { return nil }
        while true {
            if isComplete {
                guard !input.isEmpty else { return nil }
                if try passPadding() { return nil }
                // The next member of a gzip file (RFC 1952, section 2.2).
                guard coding == .gzip, input.bytes[input.used] == 0x1F else {
                    throw .trailingData(coding, offset: nil)
                }
                guard inflateReset(stream) == Z_OK else { throw .outOfMemory }
                isComplete = false
            }
            let (status, count) = inflateBlock(stream)
            switch status {
            case Z_STREAM_END: isComplete = true
            case Z_OK, Z_BUF_ERROR: break
            case Z_MEM_ERROR: throw .outOfMemory
            case Z_NEED_DICT: throw .corrupt(coding, offset: nil, "it needs a dictionary")
            default:
                let text = stream.pointee.msg.map { String(cString: $0) }
                throw .corrupt(coding, offset: nil, text ?? "invalid data")
            }
            if count > 0 { return Array(block.prefix(count)) }
            if status != Z_STREAM_END, input.isEmpty { return nil }
            guard status != Z_BUF_ERROR else {
                throw .corrupt(coding, offset: nil, "invalid data")
            }
        }
    }

    /// Skips what has arrived of a gzip file's padding, as ``Inflater`` does. Returns false if it
    /// is not padding.
    private func passPadding() throws(ContentCodingError) -> Bool {
        guard coding == .gzip, isPadded || input.bytes[input.used] == 0 else { return false }
        isPadded = true
        guard input.bytes[input.used...].allSatisfy({ $0 == 0 }) else {
            throw .trailingData(coding, offset: nil)
        }
        input.used = input.bytes.count
        return true
    }

    private func inflateBlock(_ stream: UnsafeMutablePointer<z_stream>) -> (Int32, Int) {
        stream.pointee.next_out = block.base
        stream.pointee.avail_out = UInt32(DecodingBlock.size)
        // zlib counts in 32 bits.
        let given = min(input.left, 1 << 30)
        let status = input.bytes.withUnsafeBytes { bytes in
            stream.pointee.next_in = UnsafeMutablePointer(
                mutating: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
                    .advanced(by: input.used))
            stream.pointee.avail_in = UInt32(given)
            defer { stream.pointee.next_in = nil }
            return inflate(stream, Z_NO_FLUSH)
        }
        input.used += given - Int(stream.pointee.avail_in)
        return (status, DecodingBlock.size - Int(stream.pointee.avail_out))
    }

    func finish() throws(ContentCodingError) {
        guard isComplete || !input.hasBegun else { throw .truncated(coding, offset: nil) }
    }
}

private final class BrotliStage: DecodingStage {
    private let decoder: OpaquePointer
    private var input = PendingInput()
    private let block = DecodingBlock()
    private var isComplete = false

    init() throws(ContentCodingError) {
        guard let decoder = BrotliDecoderCreateInstance(nil, nil, nil) else { throw .outOfMemory }
        self.decoder = decoder
    }

    deinit { BrotliDecoderDestroyInstance(decoder) }

    func feed(_ part: [UInt8]) { input.feed(part) }

    func next() throws(ContentCodingError) -> [UInt8]? {
        guard input.hasBegun else { return nil }
        guard !isComplete else {
            guard input.isEmpty else { throw .trailingData(.brotli, offset: nil) }
            return nil
        }
        var room = DecodingBlock.size
        var place: UnsafeMutablePointer<UInt8>? = block.base
        var left = input.left
        let result = input.bytes.withUnsafeBytes { bytes in
            var next = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
                .advanced(by: input.used)
            return BrotliDecoderDecompressStream(decoder, &left, &next, &room, &place, nil)
        }
        input.used = input.bytes.count - left
        switch result {
        case BROTLI_DECODER_RESULT_SUCCESS:
            isComplete = true
            guard input.isEmpty else { throw .trailingData(.brotli, offset: nil) }
        case BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT, BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT: break
        default: throw Brotli.fault(of: decoder, at: nil)
        }
        let count = DecodingBlock.size - room
        return count > 0 ? Array(block.prefix(count)) : nil
    }

    func finish() throws(ContentCodingError) {
        guard isComplete || !input.hasBegun else { throw .truncated(.brotli, offset: nil) }
    }
}

private final class ZstdStage: DecodingStage {
    private var decoder: ZstdDecoder
    private var input = PendingInput()
    private let block = DecodingBlock()

    init() throws(ContentCodingError) { decoder = try ZstdDecoder() }

    func feed(_ part: [UInt8]) { input.feed(part) }

    func next() throws(ContentCodingError) -> [UInt8]? {
        while let count = try decoded() {
            if count > 0 { return Array(block.prefix(count)) }
        }
        return nil
    }

    private func decoded() throws(ContentCodingError) -> Int? {
        do throws(ContentCodingError) {
            let given = input.bytes
            return try given.span.withUnsafeBytes { (bytes) throws(ContentCodingError) in
                var rest = UnsafeRawBufferPointer(rebasing: bytes[input.used...])
                defer { input.used = bytes.count - rest.count }
                return try decoder.next(&rest, into: block)
            }
        } catch {
            throw error.withoutOffset
        }
    }

    func finish() throws(ContentCodingError) {
        do throws(ContentCodingError) { try decoder.finish() } catch { throw error.withoutOffset }
    }
}
