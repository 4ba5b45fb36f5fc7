import COpenSSL
import Locking
import Synchronization
import Trust

/// How connections to servers are made, and how the servers are verified.
package struct TLSClientSettings: Hashable, Sendable {
    package var minimumVersion = TLSVersion.tls12
    /// The suites offered for TLS 1.2, in the library's format (``CipherLists``); `nil` for its
    /// default.
    package var ciphers: String?
    /// The suites offered for TLS 1.3, names separated by `:`; `nil` for the library's default.
    package var cipherSuites: String?
    package var policy = PinningPolicy()
    /// Whether servers must staple an OCSP response that says that their certificate is good.
    package var requiresStaple = false
    /// Requirements for chains beyond what the library verifies.
    package var profile = ChosenProfile.byDefault
    /// Certificate Transparency requirements, or `nil` for none.
    package var transparency: TransparencyPolicy?
    /// The protocols offered by ALPN, most preferred first; empty offers none.
    package var applicationProtocols = ["http/1.1"]
    /// Whether connections keep the certificates that their server sent, including those of a
    /// refused server; for inspection, not for traffic.
    package var keepsPresented = false
    /// Whether connections keep the verified chain.
    package var keepsVerified = false
    /// Whether a handshake waits (`wantIdentity`) if the server is trusted, requests the client's
    /// certificate, and the context has none: see ``TLSClientConnection/answer(_:)``.
    package var asksForIdentity = false
    /// Whether to find out if servers support encrypted ClientHellos.
    package var looksForEncryptedHello = false

    package init() {}

    /// Whether nothing is requested of the library that it could refuse.
    fileprivate var areAlwaysPossible: Bool {
        !minimumVersion.isObsolete && ciphers == nil && cipherSuites == nil
            && (try? LibraryContext.wireForm(applicationProtocols)) != nil
    }
}

/// One security policy in force: everything that connections under it share. It never changes, and
/// is safe to use from any number of threads at once. Creating one digests the pins, so create it
/// when the configuration changes, never per connection.
package final class TLSClientContext: @unchecked Sendable {
    private static let identities = Atomic<UInt64>(0)

    /// Unique among all contexts of the process.
    package let identity: UInt64
    package let settings: TLSClientSettings
    /// The library's context, or `nil` until it is first needed.
    private let context: Locked<OpaquePointer?>
    /// What connections present to servers that request it, or `nil` for nothing.
    let clientIdentity: TLSClientIdentity?
    let verifier: TrustVerifier
    let sessions: TLSSessionCache?

    /// - Parameters:
    ///   - settings: versions, policy and protocols.
    ///   - roots: the trust anchors; shared between contexts.
    ///   - clientIdentity: what is presented to servers that request it; `nil` for nothing.
    ///   - revocation: the lists that servers' chains are checked against; `nil` for none.
    ///   - sessions: where sessions are kept for resumption, shared between contexts; `nil` to
    ///     resume none.
    ///   - isDeferred: whether the library's context, which takes milliseconds and memory, is
    ///     created by ``prepare()``, or for the first connection. It is created at once
    ///     nevertheless if settings could turn out to be impossible.
    /// - Throws: for a pin or an anchor that is not a certificate or key, and for a pinset that no
    ///   server can pass.
    package init(
        _ settings: TLSClientSettings = TLSClientSettings(), roots: TrustRoots,
        clientIdentity: TLSClientIdentity? = nil, revocation: RevocationLists? = nil,
        sessions: TLSSessionCache? = nil, isDeferred: Bool = false
    ) throws(TLSContextError) {
        for pinset in settings.policy.pinsets {
            if let problem = pinset.configurationError { throw .pinset(name: pinset.name, problem) }
        }
        let isDeferred = isDeferred && clientIdentity == nil && settings.areAlwaysPossible
        let context =
            isDeferred
            ? nil
            : try TLSClientContext.makeContext(
                settings, clientIdentity, keepsSessions: sessions != nil)
        do throws(TLSContextError) {
            verifier = try TrustVerifier(
                settings.policy, roots: roots,
                securityLevel: context.map { SSL_CTX_get_security_level($0) },
                profile: settings.profile, revocation: revocation,
                requiresStaple: settings.requiresStaple, transparency: settings.transparency)
        } catch {
            SSL_CTX_free(context)
            throw error
        }
        self.context = Locked(context)
        self.settings = settings
        self.clientIdentity = clientIdentity
        self.sessions = sessions
        identity = TLSClientContext.identities.wrappingAdd(1, ordering: .relaxed).newValue
    }

    /// Reads the system's trust anchors and creates the library's context, if that has not been
    /// done yet. A failure here will recur for the connections.
    package func prepare() {
        verifier.roots.readSystem()
        _ = try? library()
    }

    /// Whether the library's context exists.
    var hasLibrary: Bool { context.withLock { $0 != nil } }

    /// The library's context. Callers wait while it is being created.
    func library() throws(TLSContextError) -> OpaquePointer {
        try context.withLock { (context) throws(TLSContextError) in
            if let context { return context }
            let made = try TLSClientContext.makeContext(
                settings, clientIdentity, keepsSessions: sessions != nil)
            verifier.take(securityLevel: SSL_CTX_get_security_level(made))
            context = made
            return made
        }
    }

    deinit {
        sessions?.removeSessions(ofContext: identity)
        context.withLock { SSL_CTX_free($0) }
    }

    private static func makeContext(
        _ settings: TLSClientSettings, _ identity: TLSClientIdentity?, keepsSessions: Bool
    ) throws(TLSContextError) -> OpaquePointer {
        try LibraryContext.make(TLS_client_method()) { (context) throws(TLSContextError) in
            try configure(context, settings)
            try identity?.present(in: context)
            if keepsSessions { keepSessions(of: context) }
        }
    }

    private static func keepSessions(of context: OpaquePointer) {
        let mode = SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL
        _ = pinfold_SSL_CTX_set_session_cache_mode(context, Int(mode))
        SSL_CTX_sess_set_new_cb(context) { ssl, session in
            TLSClientConnection.from(ssl)?.keep(session)
            return 0
        }
    }

    private static func configure(
        _ context: OpaquePointer, _ settings: TLSClientSettings
    ) throws(TLSContextError) {
        try LibraryContext.configure(context, minimumVersion: settings.minimumVersion)
        if let ciphers = settings.ciphers, !CipherLists.offer(ciphers: ciphers, in: context) {
            throw .library(ErrorQueue.drain())
        }
        if let suites = settings.cipherSuites, SSL_CTX_set_ciphersuites(context, suites) != 1 {
            throw .library(ErrorQueue.drain())
        }
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        SSL_CTX_set_cert_verify_callback(
            context,
            { storeContext, _ in
                let index = SSL_get_ex_data_X509_STORE_CTX_idx()
                let ssl = X509_STORE_CTX_get_ex_data(storeContext, index)
                guard let storeContext, let ssl,
                    let connection = TLSClientConnection.from(OpaquePointer(ssl))
                else { return 0 }
                return connection.verify(storeContext) ? 1 : 0
            }, nil)
        TLSClientConnection.noteCertificateRequests(context)
        if settings.requiresStaple || settings.transparency != nil {
            try TLSClientConnection.askForStaples(in: context)
        }
        if settings.looksForEncryptedHello { EncryptedHello.offer(in: context) }
        if settings.transparency != nil { try ServerTimestamps.ask(in: context) }
        let wire = try LibraryContext.wireForm(settings.applicationProtocols)
        guard wire.isEmpty || SSL_CTX_set_alpn_protos(context, wire, UInt32(wire.count)) == 0 else {
            throw .library(ErrorQueue.drain())
        }
    }
}

