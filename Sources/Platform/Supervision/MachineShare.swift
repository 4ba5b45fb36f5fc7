import CLinux
import Files

/// A limit on memory.
package struct MemoryLimit: Sendable, Equatable {
    package var bytes: Int
    /// The file that says so.
    package var file: String

    package init(bytes: Int, file: String) {
        self.bytes = bytes
        self.file = file
    }
}

/// A limit on processor time.
package struct ProcessorQuota: Sendable, Equatable {
    /// Hundredths of a core, rounded up: 150 is the time of one and a half.
    package var hundredths: Int
    /// The file that says so.
    package var file: String

    package init(hundredths: Int, file: String) {
        self.hundredths = hundredths
        self.file = file
    }

    /// How many threads can use that time, at least one.
    package var cores: Int { max(1, (hundredths + 99) / 100) }

    /// The number of cores, as `1.5`.
    package var text: String {
        let (whole, rest) = hundredths.quotientAndRemainder(dividingBy: 100)
        if rest == 0 { return "\(whole)" }
        return "\(whole)." + (rest % 10 == 0 ? "\(rest / 10)" : rest < 10 ? "0\(rest)" : "\(rest)")
    }
}

/// What the process may use of the machine.
package struct MachineShare: Sendable, Equatable {
    /// Cores of the machine.
    package var onlineCores: Int
    /// Those of them that the process may run on.
    package var allowedCores: Int
    /// The limit of its control groups on processor time; `nil` for none.
    package var quota: ProcessorQuota?
    /// The limit of its control groups on memory; `nil` for none.
    package var memory: MemoryLimit?

    package init(
        onlineCores: Int, allowedCores: Int? = nil, quota: ProcessorQuota? = nil,
        memory: MemoryLimit? = nil
    ) {
        self.onlineCores = max(1, onlineCores)
        self.allowedCores = max(1, min(allowedCores ?? onlineCores, self.onlineCores))
        self.quota = quota
        self.memory = memory
    }

    /// How many threads can run at the same time.
    package var cores: Int { min(allowedCores, quota?.cores ?? allowedCores) }

    /// From where the number of cores is: for the log.
    package var coresSource: String {
        if let quota, quota.cores < allowedCores {
            return "\(quota.file) (\(quota.text) of \(allowedCores))"
        }
        return allowedCores < onlineCores ? "affinity (of \(onlineCores))" : "online cores"
    }

    /// The share of this process, now.
    package static func ofProcess() -> MachineShare {
        let online = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        let allowed = Int(allowed_processors())
        let groups = ControlGroups(
            membership: content("/proc/self/cgroup") ?? "",
            mounts: content("/proc/self/mountinfo") ?? "")
        return MachineShare(
            onlineCores: online, allowedCores: allowed > 0 ? allowed : online,
            quota: groups.processorQuota(read: content), memory: groups.memoryLimit(read: content))
    }

    private static func content(_ path: String) -> String? {
        do throws(FileError) {
            return String(decoding: try OpenFile(path).contents(most: 1 << 20), as: UTF8.self)
        } catch {
            return nil
        }
    }
}
