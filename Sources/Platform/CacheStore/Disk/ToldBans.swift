import CLinux
import Files

// Bans of which one process has told another in the log of changes (`ChangeLog`).
//
//     handed over: ban ─► log, synchronized ─► acknowledged, if somebody follows
//                          │
//     follows:             └─► in force at the next lookup ─► rows swept ─► retired
//                                        └─► journal, before the log goes

extension DiskTier {
    /// Whether others have told of bans, as far as that is not taken yet.
    func takeTold() -> Bool {
        sharing.withLock { sharing in
            defer { sharing.hasToldBans = false }
            return sharing.hasToldBans
        }
    }

    /// What was taken could not be written down.
    func noteTold() { sharing.withLock { $0.hasToldBans = true } }

    /// Whether another process will find what it is told before its next lookup, and keep it.
    var isFollowed: Bool { FolderLock.isFollowed(files.lock) }

    /// Waits until what others were told is on the device.
    func syncTold() throws(PurgeError) {
        // Not under the lock, which lookups take.
        guard let descriptor = sharing.withLock({ $0.log?.duplicate() }) else {
            throw .notDurable(detail: "\(files.changes) cannot be opened")
        }
        defer { CLinux.close(descriptor) }
        guard uninterrupted({ fdatasync(descriptor) }) == 0 else {
            throw .notDurable(detail: "\(files.changes) cannot be written")
        }
        do throws(FileError) {
            try Folder.sync(options.folder)
        } catch {
            throw .notDurable(detail: error.description)
        }
    }
}

extension DiskWriter {
    /// Makes sure that the journal has the bans that others have told of, which are in the log of
    /// changes alone. Returns `false` if that is not possible.
    func keepToldBans() -> Bool {
        guard tier.takeTold() else { return true }
        let isKept = tier.purges.withLock { file in
            let (bans, serial) = tier.bans.unfinished
            let made = try? PurgeJournal.create(files.purges, bans, lastSerial: serial)
            if let made { file.journal = made }
            return made != nil
        }
        if !isKept { tier.noteTold() }
        return isKept
    }
}
