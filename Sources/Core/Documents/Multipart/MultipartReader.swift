/// Reads `multipart/form-data` (RFC 7578; RFC 2046 §5.1) as it arrives, in pieces of any size. It
/// buffers no content: at most the beginning of a delimiter, and one part's header.
///
/// Readers differ in what they accept as a delimiter, and a body that two of them interpret
/// differently is how a part gets past a check. So anything that is not clearly one or the other is
/// refused:
///
/// - A delimiter is CRLF (or the body's beginning), `--`, the boundary, spaces and tabs, CRLF.
///   Anything similar that is not at the beginning of a line is content.
/// - A line that begins with `--` and the boundary but continues differently is refused: by RFC
///   2046 it is a delimiter, for most readers it is not.
/// - So is `--` and the boundary after an LF without CR, an LF without CR that ends a delimiter's
///   line, and a lone LF or CR in a header.
/// - A body that ends before the last delimiter (`--` after the boundary) is refused.
/// - Anything before the first delimiter and after the last is ignored. There may be no part
///   between the first and the last: browsers send an empty form that way.
///
/// After it has thrown an error, it always throws the same one.
public struct MultipartReader: Sendable {
    private enum State {
        case preamble
        case delimiter(DelimiterEnd)
        case header
        case content
        case epilogue
    }

    /// How much has been read after a boundary.
    private enum DelimiterEnd {
        case start
        case dash
        case padding(isLast: Bool)
        case carriageReturn(isLast: Bool)
    }

    private static let carriageReturn = UInt8(ascii: "\r")
    private static let lineFeed = UInt8(ascii: "\n")

    private let limits: MultipartLimits
    /// CRLF, `--`, the boundary.
    private let delimiter: [UInt8]
    private var state = State.preamble
    /// How many bytes of the delimiter the last bytes match, from its first or second on.
    private var matched = 2
    /// Where in the delimiter they began: 0, or 1 without CR; 2 if the CRLF did not belong to
    /// content, but to an empty line, or was before the body.
    private var matchStart = 2
    private var header: [UInt8] = []
    private var parts = 0
    private var partName = ""
    private var partBytes = 0
    private var offset = 0
    private var failure: DocumentError?

    /// - Parameter boundary: the parameter of Content-Type, without quotation marks.
    /// - Throws: `malformed` for a boundary that RFC 2046 does not allow: it has 1 to 70 characters
    ///   of a certain set, and the last one is not a space.
    public init(
        boundary: String, limits: MultipartLimits = .standard
    ) throws(DocumentError) {
        let bytes = Array(boundary.utf8)
        guard (1...70).contains(bytes.count), bytes.last != UInt8(ascii: " "),
            bytes.allSatisfy(Self.isBoundaryByte)
        else { throw DocumentError(.multipart, .malformed("an invalid boundary")) }
        self.limits = limits
        delimiter = Array("\r\n--".utf8) + bytes
    }

