import CLinux
import Testing

@testable import CacheStore

/// The store's own threads.
@Suite struct StoreThreadTests {
    @Test("A thread that stands back does so alone: the others keep their priority")
    func niceness() throws {
        let found = Handover<Int32>()
        let started = StoreThread.start("nice", niceness: 3) {
            found.give(getpriority(PRIO_PROCESS, 0))
        }
        let thread = try #require(started)
        let before = getpriority(PRIO_PROCESS, 0)
        #expect(found.take() == 3)
        thread.join()
        #expect(getpriority(PRIO_PROCESS, 0) == before)
    }
}
