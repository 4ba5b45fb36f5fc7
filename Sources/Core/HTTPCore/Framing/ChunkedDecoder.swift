/// Decodes the chunked transfer coding with its trailers (RFC 9112 §7.1), strictly.
///
///     chunked-body   = *chunk last-chunk trailer-section CRLF
///     chunk          = chunk-size [ chunk-ext ] CRLF chunk-data CRLF
///     last-chunk     = 1*("0") [ chunk-ext ] CRLF
///     chunk-ext      = *( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )
///
/// It is stricter than the grammar in these points: no whitespace around sizes, no bare LF, at most
/// 16 digits and sizes below 2^63. Extensions are checked, limited in size and dropped. A user
/// agent accepts whitespace after a size, with which old servers pad it, up to the limit on
/// extensions.
public struct ChunkedDecoder: Sendable {
    private enum State: UInt8 {
        case sizeStart, size, sizeSpace
        case extensionStart, extensionName, extensionNameEnd
        case extensionValueStart, extensionToken, extensionQuoted, extensionEscape
        case extensionQuotedEnd, extensionValueEnd
        case sizeLineFeed, data, dataReturn, dataLineFeed
        case trailerStart, trailers, endLineFeed, end
    }

    /// The limits for bodies.
    public let limits: ChunkedLimits
    /// Whether the recipient is the user agent itself, which forwards the content to nobody.
    private let isUserAgent: Bool
    private var state = State.sizeStart
    private var sizeDigits: UInt8 = 0
    private var extensionBytes = 0
    /// The size being read, then the number of bytes of the chunk's data that are still to come.
    private var remaining: UInt64 = 0
    private var scanner = FieldScanner(from: 0)
    /// The bytes of the trailer section including its empty line; empty if there are no trailers.
    public private(set) var trailerBytes: ContiguousArray<UInt8> = []
    /// The trailer fields, over ``trailerBytes``. Whoever forwards them must drop those in
    /// ``FieldIDSet/forbiddenInTrailers``. Complete when the body is.
    public private(set) var trailers = FieldSection()

    /// A decoder before the first chunk.
    public init(limits: ChunkedLimits = ChunkedLimits(), isUserAgent: Bool = false) {
        self.limits = limits
        self.isUserAgent = isUserAgent
    }

    /// Whether the end was reached.
    public var isComplete: Bool { state == .end }

    /// Decodes more bytes. Bytes that were consumed must not be passed again. An error is final.
    public mutating func decode(_ bytes: Span<UInt8>) throws(WireError) -> BodyStep {
        try bytes.withUnsafeBufferPointer { (buffer) throws(WireError) -> BodyStep in
            guard let bytes = HeadBytes(buffer, count: buffer.count) else {
                return state == .end ? .end(consumed: 0) : .needMore(consumed: 0)
            }
            return try step(bytes)
        }
    }

    private mutating func step(_ bytes: HeadBytes) throws(WireError) -> BodyStep {
        var index = 0
        while index < bytes.count {
            switch state {
            case .data:
                let count = Int(min(remaining, UInt64(bytes.count &- index)))
                remaining &-= UInt64(count)
                if remaining == 0 { state = .dataReturn }
                return .data(offset: index, count: count, consumed: index &+ count)
            case .trailerStart where bytes[index] == Byte.carriageReturn:
                state = .endLineFeed
                index &+= 1
            case .trailerStart, .trailers:
                state = .trailers
                return try collectTrailers(bytes, from: index)
            case .endLineFeed:
                guard bytes[index] == Byte.lineFeed else { throw .bareCarriageReturn }
                state = .end
                return .end(consumed: index &+ 1)
            case .end:
                return .end(consumed: index)
            case .sizeStart, .size, .sizeSpace, .sizeLineFeed, .dataReturn, .dataLineFeed:
                try takeSizeByte(bytes[index])
                index &+= 1
            case .extensionStart, .extensionName, .extensionNameEnd, .extensionValueStart,
                .extensionToken, .extensionQuoted, .extensionEscape, .extensionQuotedEnd,
                .extensionValueEnd:
                try takeExtensionByte(bytes[index])
                index &+= 1
            }
        }
        return .needMore(consumed: index)
    }

    /// Handles one byte of a chunk's size, of the line ending after it, or of the one after its
    /// data.
    @inline(__always)
    private mutating func takeSizeByte(_ byte: UInt8) throws(WireError) {
        switch state {
        case .sizeStart, .size:
            if let digit = ASCII.hexValue(byte) {
                // Sixteen digits of which the first is below 8 are a number below 2^63.
                guard sizeDigits < 16, sizeDigits < 15 || remaining < 1 &<< 59 else {
                    throw .chunkTooLarge
                }
                remaining = remaining &<< 4 | UInt64(digit)
                sizeDigits &+= 1
                state = .size
            } else {
                guard state == .size else {
                    throw byte == Byte.lineFeed ? .bareLineFeed : .malformedChunkSize
                }
                try endSize(byte)
            }
        case .sizeSpace: try endSize(byte)
        case .sizeLineFeed:
            guard byte == Byte.lineFeed else { throw .bareCarriageReturn }
            state = remaining == 0 ? .trailerStart : .data
        case .dataReturn:
            guard byte == Byte.carriageReturn else { throw .unterminatedChunk }
            state = .dataLineFeed
        default:
            guard byte == Byte.lineFeed else { throw .unterminatedChunk }
            sizeDigits = 0
            state = .sizeStart
        }
    }

