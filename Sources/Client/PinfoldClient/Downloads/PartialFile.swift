import CLinux
import Files

/// The file to which a download is written until it is complete and gets its final name, together
/// with its resume data in a file beside it. It is locked while it is open, so that only one
/// download writes it.
///
/// Calls may wait for the disk, and must be made on a thread that may block. Writes are ordered so
/// that wherever the process or the machine stops, resume data never belongs to other bytes than
/// those in the partial file:
///
///     start:   note ──► bytes removed ──► bytes ──► resume data ──► bytes …
///     end:     bytes synced ──► renamed ──► folder synced ──► resume data or note removed
///
/// The note takes the place of resume data, and only says that the file is a partial download: a
/// file without anything beside it belongs to somebody else.
struct PartialFile: Sendable {
    let path: String
    private let descriptor: Int32
    /// The number of bytes that belong to the download.
    private(set) var length: Int64 = 0
    /// The resume data, or `nil` if the download cannot be resumed.
    private(set) var resume: ResumeData?
    /// The number of bytes that are safely on disk.
    private var durable: Int64 = 0
    /// What the file beside it contains.
    private var beside = Sidecar.nothing
    /// The content of the file beside it, as last read or written by this download.
    private var known: [UInt8]?
    /// Whether the bytes are this download's, or there are none.
    private var isOwn: Bool

    private enum Sidecar {
        case nothing, note, resumeData
        /// What an earlier download has left.
        case old
    }

    /// The suffix after the destination's name.
    static let suffix = ".part"
    /// The suffix of the file with resume data, after the partial file's name.
    static let sidecarSuffix = ".resume"
    /// The number of bytes between two syncs: the most that a power failure can cost.
    static let syncedBytes: Int64 = 64 << 20

    static func sidecar(of path: String) -> String { path + sidecarSuffix }
    private var sidecar: String { Self.sidecar(of: path) }

    /// Opens or creates the file at a path.
    ///
    /// - Parameters:
    ///   - replaces: Whether an existing file may be replaced, whoever owns it.
    ///   - fits: Whether the resume data found beside the file belongs to this download.
    init(
        _ path: String, replaces: Bool = false, resumingIf fits: (ResumeData) -> Bool
    ) throws(DownloadError.Reason) {
        self.path = path
        let (descriptor, size) = try Self.open(path)
        self.descriptor = descriptor
        isOwn = size == 0
        var status = stat()
        if lstat(Self.sidecar(of: path), &status) == 0 { beside = .old }
        known = Self.contents(beside: path)
        guard size == 0 || replaces || known.map(Self.belongsToDownload) ?? false else {
            CLinux.close(descriptor)
            throw .partialFileUnknown(path)
        }
        guard size > 0, let data = Self.resumeData(beside: path), fits(data) else { return }
        // After a reboot, only what was synced is certain to be what was written.
        let isSameBoot = !data.boot.isEmpty && data.boot == FilePaths.boot
        let usable = isSameBoot ? size : min(size, data.durableBytes)
        guard usable > 0, usable <= data.expectedBytes ?? .max else { return }
        length = usable
        durable = min(usable, data.durableBytes)
        resume = data
        isOwn = true
    }

    /// Opens and locks the file that currently has this name: another download may move it away
    /// between the two steps.
    private static func open(_ path: String) throws(DownloadError.Reason) -> (Int32, Int64) {
        for _ in 0..<16 {
            let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
            let descriptor = open_with_mode(path, flags, 0o666)
            guard descriptor >= 0 else {
                if __errno_location().pointee == ELOOP { throw .partialFileUnsafe(path) }
                throw FileOperationError.last(.open, path)
            }
            do throws(DownloadError.Reason) {
                if let size = try lock(descriptor, path) { return (descriptor, size) }
            } catch {
                close(descriptor)
                throw error
            }
            close(descriptor)
        }
        throw .busy(path)
    }

