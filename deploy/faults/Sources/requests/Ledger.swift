import PinfoldClient
import Synchronization

/// What the sessions have told of each task: it begins once, and ends once and with nothing after
/// that. A byte for each identifier, of which there is room from the beginning, so that this does
/// not look like a leak.
final class Ledger: Sendable {
    private enum Stage {
        static let unseen: UInt8 = 0
        static let begun: UInt8 = 1
        static let ended: UInt8 = 2
    }

    private struct State {
        var stages: [UInt8]
        var violations: [String] = []
        var violationCount = 0

        mutating func note(_ violation: String) {
            violationCount += 1
            if violations.count < 20 { violations.append(violation) }
        }
    }

    private let state: Locked<State>

    /// - Parameter tasks: The greatest number of tasks that the process will have.
    init(tasks: Int) {
        state = Locked(State(stages: Array(repeating: 0, count: tasks)))
        // Pages of zeros have no memory before they are written to.
        state.withLock { state in
            for index in stride(from: 0, to: tasks, by: 4096) { state.stages[index] = Stage.ended }
            for index in stride(from: 0, to: tasks, by: 4096) { state.stages[index] = Stage.unseen }
        }
    }

    /// Whether a task begins now, and did not before.
    func began(_ task: TaskIdentifier, _ request: HTTPRequest) -> Bool {
        change(task, "begins, or continues", request.path) { stage in
            let isFirst = stage == Stage.unseen
            guard stage != Stage.ended else { return nil }
            stage = Stage.begun
            return isFirst
        } ?? false
    }

    /// Whether a task that ends now had begun; `nil` if it had ended.
    func ended(_ task: TaskIdentifier, _ request: HTTPRequest) -> Bool? {
        change(task, "ends", request.path) { stage in
            let hadBegun = stage == Stage.begun
            guard stage != Stage.ended else { return nil }
            stage = Stage.ended
            return hadBegun
        }
    }

    /// Something happens to a task, which must be running.
    func step(_ task: TaskIdentifier, _ event: RequestEvent) {
        _ = change(task, "has an event (\(event))", "") { stage in
            stage == Stage.begun ? true : nil
        }
    }

    /// - Parameter body: Returns `nil` for what must not be.
    private func change(
        _ task: TaskIdentifier, _ what: @autoclosure () -> String, _ path: String?,
        _ body: (inout UInt8) -> Bool?
    ) -> Bool? {
        state.withLock { state in
            let index = Int(task.number)
            guard index < state.stages.count else {
                state.note("task \(task) is more than there can be")
                return nil
            }
            let before = state.stages[index]
            let result = body(&state.stages[index])
            if result == nil {
                state.note(
                    "task \(task) \(what()) \(before == Stage.ended ? "after its end" : "too soon")"
                        + " \(path ?? "")")
            }
            return result
        }
    }

    /// What was told that must not be, and how often.
    var violations: ([String], Int) { state.withLock { ($0.violations, $0.violationCount) } }
}

/// Is told of the tasks of one session.
final class Watch: EventMonitor {
    /// Of tasks.
    struct Counts {
        var begun = 0
        var ended = 0
        /// Of those that ended, the number that had not begun.
        var refused = 0
        var missed = 0
        var isOver = false

        /// Tasks that have begun and not ended.
        var open: Int { begun - (ended - refused) }
    }

    private let ledger: Ledger
    private let state = Locked(Counts())
    private let witness = Witness()

    init(_ ledger: Ledger) { self.ledger = ledger }

    var counts: Counts { state.withLock { $0 } }

    func request(_ task: TaskIdentifier, _ event: RequestEvent) { ledger.step(task, event) }

    func session(_ event: SessionEvent) {
        switch event {
        case .didResume(let task, let request):
            if ledger.began(task, request) { state.withLock { $0.begun += 1 } }
        case .didComplete(let end):
            guard let hadBegun = ledger.ended(end.task, end.request) else { return }
            state.withLock { counts in
                counts.ended += 1
                if !hadBegun { counts.refused += 1 }
            }
        case .sessionInvalidated: state.withLock { $0.isOver = true }
        case .didSuspend, .downloadMoved, .downloadFailedToMove: break
        }
    }

    func missed(_ events: Int) { state.withLock { $0.missed += events } }
}

/// Something that closures, streams and monitors hold: how many there are tells whether these have
/// been released.
final class Witness: Sendable {
    private static let living = Atomic(0)

    static var count: Int { living.load(ordering: .relaxed) }

    init() { Self.living.add(1, ordering: .relaxed) }
    deinit { Self.living.subtract(1, ordering: .relaxed) }
}
