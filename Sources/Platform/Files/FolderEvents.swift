import CLinux

/// What happens to the names in some folders (inotify(7)).
package struct FolderEvents: ~Copyable {
    /// Something that has happened.
    package enum Event: Equatable {
        /// A file of this name was written, or something with this name came or went.
        case name(String, inFolder: String)
        /// The folder itself was moved or removed.
        case folder(String)
        /// More has happened than could be kept.
        case lost
    }

    private static let mask = UInt32(
        IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM
            | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)
    /// An event with the longest name has 272 bytes.
    private static let blockBytes = 16 << 10

    private let descriptor: Int32
    /// By the numbers of their watches.
    private let folders: [Int32: String]

    /// - Parameter folders: Absolute paths. One that is missing is left out.
    /// - Throws: if the system has no more room for what is watched, or nothing can be watched.
    package init(watching folders: some Collection<String>) throws(FileError) {
        let descriptor = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
        guard descriptor >= 0 else { throw FileError(.open, "inotify") }
        var known: [Int32: String] = [:]
        for folder in folders {
            let watch = inotify_add_watch(descriptor, folder, Self.mask)
            if watch >= 0 {
                known[watch] = folder
                continue
            }
            let error = FileError(.open, folder)
            if [ENOENT, ENOTDIR, ELOOP].contains(error.code) { continue }
            close(descriptor)
            throw error
        }
        (self.descriptor, self.folders) = (descriptor, known)
    }

    deinit { close(descriptor) }

    /// Takes what has happened since the last time; never waits.
    package borrowing func take(_ body: (Event) -> Void) {
        var block = [UInt8](repeating: 0, count: Self.blockBytes)
        while true {
            let count = block.withUnsafeMutableBytes { block in
                uninterrupted { read(descriptor, block.baseAddress, block.count) }
            }
            guard count > 0 else { return }
            block.withUnsafeBytes { block in
                var offset = 0
                while offset + Self.headBytes <= count {
                    let head = Head(block, at: offset)
                    let name = block[(offset + Self.headBytes)...].prefix(Int(head.nameBytes))
                    offset += Self.headBytes + Int(head.nameBytes)
                    if let event = event(head, name) { body(event) }
                }
            }
        }
    }

    private static let headBytes = 16

    /// The fixed part of an event.
    private struct Head {
        let watch: Int32
        let mask: UInt32
        /// With the NULs after it.
        let nameBytes: UInt32

        init(_ block: UnsafeRawBufferPointer, at offset: Int) {
            watch = block.loadUnaligned(fromByteOffset: offset, as: Int32.self)
            mask = block.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
            nameBytes = block.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self)
        }
    }

    private borrowing func event(_ head: Head, _ name: Slice<UnsafeRawBufferPointer>) -> Event? {
        if head.mask & UInt32(IN_Q_OVERFLOW) != 0 { return .lost }
        guard let folder = folders[head.watch] else { return nil }
        if head.mask & UInt32(IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT) != 0 {
            return .folder(folder)
        }
        let text = String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
        return text.isEmpty ? nil : .name(text, inFolder: folder)
    }
}
