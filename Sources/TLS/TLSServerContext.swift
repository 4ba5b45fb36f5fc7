import COpenSSL

/// How clients are spoken to.
package struct TLSServerSettings: Hashable, Sendable {
    package var minimumVersion = TLSVersion.tls12
    /// What is selected by ALPN, most wanted first: a client that offers none of these is refused
    /// (RFC 7301 §3.2), and one that offers nothing is not. Empty takes no part in ALPN.
    package var applicationProtocols = ["http/1.1"]

    package init() {}
}

/// One identity and its settings in force: everything that connections of a server share.
/// Immutable; used by any number of threads at once.
///
/// No session is ever resumed: neither tickets nor session identifiers are given out, so that there
/// is no key to keep and to renew, and no early data, which could be replayed.
package final class TLSServerContext: @unchecked Sendable {
    package let settings: TLSServerSettings
    let context: OpaquePointer
    /// The protocols in ALPN's form; the library refers to them while a handshake lasts.
    private let protocols: UnsafeMutableBufferPointer<UInt8>

    /// - Throws: for a key that is another certificate's, and for what the library finds too weak.
    package init(
        _ settings: TLSServerSettings = TLSServerSettings(), identity: TLSServerIdentity
    ) throws(TLSContextError) {
        let wire = try LibraryContext.wireForm(settings.applicationProtocols)
        context = try LibraryContext.make(TLS_server_method()) {
            (context) throws(TLSContextError) in
            try Self.configure(context, settings, identity)
        }
        self.settings = settings
        protocols = .allocate(capacity: wire.count)
        _ = protocols.initialize(from: wire)
        guard !wire.isEmpty else { return }
        // Connections keep their context, and with it the list, for as long as the library calls.
        SSL_CTX_set_alpn_select_cb(
            context,
            { _, selected, selectedCount, offered, offeredCount, argument in
                guard let argument else { return SSL_TLSEXT_ERR_ALERT_FATAL }
                let context = Unmanaged<TLSServerContext>.fromOpaque(argument)
                    .takeUnretainedValue()
                return context.select(selected, selectedCount, offered, offeredCount)
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit {
        SSL_CTX_free(context)
        protocols.deallocate()
    }

    private static func configure(
        _ context: OpaquePointer, _ settings: TLSServerSettings, _ identity: TLSServerIdentity
    ) throws(TLSContextError) {
        try LibraryContext.configure(context, minimumVersion: settings.minimumVersion)
        SSL_CTX_set_options(context, pinfold_SSL_OP_NO_TICKET)
        _ = pinfold_SSL_CTX_set_session_cache_mode(context, Int(SSL_SESS_CACHE_OFF))
        // What is sent is the identity's chain, not one that the library looks for.
        _ = pinfold_SSL_CTX_set_mode(context, Int(SSL_MODE_NO_AUTO_CHAIN))
        guard SSL_CTX_set_num_tickets(context, 0) == 1, SSL_CTX_set_max_early_data(context, 0) == 1
        else { throw .library(ErrorQueue.drain()) }
        guard
            SSL_CTX_use_cert_and_key(
                context, identity.certificate, identity.key, identity.chain.pointer, 1) == 1
        else { throw .identity(.refused(ErrorQueue.drain())) }
    }

    /// Selects the first of the settings' protocols that the client offers. Called by the library.
    private func select(
        _ selected: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
        _ selectedCount: UnsafeMutablePointer<UInt8>?,
        _ offered: UnsafePointer<UInt8>?, _ offeredCount: UInt32
    ) -> Int32 {
        var choice: UnsafeMutablePointer<UInt8>?
        let outcome = SSL_select_next_proto(
            &choice, selectedCount, protocols.baseAddress, UInt32(protocols.count), offered,
            offeredCount)
        guard outcome == OPENSSL_NPN_NEGOTIATED, let choice else {
            return SSL_TLSEXT_ERR_ALERT_FATAL
        }
        selected?.pointee = UnsafePointer(choice)
        return SSL_TLSEXT_ERR_OK
    }
}
