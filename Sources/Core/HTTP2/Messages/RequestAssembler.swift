import HTTPCore

/// Makes the head of a request from its fields: the request line with `HTTP/2.0`, Host, the field
/// lines and the empty line, as the parser of request heads reads them.
///
/// The parts of the request line arrive in any order. The method is written where it belongs; the
/// path where it will be if the parts before it are known, and is moved otherwise; the authority
/// waits behind the head. The request line is completed before the first ordinary field.
public struct RequestAssembler: ~Copyable {
    /// The form of the request's target (RFC 9112 §3.2).
    public enum TargetStyle: Sendable {
        /// `/path`: for a listener that stands for servers, and for intercepted tunnels.
        case origin
        /// `scheme://authority/path`: for a proxy.
        case absolute
    }

    /// How many bytes of memory a head needs beyond its own.
    public static let overhead = authorityRoom + protocolRoom + WordCopy.slack

    private static let authorityRoom = ValueSyntax.authorityBytes + WordCopy.slack
    /// The longest `:protocol`.
    private static let protocolBytes = 64
    private static let protocolRoom = protocolBytes + WordCopy.slack

    private var buffer: LineBuffer
    private let style: TargetStyle
    private let isSecure: Bool
    private let methodLimit: Int
    private let targetLimit: Int
    private var fault: MessageError?

    private var kind = AssembledRequest.Kind.ordinary
    private var hasStartLine = false
    /// Whether fields follow the request line, and nothing was refused.
    private var isOpen = false
    private var methodCount = 0
    private var scheme: Scheme?
    private var pathStart = 0
    private var pathCount = -1
    private var authorityCount = 0
    private var protocolCount = 0
    private var protocolName: ByteRange?
    /// Where the value of Host is, if there is no `:authority`.
    private var host: ByteRange?
    private var priority: ByteRange?
    private var priorityLines = 0
    private var contentLength: Int64 = -1

    /// - Parameters:
    ///   - memory: outlives the assembler; at most its size without ``overhead``, and at most
    ///     `limits.headBytes`, are used.
    ///   - isSecure: whether the connection is TLS: with `origin`, what `:scheme` has to be.
    public init(
        _ memory: UnsafeMutableRawBufferPointer, style: TargetStyle, isSecure: Bool,
        limits: HeadLimits = HeadLimits()
    ) {
        buffer = LineBuffer(
            memory, limit: limits.headBytes, lineLimit: limits.fields,
            reserve: Self.authorityRoom + Self.protocolRoom)
        self.style = style
        self.isSecure = isSecure
        methodLimit = limits.methodBytes
        targetLimit = limits.targetBytes
    }

