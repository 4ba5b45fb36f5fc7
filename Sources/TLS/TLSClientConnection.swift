import Addressing
import COpenSSL
import Notation
import Pinning

/// How far a handshake is.
package enum TLSHandshakeResult: Hashable, Sendable {
    /// The server is trusted and application bytes may be sent. Bytes of the server may have come
    /// with the handshake's last ones: read until drained before waiting for an edge.
    case complete
    /// Call again when the socket becomes readable.
    case wantRead
    /// Call again when the socket becomes writable.
    case wantWrite
    /// Call again in another turn of the loop, without waiting for the socket: the server sends
    /// more than one call reads.
    case turnIsOver
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
    /// The server ended the session with close_notify: everything it sent has been read.
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
    /// None before the server's bytes are read: write again at the next readable edge.
    case wantRead
    /// None, the socket is full: write again at the next writable edge.
    case wantWrite
    /// The connection is broken; `failure` says why.
    case failed
}

/// The client's side of one TLS connection over a connected, non-blocking socket, which stays the
/// caller's to close, after the connection is gone.
///
/// Belongs to one thread at a time. Made for edge-triggered polling: every operation goes on until
/// it is done, the socket says EAGAIN, or it has done as much as one call does, and its result says
/// which.
package final class TLSClientConnection {
    let context: TLSClientContext
    let ssl: OpaquePointer
    private let socket: UnsafeMutablePointer<SocketState>
    private let sessionKey: TLSSessionCache.Key
    /// What the offered session's full handshake found.
    let offeredFacts: TrustFacts?

    /// What was found about the server; nil until the handshake has judged it.
    package private(set) var facts: TrustFacts?
    /// When the server's certificate ends, in seconds since 1970; nil before the handshake.
    package var certificateEnd: Int64? {
        SSL_get0_peer_certificate(ssl).map { X509View($0).notAfter }
    }

    /// Why the connection is broken; nil while it is not.
    package private(set) var failure: TLSError? {
        didSet { isBroken = failure != nil }
    }
    /// Whether there is a `failure`, for reads and writes to look at without touching it.
    private var isBroken = false
    private var refusal: TrustFailure?
    private(set) var isOpen = false
    /// The fatal alert that was sent to the server; nil for none.
    package private(set) var sentAlert: TLSAlert?
    /// Whether close_notify is on its way: the library would take another try as a wish to wait for
    /// the server's.
    private var isShutDown = false
    /// Records that the last read decrypted.
    package private(set) var recordsOfLastRead = 0

    /// Prepares a connection; nothing is sent before `handshake()`.
    ///
    /// - Parameters:
    ///   - context: the policy in force.
    ///   - fileDescriptor: the socket.
    ///   - host: the name or address that was asked for: what the certificate must name, and, for a
    ///     name, what is sent as SNI. In any case, with or without a final dot or brackets.
    ///   - port: the server's port; with the host it identifies the server's sessions.
    ///   - now: seconds since 1970, to know which sessions can still be resumed.
    package init(
        context: TLSClientContext, fileDescriptor: Int32, host: String, port: UInt16, now: Int64
    ) throws(TLSError) {
        let host = TLSClientConnection.normalised(host)
        let key = TLSSessionCache.Key(context: context.identity, host: host, port: port)
        guard let ssl = SSL_new(context.context) else { throw .resources(ErrorQueue.drain()) }
        let socket = UnsafeMutablePointer<SocketState>.allocate(capacity: 1)
        socket.initialize(to: SocketState(fileDescriptor: fileDescriptor))
        self.context = context
        self.ssl = ssl
        self.socket = socket
        sessionKey = key
        let session = context.sessions?.take(for: key, now: now)
        offeredFacts = session?.facts
        guard let bio = SocketBIO.make(socket) else { throw .resources(ErrorQueue.drain()) }
        SSL_set_bio(ssl, bio, bio)
        SSL_set_connect_state(ssl)
        _ = pinfold_SSL_set_app_data(ssl, Unmanaged.passUnretained(self).toOpaque())
        if let session { offer(session) }
        guard !host.isEmpty, !TLSClientConnection.isAddress(host) else { return }
        guard pinfold_SSL_set_host_name(ssl, host) == 1 else {
            throw .resources(ErrorQueue.drain())
        }
    }

    deinit {
        SSL_free(ssl)
        socket.deallocate()
    }

    /// The connection that owns a library object, inside its callbacks.
    static func from(_ ssl: OpaquePointer?) -> TLSClientConnection? {
        guard let ssl, let data = pinfold_SSL_get_app_data(ssl) else { return nil }
        return Unmanaged<TLSClientConnection>.fromOpaque(data).takeUnretainedValue()
    }

    private static func normalised(_ host: String) -> String {
        var bytes = host.utf8.map(ASCII.lowercased)
        if bytes.first == UInt8(ascii: "["), bytes.last == UInt8(ascii: "]") {
            bytes = Array(bytes.dropFirst().dropLast())
        }
        if bytes.count > 1, bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func isAddress(_ host: String) -> Bool {
        let bytes = Array(host.utf8)
        return IPAddress(literal: bytes.span) != nil
    }
}

// MARK: - Handshake

extension TLSClientConnection {
    /// Goes on with the handshake. The security policy is applied inside: a refused server is sent
    /// an alert and not one byte of a request.
    package func handshake() -> TLSHandshakeResult {
        if let failure { return .failed(failure) }
        if isOpen { return .complete }
        ErrorQueue.clear()
        socket.pointee.beginOperation()
        let status = SSL_do_handshake(ssl)
        guard status == 1 else {
            switch SSL_get_error(ssl, status) {
            case SSL_ERROR_WANT_READ: return socket.pointee.isOverTurn ? .turnIsOver : .wantRead
            case SSL_ERROR_WANT_WRITE: return .wantWrite
            case let code: return .failed(fail(code))
            }
        }
        // No verification happens in a resumed handshake: it happened when the session was made.
        if facts == nil, isResumed { facts = offeredFacts }
        guard facts != nil else {
            failure = .unauthenticated
            return .failed(.unauthenticated)
        }
        isOpen = true
        return .complete
    }

    /// Applies the policy to the certificates that the server sent. Called by the library.
    func judge(_ storeContext: OpaquePointer) -> Bool {
        guard let certificate = X509_STORE_CTX_get0_cert(storeContext),
            var evidence = PeerEvidence(
                certificate: certificate,
                sent: X509_STORE_CTX_get0_untrusted(storeContext), context: context)
        else {
            X509_STORE_CTX_set_error(storeContext, X509_V_ERR_OUT_OF_MEM)
            return false
        }
        switch context.policy.evaluate(&evidence, host: sessionKey.host) {
        case .trusted(let found):
            facts = found
            X509_STORE_CTX_set_error(storeContext, X509_V_OK)
            return true
        case .refused(let failure):
            refusal = failure
            X509_STORE_CTX_set_error(storeContext, failure.alertCode)
            return false
        }
    }

    /// Records why the connection is broken: `code` is of SSL_get_error.
    @discardableResult
    private func fail(_ code: Int32) -> TLSError {
        let error: TLSError
        if let refusal {
            ERR_clear_error()
            error = .trust(refusal)
        } else if socket.pointee.hasTooManyMessages {
            ERR_clear_error()
            error = .tooManyMessages
        } else if code == SSL_ERROR_SSL {
            error = .fromQueue()
        } else if code == SSL_ERROR_ZERO_RETURN || socket.pointee.isAtEnd {
            ERR_clear_error()
            error = .truncated
        } else {
            ERR_clear_error()
            error = .transport(errorNumber: socket.pointee.errorNumber)
        }
        failure = error
        return error
    }

    /// Counts a handshake message. Called by the library.
    func noteHandshakeMessage() {
        if isOpen { socket.pointee.lateMessages += 1 }
    }

    /// Notes an alert that is sent, as the library gives it. Called by the library.
    func noteSentAlert(_ value: Int32) {
        let alert = TLSAlert(code: UInt8(truncatingIfNeeded: value))
        if value >> 8 == SSL3_AL_FATAL { sentAlert = alert }
    }
}

extension TrustFailure {
    /// The library's code that makes it send the fitting alert.
    var alertCode: Int32 {
        switch reason {
        case .chain(let failure): failure.alertCode
        case .noPinMatches, .pinsetWithoutPins, .invalidPolicy:
            X509_V_ERR_APPLICATION_VERIFICATION
        }
    }
}

// MARK: - Sessions

extension TLSClientConnection {
    /// Sessions whose encoded form is longer are not kept: a server chooses its tickets' size.
    private static let sessionBytes = 16 * 1024

    private func offer(_ session: TLSSessionCache.Session) {
        let decoded = session.bytes.withUnsafeBufferPointer { buffer -> OpaquePointer? in
            var position = buffer.baseAddress
            return d2i_SSL_SESSION(nil, &position, buffer.count)
        }
        // Without a session the handshake is a full one, which is never wrong.
        if let decoded {
            SSL_set_session(ssl, decoded)
            SSL_SESSION_free(decoded)
        }
        ErrorQueue.clear()
    }

    /// Keeps a session that the server offers, if the server is trusted. Called by the library.
    func keep(_ session: OpaquePointer?) {
        guard let session, let cache = context.sessions, failure == nil,
            let facts = facts ?? (isResumed ? offeredFacts : nil),
            SSL_SESSION_is_resumable(session) == 1
        else { return }
        let isSingleUse = SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION
        let hint = Int64(clamping: SSL_SESSION_get_ticket_lifetime_hint(session))
        // A ticket without lifetime: to be discarded in TLS 1.3 (RFC 8446 §4.6.1), unspecified
        // before (RFC 5077 §3.3).
        guard hint > 0 || !isSingleUse else { return }
        var lifetime = min(cache.limits.lifetimeSeconds, Int64(SSL_SESSION_get_timeout(session)))
        if hint > 0 { lifetime = min(lifetime, hint) }
        let expires = min(Int64(SSL_SESSION_get_time(session)) + lifetime, facts.expires ?? .max)
        let count = i2d_SSL_SESSION(session, nil)
        guard count > 0, count <= TLSClientConnection.sessionBytes else { return }
        let bytes = [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, written in
            var position = buffer.baseAddress
            written = Int(i2d_SSL_SESSION(session, &position))
        }
        cache.insert(
            TLSSessionCache.Session(
                bytes: bytes, expires: expires, isSingleUse: isSingleUse, facts: facts),
            for: sessionKey)
    }
}

// MARK: - Application bytes

extension TLSClientConnection {
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
    package func read(
        into buffer: UnsafeMutableRawBufferPointer, trustsShortReceive: Bool = false
    ) -> TLSReadResult {
        guard !isBroken else { return endOfReading() }
        recordsOfLastRead = 0
        guard let start = buffer.baseAddress else { return .bytes(0, drained: false) }
        var filled = 0
        socket.pointee.beginOperation()
        while filled < buffer.count, recordsOfLastRead < Self.recordsPerRead {
            ErrorQueue.clear()
            var count = 0
            let status = SSL_read_ex(ssl, start + filled, buffer.count - filled, &count)
            guard status == 1 else { return stopReading(status, filled: filled) }
            filled += count
            recordsOfLastRead += 1
            if trustsShortReceive, socket.pointee.isDrained, SSL_has_pending(ssl) == 0 {
                return .bytes(filled, drained: true)
            }
        }
        return .bytes(filled, drained: false)
    }

    private func stopReading(_ status: Int32, filled: Int) -> TLSReadResult {
        switch SSL_get_error(ssl, status) {
        case SSL_ERROR_WANT_READ where socket.pointee.isOverTurn:
            return filled > 0 ? .bytes(filled, drained: false) : .turnIsOver
        case SSL_ERROR_WANT_READ:
            return filled > 0 ? .bytes(filled, drained: true) : .wantRead
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

    /// Encrypts and sends bytes until all are taken or the socket is full.
    ///
    /// After a result that took fewer bytes than given, the next write must begin with the bytes
    /// that were not taken, at the same or another address, and must not be shorter: a record of
    /// them may already be under way.
    package func write(_ bytes: UnsafeRawBufferPointer) -> TLSWriteResult {
        guard !isBroken else { return .failed }
        guard let start = bytes.baseAddress else { return .bytes(0) }
        var taken = 0
        while taken < bytes.count {
            ErrorQueue.clear()
            var count = 0
            let status = SSL_write_ex(ssl, start + taken, bytes.count - taken, &count)
            guard status == 1 else {
                switch SSL_get_error(ssl, status) {
                case SSL_ERROR_WANT_WRITE:
                    return taken > 0 ? .bytes(taken) : .wantWrite
                case SSL_ERROR_WANT_READ:
                    return taken > 0 ? .bytes(taken) : .wantRead
                case let code:
                    fail(code)
                    return .failed
                }
            }
            taken += count
        }
        return .bytes(taken)
    }

    /// Decrypted bytes that a read returns without the socket.
    package var pendingBytes: Int { Int(SSL_pending(ssl)) }

    /// Whether bytes, decrypted or not, wait in the session.
    package var hasPending: Bool { SSL_has_pending(ssl) == 1 }

    /// Tells the server that no more bytes will come (close_notify), without waiting for its
    /// answer. A connection that is broken or not open has nothing to say.
    ///
    /// - Returns: false if the socket is full: call again at the next writable edge, or leave it.
    package func shutdown() -> Bool {
        guard isOpen, !isBroken, !isShutDown else { return true }
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
