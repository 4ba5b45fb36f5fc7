import EventLoop
import PinfoldTLS

/// The transport of one connection, to a client or to a server: the socket itself, a TLS session
/// over it, in either role, or a session inside such a session.
///
/// Reads report whether the socket was empty: only after that will the next edge come; until then
/// reading must continue. The owner registers and closes the descriptor.
package struct Transport {
    /// The result of a read.
    package enum ReadResult {
        case bytes(Int, drained: Bool)
        /// No data. `wantsWrite`: there will be none before the socket accepts bytes.
        case wouldBlock(wantsWrite: Bool)
        /// The turn's budget is spent; there may be more data.
        case turnIsOver
        /// The peer ended its direction properly.
        case endOfStream
        /// The stream was truncated: with TLS, without close_notify.
        case truncated
        case failed(TransportError)
    }

    package let descriptor: Int32
    /// The TLS session; `nil` for clear text.
    package let tls: TLSConnection?

    /// - Parameters:
    ///   - descriptor: a connected, non-blocking socket.
    ///   - tls: the session over it, in either role; its handshake need not have happened yet.
    package init(descriptor: Int32, tls: TLSConnection? = nil) {
        self.descriptor = descriptor
        self.tls = tls
    }

    /// The transport of the session's own bytes: the socket, or the session around this one.
    package var carrier: Transport { Transport(descriptor: descriptor, tls: tls?.outer) }

    /// Whether what is sent is encrypted.
    package var isSecure: Bool { tls != nil }

    /// The TLS version in use; `nil` for clear text, and before the handshake.
    package var version: TLSVersion? { tls?.version }

    /// What the handshake agreed on; `nil` for clear text, and before the handshake.
    package var summary: TLSSummary? { tls?.summary }

    /// Continues the handshake. Clear text has none, and is complete.
    package func handshake() -> TLSHandshakeResult { tls?.handshake() ?? .complete }

    // MARK: Reading

    /// - Parameter trustsShortRead: whether a short read is taken as proof that the socket is
    ///   empty. It must not be if the peer is known to have finished, because its end would not be
    ///   seen.
    /// - Parameter budget: what the cost is deducted from.
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

    /// Whether unread bytes have arrived at the socket.
    package var hasUnreadBytes: Bool { Transfers.hasUnreadBytes(descriptor) }

    /// Whether the socket has no bytes, end or error to be read.
    package var isQuiet: Bool { Transfers.isQuiet(descriptor) }

    // MARK: Writing

    /// Writes until the queue is empty, the socket is full, or the turn's budget is spent.
    ///
    /// - Parameters:
    ///   - loop: the loop whose turn it is and whose buffers are used.
    ///   - budget: what the cost of encryption is deducted from. Clear text is not charged: the
    ///     kernel copies it, or sends it from the file.
    @inline(__always)
    package func flush(
        _ output: inout OutputQueue, on loop: EventLoop, spending budget: inout TurnBudget
    ) -> OutputQueue.Flush {
        guard let tls else { return output.flush(to: descriptor) }
        return tls.flush(&output, on: loop, spending: &budget)
    }

    /// Whether a write was stopped within a record: what is in the queue can no longer be
    /// withdrawn, because part of the record may have been sent.
    package var isWithinRecord: Bool { tls?.isWithinRecord ?? false }

    /// Closes the socket, which must not be registered with a loop any more.
    package func close() { Descriptors.close(descriptor) }

    /// Ends the sending direction, with TLS by close_notify. Returns false if the socket is full;
    /// call it again when the socket is writable.
    package func finishSending() -> Bool {
        if let tls { return tls.shutdown() }
        Sockets.shutdownWrite(descriptor)
        return true
    }
}
