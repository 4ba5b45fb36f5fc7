import CLinux

/// Reads the files that a configuration names.
enum Files {
    /// Bytes of a file that a configuration names (certificates, pins, tokens).
    static let maximumBytes = 16 << 20

    /// Why a file could not be read; the text is for people.
    struct Problem: Error, Equatable {
        var text: String
    }

    /// The whole content of a file.
    /// - Parameters:
    ///   - path: An absolute path, or one relative to the working folder.
    ///   - limit: The most bytes that are accepted.
    static func read(_ path: String, limit: Int = maximumBytes) throws(Problem) -> [UInt8] {
        guard !path.utf8.contains(0) else { throw Problem(text: "has a NUL in its name") }
        guard let file = fopen(path, "re") else {
            throw Problem(text: reason(__errno_location().pointee))
        }
        defer { fclose(file) }
        var content: [UInt8] = []
        let step = 64 << 10
        while true {
            var failure: Int32 = 0
            let chunk = [UInt8](unsafeUninitializedCapacity: step) { buffer, count in
                count = fread(buffer.baseAddress, 1, step, file)
                if count == 0, ferror(file) != 0 { failure = __errno_location().pointee }
            }
            guard failure == 0 else { throw Problem(text: reason(failure)) }
            if chunk.isEmpty { return content }
            content += chunk
            guard content.count <= limit else {
                throw Problem(text: "is longer than \(limit) bytes")
            }
        }
    }

    private static func reason(_ code: Int32) -> String {
        "cannot be read: \(strerror(code).map { String(cString: $0) } ?? "error \(code)")"
    }

    /// The folder of a path: everything before the last slash.
    static func folder(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// A path made absolute: relative ones are taken from `folder`. `.` and repeated slashes go;
    /// `..` stays, since after a symbolic link it is not the folder that the text names.
    static func absolute(_ path: String, in folder: String) -> String {
        let joined = path.hasPrefix("/") ? path : folder + "/" + path
        let parts = joined.split(separator: "/").filter { $0 != "." }
        return "/" + parts.joined(separator: "/")
    }
}
