import Clocks
import Locking

/// Which workers' loops turn: each is asked by a message, and answers in its next turn. A loop that
/// does not come to its messages, because something in a turn does not end, serves nobody.
final class LoopTurns: Sendable {
    /// A worker that has not answered.
    struct Silence: Equatable {
        var worker: Int
        /// Since it was asked, in milliseconds.
        var milliseconds: Int64
    }

    private struct State {
        /// The number of the last question, and when it was asked (monotonic nanoseconds).
        var round: UInt64 = 0
        var asked: Int64 = 0
        /// The number of the last question that each worker has answered.
        var answered: [UInt64]
        /// Whether the workers are ending: nobody need answer.
        var isOver = false

        var areAllAnswered: Bool { isOver || answered.allSatisfy { $0 == round } }
    }

    private let state: Monitor<State>

    init(workers: Int) {
        state = Monitor(State(answered: [UInt64](repeating: 0, count: workers)))
    }

    /// Asks all workers.
    /// - Parameter post: posts the question's number to each worker.
    func ask(now: Int64 = Clock.monotonicNanoseconds(), post: (UInt64) -> Void) {
        let round = state.withLock { state in
            state.round += 1
            state.asked = now
            return state.round
        }
        post(round)
    }

    /// Called by a worker, in a turn of its loop.
    func answered(_ worker: Int, round: UInt64) {
        state.withLock { state in
            state.answered[worker] = max(state.answered[worker], round)
        }
        state.broadcast()
    }

    /// Waits until all have answered the last question; `false` if some have not by the deadline
    /// (monotonic nanoseconds).
    func waitForAll(until deadline: Int64) -> Bool {
        state.wait { state in
            if state.areAllAnswered { return .done(true) }
            return Clock.monotonicNanoseconds() >= deadline ? .done(false) : .until(deadline)
        }
    }

    /// Called when the workers have been told to end. Nobody is waited for any more.
    func end() {
        state.withLock { $0.isOver = true }
        state.broadcast()
    }

    /// Those that have not answered the last question.
    func silent(now: Int64 = Clock.monotonicNanoseconds()) -> [Silence] {
        state.withLock { state in
            let milliseconds = (now - state.asked) / 1_000_000
            return state.answered.enumerated().filter { $0.element < state.round }
                .map { Silence(worker: $0.offset, milliseconds: milliseconds) }
        }
    }
}