    /// Locks the file and returns its size, or `nil` if another file has its name now.
    private static func lock(
        _ descriptor: Int32, _ path: String
    ) throws(DownloadError.Reason) -> Int64? {
        var (opened, named) = (stat(), stat())
        guard fstat(descriptor, &opened) == 0 else { throw FileOperationError.last(.open, path) }
        guard Int32(opened.st_mode) & S_IFMT == S_IFREG, opened.st_uid == geteuid() else {
            throw .partialFileUnsafe(path)
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            if __errno_location().pointee == EWOULDBLOCK { throw .busy(path) }
            throw FileOperationError.last(.lock, path)
        }
        guard lstat(path, &named) == 0, named.st_ino == opened.st_ino,
            named.st_dev == opened.st_dev, fstat(descriptor, &opened) == 0
        else { return nil }
        // If it has two names, the other one may be something else of the user's, or a destination
        // whose move was interrupted: only this name is removed.
        guard opened.st_nlink == 1 else {
            unlink(path)
            return nil
        }
        return Int64(opened.st_size)
    }

    /// Returns the resume data beside a file, or `nil` if there is none that can be read: the
    /// download then starts from the beginning.
    ///
    /// The path in the resume data is ignored, because a file has several paths and its folder may
    /// have been moved.
    static func resumeData(beside path: String) -> ResumeData? {
        guard let bytes = contents(beside: path),
            let text = String(validating: bytes, as: UTF8.self),
            var data = try? ResumeData(text: text)
        else { return nil }
        data.partialFile = path
        return data
    }

    private static func contents(beside path: String) -> [UInt8]? {
        FilePaths.contents(of: sidecar(of: path), most: ResumeData.maximumTextBytes)
    }

