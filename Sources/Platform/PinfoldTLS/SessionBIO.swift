import COpenSSL

/// The BIO between a TLS connection and the session that carries it: what the inner one sends is
/// content of the outer one, and vice versa. For a client that speaks TLS to its proxy, and TLS
/// again inside its tunnel.
///
/// The outer session is read and written inside library calls for the inner one. Therefore its
/// results become the BIO's, nothing is buffered between the two, and errors that an inner call has
/// queued are preserved across the outer call.
enum SessionBIO {
    /// `BIO_METHOD` is immutable once made, and lives as long as the process.
    private struct Method: @unchecked Sendable {
        let pointer: OpaquePointer?
    }

    private static let method = Method(pointer: makeMethod())

    private static func makeMethod() -> OpaquePointer? {
        let type = BIO_get_new_index() | Int32(BIO_TYPE_SOURCE_SINK)
        guard let method = BIO_meth_new(type, "session") else { return nil }
        BIO_meth_set_read_ex(method, receive)
        BIO_meth_set_write_ex(method, send)
        BIO_meth_set_ctrl(method) { bio, command, _, _ in
            SocketBIO.answer(
                command, isAtEnd: SessionBIO.inner(bio)?.socket.pointee.isAtEnd == true)
        }
        return method
    }

    /// A BIO for a connection that outlives it and has an outer one; `nil` if the library is out of
    /// memory.
    static func make(for inner: TLSConnection) -> OpaquePointer? {
        guard let method = method.pointer, let bio = BIO_new(method) else { return nil }
        BIO_set_data(bio, Unmanaged.passUnretained(inner).toOpaque())
        BIO_set_init(bio, 1)
        return bio
    }

    private static func inner(_ bio: OpaquePointer?) -> TLSConnection? {
        BIO_get_data(bio).map { Unmanaged<TLSConnection>.fromOpaque($0).takeUnretainedValue() }
    }

    private static let receive:
        @convention(c) (
            OpaquePointer?, UnsafeMutablePointer<CChar>?, Int, UnsafeMutablePointer<Int>?
        ) -> Int32 = { bio, bytes, capacity, count in
            guard let inner = inner(bio), let outer = inner.outer else { return -1 }
            let socket = inner.socket
            if let status = SocketBIO.begin(socket, bio, bytes, capacity, count) { return status }
            let room = UnsafeMutableRawBufferPointer(start: bytes, count: capacity)
            let result = ErrorQueue.kept {
                outer.read(into: room, trustsShortReceive: socket.pointee.trustsShortReceive)
            }
            inner.recordsOfLastRead += outer.recordsOfLastRead
            socket.pointee.isDrained = true
            switch result {
            case .bytes(let received, let drained):
                socket.pointee.isDrained = drained
                // The outer session stopped before reading all it could: so does this operation.
                if !drained, received < capacity { socket.pointee.receivesLeft = 0 }
                count?.pointee = received
                return socket.pointee.admits(bytes, count: received) ? 1 : -1
            case .turnIsOver:
                socket.pointee.isDrained = false
                socket.pointee.isOverTurn = true
                pinfold_BIO_set_retry_read(bio)
            case .wantRead: pinfold_BIO_set_retry_read(bio)
            case .wantWrite: pinfold_BIO_set_retry_write(bio)
            // Either way the inner session was not ended properly.
            case .endOfStream, .truncated:
                socket.pointee.isAtEnd = true
                return 0
            case .failed: inner.noteFailureOfOuter()
            }
            return -1
        }

    private static let send:
        @convention(c) (
            OpaquePointer?, UnsafePointer<CChar>?, Int, UnsafeMutablePointer<Int>?
        ) -> Int32 = { bio, bytes, length, count in
            guard let inner = inner(bio), let outer = inner.outer else { return -1 }
            pinfold_BIO_clear_retry_flags(bio)
            // Bytes that were not accepted are offered again: the library finishes a record before
            // another.
            let record = UnsafeRawBufferPointer(start: bytes, count: length)
            switch ErrorQueue.kept({ outer.write(record) }) {
            case .bytes(let sent):
                count?.pointee = sent
                return 1
            case .wantRead: pinfold_BIO_set_retry_read(bio)
            case .wantWrite: pinfold_BIO_set_retry_write(bio)
            case .failed: inner.noteFailureOfOuter()
            }
            return -1
        }
}

extension ErrorQueue {
    /// Runs a call that uses the error queue in the middle of one that may already have an error in
    /// it: an alert is sent after the error that it reports was queued.
    static func kept<Result>(_ call: () -> Result) -> Result {
        let former = ERR_peek_error()
        defer { if former != 0 { pinfold_ERR_raise(former) } }
        return call()
    }
}
