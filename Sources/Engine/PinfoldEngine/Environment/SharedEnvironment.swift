import Authentication
import CacheStore
import EventLoop
import HTTPCore
import Locking
import Logging
import PinfoldResolver
import Synchronization

/// What the environments of a process share. An environment changes none of it without a lock, and
/// no lock is held across a system call.
package final class SharedEnvironment: Sendable {
    package var workerCount: Int { mailboxes.count }
    package let resolver: Resolver
    /// `nil` if the cache is disabled.
    package let store: CacheStore?
    package let logger: Logger
    package let labels: RouteLabels
    package let activity: ActivityMonitor
    /// The addresses that the process listens on; changed by a reload, read once per connection to
    /// a server.
    package let ownListeners = Locked(OwnListeners())
    /// The connections that the process has begun lately, while there are transparent listeners.
    package let ownConnections = OwnConnections()
    /// Responses that are received for the cache only.
    let fillings = FillingLimits()
    /// When servers that a report-only pinset would have refused were logged.
    let pinReports = PinReports()
    /// What servers have presented; `nil` if nobody can look at it.
    let serverChains: ServerChains?
    /// Receives failures of pinsets; `nil` if they are not reported.
    let pinFailures: (any PinFailureSink)?
    /// Remembers the keys of trusted servers; `nil` if they are not remembered.
    let serverObserver: (any ServerObserving)?
    /// Reviews servers before anything is sent to them; `nil` if the policy alone decides.
    let reviewer: ServerReviewer?
    /// Is asked for addresses before the resolver; `nil` if there is none.
    let names: (any NameSource)?
    /// Checks passwords; `nil` if no listener can ask for one.
    let passwords: (any PasswordChecking)?
    /// Credentials that were verified at some cost, under this key.
    let verified = Locked(VerifiedCredentials())
    let proofKey = ProofKey(
        random: (
            .random(in: 0 ... .max), .random(in: 0 ... .max), .random(in: 0 ... .max),
            .random(in: 0 ... .max)
        ))
    /// How this process recognizes in Via what it has forwarded under a pseudonym.
    let viaMark = ViaMark(random: .random(in: 0 ... .max))
    /// How long networks that have sent tokens with wrong signatures get no others verified.
    let signatureFailures = Locked(FailureDelays(free: 30))
    /// Purges stored responses; `nil` if nothing is stored, or nobody may purge.
    let purges: (any CachePurging)?
    /// How long networks that have sent wrong tokens for purging have no others looked at.
    let purgeFailures = Locked(FailureDelays(free: 10))
    /// What has been used of the rates of rules.
    package let rates = RateLedger()
    /// Where content is checked and translated.
    let transformationWork: TransformationWork
    /// Bytes used by unfinished heads and handshakes, for `limits.bufferBytes`.
    let unfinishedBytes = Atomic<Int>(0)
    /// Connections to all origins, for `limits.connections`.
    package let upstreamLimit = SharedLimit()
    /// Connections to each origin, for `limits.upstreamPerHost`.
    let originLimits = OriginLimits()
    /// The most connections to one origin, and the most exchanges that wait for one.
    package var greatestOriginUse: SharedLimit.Use { originLimits.greatestUse }
    /// Each environment's mailbox, for requests between environments.
    package let mailboxes: [Mailbox<EngineMessage>]

    /// - Parameters:
    ///   - logger: by default one that logs nothing.
    ///   - activity: by default one that nobody watches.
    ///   - serverChains: where what servers present is kept for operators; by default nowhere.
    package init(
        mailboxes: [Mailbox<EngineMessage>], resolver: Resolver, store: CacheStore? = nil,
        logger: Logger = Logger(label: "pinfold") { _ in SwiftLogNoOpLogHandler() },
        labels: RouteLabels = RouteLabels(), activity: ActivityMonitor = ActivityMonitor(),
        pinFailures: (any PinFailureSink)? = nil, passwords: (any PasswordChecking)? = nil,
        purges: (any CachePurging)? = nil,
        transformationWork: TransformationWork = .none,
        reviewer: ServerReviewer? = nil, serverChains: ServerChains? = nil,
        serverObserver: (any ServerObserving)? = nil, names: (any NameSource)? = nil
    ) {
        self.mailboxes = mailboxes
        self.resolver = resolver
        self.store = store
        self.logger = logger
        self.labels = labels
        self.activity = activity
        self.pinFailures = pinFailures
        self.passwords = passwords
        self.purges = purges
        self.transformationWork = transformationWork
        self.reviewer = reviewer
        self.serverChains = serverChains
        self.serverObserver = serverObserver
        self.names = names
    }
}