    /// Whether the content is resume data or a note. A note may be empty after a power failure.
    private static func belongsToDownload(_ beside: [UInt8]) -> Bool {
        beside.isEmpty || beside.starts(with: #"{"pinfold"#.utf8)
    }

    /// Whether the path still refers to the open file, which then has not been moved, removed or
    /// replaced.
    private var isNamed: Bool {
        var (opened, named) = (stat(), stat())
        return fstat(descriptor, &opened) == 0 && lstat(path, &named) == 0
            && named.st_ino == opened.st_ino && named.st_dev == opened.st_dev
    }

    private func checkName() throws(DownloadError.Reason) {
        guard isNamed else { throw .partialFileLost(path) }
    }

    // MARK: Writing

    /// Disregards the existing content. It is kept until something else is written.
    mutating func forget() {
        if resume != nil { isOwn = false }
        (resume, length, durable) = (nil, 0, 0)
    }

    /// Starts from the first byte.
    mutating func reset(_ resume: ResumeData?) throws(DownloadError.Reason) {
        try checkName()
        try keepNote()
        guard ftruncate(descriptor, 0) == 0 else { throw FileOperationError.last(.shorten, path) }
        (self.resume, length, durable, isOwn) = (resume, 0, 0, true)
    }

    /// Continues at a byte that exists or follows the last one.
    mutating func continueWriting(from offset: Int64, of total: Int64?) throws(DownloadError.Reason)
    {
        guard ftruncate(descriptor, off_t(offset)) == 0 else {
            throw FileOperationError.last(.shorten, path)
        }
        length = offset
        durable = min(durable, offset)
        if let total { resume?.expectedBytes = total }
    }

    /// Records that the existing content is complete.
    mutating func isWhole() {
        if resume?.expectedBytes == nil { resume?.expectedBytes = length }
    }

    /// Appends content.
    ///
    /// - Parameter isLast: Whether this is the end, so that no resume data is needed.
    mutating func write(_ parts: [[UInt8]], isLast: Bool) throws(DownloadError.Reason) {
        for part in parts { try write(part) }
        guard resume != nil, !isLast else { return }
        if length - durable >= Self.syncedBytes {
            try sync()
            try keepResumeData()
        } else if beside != .resumeData {
            try keepResumeData()
        }
    }

    private mutating func write(_ part: [UInt8]) throws(DownloadError.Reason) {
        var written = 0
        while written < part.count {
            let count = part[written...].withUnsafeBytes { rest in
                uninterrupted { pwrite(descriptor, rest.baseAddress, rest.count, off_t(length)) }
            }
            guard count > 0 else {
                throw FileOperationError.last(.write, path, count < 0 ? Int32(-count) : EIO)
            }
            written += count
            length += Int64(count)
        }
    }

    private mutating func sync() throws(DownloadError.Reason) {
        guard fdatasync(descriptor) == 0 else { throw FileOperationError.last(.sync, path) }
        durable = length
    }

    /// Replaces the resume data with that of the current content.
    private mutating func keepResumeData() throws(DownloadError.Reason) {
        resume?.receivedBytes = length
        resume?.durableBytes = durable
        guard let resume else { return }
        try replaceSidecar(by: Array(resume.text.utf8))
        beside = .resumeData
    }

    /// Writes the note that this is a partial download, replacing existing resume data.
    private mutating func keepNote() throws(DownloadError.Reason) {
        var status = stat()
        fstat(descriptor, &status)
        let note = Array(#"{"pinfoldPartialFile":1,"inode":\#(status.st_ino)}"#.utf8)
        if beside == .nothing {
            try make(note)
        } else {
            try replaceSidecar(by: note)
        }
        beside = .note
    }

    /// Replaces the file beside it and flushes it to disk.
    private mutating func replaceSidecar(by bytes: [UInt8]) throws(DownloadError.Reason) {
        try checkName()
        // There is one temporary name for all processes, so that processes that were killed leave
        // at most one file. Nobody else writes it while the partial file is locked.
        do throws(FileError) {
            try DurableFile.replace(
                sidecar, by: bytes, mode: 0o600, temporaryPath: sidecar + ".new")
        } catch {
            throw FileOperationError.of(error)
        }
        known = bytes
    }

    /// If the file did not exist before, it need not be flushed: most downloads end soon.
    private mutating func make(_ note: [UInt8]) throws(DownloadError.Reason) {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let descriptor = open_with_mode(sidecar, flags, 0o600)
        guard descriptor >= 0 else { throw FileOperationError.last(.open, sidecar) }
        defer { close(descriptor) }
        known = note
        let code = writeAll(note[...], to: descriptor)
        guard code == 0 else { throw FileOperationError.last(.write, sidecar, code) }
    }

    // MARK: End

    /// Gives the complete file its final name. The file stays open.
    mutating func finish(
        at destination: String, replaces: Bool
    ) throws(DownloadError.Reason) {
        guard fsync(descriptor) == 0 else { throw FileOperationError.last(.sync, path) }
        durable = length
        try checkName()
        try FilePaths.move(path, to: destination, replaces: replaces)
        isOwn = false
        try FilePaths.sync(folder: FilePaths.folder(of: destination))
        removeSidecar()
    }

    /// Stops the download.
    ///
    /// - Parameter keeping: Whether to keep what can be resumed. Anything else is removed.
    /// - Returns: The data to resume the download with.
    mutating func leave(keeping: Bool) -> ResumeData? {
        guard isOwn else { return nil }
        guard isNamed else {
            removeSidecar()
            return nil
        }
        guard keeping, resume != nil, length > 0 else {
            remove()
            return nil
        }
        do throws(DownloadError.Reason) {
            // If the disk is full, the earlier resume data is still correct.
            try sync()
            try keepResumeData()
        } catch {
            guard isNamed, Self.resumeData(beside: path) != nil else {
                if isNamed { remove() }
                return nil
            }
        }
        return resume
    }

    /// Another download may use the path by now, and so the file beside it.
    private func removeSidecar() {
        if let known, Self.contents(beside: path) == known { unlink(sidecar) }
    }

    /// Removes both files in an order that never leaves bytes without a note.
    private func remove() {
        ftruncate(descriptor, 0)
        unlink(sidecar)
        unlink(path)
    }

    /// Closes and unlocks the file. Must be called exactly once.
    func close() { CLinux.close(descriptor) }

    private static func close(_ descriptor: Int32) { CLinux.close(descriptor) }
    private func close(_ descriptor: Int32) { CLinux.close(descriptor) }
}
