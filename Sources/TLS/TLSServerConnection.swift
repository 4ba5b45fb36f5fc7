import COpenSSL

/// The server's side of a TLS connection: proves who it is, and asks for no certificate.
///
/// Renegotiation is refused with an alert; the connection goes on as it was.
package final class TLSServerConnection: TLSConnection {
    /// What the connection is made under; the library's callbacks refer to it.
    private let context: TLSServerContext

    /// What the connection is made under.
    package var settings: TLSServerSettings { context.settings }

    /// Prepares a connection; nothing is sent before `handshake()`.
    ///
    /// - Parameters:
    ///   - context: the identity in force.
    ///   - fileDescriptor: the socket.
    ///   - early: what was read from the socket already: a client may send its first message right
    ///     behind a CONNECT. Copied.
    package init(
        context: TLSServerContext, fileDescriptor: Int32,
        early: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
    ) throws(TLSError) {
        self.context = context
        try super.init(context: context.context, fileDescriptor: fileDescriptor, early: early)
        SSL_set_accept_state(ssl)
    }
}
