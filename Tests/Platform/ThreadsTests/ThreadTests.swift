import CLinux
import Locking
import Testing
import Threads

/// Opened once; threads can wait for that.
private final class Gate: Sendable {
    private let monitor = Monitor(false)
    func open() {
        monitor.withLock { $0 = true }
        monitor.broadcast()
    }
    func wait() { monitor.wait { $0 ? .done(()) : .signal } }
}

/// What a thread observes about itself.
private func onThread<Value: Sendable>(
    named name: String = "test", niceness: Int32 = 0, _ body: @escaping @Sendable () -> Value
) throws -> Value? {
    let found = Locked<Value?>(nil)
    let thread = try Thread(name: name, niceness: niceness) {
        let value = body()
        found.withLock { $0 = value }
    }
    thread.join()
    return found.withLock { $0 }
}

@Suite("Threads")
struct ThreadTests {
    @Test(
        arguments: [
            ("short", "short"), ("a-name-longer-than-fifteen", "a-name-longer-t"),
            ("ääääääääää", "äääääää\u{FFFD}"),
        ])
    func `a thread has its name, cut to 15 bytes`(_ name: String, shown: String) throws {
        let found = try onThread(named: name) {
            var text = [UInt8](repeating: 0, count: 32)
            let file = open_with_mode("/proc/thread-self/comm", O_RDONLY, 0)
            defer { close(file) }
            let count = read(file, &text, 31)
            return String(decoding: text.prefix(max(0, count)), as: UTF8.self)
        }
        #expect(found == shown + "\n")
    }

    @Test func `a thread that lowers its priority leaves that of the others`() throws {
        func own() -> Int32 { getpriority(Int32(PRIO_PROCESS.rawValue), 0) }
        let before = own()
        let found = try onThread(niceness: 3) { getpriority(Int32(PRIO_PROCESS.rawValue), 0) }
        #expect(found == 3)
        #expect(own() == before)
    }

    @Test func `a thread receives only signals of its own faults`() throws {
        func mask() -> [Int32] {
            var set = sigset_t()
            pthread_sigmask(SIG_SETMASK, nil, &set)
            return (1..<32).filter { sigismember(&set, $0) == 1 }
        }
        let before = mask()
        let found = try #require(
            try onThread {
                var set = sigset_t()
                pthread_sigmask(SIG_SETMASK, nil, &set)
                return (Int32(1)..<32).filter { sigismember(&set, $0) == 1 }
            })
        for signal in [
            SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM, SIGCHLD, SIGQUIT,
        ] { #expect(found.contains(signal), "\(signal)") }
        let faults = [SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS]
        #expect(Set(found).isDisjoint(with: Set(faults).subtracting(before)))
        #expect(mask() == before)
    }

    @Test func `joining waits for the end; later calls do nothing`() throws {
        let ended = Locked(false)
        let gate = Gate()
        let thread = try Thread(name: "test") {
            gate.wait()
            ended.withLock { $0 = true }
        }
        #expect(!thread.isCurrent)
        gate.open()
        thread.join()
        #expect(ended.withLock { $0 })
        thread.join()
        thread.detach()
        #expect(!thread.isCurrent)
    }

    @Test func `a thread that joins itself is detached, and runs to its end`() throws {
        let own = Locked<Thread?>(nil)
        let (start, end) = (Gate(), Gate())
        let wasCurrent = Locked(false)
        let thread = try Thread(name: "test") {
            start.wait()
            let thread = own.withLock { $0.take() }
            let isCurrent = thread?.isCurrent ?? false
            wasCurrent.withLock { $0 = isCurrent }
            thread?.join()
            end.open()
        }
        own.withLock { $0 = thread }
        start.open()
        end.wait()
        #expect(wasCurrent.withLock { $0 })
    }

    @Test func `a thread without a reference leaves nothing behind`() throws {
        /// Pages of the process's address space.
        func mapped() throws -> Int {
            var text = [UInt8](repeating: 0, count: 64)
            let file = open_with_mode("/proc/self/statm", O_RDONLY, 0)
            defer { close(file) }
            let count = read(file, &text, text.count)
            let digits = String(decoding: text.prefix(max(0, count)), as: UTF8.self)
            return try #require(digits.split(separator: " ").first.flatMap { Int($0) })
        }
        let before = try mapped()
        for _ in 0..<1000 {
            let gate = Gate()
            _ = try Thread(name: "test") { gate.open() }
            gate.wait()
        }
        // The stack of a thread that has ended stays until it is joined: 2 MiB or more each.
        let bytes = (try mapped() - before) * Int(sysconf(Int32(_SC_PAGESIZE)))
        #expect(bytes < 1 << 30)
    }
}

@Suite("Pools of threads")
struct ThreadPoolTests {
    let pool = ThreadPool(name: "test", threads: 1, niceness: 0, limit: 4)

    @Test func `a pool that ends waits no longer than it may for what hangs`() {
        let (begun, gate) = (Gate(), Gate())
        let isTaken = pool.run {
            begun.open()
            gate.wait()
        }
        #expect(isTaken)
        begun.wait()
        pool.close(withinMilliseconds: 20)
        #expect(!pool.run {})
        gate.open()
    }

    @Test func `a pool that ends waits for what ends in time`() {
        let (begun, done) = (Gate(), Locked(false))
        let isTaken = pool.run {
            begun.open()
            usleep(20_000)
            done.withLock { $0 = true }
        }
        #expect(isTaken)
        begun.wait()
        pool.close(withinMilliseconds: 60_000)
        #expect(done.withLock { $0 })
    }
}
