import CacheStore
import Clocks
import EventLoop
import HTTPCore
import Locking
import Logging
import PinfoldEngine
import Threads

/// Purges stored responses, one order after the other, on a thread of its own: a purge waits for a
/// file to be written. An order has been carried out when the store has recorded it and every
/// worker has been told, and, in a fleet, its other gateways have done so, too, or have had a
/// second for it: the orders that follow do not wait for that.
package final class PurgeService: CachePurging {
    /// The most orders that wait; each client network may have a quarter of them once half of the
    /// places are taken.
    static let maximumWaiting = 256
    /// How soon what other gateways have purged is tried again if it failed.
    static let retryMilliseconds: Int64 = 1000

    /// Waits until the other gateways of a fleet have carried out what was purged until now, or
    /// have had their time.
    package typealias Confirm =
        @Sendable (_ completion: @escaping @Sendable (PurgeResult.Fleet) -> Void) -> Void

    private struct Order {
        /// What is to be purged, which may take a while to find out.
        var make: @Sendable () -> Result<PurgeOrder, PurgeCommand.PurgeCommandError>
        var client: IPNetwork?
        var completion: @Sendable (PurgeOrder?, PurgeOutcome) -> Void
    }

    /// What another gateway has purged.
    private struct FleetOrder {
        var purges: [Purge]
        var completion: @Sendable (_ isDurable: Bool) -> Void
        /// Whether it has failed, which was logged.
        var hasFailed = false
        /// Whether it is in force but for the disk, which is not open yet.
        var waitsForDisk = false
    }

    private enum Work {
        case order(Order)
        case ofFleet(FleetOrder)
    }

    private struct State {
        var ofFleet: [FleetOrder] = []
        /// When the first of them may be tried again.
        var fleetRetry: Int64 = 0
        var waiting = FIFO<Order>()
        var places = PermitShares<IPNetwork>(permits: PurgeService.maximumWaiting)
        var isClosed = false
        var counts = PurgeOrderCounts()
    }

    private let state = Monitor(State())
    private let thread = Locked<Thread?>(nil)
    private let store: CacheStore
    private let mailboxes: [Mailbox<EngineMessage>]
    private let confirm: Confirm?
    private let logger: Logger

    /// Starts the thread.
    /// - Parameters:
    ///   - mailboxes: those of all workers.
    ///   - confirm: `nil` if the gateway shares its cache with no others.
    package init(
        store: CacheStore, mailboxes: [Mailbox<EngineMessage>], confirm: Confirm? = nil,
        logger: Logger
    ) throws(Thread.StartError) {
        self.store = store
        self.mailboxes = mailboxes
        self.confirm = confirm
        self.logger = logger
        let started = try Thread(name: "purges") { [self] in work() }
        thread.withLock { $0 = started }
    }

    package func submit(
        _ order: PurgeOrder, for client: IPNetwork?,
        completion: @escaping @Sendable (PurgeOutcome) -> Void
    ) -> Bool {
        submit(for: client, { .success(order) }, { _, outcome in completion(outcome) })
    }

    /// Has purged what an operator wants.
    /// - Parameter completion: gets what the store was asked for; `nil` if that was nothing.
    func submit(
        _ command: PurgeCommand, under policy: PolicySnapshot,
        completion: @escaping @Sendable (PurgeOrder?, PurgeOutcome) -> Void
    ) -> Bool {
        let make = { @Sendable () -> Result<PurgeOrder, PurgeCommand.PurgeCommandError> in
            do throws(PurgeCommand.PurgeCommandError) {
                return .success(try command.order(under: policy))
            } catch {
                return .failure(error)
            }
        }
        return submit(for: nil, make, completion)
    }

    private func submit(
        for client: IPNetwork?,
        _ make: @escaping @Sendable () -> Result<PurgeOrder, PurgeCommand.PurgeCommandError>,
        _ completion: @escaping @Sendable (PurgeOrder?, PurgeOutcome) -> Void
    ) -> Bool {
        let isAccepted = state.withLock { state in
            guard !state.isClosed, state.places.take(for: client) else {
                state.counts.busy += 1
                return false
            }
            state.waiting.append(Order(make: make, client: client, completion: completion))
            return true
        }
        if isAccepted { state.signal() }
        return isAccepted
    }

    /// Purges what another gateway of the fleet has purged, which is told to no other. What fails
    /// is tried again until it has been carried out, before anything that another gateway purges
    /// later.
    /// - Parameter completion: called when no request that begins from then on is answered with any
    ///   of it, with whether that holds after a restart as well; never, if the gateway ends before
    ///   that.
    func carryOutOfFleet(
        _ purges: [Purge], completion: @escaping @Sendable (_ isDurable: Bool) -> Void
    ) {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.ofFleet.append(FleetOrder(purges: purges, completion: completion))
        }
        state.signal()
    }

    /// What has been done since the start.
    package var counts: PurgeOrderCounts { state.withLock { $0.counts } }

    /// Refuses new orders, carries out those that wait, and ends the thread.
    package func close() {
        state.withLock { $0.isClosed = true }
        state.broadcast()
        thread.withLock { $0.take() }?.join()
    }

    // MARK: The thread

    private func work() {
        while let work = next() {
            switch work {
            case .order(let order): carryOut(order)
            case .ofFleet(let order): carryOut(order)
            }
        }
    }

    private func carryOut(_ waiting: Order) {
        let client = waiting.client
        switch waiting.make() {
        case .failure(let error):
            state.withLock { $0.places.release(for: client) }
            waiting.completion(nil, .invalid(error.detail))
        case .success(let order):
            carryOut(order) { [self] outcome in
                state.withLock { state in
                    state.places.release(for: client)
                    state.counts.note(order, outcome)
                }
                guard case .purged(let result) = outcome, let confirm else {
                    return waiting.completion(order, outcome)
                }
                confirm {
                    var result = result
                    result.fleet = $0
                    waiting.completion(order, .purged(result))
                }
            }
        }
    }

    private func next() -> Work? {
        state.wait { state in
            let now = Clock.monotonicNanoseconds()
            if !state.isClosed, !state.ofFleet.isEmpty, state.fleetRetry <= now {
                return .done(.ofFleet(state.ofFleet.removeFirst()))
            }
            if let order = state.waiting.popFirst() { return .done(.order(order)) }
            if state.isClosed { return .done(nil) }
            return state.ofFleet.isEmpty ? .signal : .until(state.fleetRetry)
        }
    }

    private func carryOut(_ order: FleetOrder) {
        let scopes = order.purges.map(\.scope)
        let text = PurgeOrder(scopes: scopes).text
        // Not again before it can be of use: what was stored since would be purged as well.
        if order.waitsForDisk, isDiskOpening { return tryLater(order) }
        var isDurable = true
        do throws(PurgeError) {
            let now = Clock.wallMilliseconds() / 1000
            _ = try store.purge(order.purges, now: now, isOfFleet: true)
        } catch {
            var order = order
            order.waitsForDisk = error == .notReady && isDiskOpening
            let isLost: Bool =
                switch error {
                case .notReady: !order.waitsForDisk
                case .notDurable: true
                case .handedOver, .tooLarge, .closed: false
                }
            if !order.hasFailed {
                logger.warning(
                    isLost
                        ? "what another gateway has purged is not purged on disk"
                        : "what another gateway has purged cannot be purged yet; it is tried again",
                    metadata: ["what": "\(text)", "detail": "\(error.text)"])
            }
            order.hasFailed = true
            // With a disk that is off, it is in force for as long as this process is there.
            guard isLost else { return tryLater(order) }
            isDurable = false
        }
        let completion = order.completion
        let notice = PurgeNotice(scopes: scopes, environments: mailboxes.count) {
            [logger, isDurable] in
            logger.info("purged for the fleet", metadata: ["what": "\(text)"])
            completion(isDurable)
        }
        for mailbox in mailboxes { mailbox.post(.purged(notice)) }
    }

    private var isDiskOpening: Bool { store.waitUntilDiskSettled(milliseconds: 0) == .opening }

    private func tryLater(_ order: FleetOrder) {
        state.withLock { state in
            state.ofFleet.insert(order, at: 0)
            state.fleetRetry = Clock.monotonicNanoseconds() + Self.retryMilliseconds * 1_000_000
        }
    }

    private func carryOut(
        _ order: PurgeOrder, _ completion: @escaping @Sendable (PurgeOutcome) -> Void
    ) {
        let purges = order.scopes.map { Purge($0, isSoft: order.isSoft) }
        if order.isDryRun {
            return store.count(purges) { result in
                switch result {
                case .success(let count):
                    completion(.counted(memory: count.memoryEntries, disk: count.diskEntries))
                case .failure(let error): completion(.notCounted(error))
                }
            }
        }
        var result = PurgeResult(id: 0)
        do throws(PurgeError) {
            let receipt = try store.purge(purges, now: Clock.wallMilliseconds() / 1000)
            result.id = receipt.id
            result.memoryEntries = receipt.memoryEntries
            result.diskEntries = receipt.diskEntries
            result.isComplete = receipt.isComplete
        } catch {
            return completion(error == .handedOver ? .handedOver : .failed(error.text))
        }
        let notice = PurgeNotice(scopes: order.scopes, environments: mailboxes.count) {
            [result] in completion(.purged(result))
        }
        for mailbox in mailboxes { mailbox.post(.purged(notice)) }
    }
}

