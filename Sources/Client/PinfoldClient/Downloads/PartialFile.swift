import CLinux
import DurableFiles

/// The file that a download is written to, until it is complete and gets its name; beside it lies
/// its resume data. Locked while it is open: one download writes it.
///
/// Each call may wait for the disk, and is made on a thread that may. What is written is in this
/// order, so that wherever the process or the machine stops, resume data never stands beside bytes
/// of something else:
///
///     anew:    note ──► bytes removed ──► bytes ──► resume data ──► bytes …
///     at end:  bytes synced ──► renamed ──► folder synced ──► resume data or note removed
///
/// The note lies where resume data does, and says only that the file is a download's: bytes beside
/// which nothing lies are somebody else's.
struct PartialFile: Sendable {
    let path: String
    private let descriptor: Int32
    /// Bytes that belong to the download.
    private(set) var length: Int64 = 0
    /// By which it can go on; nil: it cannot.
    private(set) var resume: ResumeData?
    /// Bytes that are on the disk whatever happens.
    private var durable: Int64 = 0
    /// What lies beside it.
    private var beside = Beside.nothing
    /// What this download has found or written beside it last.
    private var known: [UInt8]?
    /// Its bytes are this download's, or there are none.
    private var isOwn: Bool

    private enum Beside {
        case nothing, note, resumeData
        /// What an earlier download has left.
        case old
    }

    /// Behind the name of the destination.
    static let suffix = ".part"
    /// Behind the name of the partial file: its resume data.
    static let sidecarSuffix = ".resume"
    /// Bytes between two times that they are brought to the disk: as much as a loss of power costs.
    static let syncedBytes: Int64 = 64 << 20

    static func sidecar(of path: String) -> String { path + sidecarSuffix }
    private var sidecar: String { Self.sidecar(of: path) }

    /// Opens the file of a path, or makes it.
    ///
    /// - Parameters:
    ///   - replaces: What is there may be anybody's.
    ///   - fits: Whether resume data that lies beside it is of this download.
    init(
        _ path: String, replaces: Bool = false, resumingIf fits: (ResumeData) -> Bool
    ) throws(DownloadProblem) {
        self.path = path
        let (descriptor, size) = try Self.open(path)
        self.descriptor = descriptor
        isOwn = size == 0
        var status = stat()
        if lstat(Self.sidecar(of: path), &status) == 0 { beside = .old }
        known = Self.contents(beside: path)
        guard size == 0 || replaces || known.map(Self.isOfDownload) ?? false else {
            CLinux.close(descriptor)
            throw .partialFileUnknown(path)
        }
        guard size > 0, let data = Self.resumeData(beside: path), fits(data) else { return }
        // After a restart of the machine only what was synced is sure to be what was written.
        let isSameBoot = !data.boot.isEmpty && data.boot == FilePaths.boot
        let usable = isSameBoot ? size : min(size, data.durableBytes)
        guard usable > 0, usable <= data.expectedBytes ?? .max else { return }
        length = usable
        durable = min(usable, data.durableBytes)
        resume = data
        isOwn = true
    }

    /// Opens and locks the file that the path means: another download may have moved it away
    /// between the two.
    private static func open(_ path: String) throws(DownloadProblem) -> (Int32, Int64) {
        for _ in 0..<16 {
            let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
            let descriptor = open_with_mode(path, flags, 0o666)
            guard descriptor >= 0 else {
                if __errno_location().pointee == ELOOP { throw .partialFileUnsafe(path) }
                throw FileProblem.last(.open, path)
            }
            do throws(DownloadProblem) {
                if let size = try lock(descriptor, path) { return (descriptor, size) }
            } catch {
                close(descriptor)
                throw error
            }
            close(descriptor)
        }
        throw .busy(path)
    }

    /// The file's size; nil: it is no longer the one of that name.
    private static func lock(
        _ descriptor: Int32, _ path: String
    ) throws(DownloadProblem) -> Int64? {
        var (opened, named) = (stat(), stat())
        guard fstat(descriptor, &opened) == 0 else { throw FileProblem.last(.open, path) }
        guard Int32(opened.st_mode) & S_IFMT == S_IFREG, opened.st_uid == geteuid() else {
            throw .partialFileUnsafe(path)
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            if __errno_location().pointee == EWOULDBLOCK { throw .busy(path) }
            throw FileProblem.last(.lock, path)
        }
        guard lstat(path, &named) == 0, named.st_ino == opened.st_ino,
            named.st_dev == opened.st_dev, fstat(descriptor, &opened) == 0
        else { return nil }
        // With two names it may be something else of this user's, or a destination to which the
        // move was broken off: only this name goes.
        guard opened.st_nlink == 1 else {
            unlink(path)
            return nil
        }
        return Int64(opened.st_size)
    }

    /// Nil where there is none that can be read: the download begins anew then.
    ///
    /// The path that it names does not count: the same file has others, and its folder may have
    /// been moved.
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

