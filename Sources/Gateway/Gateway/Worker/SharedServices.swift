import Activity
import CacheStore
import EventLoop
import Locking
import Logging
import PinObserving
import PinReporting
import PinfoldEngine
import PinfoldResolver
import Synchronization

/// What the workers share: no part of it is changed without a lock, and none of the locks is held
/// across a system call.
package final class SharedServices: Sendable {
    package var workerCount: Int { mailboxes.count }
    /// What exchanges and connections to servers share.
    package let engine: SharedEnvironment
    /// Sends reports of pin failures, or `nil` if there are none.
    let pinReporter: PinReporter?
    /// Remembers the keys of servers; `nil` in tests.
    let pinObserver: PinObserver?
    package let accessLog: AccessLog?
    /// Holds the latest exchanges.
    let flows: FlowRing
    /// What is recorded of exchanges.
    let recordings: Recordings
    /// Sends spans to a collector; `nil` if there never is one.
    let spans: SpanExporter?
    /// Handles requests to the administrative listener.
    package let administration: @Sendable (AdminRequest) -> AdminAnswer
    /// On how many workers each listener accepts connections.
    let accepting = AcceptingListeners()
    /// The number of client connections of all workers, for the limit.
    let clientConnections = Atomic<Int>(0)
    /// What each client has open, for the limits per client.
    let clients = ClientAccounts()
    /// Each worker's mailbox, for requests between workers.
    let mailboxes: [Mailbox<WorkerMessage>]
    /// Notifies the worker that runs the activity indicator's timer.
    let notifyActivity: @Sendable () -> Void
    /// The number of workers with nothing in progress, while the process is shutting down.
    let drainedWorkers = Atomic<Int>(0)
    /// The number of accepted connections that are on their way to the worker that serves them.
    let handedOver = Atomic<Int>(0)
    /// Whether the process is shutting down.
    let isDraining = Atomic<Bool>(false)
    /// Whose turn it is to serve a connection from a socket that all workers accept from.
    private let turnToServe = Atomic<Int>(0)
    /// Which workers' loops turn.
    let turns: LoopTurns
    /// How busy each worker's loop is.
    let turnTimes: [TurnTimes]
    private let generations: Locked<Generations>

    private struct Generations {
        /// The number of the configuration that each worker uses.
        var used: [UInt64]
        /// What is called when all of them use at least the one of this number.
        var waiting: [(generation: UInt64, body: @Sendable () -> Void)] = []

        var inForce: UInt64 { used.min() ?? 1 }

        /// What is to be called now.
        mutating func due() -> [@Sendable () -> Void] {
            let inForce = inForce
            let due = waiting.filter { $0.generation <= inForce }.map(\.body)
            if !due.isEmpty { waiting.removeAll { $0.generation <= inForce } }
            return due
        }
    }

    package init(
        mailboxes: [Mailbox<WorkerMessage>], engine: SharedEnvironment,
        pinReporter: PinReporter?, accessLog: AccessLog?, flows: FlowRing = FlowRing(),
        recordings: Recordings? = nil, spans: SpanExporter? = nil,
        pinObserver: PinObserver? = nil,
        notifyActivity: @escaping @Sendable () -> Void,
        administration: @escaping @Sendable (AdminRequest) -> AdminAnswer
    ) {
        self.mailboxes = mailboxes
        self.engine = engine
        self.pinReporter = pinReporter
        self.pinObserver = pinObserver
        self.accessLog = accessLog
        self.flows = flows
        self.recordings = recordings ?? Recordings(labels: engine.labels)
        self.spans = spans
        self.notifyActivity = notifyActivity
        self.administration = administration
        turns = LoopTurns(workers: mailboxes.count)
        turnTimes = mailboxes.map { _ in TurnTimes() }
        generations = Locked(Generations(used: Array(repeating: 1, count: mailboxes.count)))
    }

    /// The number of the latest configuration that all workers use.
    var generationInForce: UInt64 { generations.withLock { $0.inForce } }

    /// Calls something as soon as all workers use a configuration, on the thread of the last one.
    func whenInForce(_ generation: UInt64, _ body: @escaping @Sendable () -> Void) {
        let due = generations.withLock { state in
            state.waiting.append((generation, body))
            return state.due()
        }
        for body in due { body() }
    }

    /// Whether nothing is in progress, while the process is shutting down. A worker that has
    /// drained may get another connection that was on its way; before that is no longer counted
    /// as such, the worker has not drained any more.
    var haveAllDrained: Bool {
        drainedWorkers.load(ordering: .acquiring) >= workerCount
            && handedOver.load(ordering: .acquiring) == 0
            && drainedWorkers.load(ordering: .acquiring) >= workerCount
    }

    /// The worker that serves the next connection from a socket that all workers accept from. The
    /// kernel would give nearly all to one, as long as that keeps up.
    func nextToServe() -> Int {
        let (turn, _) = turnToServe.wrappingAdd(1, ordering: .relaxed)
        return Int(UInt(bitPattern: turn) % UInt(workerCount))
    }

    /// Called when a worker uses another configuration.
    func workerFollows(_ index: Int, generation: UInt64) {
        let due = generations.withLock { state in
            state.used[index] = generation
            return state.due()
        }
        for body in due { body() }
    }
}

extension SharedServices {
    package var resolver: Resolver { engine.resolver }
    package var store: CacheStore? { engine.store }
    package var logger: Logger { engine.logger }
    package var labels: RouteLabels { engine.labels }
    package var activity: ActivityMonitor { engine.activity }
}
