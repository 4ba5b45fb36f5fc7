import CLinux

/// Whether a file or a folder could be made and written; nothing is made to find out.
enum PathAccess {
    /// Why a file cannot be opened for appending, or made; nil when it can.
    static func problemAppending(to path: String) -> String? {
        var status = stat()
        guard stat(path, &status) == 0 else {
            let code = __errno_location().pointee
            guard code == ENOENT else { return "cannot be written: \(text(code))" }
            return problem(inFolder: Files.folder(of: path))
        }
        if Int32(status.st_mode) & S_IFMT == S_IFDIR { return "is a folder" }
        return access(path, W_OK) == 0
            ? nil : "cannot be written: \(text(__errno_location().pointee))"
    }

    /// Why a folder cannot be made, with those above it, or not written; nil when it can.
    static func problemMaking(folder path: String) -> String? {
        var status = stat()
        if stat(path, &status) == 0 { return problem(inFolder: path) }
        let code = __errno_location().pointee
        guard code == ENOENT, path != "/" else { return "cannot be made: \(text(code))" }
        return problemMaking(folder: Files.folder(of: path))
    }

    private static func problem(inFolder folder: String) -> String? {
        var status = stat()
        guard stat(folder, &status) == 0 else {
            let code = __errno_location().pointee
            return code == ENOENT
                ? "lies in \(quoted(folder)), which does not exist"
                : "lies in \(quoted(folder)), which cannot be read: \(text(code))"
        }
        guard Int32(status.st_mode) & S_IFMT == S_IFDIR else {
            return "\(quoted(folder)) is not a folder"
        }
        return access(folder, W_OK | X_OK) == 0
            ? nil : "\(quoted(folder)) cannot be written: \(text(__errno_location().pointee))"
    }

    private static func text(_ code: Int32) -> String {
        strerror(code).map { String(cString: $0) } ?? "error \(code)"
    }
}
