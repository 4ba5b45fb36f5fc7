/// Where a stream is (RFC 9113 §5.1), without the reserved states: nobody is promised anything.
///
///                           +--------+
///                           |  idle  |
///                           +--------+
///                               | HEADERS, sent or received
///                               v
///          END_STREAM       +--------+       END_STREAM
///           received        |  open  |         sent
///             +-------------|        |-------------+
///             v             +--------+             v
///    +------------------+       |        +-----------------+
///    | halfClosedRemote |       |        | halfClosedLocal |
///    +------------------+       |        +-----------------+
///             | END_STREAM sent |                  | END_STREAM received
///             |                 | RST_STREAM       |
///             +-----------------+------------------+
///                               v
///         ended, resetByPeer, resetByUs: the RFC's “closed”, by what closed it
///
/// In every state but the first and the last three, RST_STREAM closes the stream.
public enum StreamState: CaseIterable, BitwiseCopyable, Sendable {
    case idle
    case open
    /// This side has ended its direction.
    case halfClosedLocal
    /// The peer has ended its direction.
    case halfClosedRemote
    /// Both have.
    case ended
    case resetByPeer
    /// The peer may not know yet: what it sends is passed over.
    case resetByUs

    /// Whether it is what the RFC calls closed.
    @inlinable @inline(__always)
    public var isClosed: Bool {
        switch self {
        case .idle, .open, .halfClosedLocal, .halfClosedRemote: false
        case .ended, .resetByPeer, .resetByUs: true
        }
    }
    /// Whether the peer may send content and trailers.
    @inlinable @inline(__always)
    public var isReceiving: Bool {
        switch self {
        case .open, .halfClosedLocal: true
        case .idle, .halfClosedRemote, .ended, .resetByPeer, .resetByUs: false
        }
    }
    /// Whether this side may send content and trailers.
    @inlinable @inline(__always)
    public var isSending: Bool {
        switch self {
        case .open, .halfClosedRemote: true
        case .idle, .halfClosedLocal, .ended, .resetByPeer, .resetByUs: false
        }
    }
}

/// What happens to a stream.
public enum StreamEvent: CaseIterable, Sendable {
    case receivedHeaders, receivedHeadersAndEnd
    case receivedData, receivedDataAndEnd
    case receivedReset, receivedWindowUpdate, receivedPriority
    case sentHeaders, sentHeadersAndEnd
    case sentData, sentDataAndEnd
    case sentReset
}

/// What follows from an event.
public enum StreamReaction: Equatable, Sendable {
    /// The stream is in this state now.
    case proceed(StreamState)
    /// The frame means nothing any more. A field block in it must be decoded nevertheless, and
    /// content counts towards the connection's window.
    case ignore
    /// A stream error (RFC 9113 §5.4.2).
    case resetStream(ErrorCode)
    /// A connection error (RFC 9113 §5.4.1).
    case endConnection(ErrorCode)
    /// This side must not send that: a bug in the program.
    case illegal
}

