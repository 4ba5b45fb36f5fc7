import CLinux
import Clocks
import Files

/// The file of the journal of purges.
struct PurgeFile: Sendable {
    /// Whether it is this process that writes it, as it does the database.
    var isOurs = false
    /// `nil` if it could not be opened.
    var journal: PurgeJournal?
}

/// A pass over the rows that bans are about, in the order of their ids.
struct DiskSweep {
    /// It is for bans up to this serial,
    let serial: UInt64
    /// and for rows up to this one.
    let through: Int64
    /// Which rows may be those that bans are about.
    let candidates: RowCandidates
    /// The last row that was looked at.
    var place: Int64 = 0
}

/// A row that a ban is about.
private struct BannedRow {
    let id: Int64
    let key: [UInt8]
    /// The body whose chunks it has; 0 if it has none.
    let body: Int64
    let verdict: BanVerdict
}

/// Carries out on disk what was purged by patterns: the rows are removed in small steps between
/// other work. Nobody finds them meanwhile.
extension DiskWriter {
    /// The rows looked at in one step.
    private static let sweepRows = 512
    /// Nanoseconds until bans that others hold are looked at again.
    private static let retirePause: Int64 = 1_000_000_000

    /// Looks at some more rows, and ends the bans that have been carried out.
    func sweepSome() {
        guard !isAway, connection != nil, tier.bans.isInForce,
            Clock.monotonicNanoseconds() >= sweepAt
        else { return }
        if sweep == nil, let (serial, through) = tier.bans.diskTarget {
            sweep = DiskSweep(
                serial: serial, through: through,
                candidates: RowCandidates(
                    tier.bans.unswept, seed: tier.index.seed,
                    hasFurtherTags: !tier.bans.tagFields.isEmpty))
        }
        guard let current = sweep else {
            retireBans()
            sweepAt = Clock.monotonicNanoseconds() + Self.retirePause
            return
        }
        do throws(DatabaseError) {
            let place = try step(current)
            // The database may have been closed meanwhile.
            guard sweep?.serial == current.serial, connection != nil else { return }
            if let place {
                sweep?.place = place
            } else {
                sweep = nil
                tier.bans.sweptDisk(through: current.serial)
                try restartLog(truncating: false)
                retireBans()
            }
        } catch {
            fail(error)
        }
    }

    /// Returns where to continue; `nil` at the end.
    private func step(_ sweep: DiskSweep) throws(DatabaseError) -> Int64? {
        guard filesExist(), connection != nil else { return nil }
        var last: Int64?
        try transaction { connection throws(DatabaseError) in
            var found: [BannedRow] = []
            last = try connection.visitRecords(
                after: sweep.place, through: sweep.through, limit: Self.sweepRows,
                where: sweep.candidates.mayBe
            ) { id, record in
                guard let text = EntryRecord.text(record) else { return }
                let verdict = tier.bans.verdict(key: text.key, head: text.head, .row(id))
                guard !verdict.isNone else { return }
                found.append(
                    BannedRow(
                        id: id, key: [UInt8](text.key), body: EntryRecord.bodyID(record),
                        verdict: verdict))
            }
            for row in found { try carryOut(row, connection) }
        }
        try afterCommit()
        return last
    }

    private func carryOut(
        _ row: BannedRow, _ connection: WriterConnection
    ) throws(DatabaseError) {
        switch row.verdict {
        case .none: return
        case .gone:
            let known = row.key.withUnsafeBytes { tier.index.remove(id: row.id, key: $0) }
            if let known {
                _ = try rows.remove(known, connection)
            } else {
                // It was replaced or removed, which is queued, and would be found again if the
                // process were killed before that is carried out. Its chunks are for that to remove
                // or to take over; if it is not carried out, for the next start.
                try connection.remove(entry: row.id)
                if row.body > 0 { try connection.insert(incomplete: row.body) }
            }
        case .stale(_, let since):
            _ = row.key.withUnsafeBytes { tier.index.setStale(id: row.id, key: $0) }
            try connection.setStale(row.id, since: since)
        }
        tier.bans.count(row.verdict, inMemory: false)
    }

