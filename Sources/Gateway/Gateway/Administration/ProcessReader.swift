import CLinux
import Clocks
import PinfoldMetrics

/// Reads the process's figures from the kernel (proc(5), getrusage(2)).
///
/// A scrape costs a handful of system calls; with kernels before 6.2, which do not tell the number
/// of open descriptors, also a walk over them.
package struct ProcessReader: Sendable {
    private let startMilliseconds: UInt64
    private let pageBytes: UInt64

    /// A reader for this process; finds out when it started.
    package init() {
        pageBytes = UInt64(max(1, sysconf(Int32(_SC_PAGESIZE))))
        startMilliseconds = ProcessReader.startTime()
    }

    /// The figures now; what cannot be read is 0.
    package func figures() -> ProcessFigures {
        var figures = ProcessFigures()
        figures.cpuMicroseconds = UInt64(Clock.processCPUMicroseconds())
        let pages = ProcessReader.read("/proc/self/statm").flatMap { ProcessReader.statm($0) }
        figures.virtualBytes = (pages?.virtual ?? 0) * pageBytes
        figures.residentBytes = (pages?.resident ?? 0) * pageBytes
        figures.openDescriptors = ProcessReader.openDescriptors()
        var limit = rlimit()
        if getrlimit(Int32(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur != .max {
            figures.maximumDescriptors = UInt64(limit.rlim_cur)
        }
        figures.startMilliseconds = startMilliseconds
        return figures
    }

    // MARK: Parsing

    /// `/proc/self/statm`: pages of address space and pages in RAM are its first two numbers.
    static func statm(_ text: String) -> (virtual: UInt64, resident: UInt64)? {
        let numbers = text.split(whereSeparator: \.isWhitespace).prefix(2).map { UInt64($0) }
        guard numbers.count == 2, let virtual = numbers[0], let resident = numbers[1] else {
            return nil
        }
        return (virtual, resident)
    }

    /// `/proc/self/stat`: the start time in clock ticks since boot is the 22nd field. The second,
    /// the command in parentheses, may hold spaces and parentheses itself.
    static func startTicks(_ text: String) -> UInt64? {
        guard let end = text.lastIndex(of: ")") else { return nil }
        let fields = text[text.index(after: end)...].split(whereSeparator: \.isWhitespace)
        return fields.count > 19 ? UInt64(fields[19]) : nil
    }

    // MARK: Reading

    private static func startTime() -> UInt64 {
        guard let text = read("/proc/self/stat"), let ticks = startTicks(text) else { return 0 }
        let perSecond = UInt64(max(1, sysconf(Int32(_SC_CLK_TCK))))
        let boot = UInt64(max(0, Clock.wallMilliseconds() - Clock.bootMilliseconds()))
        return boot + ticks * 1000 / perSecond
    }

    private static func openDescriptors() -> UInt64 {
        var status = stat()
        // Linux 6.2 and later say how many there are; earlier ones say 0.
        if stat("/proc/self/fd", &status) == 0, status.st_size > 0 {
            return UInt64(status.st_size)
        }
        guard let directory = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(directory) }
        var count: UInt64 = 0
        while readdir(directory) != nil { count += 1 }
        // Without ".", ".." and the directory's own descriptor.
        return count - min(count, 3)
    }

    private static func read(_ path: String) -> String? {
        let descriptor = open_with_mode(path, O_RDONLY | O_CLOEXEC, 0)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = CLinux.read(descriptor, &buffer, buffer.count)
        guard count > 0 else { return nil }
        return String(decoding: buffer[..<count], as: UTF8.self)
    }
}
