import HTTPCore

/// Makes a trailer section from its fields: the field lines and the empty line (RFC 9113 §8.1).
public struct TrailerAssembler: ~Copyable {
    private var buffer: LineBuffer
    private var fault: MessageError?

    /// How many bytes of memory a section needs beyond its own.
    public static let overhead = WordCopy.slack

    /// - Parameter memory: outlives the assembler; at most its size without ``overhead``, and at
    ///   most `limits.trailerBytes`, are used.
    public init(_ memory: UnsafeMutableRawBufferPointer, limits: ChunkedLimits = ChunkedLimits()) {
        buffer = LineBuffer(memory, limit: limits.trailerBytes, lineLimit: limits.trailerFields)
    }

    /// Takes a field.
    mutating func take(_ line: HeaderLine) {
        guard fault == nil else { return }
        switch line.traits.role {
        case .method, .scheme, .authority, .path, .protocolName, .status, .unknownPseudo:
            fault = .pseudoFieldInTrailers
        case .connection: fault = .connectionField
        case .te: fault = .forbiddenTE
        case .contentLength, .host: fault = .forbiddenTrailer
        case .regular, .priority, .cookie, .invalid:
            fault = line.traits.fault ?? buffer.append(line)
            if fault == .headTooLarge { fault = .trailersTooLarge }
            if fault == .tooManyFields { fault = .tooManyTrailers }
        }
    }

    /// Ends the section.
    /// - Returns: its length in bytes, including the empty line.
    public consuming func finish() throws(MessageError) -> Int {
        if let fault { throw fault }
        _ = buffer.end()
        return buffer.position
    }
}
