import RedisProtocol
import SharedCache

/// Why the shared level is off, did not find or store something, or found what it cannot use. The
/// raw value is the token in metrics, logs and the status.
package enum SharedLevelReason: String, Error, Sendable, Hashable, CaseIterable {
    // MARK: No connection
    /// No connection could be made, or it broke.
    case unreachable
    /// None was made in time.
    case connectTimeout = "connect_timeout"
    /// The engine's certificate is not trusted, or TLS failed.
    case tls
    /// It does not answer the first commands, or a command, for too long.
    case stalled
    /// It ended the connection.
    case closedByServer = "closed_by_server"
    /// It replies what no engine replies.
    case protocolError = "protocol_error"
    /// More changes are waiting than may.
    case overloaded
    /// The streams or the generation are gone, or another gateway has begun them anew.
    case begunAnew = "begun_anew"
    /// The level has been closed.
    case closed

    // MARK: The engine
    /// A password is required (NOAUTH).
    case passwordRequired = "password_required"
    case wrongPassword = "wrong_password"
    /// The user may not send a command that is needed (NOPERM).
    case notPermitted = "not_permitted"
    /// It is a replica, or has lost its master.
    case readOnly = "read_only"
    /// It is a Sentinel.
    case sentinel
    /// It reads its data set, is blocked by a script, or its cluster is not whole.
    case loading
    /// `maxmemory` is reached and nothing may be evicted: lookups go on.
    case outOfMemory = "out_of_memory"
    /// It accepts no writes, because it cannot persist or has too few replicas: lookups go on.
    case writesRefused = "writes_refused"
    /// The key is another node's.
    case moved
    /// Any other error.
    case refused

    // MARK: Time
    /// A lookup had no reply in time; the level is off while many have none.
    case timeout

    // MARK: What is stored
    /// Its HMAC is wrong, or it is damaged in another way.
    case damaged
    /// It was written with a secret that this gateway does not have.
    case otherSecret = "other_secret"
    /// Another program's, or of another version.
    case foreign
    /// A part of a body is not there.
    case incomplete
    /// The key has as many variants as may be.
    case tooManyVariants = "too_many_variants"
    /// What it was written under was purged or removed since.
    case voided

    init(_ error: RedisConnectionError) {
        self =
            switch error {
            case .connectTimeout: .connectTimeout
            case .transport: .unreachable
            case .handshakeTimeout, .stalled: .stalled
            case .handshake(let error): SharedLevelReason(error)
            case .malformed, .unexpectedReply: .protocolError
            case .closedByServer: .closedByServer
            case .stopped: .closed
            }
    }

    private init(_ error: RedisHandshakeError) {
        self =
            switch error {
            case .passwordRequired: .passwordRequired
            case .wrongPassword: .wrongPassword
            case .notPermitted: .notPermitted
            case .needsRESP3, .unexpectedReply: .protocolError
            case .isReplica: .readOnly
            case .isSentinel: .sentinel
            case .unavailable(let error), .refused(_, let error): SharedLevelReason(error.code)
            }
    }

    init(_ code: RedisErrorCode) {
        self =
            switch code {
            case .moved, .ask, .crossSlot: .moved
            case .tryAgain, .clusterDown, .loading, .busy: .loading
            case .masterDown, .readOnly: .readOnly
            case .outOfMemory: .outOfMemory
            case .notPersisting, .noReplicas: .writesRefused
            case .noAuthentication: .passwordRequired
            case .wrongPassword: .wrongPassword
            case .noPermission: .notPermitted
            case .noProtocol, .unknownCommand: .refused
            case .wrongType: .foreign
            case .noScript, .other: .refused
            }
    }

    init(_ error: SharedRecordError) {
        self =
            switch error {
            case .notOurs, .unknownMajor, .unsupportedField, .otherKey: .foreign
            case .unknownSecret: .otherSecret
            case .wrongCode, .wrongBody, .wrongLength, .otherKind, .malformed: .damaged
            }
    }

    /// Whether it lasts until somebody has changed a configuration, as far as can be told.
    var isLasting: Bool {
        switch self {
        case .tls, .passwordRequired, .wrongPassword, .notPermitted, .readOnly, .sentinel, .moved,
            .refused, .otherSecret, .protocolError, .outOfMemory, .writesRefused:
            true
        case .unreachable, .connectTimeout, .stalled, .closedByServer, .overloaded, .closed,
            .begunAnew, .loading, .timeout, .damaged, .foreign, .incomplete, .tooManyVariants,
            .voided:
            false
        }
    }
}