    /// Where the authority waits, and after it the protocol.
    private var waiting: UnsafeMutableRawPointer { buffer.base + (buffer.limit &+ WordCopy.slack) }

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
        case .method, .scheme, .authority, .path, .protocolName:
            fault = hasStartLine ? .latePseudoField : takePseudo(line)
        case .status: fault = .misplacedPseudoField
        case .unknownPseudo: fault = .unknownPseudoField
        case .connection: fault = .connectionField
        case .regular, .cookie, .priority, .contentLength, .host, .te, .invalid:
            if !hasStartLine { beginFields() }
            fault = fault ?? takeField(line)
        }
        isOpen = hasStartLine && fault == nil
    }

    private mutating func takeField(_ line: HeaderLine) -> MessageError? {
        switch line.traits.role {
        case .cookie: return line.traits.fault ?? buffer.appendCookie(line)
        case .host: return takeHost(line)
        case .contentLength:
            guard contentLength < 0 else { return .repeatedContentLength }
            if let fault = line.traits.fault { return fault }
            contentLength = ValueSyntax.number(line.valueBytes) ?? 0
            return buffer.append(line)
        case .priority:
            if let fault = line.traits.fault ?? buffer.append(line) { return fault }
            let end = buffer.position &- 2
            priorityLines &+= 1
            priority =
                priorityLines == 1 ? ByteRange(from: end &- line.valueCount, to: end) : nil
            return nil
        default: return line.traits.fault ?? buffer.append(line)
        }
    }

    private mutating func takePseudo(_ line: HeaderLine) -> MessageError? {
        switch line.traits.role {
        case .method:
            guard methodCount == 0 else { return .repeatedPseudoField }
            if let fault = line.traits.fault { return fault }
            guard line.valueCount <= methodLimit else { return .methodTooLong }
            guard buffer.hasRoom(line.valueCount) else { return .headTooLarge }
            buffer.base.copyMemory(from: line.value, byteCount: line.valueCount)
            methodCount = line.valueCount
        case .scheme:
            guard scheme == nil else { return .repeatedPseudoField }
            if let fault = line.traits.fault { return fault }
            scheme = line.valueCount == 5 ? .https : .http
        case .path: return takePath(line)
        case .authority:
            guard authorityCount == 0 else { return .repeatedPseudoField }
            if let fault = line.traits.fault { return fault }
            WordCopy.copy(line.value, to: waiting, count: line.valueCount)
            authorityCount = line.valueCount
        default:
            guard protocolCount == 0 else { return .repeatedPseudoField }
            if let fault = line.traits.fault { return fault }
            guard line.valueCount <= Self.protocolBytes else { return .malformedProtocol }
            WordCopy.copy(
                line.value, to: waiting + Self.authorityRoom, count: line.valueCount)
            protocolCount = line.valueCount
        }
        return nil
    }

    @inline(__always)
    private mutating func takePath(_ line: HeaderLine) -> MessageError? {
        guard pathCount < 0 else { return .repeatedPseudoField }
        if let fault = line.traits.fault { return fault }
        guard line.valueCount <= targetLimit else { return .targetTooLong }
        // Behind any method that may still come.
        pathStart = methodCount > 0 ? targetPrefix &+ methodCount : targetPrefix &+ methodLimit
        guard pathStart &+ line.valueCount &+ 2 <= buffer.limit else {
            return .headTooLarge
        }
        WordCopy.copy(line.value, to: buffer.base + pathStart, count: line.valueCount)
        pathCount = line.valueCount
        return nil
    }

    /// How many bytes there are between the method and the path, as far as they are known.
    @inline(__always)
    private var targetPrefix: Int {
        guard style == .absolute, authorityCount > 0 else { return 1 }
        return (scheme == .https ? 9 : 8) &+ authorityCount
    }
}

// The request line.
extension RequestAssembler {
    @inline(never)
    private mutating func beginFields() {
        hasStartLine = true
        fault = startLineFault() ?? writeStartLine()
    }

    /// What is wrong with the pseudo-fields together (RFC 9113 §8.3.1, §8.5, RFC 8441 §4).
    private mutating func startLineFault() -> MessageError? {
        guard methodCount > 0 else { return .methodMissing }
        if methodCount == 7,
            WordCopy.equal(buffer.base, ("CONNECT" as StaticString).utf8Start, count: 7)
        {
            guard protocolCount > 0 else {
                kind = .tunnel
                guard scheme == nil, pathCount < 0 else { return .pseudoFieldInConnect }
                return authorityCount > 0 ? nil : .authorityMissing
            }
            kind = .upgrade
        } else if protocolCount > 0 {
            return .protocolWithoutConnect
        }
        guard let scheme else { return .schemeMissing }
        guard style == .absolute || isSecure == (scheme == .https) else { return .schemeMismatch }
        guard pathCount >= 0 else { return .pathMissing }
        if (buffer.base + pathStart).load(as: UInt8.self) == UInt8(ascii: "*") {
            let isOptions =
                methodCount == 7
                && WordCopy.equal(buffer.base, ("OPTIONS" as StaticString).utf8Start, count: 7)
            guard isOptions else { return .asteriskForbidden }
            // A proxy names the server alone (RFC 9112 §3.2.4).
            if style == .absolute { pathCount = 0 }
        }
        return nil
    }

    private mutating func writeStartLine() -> MessageError? {
        switch kind {
        case .tunnel: return writeTunnelLine()
        case .upgrade:
            // The place of the path was chosen for a longer method.
            methodCount = 3
            buffer.base.copyMemory(
                from: ("GET" as StaticString).utf8Start, byteCount: methodCount)
        case .ordinary: break
        }
        let start = targetPrefix &+ methodCount
        // The version, the line of Host and the empty line.
        guard start &+ pathCount &+ 21 &+ authorityCount <= buffer.limit else {
            return .headTooLarge
        }
        if start != pathStart, pathCount > 0 {
            (buffer.base + start).copyMemory(from: buffer.base + pathStart, byteCount: pathCount)
        }
        pathStart = start
        buffer.position = methodCount
        buffer.append(" ")
        if style == .absolute, authorityCount > 0 {
            buffer.append(scheme == .https ? "https://" : "http://")
            appendAuthority()
        }
        buffer.position = start &+ pathCount
        buffer.append(" HTTP/2.0\r\n")
        if authorityCount > 0 { appendHost() }
        return kind == .upgrade ? appendUpgrade() : nil
    }

