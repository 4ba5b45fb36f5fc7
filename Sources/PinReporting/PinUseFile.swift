import CLinux
import Pinning
import TLS

/// The file that keeps a ``PinUseTable`` from one process to the next.
package enum PinUseFile {
    private static let header = "pinfold pin use 1\n"
    private static let maximumBytes = 4 << 20

    /// The table of a file; nil: there is none, or it is damaged.
    package static func read(_ path: String) throws(ReportFolderError) -> PinUseTable? {
        guard let bytes = try ReportFolder.contents(of: path, most: maximumBytes),
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
    ///
    /// - Parameter syncs: it is on the disk then.
    package static func write(
        _ table: PinUseTable, to path: String, syncs: Bool = true
    ) throws(ReportFolderError) {
        let text = Array(table.text.utf8)
        guard let digest = SHA256Digest(hashing: text.span) else {
            throw ReportFolderError(path, ENOMEM)
        }
        try ReportFolder.write(
            Array("\(header)\(digest.fingerprintText)\n".utf8) + text, to: path, syncs: syncs)
    }
}

/// Watches which pins match, and writes it down now and then. Belongs to one thread.
struct PinUseRecorder {
    /// Between two times that the file is written, in milliseconds.
    static let intervalMilliseconds: Int64 = 600_000

    private let watch: PinReporter.UseWatch
    private var table = PinUseTable()
    private var pins: [String: [String]]
    private var before: [String: PinUseTable.Count] = [:]
    /// What the file has; nil: it could not be read yet.
    private var written: PinUseTable?
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
        // What is watched from now on is written down soon.
        writtenAt = now - Self.intervalMilliseconds
        // Where it fails it is tried again, and told of then.
        try? read()
    }

    /// Notes that other pins are in force: what was counted until then is of those before.
    mutating func note(_ changes: [ReporterCore.PinChange]) {
        for change in changes {
            table.note(change.counts, since: before, pins: pins, now: change.wall)
            (before, pins) = (change.counts, change.pins)
            table.note([:], since: [:], pins: pins, now: change.wall)
        }
    }

    /// Looks at the counters, and writes the file if it is time to.
    ///
    /// - Parameters:
    ///   - wall: seconds since 1970.
    ///   - now: milliseconds of a clock that never goes back.
    ///   - atOnce: it is time to.
    ///   - syncs: what is written is on the disk then.
    mutating func look(wall: Int64, now: Int64, atOnce: Bool = false, syncs: Bool = true) {
        do throws(ReportFolderError) {
            if written == nil { try read() }
            let counts = watch.counts()
            table.note(counts, since: before, pins: pins, now: wall)
            before = counts
            guard table != written, atOnce || now - writtenAt >= Self.intervalMilliseconds else {
                return
            }
            writtenAt = now
            try PinUseFile.write(table, to: watch.path, syncs: syncs)
            written = table
            hasFailed = false
        } catch {
            if !hasFailed { tell(.useNotWritten("\(error)")) }
            hasFailed = true
        }
    }

    /// Reads what an earlier process has written. A file that cannot be read is not written over:
    /// what it has may be of many months.
    private mutating func read() throws(ReportFolderError) {
        table = try PinUseFile.read(watch.path) ?? PinUseTable()
        written = table
    }
}
