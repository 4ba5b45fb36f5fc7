import CLinux
import Clocks
import Documents
import Locking
import Threads

/// Takes what the gateway sends of a recording, on a thread of its own, until a limit is reached, a
/// signal comes, or it ends.
final class RecordingSession: Sendable {
    /// When it ends by itself.
    struct Limits: Sendable {
        /// Milliseconds since the recording began.
        var duration: Int64?
        var count: Int64?
        /// Bytes of the file.
        var size: Int64?
    }

    /// How it has ended.
    enum Outcome: Sendable {
        /// As it was asked to.
        case complete
        /// The file could not be written.
        case notWritten(String)
        /// The gateway cannot be asked, does not record, or has ended.
        case brokenOff(String)
    }

    /// What both threads know. It is never held during a write: a reader may hold that up for ever.
    private struct State {
        var count: Int64 = 0
        var dropped: Int64 = 0
        /// Until when it goes on, of the monotonic clock.
        var end: Int64?
        /// Once there is one, the other thread begins no other write.
        var outcome: Outcome?
        /// Whether the other thread uses the output.
        var isWriting = false
    }

    /// What is recorded: for the other thread while it writes, and for this one when it has ended.
    private struct Output {
        var file: HARFile?
        var lines = ArrivingLines()
        var dropped: Int64 = 0
        /// Why the gateway has ended it; `nil` if it has not.
        var because: String?
        /// Since when it records nothing, of the monotonic clock; `nil` while it does.
        var leftAt: Int64?
    }

    /// Why the first thread waits no longer.
    private enum Event {
        case signal
        /// Whoever reads standard output has left.
        case readerLeft
        case notice
        case timeout
    }

    /// How long a write may still take after a signal, and after a limit, in milliseconds.
    private static let patienceMilliseconds: Int64 = 1000
    private static let limitPatienceMilliseconds: Int64 = 10_000
    /// How often a gateway is asked that has no place, or shuts down, and after how long again. The
    /// place of a recording whose client has left without a word may be free only then.
    private static let attempts = 4
    private static let retryMilliseconds: Int32 = 500

    private let state = Locked(State())
    private let output = Locked(Output())
    private let wake: Int32
    private let signals: Int32
    private let path: String
    private let replaces: Bool
    private let limits: Limits
    private let isSilent: Bool

