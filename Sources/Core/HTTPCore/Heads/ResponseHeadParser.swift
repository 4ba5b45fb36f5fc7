/// The properties of a request that determine how its response ends (RFC 9112 §6.3).
public struct ResponseContext: Sendable {
    /// The request's method.
    public var method: Method
    /// Whether the request sent upstream asked for an upgrade; otherwise 101 is an error.
    public var allowsSwitch: Bool
    /// Whether the recipient is the user agent itself, which forwards the response to nobody.
    public var isUserAgent: Bool
    /// Whether irregular lines are accepted, to be repaired (``ResponseHead/repair(in:)``). Not in
    /// heads that had to be rewritten, which would be two irregularities at once, nor in a proxy's
    /// response to CONNECT.
    public var repairsLines: Bool

    /// Creates the context of a request.
    public init(
        method: Method, allowsSwitch: Bool = false, isUserAgent: Bool = false,
        repairsLines: Bool = true
    ) {
        self.method = method
        self.allowsSwitch = allowsSwitch
        self.isUserAgent = isUserAgent
        self.repairsLines = repairsLines
    }

    fileprivate var repair: LineRepair {
        guard repairsLines else { return .none }
        return isUserAgent ? .all : .harmless
    }
}

/// Parses response heads (RFC 9112 §4 to §6), nearly as strictly as requests.
///
///     start ──► version ──► status ──► reason ──► fields ──► (decisions) ──► start
///                                        └──────► bareLines ──────────────────┘
///
/// Three deviations from the grammar are allowed. The space before an empty reason phrase may be
/// missing, as many servers omit it and there is only one way to read that. Some irregular lines
/// are repaired once the head is complete (``LineRepair``). All lines may end in a bare line feed;
/// such a head is only measured here, then rewritten and parsed again (``BareLineHead``).
public struct ResponseHeadParser: Sendable {
    private enum State: UInt8 {
        case start, version, status, reason, fields, bareLines
    }

    /// The limits for heads.
    public let limits: HeadLimits
    private var state = State.start
    /// The next byte to examine, up to the fields.
    private var position = 0
    private var scanner = FieldScanner(from: 0)
    private let versions: VersionText

    /// Offset of the status code and of what follows it.
    private static let statusStart = VersionText.count + 1
    private static let statusEnd = statusStart + 3

    /// Creates a parser for a connection on which nothing has been read.
    ///
    /// - Parameter carrier: where the heads come from, which decides what versions they may have.
    ///   Those that were assembled from HTTP/2 have no lines to repair, so that their context
    ///   should not allow it, and ``ResponseHead/decideContent(follows:)`` completes them.
    public init(limits: HeadLimits = HeadLimits(), carrier: HTTPCarrier = .http1) {
        self.limits = limits
        versions = VersionText(of: carrier)
    }

    /// Whether an unfinished head has begun.
    public var isWithinHead: Bool { state != .start }

