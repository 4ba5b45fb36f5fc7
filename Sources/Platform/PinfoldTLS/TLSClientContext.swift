import COpenSSL
import Locking
import Synchronization
import Trust

/// How servers are spoken to and judged.
package struct TLSClientSettings: Hashable, Sendable {
    package var minimumVersion = TLSVersion.tls12
    /// What is offered for TLS 1.2, in the library's form (``CipherLists``); nil: its default.
    package var ciphers: String?
    /// What is offered for TLS 1.3, names with `:` between them; nil: the library's default.
    package var cipherSuites: String?
    package var policy = SecurityPolicy()
    /// Whether servers must staple an OCSP response that says that their certificate is good.
    package var requiresStaple = false
    /// What is asked of chains beyond what the library verifies.
    package var profile = ChosenProfile.byDefault
    /// What is asked of Certificate Transparency; nil: nothing.
    package var transparency: TransparencyPolicy?
    /// What is offered by ALPN, most wanted first; empty offers nothing.
    package var applicationProtocols = ["http/1.1"]
    /// Whether connections keep the certificates that their server sent, also those of a server
    /// that is refused; to look at, not for traffic.
    package var keepsPresented = false
    /// Whether connections keep the chain that was verified.
    package var keepsVerified = false
    /// Whether a handshake waits (`wantIdentity`) where the server is trusted, asks for the
    /// client's certificate, and the context has none: see ``TLSClientConnection/answer(_:)``.
    package var asksForIdentity = false
    /// Whether it is found out if servers read encrypted ClientHellos.
    package var looksForEncryptedHello = false

    package init() {}

    /// Nothing is asked of the library that it could refuse.
    fileprivate var areAlwaysPossible: Bool {
        !minimumVersion.isObsolete && ciphers == nil && cipherSuites == nil
            && (try? LibraryContext.wireForm(applicationProtocols)) != nil
    }
}

/// One security policy in force: everything that connections under it share. It never changes, and
/// is used by any number of threads at once. Making one digests the pins, so make it when
/// configuration changes, never per connection.
package final class TLSClientContext: @unchecked Sendable {
    private static let identities = Atomic<UInt64>(0)

    /// Differs between all contexts of the process.
    package let identity: UInt64
    package let settings: TLSClientSettings
    /// The library's context; nil: it is made when it is first needed.
    private let context: Locked<OpaquePointer?>
    /// What connections present to servers that ask for it; nil: nothing.
    let clientIdentity: TLSClientIdentity?
    let judge: TrustJudge
    let sessions: TLSSessionCache?

    /// - Parameters:
    ///   - settings: versions, policy and protocols.
    ///   - roots: the trust anchors; shared between contexts.
    ///   - clientIdentity: what servers that ask for it are presented; nil: nothing.
    ///   - revocation: the lists that servers' chains are held to; nil: none.
    ///   - sessions: where sessions are kept for resumption, shared between contexts; nil resumes
    ///     none.
    ///   - isDeferred: the library's context, which takes milliseconds and memory, is made by
    ///     ``prepare()``, or for the first connection. It is made now all the same where settings
    ///     could turn out to be impossible.
    /// - Throws: for a pin or an anchor that is no certificate or key, and for a pinset that no
    ///   server can pass.
    package init(
        _ settings: TLSClientSettings = TLSClientSettings(), roots: TrustRoots,
        clientIdentity: TLSClientIdentity? = nil, revocation: RevocationLists? = nil,
        sessions: TLSSessionCache? = nil, isDeferred: Bool = false
    ) throws(TLSContextError) {
        for pinset in settings.policy.pinsets {
            if let problem = pinset.problem { throw .pinset(name: pinset.name, problem) }
        }
        let isDeferred = isDeferred && clientIdentity == nil && settings.areAlwaysPossible
        let context =
            isDeferred
            ? nil
            : try TLSClientContext.makeContext(
                settings, clientIdentity, keepsSessions: sessions != nil)
        do throws(TLSContextError) {
            judge = try TrustJudge(
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

    /// Reads the system's trust anchors and makes the library's context, where that is still to be
    /// done. What fails here fails again for the connections.
    package func prepare() {
        judge.roots.readSystem()
        _ = try? library()
    }

    /// The library's context is there.
    var hasLibrary: Bool { context.withLock { $0 != nil } }

    /// The library's context. Whoever needs it while it is made waits.
    func library() throws(TLSContextError) -> OpaquePointer {
        try context.withLock { (context) throws(TLSContextError) in
            if let context { return context }
            let made = try TLSClientContext.makeContext(
                settings, clientIdentity, keepsSessions: sessions != nil)
            judge.take(securityLevel: SSL_CTX_get_security_level(made))
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
                return connection.judge(storeContext) ? 1 : 0
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

/// The certificates that a pinset brings.
struct PinsetCertificates: Sendable {
    /// Extra trust anchors; nil when there are none.
    let anchors: CertificateStack?
    /// The pins that are whole certificates.
    let pinned: CertificateStack
    /// The pins that are fingerprints: a certificate with one of these is the pin.
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

    /// Where the last certificate of a chain that is pinned is in it; nil: none is.
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
