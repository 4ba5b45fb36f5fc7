import Locking
import PinfoldConfiguration
import PinfoldTLS
import Trust

/// Creates TLS contexts, loading each set of roots once.
struct ContextFactory {
    let sessions: TLSSessionCache
    let showsChains: Bool
    let systemRoots: SystemRootsVersion
    /// Whether the system's trust anchors are read and the library's contexts created immediately.
    var preparesTLS = true
    private var loadedLists: [(files: [CRLFile], lists: RevocationLists)] = []
    private var loaded: [(sources: [RootSource], roots: LoadedRoots)] = []

    init(sessions: TLSSessionCache, showsChains: Bool, systemRoots: SystemRootsVersion) {
        self.sessions = sessions
        self.showsChains = showsChains
        self.systemRoots = systemRoots
    }

    mutating func make(
        _ tls: UpstreamTLS, pinsets: [Pinset], _ http2: ServerHTTP2
    ) throws(TLSContextError) -> TLSClientContext {
        var settings = Self.settings(tls, pinsets)
        settings.applicationProtocols = http2.offer.names
        settings.keepsVerified = showsChains
        settings.asksForIdentity = showsChains
        return try TLSClientContext(
            settings, roots: try roots(tls.roots), clientIdentity: try Self.identity(tls),
            revocation: try lists(tls.crls),
            // A resumed session has no chain.
            sessions: showsChains ? nil : sessions, isDeferred: !preparesTLS)
    }

    private static func settings(_ tls: UpstreamTLS, _ pinsets: [Pinset]) -> TLSClientSettings {
        var settings = TLSClientSettings()
        settings.minimumVersion = tls.minimum == .tls13 ? .tls13 : .tls12
        settings.ciphers = tls.ciphers
        settings.cipherSuites = tls.cipherSuites
        settings.requiresStaple = tls.ocspStapling == .required
        settings.policy = PinningPolicy(pinsets: pinsets)
        settings.profile = tls.profile.map { ChosenProfile($0) } ?? .byDefault
        settings.transparency = tls.transparency.policy
        return settings
    }

    private static func identity(
        _ tls: UpstreamTLS
    ) throws(TLSContextError) -> TLSClientIdentity? {
        guard let files = tls.clientIdentity else { return nil }
        do throws(TLSIdentityError) {
            return try TLSClientIdentity(chainPEM: files.chain, keyPEM: files.key)
        } catch {
            throw .identity(error)
        }
    }

    mutating func make(
        _ entries: [HostEntry], _ pinsets: [PinsetEntry]
    ) throws(TLSContextError) -> [TLSClientContext] {
        var contexts: [TLSClientContext] = []
        for entry in entries {
            contexts.append(
                try make(
                    entry.tls, pinsets: entry.pinsets.map { pinsets[$0].pinset }, entry.http2))
        }
        return contexts
    }

    /// Creates contexts for the entries whose tunnels are probed: no session is resumed, so that
    /// the server presents its certificate each time, and it is detected whether it accepts
    /// Encrypted ClientHello.
    mutating func makeForProbes(
        _ entries: [HostEntry], _ pinsets: [PinsetEntry]
    ) throws(TLSContextError) -> [TLSClientContext?] {
        var contexts: [TLSClientContext?] = []
        for entry in entries {
            // Whose tunnels are inspected may be up to a rule.
            guard entry.tls13Tunnel == .probe else {
                contexts.append(nil)
                continue
            }
            var settings = Self.settings(entry.tls, entry.pinsets.map { pinsets[$0].pinset })
            settings.minimumVersion = .tls13
            settings.applicationProtocols = []
            settings.looksForEncryptedHello = true
            contexts.append(
                try TLSClientContext(
                    settings, roots: try roots(entry.tls.roots),
                    clientIdentity: try Self.identity(entry.tls),
                    revocation: try lists(entry.tls.crls)))
        }
        return contexts
    }

    private mutating func lists(
        _ files: [CRLFile]
    ) throws(TLSContextError) -> RevocationLists? {
        if files.isEmpty { return nil }
        if let known = loadedLists.first(where: { $0.files == files }) { return known.lists }
        let made = try RevocationLists(der: files.flatMap(\.lists))
        loadedLists.append((files, made))
        return made
    }

    private mutating func roots(_ sources: [ConfiguredRoots]) throws(TLSContextError)
        -> LoadedRoots
    {
        let wanted = sources.flatMap { source -> [RootSource] in
            switch source {
            case .system: [.system]
            case .file(let path, let certificates):
                certificates.map { .file(name: path, contents: $0) }
            }
        }
        if let known = loaded.first(where: { $0.sources == wanted }) { return known.roots }
        let roots =
            wanted == [.system]
            ? try SharedRoots.system(systemRoots)
            : try LoadedRoots(wanted, readsSystem: false)
        if preparesTLS, let error = roots.readSystem() { throw error }
        loaded.append((wanted, roots))
        return roots
    }
}

/// The system's trust anchors, shared by all contexts of the process that trust only these.
private enum SharedRoots {
    private static let known = Locked<(version: SystemRootsVersion, roots: LoadedRoots)?>(nil)

    /// The anchors of a version: read again if they have changed since the last call.
    static func system(_ version: SystemRootsVersion) throws(TLSContextError) -> LoadedRoots {
        try known.withLock { (known) throws(TLSContextError) in
            if let known, known.version == version { return known.roots }
            let roots = try LoadedRoots([.system], readsSystem: false)
            known = (version, roots)
            return roots
        }
    }
}
