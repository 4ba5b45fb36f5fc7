import CLinux

/// A file that is open for reading until the value ends.
package struct OpenFile: ~Copyable {
    package let path: String
    package let descriptor: Int32
    /// What it was when it was opened.
    package let status: stat

    /// Opens whatever is at a path, without waiting for it: reading a pipe that nobody writes, or a
    /// terminal, fails with EAGAIN.
    ///
    /// - Parameter followsLinks: if not, a symbolic link in the last component fails with ELOOP.
    package init(_ path: String, followsLinks: Bool = true) throws(FileError) {
        let links = followsLinks ? 0 : O_NOFOLLOW
        let flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | links
        let descriptor = try DurableFile.open(path, flags)
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            let error = FileError(.open, path)
            close(descriptor)
            throw error
        }
        (self.path, self.descriptor, self.status) = (path, descriptor, status)
    }

    deinit { close(descriptor) }

    /// What it is: S_IFREG, S_IFDIR and so on (inode(7)).
    package var kind: Int32 { Int32(status.st_mode) & S_IFMT }

    /// Reads it from where it is to its end, whatever length it says it has (files in /proc say 0).
    ///
    /// - Returns: one byte more than `most` if there are more.
    package borrowing func contents(most: Int) throws(FileError) -> [UInt8] {
        let descriptor = self.descriptor
        // With room for a byte more than the file has, its end is found without growing.
        var bytes = [UInt8](repeating: 0, count: min(max(Int(status.st_size), 4095), most) + 1)
        var filled = 0
        while true {
            let count = bytes.withUnsafeMutableBytes { bytes in
                let rest = UnsafeMutableRawBufferPointer(rebasing: bytes[filled...])
                return uninterrupted { read(descriptor, rest.baseAddress, rest.count) }
            }
            guard count >= 0 else { throw FileError(.read, path, Int32(-count)) }
            filled += count
            if count == 0 || filled > most { break }
            guard filled == bytes.count else { continue }
            bytes += [UInt8](repeating: 0, count: min(filled, most + 1 - filled))
        }
        bytes.removeLast(bytes.count - filled)
        return bytes
    }

    /// Reads it from where it is to its end, one block after the other.
    ///
    /// - Parameters:
    ///   - size: of a block at most, in bytes.
    ///   - most: after more bytes than this it stops.
    ///   - body: called with each block, which has at least one byte.
    /// - Returns: how many bytes were read.
    package borrowing func forEachBlock(
        of size: Int, most: Int, _ body: (Span<UInt8>) -> Void
    ) throws(FileError) -> Int {
        let descriptor = self.descriptor
        var block = [UInt8](repeating: 0, count: size)
        var sum = 0
        while sum <= most {
            let count = block.withUnsafeMutableBytes { block in
                uninterrupted { read(descriptor, block.baseAddress, block.count) }
            }
            guard count >= 0 else { throw FileError(.read, path, Int32(-count)) }
            if count == 0 { break }
            sum += count
            body(block.span.extracting(0..<count))
        }
        return sum
    }

    /// What it is now; `nil` if that cannot be said.
    package borrowing func currentStatus() -> stat? {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? status : nil
    }
}
