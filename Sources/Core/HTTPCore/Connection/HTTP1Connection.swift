/// One HTTP/1 connection as a pure state machine: whose turn it is, and whether another request may
/// follow (RFC 9112 §9). It has no socket, buffer or clock.
///
/// A connection carries one exchange after another: the head of a request, its content, then a
/// response. Where one of them ends is decided by the parsers; what may follow is decided here, for
/// both roles. Whoever takes bytes behind a message for another message, when the peer meant
/// something else, is open to request smuggling. So the rule is: the connection is used again only
/// if both messages are complete, nothing was left unsent or unread, and neither side has said
/// anything else. Once ``persists`` is false, nothing makes it true again.
///
///                    ┌────────────────────────── both messages are complete ─────────────────┐
///     opening ──► idle ──► starting ──► requesting ──► awaiting ──► responding ──────────────┤
///                    server: bytes of │     │                          ▲  │                  │
///                    a head; client:  │     ▼ head of the response     │  ▼ not all written  │
///                    it is given to   │ answering ── request complete ─┘ finishing ──────────┤
///                    an exchange      │     │ response complete          ▲                   │
///                                     │     ▼                            │                   │
///                                     │ answered ─── request complete ───┘                   │
///                                     └─ given back unused ──► idle                          ▼
///     server: after a last response ──► lingering ──► closed          client: otherwise ──► closed
///     after CONNECT or 101 ──► detached: the bytes that follow are not HTTP/1
///     server: before the first request, if the client speaks HTTP/2 ──► detached
///
/// Every event is passed to ``handle(_:)``, which says what must be done. The user carries that out
/// at once, and reports ``Event/closed`` when it has closed the connection.
public struct HTTP1Connection: Equatable, Sendable {
    /// Which end of the connection this is.
    public enum Role: UInt8, CaseIterable, Sendable {
        /// It sends requests.
        case client
        /// It receives them.
        case server
    }

    /// Where the exchange is. In both roles the names are about the messages, whoever sends them.
    public enum Phase: UInt8, CaseIterable, Sendable {
        /// The connection is being secured.
        case opening
        /// No message is under way.
        case idle
        /// Server: a part of a request's head has arrived. Client: an exchange has the connection,
        /// and nothing of its request has been sent.
        case starting
        /// The request's head is complete, its content is not, and no final head of a response is.
        case requesting
        /// The request is complete, and it is the server's turn.
        case awaiting
        /// The final head of the response is complete, and neither message is.
        case answering
        /// The request is complete, and the response's content is under way.
        case responding
        /// Client: the response is complete, and the request's content is still to be sent.
        case answered
        /// Client: both messages are complete, but some of the request is unwritten, or the
        /// connection must be closed.
        case finishing
        /// Server: the last response is complete. What still arrives is discarded, so that a reset
        /// does not destroy the response on its way (RFC 9112 §9.6).
        case lingering
        /// The connection has left HTTP/1.
        case detached
        case closed
    }

    /// How the recipient finds the end of the message that this side sends.
    public enum SentFraming: UInt8, CaseIterable, Sendable {
        /// It has no content, or its length is in its head.
        case counted
        case chunked
        /// It ends with the connection: a response to HTTP/1.0.
        case untilClose
    }

    /// What a response's head says in Connection.
    public enum ConnectionOption: CaseIterable, Sendable {
        /// Nothing: the version's default applies.
        case none
        case close, keepAlive
    }

    /// What the head of a request says about the connection.
    public struct Request: Equatable, Sendable {
        public var version: HTTPVersion
        /// Whether content may follow. A client says so of every request, and reports the end.
        public var hasContent: Bool
        /// Whether the client wants the connection to persist.
        public var persists: Bool
        /// Whether another protocol may follow: CONNECT, or a request with Upgrade.
        public var maySwitch: Bool
        /// Whether the content may never come, because its sender waits for an interim response.
        public var expectsContinue: Bool
        /// Client: whether the content is sent in chunks.
        public var isChunked: Bool

