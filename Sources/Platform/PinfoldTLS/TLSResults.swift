/// How far a handshake is.
package enum TLSHandshakeResult: Hashable, Sendable {
    /// Application bytes may be sent; a client trusts its server. Bytes of the peer may have come
    /// with the handshake's last ones: read until drained before waiting for an edge.
    case complete
    /// Call again when the socket becomes readable.
    case wantRead
    /// Call again when the socket becomes writable.
    case wantWrite
    /// Call again in another turn of the loop, without waiting for the socket: the peer sends
    /// more than one call reads.
    case turnIsOver
    /// Of a server's connection: its identity source answers later. Call again once
    /// `TLSServerConnection.answer(_:)` was given the answer. Of a client's: the server asks for a
    /// certificate. Call again once `TLSClientConnection.answer(_:)` was given the answer.
    case wantIdentity
    case failed(TLSError)
}

/// What a read brought.
package enum TLSReadResult: Hashable, Sendable {
    /// At least one byte. `drained`: the socket was seen empty and nothing is left in the session,
    /// so the next readiness edge will come. Otherwise there may be more, or an end or a failure:
    /// read again, for no edge may come.
    case bytes(Int, drained: Bool)
    /// Nothing, and the socket was seen empty: read again at the next readable edge.
    case wantRead
    /// Nothing before the session's own bytes are sent: read again at the next writable edge.
    case wantWrite
    /// Nothing in what one call receives: read again in another turn of the loop, for no edge may
    /// come.
    case turnIsOver
    /// The peer ended the session with close_notify: everything it sent has been read.
    case endOfStream
    /// The connection ended without close_notify: something may be missing.
    case truncated
    /// The connection is broken; `failure` says why.
    case failed
}

/// What a write did.
package enum TLSWriteResult: Hashable, Sendable {
    /// So many bytes were taken. If fewer than given, the socket is full: write the rest at the
    /// next writable edge.
    case bytes(Int)
    /// None before the peer's bytes are read: write again at the next readable edge.
    case wantRead
    /// None, the socket is full: write again at the next writable edge.
    case wantWrite
    /// The connection is broken; `failure` says why.
    case failed
}
