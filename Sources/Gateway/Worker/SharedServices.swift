import Activity
import Addressing
import Admin
import CacheStore
import EventLoop
import Locking
import Logging
import Metrics
import Resolver
import Synchronization

/// What the workers share: nothing of it is changed by one without a lock, and none of the locks is
/// held across a system call.
package final class SharedServices: Sendable {
    package var workerCount: Int { mailboxes.count }
    package let resolver: Resolver
    /// nil when the cache is off.
    package let store: CacheStore?
    package let accessLog: AccessLog?
    package let logger: Logger
    package let labels: RouteLabels
    /// Answers requests to the administrative listener.
    package let administration: @Sendable (AdminRequest) -> AdminResponse
    /// What the process listens on; changed by a reload, asked once per connection to a server.
    let ownListeners = Locked(OwnListeners())
    /// Client connections of all workers, for the limit.
    let clientConnections = Atomic<Int>(0)
    /// Bytes of buffers with heads that have not arrived whole, for `limits.bufferBytes`.
    let headBytes = Atomic<Int>(0)
    /// What each client has open, for the limits of one client.
    let clients = ClientAccounts()
    /// Connections to all origins, for `limits.connections`.
    let upstreamLimit = SharedLimit()
    /// Connections to each origin, for `limits.upstreamPerHost`.
    let originLimits = OriginLimits()
    /// Each worker's mailbox, for what one asks the others.
    let mailboxes: [Mailbox<WorkerMessage>]
    let activity: ActivityMonitor
    /// Tells the worker that runs the activity indicator's timer.
    let tellActivity: @Sendable () -> Void
    /// Workers with nothing left in flight, while the process is shutting down.
    let drainedWorkers = Atomic<Int>(0)
    /// The process is shutting down.
    let isDraining = Atomic<Bool>(false)

    package init(
        mailboxes: [Mailbox<WorkerMessage>], resolver: Resolver, store: CacheStore?,
        accessLog: AccessLog?,
        logger: Logger, labels: RouteLabels, activity: ActivityMonitor,
        tellActivity: @escaping @Sendable () -> Void,
        administration: @escaping @Sendable (AdminRequest) -> AdminResponse
    ) {
        self.mailboxes = mailboxes
        self.resolver = resolver
        self.store = store
        self.accessLog = accessLog
        self.logger = logger
        self.labels = labels
        self.activity = activity
        self.tellActivity = tellActivity
        self.administration = administration
    }
}
