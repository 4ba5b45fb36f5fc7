// The end of a connection that nobody uses (RFC 9113 §6.8).
extension HTTP2Connection {
    /// Ends a connection without streams in one step: a stream that the peer is opening just now is
    /// beyond the last one that GOAWAY names, and can be opened elsewhere without harm.
    public mutating func endUnused() { announceLast() }

    /// Whether the peer has sent its preface and its settings.
    public var isEstablished: Bool { hasPeerSettings }

    /// The peer has shown in another way that it is there: as after a frame, it is not asked soon,
    /// and has more time to answer.
    public mutating func heardOf(now: Int64) {
        receivedAt = max(receivedAt, now)
        if let asked = askedAt { askedAt = max(asked, now) }
    }
}
