import CLinux

/// Standard output could not be written: what was to be there is not.
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

/// Opens those of the standard streams that are closed, so that nothing else gets their numbers,
/// and what is meant for them. They are of no use all the same: each is opened for the other
/// direction.
func openStandardStreams() {
    let modes = [
        (STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY),
    ]
    // The lowest number that is free is the one that is opened.
    for (descriptor, mode) in modes where fcntl_int(descriptor, F_GETFD, 0) < 0 {
        _ = open_with_mode("/dev/null", mode, 0)
    }
}

/// Writes a text to standard error, all of it if somebody reads it: with a pipe that nobody reads
/// the program must still come to its end.
func writeToStandardError(_ text: String) {
    // There is nobody else to tell that it failed.
    _ = write(Array(text.utf8)[...], to: STDERR_FILENO, patienceMilliseconds: 1000)
}

/// Writes a text to standard output, all of it. Where it cannot be written, the program ends
/// with 2.
func writeToStandardOutput(_ text: String) { writeToStandardOutput(Array(text.utf8)) }

/// Writes bytes to standard output, all of them. Where they cannot be written, the program ends
/// with 2.
func writeToStandardOutput(_ bytes: [UInt8]) {
    do throws(OutputError) { try writeOutput(bytes) } catch {
        writeToStandardError("pinfold: \(error)\n")
        exit(2)
    }
}

/// Writes bytes to standard output, all of them. That nobody reads them any more is no error.
func writeOutput(_ bytes: [UInt8]) throws(OutputError) {
    let code = write(bytes[...], to: STDOUT_FILENO)
    if code != 0 { throw OutputError(code: code) }
}

/// What a pipe that is writable takes without blocking (pipe(7), PIPE_BUF).
private let pipeBytes = 4096

/// Returns the system's error number, 0 without an error.
///
/// - Parameter patienceMilliseconds: how long the bytes may wait for its reader; nil: for ever.
private func write(
    _ bytes: ArraySlice<UInt8>, to descriptor: Int32, patienceMilliseconds: Int32? = nil
) -> Int32 {
    var rest = bytes
    var waits = patienceMilliseconds != nil
    while !rest.isEmpty {
        if waits {
            var state = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            let count = poll(&state, 1, patienceMilliseconds ?? -1)
            if count < 0, __errno_location().pointee == EINTR { continue }
            guard count > 0 else { return ETIMEDOUT }
        }
        let written = rest.withUnsafeBytes {
            CLinux.write(descriptor, $0.baseAddress, min($0.count, pipeBytes))
        }
        guard written <= 0 else {
            rest = rest.dropFirst(written)
            continue
        }
        switch written == 0 ? EIO : __errno_location().pointee {
        case EINTR: continue
        // Whoever has the same pipe has made it so that it does not block.
        case EAGAIN: waits = true
        // Nobody reads: there is nobody left to tell.
        case EPIPE: return 0
        case let code: return code
        }
    }
    return 0
}

/// What can be read of standard input, empty at its end. Where it cannot be read, the program
/// ends with 2.
func readStandardInput() -> [UInt8] {
    do throws(InputError) { return try readInput() } catch {
        writeToStandardError("pinfold: \(error)\n")
        exit(2)
    }
}

/// What can be read of standard input, empty at its end.
func readInput() throws(InputError) -> [UInt8] {
    let step = 256 << 10
    while true {
        var failure: Int32 = 0
        let chunk = [UInt8](unsafeUninitializedCapacity: step) { buffer, count in
            let result = read(STDIN_FILENO, buffer.baseAddress, step)
            if result < 0 { failure = __errno_location().pointee }
            count = max(0, result)
        }
        if failure == EINTR { continue }
        guard failure == 0 else { throw InputError(code: failure) }
        return chunk
    }
}
