import CLinux
import Clocks
import Locking
import Testing
import Threads

/// Runs `body` in this many threads at once, and returns when all have ended.
private func inThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) throws {
    let threads = try (0..<count).map { number in try Thread(name: "test") { body(number) } }
    for thread in threads { thread.join() }
}

/// Counts its deinitialisations.
private final class Witness: Sendable {
    private let ends: Locked<Int>
    init(_ ends: Locked<Int>) { self.ends = ends }
    deinit { ends.withLock { $0 += 1 } }
}

/// Not copyable; with the declared size and alignment.
private struct Unique: ~Copyable {
    var vector = SIMD8<Int64>(repeating: 7)
    var witness: Witness
}

@Suite("A value under its lock")
struct LockedTests {
    private struct RefusedError: Error {}

    @Test func `critical sections of several threads do not overlap`() throws {
        let state = Locked((first: 0, second: 0))
        let torn = Locked(0)
        try inThreads(4) { _ in
            for _ in 0..<2000 {
                state.withLock { state in
                    if state.first != state.second { torn.withLock { $0 += 1 } }
                    state.first += 1
                    state.second += 1
                }
            }
        }
        #expect(torn.withLock { $0 } == 0)
        #expect(state.withLock { $0.first } == 8000)
        #expect(state.withLock { $0.second } == 8000)
    }

    @Test
    func `the lock is free again after a body that throws, and the error is the body's own`() {
        let state = Locked(0)
        #expect(throws: RefusedError.self) {
            try state.withLock { state throws(RefusedError) in
                state = 1
                throw RefusedError()
            }
        }
        #expect(state.withLock { $0 } == 1)
    }

    @Test func `the value ends with the last copy of its lock, once`() {
        let ends = Locked(0)
        var one: Locked<Witness?>? = Locked(Witness(ends))
        let another = one
        one = nil
        #expect(ends.withLock { $0 } == 0)
        another?.withLock { $0 = nil }
        #expect(ends.withLock { $0 } == 1)
        do {
            let unique = Locked(Unique(witness: Witness(ends)))
            unique.withLock { $0.vector[3] += 1 }
            #expect(unique.withLock { $0.vector[3] } == 8)
            #expect(unique.withLock { $0.vector[7] } == 7)
        }
        #expect(ends.withLock { $0 } == 2)
    }

    #if DEBUG
        @Test func `taking a lock again that one holds ends the process`() async {
            await #expect(processExitsWith: .failure) {
                let state = Locked(0)
                state.withLock { _ in state.withLock { $0 += 1 } }
            }
        }
    #endif
}

@Suite("Monitors")
struct MonitorTests {
    @Test func `a signal wakes a waiting thread, which finds the state as it was left`() throws {
        let queue = Monitor([Int]())
        let taken = Locked<[Int]>([])
        try inThreads(2) { number in
            if number == 0 {
                for value in 0..<100 {
                    queue.withLock { $0.append(value) }
                    queue.signal()
                }
                return
            }
            while taken.withLock({ $0.count }) < 100 {
                let values = queue.wait { queue -> Waiting<[Int]> in
                    guard !queue.isEmpty else { return .signal }
                    defer { queue = [] }
                    return .done(queue)
                }
                taken.withLock { $0 += values }
            }
        }
        #expect(taken.withLock { $0 } == Array(0..<100))
    }

    @Test func `a broadcast wakes all that wait`() throws {
        let gate = Monitor((waiting: 0, isOpen: false))
        let passed = Locked(0)
        try inThreads(4) { number in
            if number == 0 {
                gate.wait { $0.waiting == 3 ? .done(()) : .signal }
                gate.withLock { $0.isOpen = true }
                gate.broadcast()
                return
            }
            gate.withLock { $0.waiting += 1 }
            gate.broadcast()
            gate.wait { $0.isOpen ? .done(()) : .signal }
            passed.withLock { $0 += 1 }
        }
        #expect(passed.withLock { $0 } == 3)
    }

    @Test func `a wait with a deadline ends at that time, unsignalled`() {
        let monitor = Monitor(())
        let deadline = Clock.monotonicNanoseconds() + 2_000_000
        let woke = monitor.wait { _ in
            let time = Clock.monotonicNanoseconds()
            return time >= deadline ? .done(time) : .until(deadline)
        }
        #expect(woke >= deadline)
    }
}
