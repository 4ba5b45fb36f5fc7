import HTTPCore
import PinfoldConfiguration
import PinfoldTLS
import Trust

/// Identifies the trust and access rules under which a response was obtained: the SHA-256 of
/// everything that determines them. It is the same in every process, so that a response stored
/// before a restart is used after it exactly if nothing of that has changed.
struct TrustFingerprint: Hashable, Sendable {
    /// The whole digest.
    let digest: SHA256Digest
    /// Its first 64 bits, which the store keeps with each response.
    var prefix: UInt64 { digest.prefix }

    /// The fingerprint of what has been written.
    init(_ form: TrustForm) throws(TLSContextError) {
        guard let digest = SHA256Digest(hashing: form.bytes.span) else {
            throw .library("SHA-256 failed")
        }
        self.digest = digest
    }
}

/// The bytes whose digest is the fingerprint. Each item is preceded by its length and each list by
/// its count, so that no two configurations produce the same bytes.
struct TrustForm {
    private(set) var bytes = Array("pinfold trust 6".utf8)

    /// A number, in eight bytes.
    mutating func add(_ number: Int) {
        withUnsafeBytes(of: UInt64(bitPattern: Int64(number)).bigEndian) {
            bytes.append(contentsOf: $0)
        }
    }

    /// Bytes, their count before them.
    mutating func add(_ item: some Collection<UInt8>) {
        add(item.count)
        bytes.append(contentsOf: item)
    }

    private mutating func add(_ flag: Bool) { bytes.append(flag ? 1 : 0) }

    private mutating func add<Item>(
        all items: [Item], _ write: (inout TrustForm, Item) -> Void
    ) {
        add(items.count)
        for item in items { write(&self, item) }
    }

    /// How servers are verified.
    mutating func add(_ tls: UpstreamTLS) {
        add(tls.minimum.rawValue.utf8)
        add((tls.profile?.rawValue ?? "").utf8)
        add(tls.roots)
        // A server may respond differently to different clients.
        add(tls.clientIdentity?.chain ?? [])
        add((tls.ciphers ?? "").utf8)
        add((tls.cipherSuites ?? "").utf8)
        add(tls.ocspStapling.rawValue.utf8)
        // A reissued list that revokes the same certificates changes nothing.
        add(all: tls.crls.flatMap(\.contents)) { $0.add($1.bytes) }
        if let transparency = tls.transparency.policy { add(transparency) }
    }

    /// The system's roots are only named.
    private mutating func add(_ roots: [ConfiguredRoots]) {
        add(all: roots) { form, source in
            switch source {
            case .system: form.bytes.append(0)
            case .file(_, let certificates):
                form.bytes.append(1)
                form.add(all: certificates) { $0.add($1) }
            }
        }
    }

    /// Nothing is added if nothing is required. This cannot be confused with what follows then,
    /// because there cannot be a count of that many pinsets.
    private mutating func add(_ transparency: TransparencyPolicy) {
        add(-1)
        add(transparency.minimum)
        // Only what is decisive is written, so that a list with the same meaning in a different
        // form, or with more logs that do not count, changes nothing.
        let logs = transparency.countingLogs.map { (id: $0.id.bytes, log: $0) }
            .sorted { $0.id.lexicographicallyPrecedes($1.id) }
        add(all: logs) { form, entry in
            // The identifier is the digest of the key.
            form.add(entry.id)
            let log = entry.log
            form.add(log.state == .retired)
            form.add(log.state == .retired ? Int(log.stateSince) : 0)
            form.add(log.expiries != nil)
            form.add(Int(log.expiries?.lowerBound ?? 0))
            form.add(Int(log.expiries?.upperBound ?? 0))
        }
    }

    /// What the sessions of a listener's clients stand for: what the client has been shown, and
    /// what it has proved.
    mutating func add(_ tls: ListenerTLS) {
        add(tls.minimum.rawValue.utf8)
        // A certificate tells its key.
        add(all: tls.certificates) { $0.add($1.chain) }
        add(tls.clientRoots)
        add(tls.clientCertificates.rawValue.utf8)
        add(all: tls.clientSubjects) { $0.add($1.description.utf8) }
    }

    /// What servers must satisfy in addition.
    mutating func add(_ pinset: Pinset) {
        add(pinset.name.utf8)
        add(pinset.mode.rawValue.utf8)
        add(pinset.allowInvalidCertificates)
        add(pinset.validatesDomainName)
        add(all: pinset.anchors) { $0.add($1) }
        add(all: pinset.pins) { $0.add($1) }
        // Whether a server that the pins refuse is accepted. A pinset that refuses after its expiry
        // is equally strict before, however long that is.
        add(pinset.isEnforced)
        if pinset.isEnforced, pinset.afterExpiry == .report, let expires = pinset.expires {
            add(true)
            add(Int(expires))
        } else {
            add(false)
        }
    }

