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
        /// How often far more than a second had passed then: the machine or the process stood still.
        var standstills = 0
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

    /// The number of times that the machine has stood still.
    var standstills: Int { state.withLock { $0.standstills } }

    /// Whether the machine has stood still since there were so many of these: then timeouts have
    /// passed for which nobody could do anything.
    func hasStoodStill(since standstills: Int) async -> Bool {
        // The thread may not have looked since.
        try? await Task.sleep(for: .seconds(3))
        return self.standstills != standstills
    }

    /// A second takes so many at least if the machine has stood still.
    private static let standstillSeconds = 4

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
                let clock = ContinuousClock()
                while true {
                    let begun = clock.now
                    sleep(1)
                    flight.check(after: clock.now - begun)
                }
            }, context)
    }

    private func check(after time: Duration) {
        let late = state.withLock { state in
            state.now += 1
            if time >= .seconds(Self.standstillSeconds) {
                state.standstills += 1
                print("the machine has stood still for \(time.seconds) s")
                fflush(nil)
            }
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
