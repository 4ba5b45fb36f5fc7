import CLinux
import DurableFiles
import PinfoldTLS
import Trust

/// The file that keeps a ``PinUseTable`` from one process to the next.
///
/// Beside it is what a process had no time to give its name: `pin-use.DIGITS.unfinished`. Where
/// that is whole it counts as well.
package enum PinUseFile {
    private static let header = "pinfold pin use 1\n"
    private static let maximumBytes = 4 << 20

    /// The table of a file; nil: there is none, or it is damaged.
    package static func read(_ path: String) throws(ReportFolderError) -> PinUseTable? {
        try read(path, leftovers(of: path))
    }

    /// Whether there is a file, or what was to be one.
    fileprivate static func isThere(_ path: String) -> Bool {
        access(path, F_OK) == 0 || !leftovers(of: path).isEmpty
    }

    fileprivate static func read(
        _ path: String, _ leftovers: [String]
    ) throws(ReportFolderError) -> PinUseTable? {
        var table = try contents(of: path)
        for leftover in leftovers {
            guard let found = try? contents(of: leftover) else { continue }
            table = table ?? PinUseTable()
            table?.add(found)
        }
        return table
    }

    fileprivate static func contents(of path: String) throws(ReportFolderError) -> PinUseTable? {
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

    /// The paths of what processes did not finish, or are writing.
    fileprivate static func leftovers(of path: String) -> [String] {
        let folder = Folder.of(path)
        let name = path.dropFirst(path.lastIndex(of: "/") == nil ? 0 : folder.utf8.count + 1)
        return ((try? ReportFolder.names(in: folder)) ?? []).compactMap {
            UnfinishedFile.finishedName(of: $0) == String(name) ? "\(folder)/\($0)" : nil
        }
    }

    fileprivate static func bytes(
        _ table: PinUseTable, _ path: String
    ) throws(ReportFolderError) -> [UInt8] {
        let text = Array(table.text.utf8)
        guard let digest = SHA256Digest(hashing: text.span) else {
            throw ReportFolderError(path, ENOMEM)
        }
        return Array("\(header)\(digest.fingerprintText)\n".utf8) + text
    }
}

/// What one process adds to the file, while no other one does: several gateways may have it, as
/// containers with one volume have, and each with the same process number.
final class PinUseUpdate {
    /// What the file has after it: what is known of the pins of the table that was added.
    let table: PinUseTable
    /// Nil: the file has all that already.
    private let file: UnfinishedFile?
    private let leftovers: [String]
    /// The folder's, locked.
    private let descriptor: Int32

    /// Adds what a table knows. What it does not have of pinsets and pins is forgotten.
    ///
    /// - Parameter waits: until another process has written; false: it is tried another time.
    /// - Returns: nil where another process writes.
    /// - Throws: also where there is a file that cannot be read. That is not written over: what it
    ///   has may be of many months.
    static func begin(
        _ table: PinUseTable, _ path: String, waits: Bool = false
    ) throws(ReportFolderError) -> PinUseUpdate? {
        let folder = Folder.of(path)
        try ReportFolder.make(folder)
        let descriptor = open_with_mode(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard descriptor >= 0 else { throw ReportFolderError(folder) }
        while flock(descriptor, LOCK_EX | (waits ? 0 : LOCK_NB)) != 0 {
            let error = ReportFolderError(folder)
            if error.code == EINTR { continue }
            close(descriptor)
            if error.code == EWOULDBLOCK { return nil }
            throw error
        }
        do throws(ReportFolderError) {
            return try PinUseUpdate(table, path, descriptor)
        } catch {
            close(descriptor)
            throw error
        }
    }

    private init(
        _ table: PinUseTable, _ path: String, _ descriptor: Int32
    ) throws(ReportFolderError) {
        // Whoever wrote them is gone, or has not locked the folder. What cannot be read stays.
        let leftovers = PinUseFile.leftovers(of: path).filter { leftover in
            do throws(ReportFolderError) {
                _ = try PinUseFile.contents(of: leftover)
                return true
            } catch {
                return false
            }
        }
        let before = try PinUseFile.read(path, [])
        var all = try PinUseFile.read(path, leftovers) ?? PinUseTable()
        all.add(table)
        all.keep(only: table)
        if all == before, leftovers.isEmpty {
            file = nil
        } else {
            let bytes = try PinUseFile.bytes(all, path)
            file = try ReportFolderError.telling { () throws(FileError) in
                try UnfinishedFile(bytes, for: path, mode: ReportFolder.mode)
            }
        }
        self.table = all
        (self.leftovers, self.descriptor) = (leftovers, descriptor)
    }

    deinit { close(descriptor) }

    /// Has it on the disk, whole or not at all.
    func finish() throws(ReportFolderError) {
        do throws(ReportFolderError) {
            if let file {
                try ReportFolderError.telling { () throws(FileError) in try file.finish() }
            }
        } catch {
            file?.discard()
            throw error
        }
        for leftover in leftovers { unlink(leftover) }
    }
}

/// Watches which pins match, and writes it down now and then. Belongs to one thread.
struct PinUseRecorder {
    /// Between two times that the file is written, in milliseconds.
    static let intervalMilliseconds: Int64 = 600_000
    /// After it could not be written, in milliseconds.
    static let retryMilliseconds: Int64 = 60_000

    private let watch: PinReporter.UseWatch
    private var table = PinUseTable()
    private var pins: [String: [String]]
    private var before: [String: PinUseTable.Count] = [:]
    /// What the file had after it was written last.
    private var written: PinUseTable?
    private var writtenAt: Int64
    private var last: PinUseUpdate?
    private let tell: (ReportEvent) -> Void
    private var hasFailed = false
    /// Whether an earlier process has left a file.
    private let wasThere: Bool

    /// - Parameter now: milliseconds of a clock that never goes back.
    init(
        _ watch: PinReporter.UseWatch, pins: [String: [String]], now: Int64,
        tell: @escaping (ReportEvent) -> Void
    ) {
        self.watch = watch
        self.pins = pins
        self.tell = tell
        wasThere = PinUseFile.isThere(watch.path)
        // What is watched from now on is written down soon.
        writtenAt = now - Self.intervalMilliseconds
    }

    /// Notes that other pins are in force: what was counted until then is of those before.
    mutating func note(_ changes: [ReporterCore.PinChange]) {
        for change in changes {
            table.note(change.counts, since: before, pins: pins, now: change.wall)
            (before, pins) = (change.counts, change.pins)
            table.note([:], since: [:], pins: pins, now: change.wall)
        }
    }

    private mutating func note(wall: Int64) {
        let counts = watch.counts()
        table.note(counts, since: before, pins: pins, now: wall)
        before = counts
    }

    /// Whether the file lacks something: where there are no pins and there is none, it need not be
    /// made, nor its folder.
    private var isNew: Bool {
        table != written && (wasThere || !table.pinsets.isEmpty || written != nil)
    }

    /// Looks at the counters, and writes the file if it is time to.
    ///
    /// - Parameters:
    ///   - wall: seconds since 1970.
    ///   - now: milliseconds of a clock that never goes back.
    ///   - atOnce: it is time to.
    mutating func look(wall: Int64, now: Int64, atOnce: Bool = false) {
        note(wall: wall)
        guard isNew, atOnce || now - writtenAt >= Self.intervalMilliseconds else { return }
        do throws(ReportFolderError) {
            guard let update = try PinUseUpdate.begin(table, watch.path) else { return }
            writtenAt = now
            table = update.table
            try update.finish()
            written = table
            hasFailed = false
        } catch {
            writtenAt = now - Self.intervalMilliseconds + Self.retryMilliseconds
            told(error)
        }
    }

    /// Writes what is known at the end to a file that gets its name from ``finish()``.
    ///
    /// - Parameter wall: seconds since 1970.
    mutating func begin(wall: Int64) {
        note(wall: wall)
        guard isNew else { return }
        do throws(ReportFolderError) {
            last = try PinUseUpdate.begin(table, watch.path, waits: true)
        } catch {
            told(error)
        }
    }

    /// Has that on the disk, which takes as long as the disk takes.
    mutating func finish() {
        do throws(ReportFolderError) {
            try last.take()?.finish()
        } catch {
            told(error)
        }
    }

    private mutating func told(_ error: ReportFolderError) {
        if !hasFailed { tell(.useNotWritten("\(error)")) }
        hasFailed = true
    }
}
