import CLinux

/// The access log's thread: collects the workers' records, formats them as lines and writes them.
///
///     collect ──nothing──► sleep ──woken──► pace ──┐
///        ▲  └────lines───► write ──all taken─► pace │
///        │                   └──more─┐            │
///        └───────────────────────────┴────────────┘
///
/// `pace` lets lines accumulate for `flushMilliseconds`; a half-full ring, a request and closing
/// cut it short. While a pipe or terminal accepts nothing, `write` waits for it and the rings fill
/// up.
struct AccessLogWriter: ~Copyable {
    /// Lines are written when this many bytes have accumulated, or when there are no more.
    private static var writeBytes: Int { 128 * 1024 }
    /// How far one line may exceed that: its texts with each byte escaped, and the rest.
    private static var lineBytes: Int {
        6 * (FlowQueue.maximumTextBytes + HeadFields.maximumBytes) + 32 * 1024
    }

    private let core: AccessLogCore
    private var file: AccessLogFile
    private var formatter: AccessLogFormatter
    private var changesSeen: UInt64 = 0
    private var ends: [UInt64]
    private var firstRing = 0
    private var output: LineBuffer
    private var lines = 0
    /// Whether the file ends in the middle of a line.
    private var isTorn = false
    /// Lines lost since writing began to fail; `nil` while it works.
    private var lostLines: UInt64?

    init(core: AccessLogCore, file: consuming AccessLogFile) {
        self.core = core
        self.file = file
        // A reopen that was requested before the thread ran is left for `applyChanges`.
        let request = core.latestRequest
        formatter = AccessLogFormatter(request)
        ends = core.rings.map { _ in 0 }
        output = LineBuffer(
            capacity: AccessLogWriter.writeBytes + AccessLogWriter.lineBytes)
    }

    /// Runs until the log is closed.
    consuming func run() {
        while true {
            // Closing is checked before the rings, and the rings before the requests. This way
            // everything logged before `close` was called is seen, and a line logged after `reopen`
            // returned is never written before the file was reopened.
            let isClosing = core.isClosing
            for index in core.rings.indices { ends[index] = core.rings[index].headPosition }
            applyChanges()
            let isDrained = collect()
            if lines == 0 {
                if isClosing { break }
                core.sleep()
                pace()
            } else {
                write()
                if isDrained { pace() }
            }
        }
    }

    private func pace() {
        guard !core.isClosing else { return }
        core.bell.wait(milliseconds: core.limits.flushMilliseconds)
    }

    /// Formats what is queued as lines. Returns whether everything before `ends` was taken.
    private mutating func collect() -> Bool {
        output.removeAll()
        lines = 0
        // Ends the partial line that a failed write left behind.
        if isTorn { _ = output.endLine() }
        let count = core.rings.count
        for step in 0..<count {
            let index = (firstRing + step) % count
            let isDrained = core.rings[index].drain(upTo: ends[index]) { entry in
                if formatter.append(entry, to: &output) {
                    lines += 1
                } else {
                    core.countFailed(1)
                }
                return output.count < AccessLogWriter.writeBytes
            }
            guard isDrained else {
                // The next one comes first next time: a busy worker must not starve the others.
                firstRing = (index + 1) % count
                return false
            }
        }
        return true
    }

    /// Applies what was requested since the last time. Returns whether the file was reopened.
    @discardableResult
    private mutating func applyChanges() -> Bool {
        let changes = core.changeCount
        guard changes != changesSeen else { return false }
        changesSeen = changes
        let request = core.takeRequest()
        formatter = AccessLogFormatter(request)
        // The process's own output cannot be opened anew: a line that it has a part of goes on.
        guard request.reopen, !file.isProcessOutput(at: request.path) else { return false }
        do {
            file = try AccessLogFile(path: request.path)
            isTorn = false
            return true
        } catch {
            guard case .open(let path, let code) = error else { return false }
            core.onEvent(.reopenFailed(path: path, code: code))
            return false
        }
    }

    // MARK: Writing

    /// Writes the collected lines, or drops those that cannot be written.
    private mutating func write() {
        var start = 0
        while start < output.count {
            switch file.write(UnsafeRawBufferPointer(rebasing: output.bytes[start...])) {
            case .wrote(let count):
                start += count
            case .failed(let code):
                return drop(from: start, because: code)
            case .wouldBlock:
                switch waitForFile() {
                case .writable: break
                case .timeIsUp: return drop(from: start, because: nil)
                case .reopened: start = skipPartOfLine(start)
                }
            }
        }
        isTorn = false
        core.countWritten(lines)
        if let lostLines { core.onEvent(.writeRecovered(lines: lostLines)) }
        lostLines = nil
    }

    private enum Wait {
        case writable, timeIsUp, reopened
    }

    /// Waits until the file accepts bytes again, closing runs out of time, or the file is reopened.
    private mutating func waitForFile() -> Wait {
        while true {
            let milliseconds = core.remainingMilliseconds
            guard milliseconds != 0 else { return .timeIsUp }
            var states = [
                pollfd(fd: file.descriptor, events: Int16(POLLOUT), revents: 0),
                pollfd(fd: core.bell.descriptor, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&states, 2, Int32(clamping: milliseconds)) > 0 else { continue }
            if states[1].revents != 0 {
                core.bell.clear()
                if applyChanges() { return .reopened }
            }
            if states[0].revents != 0 { return .writable }
        }
    }

    /// Where the next complete line starts: the rest of a line that began in another file is lost.
    private mutating func skipPartOfLine(_ start: Int) -> Int {
        guard isInLine(start) else { return start }
        if start > 0 {
            lines -= 1
            core.countFailed(1)
        }
        let end = output.bytes[start...].firstIndex(of: UInt8(ascii: "\n")) ?? output.count - 1
        return end + 1
    }

    /// Whether the bytes before `start` end in the middle of a line. (At the start, `isTorn`
    /// describes the file; the first byte of the output then ends its line.)
    private func isInLine(_ start: Int) -> Bool {
        start > 0 ? output.bytes[start - 1] != UInt8(ascii: "\n") : isTorn
    }

    /// Gives up the lines that were not written completely.
    private mutating func drop(from start: Int, because code: Int32?) {
        var written = output.bytes[..<start].count(where: { $0 == UInt8(ascii: "\n") })
        if isTorn && start > 0 { written -= 1 }
        isTorn = isInLine(start)
        core.countWritten(written)
        core.countFailed(lines - written)
        guard let code else { return }
        if lostLines == nil { core.onEvent(.writeFailed(code: code)) }
        lostLines = (lostLines ?? 0) + UInt64(lines - written)
    }
}
