import Authentication
import Clocks
import HTTPCore
import Locking
import Threads

/// Checks passwords on a few threads of its own, at most half of the processor's cores: in the
/// order of ``CheckQueue``, after the delays of ``FailureDelays``. No thread is started before
/// there is work.
package final class PasswordChecker: Sendable {
    /// Receives the result, on one of the threads, under no lock.
    package typealias Completion = @Sendable (CheckOutcome) -> Void
    package typealias Ticket = CheckQueue<Completion>.Ticket

    /// What becomes of a check.
    package enum Submission: Sendable {
        /// The result will come. `isDelayed`: later, because of failures before it.
        case accepted(Ticket, isDelayed: Bool)
        /// Too many wait, or the system provides no thread.
        case busy
        /// Failures before it: the next attempt for the user from this network begins after this
        /// many milliseconds.
        case refused(milliseconds: Int64)
    }

    private struct State {
        var queue = CheckQueue<Completion>()
        var delays = FailureDelays()
        var threads: [Thread] = []
        var isClosed = false
    }

    private let monitor = Monitor(State())
    private let maximumThreads: Int
    private let perform: @Sendable (PasswordCheck) -> CheckOutcome

    /// How far a check yields to the process's other threads.
    private static let niceness: Int32 = 5

    /// - Parameters:
    ///   - cores: the processor's cores that the process may use.
    ///   - perform: makes a check; by default with the system's libraries.
    package init(
        cores: Int,
        perform: @escaping @Sendable (PasswordCheck) -> CheckOutcome = {
            $0.hash.outcome(of: $0.password)
        }
    ) {
        maximumThreads = max(1, cores / 2)
        self.perform = perform
    }

    /// Has a password checked. A check that is under way for the same credentials is joined.
    package func check(
        _ check: PasswordCheck, completion: @escaping Completion
    ) -> Submission {
        let now = Clock.monotonicMilliseconds()
        let submission = monitor.withLock { state -> Submission in
            guard !state.isClosed else { return .busy }
            if case .joined(let ticket) = state.queue.join(check, completion) {
                return .accepted(ticket, isDelayed: false)
            }
            guard !state.queue.isFull(for: check.client), startThread(&state) else { return .busy }
            let start: Int64
            switch state.delays.begin(check.client, check.user, at: now) {
            case .at(let time): start = time
            case .refused(let until): return .refused(milliseconds: until - now)
            }
            switch state.queue.add(check, notBefore: start, completion) {
            case .added(let ticket), .joined(let ticket):
                return .accepted(ticket, isDelayed: start > now)
            case nil:
                state.delays.withdrawn(check.client, check.user)
                return .busy
            }
        }
        // One that sleeps until a delayed check must learn of an earlier one.
        monitor.broadcast()
        return submission
    }

    /// The result is no longer wanted. It may still be delivered.
    package func cancel(_ ticket: Ticket) {
        monitor.withLock { state in
            if let check = state.queue.cancel(ticket) {
                state.delays.withdrawn(check.client, check.user)
            }
        }
    }

    /// How many checks may wait or be made.
    package static var limit: Int { CheckQueue<Completion>.limit }

    /// Checks that wait or are being made.
    package var pending: Int { monitor.withLock { $0.queue.count } }

    /// Returns whether there is a thread for one more check.
    private func startThread(_ state: inout State) -> Bool {
        guard state.threads.count <= state.queue.count, state.threads.count < maximumThreads else {
            return true
        }
        let started = try? Thread(name: "passwords", niceness: Self.niceness) { [self] in
            while let (number, check) = take() { finish(number, check, perform(check)) }
        }
        guard let started else { return !state.threads.isEmpty }
        state.threads.append(started)
        return true
    }

    /// Waits for a check; `nil` if the checker is closed.
    private func take() -> (Int, PasswordCheck)? {
        monitor.wait { state in
            guard !state.isClosed else { return .done(nil) }
            switch state.queue.next(at: Clock.monotonicMilliseconds()) {
            case .check(let number, let check): return .done((number, check))
            case .wait(let time): return .until(time * 1_000_000)
            case .idle: return .signal
            }
        }
    }

    private func finish(_ number: Int, _ check: PasswordCheck, _ result: CheckOutcome) {
        let outcome = check.isDecoy && result == .matches ? .differs : result
        let waiters = monitor.withLock { state in
            switch outcome {
            case .matches: state.delays.succeeded(check.client, check.user)
            case .differs: break
            case .impossible: state.delays.withdrawn(check.client, check.user)
            }
            return state.queue.finished(number)
        }
        // Its network's next check may begin.
        monitor.broadcast()
        for waiter in waiters { waiter(outcome) }
    }

    /// Ends: what waits is not checked any more, what is being checked is waited for.
    package func close() {
        let (threads, waiters) = monitor.withLock { state in
            state.isClosed = true
            defer { state.threads = [] }
            return (state.threads, state.queue.removeAll())
        }
        monitor.broadcast()
        for thread in threads { thread.join() }
        for waiter in waiters { waiter(.impossible) }
    }
}
