import CachePolicy
import CacheStore
import Clocks
import EventLoop
import Locking
import SharedCache
import Synchronization
import Threads

/// The level of the cache that the gateways of a fleet share: an engine that speaks the protocol of
/// Redis. It has no index; it answers later; and it may be slow, full or away.
///
/// One thread with one loop and one connection carries out what all workers ask of it, in the order
/// in which that was queued under the locks of the keys: what is queued by then is one write. To a
/// cluster it has a connection to each master, and that order holds for each key.
/// Lookups are made by the workers themselves where nothing has to be in order (``LookupLink``).
/// No caller waits for it. What is queued is bounded; lookups end at their deadline.
///
/// **What is stored.** A key is a hash with a field for each variant: a record with its HMAC
/// (``SharedValueDraft``), and the body after it, or in chunks with names of their own. A response
/// names the instance under which it was stored, which is made of two numbers: that of the
/// generation of everything (``Engine/generation``), which begins with the streams; and that of the
/// key, a field of the hash, which a removal draws anew. What names another one is not found,
/// whoever stored it and whenever that arrived.
///
/// **What is purged** is written to a stream, which all gateways read several times a second
/// (`LevelLoop+Fleet`). A response says up to which entry it is known not to be purged; whoever
/// reads it compares it with those after that (``PurgeTable``).
///
/// **What could not be removed**, because the engine was away, is remembered (``LostChanges``) and
/// removed when it is back, before anything is read. The name of the generation has the engine's
/// `run_id` in it: one that was started again, and may have gone back to an older state, has none,
/// and so nothing of what it has kept is found. Its record has the name of the history of the
/// engine's data: one that was another's replica meanwhile goes on with another history.
package final class SharedLevel: CacheLevel {
    struct State {
        var level = LevelState.opening
        var commands: [SharedCommand] = []
        /// Bytes of bodies among them, and those of commands that the thread has not carried out.
        var bytes = 0
        /// Commands that the thread has not carried out.
        var waiting = 0
        /// Whether the thread has been told that there are commands.
        var isWoken = false
        /// Whether more changes came than may wait: the connection is given up.
        var isOverloaded = false
        var isClosing = false
        /// Lookups under way; a change of their key voids them.
        var loads = StoreFlights()
        var bodies = KnownBodies()
        var lost: LostChanges
        /// Changes of keys, and which of them the engine has carried out.
        var changes = PendingChanges()
        /// What those know who ask the engine themselves; `nil` while nobody may.
        var view: EngineView?
        /// How many of these there were.
        var views: UInt64 = 0
        /// Up to which purge the gateway has carried everything out; `nil` while it does not know
        /// that it has.
        var born: PurgePosition?
        /// How often what this gateway purged was queued.
        var announcements: UInt64 = 0
        /// How many numbers of keys were learned that other gateways have drawn.
        var learned: UInt64 = 0
        var statistics = SharedLevelStatistics()

        init(_ options: SharedLevelOptions) {
            lost = LostChanges(
                LostChanges.Limits(replaced: options.lostKeys, invalid: options.lostRemovals))
        }

        mutating func announce(_ purges: [FleetPurge]) {
            announcements += 1
            // Nobody overtakes it.
            view = nil
            add(.announce(purges, number: announcements))
        }

        mutating func add(_ command: SharedCommand) {
            bytes += command.bytes
            waiting += 1
            commands.append(command)
        }
    }

    package let options: SharedLevelOptions
    let shared: Locked<State>
    let mailbox: Mailbox<LevelMessage>
    let onEvent: @Sendable (SharedLevelEvent) -> Void
    /// What the next process has to know; `nil` if there is nowhere to keep it.
    let record: FleetRecordWriter?
    /// What the gateway does for the fleet; `nil` before it has begun.
    let duties = Locked<FleetDuties?>(nil)
    /// What it stores is obtained under, besides what its fingerprint says.
    let systemTrust = SystemTrustInForce()
    /// The connections of workers, to be told when it closes; `nil` from then on.
    let links = Locked<[ObjectIdentifier: Mailbox<LevelMessage>]?>([:])
    /// Open when the gateway has caught up with what others had purged, or will not.
    let caughtUp = Latch()
    /// Whether it can be used: what `State.level` says, without its lock.
    private let isReady = Atomic<Bool>(false)
    private let thread = Locked<Thread?>(nil)

    /// Why it could not be begun.
    package enum StartError: Error, Equatable, Sendable {
        case system(Errno)
        case thread(Thread.StartError)
    }

    /// Begins to connect. It is off until it has a connection. Whoever has it must close it; a
    /// store does so with its levels.
    package init(
        _ options: SharedLevelOptions,
        onEvent: @escaping @Sendable (SharedLevelEvent) -> Void = { _ in }
    ) throws(StartError) {
        self.options = options
        self.onEvent = onEvent
        shared = Locked(State(options))
        record = options.positionFile.map { FleetRecordWriter(path: $0) }
        do throws(Errno) { mailbox = try Mailbox() } catch { throw .system(error) }
        do throws(Thread.StartError) {
            let started = try Thread(name: "shared-cache") { [self] in
                LevelLoop.run(self)
            }
            thread.withLock { $0 = started }
        } catch {
            throw .thread(error)
        }
    }

    // MARK: The thread

    /// Without any lock of a key: sees to it that what was queued is carried out.
    func proceed() {
        let mustWake = shared.withLock { state in
            guard !state.isWoken, !state.commands.isEmpty || state.isOverloaded else {
                return false
            }
            state.isWoken = true
            return true
        }
        if mustWake { mailbox.post(.work) }
        if record != nil, !canBeUsed { keepLost() }
    }

    /// Sees to it that the next process knows if others have yet to be told of something. What was
    /// only replaced is not worth that: they need not know.
    func keepLost() {
        guard let record, shared.withLock({ $0.lost.concernsOthers }), !record.record.hasLost else {
            return
        }
        record.change { $0.hasLost = true }
    }

    /// The engine has been told of what it did not know.
    func toldLost() {
        guard let record, !shared.withLock({ $0.lost.concernsOthers }) else { return }
        record.change { $0.hasLost = false }
    }

    /// Says whether it can be used. Under the state's lock.
    func set(_ level: LevelState, _ state: inout State) {
        state.level = level
        if level != .ready { state.view = nil }
        state.statistics.isReady = level == .ready
        isReady.store(level == .ready, ordering: .releasing)
    }

    var now: Int64 { Clock.monotonicMilliseconds() }

    private var canBeUsed: Bool { isReady.load(ordering: .acquiring) }

    // MARK: How it is doing

    package var state: LevelState {
        canBeUsed ? .ready : shared.withLock { $0.level }
    }

    package var largestBody: UInt64 { options.maximumObject }

    package var isShared: Bool { true }

    package func statistics() -> LevelStatistics {
        shared.withLock { state in
            var statistics = LevelStatistics(name: "shared", state: state.level)
            statistics.hits = state.statistics.hits
            statistics.misses = state.statistics.misses
            statistics.stores = state.statistics.stores
            statistics.skipped = state.statistics.skipped
            return statistics
        }
    }

    /// All counts.
    package func figures() -> SharedLevelStatistics {
        shared.withLock { state in
            var figures = state.statistics
            figures.queueBytes = state.bytes
            figures.queueCommands = state.waiting
            figures.lostKeys = state.lost.keys.count
            return figures
        }
    }

    // MARK: Looking

    package func varyNames(_ key: CacheKeyView) -> [[UInt8]?] {
        canBeUsed && !key.bytes.isOfPart ? [nil] : []
    }

    package func mayHold(_ key: CacheKeyView, _ variants: [VaryKey]) -> Bool {
        canBeUsed && !key.bytes.isOfPart
    }

    package func load(_ load: LevelLoad, wakes: Bool) -> Bool {
        guard canBeUsed else { return false }
        if load.look == nil, load.stale == nil, let link, link.load(load) { return true }
        let now = now
        let isAccepted = shared.withLock {
            ask(load, &$0, began: now, until: now + options.timeoutMilliseconds)
        }
        if isAccepted, wakes { proceed() }
        return isAccepted
    }

    package func wakeReaders() { if canBeUsed { proceed() } }

    package func readChunk(
        _ body: LevelBody, _ index: Int, completion: @escaping @Sendable (ChunkResult) -> Void
    ) -> Bool {
        let isAccepted: Bool? = shared.withLock { state in
            guard state.level == .ready, let (place, chunks) = state.bodies.place(body.id),
                let number = UInt32(exactly: index), number < chunks.chunkCount
            else { return nil }
            guard state.waiting < options.queueCommands else { return false }
            state.add(.readChunk(id: body.id, place, chunks, number: number, completion))
            return true
        }
        guard let isAccepted else {
            // Whoever reads it does not wait until the engine is back.
            completion(.gone)
            return true
        }
        if isAccepted { proceed() }
        return isAccepted
    }

    package func release(body id: Int64) {
        shared.withLock { state in
            guard let dropped = state.bodies.release(id), state.level == .ready else { return }
            state.add(dropped)
        }
        proceed()
    }

    // MARK: As a whole

    package func purge() {
        shared.withLock { state in
            state.loads.voidAll()
            let dropped = state.bodies.voidAll()
            let everything = FleetPurge.everything(isSoft: false, at: Clock.wallSeconds())
            guard state.level == .ready else { return state.lost.note([everything]) }
            state.announce([everything])
            for command in dropped { state.add(command) }
        }
        proceed()
    }

    package func purge(_ purges: [Purge], _ now: Int64) {
        let announced = FleetPurge.all(of: purges, at: now)
        guard !announced.isEmpty else { return }
        shared.withLock { state in
            // What they have found may be what is purged.
            state.loads.voidAll()
            state.bodies.forgetEntries()
            guard state.level == .ready else { return state.lost.note(announced) }
            state.announce(announced)
        }
        proceed()
    }

    package func addTagFields(_ names: [[UInt8]]) { mailbox.post(.tagFields(names)) }

    /// The system's roots are these from now on. Before it has begun, and when they have changed.
    package func trust(_ trust: SystemTrust) { systemTrust.set(trust) }

    package func flush(_ completion: @escaping @Sendable () -> Void) {
        let isAccepted = shared.withLock { state in
            guard state.level == .ready else { return false }
            state.add(.barrier(completion))
            return true
        }
        if isAccepted { proceed() } else { completion() }
    }

    package func close() {
        shared.withLock { state in
            state.isClosing = true
            set(.off, &state)
        }
        mailbox.post(.close)
        let links = links.withLock { $0.take() } ?? [:]
        for link in links.values { link.post(.close) }
        guard let thread = thread.withLock({ $0 }) else { return }
        // In a completion: it cannot wait for itself.
        if !thread.isCurrent { thread.join() }
        record?.close()
    }
}

/// What the thread is told.
enum LevelMessage: Sendable {
    /// There are commands.
    case work
    /// The engine's name was looked up.
    case resolved(ServerAddresses, attempt: UInt64)
    /// It is known what the gateway does for the fleet.
    case begin
    /// The gateway has purged what it was given.
    /// - Parameter isDurable: whether that holds after a restart as well.
    case carriedOut(isDurable: Bool)
    case tagFields([[UInt8]])
    /// A lookup on a worker's connection had no reply in time.
    /// - Parameter after: replies that were in time before it.
    case lookupWasLate(after: Int)
    case close
}
