import CLinux
import Files
import PinfoldTLS
import Trust

/// The file that keeps a ``PinUseTable`` across processes.
///
/// Next to it are files that a process had no time to rename: `pin-use.DIGITS.unfinished`. If they
/// are complete they count as well.
package enum PinUseFile {
    private static let header = "pinfold pin use 1\n"
    private static let maximumBytes = 4 << 20

    /// The table in a file, or `nil` if there is none, or it is damaged.
    package static func read(_ path: String) throws(ReportFolderError) -> PinUseTable? {
        try read(path, leftovers(of: path))
    }

    /// Whether the file exists, or an unfinished one.
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

    /// The paths of files that processes did not finish, or are writing.
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

/// One process's update of the file, with other processes locked out: several gateways may share
/// it, such as containers with one volume, each with the same process number.
final class PinUseUpdate {
    /// The file's contents afterwards: what is known about the pins of the table that was added.
    let table: PinUseTable
    /// `nil` if the file already contains everything.
    private let file: UnfinishedFile?
    private let leftovers: [String]
    /// The folder's descriptor, locked.
    private let descriptor: Int32

    /// Adds the contents of a table. Pinsets and pins that are not in the table are forgotten.
    ///
    /// - Parameter waits: whether to wait until another process has finished writing; if not, the
    ///   caller tries again later.
    /// - Returns: `nil` if another process is writing.
    /// - Throws: also if an existing file cannot be read. It is not overwritten: it may contain
    ///   many months of history.
    static func begin(
        _ table: PinUseTable, _ path: String, waits: Bool = false
    ) throws(ReportFolderError) -> PinUseUpdate? {
        let folder = Folder.of(path)
        let descriptor = try ReportFolderError.converting { () throws(FileError) in
            try Folder.make(folder)
            return try Folder.open(folder)
        }
        let locked = uninterrupted { flock(descriptor, LOCK_EX | (waits ? 0 : LOCK_NB)) }
        guard locked == 0 else {
            close(descriptor)
            if locked == -EWOULDBLOCK { return nil }
            throw ReportFolderError(folder, -locked)
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
        // Their writers are gone, or have not locked the folder. Unreadable ones stay.
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
            file = try ReportFolderError.converting { () throws(FileError) in
                try UnfinishedFile(bytes, for: path, mode: ReportFolder.mode)
            }
        }
        self.table = all
        (self.leftovers, self.descriptor) = (leftovers, descriptor)
    }

    deinit { close(descriptor) }

    /// Makes the update durable, completely or not at all.
    func finish() throws(ReportFolderError) {
        do throws(ReportFolderError) {
            if let file {
                try ReportFolderError.converting { () throws(FileError) in try file.finish() }
            }
        } catch {
            file?.discard()
            throw error
        }
        for leftover in leftovers { unlink(leftover) }
    }
}

/// Observes which pins match, and records it from time to time. Belongs to one thread.
struct PinUseRecorder {
    /// The interval between writes of the file, in milliseconds.
    static let intervalMilliseconds: Int64 = 600_000
    /// The delay after a failed write, in milliseconds.
    static let retryMilliseconds: Int64 = 60_000

    private let watch: PinReporter.UseWatch
    private var table = PinUseTable()
    private var pins: [String: [String]]
    private var before: [String: PinUseTable.Count] = [:]
    /// The file's contents after the last write.
    private var written: PinUseTable?
    private var writtenAt: Int64
    private var last: PinUseUpdate?
    private let onEvent: (ReportEvent) -> Void
    private var hasFailed = false
    /// Whether an earlier process left a file.
    private let wasThere: Bool

    /// - Parameter now: milliseconds of a monotonic clock.
    init(
        _ watch: PinReporter.UseWatch, pins: [String: [String]], now: Int64,
        onEvent: @escaping (ReportEvent) -> Void
    ) {
        self.watch = watch
        self.pins = pins
        self.onEvent = onEvent
        wasThere = PinUseFile.isThere(watch.path)
        // What is observed from now on is recorded soon.
        writtenAt = now - Self.intervalMilliseconds
    }

    /// Notes that other pins are in force: what was counted until then belongs to the previous
    /// ones.
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

    /// Whether the file lacks something. If there are no pins and no file, neither it nor its
    /// folder needs to be created.
    private var isNew: Bool {
        table != written && (wasThere || !table.pinsets.isEmpty || written != nil)
    }

    /// Checks the counters, and writes the file if it is due.
    ///
    /// - Parameters:
    ///   - wall: seconds since 1970.
    ///   - now: milliseconds of a monotonic clock.
    ///   - atOnce: whether it is due now.
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
            report(error)
        }
    }

    /// Writes what is known at the end to a file that gets its final name from ``finish()``.
    ///
    /// - Parameter wall: seconds since 1970.
    mutating func begin(wall: Int64) {
        note(wall: wall)
        guard isNew else { return }
        do throws(ReportFolderError) {
            last = try PinUseUpdate.begin(table, watch.path, waits: true)
        } catch {
            report(error)
        }
    }

    /// Makes that file durable, which takes as long as the disk takes.
    mutating func finish() {
        do throws(ReportFolderError) {
            try last.take()?.finish()
        } catch {
            report(error)
        }
    }

    private mutating func report(_ error: ReportFolderError) {
        if !hasFailed { onEvent(.useNotWritten("\(error)")) }
        hasFailed = true
    }
}
