import CLinux
import HTTPCore

/// The connection plan of RFC 8305 ("Happy Eyeballs 2"), without sockets or a clock: events go in
/// with the time, and actions come out for the caller to perform in order.
///
///                     answers (some)                    connected
///     ┌─────────┐  ──────────────────►  ┌────────┐  ──────────────►  ┌───────────┐
///     │ waiting │                       │ racing │                   │ connected │
///     └─────────┘  ◄──────────────────  └────────┘                   └───────────┘
///          │        all tried failed,      │  │
///          │        answers still to come  │  │ all tried failed, no answers to come
///          │ last answer, nothing to try   │  ▼
///          │                               │  ┌────────┐
///          └───────────────────────────────┼─►│ failed │
///                                          │  └────────┘
///               cancelled (from both)      ▼
///                                      ┌───────────┐
///                                      │ cancelled │
///                                      └───────────┘
///
/// Addresses are used as they arrive (§4): in the server's order within a family, IPv6 first for
/// `firstFamilyCount` attempts, then alternating between the families. RFC 6724's sorting by source
/// address needs the routing table and is left out: an address without a route fails at once, and
/// the next is tried without delay. Earlier winners are not remembered, so a plan depends only on
/// its answers.
package struct HappyEyeballs: Sendable {
    /// The plan's constants.
    package struct Options: Sendable, Hashable {
        /// How long an attempt runs before the next one is started in parallel (§5).
        package var attemptDelayMilliseconds: Int64 = 250
        /// The family tried first.
        package var firstFamily = IPAddress.Family.v6
        /// How many of its addresses are tried before one of the other family (§4).
        package var firstFamilyCount = 1
        /// The maximum number of addresses tried.
        package var maximumAttempts = 16

        /// RFC 8305's recommended values.
        package init() {}
    }

    /// What happened.
    package enum Event: Sendable, Hashable {
        /// Addresses that may be connected to (forbidden ones already removed). Ones seen before
        /// are ignored, so a complete answer may follow a partial one. `isComplete` means that no
        /// more will arrive; a failed lookup is an empty complete answer.
        case answersArrived([IPAddress], isComplete: Bool, nowMilliseconds: Int64)
        /// The attempt of this index failed with this errno.
        case attemptFailed(Int, errno: Int32, nowMilliseconds: Int64)
        /// The attempt of this index is connected.
        case attemptConnected(Int)
        /// The most recent timer has fired (an early or stale one does no harm).
        case timerFired(nowMilliseconds: Int64)
        /// The connection is no longer wanted.
        case cancelled
    }

    /// What to do.
    package enum Action: Sendable, Hashable {
        /// Start an attempt and report its outcome under this index.
        case connect(Endpoint, index: Int)
        /// Set the single timer, replacing any earlier setting.
        case setTimer(milliseconds: Int64)
        /// This attempt has won: use it.
        case use(index: Int)
        /// Close all attempts except the winner, and the timer.
        case cancelOthers(winner: Int)
        /// Close all attempts and the timer.
        case cancelAll
        /// Close this attempt, which connected after another had won.
        case discard(index: Int)
        /// Nothing is left to try; see ``ConnectionError``. No attempt is open; the timer may be.
        case fail(ConnectionError)
    }

    /// Why no connection was established.
    package enum ConnectionError: Error, Sendable, Hashable {
        /// There was no address to try.
        case noAddress
        /// Every attempt failed: the last one whose error was caused by the peer, otherwise the
        /// last.
        case attempt(index: Int, endpoint: Endpoint, errno: Int32)
    }

    private enum State: Hashable {
        /// No attempt is running, and none can be started until more answers arrive.
        case waiting
        /// This many attempts are running.
        case racing(running: Int)
        case connected(winner: Int)
        case failed
        case cancelled
    }

    private let port: UInt16
    private let options: Options
    private var state = State.waiting
    private var answersComplete = false
    private var lastStartMilliseconds: Int64 = 0
    private var lastError: ConnectionError?
    private var queues = Queues()

    /// The endpoints of all attempts so far; an attempt's index is its index here.
    package private(set) var attempts: [Endpoint] = []

    /// A plan for one connection to this port, at addresses that are still to arrive.
    package init(port: UInt16, options: Options = Options()) {
        self.port = port
        self.options = options
    }

    /// Processes one event and returns what to do, in order. Every (state, event) pair is defined;
    /// those that no longer matter return nothing.
    package mutating func handle(_ event: Event) -> [Action] {
        switch (state, event) {
        case (.waiting, .answersArrived(let addresses, let isComplete, let now)):
            add(addresses, isComplete: isComplete)
            return startNext(running: 0, now: now)
        case (.racing(let running), .answersArrived(let addresses, let isComplete, let now)):
            let hadCandidates = !queues.isEmpty
            add(addresses, isComplete: isComplete)
            // With candidates left the timer is already running.
            guard !hadCandidates, !queues.isEmpty else { return [] }
            return startDue(running: running, now: now)

        case (.racing(let running), .timerFired(let now)):
            guard !queues.isEmpty else { return [] }
            return startDue(running: running, now: now)

        case (.racing(let running), .attemptFailed(let index, let errno, let now)):
            guard attempts.indices.contains(index) else { return [] }
            remember(index: index, errno: errno)
            // §5: the next one is started at once, and has its own delay.
            return startNext(running: running - 1, now: now)

        case (.racing, .attemptConnected(let index)):
            state = .connected(winner: index)
            return [.use(index: index), .cancelOthers(winner: index)]

        case (.waiting, .cancelled), (.racing, .cancelled):
            state = .cancelled
            return [.cancelAll]

        case (.connected(let winner), .attemptConnected(let index)):
            return index == winner ? [] : [.discard(index: index)]
        case (.cancelled, .attemptConnected(let index)), (.failed, .attemptConnected(let index)):
            return [.discard(index: index)]

        case (.waiting, .timerFired), (.waiting, .attemptFailed), (.waiting, .attemptConnected),
            (.connected, .answersArrived), (.connected, .timerFired),
            (.connected, .attemptFailed), (.connected, .cancelled),
            (.failed, .answersArrived), (.failed, .timerFired), (.failed, .attemptFailed),
            (.failed, .cancelled),
            (.cancelled, .answersArrived), (.cancelled, .timerFired),
            (.cancelled, .attemptFailed), (.cancelled, .cancelled):
            return []
        }
    }

    private mutating func add(_ addresses: [IPAddress], isComplete: Bool) {
        answersComplete = answersComplete || isComplete
        for address in addresses {
            guard attempts.count + queues.count < options.maximumAttempts else { return }
            guard !queues.contains(address),
                !attempts.contains(where: { $0.address == address })
            else { continue }
            queues.append(address)
        }
    }

    /// Starts the next attempt if the last one's delay is over, otherwise sets the timer for the
    /// rest.
    private mutating func startDue(running: Int, now: Int64) -> [Action] {
        let due = lastStartMilliseconds + options.attemptDelayMilliseconds
        guard now >= due else { return [.setTimer(milliseconds: due - now)] }
        return startNext(running: running, now: now)
    }

    /// Starts the next attempt; if there is none, returns the resulting state's actions.
    private mutating func startNext(running: Int, now: Int64) -> [Action] {
        guard let address = queues.next(after: attempts, options: options) else {
            if running > 0 {
                state = .racing(running: running)
                return []
            }
            guard answersComplete else {
                state = .waiting
                return []
            }
            state = .failed
            return [.fail(lastError ?? .noAddress)]
        }
        let endpoint = Endpoint(address: address, port: port)
        attempts.append(endpoint)
        lastStartMilliseconds = now
        state = .racing(running: running + 1)
        let connect = Action.connect(endpoint, index: attempts.count - 1)
        guard !queues.isEmpty else { return [connect] }
        return [connect, .setTimer(milliseconds: options.attemptDelayMilliseconds)]
    }

    private mutating func remember(index: Int, errno: Int32) {
        // "No route" from one family must not hide the response of a peer of the other.
        let isLocal = errno == ENETUNREACH || errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT
        guard lastError == nil || !isLocal else { return }
        lastError = .attempt(index: index, endpoint: attempts[index], errno: errno)
    }

    /// The untried addresses, by family.
    private struct Queues {
        private var v6: [IPAddress] = []
        private var v4: [IPAddress] = []

        var count: Int { v6.count + v4.count }
        var isEmpty: Bool { v6.isEmpty && v4.isEmpty }

        func contains(_ address: IPAddress) -> Bool {
            switch address.family {
            case .v6: v6.contains(address)
            case .v4: v4.contains(address)
            }
        }

        mutating func append(_ address: IPAddress) {
            switch address.family {
            case .v6: v6.append(address)
            case .v4: v4.append(address)
            }
        }

        /// The first address of the family whose turn it is, or of the other if that has none.
        mutating func next(after attempts: [Endpoint], options: Options) -> IPAddress? {
            let turn: IPAddress.Family
            if attempts.count < options.firstFamilyCount {
                turn = options.firstFamily
            } else if let last = attempts.last {
                turn = last.address.family == .v6 ? .v4 : .v6
            } else {
                turn = options.firstFamily
            }
            switch turn {
            case .v6: return v6.popFirst() ?? v4.popFirst()
            case .v4: return v4.popFirst() ?? v6.popFirst()
            }
        }
    }
}

extension [IPAddress] {
    fileprivate mutating func popFirst() -> IPAddress? {
        isEmpty ? nil : removeFirst()
    }
}