/// What an operator should know. Sent from the level's thread.
package enum SharedLevelEvent: Sendable, Equatable {
    /// It is in use.
    /// - Parameters:
    ///   - product: what the engine says that it is; empty if it does not.
    case ready(product: String, version: String)
    /// It is not in use any longer, or could not be taken into use.
    case off(SharedLevelReason, detail: String)
    /// Everything in the gateway's own tiers is confirmed by its origin before it is used again.
    /// - Parameter why: a reason of `PurgeFollower`, `away` or `unreadable`.
    case madeStale(_ why: String)
    /// A further master of the cluster is in use.
    case nodeReady(String)
    /// It is not in use any longer, or could not be taken into use: what it has is not found.
    case nodeOff(String, SharedLevelReason, detail: String)
}

/// The counts of the level since the start, and how it is doing.
package struct SharedLevelStatistics: Sendable, Equatable {
    /// What the circuit breaker is doing.
    package enum Breaker: String, Sendable, CaseIterable {
        case closed
        case open
        case halfOpen = "half_open"
    }

    package var isReady = false
    /// Why it is off; `nil` while it is not, and before the first attempt has ended.
    package var reason: SharedLevelReason?
    /// The same in words.
    package var detail = ""
    package var breaker = Breaker.closed
    package var hits: UInt64 = 0
    /// Those of them that workers have found on connections of their own.
    package var workerHits: UInt64 = 0
    package var misses: UInt64 = 0
    package var stores: UInt64 = 0
    package var skipped: UInt64 = 0
    package var connections: UInt64 = 0
    package var bytesRead: UInt64 = 0
    package var bytesWritten: UInt64 = 0
    /// Leases that this gateway has taken, and those that it has now.
    package var leases: UInt64 = 0
    package var heldLeases = 0
    /// Lookups that waited for another gateway's fetch, those of them that found its response, and
    /// those that waited for too long.
    package var waits: UInt64 = 0
    package var waitsAnswered: UInt64 = 0
    package var waitsInVain: UInt64 = 0
    /// Lookups that are waiting.
    package var waitingLookups = 0
    /// Bytes of responses and commands that wait to be sent.
    package var queueBytes = 0
    package var queueCommands = 0
    /// Keys that could not be removed yet.
    package var lostKeys = 0
    /// Whether it has caught up with what others have purged.
    package var isFollowing = false
    /// Purges and removed keys of others that were carried out here.
    package var purgesReceived: UInt64 = 0
    package var removalsReceived: UInt64 = 0
    /// Purges of this gateway that the others were told of.
    package var purgesSent: UInt64 = 0
    package var removalsSent: UInt64 = 0
    /// How often everything was made stale because something may have been missed.
    package var madeStale: UInt64 = 0
    /// Gateways that were there when that was last read, this one included; 0 before that.
    package var members = 0
    /// Masters of the cluster, and those of them that are in use; 0 without a cluster.
    package var knownNodes = 0
    package var usedNodes = 0
    /// Replies that a key is another node's: for good, and while its slot moves.
    package var moved: UInt64 = 0
    package var asked: UInt64 = 0
    /// How many lookups took up to 1, 2, 4… milliseconds; the last one counts all others.
    package var latencies = [UInt64](repeating: 0, count: latencyBounds.count + 1)
    /// How often what went wrong.
    private var errors = [UInt64](repeating: 0, count: SharedLevelReason.allCases.count)

    /// In milliseconds.
    package static let latencyBounds: [Int64] = [1, 2, 4, 8, 16, 32]

    /// How often this was the reason.
    package subscript(_ reason: SharedLevelReason) -> UInt64 {
        get { Self.place(of: reason).map { errors[$0] } ?? 0 }
        set { if let place = Self.place(of: reason) { errors[place] = newValue } }
    }

    private static func place(of reason: SharedLevelReason) -> Int? {
        SharedLevelReason.allCases.firstIndex(of: reason)
    }

    mutating func took(_ milliseconds: Int64) {
        let bound = Self.latencyBounds.firstIndex { milliseconds <= $0 }
        latencies[bound ?? Self.latencyBounds.count] += 1
    }
}
