import CLinux
import Locking

extension MemoryPressureSource.Origin {
    /// The sources that this process may be able to use, the best one first: stalls of the whole
    /// machine, which include those of its control groups; stalls of the process's own group, for
    /// containers that hide the machine's; and the group's events, for kernels without stall
    /// information.
    public static var ofThisProcess: [MemoryPressureSource.Origin] {
        guard let group = ownGroup else { return [.machine] }
        return [
            .machine,
            .stalls(
                path: "\(group)/memory.pressure", stallMilliseconds: 200,
                windowMilliseconds: 2000),
            .events(path: "\(group)/memory.events"),
        ]
    }

    /// The folder of the process's control group (version 2).
    private static var ownGroup: String? {
        let file = open_with_mode("/proc/self/cgroup", O_RDONLY | O_CLOEXEC, 0)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = read(file, &bytes, bytes.count)
        guard count > 0 else { return nil }
        return group(in: String(decoding: bytes[..<count], as: UTF8.self))
    }

    /// The folder named in `/proc/self/cgroup`, or `nil` if there is no version 2 group.
    static func group(in text: String) -> String? {
        let line = text.split(whereSeparator: \.isNewline).first { $0.hasPrefix("0::/") }
        guard let path = line?.dropFirst("0::".count), !path.hasPrefix("/..") else { return nil }
        return path == "/" ? "/sys/fs/cgroup" : "/sys/fs/cgroup\(path)"
    }
}

extension PressureSource {
    /// Opens a kernel source, which is closed with the last copy of this value.
    init(_ origin: MemoryPressureSource.Origin) throws(MemoryPressureError) {
        let source = try MemoryPressureSource(origin)
        let descriptor = source.descriptor
        let holder = Holder(source)
        self.init(origin: origin, descriptor: descriptor) { () throws(MemoryPressureError) in
            try holder.acknowledge()
        }
    }

    /// Used only on the loop's thread; the lock is there for the compiler.
    private final class Holder: Sendable {
        private let source: Locked<MemoryPressureSource>

        init(_ source: consuming sending MemoryPressureSource) { self.source = Locked(source) }

        func acknowledge() throws(MemoryPressureError) -> Bool {
            try source.withLock { (source) throws(MemoryPressureError) in
                try source.acknowledge()
            }
        }
    }
}
