/// Parses request heads (RFC 9112 §2 to §6), strictly.
///
/// One parser serves one connection, head after head. It remembers its position between calls, so
/// no byte is examined twice, and the result does not depend on how a head is split: each state
/// examines bytes in order, using only what came before them.
///
///     start ──► method ──► target ──► version ──► fields ──► (decisions) ──► start
///       └ one empty line is passed over (§2.2)
///
/// An error is thrown at the first byte that shows it; Host, framing and Connection are checked
/// when the head is complete. A head that was assembled from HTTP/2 says nothing of content whose
/// length is unknown: ``RequestHead/decideContent(follows:)`` completes it.
public struct RequestHeadParser: Sendable {
    @usableFromInline enum State: UInt8, Sendable {
        case start, method, target, version, fields
    }

    /// The limits for heads.
    public let limits: HeadLimits
    @usableFromInline var state = State.start
    /// The next byte to examine, up to the fields.
    @usableFromInline var position = 0
    /// Where the part that `state` names began.
    @usableFromInline var mark = 0
    private var scanner = FieldScanner(from: 0)
    private var previousAuthority = PreviousAuthority()
    private let versions: VersionText

    /// Creates a parser for a connection on which nothing has been read.
    ///
    /// - Parameter carrier: where the heads come from, which decides what versions they may have.
    public init(limits: HeadLimits = HeadLimits(), carrier: HTTPCarrier = .http1) {
        self.limits = limits
        versions = VersionText(of: carrier)
    }

    /// Whether an unfinished head has begun: distinguishes a clean end of the connection from a
    /// truncated head.
    @inlinable public var isWithinHead: Bool {
        state != .start && (state != .method || position > mark)
    }

    /// Parses the head that begins at the first of `bytes`.
    ///
    /// After `needMore`, the next call must be given the same bytes followed by the new ones. After
    /// `complete` or an error the parser is ready for another head. The contents of `head` are
    /// defined only after `complete`.
    public mutating func parse(
        _ bytes: Span<UInt8>, into head: inout RequestHead
    ) throws(WireError) -> ParseProgress {
        let visible = min(bytes.count, limits.headBytes)
        do throws(WireError) {
            let isComplete = try bytes.withUnsafeBufferPointer {
                (buffer) throws(WireError) -> Bool in
                guard let bytes = HeadBytes(buffer, count: visible) else { return false }
                return try advance(bytes, &head)
            }
            if isComplete {
                head.length = scanner.position
                reset()
                return .complete(headBytes: head.length)
            }
            if visible == limits.headBytes {
                throw state == .target ? .targetTooLong : .headTooLarge
            }
            return .needMore
        } catch {
            reset()
            throw error
        }
    }

    /// Discards a head that was begun.
    public mutating func reset() {
        state = .start
        position = 0
        mark = 0
    }

    @inline(__always)
    private mutating func advance(
        _ bytes: HeadBytes, _ head: inout RequestHead
    ) throws(WireError) -> Bool {
        while true {
            switch state {
            case .start:
                guard try skipEmptyLine(bytes) else { return false }
                head.fields.removeAll()
                state = .method
            case .method:
                guard try scanMethod(bytes, &head) else { return false }
                state = .target
            case .target:
                guard try scanTarget(bytes, &head) else { return false }
                state = .version
            case .version:
                guard try scanVersion(bytes, &head) else { return false }
                try head.resolveTarget(bytes, &previousAuthority)
                scanner = FieldScanner(from: position)
                state = .fields
            case .fields:
                guard try scanner.scan(bytes, into: &head.fields, limit: limits.fields) else {
                    return false
                }
                try head.decide(bytes, limits)
                return true
            }
        }
    }

    /// A client may send one superfluous empty line after a body; more are refused (RFC 9112 §2.2).
    @inline(__always)
    private mutating func skipEmptyLine(_ bytes: HeadBytes) throws(WireError) -> Bool {
        if bytes[0] == Byte.carriageReturn {
            guard bytes.count > 1 else { return false }
            guard bytes[1] == Byte.lineFeed else { throw .bareCarriageReturn }
            position = 2
            mark = 2
        }
        return true
    }

    @inline(__always)
    private mutating func scanMethod(
        _ bytes: HeadBytes, _ head: inout RequestHead
    ) throws(WireError) -> Bool {
        position = bytes.endOfToken(from: position)
        guard position &- mark <= limits.methodBytes else { throw .methodTooLong }
        guard position < bytes.count else { return false }
        guard bytes[position] == Byte.space, position > mark else {
            throw bytes[position] == Byte.lineFeed ? .bareLineFeed : .malformedRequestLine
        }
        head.methodRange = ByteRange(from: mark, to: position)
        head.method = Method.recognize(bytes, from: mark, to: position)
        if head.method == .other {
            head.recognizeRareMethod(bytes, from: mark, to: position)
        } else {
            head.isRegisteredAsSafe = false
        }
        position &+= 1
        mark = position
        return true
    }