    /// Holds back the signals that end the program, for all threads that are made from now on.
    ///
    /// - Parameters:
    ///   - path: the file; `-` for standard output.
    ///   - replaces: whether a file that exists is replaced.
    init(_ path: String, replaces: Bool, _ limits: Limits, isSilent: Bool) {
        self.path = path
        self.replaces = replaces
        self.limits = limits
        self.isSilent = isSilent
        var set = sigset_t()
        sigemptyset(&set)
        for signal in [SIGINT, SIGTERM, SIGHUP] { sigaddset(&set, signal) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        // SIGPIPE stays blocked for good: that nobody reads is noticed otherwise.
        var pipe = sigset_t()
        sigemptyset(&pipe)
        sigaddset(&pipe, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &pipe, nil)
        signals = signalfd(-1, &set, Int32(SFD_CLOEXEC))
        wake = eventfd(0, Int32(EFD_CLOEXEC))
    }

    deinit {
        close(signals)
        close(wake)
    }

    /// What has been recorded.
    var figures: (count: Int64, dropped: Int64) { state.withLock { ($0.count, $0.dropped) } }

    /// Records until the end. The file is finished then, unless its reader holds that up.
    func run(_ gateway: RunningGateway, _ target: String) throws -> Outcome {
        let thread = try Thread(name: "recording") { [self] in feed(gateway, target) }
        let isSignalled = waitForEnd()
        let outcome = state.withLock { state -> Outcome in
            let outcome = state.outcome ?? .complete
            state.outcome = outcome
            return outcome
        }
        // It may be waiting for the gateway, or for whoever reads: the program ends without it.
        _ = thread
        guard waitForWriter(isSignalled) else {
            return .notWritten("\(name) is incomplete: a write has not ended in time")
        }
        return output.withLock { output -> Outcome in
            do throws(HARFile.WriteError) {
                try output.file?.finish(
                    dropped: output.dropped, patienceMilliseconds: Int32(Self.patienceMilliseconds))
                return outcome
            } catch {
                return .notWritten("\(error)")
            }
        }
    }

    private var isStandardOutput: Bool { path == "-" }
    private var name: String { isStandardOutput ? "standard output" : path }

    /// Until a signal comes, the time is over, whoever reads has left, or the other thread has
    /// ended. Returns whether it was a signal.
    private func waitForEnd() -> Bool {
        while state.withLock({ $0.outcome == nil }) {
            let end = state.withLock { $0.end }
            let left = end.map { max(0, $0 - Clock.monotonicMilliseconds()) }
            switch wait(milliseconds: left, watchesReader: isStandardOutput) {
            case .signal: return true
            case .readerLeft: return false
            case .timeout where left == 0: return false
            case .notice, .timeout: continue
            }
        }
        return false
    }

    /// Until the other thread writes no more. Returns `false` if that takes too long, or a signal
    /// comes.
    private func waitForWriter(_ isSignalled: Bool) -> Bool {
        let patience =
            isSignalled ? Self.patienceMilliseconds : Self.limitPatienceMilliseconds
        let end = Clock.monotonicMilliseconds() + patience
        while state.withLock({ $0.isWriting }) {
            let left = end - Clock.monotonicMilliseconds()
            if left <= 0 { return false }
            if case .signal = wait(milliseconds: left, watchesReader: false) { return false }
        }
        return true
    }

    /// - Parameter milliseconds: `nil` for no limit.
    private func wait(milliseconds: Int64?, watchesReader: Bool) -> Event {
        // Errors are reported whatever is asked for: that of a pipe is that nobody reads it.
        var waited = [
            pollfd(fd: signals, events: Int16(POLLIN), revents: 0),
            pollfd(fd: wake, events: Int16(POLLIN), revents: 0),
            pollfd(fd: watchesReader ? STDOUT_FILENO : -1, events: 0, revents: 0),
        ]
        let count = poll(&waited, 3, milliseconds.map { Int32(clamping: $0) } ?? -1)
        guard count > 0 else { return .timeout }
        if waited[0].revents != 0 {
            var taken = signalfd_siginfo()
            _ = read(signals, &taken, MemoryLayout<signalfd_siginfo>.size)
            return .signal
        }
        if waited[2].revents & Int16(POLLERR | POLLHUP) != 0 { return .readerLeft }
        if waited[1].revents != 0 {
            var value: UInt64 = 0
            _ = read(wake, &value, MemoryLayout<UInt64>.size)
        }
        return .notice
    }

    private func notify() {
        var one: UInt64 = 1
        _ = write(wake, &one, MemoryLayout<UInt64>.size)
    }

    private func end(_ outcome: Outcome) {
        state.withLock { if $0.outcome == nil { $0.outcome = outcome } }
        notify()
    }

    // MARK: The thread

    private func feed(_ gateway: RunningGateway, _ target: String) {
        var attempts = Self.attempts
        while true {
            output.withLock { ($0.lines, $0.because) = (ArrivingLines(), nil) }
            let end = gateway.follow(target) { [self] in take($0) }
            if state.withLock({ $0.outcome != nil }) { return notify() }
            if case .refused(let answer) = end, answer.status == 503, attempts > 1 {
                attempts -= 1
                _ = poll(nil, 0, Self.retryMilliseconds)
                continue
            }
            switch (end, output.withLock { $0.because }) {
            // Another configuration may say otherwise who may record what: it is asked again.
            case (.ended, "configuration"):
                output.withLock { $0.leftAt = Clock.monotonicMilliseconds() }
                attempts = Self.attempts
                continue
            case (.ended, "bye"):
                return self.end(
                    .brokenOff(
                        "\(gateway.name): the gateway shuts down, or another process serves"))
            case (.ended, _):
                return self.end(.brokenOff("\(gateway.name): the connection was closed"))
            case (.refused(let answer), _): return self.end(.brokenOff(answer.problem))
            case (.failed(let problem), _): return self.end(.brokenOff(problem))
            }
        }
    }

    /// Takes what has arrived. Returns `false` if no more is wanted.
    private func take(_ bytes: [UInt8]) -> Bool {
        let isWanted = state.withLock { state -> Bool in
            state.isWriting = state.outcome == nil
            return state.isWriting
        }
        guard isWanted else { return false }
        let (outcome, begins) = output.withLock { output -> (Outcome?, Bool) in
            let isNew = output.file == nil
            guard let lines = output.lines.add(bytes) else {
                return (.brokenOff("the gateway sends a line that is too long"), false)
            }
            for line in lines where state.withLock({ $0.outcome == nil }) {
                if let outcome = take(line, &output) { return (outcome, false) }
            }
            return (nil, isNew && output.file != nil)
        }
        if begins, !isSilent {
            writeToStandardError("recording to \(name) until Ctrl-C or a limit\n")
        }
        let goesOn = state.withLock { state -> Bool in
            state.isWriting = false
            if begins { state.end = limits.duration.map { Clock.monotonicMilliseconds() + $0 } }
            if state.outcome == nil { state.outcome = outcome }
            return state.outcome == nil
        }
        if begins || !goesOn { notify() }
        return goesOn
    }

    /// Takes a line. Returns how the recording ends with it; `nil` if it goes on.
    private func take(_ line: [UInt8], _ output: inout Output) -> Outcome? {
        let limit = DocumentLimits(bytes: ArrivingLines.limit)
        let value = try? JSONDocument.value(of: line, limits: limit)
        switch value?["type"]?.text {
        case "hello": return begin(&output)
        case "entry":
            guard let file = output.file, let entry = value?["entry"] else { return nil }
            return add(entry, to: file)
        case "dropped":
            output.dropped += value?["count"]?.count ?? 0
            state.withLock { $0.dropped = output.dropped }
        case "end": output.because = value?["because"]?.text
        default: return .brokenOff("what the gateway sends is no recording")
        }
        return nil
    }

    private func begin(_ output: inout Output) -> Outcome? {
        guard output.file == nil else {
            if let left = output.leftAt.take() {
                let gap = Clock.monotonicMilliseconds() - left
                writeWarning(
                    "the configuration was reloaded: what ended in these \(gap) ms is not in the "
                        + "file")
            }
            return nil
        }
        do throws(HARFile.WriteError) {
            output.file = try HARFile(path, replaces: replaces, limit: limits.size ?? .max)
            return nil
        } catch {
            return .notWritten("\(error)")
        }
    }

    private func add(_ entry: DocumentValue, to file: HARFile) -> Outcome? {
        do throws(HARFile.WriteError) {
            guard try file.add("\(entry)") else { return .complete }
        } catch {
            return .notWritten("\(error)")
        }
        state.withLock { $0.count = file.count }
        if let count = limits.count, file.count >= count { return .complete }
        return nil
    }
}
