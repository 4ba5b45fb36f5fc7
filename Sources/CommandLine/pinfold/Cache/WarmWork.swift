import CLinux
import Clocks
import Documents
import Locking
import Threads

/// What came of warming.
struct WarmResult: Sendable, Equatable {
    /// URLs that are stored now and were not before, or were outdated.
    var stored = 0
    /// URLs that were answered from the cache.
    var present = 0
    /// URLs that have a response, which is not stored, by the detail of Cache-Status.
    var notStored: [String: Int] = [:]
    /// URLs without a response below 400, by what was wrong.
    var failures: [String: Int] = [:]
    var bytes: UInt64 = 0

    var failed: Int { failures.values.reduce(0, +) }

    mutating func note(_ response: WarmResponse) {
        bytes += response.bytes
        guard response.status < 400 else {
            failures["status \(response.status)", default: 0] += 1
            return
        }
        let member = (response.cacheStatus ?? "").split(separator: ",").last ?? ""
        let parts = member.split(separator: ";").map { $0.drop { $0 == " " } }
        if parts.contains("stored") {
            stored += 1
        } else if parts.contains("hit") || parts.contains("collapsed") {
            present += 1
        } else {
            let detail = parts.first { $0.hasPrefix("detail=") }?.dropFirst(7)
            notStored[detail.map { String($0) } ?? "no reason", default: 0] += 1
        }
    }

    /// For people.
    var text: String {
        var text = "\(stored) stored, \(present) were stored before, "
        text += "\(notStored.values.reduce(0, +)) not stored, \(failed) failed; "
        text += "\(ProgressText.size(Int64(bytes))) received\n"
        for (detail, count) in notStored.sorted(by: { $0.key < $1.key }) {
            text += "  not stored (\(detail)): \(count)\n"
        }
        for (kind, count) in failures.sorted(by: { $0.key < $1.key }) {
            text += "  failed (\(kind)): \(count)\n"
        }
        return text
    }

    var value: DocumentValue {
        func counts(_ counts: [String: Int]) -> DocumentValue {
            var members = DocumentDictionary()
            for (key, count) in counts.sorted(by: { $0.key < $1.key }) {
                members[key] = .number(DocumentNumber(count))
            }
            return .dictionary(members)
        }
        return .dictionary([
            "stored": .number(DocumentNumber(stored)), "present": .number(DocumentNumber(present)),
            "notStored": counts(notStored), "failed": counts(failures),
            "receivedBytes": .number(DocumentNumber(bytes)),
        ])
    }
}

/// Sends the requests on a few threads, each with a connection of its own.
final class WarmWork: Sendable {
    private struct State {
        var next = 0
        var result = WarmResult()
        /// When the next request may be sent, in microseconds.
        var turn: Int64
    }

    private let requests: [WarmRequest]
    private let target: WarmTarget
    /// Microseconds between two requests; `nil` for as fast as possible.
    private let pause: Int64?
    private let timeout: Int64
    private let isVerbose: Bool
    private let progress: CountProgress
    private let state: Locked<State>

    init(
        _ requests: [WarmRequest], target: WarmTarget, rate: Int?, timeout: Int64,
        isVerbose: Bool, progress: CountProgress
    ) {
        self.requests = requests
        self.target = target
        pause = rate.map { 1_000_000 / Int64($0) }
        self.timeout = timeout
        self.isVerbose = isVerbose
        self.progress = progress
        state = Locked(State(turn: Clock.monotonicMicroseconds()))
    }

    func run(parallel: Int) throws -> WarmResult {
        let threads = try (0..<min(parallel, max(1, requests.count))).map { index in
            try Thread(name: "warm-\(index)") { [self] in work() }
        }
        for thread in threads { thread.join() }
        progress.end()
        return state.withLock { $0.result }
    }

    private func work() {
        var connection = WarmConnection(to: target, timeout: timeout)
        while let request = next() {
            do throws(WarmError) {
                let response = try connection.get(request.head)
                note(response, request)
            } catch {
                state.withLock { $0.result.failures[error.kind, default: 0] += 1 }
                if isVerbose { progress.printLine("\(request.url): \(error)") }
                progress.add(failed: 1)
            }
        }
    }

    private func note(_ response: WarmResponse, _ request: WarmRequest) {
        let (isStored, hasFailed) = state.withLock { state in
            let (kept, failed) = (state.result.stored + state.result.present, state.result.failed)
            state.result.note(response)
            return (
                state.result.stored + state.result.present > kept, state.result.failed > failed
            )
        }
        if isVerbose, !isStored {
            let details = [response.cacheStatus, hasFailed ? response.reason : nil]
                .compactMap { $0 }.joined(separator: ", ")
            progress.printLine("\(request.url): \(response.status) (\(details))")
        }
        progress.add(failed: hasFailed ? 1 : 0)
    }

    /// The next request, when its turn has come.
    private func next() -> WarmRequest? {
        let (request, turn) = state.withLock { state -> (WarmRequest?, Int64) in
            guard state.next < requests.count else { return (nil, 0) }
            let request = requests[state.next]
            state.next += 1
            let now = Clock.monotonicMicroseconds()
            let turn = max(now, state.turn)
            if let pause { state.turn = turn + pause }
            return (request, pause == nil ? now : turn)
        }
        let wait = turn - Clock.monotonicMicroseconds()
        if request != nil, wait > 0 { usleep(UInt32(clamping: wait)) }
        return request
    }
}
