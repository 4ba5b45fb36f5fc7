import Testing

@testable import Supervision

/// The root of this machine's groups, as in a container with version 2 and a namespace of its own.
private let unified = """
    24 29 0:22 / /proc rw,nosuid - proc proc rw
    32 31 0:28 / /sys/fs/cgroup rw,nosuid,nodev shared:9 - cgroup2 cgroup2 rw,nsdelegate
    """

/// Version 1, with one mount for each controller.
private let legacy = """
    31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
    32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
    35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
    40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
    """

@Suite("Control groups") struct ControlGroupTests {
    private func folders(_ folders: [ControlGroups.Folder]) -> [String] { folders.map(\.path) }

    @Test func `a group of version 2 is followed by those above it`() {
        let groups = ControlGroups(
            membership: "0::/system.slice/pinfold.service\n", mounts: unified)
        let expected = [
            "/sys/fs/cgroup/system.slice/pinfold.service", "/sys/fs/cgroup/system.slice",
            "/sys/fs/cgroup",
        ]
        #expect(folders(groups.memory) == expected)
        #expect(folders(groups.processor) == expected)
    }

    @Test func `in version 1 each controller has its own groups`() {
        let membership = """
            9:name=systemd:/other
            4:memory:/docker/abc
            1:cpu,cpuacct:/docker
            """
        let groups = ControlGroups(membership: membership, mounts: legacy)
        #expect(
            folders(groups.memory) == [
                "/sys/fs/cgroup/memory/docker/abc", "/sys/fs/cgroup/memory/docker",
                "/sys/fs/cgroup/memory",
            ])
        #expect(
            folders(groups.processor) == [
                "/sys/fs/cgroup/cpu,cpuacct/docker", "/sys/fs/cgroup/cpu,cpuacct",
            ])
    }

    @Test(
        arguments: [
            // The mount shows the group itself, by the name that it has outside.
            ("/docker/abc", "/docker/abc", ["/g"]),
            ("/docker/abc", "/docker/abc/inner", ["/g/inner", "/g"]),
            // The names are of different namespaces.
            ("/docker/abc", "/", ["/g"]),
            ("/docker/abc", "/docker/abcd", ["/g"]),
            ("/", "/../sibling", ["/g"]),
            ("/", "/", ["/g"]),
        ])
    func `a container may see a part of the groups`(root: String, group: String, found: [String]) {
        let mounts = "32 31 0:28 \(root) /g rw - cgroup2 cgroup2 rw"
        let groups = ControlGroups(membership: "0::\(group)", mounts: mounts)
        #expect(folders(groups.memory) == found)
    }

    @Test func `a mount point may contain a space`() {
        let mounts = #"32 31 0:28 / /my\040groups rw - cgroup2 cgroup2 rw"#
        let groups = ControlGroups(membership: "0::/a", mounts: mounts)
        #expect(folders(groups.memory) == ["/my groups/a", "/my groups"])
    }

    @Test(arguments: ["", "nonsense", "0::/a", "4:memory:/", ":::", "1 2 3 - "])
    func `without a mounted hierarchy there are none`(membership: String) {
        for mounts in ["", "- - -", "nonsense\n\n", "32 31 0:28 / - cgroup2"] {
            let groups = ControlGroups(membership: membership, mounts: mounts)
            #expect(groups.memory.isEmpty && groups.processor.isEmpty)
        }
    }
}

@Suite("Limits of control groups") struct ControlGroupLimitTests {
    private func memory(_ files: [String: String], _ group: String = "/a/b") -> MemoryLimit? {
        ControlGroups(membership: "0::\(group)", mounts: unified).memoryLimit { files[$0] }
    }

    private func quota(_ files: [String: String], _ group: String = "/a/b") -> ProcessorQuota? {
        ControlGroups(membership: "0::\(group)", mounts: unified).processorQuota { files[$0] }
    }

    private let root = "/sys/fs/cgroup"

