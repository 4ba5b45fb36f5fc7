import EventLoop
import PinfoldTLS

/// What moves the bytes of one connection, to a client or to a server: the socket itself, a TLS
/// session over it, in either role, or a session inside such a session.
///
/// Reads say whether the socket was seen empty: after that the next edge will come, and before
/// that reading must go on. The descriptor is the owner's to register and to close.
package struct Transport {
    /// What a read brought.
    package enum ReadResult {
        case bytes(Int, drained: Bool)
        /// Nothing there. `wantsWrite`: and nothing will be before the socket takes bytes.
        case wouldBlock(wantsWrite: Bool)
        /// Nothing yet; there may be more, but others have their turn first.
        case turnIsOver
        /// The peer ended its direction well.
        case endOfStream
        /// The stream was cut: with TLS, without its end mark.
        case truncated
        case failed(TransportError)
    }

    package let descriptor: Int32
    /// The session; nil: clear text.
    package let tls: TLSConnection?

    /// - Parameters:
    ///   - descriptor: a connected, non-blocking socket.
    ///   - tls: the session over it, of either role, whose handshake may still be to come.
    package init(descriptor: Int32, tls: TLSConnection? = nil) {
        self.descriptor = descriptor
        self.tls = tls
    }

    /// What the session's own bytes go through: the socket, or the session around this one.
    package var carrier: Transport { Transport(descriptor: descriptor, tls: tls?.outer) }

    /// Whether what is sent is encrypted.
    package var isSecure: Bool { tls != nil }

    /// The version of TLS that is spoken; nil for clear text, and before the handshake.
    package var version: TLSVersion? { tls?.version }

    /// Goes on with the handshake, of which clear text has none.
    package func handshake() -> TLSHandshakeResult { tls?.handshake() ?? .complete }

    // MARK: Reading

    /// - Parameter trustsShortRead: take a short read as proof that the socket is empty; not when
    ///   the peer is known to have finished, whose end would then not be seen.
    /// - Parameter budget: what it costs is taken from there.
    @inline(__always)
    package func read(
        into memory: UnsafeMutableRawBufferPointer, trustsShortRead: Bool = false,
        spending budget: inout TurnBudget
    ) -> ReadResult {
        budget.spend(.systemCall)
        if let tls {
            return Self.read(
                from: tls, into: memory, trustsShortRead: trustsShortRead, spending: &budget)
        }
        switch Transfers.read(descriptor, into: memory) {
        case .bytes(let count):
            budget.spend(bytes: count)
            return .bytes(count, drained: trustsShortRead && count < memory.count)
        case .wouldBlock: return .wouldBlock(wantsWrite: false)
        case .endOfStream: return .endOfStream
        case .failed(let error): return .failed(.reset(error))
        }
    }

    @inline(never)
    private static func read(
        from tls: TLSConnection, into memory: UnsafeMutableRawBufferPointer,
        trustsShortRead: Bool, spending budget: inout TurnBudget
    ) -> ReadResult {
        let result = tls.read(into: memory, trustsShortReceive: trustsShortRead)
        budget.spend(.record, times: tls.recordsOfLastRead)
        switch result {
        case .bytes(let count, let drained):
            budget.spend(bytes: count)
            return .bytes(count, drained: drained)
        case .wantRead: return .wouldBlock(wantsWrite: false)
        case .wantWrite: return .wouldBlock(wantsWrite: true)
        case .turnIsOver: return .turnIsOver
        case .endOfStream: return .endOfStream
        case .truncated: return .truncated
        case .failed: return .failed(tls.failure.map { .tls($0) } ?? .closed)
        }
    }

    /// Whether bytes have arrived at the socket that nobody has read yet.
    package var hasUnreadBytes: Bool { Transfers.hasUnreadBytes(descriptor) }

    /// Whether the socket has neither bytes nor an end or error to be read.
    package var isQuiet: Bool { Transfers.isQuiet(descriptor) }

    // MARK: Writing

    /// Writes until the queue is empty, the socket full, or a turn's share is written.
    ///
    /// - Parameters:
    ///   - loop: whose turn it is, and whose buffers are used.
    ///   - budget: what encrypting costs is taken from there. Clear text is not charged: the kernel
    ///     copies it, or sends it from the file.
    @inline(__always)
    package func flush(
        _ output: inout OutputQueue, on loop: EventLoop, spending budget: inout TurnBudget
    ) -> OutputQueue.Flush {
        guard let tls else { return output.flush(to: descriptor) }
        return tls.flush(&output, on: loop, spending: &budget)
    }

    /// Whether a write was stopped within a record: what waits in the queue can no longer be taken
    /// back, for the record may be on its way.
    package var isWithinRecord: Bool { tls?.isWithinRecord ?? false }

    /// Closes the socket, which must be on no loop any more.
    package func close() { Descriptors.close(descriptor) }

    /// Ends the sending direction: what TLS has for it is close_notify. False: the socket is full,
    /// call again when it is writable.
    package func finishSending() -> Bool {
        if let tls { return tls.shutdown() }
        Sockets.shutdownWrite(descriptor)
        return true
    }
}