    private mutating func add(_ pin: Pin) {
        switch pin {
        case .keyDigest(let digest):
            bytes.append(0)
            add(digest.bytes)
        case .certificateFingerprint(let digest):
            bytes.append(1)
            add(digest.bytes)
        case .certificate(let der):
            bytes.append(2)
            add(der)
        case .publicKey(let der):
            bytes.append(3)
            add(der)
        }
    }

    /// A host entry's trust: its TLS and its pinsets, in the order of evaluation.
    mutating func add(_ entry: HostEntry, of configuration: ConfigurationSnapshot) {
        add(entry.tls)
        add(all: entry.pinsets) { $0.add(configuration.pinsets[$1].pinset) }
        add(all: entry.cacheKeyFields) { $0.add($1.utf8) }
        add(entry.request, entry.response)
    }

    /// The rules for requests and responses: a response that was obtained or transformed by other
    /// rules is a different one. All properties of the rules count. Nothing is added if there are
    /// none.
    private mutating func add(_ request: RequestRules, _ response: ResponseRules) {
        if request != RequestRules() {
            add(-2)
            add(String(reflecting: request).utf8)
            // Its description does not contain it.
            add((request.authorization?.fieldValue.text ?? "").utf8)
        }
        let response = response.asStored
        if response != ResponseRules() {
            add(-3)
            add(String(reflecting: response).utf8)
        }
    }

    /// The ways by which responses are obtained: whoever forwards a request in clear text may
    /// answer as it likes. Their order and their credentials say nothing about that. Nothing is
    /// added if there are none.
    /// - Parameter entry: the host's; `nil` if none matches.
    mutating func add(ways entry: HostEntry?, of configuration: ConfigurationSnapshot) {
        let ways = entry?.parents ?? configuration.ways.parents
        guard !configuration.parents.isEmpty, !ways.isEmpty, ways != [.direct] else { return }
        add(-4)
        add(all: configuration.written(ways)) { $0.add($1.utf8) }
        let direct = configuration.ways.noProxy.texts + (entry?.noProxy.texts ?? [])
        add(all: direct.sorted()) { $0.add($1.utf8) }
    }

    /// The trust if no host entry matches: the same as for an empty entry.
    mutating func add(defaultsOf configuration: ConfigurationSnapshot) {
        add(configuration.tls)
        add(0)
        add(0)
    }

    /// Which destinations may be reached; `nil` for a reverse listener's upstream, to which the
    /// access rules do not apply.
    mutating func add(access: AccessConfiguration?) {
        guard let access else {
            bytes.append(0)
            return
        }
        bytes.append(1)
        for list in [access.allow, access.deny] {
            add(all: list.networks) { $0.add("\($1)".utf8) }
            add(all: list.patterns) { $0.add("\($1)".utf8) }
        }
    }
}

extension ResponseRules {
    /// The part of the rules that determines what is stored. If the origin's form is stored, it is
    /// translated for clients by the rules of the time; the form itself is included, so that one is
    /// never mistaken for the other.
    fileprivate var asStored: ResponseRules {
        var rules = self
        // They apply to what is sent.
        rules.headers = HeaderRules()
        guard storesOrigin else {
            rules.cacheForm = .translated
            return rules
        }
        if let body {
            rules.body = ResponseBodyRules(from: body.from, to: body.from)
        }
        rules.image?.convert = []
        rules.image?.scaleTo = nil
        return rules
    }
}

/// The fingerprints of all host entries of one configuration.
struct TrustFingerprints: Sendable {
    private let entries: [TrustFingerprint]
    private let fixedEntries: [TrustFingerprint]
    private let defaults: TrustFingerprint
    private let fixedDefaults: TrustFingerprint

    init(_ configuration: ConfigurationSnapshot) throws(TLSContextError) {
        func all(
            _ access: AccessConfiguration?
        ) throws(TLSContextError) -> (entries: [TrustFingerprint], defaults: TrustFingerprint) {
            var made: [TrustFingerprint] = []
            for entry in configuration.hosts.entries {
                var form = TrustForm()
                form.add(access: access)
                form.add(entry, of: configuration)
                form.add(ways: entry, of: configuration)
                made.append(try TrustFingerprint(form))
            }
            var form = TrustForm()
            form.add(access: access)
            form.add(defaultsOf: configuration)
            form.add(ways: nil, of: configuration)
            return (made, try TrustFingerprint(form))
        }
        (entries, defaults) = try all(configuration.access)
        (fixedEntries, fixedDefaults) = try all(nil)
    }

    /// - Parameters:
    ///   - entry: the index of the host entry; `nil` if none matches.
    ///   - isFixed: whether it is a reverse listener's upstream.
    func of(entry: Int?, isFixed: Bool) -> TrustFingerprint {
        guard let entry else { return isFixed ? fixedDefaults : defaults }
        return isFixed ? fixedEntries[entry] : entries[entry]
    }
}
