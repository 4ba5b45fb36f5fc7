import CLinux
import Clocks
import Locking

/// Shows how many of something are done, on standard error: on a terminal as a bar that is redrawn,
/// otherwise as a line from time to time.
final class CountProgress: Sendable {
    private struct State {
        var done: Int64 = 0
        var failed: Int64 = 0
        var total: Int64?
        var shown: Int64
        var isDrawn = false
    }

    private let state: Locked<State>
    private let noun: String
    private let isOn: Bool
    private let isTerminal = isatty(STDERR_FILENO) == 1
    private let began = Clock.monotonicMilliseconds()

    /// The intervals between two redraws and between two plain lines.
    private static let drawnMilliseconds: Int64 = 100
    private static let lineMilliseconds: Int64 = 5000

    /// - Parameters:
    ///   - noun: what is counted, in the plural.
    ///   - total: how many there are; `nil` if that is not known yet.
    init(_ noun: String, total: Int64? = nil, isOn: Bool) {
        self.noun = noun
        self.isOn = isOn
        state = Locked(State(total: total, shown: Clock.monotonicMilliseconds()))
    }

    /// More are done, of which some may have failed.
    func add(_ count: Int64 = 1, failed: Int64 = 0) {
        guard isOn else { return }
        let now = Clock.monotonicMilliseconds()
        // Written under the lock, so that lines do not mix.
        state.withLock { state in
            state.done += count
            state.failed += failed
            let interval = isTerminal ? Self.drawnMilliseconds : Self.lineMilliseconds
            guard now - state.shown >= interval else { return }
            state.shown = now
            let text = Self.text(
                noun, state.done, of: state.total, failed: state.failed,
                milliseconds: now - began, hasBar: isTerminal)
            writeToStandardError(isTerminal ? "\r\u{1B}[K" + text : text + "\n")
            state.isDrawn = isTerminal
        }
    }

    /// Prints a line that is not overdrawn.
    func printLine(_ text: String) {
        state.withLock { state in
            clear(&state)
            writeToStandardError(text + "\n")
        }
    }

    /// Erases the bar.
    func end() { state.withLock { clear(&$0) } }

    private func clear(_ state: inout State) {
        if state.isDrawn { writeToStandardError("\r\u{1B}[K") }
        state.isDrawn = false
    }

    private static let width = 30

    /// `[######      ] 42 % 42 of 100 URLs, 10/s, 0:06 left, 3 failed`
    static func text(
        _ noun: String, _ done: Int64, of total: Int64?, failed: Int64, milliseconds: Int64,
        hasBar: Bool
    ) -> String {
        var text = ""
        if let total, total > 0 {
            let part = min(total, done)
            if hasBar {
                let full = Int(part) * width / Int(total)
                text +=
                    "[" + String(repeating: "#", count: full)
                    + String(repeating: " ", count: width - full) + "] "
            }
            text += "\(part * 100 / total) % \(done) of \(total) \(noun)"
        } else {
            text += "\(done) \(noun)"
        }
        let rate = milliseconds > 0 ? done * 1000 / milliseconds : 0
        text += ", \(rate)/s"
        if let total, rate > 0, total > done {
            text += ", \(ProgressText.time((total - done + rate - 1) / rate)) left"
        }
        if failed > 0 { text += ", \(failed) failed" }
        return text
    }
}
