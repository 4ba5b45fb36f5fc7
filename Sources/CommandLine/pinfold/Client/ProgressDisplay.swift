import CLinux
import Clocks
import Locking
import PinfoldClient

/// Shows progress on standard error. On a terminal, one line for all transfers is redrawn;
/// otherwise each transfer gets a plain line from time to time.
final class ProgressDisplay: Sendable {
    private struct State {
        /// The running transfers, numbered in the order in which they began.
        var transfers: [Int: (name: String, value: TransferProgress.Value)] = [:]
        var begun = 0
        /// The bytes of the transfers that have ended.
        var endedBytes: Int64 = 0
        var rate = TransferRate()
        var isDrawn = false
        var drawn: Int64 = 0
        /// Whether drawing has stopped because content is on the terminal.
        var isOver = false
    }

    private let state = Locked(State())
    private let isOn: Bool
    private let isUpload: Bool
    private let isTerminal = isatty(STDERR_FILENO) == 1
    /// Whether standard output is a terminal, where content may share the progress line.
    private let outputIsTerminal = isatty(STDOUT_FILENO) == 1

    /// The intervals between two redraws and between two plain lines.
    private static let drawnMilliseconds: Int64 = 100
    private static let lineMilliseconds: Int64 = 5000

    init(isOn: Bool, upload: Bool) {
        self.isOn = isOn
        isUpload = upload
    }

    /// Shows a transfer until it is finished or the returned task is cancelled.
    func follow(_ progress: TransferProgress, named name: String) -> Task<Void, Never>? {
        guard isOn else { return nil }
        let number = state.withLock { state in
            state.begun += 1
            state.transfers[state.begun] = (name, progress.value)
            return state.begun
        }
        return Task { [self] in
            for await value in progress.updates() { moved(number, value) }
            state.withLock { state in
                guard let last = state.transfers.removeValue(forKey: number) else { return }
                state.endedBytes += bytes(last.value).moved
            }
        }
    }

    private func bytes(_ value: TransferProgress.Value) -> (moved: Int64, of: Int64?) {
        isUpload ? (value.sent, value.expectedToSend) : (value.received, value.expectedToReceive)
    }

    private func moved(_ number: Int, _ value: TransferProgress.Value) {
        let now = Clock.monotonicMilliseconds()
        // Written under the lock, so that the line and the state that it depends on agree.
        state.withLock { state in
            let line = line(number, value, now, &state)
            if let line { writeToStandardError(line) }
        }
    }

    private func line(
        _ number: Int, _ value: TransferProgress.Value, _ now: Int64, _ state: inout State
    ) -> String? {
        guard let name = state.transfers[number]?.name else { return nil }
        state.transfers[number] = (name, value)
        let sums = state.transfers.values.map { bytes($0.value) }
        let moved = state.endedBytes + sums.reduce(0) { $0 + $1.moved }
        state.rate.note(moved, at: now)
        guard !state.isOver else { return nil }
        let interval = isTerminal ? Self.drawnMilliseconds : Self.lineMilliseconds
        guard now - state.drawn >= interval else { return nil }
        let totals = sums.compactMap(\.of)
        // Drawing an empty line now would delay the first useful one.
        if isTerminal, moved == 0, totals.isEmpty { return nil }
        let isFirst = state.drawn == 0
        state.drawn = now
        // Plain lines are for long transfers only: skip the first.
        if !isTerminal, isFirst { return nil }
        guard isTerminal else {
            let (moved, total) = bytes(value)
            return ProgressText.line(name, moved, of: total, rate: state.rate.perSecond) + "\n"
        }
        state.isDrawn = true
        let total =
            totals.count == sums.count
            ? state.endedBytes + totals.reduce(0, +) : nil
        return "\r\u{1B}[K"
            + ProgressText.bar(moved, of: total, rate: state.rate.perSecond)
    }

    /// Prints a line that is not overdrawn.
    func printLine(_ text: String) {
        state.withLock { state in
            clear(&state)
            writeToStandardError(text)
        }
    }

    /// Writes to standard output. If that is a terminal, nothing is drawn from then on, because
    /// redrawing would erase the content's last line.
    func output(_ bytes: [UInt8]) throws(OutputError) {
        guard !bytes.isEmpty else { return }
        if outputIsTerminal {
            state.withLock { state in
                clear(&state)
                state.isOver = isTerminal
            }
        }
        try writeOutput(bytes)
    }

    /// Erases the progress line.
    func end() { state.withLock { clear(&$0) } }

    private func clear(_ state: inout State) {
        if state.isDrawn { writeToStandardError("\r\u{1B}[K") }
        state.isDrawn = false
    }
}

/// Formats progress.
enum ProgressText {
    private static let width = 30

    /// `[#####     ]  42 % 1.3 GiB of 3.0 GiB, 210.0 MiB/s, 0:08 left`
    static func bar(_ moved: Int64, of total: Int64?, rate: Int64?) -> String {
        guard let total, total > 0 else { return line(nil, moved, of: total, rate: rate) }
        let part = min(1, max(0, Double(moved) / Double(total)))
        let full = Int(part * Double(width))
        let bar =
            String(repeating: "#", count: full) + String(repeating: " ", count: width - full)
        return "[\(bar)] " + line(nil, moved, of: total, rate: rate)
    }

    static func line(_ name: String?, _ moved: Int64, of total: Int64?, rate: Int64?) -> String {
        var text = name.map { "\($0): " } ?? ""
        if let total, total > 0 { text += "\(min(100, moved * 100 / total)) % " }
        text += size(moved)
        if let total { text += " of \(size(total))" }
        guard let rate else { return text }
        text += ", \(size(rate))/s"
        if let total, rate > 0, total > moved {
            let seconds = (total - moved + rate - 1) / rate
            text += ", \(time(seconds)) left"
        }
        return text
    }

    /// A size in units of 1024, with one decimal.
    static func size(_ bytes: Int64) -> String {
        let units = ["KiB", "MiB", "GiB", "TiB"]
        guard bytes >= 1024 else { return "\(bytes) B" }
        var (value, unit) = (Double(bytes) / 1024, 0)
        while value >= 1023.95, unit < units.count - 1 {
            value /= 1024
            unit += 1
        }
        let tenths = Int64((value * 10).rounded())
        return "\(tenths / 10).\(tenths % 10) \(units[unit])"
    }

    /// `m:ss`, or `h:mm:ss`.
    static func time(_ seconds: Int64) -> String {
        func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60)
        guard hours > 0 else { return "\(minutes):\(two(seconds % 60))" }
        return "\(hours):\(two(minutes)):\(two(seconds % 60))"
    }
}
