import COpenSSL

/// One TLS connection over a connected, non-blocking socket, which the caller must close after the
/// connection is gone; or over a session that is over such a socket. This is what both sides have
/// in common; ``TLSClientConnection`` and ``TLSServerConnection`` are the sides.
///
/// Belongs to one thread at a time. Made for edge-triggered polling: every operation continues
/// until it is done, the socket returns EAGAIN, or the limit of one call is reached, and its result
/// says which.
///
/// Everything except how each side verifies its peer is final, so that reading and writing are
/// direct calls.
package class TLSConnection {
    final let ssl: OpaquePointer
    final let socket: UnsafeMutablePointer<SocketState>
    /// The session that carries this one's bytes, used by nobody else, or `nil` if the socket does.
    /// With an outer session, everything stated here about the socket applies to what is below that
    /// session.
    package final let outer: TLSConnection?

    /// Why the connection is broken; `nil` while it is not.
    package private(set) final var failure: TLSError? {
        didSet { isBroken = failure != nil }
    }
    /// Why nothing can be sent any more, while received data is still being read: a peer that has
    /// closed the connection may have sent an alert before, or an answer. `nil` if sending has not
    /// failed.
    private final var sendFailure: TLSError? {
        didSet { cannotSend = sendFailure != nil }
    }
    /// Whether there is a `sendFailure`.
    private(set) final var cannotSend = false
    /// Whether there is a `failure`, so that reads and writes need not touch it.
    private(set) final var isBroken = false
    /// An error that a side found inside a callback of the library, and which is more specific than
    /// the library's own error.
    final var finding: TLSError?
    /// Whether the handshake has completed successfully.
    package private(set) final var isOpen = false
    /// The fatal alert that was sent to the peer, or `nil` for none.
    package private(set) final var sentAlert: TLSAlert?
    /// Whether close_notify is under way: the library would take another attempt as a request to
    /// wait for the peer's.
    final var isShutDown = false
    /// The number of records that the last read decrypted.
    package internal(set) final var recordsOfLastRead = 0
    /// Whether a write was stopped within a record: part of it may be under way, and the next write
    /// must begin with the same bytes.
    package internal(set) final var isWithinRecord = false

    /// - Parameters:
    ///   - context: the library's context, which the connection retains.
    ///   - fileDescriptor: the socket.
    ///   - outer: the session over it that carries this one; its handshake must be complete.
    init(
        context: OpaquePointer, fileDescriptor: Int32, outer: TLSConnection? = nil
    ) throws(TLSError) {
        guard let ssl = SSL_new(context) else { throw .resources(ErrorQueue.drain()) }
        let socket = UnsafeMutablePointer<SocketState>.allocate(capacity: 1)
        socket.initialize(to: SocketState(fileDescriptor: fileDescriptor))
        self.ssl = ssl
        self.socket = socket
        self.outer = outer
        let made = outer == nil ? SocketBIO.make(socket) : SessionBIO.make(for: self)
        guard let bio = made else { throw .resources(ErrorQueue.drain()) }
        SSL_set_bio(ssl, bio, bio)
        if outer != nil { _ = pinfold_SSL_set_max_send_fragment(ssl, Self.innerRecordBytes) }
        _ = pinfold_SSL_set_app_data(ssl, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit {
        SSL_free(ssl)
        socket.pointee.forgetEarly()
        socket.deinitialize(count: 1)
        socket.deallocate()
    }

    /// Called for the library's events: handshake messages and alerts.
    static func observe(_ context: OpaquePointer) {
        SSL_CTX_set_info_callback(context) { ssl, event, value in
            guard let ssl, let data = pinfold_SSL_get_app_data(ssl) else { return }
            let connection = Unmanaged<TLSConnection>.fromOpaque(data).takeUnretainedValue()
            if event & SSL_CB_LOOP != 0 {
                connection.noteTransition()
            } else if event & SSL_CB_WRITE_ALERT == SSL_CB_WRITE_ALERT {
                connection.noteSentAlert(value)
            }
        }
    }

    /// The maximum content of an inner session's record: the record must fit into one of the
    /// outer's.
    private static let innerRecordBytes = 16 * 1024 - 128

    // MARK: Handshake

    /// Supplies bytes that were received before the handshake; they are copied. Only before it has
    /// begun.
    package final func setEarly(_ bytes: UnsafeRawBufferPointer) {
        socket.pointee.setEarly(bytes)
    }

    /// Continues the handshake. A client applies its security policy during it: a refused server is
    /// sent an alert and not one byte of a request.
    package final func handshake() -> TLSHandshakeResult {
        if let failure { return .failed(failure) }
        if isOpen { return .complete }
        ErrorQueue.clear()
        socket.pointee.beginOperation()
        socket.pointee.isHandshaking = true
        defer { socket.pointee.isHandshaking = false }
        let status = SSL_do_handshake(ssl)
        guard status == 1 else {
            switch SSL_get_error(ssl, status) {
            case SSL_ERROR_WANT_READ: return socket.pointee.isOverTurn ? .turnIsOver : .wantRead
            case SSL_ERROR_WANT_WRITE: return .wantWrite
            case SSL_ERROR_WANT_CLIENT_HELLO_CB, SSL_ERROR_WANT_X509_LOOKUP: return .wantIdentity
            case let code: return .failed(fail(code))
            }
        }
        if let objection = objection() {
            failure = objection
            return .failed(objection)
        }
        isOpen = true
        return .complete
    }

    /// Why a handshake that the library has completed is not good enough, or `nil` if it is.
    func objection() -> TLSError? { nil }

    /// A side's interpretation of a library error.
    func meaning(of error: TLSError) -> TLSError { error }

    /// A side's interpretation of an error that ended the handshake.
    func ending(by error: TLSError) -> TLSError { error }

    /// Records why the connection is broken; `code` is from SSL_get_error.
    @discardableResult
    final func fail(_ code: Int32) -> TLSError {
        let error: TLSError
        if let finding {
            ERR_clear_error()
            error = finding
        } else if socket.pointee.hasTooManyMessages {
            ERR_clear_error()
            error = .tooManyMessages
        } else if socket.pointee.isHelloTooLong {
            ERR_clear_error()
            error = .protocolViolation(
                "a ClientHello of more than \(ClientHelloGauge.maximumBytes) bytes")
        } else if code == SSL_ERROR_SSL {
            error = meaning(of: .fromQueue())
        } else if code == SSL_ERROR_ZERO_RETURN || socket.pointee.isAtEnd {
            ERR_clear_error()
            error = .truncated
        } else {
            ERR_clear_error()
            error = .transport(errorNumber: socket.pointee.errorNumber)
        }
        let reported = isOpen ? reason(of: error) : ending(by: reason(of: error))
        failure = reported
        return reported
    }

    /// Why a session ended of which this error was seen: the first sign that the peer was gone was
    /// that something could not be sent.
    private func reason(of error: TLSError) -> TLSError {
        switch error {
        case .truncated, .transport:
            if let sendFailure { return sendFailure }
            return socket.pointee.hasLostOutput
                ? .transport(errorNumber: socket.pointee.errorNumber) : error
        default: return error
        }
    }

    /// Records that a write has failed; `code` is from SSL_get_error. If the socket is at fault,
    /// reading continues to its end.
    final func failToSend(_ code: Int32) {
        guard code == SSL_ERROR_SYSCALL, outer == nil, finding == nil else {
            fail(code)
            return
        }
        ERR_clear_error()
        sendFailure = .transport(errorNumber: socket.pointee.errorNumber)
    }

    /// Records why the session that carries this one is broken, unless this one has failed before.
    /// An alert in the outer session is not one for this session, whose peer simply went away
    /// without ending it.
    final func noteFailureOfOuter() {
        guard finding == nil, ERR_peek_error() == 0 else { return }
        switch outer?.failure ?? outer?.sendFailure {
        case .alertReceived, nil: finding = .truncated
        case let failure?: finding = failure
        }
    }

    /// Counts a received handshake message, by the one transition of the library that follows it:
    /// others begin or end with no current message, or with one that is sent.
    private func noteTransition() {
        guard isOpen else { return }
        switch SSL_get_state(ssl) {
        case TLS_ST_OK, TLS_ST_CW_KEY_UPDATE, TLS_ST_SW_KEY_UPDATE: break
        default: socket.pointee.lateMessages += 1
        }
    }

    /// Records an alert that is sent, as the library reports it.
    private func noteSentAlert(_ value: Int32) {
        let alert = TLSAlert(code: UInt8(truncatingIfNeeded: value))
        if value >> 8 == SSL3_AL_FATAL { sentAlert = alert }
    }
}
