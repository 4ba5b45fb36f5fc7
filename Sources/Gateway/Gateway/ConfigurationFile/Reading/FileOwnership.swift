import CLinux
import Files

/// Whether others than root and the gateway's user could write a file, or put another in its place.
enum FileOwnership {
    static let expected = "a file and a folder that only root and the gateway's user can write"

    /// The first thing that is wrong about an open file, as a clause, or `nil`.
    ///
    /// The folders are those of the path and, if it leads over a link, of the file itself. Those
    /// above are not looked at.
    static func problem(of file: borrowing OpenFile) -> String? {
        if let problem = problem(file.status, isReadOnly: isReadOnly(file.path)) {
            return problem
        }
        var folders = [Folder.of(file.path)]
        if let real = realpath(file.path, nil) {
            let folder = Folder.of(String(cString: real))
            free(real)
            if folder != folders[0] { folders.append(folder) }
        }
        for folder in folders {
            var status = stat()
            guard stat(folder, &status) == 0,
                let problem = problem(status, isReadOnly: isReadOnly(folder))
            else { continue }
            return "is in the folder \(quoted(path: folder)), which \(problem)"
        }
        return nil
    }

    /// - Parameter isReadOnly: Then nobody can write, whatever the permissions say: the folders of
    ///   volumes in containers may be open to everybody.
    private static func problem(_ status: stat, isReadOnly: Bool) -> String? {
        if status.st_uid != 0, status.st_uid != geteuid() {
            return "belongs to the user \(status.st_uid)"
        }
        let isForGroup = status.st_mode & 0o020 != 0
        let isForOthers = status.st_mode & 0o002 != 0
        guard !isReadOnly, isForGroup || isForOthers else { return nil }
        let mode = String(status.st_mode & 0o7777, radix: 8)
        return "can be written by \(isForOthers ? "others" : "its group") (mode 0\(mode))"
    }

    private static func isReadOnly(_ path: String) -> Bool {
        var figures = statvfs()
        return statvfs(path, &figures) == 0 && figures.f_flag & 1 != 0  // ST_RDONLY
    }
}
