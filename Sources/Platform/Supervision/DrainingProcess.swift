import CLinux

/// A gateway that has been told to end, and finishes what is in progress. Another one of the same
/// user may bind the addresses on which it still listens.
///
/// It shows that by the name of its main thread (proc_pid_comm(5)), which anybody can read and only
/// the process itself can choose.
package enum DrainingProcess {
    /// The name; at most 15 bytes.
    static let name = "pinfold-drains"

    /// Shows that this process drains. Called on the main thread.
    package static func announce() { _ = pthread_setname_np(pthread_self(), name) }

    /// Whether a process of our user drains.
    package static func isDraining(_ process: pid_t) -> Bool {
        var status = stat()
        guard stat("/proc/\(process)", &status) == 0, status.st_uid == geteuid() else {
            return false
        }
        return text(ofFile: "/proc/\(process)/comm") == name + "\n"
    }

    /// Whether draining processes hold all of these sockets, and nobody else of our user any.
    ///
    /// - Parameter sockets: inode numbers.
    package static func hold(_ sockets: Set<UInt64>) -> Bool {
        var held: Set<UInt64> = []
        for process in numbers(inFolder: "/proc") where process != UInt64(getpid()) {
            let found = self.sockets(of: process).intersection(sockets)
            guard !found.isEmpty else { continue }
            guard isDraining(pid_t(process)) else { return false }
            held.formUnion(found)
        }
        return held == sockets
    }

    /// The sockets that a process has open; none if we may not know.
    private static func sockets(of process: UInt64) -> Set<UInt64> {
        var found: Set<UInt64> = []
        let folder = "/proc/\(process)/fd"
        for number in numbers(inFolder: folder) {
            // The link reads socket:[INODE].
            guard let link = link("\(folder)/\(number)"), link.hasPrefix("socket:["),
                let inode = UInt64(link.dropFirst(8).dropLast())
            else { continue }
            found.insert(inode)
        }
        return found
    }

    /// The names of the entries of a folder that are numbers.
    private static func numbers(inFolder path: String) -> [UInt64] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var found: [UInt64] = []
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if let number = UInt64(name) { found.append(number) }
        }
        return found
    }

    private static func link(_ path: String) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { room in
            guard let start = room.baseAddress else { return nil }
            let count = readlink(path, start, room.count)
            guard count > 0 else { return nil }
            let bytes = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(room)[..<count])
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    private static func text(ofFile path: String) -> String? {
        let descriptor = open_with_mode(path, O_RDONLY | O_CLOEXEC, 0)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        return withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { room in
            let count = read(descriptor, room.baseAddress, room.count)
            guard count > 0 else { return nil }
            return String(decoding: UnsafeRawBufferPointer(rebasing: room[..<count]), as: UTF8.self)
        }
    }
}
