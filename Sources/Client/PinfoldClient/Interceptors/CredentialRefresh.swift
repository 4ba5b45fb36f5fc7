/// Which credential is in force, and when it is refreshed: a value, decided without side effects.
///
///     current ──► refreshing ──► current    (`begin`, then `finish`)
///        ▲            │
///        └────────────┘                     (`set`: the caller's own; the refresh then counts for
///                                            nothing)
struct CredentialRefresh<Credential: Sendable>: Sendable {
    /// What a task does that needs another credential.
    enum Step: Sendable {
        /// The credential has been replaced since.
        case use(Credential)
        /// It waits for the refresh in progress.
        case join
        /// It begins a refresh of this credential, and waits for it. The number goes to
        /// ``CredentialRefresh/finish(_:_:)``.
        case begin(Credential?, number: UInt64)
        /// There were too many refreshes.
        case refuse
    }

    private(set) var credential: Credential?
    /// Counts the credentials, so that a task can tell whether it has used the current one.
    private(set) var revision: UInt64 = 0
    /// The refresh in progress, and of which credential it is.
    private var refreshing: (number: UInt64, revision: UInt64)?
    private var lastNumber: UInt64 = 0
    private let window: RefreshWindow?
    /// When the latest refreshes began, in milliseconds, the oldest first; as many as the window
    /// allows.
    private var begun: [Int64] = []

    init(_ credential: Credential?, window: RefreshWindow?) {
        self.credential = credential
        self.window = window
    }

    var isRefreshing: Bool { refreshing != nil }

    /// Replaces the credential.
    mutating func set(_ credential: Credential?) {
        self.credential = credential
        revision += 1
    }

    /// Decides for a task for which the credential of a revision is not good enough.
    ///
    /// - Parameter now: The time in milliseconds on a clock that never goes back.
    mutating func step(insteadOf revision: UInt64, now: Int64) -> Step {
        if revision != self.revision, let credential { return .use(credential) }
        if let refreshing, refreshing.revision == self.revision { return .join }
        if let window {
            let interval = window.interval.wholeMilliseconds
            begun.removeAll { now - $0 >= interval }
            guard begun.count < window.maximumAttempts else { return .refuse }
            begun.append(now)
        }
        lastNumber += 1
        refreshing = (lastNumber, self.revision)
        return .begin(credential, number: lastNumber)
    }

    /// Ends a refresh. Returns the credential to use: if the caller has replaced the credential
    /// meanwhile, its own one; or `nil` if there is none.
    mutating func finish(_ number: UInt64, _ refreshed: Credential?) -> Credential? {
        guard let refreshing, refreshing.number == number else { return credential }
        self.refreshing = nil
        guard refreshing.revision == revision else { return credential }
        guard let refreshed else { return nil }
        set(refreshed)
        return refreshed
    }
}

/// How many refreshes are allowed within a time.
public struct RefreshWindow: Sendable, Hashable {
    /// The time.
    public var interval: Duration
    /// The maximum number of refreshes that begin within it.
    public var maximumAttempts: Int

    /// Creates a window; by default, of five refreshes within 30 seconds.
    public init(interval: Duration = .seconds(30), maximumAttempts: Int = 5) {
        (self.interval, self.maximumAttempts) = (interval, maximumAttempts)
    }
}
