import CLinux
import Pinning
import TLS

/// The file that keeps a ``PinUseTable`` from one process to the next.
package enum PinUseFile {
    private static let header = "pinfold pin use 1\n"
    private static let maximumBytes = 4 << 20

    /// The table of a file; nil: there is none, or it is damaged.
    package static func read(_ path: String) -> PinUseTable? {
        guard let bytes = ReportFolder.contents(of: path, most: maximumBytes),
            bytes.count <= maximumBytes, bytes.starts(with: header.utf8)
        else { return nil }
        let parts = bytes.dropFirst(header.utf8.count).split(
            separator: UInt8(ascii: "\n"), maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let digest = SHA256Digest(hashing: Array(parts[1]).span),
            parts[0].elementsEqual(digest.fingerprintText.utf8)
        else { return nil }
        return PinUseTable(text: String(decoding: parts[1], as: UTF8.self))
    }

    /// Writes a table, whole or not at all.
    package static func write(
        _ table: PinUseTable, to path: String
    ) throws(ReportFolderError) {
        let text = Array(table.text.utf8)
        guard let digest = SHA256Digest(hashing: text.span) else {
            throw ReportFolderError(path, ENOMEM)
        }
        try ReportFolder.write(
            Array("\(header)\(digest.fingerprintText)\n".utf8) + text, to: path)
    }
}

/// Watches which pins match, and writes it down now and then. Belongs to one thread.
struct PinUseRecorder {
    /// Between two times that the file is written, in milliseconds.
    static let intervalMilliseconds: Int64 = 600_000

    private let watch: PinReporter.UseWatch
    private var table: PinUseTable
    private var pins: [String: [String]]
    private var before: [String: PinUseTable.Count] = [:]
    private var written: PinUseTable
    private var writtenAt: Int64
    private let tell: (ReportEvent) -> Void
    private var hasFailed = false

    /// - Parameter now: milliseconds of a clock that never goes back.
    init(
        _ watch: PinReporter.UseWatch, pins: [String: [String]], now: Int64,
        tell: @escaping (ReportEvent) -> Void
    ) {
        self.watch = watch
        self.pins = pins
        self.tell = tell
        table = PinUseFile.read(watch.path) ?? PinUseTable()
        written = table
        // What is watched from now on is written down soon.
        writtenAt = now - Self.intervalMilliseconds
    }

    /// Looks at the counters, and writes the file if it is time to.
    ///
    /// - Parameters:
    ///   - next: the pins of the configuration in force.
    ///   - wall: seconds since 1970.
    ///   - now: milliseconds of a clock that never goes back.
    ///   - atOnce: it is time to.
    mutating func look(
        pins next: [String: [String]], wall: Int64, now: Int64, atOnce: Bool = false
    ) {
        let counts = watch.counts()
        // What was counted until now is the pins' of the configuration that was in force.
        table.note(counts, since: before, pins: pins, now: wall)
        before = counts
        if next != pins {
            pins = next
            table.note([:], since: [:], pins: pins, now: wall)
        }
        guard table != written, atOnce || now - writtenAt >= Self.intervalMilliseconds else {
            return
        }
        writtenAt = now
        do throws(ReportFolderError) {
            try PinUseFile.write(table, to: watch.path)
            written = table
            hasFailed = false
        } catch {
            if !hasFailed { tell(.useNotWritten("\(error)")) }
            hasFailed = true
        }
    }
}
