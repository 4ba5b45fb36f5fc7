import CLinux

/// Tells that memory runs short, by the kernel's pressure stall information
/// (https://docs.kernel.org/accounting/psi.html) or by the events of a control group
/// (https://docs.kernel.org/admin-guide/cgroup-v2.html, memory.events).
///
/// Its descriptor is watched for `EPOLLPRI`; then ``acknowledge()`` says whether it was so.
public struct MemoryPressureSource: ~Copyable, Sendable {
    /// Where it is read from.
    public enum Origin: Hashable, Sendable {
        /// A file as `/proc/pressure/memory`, or a control group's `memory.pressure`. It tells
        /// once that tasks have stalled for so long within a window.
        ///
        /// - Parameters:
        ///   - stallMilliseconds: at most the window.
        ///   - windowMilliseconds: 500 to 10 000; without CAP_SYS_RESOURCE a multiple of 2000.
        case stalls(path: String, stallMilliseconds: Int, windowMilliseconds: Int)
        /// A control group's `memory.events`. It tells that `high`, `max` or `oom` has grown.
        case events(path: String)

        /// A tenth of two seconds of the whole machine.
        public static let machine = Origin.stalls(
            path: "/proc/pressure/memory", stallMilliseconds: 200, windowMilliseconds: 2000)
    }

    /// To be watched; belongs to this value.
    public let descriptor: Int32
    private let origin: Origin
    private var last = MemoryEvents()

    /// - Throws: where the kernel has no such file, or does not let this process use it.
    public init(_ origin: Origin = .machine) throws(MemoryPressureError) {
        self.origin = origin
        switch origin {
        case .stalls(let path, let stall, let window):
            descriptor = open_with_mode(path, O_RDWR | O_NONBLOCK | O_CLOEXEC, 0)
            guard descriptor >= 0 else { throw MemoryPressureError() }
            // With its zero, as the kernel reads it.
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

    /// Called once the descriptor is ready.
    ///
    /// - Returns: whether memory runs short. The events of a control group also tell of others.
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

/// What a control group's `memory.events` counts.
public struct MemoryEvents: Hashable, Sendable {
    /// How often the group was held back because it was above `memory.high`.
    public var high: UInt64 = 0
    /// How often it came to `memory.max`.
    public var max: UInt64 = 0
    /// How often that left no memory for it.
    public var outOfMemory: UInt64 = 0

    /// Nothing has happened.
    public init() {}

    /// Reads the file: a name and a number in each line. Others are passed over.
    public init(_ text: String) {
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

    /// Whether anything has grown.
    public func isShort(since last: MemoryEvents) -> Bool {
        high > last.high || max > last.max || outOfMemory > last.outOfMemory
    }
}

/// Why memory pressure cannot be watched.
public struct MemoryPressureError: Error, Hashable, Sendable {
    /// The system's error number.
    public var code: Int32

    /// That of the call before.
    init() { code = __errno_location().pointee }
}
