import CLinux

/// The file of this program, by the path that the process was started with: where the next version
/// of the program will be.
package struct ProgramFile: Sendable, Equatable {
    /// Absolute; its last component may be a symbolic link, which is followed when it is used.
    package let path: String

    package init(path: String) { self.path = path }

    /// The program of a process.
    ///
    /// - Parameters:
    ///   - name: its first argument. Without a slash it was found along `PATH`.
    ///   - folder: the working folder when it was started.
    ///   - searchPath: the value of `PATH`.
    ///   - running: the file that is being run, for when the name leads nowhere: the caller of
    ///     execve(2) may give any.
    package init(
        startedAs name: String, in folder: String, searchPath: String?, running: String?
    ) {
        var candidates: [String] = []
        if name.utf8.contains(UInt8(ascii: "/")) {
            candidates = [Self.absolute(name, in: folder)]
        } else if !name.isEmpty {
            let folders = (searchPath ?? "/usr/local/bin:/usr/bin:/bin").split(
                separator: ":", omittingEmptySubsequences: false)
            candidates = folders.map { searched in
                Self.absolute("\(searched.isEmpty ? "." : searched)/\(name)", in: folder)
            }
        }
        let found = candidates.first { access($0, X_OK) == 0 && !Self.isFolder($0) }
        path = found ?? running ?? candidates.first ?? name
    }

    private static func absolute(_ path: String, in folder: String) -> String {
        path.hasPrefix("/") ? path : "\(folder)/\(path)"
    }

    private static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && isFolder(status)
    }

    private static func isFolder(_ status: stat) -> Bool { status.st_mode & 0o170_000 == 0o040_000 }

    /// The program of this process. Called when it starts: later the working folder may be another,
    /// and the file that it runs replaced.
    package static func ofProcess(name: String) -> ProgramFile {
        let running = text { readlink("/proc/self/exe", $0, Int(PATH_MAX)) }
        let folder = text { getcwd($0, Int(PATH_MAX)) == nil ? -1 : Int(strlen($0)) } ?? "/"
        return ProgramFile(
            startedAs: name, in: folder, searchPath: environmentVariable("PATH"), running: running)
    }

    /// What a call writes, whose result is its length, or negative.
    private static func text(_ call: (UnsafeMutablePointer<CChar>) -> Int) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX) + 1) { room in
            guard let start = room.baseAddress else { return nil }
            let count = call(start)
            guard count > 0 else { return nil }
            let bytes = UnsafeRawBufferPointer(start: start, count: count)
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    /// Why the file must not be run.
    package enum SafetyError: Error, Equatable, CustomStringConvertible {
        case missing(String, code: Int32)
        case notExecutable(String)
        /// Somebody else than root and our user could have put something else there.
        case writable(String, by: String)

        package var description: String {
            switch self {
            case .missing(let path, let code):
                "\(path) cannot be used: \(String(cString: strerror(code)))"
            case .notExecutable(let path): "\(path) is not an executable file"
            case .writable(let path, let who):
                "\(path) can be written by \(who): only root and the user that the gateway runs as "
                    + "may be able to replace the program"
            }
        }
    }

    /// Checks that nobody but root and our user can replace the program: the file that the path
    /// leads to, and the folders of it and of the path.
    package func check() throws(SafetyError) {
        guard let real = realpath(path, nil) else {
            throw .missing(path, code: __errno_location().pointee)
        }
        defer { free(real) }
        let file = String(cString: real)
        let status = try Self.status(file)
        guard status.st_mode & 0o170_000 == 0o100_000, access(file, X_OK) == 0 else {
            throw .notExecutable(file)
        }
        try Self.check(file, status)
        for folder in Set([Self.folder(of: path), Self.folder(of: file)]).sorted() {
            try Self.check(folder, try Self.status(folder))
        }
    }

    private static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "/" }
        return String(path[..<slash])
    }

    private static func status(_ path: String) throws(SafetyError) -> stat {
        var status = stat()
        guard stat(path, &status) == 0 else {
            throw .missing(path, code: __errno_location().pointee)
        }
        return status
    }

    private static func check(_ path: String, _ status: stat) throws(SafetyError) {
        guard status.st_uid == 0 || status.st_uid == geteuid() else {
            throw .writable(path, by: "its owner, user \(status.st_uid)")
        }
        // In a folder with the sticky bit, only the owner of a file may replace it.
        let isSticky = isFolder(status) && status.st_mode & 0o1000 != 0
        guard !isSticky else { return }
        if status.st_mode & 0o002 != 0 { throw .writable(path, by: "everyone") }
        if status.st_mode & 0o020 != 0, status.st_gid != 0 {
            throw .writable(path, by: "its group, \(status.st_gid)")
        }
    }
}
