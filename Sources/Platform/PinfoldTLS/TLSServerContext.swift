import COpenSSL
import Clocks

/// How connections from clients are made.
package struct TLSServerSettings: Hashable, Sendable {
    package var minimumVersion = TLSVersion.tls12
    /// The protocols selected by ALPN, most preferred first: a client that offers none of these is
    /// refused (RFC 7301 §3.2), but not one that offers nothing. Empty disables ALPN.
    package var applicationProtocols = ["http/1.1"]
    /// What sessions are limited to besides the requested name: a listener's name and its
    /// configuration, for example. A session from another scope is not resumed.
    package var sessionScope = ""

    package init() {}
}

/// One source of certificates and its settings in force: everything that connections of a server
/// share. Immutable; safe to use from any number of threads at once.
///
/// Without ticket keys no session is ever resumed: neither tickets nor session identifiers are
/// issued. Early data, which could be replayed, is never accepted.
package final class TLSServerContext: @unchecked Sendable {
    package let settings: TLSServerSettings
    let context: OpaquePointer
    /// The source for connections that were given none of their own.
    let source: any TLSIdentitySource & Sendable
    let ticketKeys: TLSTicketKeys?
    /// The anchors that clients' certificates must lead to, or `nil` if none are requested.
    let clientRoots: TrustRoots?
    /// The protocols as encoded for ALPN; the library refers to them during a handshake.
    private let protocols: UnsafeMutableBufferPointer<UInt8>

    /// - Parameters:
    ///   - settings: versions and protocols.
    ///   - source: where certificates come from.
    ///   - clientRoots: who must have issued a client's certificate, otherwise the handshake fails;
    ///     `nil` to request none.
    ///   - requiresCertificates: whether a client that shows none is refused.
    ///   - ticketKeys: shared with other contexts; `nil` to resume no session.
    /// - Throws: for settings that the library does not support.
    package init(
        _ settings: TLSServerSettings = TLSServerSettings(),
        source: any TLSIdentitySource & Sendable, clientRoots: TrustRoots? = nil,
        requiresCertificates: Bool = true, ticketKeys: TLSTicketKeys? = nil
    ) throws(TLSContextError) {
        let wire = try LibraryContext.wireForm(settings.applicationProtocols)
        context = try LibraryContext.make(TLS_server_method()) {
            (context) throws(TLSContextError) in
            try Self.configure(context, settings)
            if let clientRoots {
                try Self.requestCertificates(
                    context, clientRoots, areRequired: requiresCertificates)
            }
            if let ticketKeys { Self.giveTickets(context, ticketKeys) }
        }
        self.settings = settings
        self.source = source
        self.clientRoots = clientRoots
        self.ticketKeys = ticketKeys
        protocols = .allocate(capacity: wire.count)
        _ = protocols.initialize(from: wire)
        installCallbacks()
    }

    /// A context with one certificate.
    /// - Throws: for a key that belongs to another certificate, and for anything that the library
    ///   finds too weak.
    package convenience init(
        _ settings: TLSServerSettings = TLSServerSettings(), identity: TLSServerIdentity
    ) throws(TLSContextError) {
        try self.init(settings, source: TLSIdentityList([identity]))
        try require(identity)
    }

    deinit {
        SSL_CTX_free(context)
        protocols.deallocate()
    }

    /// Checks that connections of this context can present a certificate.
    /// - Throws: for a key that belongs to another certificate, and for anything that the library
    ///   finds too weak under the context's settings.
    package func require(_ identity: TLSServerIdentity) throws(TLSContextError) {
        guard let ssl = SSL_new(context) else { throw .library(ErrorQueue.drain()) }
        defer { SSL_free(ssl) }
        guard identity.isPresented(by: ssl) else { throw .identity(.refused(ErrorQueue.drain())) }
    }

    private static func configure(
        _ context: OpaquePointer, _ settings: TLSServerSettings
    ) throws(TLSContextError) {
        try LibraryContext.configure(context, minimumVersion: settings.minimumVersion)
        SSL_CTX_set_options(context, pinfold_SSL_OP_NO_TICKET)
        _ = pinfold_SSL_CTX_set_session_cache_mode(context, Int(SSL_SESS_CACHE_OFF))
        // The identity's chain is sent, not one that the library looks for.
        _ = pinfold_SSL_CTX_set_mode(context, Int(SSL_MODE_NO_AUTO_CHAIN))
        guard SSL_CTX_set_num_tickets(context, 0) == 1, SSL_CTX_set_max_early_data(context, 0) == 1
        else { throw .library(ErrorQueue.drain()) }
    }

    /// TLS 1.3 tickets per full handshake: clients open connections in pairs.
    private static let ticketsPerHandshake = 2

    private static func giveTickets(_ context: OpaquePointer, _ keys: TLSTicketKeys) {
        SSL_CTX_clear_options(context, pinfold_SSL_OP_NO_TICKET)
        SSL_CTX_set_num_tickets(context, ticketsPerHandshake)
        SSL_CTX_set_timeout(context, keys.lifetimeSeconds)
        SSL_CTX_set_tlsext_ticket_key_evp_cb(context) { ssl, name, vector, cipher, mac, isNew in
            guard let keys = TLSServerConnection.from(ssl)?.context.ticketKeys, let name,
                let vector, let cipher, let mac
            else { return TLSTicketKeys.Outcome.failed.rawValue }
            return keys.prepare(
                name: name, vector: vector, cipher: cipher, mac: mac, encrypting: isNew == 1
            ).rawValue
        }
        SSL_CTX_set_session_ticket_cb(
            context, nil,
            { _, session, _, _, status, _ in
                TLSServerContext.use(of: session, status)
            }, nil)
    }

    /// What to do with a ticket. One that proves the client's identity does so no longer than the
    /// certificate does.
    private static func use(
        of session: OpaquePointer?, _ status: SSL_TICKET_STATUS
    ) -> SSL_TICKET_RETURN {
        guard status == SSL_TICKET_SUCCESS || status == SSL_TICKET_SUCCESS_RENEW else {
            return SSL_TICKET_RETURN(SSL_TICKET_RETURN_IGNORE_RENEW)
        }
        if let certificate = SSL_SESSION_get0_peer(session),
            X509View(certificate).notAfter < Clock.wallSeconds()
        {
            return SSL_TICKET_RETURN(SSL_TICKET_RETURN_IGNORE_RENEW)
        }
        return SSL_TICKET_RETURN(
            status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW)
    }

    private static func requestCertificates(
        _ context: OpaquePointer, _ roots: TrustRoots, areRequired: Bool
    ) throws(TLSContextError) {
        guard pinfold_SSL_CTX_set1_verify_cert_store(context, roots.store) == 1,
            let names = roots.subjects()
        else { throw .library(ErrorQueue.drain()) }
        // The library takes ownership; clients with several certificates choose by these.
        SSL_CTX_set_client_CA_list(context, names)
        X509_VERIFY_PARAM_set_flags(
            SSL_CTX_get0_param(context), UInt(X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST)
        )
        let mode = SSL_VERIFY_PEER | (areRequired ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0)
        SSL_CTX_set_verify(context, mode) {
            isVerified, verification in
            guard let verification else { return 0 }
            let outcome = InclusiveExpiry.callback(isVerified, verification)
            guard outcome == 0 else { return outcome }
            let index = SSL_get_ex_data_X509_STORE_CTX_idx()
            if let ssl = X509_STORE_CTX_get_ex_data(verification, index) {
                TLSServerConnection.from(OpaquePointer(ssl))?.refuseCertificate(
                    X509_STORE_CTX_get_error(verification))
            }
            return 0
        }
    }
}

