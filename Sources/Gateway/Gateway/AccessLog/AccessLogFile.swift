import CLinux
import Files

/// The file, pipe or terminal that the access log is written to.
///
/// Descriptors opened here are non-blocking where the kernel supports it (pipes, terminals). The
/// process's own output is shared with others, so its flags are left unchanged, and it is polled
/// before each small write instead.
struct AccessLogFile: ~Copyable {
    /// The result of a write.
    enum WriteResult: Equatable {
        /// This many bytes were written, at least one.
        case wrote(Int)
        /// Nothing can be written now; `descriptor` will become writable.
        case wouldBlock
        /// Writing failed; the errno.
        case failed(Int32)
    }

    /// What a writable pipe accepts without blocking (pipe(7), PIPE_BUF).
    private static var sharedWriteBytes: Int { 4096 }

    let descriptor: Int32
    private let isOurs: Bool

    /// The process's output that a path stands for; `nil` for a file.
    private static func processOutput(_ path: String) -> Int32? {
        switch path {
        case "-", "stdout": STDOUT_FILENO
        case "stderr": STDERR_FILENO
        default: nil
        }
    }

    /// Opens a path, or uses the process's output for `-`, `stdout` and `stderr`.
    init(path: String) throws(AccessLogError) {
        if let output = Self.processOutput(path) {
            descriptor = output
            isOurs = false
            return
        }
        // Non-blocking, so that a pipe that nobody reads is an error rather than a hang.
        let flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        let opened = uninterrupted { open_with_mode(path, flags, 0o640) }
        guard opened >= 0 else { throw .open(path: path, code: -opened) }
        descriptor = opened
        isOurs = true
    }

    /// Whether this is the output of the process that a path stands for.
    func isProcessOutput(at path: String) -> Bool {
        !isOurs && Self.processOutput(path) == descriptor
    }

    deinit {
        if isOurs { _ = CLinux.close(descriptor) }
    }

    /// Writes as many of the bytes as the file accepts at once.
    func write(_ bytes: UnsafeRawBufferPointer) -> WriteResult {
        var count = bytes.count
        if !isOurs {
            var state = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            guard poll(&state, 1, 0) > 0 else { return .wouldBlock }
            count = min(count, AccessLogFile.sharedWriteBytes)
        }
        let written = uninterrupted { CLinux.write(descriptor, bytes.baseAddress, count) }
        if written > 0 { return .wrote(written) }
        let code = written < 0 ? Int32(-written) : EIO
        return code == EAGAIN ? .wouldBlock : .failed(code)
    }
}

/// A descriptor with which threads wake one that polls (eventfd(2)).
struct WakeDescriptor: ~Copyable, Sendable {
    let descriptor: Int32

    init() throws(AccessLogError) {
        descriptor = uninterrupted { eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK)) }
        guard descriptor >= 0 else { throw .thread(code: -descriptor) }
    }

    deinit { _ = CLinux.close(descriptor) }

    /// Wakes the waiting thread, or the next one that waits.
    func signal() {
        var one: UInt64 = 1
        _ = CLinux.write(descriptor, &one, 8)
    }

    /// Clears the signal.
    func clear() {
        var count: UInt64 = 0
        _ = CLinux.read(descriptor, &count, 8)
    }

    /// Waits until it is signalled, and clears it, or for this many milliseconds (-1 for no limit).
    /// Returns whether it was signalled.
    @discardableResult
    func wait(milliseconds: Int) -> Bool {
        var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&state, 1, Int32(clamping: milliseconds)) > 0 else { return false }
        clear()
        return true
    }
}
