import CLinux

/// The operational log's thread: writes what is queued, as fast as the file accepts it.
struct LogWriter: ~Copyable {
    /// How long it waits at a time for a file that accepts nothing, before it checks for closing.
    private static var patienceMilliseconds: Int64 { 100 }

    private let log: OperationalLog
    private let file: AccessLogFile

    init(log: OperationalLog, file: consuming AccessLogFile) {
        self.log = log
        self.file = file
    }

    /// Runs until the log is closed.
    consuming func run() {
        while let batch = log.next() {
            let lines = batch.bytes.withUnsafeBytes { write($0) }
            log.countWritten(lines)
            log.drop(batch.lineCount - min(lines, batch.lineCount))
        }
    }

    /// Writes the bytes until done, an error, or the log's time is up; returns how many lines were
    /// written.
    private func write(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        var start = 0
        loop: while start < bytes.count {
            switch file.write(UnsafeRawBufferPointer(rebasing: bytes[start...])) {
            case .wrote(let count): start += count
            case .failed: break loop
            case .wouldBlock:
                let remaining = log.remainingMilliseconds ?? Self.patienceMilliseconds
                guard remaining > 0 else { break loop }
                var state = pollfd(fd: file.descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&state, 1, Int32(clamping: min(remaining, Self.patienceMilliseconds)))
            }
        }
        return UInt64(bytes[..<start].count(where: { $0 == UInt8(ascii: "\n") }))
    }
}