    private mutating func endSize(_ byte: UInt8) throws(WireError) {
        switch byte {
        case Byte.carriageReturn: state = .sizeLineFeed
        case Byte.semicolon:
            try countExtensionByte()
            state = .extensionStart
        case Byte.space where isUserAgent, Byte.tab where isUserAgent:
            try countExtensionByte()
            state = .sizeSpace
        case Byte.lineFeed: throw .bareLineFeed
        default: throw .malformedChunkSize
        }
    }

    private mutating func countExtensionByte() throws(WireError) {
        extensionBytes &+= 1
        guard extensionBytes <= limits.extensionBytes else { throw .chunkExtensionsTooLarge }
    }

    /// Handles one byte of a chunk's extensions, after their first semicolon.
    private mutating func takeExtensionByte(_ byte: UInt8) throws(WireError) {
        switch state {
        case .extensionQuoted where byte == Byte.quote: state = .extensionQuotedEnd
        case .extensionQuoted where byte == Byte.backslash: state = .extensionEscape
        case .extensionQuoted where ByteClass.isFieldValue(byte),
            .extensionEscape where ByteClass.isFieldValue(byte):
            state = .extensionQuoted
        case .extensionQuoted, .extensionEscape: throw extensionFault(byte)
        default: try takeUnquotedExtensionByte(byte)
        }
        if state != .sizeLineFeed { try countExtensionByte() }
    }

    private mutating func takeUnquotedExtensionByte(_ byte: UInt8) throws(WireError) {
        let isToken = ByteClass.isToken(byte)
        switch state {
        case .extensionStart where isToken, .extensionName where isToken: state = .extensionName
        case .extensionValueStart where byte == Byte.quote: state = .extensionQuoted
        case .extensionValueStart where isToken, .extensionToken where isToken:
            state = .extensionToken
        case .extensionName where byte == Byte.equals,
            .extensionNameEnd where byte == Byte.equals:
            state = .extensionValueStart
        // Whitespace around `;` and `=` (RFC 9112 §7.1.1), but not at the end of the line.
        case .extensionStart where ASCII.isWhitespace(byte),
            .extensionValueStart where ASCII.isWhitespace(byte):
            break
        case .extensionName where ASCII.isWhitespace(byte),
            .extensionNameEnd where ASCII.isWhitespace(byte):
            state = .extensionNameEnd
        case .extensionToken where ASCII.isWhitespace(byte),
            .extensionQuotedEnd where ASCII.isWhitespace(byte),
            .extensionValueEnd where ASCII.isWhitespace(byte):
            state = .extensionValueEnd
        case .extensionName where byte == Byte.semicolon,
            .extensionNameEnd where byte == Byte.semicolon,
            .extensionToken where byte == Byte.semicolon,
            .extensionQuotedEnd where byte == Byte.semicolon,
            .extensionValueEnd where byte == Byte.semicolon:
            state = .extensionStart
        case .extensionName where byte == Byte.carriageReturn,
            .extensionToken where byte == Byte.carriageReturn,
            .extensionQuotedEnd where byte == Byte.carriageReturn:
            state = .sizeLineFeed
        default: throw extensionFault(byte)
        }
    }

    private func extensionFault(_ byte: UInt8) -> WireError {
        byte == Byte.lineFeed ? .bareLineFeed : .malformedChunkExtension
    }

    /// Copies the trailer section, which may arrive in pieces, and parses its fields.
    private mutating func collectTrailers(
        _ bytes: HeadBytes, from start: Int
    ) throws(WireError) -> BodyStep {
        let before = trailerBytes.count
        let count = min(limits.trailerBytes &- before, bytes.count &- start)
        for index in start..<start &+ count { trailerBytes.append(bytes[index]) }
        // Moved out of self, so that they can be modified while the bytes are borrowed.
        var fields = FieldSection()
        swap(&fields, &trailers)
        var scanner = scanner
        let isComplete = try Self.scan(
            trailerBytes.span, with: &scanner, into: &fields, limit: limits.trailerFields)
        self.scanner = scanner
        swap(&fields, &trailers)
        if isComplete {
            trailerBytes.removeLast(trailerBytes.count &- scanner.position)
            state = .end
            return .end(consumed: start &+ scanner.position &- before)
        }
        guard trailerBytes.count < limits.trailerBytes else { throw .trailersTooLarge }
        return .needMore(consumed: bytes.count)
    }

    /// Scans a trailer section, which may be incomplete.
    static func scan(
        _ section: Span<UInt8>, with scanner: inout FieldScanner, into fields: inout FieldSection,
        limit: Int
    ) throws(WireError) -> Bool {
        do throws(WireError) {
            return try section.withUnsafeBufferPointer { (buffer) throws(WireError) -> Bool in
                guard let bytes = HeadBytes(buffer, count: buffer.count) else { return false }
                return try scanner.scan(bytes, into: &fields, limit: limit)
            }
        } catch {
            throw error == .tooManyFields ? .tooManyTrailers : error
        }
    }
}