    @Test func `the smallest memory limit of all groups counts`() {
        #expect(memory([:]) == nil)
        #expect(memory(["\(root)/a/b/memory.max": "max\n"]) == nil)
        #expect(
            memory(["\(root)/a/b/memory.max": "268435456\n", "\(root)/a/memory.max": "max\n"])
                == MemoryLimit(bytes: 268_435_456, file: "\(root)/a/b/memory.max"))
        #expect(
            memory(["\(root)/a/b/memory.max": "268435456\n", "\(root)/a/memory.max": "1048576\n"])
                == MemoryLimit(bytes: 1_048_576, file: "\(root)/a/memory.max"))
        // Above memory.high the group is slowed down as much as it takes.
        #expect(
            memory(["\(root)/a/b/memory.max": "300\n", "\(root)/a/b/memory.high": "200\n"])
                == MemoryLimit(bytes: 200, file: "\(root)/a/b/memory.high"))
    }

    @Test func `version 1 has a number for no limit on memory`() {
        let groups = ControlGroups(membership: "4:memory:/a", mounts: legacy)
        let file = "/sys/fs/cgroup/memory/a/memory.limit_in_bytes"
        #expect(groups.memoryLimit { $0 == file ? "9223372036854771712\n" : nil } == nil)
        #expect(
            groups.memoryLimit { $0 == file ? "134217728\n" : nil }
                == MemoryLimit(bytes: 134_217_728, file: file))
    }

    @Test func `the smallest share of processor time of all groups counts`() {
        #expect(quota([:]) == nil)
        #expect(quota(["\(root)/a/b/cpu.max": "max 100000\n"]) == nil)
        #expect(quota(["\(root)/a/b/cpu.max": ""]) == nil)
        let file = "\(root)/a/cpu.max"
        #expect(
            quota([file: "150000 100000\n", "\(root)/a/b/cpu.max": "400000 100000\n"])
                == ProcessorQuota(hundredths: 150, file: file))
    }

    @Test func `version 1 writes the time and the period to two files`() {
        let groups = ControlGroups(membership: "1:cpu,cpuacct:/a", mounts: legacy)
        let folder = "/sys/fs/cgroup/cpu,cpuacct/a"
        func quota(_ time: String, _ period: String) -> ProcessorQuota? {
            groups.processorQuota {
                ["\(folder)/cpu.cfs_quota_us": time, "\(folder)/cpu.cfs_period_us": period][$0]
            }
        }
        #expect(quota("-1\n", "100000\n") == nil)
        #expect(quota("50000\n", "0\n") == nil)
        #expect(
            quota("25000\n", "50000\n")
                == ProcessorQuota(hundredths: 50, file: "\(folder)/cpu.cfs_quota_us"))
    }

    @Test(
        arguments: [
            (1, "0.01", 1), (50, "0.5", 1), (100, "1", 1), (101, "1.01", 2), (150, "1.5", 2),
            (225, "2.25", 3), (400, "4", 4),
        ])
    func `a share is rounded up to cores`(hundredths: Int, text: String, cores: Int) {
        let quota = ProcessorQuota(hundredths: hundredths, file: "f")
        #expect(quota.cores == cores)
        #expect(quota.text == text)
    }
}

@Suite("What the process may use of the machine") struct MachineShareTests {
    @Test func `cores are those online, allowed and paid for`() {
        func share(_ allowed: Int?, _ hundredths: Int?) -> MachineShare {
            MachineShare(
                onlineCores: 8, allowedCores: allowed,
                quota: hundredths.map { ProcessorQuota(hundredths: $0, file: "cpu.max") })
        }
        #expect(share(nil, nil).cores == 8)
        #expect(share(nil, nil).coresSource == "online cores")
        #expect(share(3, nil).cores == 3)
        #expect(share(3, nil).coresSource == "affinity (of 8)")
        #expect(share(3, 150).cores == 2)
        #expect(share(3, 150).coresSource == "cpu.max (1.5 of 3)")
        #expect(share(3, 900).cores == 3)
        #expect(share(0, 1).cores == 1)
        #expect(MachineShare(onlineCores: 0).cores == 1)
    }

    @Test func `this process has one`() {
        let share = MachineShare.ofProcess()
        #expect(share.cores >= 1 && share.cores <= share.onlineCores)
        #expect(share.memory?.bytes ?? 1 > 0)
    }
}
