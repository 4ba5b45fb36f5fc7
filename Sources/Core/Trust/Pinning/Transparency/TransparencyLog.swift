/// A log of Certificate Transparency, as a list of logs describes it.
package struct TransparencyLog: Hashable, Sendable {
    /// What the list's distributor says of a log.
    package enum State: String, Hashable, Sendable, CaseIterable {
        case pending
        case qualified
        case usable
        case readonly
        case retired
        case rejected
    }

    /// What it is called; for people.
    package var name: String
    /// The SHA-256 of its key: how timestamps name it.
    package var id: SHA256Digest
    /// The SubjectPublicKeyInfo of its key, in DER.
    package var key: [UInt8]
    /// Whether the key is of a kind that logs may have (RFC 6962 §2.1.4); nothing that is signed
    /// by another is checked.
    package var hasKnownKey: Bool
    /// Its state; nil: the list says none.
    package var state: State?
    /// Since when, in seconds since 1970.
    package var stateSince: Int64
    /// When the certificates that it takes expire, in seconds since 1970, the end not included;
    /// nil: at any time.
    package var expiries: Range<Int64>?

    /// A log of a state, for certificates of any time unless `expiries` says otherwise.
    package init(
        name: String, id: SHA256Digest, key: [UInt8], hasKnownKey: Bool = true, state: State?,
        stateSince: Int64 = 0, expiries: Range<Int64>? = nil
    ) {
        self.name = name
        self.id = id
        self.key = key
        self.hasKnownKey = hasKnownKey
        self.state = state
        self.stateSince = stateSince
        self.expiries = expiries
    }

    /// Whether some of its timestamps count.
    package var mayCount: Bool { hasKnownKey && (state?.mayCount ?? false) }

    /// Whether its timestamps count for certificates that are still valid at a time, in seconds
    /// since 1970, and without those of a log that is not retired.
    package func suffices(at now: Int64) -> Bool {
        mayCount && state != .retired && expiries.map { $0.upperBound > now } ?? true
    }
}

extension TransparencyLog.State {
    /// Whether some of such a log's timestamps count.
    package var mayCount: Bool {
        switch self {
        case .qualified, .usable, .readonly, .retired: true
        case .pending, .rejected: false
        }
    }
}

/// What is asked of servers by Certificate Transparency (RFC 6962).
package struct TransparencyPolicy: Hashable, Sendable {
    /// Valid timestamps of different logs that a server must show, at least one.
    package let minimum: Int
    /// The logs that are known.
    package let logs: [TransparencyLog]
    /// Where each of them is in the list.
    private let places: [SHA256Digest: Int]

    /// Asks for so many timestamps of these logs.
    package init(minimum: Int, logs: [TransparencyLog]) {
        self.minimum = minimum
        self.logs = logs
        places = Dictionary(logs.indices.map { (logs[$0].id, $0) }) { first, _ in first }
    }

    /// The logs of which some timestamps count.
    package var countingLogs: [TransparencyLog] { logs.filter(\.mayCount) }

    /// The log that timestamps name so; nil: it is not known.
    func log(_ id: SHA256Digest) -> TransparencyLog? { places[id].map { logs[$0] } }
}
