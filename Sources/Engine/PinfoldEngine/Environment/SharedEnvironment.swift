import CacheStore
import EventLoop
import Locking
import Logging
import PinfoldResolver
import Synchronization

/// What the environments of a process share: nothing of it is changed by one without a lock, and
/// none of the locks is held across a system call.
package final class SharedEnvironment: Sendable {
    package var workerCount: Int { mailboxes.count }
    package let resolver: Resolver
    /// nil when the cache is off.
    package let store: CacheStore?
    package let logger: Logger
    package let labels: RouteLabels
    package let activity: ActivityMonitor
    /// What the process listens on; changed by a reload, asked once per connection to a server.
    package let ownListeners = Locked(OwnListeners())
    /// When it was told of servers that a report-only pinset would have refused.
    let pinReports = PinReports()
    /// Takes failures of pinsets; nil: there is nobody to report them to.
    let pinFailures: (any PinFailureSink)?
    /// Looks at servers before anything is sent to them; nil: the policy alone decides.
    let reviewer: ServerReviewer?
    /// Where content is checked and translated.
    let transformationWork: TransformationWork
    /// Bytes that unfinished heads and handshakes take up, for `limits.bufferBytes`.
    let unfinishedBytes = Atomic<Int>(0)
    /// Connections to all origins, for `limits.connections`.
    package let upstreamLimit = SharedLimit()
    /// Connections to each origin, for `limits.upstreamPerHost`.
    let originLimits = OriginLimits()
    /// Each environment's mailbox, for what one asks the others.
    package let mailboxes: [Mailbox<EngineMessage>]

    package init(
        mailboxes: [Mailbox<EngineMessage>], resolver: Resolver, store: CacheStore?,
        logger: Logger, labels: RouteLabels, activity: ActivityMonitor,
        pinFailures: (any PinFailureSink)? = nil, transformationWork: TransformationWork = .none,
        reviewer: ServerReviewer? = nil
    ) {
        self.mailboxes = mailboxes
        self.resolver = resolver
        self.store = store
        self.logger = logger
        self.labels = labels
        self.activity = activity
        self.pinFailures = pinFailures
        self.transformationWork = transformationWork
        self.reviewer = reviewer
    }
}