/// What purges have done since the start.
package struct PurgeOrderCounts: Sendable, Equatable {
    /// Purges in effect, by what they named.
    package var urls = 0
    package var prefixes = 0
    package var hosts = 0
    package var tags = 0
    package var everything = 0
    /// Of these, those that made stale and did not remove.
    package var soft = 0
    /// Those that were counted only.
    package var dryRuns = 0
    /// Those that could not be recorded, or counted.
    package var failed = 0
    /// Those that found too many waiting.
    package var busy = 0

    package init() {}

    fileprivate mutating func note(_ order: PurgeOrder, _ outcome: PurgeOutcome) {
        switch outcome {
        case .purged:
            for scope in order.scopes {
                switch scope {
                case .keys, .uri: urls += 1
                case .prefix: prefixes += 1
                case .host: hosts += 1
                case .tag: tags += 1
                case .everything: everything += 1
                }
                if order.isSoft { soft += 1 }
            }
        case .counted: dryRuns += 1
        case .notCounted(.busy): busy += 1
        case .handedOver, .notCounted, .failed, .invalid: failed += 1
        }
    }
}

extension PurgeError {
    /// What is wrong, in words.
    var text: String {
        switch self {
        case .notDurable(let detail):
            "it is in force until the gateway is restarted, but could not be recorded: \(detail)"
        case .notReady:
            "it is in force in memory, but the cache on disk is not open (yet): what is there was "
                + "not purged"
        case .handedOver: "another process has the cache on disk: ask that one"
        case .tooLarge:
            "a pattern has more than \(Purge.maximumPatternBytes) bytes, or there are more than "
                + "\(Purge.maximumKeys) URLs"
        case .closed: "the gateway is shutting down"
        }
    }
}
