import CLinux

/// A system call on a file or folder failed.
package struct FileError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What was being done.
    package enum Operation: Sendable, Hashable, CaseIterable {
        case open, read, write, sync, rename
    }

    package var operation: Operation
    /// The file or folder concerned.
    package var path: String
    /// The system's error number (errno(3)).
    package var code: Int32

    package init(
        _ operation: Operation, _ path: String, _ code: Int32 = __errno_location().pointee
    ) {
        (self.operation, self.path, self.code) = (operation, path, code)
    }

    /// The system's text for the error number.
    package var reason: String { String(cString: strerror(code)) }

    package var description: String { "\(path): \(reason)" }
}
