/// What a connection allows its peer.
public struct HTTP2Limits: Equatable, Sendable {
    /// How many streams there may be at a time: for a server, what it announces; for a client, at
    /// most so many even if the server allows more.
    public var streams: Int
    /// How many early ends of streams a peer may cause in a row (``AbuseBudget``).
    public var resets: Int
    /// The window that a stream begins with, in bytes.
    public var streamWindow: Int32
    /// What a stream's window may grow to, in bytes.
    public var greatestStreamWindow: Int32
    /// The connection's window at first, in bytes; at least 65,535.
    public var connectionWindow: Int32
    /// What the connection's window may grow to, in bytes: so much content may be waiting to be
    /// taken, for all streams together.
    public var greatestConnectionWindow: Int32
    /// The greatest field section that is accepted, in bytes, as the peer is told (RFC 9113
    /// §6.5.2).
    public var headerListBytes: Int
    /// The size of the compression context for what the peer sends, in bytes.
    public var headerTableBytes: Int
    /// The greatest field block, compressed and in frames of any number, in bytes.
    public var fieldBlockBytes: Int
    /// Nothing more is read while so many bytes of control frames wait to be sent.
    public var controlBytes: Int
    /// A server: whether it takes extended CONNECT (RFC 8441).
    public var takesExtendedConnect: Bool
    /// After so long without anything from the peer it is asked by PING, in milliseconds.
    public var quietMilliseconds: Int64
    /// How long an answer to PING or SETTINGS may take, in milliseconds.
    public var answerMilliseconds: Int64

    public init(
        streams: Int = 100, resets: Int = 100, streamWindow: Int32 = 65_535,
        greatestStreamWindow: Int32 = 1 << 22, connectionWindow: Int32 = 1 << 20,
        greatestConnectionWindow: Int32 = 1 << 23, headerListBytes: Int = 64 * 1024,
        headerTableBytes: Int = 4096, fieldBlockBytes: Int = 64 * 1024,
        controlBytes: Int = 4096, takesExtendedConnect: Bool = true,
        quietMilliseconds: Int64 = 30_000, answerMilliseconds: Int64 = 10_000
    ) {
        precondition((1...16_384).contains(streams) && (1...1_000_000).contains(resets))
        precondition(streamWindow > 0 && greatestStreamWindow >= streamWindow)
        precondition(connectionWindow >= PeerSettings.initialWindow)
        precondition(greatestConnectionWindow >= connectionWindow)
        precondition(headerListBytes > 0 && headerListBytes < Int(Int32.max))
        precondition(headerTableBytes >= 0 && headerTableBytes < Int(Int32.max))
        precondition(fieldBlockBytes >= PeerSettings.frameSizes.lowerBound && controlBytes > 0)
        precondition(quietMilliseconds > 0 && answerMilliseconds > 0)
        self.streams = streams
        self.resets = resets
        self.streamWindow = streamWindow
        self.greatestStreamWindow = greatestStreamWindow
        self.connectionWindow = connectionWindow
        self.greatestConnectionWindow = greatestConnectionWindow
        self.headerListBytes = headerListBytes
        self.headerTableBytes = headerTableBytes
        self.fieldBlockBytes = fieldBlockBytes
        self.controlBytes = controlBytes
        self.takesExtendedConnect = takesExtendedConnect
        self.quietMilliseconds = quietMilliseconds
        self.answerMilliseconds = answerMilliseconds
    }
}
