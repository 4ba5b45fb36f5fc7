import COpenSSL

// The record layer: what goes through a session once it is open.

extension TLSConnection {
    /// Records that one read decrypts at most: a buffer of any size can be filled by records of one
    /// byte.
    private static let recordsPerRead = 64

    /// Reads decrypted bytes until the buffer is full, the socket is empty, or as many records and
    /// receives were used as one call may use.
    ///
    /// The socket is known to be empty, so that an edge-triggered poller will report the next byte,
    /// exactly after `.bytes(_, drained: true)` and `.wantRead`.
    ///
    /// - Parameters:
    ///   - buffer: where they go. Room for none gets `.bytes(0, drained: false)`.
    ///   - trustsShortReceive: take a receive that got less than it asked for as proof that the
    ///     socket is empty, which spares the one that says EAGAIN. Only when the poller would
    ///     report a close by the peer as an edge of its own (EPOLLRDHUP asked for, and not in the
    ///     event at hand): the end of a stream that was there already is not seen otherwise.
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
            // Nothing is there, and nothing will be answered.
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

    /// Encrypts and sends bytes until all are taken or the socket is full. After `.failed` there
    /// may still be something to be read; why it failed is known when that is at its end.
    ///
    /// After a result that took fewer bytes than given, the next write must begin with the bytes
    /// that were not taken, at the same or another address, and must not be shorter: a record of
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

    /// Decrypted bytes that a read returns without the socket.
    package var pendingBytes: Int { Int(SSL_pending(ssl)) }

    /// Tells the peer that no more bytes will come (close_notify), without waiting for its
    /// answer. A connection that is broken or not open has nothing to say. The session that carries
    /// it ends with it.
    ///
    /// - Returns: false if the socket is full: call again at the next writable edge, or leave it.
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
