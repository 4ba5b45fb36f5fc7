import HTTPCore

/// An HTTP/2 connection, as a server or as a client, as a state machine: bytes and the time in,
/// events and frames out (RFC 9113).
///
/// What is received is given to ``receive(_:now:)``, which finds one event after the other. Field
/// blocks and content stay where they are: an event has their place. What this side sends is
/// reported, after it has been asked what may be sent: HEADERS (``sendHead(_:endsStream:)``) and
/// DATA (``nextToSend()``, ``sendable(_:)``, ``sentData(_:_:endsStream:)``) are written by the
/// caller, with the frames of `HeadWriter`; all other frames are in ``control``, and must be sent
/// before anything else.
///
/// A stream belongs to the caller from its first event until ``released(_:)``, whatever happens to
/// it meanwhile: only then is its slot used again, and only then does a stream that was reset give
/// back its place among the concurrent ones. So however fast a client opens and resets streams, no
/// more of them than the limit can occupy anything behind this connection.
///
/// Nothing is allocated while there are no more streams than there were before.
public struct HTTP2Connection: ~Copyable {
    /// What this side is.
    public enum Role: CaseIterable, Sendable { case server, client }

    /// What a client sends first (RFC 9113 §3.4).
    public static let preface: StaticString = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

    /// What is expected of the peer's bytes.
    enum Phase: UInt8 {
        /// A server: the client's preface.
        case preface
        /// The first frame, which must be SETTINGS.
        case firstFrame
        case frame
        /// The rest of a DATA frame.
        case content
        /// The rest of a frame that is passed over.
        case skipping
        /// The connection has failed; nothing is read any more.
        case failed
    }

    /// What ``receive(_:now:)`` reports before it takes anything else.
    struct Pending: OptionSet {
        let rawValue: UInt8

        static var streamFailed: Pending { Pending(rawValue: 1) }
        static var warned: Pending { Pending(rawValue: 2) }
        static var failed: Pending { Pending(rawValue: 4) }
    }

    /// How far the end has been announced.
    enum Drain: UInt8 {
        case none
        /// A server: that no more streams should be opened; those on their way are accepted.
        case announced
        /// Which stream is the last.
        case final
    }

    public let role: Role
    public let limits: HTTP2Limits
    /// What the peer has said in SETTINGS.
    public internal(set) var peer = PeerSettings()
    /// What the peer did that costs and brings nothing.
    public internal(set) var budget: AbuseBudget
    /// The time that the last answer to PING took, in milliseconds; `nil` if there was none.
    public internal(set) var roundTripMilliseconds: Int64?

    var phase: Phase
    var streams = StreamTable()
    var ready = ReadyStreams()
    var resets: ResetStreams
    var output = ControlOutput()
    var growth: WindowGrowth
    /// The connection's windows.
    var receiving: ReceiveWindow
    var sendWindow = PeerSettings.initialWindow

    /// How many streams count towards the limit.
    var places = 0
    /// The last stream that the peer has opened.
    var lastPeerStream: UInt32 = 0
    /// The peer has passed over stream numbers within this range.
    var firstSkipped = UInt32.max
    var lastSkipped: UInt32 = 0
    /// A client: the next stream's number.
    var nextStream: UInt32 = 1

    /// How much of the preface has been received, in bytes.
    var prefaceBytes = 0
    /// Whether the peer's first SETTINGS have arrived.
    var hasPeerSettings = false
    var settingsAcknowledged = false
    /// The DATA frame that is being received: content and padding to come, and its stream.
    var contentLeft = 0
    var paddingLeft = 0
    var contentStream = StreamRef(id: 0, slot: -1)
    var contentEnds = false
    /// How much is passed over, in bytes.
    var skipLeft = 0
    /// The stream of a field block of which more frames follow, or 0.
    var blockStream: UInt32 = 0
    var blockEndsStream = false
    var blockDependsOnItself = false
    var block = FieldBlockBuffer()
    /// Whether something was sent on a stream after the last PING: a peer may ask once for all that
    /// it receives, to measure how fast that is.
    var hasSentSincePing = false
    /// Padding that has not been counted yet, in bytes.
    var padding = 0

    var pending: Pending = []
    var failedStream = StreamRef(id: 0, slot: -1)
    var streamReason = StreamReason.frameAfterEnd
    /// Why it has failed, once it has.
    public internal(set) var connectionReason = ConnectionReason.internalError

    var drain = Drain.none
    /// The last stream that this side will process, once the end has been announced.
    var lastProcessed = UInt32.max
    /// The last stream that the peer will process.
    var peerLastProcessed = UInt32.max
    var drainedAt: Int64 = 0
    let startedAt: Int64
    var receivedAt: Int64
    /// When the PING was sent that has not been answered yet.
    var askedAt: Int64?
    /// Priorities of streams that have not been opened yet.
    var early = EarlyPriorities()

