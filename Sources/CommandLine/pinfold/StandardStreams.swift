import CLinux
import Files
import Supervision

/// Standard output could not be written, so the output is incomplete.
struct OutputError: Error, CustomStringConvertible {
    /// The system's error number.
    let code: Int32

    var description: String {
        "standard output cannot be written: \(String(cString: strerror(code)))"
    }
}

/// Standard input could not be read.
struct InputError: Error, CustomStringConvertible {
    /// The system's error number.
    let code: Int32

    var description: String {
        "standard input cannot be read: \(String(cString: strerror(code)))"
    }
}

/// Opens the standard streams that are closed, so that no other file gets their descriptors and
/// the data meant for them. Using such a stream still fails, because each is opened for the
/// opposite direction.
func openStandardStreams() {
    let modes = [
        (STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY),
    ]
    // open(2) returns the lowest free descriptor.
    for (descriptor, mode) in modes where fcntl_int(descriptor, F_GETFD, 0) < 0 {
        _ = open_with_mode("/dev/null", mode, 0)
    }
}

/// Writes text to standard error. If standard error is a pipe that nobody reads, part of the text
/// is lost, so that the program can still end.
func writeToStandardError(_ text: String) {
    // If this fails, there is nowhere to report it.
    _ = writeAll(Array(text.utf8)[...], to: STDERR_FILENO, patienceMilliseconds: 1000)
}

/// Writes an error message to standard error, with the prefix that the argument parser gives to its
/// own messages, so that all errors of the program have the same form.
func writeError(_ message: String) { write("Error: \(message)", priority: "<3>") }

/// Writes a warning to standard error.
func writeWarning(_ message: String) { write("Warning: \(message)", priority: "<4>") }

/// Writes a message to standard error, each line with its priority (sd-daemon(3)) if the journal
/// reads it.
private func write(_ message: String, priority: String) {
    let prefix = Journal.reads(STDERR_FILENO) ? priority : ""
    let lines = message.split(separator: "\n", omittingEmptySubsequences: false)
    writeToStandardError(lines.map { prefix + $0 + "\n" }.joined())
}

/// Writes text to standard output. If it cannot be written, the program exits with 2.
func writeToStandardOutput(_ text: String) { writeToStandardOutput(Array(text.utf8)) }

/// Writes bytes to standard output. If they cannot be written, the program exits with 2.
func writeToStandardOutput(_ bytes: [UInt8]) {
    do throws(OutputError) { try writeOutput(bytes) } catch {
        writeError("\(error)")
        exit(2)
    }
}

/// Writes bytes to standard output. A closed pipe is not an error.
/// - Parameter patienceMilliseconds: how long to wait for the reader; `nil` to wait forever.
func writeOutput(
    _ bytes: [UInt8], patienceMilliseconds: Int32? = nil
) throws(OutputError) {
    let code = writeAll(
        bytes[...], to: STDOUT_FILENO, patienceMilliseconds: patienceMilliseconds)
    if code != 0 { throw OutputError(code: code) }
}

/// The number of bytes that a writable pipe accepts without blocking (pipe(7), PIPE_BUF).
private let pipeBytes = 4096

/// Writes bytes to a descriptor. Returns the system's error number, or 0 if there was no error.
///
/// - Parameter patienceMilliseconds: How long to wait for the reader, or `nil` to wait forever.
func writeAll(
    _ bytes: ArraySlice<UInt8>, to descriptor: Int32, patienceMilliseconds: Int32? = nil
) -> Int32 {
    var rest = bytes
    var waits = patienceMilliseconds != nil
    while !rest.isEmpty {
        if waits {
            var state = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            let count = uninterrupted { poll(&state, 1, patienceMilliseconds ?? -1) }
            guard count > 0 else { return ETIMEDOUT }
        }
        let written = rest.withUnsafeBytes { rest in
            uninterrupted {
                CLinux.write(descriptor, rest.baseAddress, min(rest.count, pipeBytes))
            }
        }
        guard written <= 0 else {
            rest = rest.dropFirst(written)
            continue
        }
        switch written == 0 ? EIO : Int32(-written) {
        // Another process with the same pipe has made it non-blocking.
        case EAGAIN: waits = true
        // The reader has closed the pipe; there is nothing left to do.
        case EPIPE: return 0
        case let code: return code
        }
    }
    return 0
}

/// Reads available bytes from standard input; the result is empty at its end. If standard input
/// cannot be read, the program exits with 2.
func readStandardInput() -> [UInt8] {
    do throws(InputError) { return try readInput() } catch {
        writeError("\(error)")
        exit(2)
    }
}

/// Reads available bytes from standard input; the result is empty at its end.
func readInput() throws(InputError) -> [UInt8] {
    let step = 256 << 10
    var result = 0
    let chunk = [UInt8](unsafeUninitializedCapacity: step) { buffer, count in
        result = uninterrupted { read(STDIN_FILENO, buffer.baseAddress, step) }
        count = max(0, result)
    }
    guard result >= 0 else { throw InputError(code: Int32(-result)) }
    return chunk
}