        @inlinable
        public init(
            version: HTTPVersion = .http11, hasContent: Bool, persists: Bool = true,
            maySwitch: Bool, expectsContinue: Bool = false, isChunked: Bool = false
        ) {
            self.version = version
            self.hasContent = hasContent
            self.persists = persists
            self.maySwitch = maySwitch
            self.expectsContinue = expectsContinue
            self.isChunked = isChunked
        }
    }

    /// What the final head of a response says about the connection.
    public struct Response: Equatable, Sendable {
        /// Whether the server wants the connection to persist, and can recognize the end of the
        /// content without closing it.
        public var persists: Bool
        /// Whether the request succeeded: its server takes the rest of its content.
        public var isSuccess: Bool
        /// Server: whether the length of the content is unknown.
        public var isStreamed: Bool

        @inlinable
        public init(persists: Bool, isSuccess: Bool = false, isStreamed: Bool = false) {
            self.persists = persists
            self.isSuccess = isSuccess
            self.isStreamed = isStreamed
        }
    }

    /// What is left to write and to read when a message is complete.
    public struct Rest: Equatable, Sendable {
        /// Everything queued has been written.
        public var isFlushed: Bool
        /// Bytes have arrived that belong to no message so far.
        public var hasInput: Bool

        @inlinable
        public init(isFlushed: Bool, hasInput: Bool) {
            self.isFlushed = isFlushed
            self.hasInput = hasInput
        }
    }

    /// Something that happened.
    public enum Event: Equatable, Sendable {
        /// The connection is established, and secured if it is to be.
        case opened
        /// Server: the first bytes of a head have arrived. Client: an exchange takes the
        /// connection.
        case headBegan
        /// Client: the exchange has no request after all.
        case givenBack(Rest)
        /// The head of a request has arrived, or has been queued.
        case requestHead(Request)
        /// Client: content of the request has been queued.
        case contentQueued
        /// The request is complete: it has arrived, or its end has been queued.
        case requestEnded
        /// Client: bytes have arrived in answer.
        case responseBegan
        /// An interim response. `persists` as in ``Response``.
        case interimHead(persists: Bool)
        /// Client: the empty line that may follow an interim response has been passed over.
        case emptyLinePassed
        /// The final head of a response has arrived, or has been queued.
        case responseHead(Response)
        /// Server: the final head was withdrawn before any of it was written.
        case headWithdrawn
        /// The response is complete: all of it has arrived, or has been written.
        case responseEnded(Rest)
        /// Client, after a complete response: the rest of the request has been written, or will not
        /// be.
        case settled(Rest)
        /// Server: the response will not be completed.
        case cut
        /// The peer has ended its direction. `completing`: the content that it was sending ends
        /// there.
        case inputEnded(completing: Bool)
        /// There are signs that the peer has ended its direction; bytes may be left to read.
        case peerFinished
        /// Nothing more can be sent.
        case sendingFailed
        /// Server: the request cannot be read to its end, because it is malformed, late or too
        /// large. It is answered, and nothing behind it is read.
        case refused
        /// The connection is to end: at once, or with the exchange under way.
        case drain(hasInput: Bool)
        /// Another protocol begins, after CONNECT or a 101: the connection is handed over.
        case detached
        /// Server: the client speaks another version of HTTP, as its handshake or its first bytes
        /// say: the connection is handed over.
        case versionChanged
        /// Server: the connection could not be secured, and the client is to see the reason.
        case lingers
        /// The user has closed the connection.
        case closed
    }

    /// What must be done after an event.
    public enum Reaction: Equatable, CaseIterable, Sendable {
        case nothing
        /// The event is impossible in this phase: a bug in the program.
        case illegal
        /// The exchange is over, and the connection is idle.
        case reuse
        /// Client: the response is complete. Its end is reported once the request is written.
        case finishRequest
        /// The connection is closed. If an exchange was under way, it is complete.
        case close
        /// The connection is closed with a reset, because the client could take its end for the end
        /// of the content.
        case reset
        /// The sending direction ends; what arrives is discarded for a while.
        case linger
        /// The exchange is given up, because a message will not be completed, and the connection is
        /// closed.
        case abandon
        /// Server: the beginning of a head is answered with an error (``Event/refused``).
        case refuse
    }