    private mutating func writeTunnelLine() -> MessageError? {
        // A space more than for other requests.
        guard methodCount &+ 22 &+ 2 &* authorityCount <= buffer.limit else {
            return .headTooLarge
        }
        buffer.position = methodCount
        buffer.append(" ")
        appendAuthority()
        buffer.append(" HTTP/2.0\r\n")
        appendHost()
        return nil
    }

    @inline(__always)
    private mutating func appendHost() {
        buffer.append("host: ")
        appendAuthority()
        buffer.append("\r\n")
        buffer.countLine()
    }

    @inline(__always)
    private mutating func appendAuthority() {
        (buffer.base + buffer.position).copyMemory(from: waiting, byteCount: authorityCount)
        buffer.position &+= authorityCount
    }

    /// Another protocol on a stream is an upgrade of the connection in HTTP/1 (RFC 8441 §5).
    private mutating func appendUpgrade() -> MessageError? {
        guard buffer.hasRoom(32 &+ protocolCount) else { return .headTooLarge }
        buffer.append("connection: upgrade\r\nupgrade: ")
        let start = buffer.position
        (buffer.base + start).copyMemory(
            from: waiting + Self.authorityRoom, byteCount: protocolCount)
        buffer.position &+= protocolCount
        protocolName = ByteRange(from: start, to: buffer.position)
        buffer.append("\r\n")
        buffer.countLine()
        buffer.countLine()
        return nil
    }
}

// Host, and the end.
extension RequestAssembler {
    /// Host must say the same as `:authority`, and is written only in its place.
    private mutating func takeHost(_ line: HeaderLine) -> MessageError? {
        if let fault = line.traits.fault { return fault }
        guard host == nil else { return .hostRepeated }
        if authorityCount > 0 {
            host = ByteRange()
            let authority = UnsafeRawBufferPointer(start: waiting, count: authorityCount)
            return AuthorityComparison.equal(authority, line.valueBytes, scheme: scheme)
                ? nil : .hostMismatch
        }
        if let fault = buffer.append(line) { return fault }
        let end = buffer.position &- 2
        host = ByteRange(from: end &- line.valueCount, to: end)
        return nil
    }

    /// Ends the head.
    /// - Parameter endsStream: whether no content and no trailers follow.
    public consuming func finish(endsStream: Bool) throws(MessageError) -> AssembledRequest {
        if fault == nil, !hasStartLine { beginFields() }
        if let fault { throw fault }
        if authorityCount == 0 {
            guard let host else { throw .authorityMissing }
            if style == .absolute { try insertAuthority(host) }
        }
        guard !endsStream || contentLength <= 0 else { throw .contentLengthWithoutContent }
        if buffer.end(), priority != nil { priority = buffer.value(of: "priority: ") }
        return AssembledRequest(
            count: buffer.position, kind: kind, protocolName: protocolName, priority: priority,
            contentLength: contentLength >= 0 ? contentLength : nil, sensitive: buffer.sensitive)
    }

    /// Completes an absolute target by what Host names.
    private mutating func insertAuthority(_ host: ByteRange) throws(MessageError) {
        let start = methodCount &+ 1
        let prefix: StaticString = scheme == .https ? "https://" : "http://"
        let prefixCount = prefix.utf8CodeUnitCount
        let added = prefixCount &+ Int(host.count)
        guard buffer.hasRoom(added) else { throw .headTooLarge }
        (buffer.base + (start &+ added)).copyMemory(
            from: buffer.base + start, byteCount: buffer.position &- start)
        (buffer.base + start).copyMemory(from: prefix.utf8Start, byteCount: prefixCount)
        (buffer.base + (start &+ prefixCount)).copyMemory(
            from: buffer.base + (Int(host.start) &+ added), byteCount: Int(host.count))
        buffer.position &+= added
        priority?.start &+= UInt32(added)
        protocolName?.start &+= UInt32(added)
    }
}