    /// Creates a connection; its first frames are in ``control``.
    /// - Parameter now: the time in milliseconds, as everywhere here; only differences matter.
    public init(role: Role, limits: HTTP2Limits = HTTP2Limits(), now: Int64) {
        self.role = role
        self.limits = limits
        budget = AbuseBudget(resets: limits.resets, now: now)
        phase = role == .server ? .preface : .firstFrame
        resets = ResetStreams(capacity: limits.streams)
        growth = WindowGrowth(limits)
        receiving = ReceiveWindow(limits.connectionWindow)
        startedAt = now
        receivedAt = now
        writeBeginning()
    }

    // MARK: What must be sent

    /// Frames that must be sent before anything else, though not within a frame; valid until the
    /// next change. Call ``tookControl(_:)`` for what was copied.
    public var control: UnsafeRawBufferPointer { output.bytes }

    /// Whether there are any.
    public var hasControl: Bool { output.count > 0 }

    /// The first `count` bytes of ``control`` have been taken.
    public mutating func tookControl(_ count: Int) { output.take(count) }

    /// The field block that came in several frames, for an event that says so; valid until the next
    /// call of ``receive(_:now:)``.
    public var assembledBlock: UnsafeRawBufferPointer { block.bytes }

    /// The bytes of a field block, whose event was found in `received`.
    public func bytes(
        of block: FieldBlock, in received: UnsafeRawBufferPointer
    ) -> UnsafeRawBufferPointer {
        switch block {
        case .received(let range): UnsafeRawBufferPointer(rebasing: received[range])
        case .assembled: assembledBlock
        }
    }

    // MARK: What it is doing

    /// How many streams have not been released.
    public var streamCount: Int { streams.count }

    /// Whether a field block has begun and not ended: it must not take long.
    public var isWithinFieldBlock: Bool { blockStream != 0 }

    /// Whether it has failed: what ``control`` still has is sent, then it is closed.
    public var hasFailed: Bool { phase == .failed }

    /// Whether it is being ended by either side: no more streams will be opened.
    public var isEnding: Bool {
        hasFailed || drain != .none || peerLastProcessed != UInt32.max
    }

    /// Whether nothing more will happen on it: once ``control`` is empty it is closed.
    public var isDone: Bool {
        guard output.count == 0 else { return false }
        if hasFailed { return true }
        return streams.count == 0
            && (drain == .final || role == .client && peerLastProcessed != UInt32.max)
    }

    /// The state of a stream that has not been released; for one that has, what is known of it.
    public func state(of ref: StreamRef) -> StreamState {
        streams.contains(ref) ? streams[ref.slot].state : state(ofUnknown: ref.id)
    }

    /// The state of a stream that is not in the table.
    func state(ofUnknown id: UInt32) -> StreamState {
        let isPeers = (id & 1 == 1) == (role == .server)
        let isIdle = isPeers ? id > lastPeerStream : id >= nextStream || id & 1 == 0
        if isIdle { return isPeers && id > lastProcessed ? .resetByUs : .idle }
        return resets.contains(id) ? .resetByUs : .ended
    }
}

// MARK: What is received

extension HTTP2Connection {
    /// Where a field block is.
    public enum FieldBlock: Equatable, Sendable {
        /// At this place of the bytes that were received.
        case received(Range<Int>)
        /// In ``HTTP2Connection/assembledBlock``.
        case assembled
    }

    /// What was found at the front of received bytes.
    public enum Event: Equatable, Sendable {
        /// More bytes are needed.
        case needMore
        /// What was found needs no attention.
        case nothing
        /// ``HTTP2Connection/control`` must be sent before more is received.
        case controlIsFull
        /// A message's head: on a server it opens the stream. On a client, interim heads must be
        /// reported (``HTTP2Connection/interimHead(_:)``).
        case headers(StreamRef, FieldBlock, endsStream: Bool)
        /// A message's trailers, which end it.
        case trailers(StreamRef, FieldBlock)
        /// A field block that means nothing, but must be decoded to keep the table in step.
        case discarded(FieldBlock)
        /// Content, at this place of the received bytes.
        case data(StreamRef, Range<Int>, endsStream: Bool)
        /// The peer has reset a stream.
        case reset(StreamRef, ErrorCode)
        /// A stream has been reset because of what the peer sent.
        case streamFailed(StreamRef, StreamReason)
        /// More may be sent on a stream, or on the connection (`nil`).
        case windowGrew(StreamRef?)
        /// ``HTTP2Connection/peer`` has changed, and windows may have grown.
        case settings
        /// PING has been answered after so many milliseconds.
        case pingAnswered(milliseconds: Int64)
        /// The peer processes no streams beyond `lastStream`. A client's streams beyond it are
        /// closed, and their requests may be sent again elsewhere.
        case goaway(lastStream: UInt32, ErrorCode)
        /// A stream's priority has been changed by the peer.
        case priority(StreamRef, StreamPriority)
        /// Three quarters of ``HTTP2Connection/budget`` are used; no more streams are accepted.
        case warned
        /// The connection has failed. The peer is told why (``HTTP2Connection/control``).
        case failed(ConnectionReason)
    }

    /// An event, and how many of the bytes it has taken.
    public struct Received: Equatable, Sendable {
        public var consumed: Int
        public var event: Event

        @inline(__always)
        init(_ consumed: Int, _ event: Event) {
            self.consumed = consumed
            self.event = event
        }
    }
}
