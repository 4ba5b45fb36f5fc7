/// What one connection may still do in the current turn of its loop. A connection that has used up
/// its share asks the loop for another turn (`EventLoop.requeue`), so that all others are served
/// before it continues.
///
/// Bytes alone do not measure how long something takes: a chunk, a record or a system call of one
/// byte costs as much as thousands of bytes that are merely copied. Each is therefore charged as
/// the number of bytes that could have been copied in its time.
public struct TurnBudget {
    /// What a connection does besides moving bytes.
    public enum Work: Sendable {
        /// One read from or write to a socket.
        case systemCall
        /// One chunk of a chunked body, or one interim response.
        case part
        /// One TLS record.
        case record
        /// One DATA frame of HTTP/2, which a peer with HTTP/1 may get by a write of its own.
        case dataFrame
        /// One request with its response.
        case exchange
        /// One reply of the administrative pages: the metrics are rendered for each.
        case report

        /// In bytes, rounded to powers of two.
        @inline(__always)
        public var cost: Int {
            switch self {
            case .part: 1 << 8
            case .record, .dataFrame: 1 << 12
            case .systemCall: 1 << 13
            case .exchange: 1 << 14
            case .report: 1 << 20
            }
        }
    }

    private var turn = UInt64.max
    private var left = 0

    public init() {}

    /// Whether nothing more may be done in this turn.
    @inline(__always)
    public var isSpent: Bool { left <= 0 }

    /// Starts with a full share if the turn has changed since the last call.
    @inline(__always)
    public mutating func renew(_ loop: EventLoop) {
        guard turn != loop.turnNumber else { return }
        turn = loop.turnNumber
        left = loop.turnShare
    }

    @inline(__always)
    public mutating func spend(bytes: Int) { left &-= bytes }

    @inline(__always)
    public mutating func spend(_ work: Work, times: Int = 1) { left &-= work.cost &* times }

    /// Leaves nothing for this turn.
    @inline(__always)
    public mutating func exhaust() { left = 0 }

    /// How many more operations of a kind may be done, at least one.
    @inline(__always)
    public func allowance(of work: Work) -> Int { max(1, left / work.cost) }
}

/// How a turn's time is divided among the connections that have something to do in it.
public enum TurnShare {
    /// The total for all connections in a turn, as long as there are few enough of them.
    static let total = 8 << 20
    /// The maximum for one connection, however few there are.
    static let largest = 1 << 20
    /// The minimum for one connection, however many there are.
    static let smallest = 1 << 16

    /// The share of each of `connections`, in bytes.
    @inline(__always)
    public static func share(among connections: Int) -> Int {
        min(largest, max(smallest, total / max(1, connections)))
    }
}
