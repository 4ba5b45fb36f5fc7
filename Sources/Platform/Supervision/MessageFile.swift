import CLinux

/// A file in memory (memfd_create(2)) whose descriptor is sent along with a message that would be
/// too large.
package enum MessageFile {
    /// The most bytes that are read.
    package static let maximumBytes = 64 << 20

    /// Calls `body` with the descriptor of a file with these bytes.
    package static func with(
        _ bytes: [UInt8], _ body: (Int32) throws(MessageSocket.CallError) -> Void
    ) throws(MessageSocket.CallError) {
        let descriptor = memfd_create("pinfold", UInt32(PINFOLD_MFD_CLOEXEC))
        guard descriptor >= 0 else { throw MessageSocket.CallError("memfd_create") }
        defer { close(descriptor) }
        var done = 0
        while done < bytes.count {
            let written = bytes.withUnsafeBytes {
                write(descriptor, $0.baseAddress.unsafelyUnwrapped + done, bytes.count - done)
            }
            guard written > 0 else { throw MessageSocket.CallError("write") }
            done += written
        }
        try body(descriptor)
    }

    /// The whole content of such a file; `nil` if it is too large, or cannot be read.
    package static func read(_ descriptor: Int32) -> [UInt8]? {
        var status = stat()
        guard fstat(descriptor, &status) == 0, (0...maximumBytes).contains(Int(status.st_size))
        else { return nil }
        let size = Int(status.st_size)
        return try? [UInt8](unsafeUninitializedCapacity: size) {
            room, count throws(ShortReadError) in
            while count < size {
                let found = pread(
                    descriptor, room.baseAddress.unsafelyUnwrapped + count, size - count,
                    off_t(count))
                guard found > 0 else { throw ShortReadError() }
                count += found
            }
        }
    }

    private struct ShortReadError: Error {}
}
