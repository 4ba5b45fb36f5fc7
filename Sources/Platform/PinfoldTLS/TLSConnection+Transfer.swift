import COpenSSL

// The record layer: what passes through a session once it is open.

extension TLSConnection {
    /// The maximum number of records that one read decrypts: a peer could fill a buffer of any size
    /// with records of one byte.
    private static let recordsPerRead = 64

    /// Reads decrypted bytes until the buffer is full, the socket is empty, or the limit of records
    /// and receives per call is reached.
    ///
    /// The socket is known to be empty, so that an edge-triggered poller will report the next byte,
    /// after `.bytes(_, drained: true)` and `.wantRead`, and only then.
    ///
    /// - Parameters:
    ///   - buffer: the destination. An empty one yields `.bytes(0, drained: false)`.
    ///   - trustsShortReceive: whether to take a receive that returned less than requested as proof
    ///     that the socket is empty, which saves the one that returns EAGAIN. Only if the poller
    ///     would report a close by the peer as a separate edge (EPOLLRDHUP requested, and not in
    ///     the current event): otherwise an end of stream that was already there goes unnoticed.
    package final func read(
        into buffer: UnsafeMutableRawBufferPointer, trustsShortReceive: Bool = false
    ) -> TLSReadResult {
        guard !isBroken else { return endOfReading() }
        recordsOfLastRead = 0
        guard let start = buffer.baseAddress else { return .bytes(0, drained: false) }
        var filled = 0
        socket.pointee.beginOperation(trustsShortReceive: trustsShortReceive)
        while filled < buffer.count, recordsOfLastRead < Self.recordsPerRead {
            ErrorQueue.clear()
            var count = 0
            let status = SSL_read_ex(ssl, start + filled, buffer.count - filled, &count)
            guard status == 1 else { return stopReading(status, filled: filled) }
            filled += count
            recordsOfLastRead += 1
            if trustsShortReceive, socket.pointee.isDrained, SSL_has_pending(ssl) == 0,
                !cannotSend
            {
                return .bytes(filled, drained: true)
            }
        }
        return .bytes(filled, drained: false)
    }

    private func stopReading(_ status: Int32, filled: Int) -> TLSReadResult {
        switch SSL_get_error(ssl, status) {
        case SSL_ERROR_WANT_READ where socket.pointee.isOverTurn:
            return filled > 0 ? .bytes(filled, drained: false) : .turnIsOver
        case SSL_ERROR_WANT_READ where cannotSend && filled == 0:
            // Nothing is left to read, and nothing can be sent.
            fail(SSL_ERROR_SYSCALL)
            return .failed
        case SSL_ERROR_WANT_READ:
            return filled > 0 ? .bytes(filled, drained: !cannotSend) : .wantRead
        case SSL_ERROR_WANT_WRITE:
            return filled > 0 ? .bytes(filled, drained: false) : .wantWrite
        case SSL_ERROR_ZERO_RETURN:
            return filled > 0 ? .bytes(filled, drained: false) : .endOfStream
        case let code:
            fail(code)
            return filled > 0 ? .bytes(filled, drained: false) : endOfReading()
        }
    }

    private func endOfReading() -> TLSReadResult {
        failure == .truncated ? .truncated : .failed
    }

    /// Encrypts and sends bytes until all are accepted or the socket is full. After `.failed` there
    /// may still be something to read; why it failed is known once that has been read to its end.
    ///
    /// After a result of fewer bytes than given, the next write must begin with the bytes that were
    /// not accepted, at the same or another address, and must not be shorter: a record containing
    /// them may already be under way.
    package final func write(_ bytes: UnsafeRawBufferPointer) -> TLSWriteResult {
        guard !isBroken, !cannotSend else { return .failed }
        guard let start = bytes.baseAddress else { return .bytes(0) }
        var taken = 0
        while taken < bytes.count {
            ErrorQueue.clear()
            var count = 0
            let status = SSL_write_ex(ssl, start + taken, bytes.count - taken, &count)
            guard status == 1 else {
                switch SSL_get_error(ssl, status) {
                case SSL_ERROR_WANT_WRITE:
                    isWithinRecord = true
                    return taken > 0 ? .bytes(taken) : .wantWrite
                case SSL_ERROR_WANT_READ:
                    return taken > 0 ? .bytes(taken) : .wantRead
                case let code:
                    failToSend(code)
                    return .failed
                }
            }
            isWithinRecord = false
            taken += count
        }
        return .bytes(taken)
    }

    /// Decrypted bytes that a read returns without touching the socket.
    package var pendingBytes: Int { Int(SSL_pending(ssl)) }

    /// Tells the peer that no more bytes will follow (close_notify), without waiting for its
    /// answer. Does nothing on a connection that is broken or not open. The session that carries
    /// this one is shut down with it.
    ///
    /// - Returns: `false` if the socket is full: call again at the next writable edge, or give up.
    package final func shutdown() -> Bool {
        guard endSession() else { return false }
        return outer?.shutdown() ?? true
    }

    private func endSession() -> Bool {
        guard isOpen, !isBroken, !isShutDown, !cannotSend else { return true }
        ErrorQueue.clear()
        let status = SSL_shutdown(ssl)
        guard status < 0 else {
            isShutDown = true
            return true
        }
        switch SSL_get_error(ssl, status) {
        case SSL_ERROR_WANT_WRITE: return false
        case SSL_ERROR_WANT_READ: return true
        case let code:
            fail(code)
            return true
        }
    }
}
