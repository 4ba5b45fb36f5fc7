import Clocks
import Locking

/// The writer's operations, in the order of the requests.
enum DiskOperation: Sendable {
    /// Write a complete response's rows and remove those it replaces. `reserved` bytes of the
    /// queue's budget are returned afterwards.
    case row(CachedResponse, superseded: [Removal], reserved: Int)
    /// A body is about to arrive in chunks.
    case beginBody(Int64)
    case chunk(body: Int64, index: Int, ChunkBytes, reserved: Int)
    /// Remove a body's chunks: it was given up, or its last reader has finished.
    case dropBody(Int64)
    case remove([Removal])
    /// Remove every row; none is queued before it that has a larger id than this.
    case purge(through: Int64)
    /// Write down what the fingerprint of a policy means.
    case trust(UInt64, String)
    /// Call this when everything before it is committed.
    case barrier(@Sendable () -> Void)
    /// A reader found the database unusable.
    case fault(DatabaseError)

    /// The bytes it keeps in memory, for batching.
    var bytes: Int {
        switch self {
        case .row(_, _, let reserved), .chunk(_, _, _, let reserved): reserved
        default: 64
        }
    }
}

/// What the writer is asked to do with the database as a whole. Each is completed once.
enum HandoverRequest: Sendable {
    /// - Parameter keepsLock: whether the lock stays with this process and whom it gives it to.
    case handOver(keepsLock: Bool, @Sendable (DiskHandover) -> Void)
    case takeBack(@Sendable (Bool) -> Void)

    /// Completes it without having done anything.
    func giveUp() {
        switch self {
        case .handOver(_, let completion): completion(.nothing)
        case .takeBack(let completion): completion(false)
        }
    }
}

/// The writer's queue. Callers never wait in it: they append and continue.
final class DiskQueue: Sendable {
    private struct State {
        var operations: [DiskOperation] = []
        var bytes = 0
        /// When the first of `operations` was added (monotonic nanoseconds).
        var since: Int64 = 0
        /// Changes whenever the database is closed: whatever was begun in an older epoch is void.
        var epoch = 0
        var isAccepting = false
        var isClosing = false
        var requests: [HandoverRequest] = []

        mutating func takeAll() -> [DiskOperation] {
            let taken = operations
            operations = []
            bytes = 0
            return taken
        }
    }

    /// The reason why the writer wakes up.
    enum Work {
        case operations([DiskOperation])
        /// Everything queued before it has been carried out.
        case request(HandoverRequest)
        /// The deadline passed.
        case idle
        /// Nothing is left and nothing more will arrive.
        case closing
    }

    private let monitor = Monitor(State())
    private let options: CacheStoreOptions

    init(options: CacheStoreOptions) { self.options = options }

    /// The current epoch; `nil` while no operations are accepted.
    var epoch: Int? { monitor.withLock { $0.isAccepting ? $0.epoch : nil } }

    /// How often what was begun has become void: the database was closed, or passes on.
    var closings: Int { monitor.withLock { $0.epoch } }

    var depth: Int { monitor.withLock { $0.operations.count } }

    /// Appends an operation. Returns `false` if the database is not open, or is no longer that of
    /// `epoch`.
    /// - Parameter wakes: `false` if the caller will soon call `wakeWriter`.
    func append(_ operation: DiskOperation, epoch: Int? = nil, wakes: Bool = true) -> Bool {
        let (taken, isDue) = monitor.withLock { state -> (Bool, Bool) in
            guard state.isAccepting, epoch == nil || epoch == state.epoch else {
                return (false, false)
            }
            let wasEmpty = state.operations.isEmpty
            if wasEmpty { state.since = Clock.monotonicNanoseconds() }
            let wasFull = isFull(state)
            state.operations.append(operation)
            state.bytes += operation.bytes
            if case .barrier = operation { state.since = 0 }
            return (true, wasEmpty || state.since == 0 || (!wasFull && isFull(state)))
        }
        if isDue, wakes { monitor.signal() }
        return taken
    }

    func wakeWriter() { monitor.signal() }

    private func isFull(_ state: State) -> Bool {
        state.bytes >= options.batchBytes || state.operations.count >= options.batchOperations
    }

    /// Starts accepting operations.
    func open() {
        monitor.withLock { $0.isAccepting = true }
    }

    /// Hands a request to the writer, and voids what was begun before it. Returns `false` if the
    /// writer ends.
    func request(_ request: HandoverRequest) -> Bool {
        let isTaken = monitor.withLock { state in
            guard !state.isClosing else { return false }
            state.epoch += 1
            state.requests.append(request)
            return true
        }
        monitor.broadcast()
        return isTaken
    }

    /// What is queued, before it is due.
    func takeAll() -> [DiskOperation] { monitor.withLock { $0.takeAll() } }

    /// Stops accepting operations; returns what is still queued.
    func handOver() -> [DiskOperation] {
        monitor.withLock { state in
            state.isAccepting = false
            return state.takeAll()
        }
    }

    /// The requests that will not be carried out.
    func takeRequests() -> [HandoverRequest] {
        monitor.withLock { state in
            defer { state.requests = [] }
            return state.requests
        }
    }

    /// Stops accepting operations and returns what was queued.
    func reset() -> [DiskOperation] {
        monitor.withLock { state in
            state.isAccepting = false
            state.epoch += 1
            return state.takeAll()
        }
    }

    /// Stops accepting operations; the writer ends when it has done what is queued.
    func close() {
        monitor.withLock { state in
            state.isClosing = true
            state.isAccepting = false
        }
        monitor.broadcast()
    }

    var isClosing: Bool { monitor.withLock { $0.isClosing } }

    /// Waits for operations (gathering them for a batch), or until `deadline` (without limit if
    /// `nil`).
    func take(until deadline: Int64?) -> Work {
        let window = Int64(options.batchMilliseconds) * 1_000_000
        return monitor.wait { state in
            if state.operations.isEmpty {
                if state.isClosing { return .done(.closing) }
                if !state.requests.isEmpty {
                    return .done(.request(state.requests.removeFirst()))
                }
                guard let deadline else { return .signal }
                return Clock.monotonicNanoseconds() >= deadline ? .done(.idle) : .until(deadline)
            }
            let ready = state.since + window
            let isUrgent = state.isClosing || !state.requests.isEmpty
            if isUrgent || isFull(state) || Clock.monotonicNanoseconds() >= ready {
                let taken = state.takeAll()
                state.operations.reserveCapacity(taken.count)
                return .done(.operations(taken))
            }
            return .until(ready)
        }
    }
}
