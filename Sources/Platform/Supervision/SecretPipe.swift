import CLinux

/// A secret on its way to another process: the content of a pipe, one of whose ends is sent along
/// with a message. It is in no file, not even one in memory, which could be swapped out, and gone
/// when it has been read.
package enum SecretPipe {
    /// The most bytes: a pipe takes so many at once (pipe(7)).
    package static let maximumBytes = Int(PIPE_BUF)

    /// Calls `body` with the end that can be read.
    package static func with(
        _ secret: UnsafeRawBufferPointer, _ body: (Int32) throws(MessageSocket.CallError) -> Void
    ) throws(MessageSocket.CallError) {
        precondition(!secret.isEmpty && secret.count <= maximumBytes)
        var ends: [Int32] = [-1, -1]
        guard pipe2(&ends, O_CLOEXEC | O_NONBLOCK) == 0 else {
            throw MessageSocket.CallError("pipe2")
        }
        defer { close(ends[0]) }
        let written = write(ends[1], secret.baseAddress, secret.count)
        let code = __errno_location().pointee
        close(ends[1])
        guard written == secret.count else { throw MessageSocket.CallError("write", code) }
        try body(ends[0])
    }

    /// Reads all that is in a pipe.
    /// - Returns: how many bytes there were; 0 if there is too little room, or an error.
    package static func read(
        _ descriptor: Int32, into room: UnsafeMutableRawBufferPointer
    ) -> Int {
        var status = stat()
        // What is no pipe might wait.
        guard fstat(descriptor, &status) == 0, Int32(status.st_mode) & S_IFMT == S_IFIFO
        else { return 0 }
        var count = 0
        while count < room.count {
            let found = CLinux.read(
                descriptor, room.baseAddress.unsafelyUnwrapped + count, room.count - count)
            if found == 0 { return count }
            guard found > 0 else { return 0 }
            count += found
        }
        var rest: UInt8 = 0
        return CLinux.read(descriptor, &rest, 1) == 0 ? count : 0
    }
}
