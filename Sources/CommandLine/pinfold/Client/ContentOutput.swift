import CLinux
import PinfoldClient

/// Where the content of a response is written as it arrives: standard output, or what `-o` names
/// that is not a file, such as `/dev/null` or a pipe.
struct ContentOutput: ~Copyable {
    private let progress: ProgressDisplay
    private let path: String?
    private let descriptor: Int32

    /// - Parameter path: The device or pipe, or `nil` for standard output.
    /// - Throws: ``ClientCommandError`` if it cannot be opened.
    init(_ path: String?, _ progress: ProgressDisplay) throws(ClientCommandError) {
        (self.path, self.progress) = (path, progress)
        guard let path else {
            descriptor = STDOUT_FILENO
            return
        }
        descriptor = open_with_mode(path, O_WRONLY | O_CLOEXEC | O_NOCTTY, 0)
        guard descriptor >= 0 else {
            throw Self.failure("opened", path, __errno_location().pointee)
        }
    }

    deinit { if path != nil { close(descriptor) } }

    func write(_ bytes: [UInt8]) throws {
        guard let path else { return try progress.output(bytes) }
        let code = writeAll(bytes[...], to: descriptor)
        guard code == 0 else { throw Self.failure("written", path, code) }
    }

    private static func failure(
        _ what: String, _ path: String, _ code: Int32
    ) -> ClientCommandError {
        ClientCommandError(.file, "\(path) cannot be \(what): \(String(cString: strerror(code)))")
    }
}

extension FileOptions {
    /// Whether `-o` names something that is written as the content arrives, because it can be no
    /// complete file: standard output, a device or a pipe.
    var streams: Bool {
        guard let output, !writesToStandardOutput else { return output != nil }
        var status = stat()
        guard stat(output, &status) == 0 else { return false }
        let kind = Int32(status.st_mode) & S_IFMT
        return kind != S_IFREG && kind != S_IFDIR
    }

    /// What that is, or `nil` for standard output.
    var streamedPath: String? { streams && !writesToStandardOutput ? output : nil }

    private var writesToStandardOutput: Bool { output == "-" || output == "/dev/stdout" }
}
