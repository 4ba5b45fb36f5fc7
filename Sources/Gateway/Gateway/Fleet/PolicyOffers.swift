import Locking

/// The policy that came by way of the engine last, and what became of it. The level's thread puts
/// it here, and the main thread judges it.
final class PolicyOffers: Sendable {
    /// What was published, which nobody has verified.
    struct Offer: Sendable, Equatable {
        var envelope: [UInt8]
        /// Which share of the gateways is to take it.
        var percent: Int
    }

    private struct State {
        var last: Offer?
        /// Whether that has not been judged.
        var isWaiting = false
        /// What it is, if it could be read, and why it was refused, if it was.
        var judged: FleetReport.Offer?
    }

    private let state = Locked(State())

    /// A policy was published.
    func put(_ envelope: [UInt8], percent: Int) {
        state.withLock { state in
            state.last = Offer(envelope: envelope, percent: percent)
            state.isWaiting = true
        }
    }

    /// What is to be judged; `nil` if nothing has come since.
    func take() -> Offer? {
        state.withLock { state in
            guard state.isWaiting else { return nil }
            state.isWaiting = false
            return state.last
        }
    }

    /// What it is judged by is another than before.
    func judgeAgain() { state.withLock { $0.isWaiting = $0.last != nil } }

    /// It was judged.
    func note(_ judged: FleetReport.Offer?) { state.withLock { $0.judged = judged } }

    var last: Offer? { state.withLock { $0.last } }
    var judged: FleetReport.Offer? { state.withLock { $0.judged } }
}