// MARK: - Callbacks

// Connections keep their context, and with it what these refer to, for as long as the library may
// call.
extension TLSServerContext {
    private func installCallbacks() {
        let this = Unmanaged.passUnretained(self).toOpaque()
        SSL_CTX_set_client_hello_cb(
            context,
            { ssl, alert, _ in
                guard let ssl, let connection = TLSServerConnection.from(ssl) else {
                    return SSL_CLIENT_HELLO_ERROR
                }
                return connection.receivedHello(alert)
            }, nil)
        _ = pinfold_SSL_CTX_set_tlsext_status_cb(context) { ssl, _ in
            TLSServerConnection.from(ssl)?.staple() ?? SSL_TLSEXT_ERR_NOACK
        }
        guard !protocols.isEmpty else { return }
        SSL_CTX_set_alpn_select_cb(
            context,
            { ssl, selected, selectedCount, offered, offeredCount, argument in
                guard let argument else { return SSL_TLSEXT_ERR_ALERT_FATAL }
                let context = Unmanaged<TLSServerContext>.fromOpaque(argument)
                    .takeUnretainedValue()
                let own = TLSServerConnection.from(ssl)?.offer?.wire
                return TLSServerContext.select(
                    from: own ?? UnsafeBufferPointer(context.protocols), selected, selectedCount,
                    offered, offeredCount)
            }, this)
    }

    /// Selects the first of a connection's protocols that the client offers. Called by the library.
    private static func select(
        from protocols: UnsafeBufferPointer<UInt8>,
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
