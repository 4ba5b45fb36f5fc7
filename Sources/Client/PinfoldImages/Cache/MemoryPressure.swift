import CLinux

/// Reports memory pressure, from the kernel's pressure stall information
/// (https://docs.kernel.org/accounting/psi.html) or from the events of a control group
/// (https://docs.kernel.org/admin-guide/cgroup-v2.html, memory.events).
///
/// Watch ``descriptor`` for `EPOLLPRI`, then call ``acknowledge()`` to find out whether there is
/// memory pressure.
public struct MemoryPressureSource: ~Copyable, Sendable {
    /// The file that reports memory pressure.
    public enum Origin: Hashable, Sendable {
        /// `/proc/pressure/memory`, or a control group's `memory.pressure`. It reports when tasks
        /// have been stalled for a given time within a window.
        ///
        /// - Parameters:
        ///   - stallMilliseconds: The stall time; at most the window.
        ///   - windowMilliseconds: From 500 to 10 000; without CAP_SYS_RESOURCE, a multiple of
        ///     2000.
        case stalls(path: String, stallMilliseconds: Int, windowMilliseconds: Int)
        /// A control group's `memory.events`. It reports when `high`, `max` or `oom` has increased.
        case events(path: String)

        /// The whole machine: a tenth of two seconds.
        public static let machine = Origin.stalls(
            path: "/proc/pressure/memory", stallMilliseconds: 200, windowMilliseconds: 2000)
    }

    /// The descriptor to watch. It is owned by this value.
    public let descriptor: Int32
    private let origin: Origin
    private var last = MemoryEvents()

    /// - Throws: ``MemoryPressureError`` if the kernel has no such file or does not let this
    ///   process use it.
    public init(_ origin: Origin = .machine) throws(MemoryPressureError) {
        self.origin = origin
        switch origin {
        case .stalls(let path, let stall, let window):
            descriptor = open_with_mode(path, O_RDWR | O_NONBLOCK | O_CLOEXEC, 0)
            guard descriptor >= 0 else { throw MemoryPressureError() }
            // Including the terminating zero, which the kernel expects.
            let trigger = Array("some \(stall * 1000) \(window * 1000)\0".utf8)
            guard write(descriptor, trigger, trigger.count) == trigger.count else {
                let error = MemoryPressureError()
                close(descriptor)
                throw error
            }
        case .events(let path):
            descriptor = open_with_mode(path, O_RDONLY | O_CLOEXEC, 0)
            guard descriptor >= 0 else { throw MemoryPressureError() }
            do throws(MemoryPressureError) {
                last = try Self.events(descriptor)
            } catch {
                close(descriptor)
                throw error
            }
        }
    }

    deinit { close(descriptor) }

    /// Call this once the descriptor is ready.
    ///
    /// - Returns: Whether there is memory pressure. A control group's events also report other
    ///   things.
    public mutating func acknowledge() throws(MemoryPressureError) -> Bool {
        guard case .events = origin else { return true }
        let now = try Self.events(descriptor)
        defer { last = now }
        return now.isShort(since: last)
    }

    private static func events(_ descriptor: Int32) throws(MemoryPressureError) -> MemoryEvents {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = pread(descriptor, &bytes, bytes.count, 0)
        guard count >= 0 else { throw MemoryPressureError() }
        return MemoryEvents(String(decoding: bytes[..<count], as: UTF8.self))
    }
}

/// The counters in a control group's `memory.events`.
package struct MemoryEvents: Hashable, Sendable {
    /// How often the group was throttled because it exceeded `memory.high`.
    package var high: UInt64 = 0
    /// How often the group was about to exceed `memory.max`.
    package var max: UInt64 = 0
    /// How often the group ran out of memory at its limit.
    package var outOfMemory: UInt64 = 0

    /// Creates counters that are all zero.
    package init() {}

    /// Parses the file: a name and a number on each line. Unknown names are ignored.
    package init(_ text: String) {
        for line in text.split(whereSeparator: \.isNewline) {
            let words = line.split(separator: " ")
            guard words.count == 2, let number = UInt64(words[1]) else { continue }
            switch words[0] {
            case "high": high = number
            case "max": max = number
            case "oom": outOfMemory = number
            default: break
            }
        }
    }

    /// Whether any counter has increased.
    package func isShort(since last: MemoryEvents) -> Bool {
        high > last.high || max > last.max || outOfMemory > last.outOfMemory
    }
}

/// The reason why memory pressure cannot be monitored.
public struct MemoryPressureError: Error, Hashable, Sendable {
    /// The system's error number.
    public var code: Int32

    /// Captures the error number of the preceding system call.
    init() { code = __errno_location().pointee }
}
