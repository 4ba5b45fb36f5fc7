import CLinux
import Clocks
import Files

/// The operating system's figures of the process.
package struct ProcessFigures: Sendable, Equatable {
    /// User and system time, in microseconds.
    package var cpuMicroseconds: UInt64 = 0
    /// Memory in RAM, in bytes.
    package var residentBytes: UInt64 = 0
    /// Address space, in bytes.
    package var virtualBytes: UInt64 = 0
    package var openDescriptors: UInt64 = 0
    /// The soft limit of descriptors; `nil` if there is none.
    package var maximumDescriptors: UInt64?
    /// When the process started, in milliseconds since 1970.
    package var startMilliseconds: UInt64 = 0
}

/// Reads the process's statistics from the kernel (proc(5), getrusage(2)).
///
/// A scrape costs a handful of system calls; on kernels before 6.2, which do not report the number
/// of open descriptors, it also counts them.
package struct ProcessReader: Sendable {
    private let startMilliseconds: UInt64
    private let pageBytes: UInt64

    /// Creates a reader for this process, and determines when it started.
    package init() {
        pageBytes = UInt64(max(1, sysconf(Int32(_SC_PAGESIZE))))
        startMilliseconds = ProcessReader.startTime()
    }

    /// The current values; those that cannot be read are 0.
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

    /// Parses `/proc/self/statm`: its first two numbers are the pages of address space and those in
    /// RAM.
    static func statm(_ text: String) -> (virtual: UInt64, resident: UInt64)? {
        let numbers = text.split(whereSeparator: \.isWhitespace).prefix(2).map { UInt64($0) }
        guard numbers.count == 2, let virtual = numbers[0], let resident = numbers[1] else {
            return nil
        }
        return (virtual, resident)
    }

    /// Parses `/proc/self/stat`: the start time in clock ticks since boot is the 22nd field. The
    /// second, the command in parentheses, may itself contain spaces and parentheses.
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
        // Linux 6.2 and later report the number; earlier versions report 0.
        if stat("/proc/self/fd", &status) == 0, status.st_size > 0 {
            return UInt64(status.st_size)
        }
        guard let directory = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(directory) }
        var count: UInt64 = 0
        while readdir(directory) != nil { count += 1 }
        // Excludes ".", ".." and the directory's own descriptor.
        return count - min(count, 3)
    }

    private static func read(_ path: String) -> String? {
        (try? OpenFile(path).contents(most: 4096)).map { String(decoding: $0, as: UTF8.self) }
    }
}