    /// RFC 2046 §5.1.1, `bchars`.
    private static func isBoundaryByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "'()+_,-./:=? ".utf8.contains(byte)
        }
    }

    /// Reads the next bytes of the body.
    ///
    /// - Throws: a ``DocumentError`` with the byte's offset, or what the sink throws.
    public mutating func feed(
        _ bytes: UnsafeRawBufferPointer, into sink: inout some MultipartSink
    ) throws(DocumentError) {
        if let failure { throw failure }
        do throws(DocumentError) {
            guard bytes.count <= limits.bytes - offset else {
                throw error(.tooLarge(maximum: limits.bytes))
            }
            try read(bytes, into: &sink)
        } catch {
            failure = error
            throw error
        }
    }

    /// Ends the body.
    ///
    /// - Throws: `malformed` if the last delimiter is missing.
    public mutating func finish() throws(DocumentError) {
        if let failure { throw failure }
        switch state {
        case .epilogue, .delimiter(.padding(isLast: true)): return
        default: throw error(.malformed("the body ends before its last delimiter"))
        }
    }

    private mutating func read(
        _ bytes: UnsafeRawBufferPointer, into sink: inout some MultipartSink
    ) throws(DocumentError) {
        let start = offset
        while offset - start < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[(offset - start)...])
            switch state {
            case .preamble, .content: try search(rest, into: &sink)
            case .delimiter(let end): try endDelimiter(end, rest[0])
            case .header: try addToHeader(rest[0], into: &sink)
            case .epilogue: offset += rest.count
            }
        }
    }

    private func error(_ reason: DocumentError.Reason) -> DocumentError {
        DocumentError(.multipart, reason, at: DocumentLocation(offset: offset), path: partName)
    }

    // MARK: - Content

    /// Reads content, or what precedes the first delimiter, up to the end of a boundary.
    private mutating func search(
        _ bytes: UnsafeRawBufferPointer, into sink: inout some MultipartSink
    ) throws(DocumentError) {
        if matched == 0 {
            let plain = bytes.firstIndex { $0 == Self.carriageReturn || $0 == Self.lineFeed }
            let count = plain ?? bytes.count
            if count > 0 {
                try give(UnsafeRawBufferPointer(rebasing: bytes[..<count]), to: &sink)
                offset += count
                return
            }
            matchStart = bytes[0] == Self.carriageReturn ? 0 : 1
            matched = matchStart + 1
            offset += 1
            return
        }
        guard bytes[0] == delimiter[matched] else { return try giveUp(into: &sink) }
        offset += 1
        matched += 1
        guard matched == delimiter.count else { return }
        guard matchStart != 1 else { throw error(.malformed("a boundary after an LF without CR")) }
        matched = 0
        if case .content = state { try sink.endPart() }
        state = .delimiter(.start)
    }

    /// What seemed to begin a delimiter was content. The delimiter's first byte does not occur
    /// again in it, so no other delimiter has begun in between.
    private mutating func giveUp(into sink: inout some MultipartSink) throws(DocumentError) {
        let held = matchStart..<matched
        matched = 0
        guard !held.isEmpty else { return }
        let result: Result<Void, DocumentError> = delimiter.withUnsafeBytes { bytes in
            Result { () throws(DocumentError) in
                try give(UnsafeRawBufferPointer(rebasing: bytes[held]), to: &sink)
            }
        }
        try result.get()
    }

    private mutating func give(
        _ bytes: UnsafeRawBufferPointer, to sink: inout some MultipartSink
    ) throws(DocumentError) {
        guard case .content = state else { return }
        guard bytes.count <= limits.partBytes - partBytes else {
            throw error(.tooLarge(maximum: limits.partBytes))
        }
        partBytes += bytes.count
        try sink.content(bytes)
    }

    // MARK: - Delimiters

    private mutating func endDelimiter(_ end: DelimiterEnd, _ byte: UInt8) throws(DocumentError) {
        switch (end, byte) {
        case (.start, UInt8(ascii: "-")): state = .delimiter(.dash)
        case (.dash, UInt8(ascii: "-")): state = .delimiter(.padding(isLast: true))
        case (.start, UInt8(ascii: " ")), (.start, UInt8(ascii: "\t")):
            state = .delimiter(.padding(isLast: false))
        case (.padding, UInt8(ascii: " ")), (.padding, UInt8(ascii: "\t")): break
        case (.start, Self.carriageReturn): state = .delimiter(.carriageReturn(isLast: false))
        case (.padding(let isLast), Self.carriageReturn):
            state = .delimiter(.carriageReturn(isLast: isLast))
        case (.carriageReturn(let isLast), Self.lineFeed):
            if isLast { state = .epilogue } else { try beginHeader() }
        case (_, Self.lineFeed):
            throw error(.malformed("an LF without CR at the end of a delimiter"))
        default: throw error(.malformed("a line that begins with the boundary but continues"))
        }
        offset += 1
    }

    private mutating func beginHeader() throws(DocumentError) {
        partName = ""
        guard parts < limits.parts else { throw error(.tooManyValues(maximum: limits.parts)) }
        parts += 1
        header.removeAll(keepingCapacity: true)
        state = .header
    }

    // MARK: - Headers

    private mutating func addToHeader(
        _ byte: UInt8, into sink: inout some MultipartSink
    ) throws(DocumentError) {
        guard header.count < limits.headerBytes else {
            throw error(.tooLarge(maximum: limits.headerBytes))
        }
        guard (header.last == Self.carriageReturn) == (byte == Self.lineFeed) else {
            throw error(.malformed("a lone CR or LF in a part's header"))
        }
        header.append(byte)
        offset += 1
        guard byte == Self.lineFeed, header.count == 2 || header.suffix(4) == [13, 10, 13, 10]
        else { return }
        var part = try MultipartHeader.part(of: header, offset: offset)
        part.offset = offset
        partName = String(part.name.prefix(40))
        partBytes = 0
        state = .content
        matchStart = 2
        matched = 2
        try sink.beginPart(part)
    }
}
