import CLinux
import Testing

@testable import CacheStore

/// The store's own threads.
@Suite struct StoreThreadTests {
    private static func ownNiceness() -> Int32 { getpriority(Int32(PRIO_PROCESS.rawValue), 0) }

    @Test("A thread that stands back does so alone: the others keep their priority")
    func niceness() throws {
        let found = Handover<Int32>()
        let started = StoreThread.start("nice", niceness: 3) {
            found.give(Self.ownNiceness())
        }
        let thread = try #require(started)
        let before = Self.ownNiceness()
        #expect(found.take() == 3)
        thread.join()
        #expect(Self.ownNiceness() == before)
    }
}