    /// Parses the head that begins at the first of `bytes`; see
    /// ``RequestHeadParser/parse(_:into:)``. A complete head must be repaired before it is used
    /// (``ResponseHead/repair(in:)``).
    public mutating func parse(
        _ bytes: Span<UInt8>, answering context: ResponseContext, into head: inout ResponseHead
    ) throws(WireError) -> ParseProgress {
        let visible = min(bytes.count, limits.headBytes)
        do throws(WireError) {
            let isComplete = try bytes.withUnsafeBufferPointer {
                (buffer) throws(WireError) -> Bool in
                guard let bytes = HeadBytes(buffer, count: visible) else { return false }
                return try advance(bytes, context, &head)
            }
            if isComplete {
                let isBare = state == .bareLines
                head.length = isBare ? position : scanner.position
                reset()
                return isBare
                    ? .bareLines(headBytes: head.length) : .complete(headBytes: head.length)
            }
            if visible == limits.headBytes { throw .headTooLarge }
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
    }

    @inline(__always)
    private mutating func advance(
        _ bytes: HeadBytes, _ context: ResponseContext, _ head: inout ResponseHead
    ) throws(WireError) -> Bool {
        while true {
            switch state {
            case .start:
                head.fields.removeAll()
                state = .version
            case .version:
                guard try scanVersion(bytes, &head) else { return false }
                state = .status
            case .status:
                guard try scanStatus(bytes, &head) else { return false }
                position = Self.statusEnd
                state = .reason
            case .reason:
                guard try scanReason(bytes, &head) else { return false }
                if state == .bareLines { continue }
                scanner = FieldScanner(from: position, repairing: context.repair)
                state = .fields
            case .fields:
                guard try scanner.scan(bytes, into: &head.fields, limit: limits.fields) else {
                    return false
                }
                try head.decide(bytes, context, limits)
                return true
            case .bareLines: return try passBareLines(bytes)
            }
        }
    }

    @inline(never)
    private mutating func passBareLines(_ bytes: HeadBytes) throws(WireError) -> Bool {
        guard let end = try BareLineHead.end(bytes, from: &position) else { return false }
        position = end &+ 1
        return true
    }

    @inline(__always)
    private func scanVersion(
        _ bytes: HeadBytes, _ head: inout ResponseHead
    ) throws(WireError) -> Bool {
        guard let version = try versions.parse(bytes, at: 0) else { return false }
        guard bytes.count > VersionText.count else { return false }
        guard bytes[VersionText.count] == Byte.space else { throw .malformedStatusLine }
        head.version = version
        return true
    }

    /// Three digits, the first not 0 (RFC 9110 §15).
    @inline(__always)
    private func scanStatus(
        _ bytes: HeadBytes, _ head: inout ResponseHead
    ) throws(WireError) -> Bool {
        var status: UInt16 = 0
        for index in Self.statusStart..<min(Self.statusEnd, bytes.count) {
            guard ASCII.isDigit(bytes[index]), index > Self.statusStart || bytes[index] != 0x30
            else { throw .malformedStatusLine }
            status = status &* 10 &+ UInt16(bytes[index] &- 0x30)
        }
        head.status = status
        return bytes.count >= Self.statusEnd
    }

    /// A space and any text, or nothing, up to CRLF. After a bare line feed the state is
    /// `bareLines`. Not inlined: it runs once per head, and the loop over the fields is faster
    /// without it.
    @inline(never)
    private mutating func scanReason(
        _ bytes: HeadBytes, _ head: inout ResponseHead
    ) throws(WireError) -> Bool {
        guard Self.statusEnd < bytes.count else { return false }
        let first = bytes[Self.statusEnd]
        if first != Byte.space {
            guard first == Byte.carriageReturn || first == Byte.lineFeed else {
                throw .malformedStatusLine
            }
        }
        while true {
            position = bytes.endOfFieldValue(from: position)
            guard position < bytes.count else { return false }
            guard bytes[position] == Byte.tab else { break }
            position &+= 1
        }
        guard bytes[position] == Byte.carriageReturn else {
            guard bytes[position] == Byte.lineFeed else { throw .malformedStatusLine }
            position &+= 1
            state = .bareLines
            return true
        }
        guard position &+ 1 < bytes.count else { return false }
        guard bytes[position &+ 1] == Byte.lineFeed else { throw .bareCarriageReturn }
        head.reason = ByteRange(from: min(Self.statusEnd &+ 1, position), to: position)
        position &+= 2
        return true
    }
}

extension ResponseHead {
    /// Validates a complete head: framing and connection (RFC 9112 §6.3, §9.3).
    ///
    /// If a response announces content that its status cannot have, it is refused rather than
    /// ignored: a recipient that believes the fields would take part of the next response for it.
    /// For a user agent no response follows on such a connection.
    @inline(__always)
    fileprivate mutating func decide(
        _ bytes: HeadBytes, _ context: ResponseContext, _ limits: HeadLimits
    ) throws(WireError) {
        keepAlive = version.persistsByDefault
        if fields.contains(.connection) {
            let options = try ConnectionOptions.read(
                fields, bytes, limit: limits.connectionOptions)
            if options.nominates { ConnectionOptions.markNominated(&fields, bytes) }
            keepAlive = options.persists(version)
        }
        if context.method == .connect, status / 100 == 2 {
            // A tunnel begins; framing fields have no meaning here (RFC 9110 §9.3.6).
            framing = .none
            return
        }
        let announced =
            context.isUserAgent && fields.contains(.transferEncoding)
            ? try MessageFraming.readAsUserAgent(fields, version, bytes, persists: &keepAlive)
            : try MessageFraming.read(
                &fields, version, bytes, readingEqualLengths: context.repairsLines)
        switch status {
        case 100..<200, 204:
            if let announced, announced != .length(0) {
                guard context.isUserAgent, status == 204 else { throw .contentForbidden }
                keepAlive = false
            }
            if status == 101, !context.allowsSwitch { throw .unexpectedSwitch }
            framing = .none
        case 304: framing = .none
        default:
            let otherwise = version.marksEnd ? BodyFraming.chunked : .untilClose
            framing = context.method == .head ? .none : announced ?? otherwise
            if framing == .untilClose { keepAlive = false }
        }
    }
}
