import CLinux
import Documents

/// A file that is a complete HTTP Archive after every entry, also if the process is killed then; or
/// standard output, which is one once it is finished.
final class HARFile {
    /// Why it cannot be written.
    struct WriteError: Error, CustomStringConvertible {
        var description: String
    }

    let path: String
    /// -1 for standard output.
    private let descriptor: Int32
    /// Where the next entry begins, and how many bytes there are at the most.
    private var position: Int
    private let limit: Int64
    private(set) var count: Int64 = 0

    /// Begins a file that is readable for its owner only.
    ///
    /// - Parameters:
    ///   - path: `-` for standard output.
    ///   - replaces: whether a file that exists is replaced.
    ///   - limit: the most bytes.
    init(_ path: String, replaces: Bool, limit: Int64) throws(WriteError) {
        self.path = path
        self.limit = limit
        let beginning = HARLog.beginning(version: pinfoldVersion)
        position = beginning.utf8.count
        guard path != "-" else {
            descriptor = -1
            try Self.print(beginning)
            return
        }
        if replaces { try Self.remove(path) }
        descriptor = open_with_mode(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let code = __errno_location().pointee
            let hint = code == EEXIST ? "; expected a new file, or --overwrite" : ""
            throw WriteError(description: "\(path): \(String(cString: strerror(code)))\(hint)")
        }
        try write(Array((beginning + HARLog.ending(dropped: 0)).utf8), at: 0)
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// What is no regular file is left alone.
    private static func remove(_ path: String) throws(WriteError) {
        var state = stat()
        guard lstat(path, &state) == 0 else { return }
        guard state.st_mode & mode_t(S_IFMT) == mode_t(S_IFREG) else {
            throw WriteError(description: "\(path): expected a regular file to overwrite")
        }
        guard unlink(path) == 0 else {
            throw WriteError(
                description: "\(path): \(String(cString: strerror(__errno_location().pointee)))")
        }
    }

    /// Adds an entry. Returns `false` if it would be too much for the file.
    func add(_ entry: String) throws(WriteError) -> Bool {
        let text = HARLog.separator(isFirst: count == 0) + entry
        let ending = HARLog.ending(dropped: 0)
        let end = position + text.utf8.count
        guard Int64(end + ending.utf8.count) <= limit else { return false }
        if descriptor < 0 {
            try Self.print(text)
        } else {
            do throws(WriteError) {
                try write(Array((text + ending).utf8), at: position)
            } catch {
                // It is again what it was before the entry.
                try? write(Array(ending.utf8), at: position)
                ftruncate(descriptor, off_t(position + ending.utf8.count))
                throw error
            }
        }
        position = end
        count += 1
        return true
    }

    /// Ends it.
    /// - Parameters:
    ///   - dropped: how many exchanges are not in it because they came too fast.
    ///   - patienceMilliseconds: how long whoever reads standard output is waited for; `nil` for
    ///     ever.
    func finish(dropped: Int64, patienceMilliseconds: Int32? = nil) throws(WriteError) {
        let ending = HARLog.ending(dropped: dropped)
        if descriptor < 0 {
            try Self.print(ending, patienceMilliseconds)
        } else {
            try write(Array(ending.utf8), at: position)
        }
    }

    private static func print(
        _ text: String, _ patienceMilliseconds: Int32? = nil
    ) throws(WriteError) {
        do throws(OutputError) {
            try writeOutput(Array(text.utf8), patienceMilliseconds: patienceMilliseconds)
        } catch {
            throw WriteError(description: "\(error)")
        }
    }

    private func write(_ bytes: [UInt8], at position: Int) throws(WriteError) {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes {
                pwrite(
                    descriptor, $0.baseAddress?.advanced(by: done), bytes.count - done,
                    off_t(position + done))
            }
            if count > 0 {
                done += count
            } else if count == 0 || __errno_location().pointee != EINTR {
                let code = count == 0 ? EIO : __errno_location().pointee
                throw WriteError(description: "\(path): \(String(cString: strerror(code)))")
            }
        }
    }
}
