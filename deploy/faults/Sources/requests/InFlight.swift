import Glibc
import Synchronization

/// The calls that have not ended. A thread of its own ends the program if one should have, so that
/// it does so even if nothing else goes on.
final class InFlight: Sendable {
    private struct Entry {
        let text: String
        let deadline: ContinuousClock.Instant
    }

    private let calls = Locked<[Int: Entry]>([:])

    /// - Parameter seconds: After how long the call is a failure.
    func begin(_ plan: Plan, _ seconds: Int) {
        let deadline = ContinuousClock().now.advanced(by: .seconds(seconds))
        calls.withLock { $0[plan.number] = Entry(text: plan.text, deadline: deadline) }
    }

    func end(_ plan: Plan) { calls.withLock { _ = $0.removeValue(forKey: plan.number) } }

    /// Starts the thread. It looks every second, and never ends.
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
        let now = ContinuousClock().now
        let late = calls.withLock { calls in calls.values.filter { $0.deadline < now } }
        guard !late.isEmpty else { return }
        print("wrong: \(late.count) calls do not end:")
        for entry in late.prefix(20) { print("wrong: \(entry.text)") }
        fflush(nil)
        // What hangs can be looked at.
        if getenv("SOAK_WAITS") != nil { sleep(3600) }
        _exit(3)
    }
}
