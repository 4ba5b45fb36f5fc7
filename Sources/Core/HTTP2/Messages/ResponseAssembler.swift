import HTTPCore

/// Makes the head of a response from its fields: `HTTP/2.0 SSS CRLF`, the field lines and the empty
/// line, as the parser of response heads reads them.
public struct ResponseAssembler: ~Copyable {
    private var buffer: LineBuffer
    private var status: UInt16 = 0
    private var contentLength: Int64 = -1
    private var fault: MessageError?
    /// Whether fields follow the status, and nothing was refused.
    private var isOpen = false

    /// How many bytes of memory a head needs beyond its own.
    public static let overhead = WordCopy.slack

    /// - Parameter memory: outlives the assembler; at most its size without ``overhead``, and at
    ///   most `limits.headBytes`, are used.
    public init(_ memory: UnsafeMutableRawBufferPointer, limits: HeadLimits = HeadLimits()) {
        buffer = LineBuffer(memory, limit: limits.headBytes, lineLimit: limits.fields)
        buffer.position = Self.startLineBytes
        if !buffer.hasRoom(0) { fault = .headTooLarge }
    }

    /// `HTTP/2.0 SSS CRLF`, with a space before an empty reason phrase.
    private static let startLineBytes = 15

    /// Takes a field.
    @inline(__always)
    mutating func take(_ line: HeaderLine) {
        if isOpen, line.traits.isPlain, buffer.appendPlain(line) { return }
        takeSpecial(line)
    }

    @inline(never)
    private mutating func takeSpecial(_ line: HeaderLine) {
        guard fault == nil else { return }
        switch line.traits.role {
        case .status: fault = takeStatus(line)
        case .method, .scheme, .authority, .path, .protocolName: fault = .misplacedPseudoField
        case .unknownPseudo: fault = .unknownPseudoField
        case .connection: fault = .connectionField
        case .te: fault = .forbiddenTE
        case .regular, .cookie, .priority, .contentLength, .host, .invalid:
            fault = takeField(line)
        }
        isOpen = status != 0 && fault == nil
    }

    private mutating func takeField(_ line: HeaderLine) -> MessageError? {
        guard status != 0 else { return line.traits.fault ?? .statusMissing }
        if line.traits.role == .contentLength {
            guard contentLength < 0 else { return .repeatedContentLength }
            guard line.traits.fault == nil else { return line.traits.fault }
            contentLength = ValueSyntax.number(line.valueBytes) ?? 0
        }
        // Host means nothing here, and is a field like any other.
        let fault =
            line.traits.role == .host
            ? ValueSyntax.faultOfField(line.value, line.valueCount) : line.traits.fault
        return fault ?? buffer.append(line)
    }

    private mutating func takeStatus(_ line: HeaderLine) -> MessageError? {
        if let fault = line.traits.fault { return fault }
        guard buffer.lines == 0 else { return .latePseudoField }
        guard status == 0 else { return .repeatedPseudoField }
        let digits = line.valueBytes
        for digit in digits { status = status &* 10 &+ UInt16(digit &- 0x30) }
        guard status != 101 else { return .switchingProtocols }
        let end = buffer.position
        buffer.position = 0
        buffer.append("HTTP/2.0 ")
        (buffer.base + buffer.position).copyMemory(from: line.value, byteCount: 3)
        buffer.position &+= 3
        buffer.append(" \r\n")
        assert(buffer.position == end)
        return nil
    }

    /// Ends the head.
    /// - Parameter endsStream: whether no content and no trailers follow.
    public consuming func finish(endsStream: Bool) throws(MessageError) -> AssembledResponse {
        if let fault { throw fault }
        guard status != 0 else { throw .statusMissing }
        guard status >= 200 || !endsStream else { throw .interimEndsStream }
        _ = buffer.end()
        return AssembledResponse(
            count: buffer.position, status: status,
            contentLength: contentLength >= 0 ? contentLength : nil, sensitive: buffer.sensitive)
    }
}