extension StreamState {
    /// What an event leads to. Whether HEADERS open a stream with a number that may be opened is
    /// the connection's affair.
    @inlinable @inline(__always)
    public func after(_ event: StreamEvent) -> StreamReaction {
        switch (self, event) {
        case (.idle, .receivedHeaders), (.idle, .sentHeaders): .proceed(.open)
        case (.idle, .receivedHeadersAndEnd): .proceed(.halfClosedRemote)
        case (.idle, .sentHeadersAndEnd): .proceed(.halfClosedLocal)
        case (.idle, .receivedPriority): .proceed(.idle)
        // Any other frame on a stream that does not exist (RFC 9113 §5.1).
        case (.idle, .receivedData), (.idle, .receivedDataAndEnd), (.idle, .receivedReset),
            (.idle, .receivedWindowUpdate):
            .endConnection(.protocolError)

        case (.open, .receivedHeaders), (.open, .receivedData), (.open, .receivedWindowUpdate),
            (.open, .receivedPriority), (.open, .sentHeaders), (.open, .sentData):
            .proceed(.open)
        case (.open, .receivedHeadersAndEnd), (.open, .receivedDataAndEnd):
            .proceed(.halfClosedRemote)
        case (.open, .sentHeadersAndEnd), (.open, .sentDataAndEnd): .proceed(.halfClosedLocal)

        case (.halfClosedLocal, .receivedHeaders), (.halfClosedLocal, .receivedData),
            (.halfClosedLocal, .receivedWindowUpdate), (.halfClosedLocal, .receivedPriority):
            .proceed(.halfClosedLocal)
        case (.halfClosedLocal, .receivedHeadersAndEnd),
            (.halfClosedLocal, .receivedDataAndEnd):
            .proceed(.ended)

        case (.halfClosedRemote, .receivedWindowUpdate), (.halfClosedRemote, .receivedPriority),
            (.halfClosedRemote, .sentHeaders), (.halfClosedRemote, .sentData):
            .proceed(.halfClosedRemote)
        case (.halfClosedRemote, .sentHeadersAndEnd), (.halfClosedRemote, .sentDataAndEnd):
            .proceed(.ended)
        // Frames after its end (RFC 9113 §5.1, half-closed (remote)).
        case (.halfClosedRemote, .receivedHeaders), (.halfClosedRemote, .receivedHeadersAndEnd),
            (.halfClosedRemote, .receivedData), (.halfClosedRemote, .receivedDataAndEnd):
            .resetStream(.streamClosed)

        case (.open, .receivedReset), (.halfClosedLocal, .receivedReset),
            (.halfClosedRemote, .receivedReset):
            .proceed(.resetByPeer)
        case (.open, .sentReset), (.halfClosedLocal, .sentReset), (.halfClosedRemote, .sentReset):
            .proceed(.resetByUs)

        // What the peer sends after it has closed the stream is wrong, but these two may have
        // crossed this side's end (RFC 9113 §5.1, closed).
        case (.ended, .receivedWindowUpdate), (.ended, .receivedReset),
            (.ended, .receivedPriority), (.resetByPeer, .receivedWindowUpdate),
            (.resetByPeer, .receivedReset), (.resetByPeer, .receivedPriority):
            .ignore
        case (.ended, .receivedHeaders), (.ended, .receivedHeadersAndEnd),
            (.resetByPeer, .receivedHeaders), (.resetByPeer, .receivedHeadersAndEnd):
            .endConnection(.streamClosed)
        // Some clients have content on its way while they reset a stream.
        case (.ended, .receivedData), (.ended, .receivedDataAndEnd),
            (.resetByPeer, .receivedData), (.resetByPeer, .receivedDataAndEnd):
            .resetStream(.streamClosed)
        // The peer sent it before it knew (RFC 9113 §5.1, closed).
        case (.resetByUs, .receivedHeaders), (.resetByUs, .receivedHeadersAndEnd),
            (.resetByUs, .receivedData), (.resetByUs, .receivedDataAndEnd),
            (.resetByUs, .receivedReset), (.resetByUs, .receivedWindowUpdate),
            (.resetByUs, .receivedPriority):
            .ignore

        case (.idle, .sentData), (.idle, .sentDataAndEnd), (.idle, .sentReset),
            (.halfClosedLocal, .sentHeaders), (.halfClosedLocal, .sentHeadersAndEnd),
            (.halfClosedLocal, .sentData), (.halfClosedLocal, .sentDataAndEnd),
            (.ended, .sentHeaders), (.ended, .sentHeadersAndEnd), (.ended, .sentData),
            (.ended, .sentDataAndEnd), (.ended, .sentReset),
            (.resetByPeer, .sentHeaders), (.resetByPeer, .sentHeadersAndEnd),
            (.resetByPeer, .sentData), (.resetByPeer, .sentDataAndEnd), (.resetByPeer, .sentReset),
            (.resetByUs, .sentHeaders), (.resetByUs, .sentHeadersAndEnd), (.resetByUs, .sentData),
            (.resetByUs, .sentDataAndEnd), (.resetByUs, .sentReset):
            .illegal
        }
    }
}
