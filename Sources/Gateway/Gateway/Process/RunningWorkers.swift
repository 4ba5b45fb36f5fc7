import Synchronization
import Threads

/// The worker threads that have not ended.
final class RunningWorkers {
    private let alive = Alive()
    private var threads: [Thread] = []

    private final class Alive: Sendable {
        let count = Atomic<Int>(0)
    }

    var count: Int { alive.count.load(ordering: .acquiring) }

    func start(
        name: String, _ body: @escaping @Sendable () -> Void
    ) throws(Thread.StartError) {
        alive.count.add(1, ordering: .relaxed)
        let alive = alive
        do {
            let thread = try Thread(name: name) {
                body()
                alive.count.subtract(1, ordering: .releasing)
            }
            threads.append(thread)
        } catch {
            alive.count.subtract(1, ordering: .relaxed)
            throw error
        }
    }

    func join() {
        for thread in threads { thread.join() }
        threads = []
    }
}
