import CLinux
import Files

/// The control groups that this process belongs to, as folders (cgroups(7)): its own, and those
/// above it as far as they are visible. The limits of all of them apply.
struct ControlGroups: Equatable {
    /// The hierarchies that a folder can be part of, which name their files differently.
    enum Version: Equatable {
        case one
        case two
    }

    /// One group.
    struct Folder: Equatable {
        var version: Version
        var path: String
    }

    /// What limits memory, and what limits processor time; one's own group before those above it.
    var memory: [Folder] = []
    var processor: [Folder] = []

    /// Finds the folders.
    ///
    /// - Parameters:
    ///   - membership: /proc/self/cgroup: a line for each hierarchy, `number:controllers:group`.
    ///   - mounts: /proc/self/mountinfo (proc_pid_mountinfo(5)).
    init(membership: String, mounts: String) {
        let mounts = mounts.split(separator: "\n").compactMap { Mount($0) }
        for line in membership.split(separator: "\n") {
            let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3 else { continue }
            let group = String(parts[2])
            if parts[0] == "0", parts[1].isEmpty {
                guard let mount = mounts.first(where: { $0.type == "cgroup2" }) else { continue }
                let folders = mount.folders(of: group, .two)
                memory += folders
                processor += folders
                continue
            }
            for controller in parts[1].split(separator: ",") {
                guard controller == "memory" || controller == "cpu",
                    let mount = mounts.first(where: {
                        $0.type == "cgroup" && $0.options.contains(controller)
                    })
                else { continue }
                let folders = mount.folders(of: group, .one)
                if controller == "memory" { memory += folders } else { processor += folders }
            }
        }
    }

    /// One line of /proc/self/mountinfo.
    private struct Mount {
        /// The group that is mounted: the root of what is visible.
        var root: String
        var point: String
        var type: Substring
        var options: [Substring]

        init?(_ line: Substring) {
            let columns = line.split(separator: " ")
            guard let separator = columns.firstIndex(of: "-"), separator >= 5,
                columns.count > separator + 3
            else { return nil }
            root = Self.unescaped(columns[3])
            point = Self.unescaped(columns[4])
            type = columns[separator + 1]
            options = columns[separator + 3].split(separator: ",")
        }

        /// A path as it is: spaces and the like are written as `\040`.
        private static func unescaped(_ text: Substring) -> String {
            var bytes: [UInt8] = []
            var rest = text.utf8[...]
            while let byte = rest.popFirst() {
                let digits = String(rest.prefix(3)) ?? ""
                if byte == UInt8(ascii: "\\"), let code = UInt8(digits, radix: 8) {
                    bytes.append(code)
                    rest = rest.dropFirst(3)
                } else {
                    bytes.append(byte)
                }
            }
            return String(decoding: bytes, as: UTF8.self)
        }

        /// The folders of a group and of those above it. A group that is not below the mounted one
        /// is that of a container which sees only itself: then that is the group.
        func folders(of group: String, _ version: Version) -> [Folder] {
            var names: [Substring] = []
            if let below = Self.path(group, below: root) { names = below.split(separator: "/") }
            if names.contains("..") { names = [] }
            return (0...names.count).reversed().map { count in
                let path = ([point[...]] + names.prefix(count)).joined(separator: "/")
                return Folder(version: version, path: path)
            }
        }

        private static func path(_ path: String, below root: String) -> Substring? {
            if root == "/" { return path[...] }
            guard path == root || path.hasPrefix(root + "/") else { return nil }
            return path.dropFirst(root.count)
        }
    }
}

extension ControlGroups {
    /// The smallest limit on memory of all the groups.
    ///
    /// - Parameter read: the content of a file, or `nil` if it cannot be read.
    func memoryLimit(read: (String) -> String?) -> MemoryLimit? {
        var smallest: MemoryLimit?
        for folder in memory {
            let files =
                folder.version == .two
                ? ["memory.max", "memory.high"] : ["memory.limit_in_bytes"]
            for file in files.map({ folder.path + "/" + $0 }) {
                // Version 2 has the word max for none, version 1 a number that no machine has.
                guard let bytes = read(file).flatMap({ Int($0.trimmed) }), bytes < 1 << 60,
                    bytes < smallest?.bytes ?? .max
                else { continue }
                smallest = MemoryLimit(bytes: bytes, file: file)
            }
        }
        return smallest
    }

    /// The smallest share of processor time of all the groups.
    ///
    /// - Parameter read: the content of a file, or `nil` if it cannot be read.
    func processorQuota(read: (String) -> String?) -> ProcessorQuota? {
        var smallest: ProcessorQuota?
        for folder in processor {
            guard let quota = quota(of: folder, read: read),
                quota.hundredths < smallest?.hundredths ?? .max
            else { continue }
            smallest = quota
        }
        return smallest
    }

    private func quota(of folder: Folder, read: (String) -> String?) -> ProcessorQuota? {
        let file: String
        let time: Int?
        let period: Int?
        switch folder.version {
        case .two:
            file = folder.path + "/cpu.max"
            let words = read(file)?.trimmed.split(separator: " ") ?? []
            (time, period) = (words.first.flatMap { Int($0) }, words.last.flatMap { Int($0) })
        case .one:
            file = folder.path + "/cpu.cfs_quota_us"
            time = read(file).flatMap { Int($0.trimmed) }
            period = read(folder.path + "/cpu.cfs_period_us").flatMap { Int($0.trimmed) }
        }
        // Version 2 has the word max for none, version 1 the number -1.
        guard let time, let period, time > 0, period > 0, time < 1 << 40 else { return nil }
        return ProcessorQuota(hundredths: max(1, (time * 100 + period - 1) / period), file: file)
    }
}

extension String {
    fileprivate var trimmed: Substring {
        self[...].drop { $0.isWhitespace }.prefix { $0 != "\n" }
    }
}