    /// What is known besides the phase.
    @usableFromInline struct Facts: OptionSet, Sendable {
        @usableFromInline let rawValue: UInt16
        @inlinable init(rawValue: UInt16) { self.rawValue = rawValue }

        // Of the connection.
        /// Another exchange may follow, as far as is known.
        @inlinable static var persists: Facts { Facts(rawValue: 1) }
        /// The peer has ended its direction.
        @inlinable static var peerFinished: Facts { Facts(rawValue: 2) }
        /// An exchange was completed on it.
        @inlinable static var hasCarried: Facts { Facts(rawValue: 4) }

        // Of the exchange under way, or the last one.
        /// The request may be followed by another protocol.
        @inlinable static var maySwitch: Facts { Facts(rawValue: 8) }
        /// The request's content may never come, and none of it has.
        @inlinable static var holdsBack: Facts { Facts(rawValue: 16) }
        /// Some byte of the response has arrived.
        @inlinable static var responseBegan: Facts { Facts(rawValue: 32) }
        /// An interim response was the last head.
        @inlinable static var afterInterim: Facts { Facts(rawValue: 64) }
        /// The response says that the request succeeded.
        @inlinable static var isSuccess: Facts { Facts(rawValue: 128) }
        /// The request is complete. The phase does not say so any more once it is closed.
        @inlinable static var requestEnded: Facts { Facts(rawValue: 256) }

        /// All that outlast the exchange.
        @inlinable static var ofConnection: Facts { Facts(rawValue: 1 | 2 | 4) }
    }

    public let role: Role
    @usableFromInline var current: Phase
    @usableFromInline var facts: Facts = .persists
    @usableFromInline var framing = SentFraming.counted
    @usableFromInline var requestVersion = HTTPVersion.http11

    /// - Parameter isOpen: whether there is nothing to be secured, or it has been.
    @inlinable
    public init(_ role: Role, isOpen: Bool) {
        self.role = role
        current = isOpen ? .idle : .opening
    }

    /// Where the exchange is.
    @inlinable public var phase: Phase { current }
    /// How the end of the message that this side sends is found.
    @inlinable public var sentFraming: SentFraming { framing }
    /// The version of the request under way.
    @inlinable public var version: HTTPVersion { requestVersion }
    /// Whether another exchange may follow, as far as is known.
    @inlinable public var persists: Bool { facts.contains(.persists) }
    /// Whether the peer has, or seems to have, ended its direction.
    @inlinable public var peerHasFinished: Bool { facts.contains(.peerFinished) }
    /// Whether an exchange was completed on it.
    @inlinable public var hasCarriedExchange: Bool { facts.contains(.hasCarried) }
    /// Whether some byte of the response under way has arrived.
    @inlinable public var responseHasBegun: Bool { facts.contains(.responseBegan) }
    /// Whether an empty line may precede the next head (an interim response has just ended).
    @inlinable public var emptyLineMayFollow: Bool { facts.contains(.afterInterim) }

    /// What the head of a response says in Connection, once it is known.
    @inlinable public var connectionOption: ConnectionOption {
        guard persists else { return .close }
        return requestVersion.persistsByDefault ? .none : .keepAlive
    }

    /// Whether it is neither closed nor handed over.
    @inlinable @inline(__always)
    public var isOpen: Bool { current != .closed && current != .detached }

    /// Whether an exchange has the connection.
    @inlinable @inline(__always)
    public var isInExchange: Bool {
        switch current {
        case .requesting, .awaiting, .answering, .responding, .answered, .finishing: true
        // A client gives the connection to an exchange that sends its request at once.
        case .starting: role == .client
        case .opening, .idle, .lingering, .detached, .closed: false
        }
    }

    /// Whether the request of the exchange under way, or of the last one, is complete.
    @inlinable public var requestIsComplete: Bool { facts.contains(.requestEnded) }

    /// Which part of a response is expected, sent or received.
    public enum ResponsePart: CaseIterable, Sendable { case head, content, ended }

    @inlinable @inline(__always)
    public var responsePart: ResponsePart {
        switch current {
        case .opening, .idle, .starting, .requesting, .awaiting: .head
        case .answering, .responding: .content
        case .answered, .finishing, .lingering, .detached, .closed: .ended
        }
    }
}
