import CacheStore
import Clocks
import EventLoop
import HTTPCore
import Locking
import PinfoldEngine
import Threads

/// Purges stored responses, one order after the other, on a thread of its own: a purge waits for a
/// file to be written. An order has been carried out when the store has recorded it and every
/// worker has been told.
package final class PurgeService: CachePurging {
    /// The most orders that wait; each client network may have a quarter of them once half of the
    /// places are taken.
    static let maximumWaiting = 256

    private struct Order {
        /// What is to be purged, which may take a while to find out.
        var make: @Sendable () -> Result<PurgeOrder, PurgeCommand.PurgeCommandError>
        var client: IPNetwork?
        var completion: @Sendable (PurgeOrder?, PurgeOutcome) -> Void
    }

    private struct State {
        var waiting = FIFO<Order>()
        var places = PermitShares<IPNetwork>(permits: PurgeService.maximumWaiting)
        var isClosed = false
        var counts = PurgeOrderCounts()
    }

    private let state = Monitor(State())
    private let thread = Locked<Thread?>(nil)
    private let store: CacheStore
    private let mailboxes: [Mailbox<EngineMessage>]

    /// Starts the thread.
    /// - Parameter mailboxes: those of all workers.
    package init(
        store: CacheStore, mailboxes: [Mailbox<EngineMessage>]
    ) throws(Thread.StartError) {
        self.store = store
        self.mailboxes = mailboxes
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
        while let waiting = next() {
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
                    waiting.completion(order, outcome)
                }
            }
        }
    }

    private func next() -> Order? {
        state.wait { state in
            if let order = state.waiting.popFirst() { return .done(order) }
            return state.isClosed ? .done(nil) : .signal
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
