import Glibc

/// The calls that have not ended. A thread of its own ends the program if one should have, so that
/// it does so even if nothing else goes on.
///
/// The time is that thread's own: in each of its seconds everything else had one as well, and a
/// machine that stands still is not taken for a call that does not end.
final class InFlight: Sendable {
    private struct State {
        var calls: [Int: Entry] = [:]
        /// How often the thread has looked, which it does every second.
        var now = 0
    }

    private struct Entry {
        let text: String
        let deadline: Int
    }

    private let state = Locked(State())

    /// - Parameter seconds: After how long the call is a failure.
    func begin(_ plan: Plan, _ seconds: Int) {
        let text = plan.text
        state.withLock { state in
            // The second that is running counts for nothing.
            state.calls[plan.number] = Entry(text: text, deadline: state.now + seconds + 1)
        }
    }

    func end(_ plan: Plan) { state.withLock { _ = $0.calls.removeValue(forKey: plan.number) } }

    /// Starts the thread, which never ends.
    func watch() {
        var thread = pthread_t()
        let context = Unmanaged.passRetained(self).toOpaque()
        pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                let flight = Unmanaged<InFlight>.fromOpaque(context).takeUnretainedValue()
                while true {
                    sleep(1)
                    flight.check()
                }
            }, context)
    }

    private func check() {
        let late = state.withLock { state in
            state.now += 1
            return state.calls.values.filter { $0.deadline < state.now }
        }
        guard !late.isEmpty else { return }
        print("wrong: \(late.count) calls do not end:")
        for entry in late.prefix(20) { print("wrong: \(entry.text)") }
        fflush(nil)
        // What hangs can be looked at.
        if getenv("SOAK_WAITS") != nil { sleep(3600) }
        _exit(3)
    }
}
