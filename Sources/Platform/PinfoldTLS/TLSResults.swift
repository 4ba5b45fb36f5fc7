/// The state of a handshake.
package enum TLSHandshakeResult: Hashable, Sendable {
    /// Application bytes may be sent; a client trusts its server. Bytes of the peer may have
    /// arrived with the last of the handshake: read until drained before waiting for an edge.
    case complete
    /// Call again when the socket becomes readable.
    case wantRead
    /// Call again when the socket becomes writable.
    case wantWrite
    /// Call again in another turn of the loop, without waiting for the socket: the peer sends more
    /// than one call reads.
    case turnIsOver
    /// On a server's connection: its identity source will answer later. Call again after
    /// `TLSServerConnection.answer(_:)`. On a client's: the server requests a certificate. Call
    /// again after `TLSClientConnection.answer(_:)`.
    case wantIdentity
    case failed(TLSError)
}

/// The result of a read.
package enum TLSReadResult: Hashable, Sendable {
    /// At least one byte. `drained` means that the socket was seen empty and nothing is left in the
    /// session, so the next readiness edge will arrive. Otherwise there may be more, or an end or a
    /// failure: read again, because no edge may arrive.
    case bytes(Int, drained: Bool)
    /// Nothing, and the socket was seen empty: read again at the next readable edge.
    case wantRead
    /// Nothing until the session's own bytes are sent: read again at the next writable edge.
    case wantWrite
    /// Nothing within the limit of one call: read again in another turn of the loop, because no
    /// edge may arrive.
    case turnIsOver
    /// The peer ended the session with close_notify: everything it sent has been read.
    case endOfStream
    /// The connection ended without close_notify: data may be missing.
    case truncated
    /// The connection is broken; see `failure`.
    case failed
}

/// The result of a write.
package enum TLSWriteResult: Hashable, Sendable {
    /// This many bytes were accepted. If fewer than given, the socket is full: write the rest at
    /// the next writable edge.
    case bytes(Int)
    /// None until the peer's bytes are read: write again at the next readable edge.
    case wantRead
    /// None, the socket is full: write again at the next writable edge.
    case wantWrite
    /// The connection is broken; see `failure`.
    case failed
}
