import CZlib

/// The format around deflated data (RFC 1951), as zlib's `windowBits`.
enum ZlibWrapper: Int32 {
    /// RFC 1952.
    case gzip = 31
    /// RFC 1950.
    case zlib = 15
    case none = -15

    /// The format of content whose coding is `deflate`, determined by its first two bytes: a header
    /// of RFC 1950, with which raw deflate does not begin as encoders write it (it would be a
    /// stored block whose unused bits are not zero).
    static func ofDeflate(_ input: UnsafeRawBufferPointer) -> ZlibWrapper {
        guard input.count >= 2, input[0] & 0x0F == 8, input[0] >> 4 <= 7,
            (Int(input[0]) << 8 | Int(input[1])) % 31 == 0
        else { return .none }
        return .zlib
    }
}

/// zlib's decoder.
struct Inflater: ~Copyable {
    private let coding: ContentCoding
    private let wrapper: ZlibWrapper
    private let input: UnsafeRawBufferPointer
    /// Separately allocated, because zlib compares addresses.
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    /// The number of input bytes that zlib has been given.
    private var given = 0

    /// Creates a decoder of `input`, which must outlive it.
    init(
        _ coding: ContentCoding, _ wrapper: ZlibWrapper, of input: UnsafeRawBufferPointer
    ) throws(ContentCodingError) {
        self.coding = coding
        self.wrapper = wrapper
        self.input = input
        stream.initialize(to: z_stream())
        let status = inflateInit2_(
            stream, wrapper.rawValue, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        guard status == Z_OK else { throw .outOfMemory }
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
    }

    /// zlib's position in the input.
    private var offset: Int { given - Int(stream.pointee.avail_in) }

    /// Decodes all of the input.
    mutating func run(into output: inout BoundedOutput) throws(ContentCodingError) {
        let block = DecodingBlock()
        while true {
            feed()
            stream.pointee.next_out = block.base
            stream.pointee.avail_out = UInt32(DecodingBlock.size)
            let status = inflate(stream, Z_NO_FLUSH)
            let room = Int(stream.pointee.avail_out)
            try output.append(block.prefix(DecodingBlock.size - room))
            switch status {
            case Z_STREAM_END:
                if offset == input.count || isPadding(from: offset) { return }
                try beginMember()
            case Z_OK, Z_BUF_ERROR:
                guard offset < input.count || room == 0 else {
                    throw .truncated(coding, offset: input.count)
                }
            case Z_MEM_ERROR: throw .outOfMemory
            case Z_NEED_DICT: throw .corrupt(coding, offset: offset, "it needs a dictionary")
            default: throw .corrupt(coding, offset: offset, message)
            }
        }
    }

    /// zlib counts in 32 bits.
    private mutating func feed() {
        guard stream.pointee.avail_in == 0, given < input.count, let base = input.baseAddress
        else { return }
        let size = min(input.count - given, 1 << 30)
        stream.pointee.next_in = UnsafeMutablePointer(
            mutating: (base + given).assumingMemoryBound(to: UInt8.self))
        stream.pointee.avail_in = UInt32(size)
        given += size
    }

    /// Whether only zero bytes follow a gzip file: some programs fill up blocks with them, and gzip
    /// itself ignores them.
    private func isPadding(from offset: Int) -> Bool {
        wrapper == .gzip && input[offset...].allSatisfy { $0 == 0 }
    }

    /// Continues with the next member of a gzip file (RFC 1952 §2.2).
    private mutating func beginMember() throws(ContentCodingError) {
        let offset = self.offset
        guard wrapper == .gzip, input.count - offset >= 2, input[offset] == 0x1F,
            input[offset + 1] == 0x8B
        else { throw .trailingData(coding, offset: offset) }
        guard inflateReset(stream) == Z_OK else { throw .outOfMemory }
    }

    private var message: String {
        stream.pointee.msg.map { String(cString: $0) } ?? "invalid data"
    }
}

/// zlib's encoder.
enum Deflater {
    /// The maximum size of the content in bytes.
    static let maximumBytes = 1 << 30
    private static func level(_ effort: CodingEffort) -> Int32 {
        switch effort {
        case .least: 1
        // zlib's own default.
        case .usual: 6
        }
    }

    /// The number of bytes that are output at a time.
    private static let part = 4096

    /// Encodes the content as one member or stream. The gzip header has neither time nor name, so
    /// that the same content always gives the same bytes.
    static func encode(
        _ content: UnsafeRawBufferPointer, _ wrapper: ZlibWrapper,
        _ effort: CodingEffort = .usual, _ yieldPoint: (() -> Void)? = nil
    ) throws(ContentCodingError) -> [UInt8] {
        guard content.count <= maximumBytes else { throw .tooLarge(maximum: maximumBytes) }
        var stream = z_stream()
        return try withUnsafeMutablePointer(to: &stream) {
            (stream) throws(ContentCodingError) -> [UInt8] in
            let status = deflateInit2_(
                stream, level(effort), Z_DEFLATED, wrapper.rawValue, 8, Z_DEFAULT_STRATEGY,
                ZLIB_VERSION,
                Int32(MemoryLayout<z_stream>.size))
            guard status == Z_OK else { throw .outOfMemory }
            defer { deflateEnd(stream) }
            return try finish(content, stream, yieldPoint)
        }
    }

    private static func finish(
        _ content: UnsafeRawBufferPointer, _ stream: UnsafeMutablePointer<z_stream>,
        _ yieldPoint: (() -> Void)?
    ) throws(ContentCodingError) -> [UInt8] {
        let bound = Int(deflateBound(stream, UInt(content.count)))
        var status = Z_OK
        let output = [UInt8](unsafeUninitializedCapacity: bound) { memory, count in
            stream.pointee.next_in = UnsafeMutablePointer(
                mutating: content.baseAddress?.assumingMemoryBound(to: UInt8.self))
            stream.pointee.avail_in = UInt32(content.count)
            stream.pointee.next_out = memory.baseAddress
            while status == Z_OK, count < bound {
                let room = min(part, bound - count)
                stream.pointee.avail_out = UInt32(room)
                status = deflate(stream, Z_FINISH)
                count += room - Int(stream.pointee.avail_out)
                yieldPoint?()
            }
        }
        guard status == Z_STREAM_END else { throw .outOfMemory }
        return output
    }
}