    /// Whether this is resume data or a note. A note may be empty after a loss of power.
    private static func isOfDownload(_ beside: [UInt8]) -> Bool {
        beside.isEmpty || beside.starts(with: #"{"pinfold"#.utf8)
    }

    /// Whether its path still means the file that is open: nobody has moved, removed or replaced
    /// it.
    private var isNamed: Bool {
        var (opened, named) = (stat(), stat())
        return fstat(descriptor, &opened) == 0 && lstat(path, &named) == 0
            && named.st_ino == opened.st_ino && named.st_dev == opened.st_dev
    }

    private func checkName() throws(DownloadProblem) {
        guard isNamed else { throw .partialFileLost(path) }
    }

    // MARK: Writing

    /// What is there is not gone on with; it stays until something else is written.
    mutating func forget() {
        if resume != nil { isOwn = false }
        (resume, length, durable) = (nil, 0, 0)
    }

    /// Begins from the first byte.
    mutating func reset(_ resume: ResumeData?) throws(DownloadProblem) {
        try checkName()
        try keepNote()
        guard ftruncate(descriptor, 0) == 0 else { throw FileProblem.last(.shorten, path) }
        (self.resume, length, durable, isOwn) = (resume, 0, 0, true)
    }

    /// Goes on from a byte that is there, or follows on the last one.
    mutating func goOn(from offset: Int64, of total: Int64?) throws(DownloadProblem) {
        guard ftruncate(descriptor, off_t(offset)) == 0 else {
            throw FileProblem.last(.shorten, path)
        }
        length = offset
        durable = min(durable, offset)
        if let total { resume?.expectedBytes = total }
    }

    /// What is there is all that there is.
    mutating func isWhole() {
        if resume?.expectedBytes == nil { resume?.expectedBytes = length }
    }

    /// Writes behind what is there.
    ///
    /// - Parameter isLast: Nothing follows: there is no need for resume data.
    mutating func write(_ parts: [[UInt8]], isLast: Bool) throws(DownloadProblem) {
        for part in parts { try write(part) }
        guard resume != nil, !isLast else { return }
        if length - durable >= Self.syncedBytes {
            try sync()
            try keepResumeData()
        } else if beside != .resumeData {
            try keepResumeData()
        }
    }

    private mutating func write(_ part: [UInt8]) throws(DownloadProblem) {
        var written = 0
        while written < part.count {
            let count = part.withUnsafeBytes {
                pwrite(
                    descriptor, $0.baseAddress.map { $0 + written }, $0.count - written,
                    off_t(length))
            }
            if count < 0, __errno_location().pointee == EINTR { continue }
            guard count > 0 else { throw FileProblem.last(.write, path) }
            written += count
            length += Int64(count)
        }
    }

    private mutating func sync() throws(DownloadProblem) {
        guard fdatasync(descriptor) == 0 else { throw FileProblem.last(.sync, path) }
        durable = length
    }

    /// Writes the resume data of what is there, in place of the one before.
    private mutating func keepResumeData() throws(DownloadProblem) {
        resume?.receivedBytes = length
        resume?.durableBytes = durable
        guard let resume else { return }
        try replaceSidecar(by: Array(resume.text.utf8))
        beside = .resumeData
    }

    /// Writes that the file is a download's, in place of resume data that lies there.
    private mutating func keepNote() throws(DownloadProblem) {
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

    /// Has it on the disk.
    private mutating func replaceSidecar(by bytes: [UInt8]) throws(DownloadProblem) {
        try checkName()
        // One name for all of them, so that processes that were killed leave one file at most:
        // nobody else writes it while the partial file is locked.
        do throws(FileError) {
            try DurableFile.replace(
                sidecar, by: bytes, mode: 0o600, temporaryPath: sidecar + ".new")
        } catch {
            throw FileProblem.of(error)
        }
        known = bytes
    }

    /// Where nothing lies there, nothing has to be on the disk: most downloads end soon.
    private mutating func make(_ note: [UInt8]) throws(DownloadProblem) {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let descriptor = open_with_mode(sidecar, flags, 0o600)
        guard descriptor >= 0 else { throw FileProblem.last(.open, sidecar) }
        defer { close(descriptor) }
        known = note
        guard CLinux.write(descriptor, note, note.count) == note.count else {
            throw FileProblem.last(.write, sidecar)
        }
    }

    // MARK: The end

    /// Gives the complete file its name. It stays open.
    mutating func finish(
        at destination: String, replaces: Bool
    ) throws(DownloadProblem) {
        guard fsync(descriptor) == 0 else { throw FileProblem.last(.sync, path) }
        durable = length
        try checkName()
        try FilePaths.move(path, to: destination, replaces: replaces)
        isOwn = false
        try FilePaths.sync(folder: FilePaths.folder(of: destination))
        removeSidecar()
    }

    /// The download does not go on now.
    ///
    /// - Parameter keeping: What can be gone on with stays. Anything else of this download goes.
    /// - Returns: By which it can go on.
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
        do throws(DownloadProblem) {
            // Where the disk is full, what stands there from before is right, too.
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

    /// Another download may have the path by now, and with it what lies beside.
    private func removeSidecar() {
        if let known, Self.contents(beside: path) == known { unlink(sidecar) }
    }

    /// Removes it, so that wherever that is broken off no bytes stay of which nothing is known.
    private func remove() {
        ftruncate(descriptor, 0)
        unlink(sidecar)
        unlink(path)
    }

    /// To be called once, whatever became of it; unlocks it.
    func close() { CLinux.close(descriptor) }

    private static func close(_ descriptor: Int32) { CLinux.close(descriptor) }
    private func close(_ descriptor: Int32) { CLinux.close(descriptor) }
}