    @inline(__always)
    private mutating func scanTarget(
        _ bytes: HeadBytes, _ head: inout RequestHead
    ) throws(WireError) -> Bool {
        position = bytes.endOfTarget(from: position)
        guard position &- mark <= limits.targetBytes else { throw .targetTooLong }
        guard position < bytes.count else { return false }
        guard bytes[position] == Byte.space, position > mark else {
            switch bytes[position] {
            case Byte.hash: throw .fragmentInTarget
            case Byte.lineFeed: throw .bareLineFeed
            case Byte.space, Byte.carriageReturn: throw .malformedRequestLine
            default: throw .badTargetByte
            }
        }
        head.target = ByteRange(from: mark, to: position)
        position &+= 1
        mark = position
        return true
    }

    @inline(__always)
    private mutating func scanVersion(
        _ bytes: HeadBytes, _ head: inout RequestHead
    ) throws(WireError) -> Bool {
        guard let version = try versions.parse(bytes, at: mark) else { return false }
        let end = mark &+ VersionText.count
        guard end < bytes.count else { return false }
        guard bytes[end] == Byte.carriageReturn else {
            throw bytes[end] == Byte.lineFeed ? .bareLineFeed : .malformedRequestLine
        }
        guard end &+ 1 < bytes.count else { return false }
        guard bytes[end &+ 1] == Byte.lineFeed else { throw .bareCarriageReturn }
        head.version = version
        position = end &+ 2
        return true
    }
}

/// `HTTP-version = "HTTP/" DIGIT "." DIGIT` (RFC 9112 §2.3), in request lines and status lines.
struct VersionText: Sendable {
    /// The length of a version.
    static let count = 8
    /// `HTTP/1.0`, `HTTP/1.1` and `HTTP/2.0` as words, first byte lowest.
    private static let http10: UInt64 = 0x302E_312F_5054_5448
    private static let http11: UInt64 = 0x312E_312F_5054_5448
    private static let http2: UInt64 = 0x302E_322F_5054_5448

    /// The version that is looked for first, and its word.
    private let version: HTTPVersion
    private let word: UInt64

    init(of carrier: HTTPCarrier) {
        version = carrier.version
        word =
            switch carrier {
            case .http1: Self.http11
            case .http2: Self.http2
            }
    }

    /// The version at `start`; `nil` if it has not arrived completely and is valid so far.
    @inline(__always)
    func parse(_ bytes: HeadBytes, at start: Int) throws(WireError) -> HTTPVersion? {
        if start &+ Self.count <= bytes.count {
            let found = bytes.word(at: start)
            if found == word { return version }
            switch version.carrier {
            case .http1: if found == Self.http10 { return .http10 }
            case .http2: break
            }
        }
        try Self.refuse(bytes, at: start)
        return nil
    }

    /// Throws the error of bytes that are not a known version, if there is one.
    @inline(never)
    private static func refuse(_ bytes: HeadBytes, at start: Int) throws(WireError) {
        let template: StaticString = "HTTP/0.0"
        for offset in 0..<min(count, bytes.count &- start) {
            let byte = bytes[start &+ offset]
            let expected = template.utf8Start[offset]
            guard byte == expected || (ASCII.isDigit(expected) && ASCII.isDigit(byte))
            else { throw byte == Byte.lineFeed ? .bareLineFeed : .malformedVersion }
        }
        if start &+ count <= bytes.count { throw .unsupportedVersion }
    }
}

extension Method {
    /// The method that the token `start..<end` spells, case-sensitively.
    @inline(__always)
    static func recognize(_ bytes: HeadBytes, from start: Int, to end: Int) -> Method {
        guard end &- start <= 7, start < end else { return .other }
        switch bytes.shortWord(from: start, to: end) {
        case 0x54_4547: return .get
        case 0x4441_4548: return .head
        case 0x5453_4F50: return .post
        case 0x54_5550: return .put
        case 0x4554_454C_4544: return .delete
        case 0x54_4345_4E4E_4F43: return .connect
        case 0x53_4E4F_4954_504F: return .options
        case 0x45_4341_5254: return .trace
        case 0x48_4354_4150: return .patch
        default: return .other
        }
    }

    /// Whether a token that is none of the cases is a method that IANA's registry lists as safe
    /// (RFC 9110 §16.1.1): PROPFIND, REPORT or SEARCH.
    fileprivate static func isRegisteredAsSafe(_ bytes: HeadBytes, from start: Int, to end: Int)
        -> Bool
    {
        guard end &- start <= 8, start < end else { return false }
        switch bytes.shortWord(from: start, to: end) {
        case 0x444E_4946_504F_5250, 0x5452_4F50_4552, 0x4843_5241_4553: return true
        default: return false
        }
    }
}

extension RequestHead {
    /// Recognizes a method that is apart from the others, so that looking for it costs them
    /// nothing.
    @inline(never)
    fileprivate mutating func recognizeRareMethod(
        _ bytes: HeadBytes, from start: Int, to end: Int
    ) {
        if end &- start == 5, bytes.shortWord(from: start, to: end) == 0x59_5245_5551 {
            method = .query
        }
        isRegisteredAsSafe =
            method == .other && Method.isRegisteredAsSafe(bytes, from: start, to: end)
    }
}
