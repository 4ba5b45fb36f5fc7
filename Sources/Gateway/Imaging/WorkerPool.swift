import CLinux
import Clocks
import ImageCodecs
import Locking
import Threads

/// The decoding processes: a limited number, each with one image at a time.
final class WorkerPool: Sendable {
    private struct State {
        /// Those waiting for work, longest idle first.
        var idle: [WorkerProcess] = []
        /// Those at work. Each is removed before it is waited for, so that a number here never
        /// belongs to another process.
        var busy: [pid_t] = []
        /// Processes being started or ended by callers that have reserved their slot.
        var reserved = 0
        var isEnded = false
        var sweeper: Thread?
        var hasNoted = false
    }

    /// What a caller may do.
    private enum Turn {
        case use(WorkerProcess)
        /// Start one, after ending this one, which has too little memory.
        case start(instead: WorkerProcess?)
        case late
        case ended
    }

    let options: ImageService.Options
    private let monitor = Monitor(State())

    init(_ options: ImageService.Options) {
        self.options = options
        keep_dead_children()
    }

    /// A process with enough memory, or `nil` if none became free in time, or the pool has ended.
    func take(memory: Int) throws(WorkerError) -> WorkerProcess? {
        let deadline = Clock.monotonicNanoseconds() + options.longestWait
        while true {
            switch turn(memory, deadline) {
            case .late, .ended:
                return nil
            case .use(let worker):
                if worker.isReady { return worker }
                // It ended while it was idle, which is no image's fault.
                _ = discard(worker)
            case .start(let instead):
                _ = instead?.end()
                return try start(memory)
            }
        }
    }

    private func turn(_ memory: Int, _ deadline: Int64) -> Turn {
        let most = options.processes
        return monitor.wait { state in
            if state.isEnded { return .done(.ended) }
            if let index = state.idle.lastIndex(where: { $0.memory >= memory }) {
                let worker = state.idle.remove(at: index)
                state.busy.append(worker.pid)
                return .done(.use(worker))
            }
            if state.idle.count + state.busy.count + state.reserved < most {
                state.reserved += 1
                return .done(.start(instead: nil))
            }
            if !state.idle.isEmpty {
                state.reserved += 1
                return .done(.start(instead: state.idle.removeFirst()))
            }
            return Clock.monotonicNanoseconds() < deadline ? .until(deadline) : .done(.late)
        }
    }

    private func start(_ memory: Int) throws(WorkerError) -> WorkerProcess? {
        let worker: WorkerProcess
        do {
            worker = try WorkerProcess(
                command: options.command, memory: memory, seconds: options.alarmSeconds,
                deadline: Clock.monotonicNanoseconds() + options.longestStart)
        } catch {
            monitor.withLock { $0.reserved -= 1 }
            monitor.broadcast()
            throw error
        }
        let pid = worker.pid
        let (isEnded, isFirst) = monitor.withLock { state in
            // The slot stays reserved until the process is gone.
            guard !state.isEnded else { return (true, false) }
            state.reserved -= 1
            state.busy.append(pid)
            defer { state.hasNoted = true }
            return (false, !state.hasNoted)
        }
        if isFirst, let text = worker.confinement.shortcoming { options.note(text) }
        guard isEnded else { return worker }
        _ = worker.end()
        monitor.withLock { $0.reserved -= 1 }
        monitor.broadcast()
        return nil
    }

    /// Returns a process that worked correctly.
    func give(_ worker: WorkerProcess) {
        guard worker.images < options.imagesPerProcess else {
            _ = discard(worker)
            return
        }
        var idle = worker
        idle.idleSince = Clock.monotonicNanoseconds()
        let isKept = monitor.withLock { [idle] state in
            guard !state.isEnded else { return false }
            state.busy.removeAll { $0 == idle.pid }
            state.idle.append(idle)
            if state.sweeper == nil { state.sweeper = startSweeper() }
            return true
        }
        guard isKept else {
            _ = discard(worker)
            return
        }
        monitor.broadcast()
    }

    /// Ends a process that was taken; returns its status from waitpid(2).
    func discard(_ worker: WorkerProcess) -> Int32 {
        let pid = worker.pid
        monitor.withLock { state in
            state.busy.removeAll { $0 == pid }
            state.reserved += 1
        }
        let status = worker.end()
        monitor.withLock { $0.reserved -= 1 }
        monitor.broadcast()
        return status
    }

    /// The current processes, for tests.
    var processes: [(pid: pid_t, descriptor: Int32)] {
        monitor.withLock { state in
            state.idle.map { ($0.pid, $0.descriptor) } + state.busy.map { ($0, -1) }
        }
    }

    /// Ends all processes, including those at work, and waits until they are gone. Later callers
    /// get none.
    func end() {
        let (idle, sweeper) = monitor.withLock { state in
            state.isEnded = true
            for pid in state.busy { kill(pid, SIGKILL) }
            defer {
                state.idle = []
                state.sweeper = nil
            }
            return (state.idle, state.sweeper)
        }
        monitor.broadcast()
        for worker in idle { _ = worker.end() }
        monitor.wait { $0.busy.isEmpty && $0.reserved == 0 ? .done(()) : .signal }
        sweeper?.join()
    }

    /// A thread that ends processes that have long been idle. `nil` if the system cannot provide
    /// one; they then stay until the end.
    private func startSweeper() -> Thread? {
        try? Thread(name: "images") { [self] in
            while let expired = nextExpired() {
                for worker in expired { _ = worker.end() }
                let count = expired.count
                monitor.withLock { $0.reserved -= count }
                monitor.broadcast()
            }
        }
    }

    /// Waits for expired processes; `nil` at the end.
    private func nextExpired() -> [WorkerProcess]? {
        let longest = options.longestIdle
        return monitor.wait { state in
            if state.isEnded { return .done(nil) }
            guard let first = state.idle.first else { return .signal }
            let limit = Clock.monotonicNanoseconds() - longest
            guard first.idleSince <= limit else { return .until(first.idleSince + longest) }
            let expired = state.idle.prefix { $0.idleSince <= limit }
            state.idle.removeFirst(expired.count)
            state.reserved += expired.count
            return .done(Array(expired))
        }
    }
}

extension Confinement {
    /// What is missing, or `nil` if nothing is.
    fileprivate var shortcoming: String? {
        switch (filtersCalls, boundsMemory) {
        case (true, true): nil
        case (false, true):
            "the system does not allow seccomp: only limits confine the image decoding processes"
        case (true, false): "the memory of image decoding processes cannot be limited"
        case (false, false):
            "image decoding processes are confined neither by seccomp nor by a memory limit"
        }
    }
}
