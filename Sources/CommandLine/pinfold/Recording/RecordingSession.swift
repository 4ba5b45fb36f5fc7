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

    private struct State {
        var file: HARFile?
        var lines = ArrivingLines()
        var dropped: Int64 = 0
        /// Until when it goes on, of the monotonic clock.
        var end: Int64?
        /// Why the gateway has ended it; `nil` if it has not.
        var because: String?
        var outcome: Outcome?
    }

    private let state = Locked(State())
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
        signals = signalfd(-1, &set, Int32(SFD_CLOEXEC))
        wake = eventfd(0, Int32(EFD_CLOEXEC))
    }

    deinit {
        close(signals)
        close(wake)
    }

    /// What has been recorded.
    var figures: (count: Int64, dropped: Int64) {
        state.withLock { ($0.file?.count ?? 0, $0.dropped) }
    }

    /// Records until the end. The file is finished then.
    func run(_ gateway: RunningGateway, _ target: String) throws -> Outcome {
        let thread = try Thread(name: "recording") { [self] in feed(gateway, target) }
        waitForEnd()
        let outcome = state.withLock { state -> Outcome in
            let outcome = state.outcome ?? .complete
            state.outcome = outcome
            do throws(HARFile.WriteError) {
                try state.file?.finish(dropped: state.dropped)
                return outcome
            } catch {
                return .notWritten("\(error)")
            }
        }
        // It may be waiting for the gateway: the program ends without it.
        _ = thread
        return outcome
    }

    /// Until a signal comes, the time is over, or the other thread has ended.
    private func waitForEnd() {
        while state.withLock({ $0.outcome == nil }) {
            let end = state.withLock { $0.end }
            let left = end.map { max(0, $0 - Clock.monotonicMilliseconds()) }
            var waited = [signals, wake].map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            let count = poll(&waited, 2, left.map { Int32(clamping: $0) } ?? -1)
            if left == 0 || waited[0].revents != 0 { return }
            if count > 0 {
                var value: UInt64 = 0
                _ = read(wake, &value, MemoryLayout<UInt64>.size)
            }
        }
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
        while true {
            state.withLock { ($0.lines, $0.because) = (ArrivingLines(), nil) }
            let end = gateway.follow(target) { [self] in take($0) }
            let (isOver, because) = state.withLock { ($0.outcome != nil, $0.because) }
            if isOver { return notify() }
            switch end {
            // Another configuration may say otherwise who may record what: it is asked again.
            case .ended where because == "configuration": continue
            case .ended where because == "bye":
                return self.end(
                    .brokenOff(
                        "\(gateway.name): the gateway shuts down, or another process serves"))
            case .ended:
                return self.end(.brokenOff("\(gateway.name): the connection was closed"))
            case .refused(let answer): return self.end(.brokenOff(answer.problem))
            case .failed(let problem): return self.end(.brokenOff(problem))
            }
        }
    }

    /// Takes what has arrived. Returns `false` if no more is wanted.
    private func take(_ bytes: [UInt8]) -> Bool {
        let (goesOn, begins) = state.withLock { state -> (Bool, Bool) in
            guard state.outcome == nil else { return (false, false) }
            let isNew = state.file == nil
            guard let lines = state.lines.add(bytes) else {
                state.outcome = .brokenOff("the gateway sends a line that is too long")
                return (false, false)
            }
            for line in lines where state.outcome == nil { take(line, &state) }
            return (state.outcome == nil, isNew && state.file != nil)
        }
        if begins, !isSilent {
            let name = path == "-" ? "standard output" : path
            writeToStandardError("recording to \(name) until Ctrl-C or a limit\n")
        }
        if begins || !goesOn { notify() }
        return goesOn
    }

    private func take(_ line: [UInt8], _ state: inout State) {
        let limit = DocumentLimits(bytes: ArrivingLines.limit)
        let value = try? JSONDocument.value(of: line, limits: limit)
        switch value?["type"]?.text {
        case "hello": begin(&state)
        case "entry":
            if let file = state.file, let entry = value?["entry"] { add(entry, to: file, &state) }
        case "dropped": state.dropped += value?["count"]?.count ?? 0
        case "end": state.because = value?["because"]?.text
        default: state.outcome = .brokenOff("what the gateway sends is no recording")
        }
    }

    private func begin(_ state: inout State) {
        guard state.file == nil else { return }
        do throws(HARFile.WriteError) {
            state.file = try HARFile(path, replaces: replaces, limit: limits.size ?? .max)
        } catch {
            state.outcome = .notWritten("\(error)")
        }
        state.end = limits.duration.map { Clock.monotonicMilliseconds() + $0 }
    }

    private func add(_ entry: DocumentValue, to file: HARFile, _ state: inout State) {
        do throws(HARFile.WriteError) {
            guard try file.add("\(entry)") else {
                state.outcome = .complete
                return
            }
        } catch {
            state.outcome = .notWritten("\(error)")
        }
        if let count = limits.count, file.count >= count { state.outcome = .complete }
    }
}