    /// Removes from memory what another process has purged. The rows are for that one to remove;
    /// until they are, the bans stay in force here.
    func sweepMemory() {
        guard let memory, let target = tier.bans.memoryTarget else { return }
        var place: MemoryTier.Place? = MemoryTier.Place()
        while let from = place { place = memory.sweep(from: from) }
        tier.bans.sweptMemory(through: target)
        tier.bans.ifMemoryIsSwept {
            tier.attention.bitwiseAnd(~DiskTier.purging, ordering: .sequentiallyConsistent)
        }
    }

    /// Ends the bans that have been carried out.
    func retireBans() {
        let known = tier.bans.settled
        let finished = tier.bans.retire(
            known: known, before: memory?.firstSuspicion, pending: tier.index.firstWaiting)
        tier.purges.withLock { file in
            guard file.isOurs, let open = file.journal else { return }
            open.retire(through: finished)
            if open.isLong { file.journal = compact(open) }
        }
    }

    /// Begins the journal anew, with what is left.
    private func compact(_ journal: PurgeJournal) -> PurgeJournal {
        let (bans, serial) = tier.bans.unfinished
        let path = files.purges
        return (try? PurgeJournal.create(path, bans, lastSerial: serial)) ?? journal
    }

    /// Reads which bans the last process left, and begins a journal of our own. Without one nothing
    /// can be purged, but everything served.
    func openPurges(lastID: Int64) {
        let found = PurgeJournal.contents(files.purges)
        tier.bans.take(found, lastID: lastID)
        tier.index.skip(through: tier.bans.lastRow)
        sweep = nil
        sweepAt = 0
        let hasTold = tier.takeTold()
        let (bans, serial) = tier.bans.unfinished
        let isKept = tier.purges.withLock { file in
            file.isOurs = true
            // Without any ban there need be no file; the first purge makes one.
            guard !bans.isEmpty || found.isDamaged else { return true }
            file.journal = try? PurgeJournal.create(files.purges, bans, lastSerial: serial)
            return file.journal != nil
        }
        if hasTold, !isKept { tier.noteTold() }
    }

    /// From now on the journal is another process's.
    func closePurges() {
        tier.purges.withLock { $0 = PurgeFile() }
        sweep = nil
    }
}

extension DiskTier {
    /// Writes bans down, and waits until they are on the device.
    func writeDown(_ written: [Ban], through serial: UInt64) throws(PurgeError) {
        var failure: PurgeError?
        purges.withLock { file in
            guard file.isOurs else {
                failure = .notReady
                return
            }
            do throws(FileError) {
                guard let open = file.journal else { throw FileError(.open, files.purges, ENOENT) }
                try open.append(written)
            } catch {
                // It may have been removed, or not have been there.
                do throws(FileError) {
                    let (all, last) = bans.unfinished
                    file.journal = try PurgeJournal.create(files.purges, all, lastSerial: last)
                } catch {
                    failure = .notDurable(detail: error.description)
                }
            }
        }
        // The rows of keys are queued for removal before this; those of patterns are looked for
        // after it.
        _ = queue.append(.barrier { [bans] in bans.keysAreGone(through: serial) })
        if let failure { throw failure }
    }
}

extension EntryRecord {
    /// The body whose chunks a record refers to; 0 for none.
    static func bodyID(_ record: UnsafeRawBufferPointer) -> Int64 {
        guard record.count >= headerBytes else { return 0 }
        return Int64(littleEndian: record.loadUnaligned(fromByteOffset: 56, as: Int64.self))
    }

    /// The key and the head in a record; `nil` if it is none.
    static func text(
        _ record: UnsafeRawBufferPointer
    ) -> (key: UnsafeRawBufferPointer, head: UnsafeRawBufferPointer)? {
        guard record.count >= headerBytes else { return nil }
        func count(_ offset: Int) -> Int {
            Int(UInt32(littleEndian: record.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
        }
        let (key, vary, head) = (count(4), count(8), count(12))
        guard key + vary + head + headerBytes == record.count else { return nil }
        let start = headerBytes + key + vary
        return (
            UnsafeRawBufferPointer(rebasing: record[headerBytes..<headerBytes + key]),
            UnsafeRawBufferPointer(rebasing: record[start...])
        )
    }
}