/// The certificates configured in a pinset.
struct PinsetCertificates: Sendable {
    /// Additional trust anchors, or `nil` if there are none.
    let anchors: CertificateStack?
    /// The pins that are whole certificates.
    let pinned: CertificateStack
    /// The pins that are fingerprints: any certificate with one of these is pinned.
    let fingerprints: Set<SHA256Digest>

    init(_ pinset: Pinset) throws(TLSContextError) {
        guard let pinned = CertificateStack() else { throw .library(ErrorQueue.drain()) }
        var fingerprints: Set<SHA256Digest> = []
        for pin in pinset.pins {
            switch pin {
            case .keyDigest, .publicKey: continue
            case .certificateFingerprint(let digest): fingerprints.insert(digest)
            case .certificate(let der):
                do throws(CertificateError) {
                    let certificate = try Certificate(der: der)
                    pinned.append(certificate.pointer)
                } catch {
                    throw .pin(pinset: pinset.name, error)
                }
            }
        }
        var anchors: CertificateStack?
        if !pinset.anchors.isEmpty {
            anchors = CertificateStack()
            guard anchors != nil else { throw .library(ErrorQueue.drain()) }
        }
        for (index, der) in pinset.anchors.enumerated() {
            do throws(CertificateError) {
                let certificate = try Certificate(der: der)
                anchors?.append(certificate.pointer)
            } catch {
                throw .anchor(pinset: pinset.name, index: index, error)
            }
        }
        self.anchors = anchors
        self.pinned = pinned
        self.fingerprints = fingerprints
    }

    /// The index of the last pinned certificate in a chain, or `nil` if none is pinned.
    func lastIndex(in chain: BuiltChain) -> Int? {
        chain.verified.certificates.indices.last { index in
            if fingerprints.contains(chain.verified.certificates[index].fingerprint) { return true }
            guard let one = chain.certificates[index] else { return false }
            return (0..<pinned.count).contains { position in
                pinned[position].map { X509_cmp($0, one) == 0 } ?? false
            }
        }
    }
}
