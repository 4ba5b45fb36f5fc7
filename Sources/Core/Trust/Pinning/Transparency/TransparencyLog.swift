/// A Certificate Transparency log, as a list of logs describes it.
package struct TransparencyLog: Hashable, Sendable {
    /// The state of a log according to the list's distributor.
    package enum State: String, Hashable, Sendable, CaseIterable {
        case pending
        case qualified
        case usable
        case readonly
        case retired
        case rejected
    }

    /// The log's name, for display.
    package var name: String
    /// The SHA-256 of its key, by which timestamps name it.
    package var id: SHA256Digest
    /// The SubjectPublicKeyInfo of its key, in DER.
    package var key: [UInt8]
    /// Whether the key is of a kind that logs may use (RFC 6962 §2.1.4); signatures of other keys
    /// are not checked.
    package var hasKnownKey: Bool
    /// Its state; `nil` if the list gives none.
    package var state: State?
    /// Since when it has been in this state, in seconds since 1970.
    package var stateSince: Int64
    /// The range in which the certificates that it accepts must expire, in seconds since 1970,
    /// excluding the end; `nil` if there is no limit.
    package var expiries: Range<Int64>?

    /// Creates a log in this state, for certificates with any expiry unless `expiries` is set.
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
    /// since 1970, and it is not retired, so that no other log needs to be.
    package func suffices(at now: Int64) -> Bool {
        mayCount && state != .retired && expiries.map { $0.upperBound > now } ?? true
    }
}

extension TransparencyLog.State {
    /// Whether some timestamps of a log in this state count.
    package var mayCount: Bool {
        switch self {
        case .qualified, .usable, .readonly, .retired: true
        case .pending, .rejected: false
        }
    }
}

/// The requirements of Certificate Transparency (RFC 6962) for servers.
package struct TransparencyPolicy: Hashable, Sendable {
    /// The number of different logs, at least one, from which a server must present valid
    /// timestamps.
    package let minimum: Int
    /// The known logs.
    package let logs: [TransparencyLog]
    /// The index of each log in the list.
    private let indexByID: [SHA256Digest: Int]

    /// Requires this many timestamps of these logs.
    package init(minimum: Int, logs: [TransparencyLog]) {
        self.minimum = minimum
        self.logs = logs
        indexByID = Dictionary(logs.indices.map { (logs[$0].id, $0) }) { first, _ in first }
    }

    /// The logs of which some timestamps count.
    package var countingLogs: [TransparencyLog] { logs.filter(\.mayCount) }

    /// The log with this ID; `nil` if it is not known.
    func log(_ id: SHA256Digest) -> TransparencyLog? { indexByID[id].map { logs[$0] } }
}
