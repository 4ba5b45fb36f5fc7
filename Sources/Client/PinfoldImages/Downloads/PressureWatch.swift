import EventLoop
import PinfoldClient

/// Whether a cache is notified of memory pressure.
public enum MemoryPressureState: Sendable, Hashable {
    /// The cache is notified by this source.
    case watched(MemoryPressureSource.Origin)
    /// The cache is not notified, because the kernel does not let this process use any source.
    case unavailable([UnavailableSource])
    /// The cache is no longer notified, because the source has failed or the runtime was closed.
    case ended

    /// A source that cannot be used.
    public struct UnavailableSource: Sendable, Hashable {
        /// The source.
        public let origin: MemoryPressureSource.Origin
        /// The system's error number.
        public let code: Int32
    }
}

/// A source of memory pressure events.
struct PressureSource: Sendable {
    let origin: MemoryPressureSource.Origin
    /// Becomes ready with `EPOLLPRI` when there may be memory pressure.
    let descriptor: Int32
    /// Returns whether there is memory pressure.
    let acknowledge: @Sendable () throws(MemoryPressureError) -> Bool
}

/// Watches for memory pressure on a runtime's loop.
final class PressureWatch: EventHandler {
    private let source: PressureSource
    private let number: UInt64
    private unowned let runtime: RuntimeLoop
    private let isShort: @Sendable () -> Void

    init(
        _ source: PressureSource, number: UInt64, on runtime: RuntimeLoop,
        isShort: @escaping @Sendable () -> Void
    ) {
        self.source = source
        self.number = number
        self.runtime = runtime
        self.isShort = isShort
    }

    func begin() throws(Errno) {
        try runtime.loop.add(self, descriptor: source.descriptor, trigger: .levelUrgent)
        runtime.keep(self, of: source.descriptor, as: number)
    }

    override func ready(_ readiness: Readiness) {
        // An error without data: the file's subject no longer exists.
        guard readiness.contains(.urgent) else { return runtime.removeWatch(number) }
        do throws(MemoryPressureError) {
            if try source.acknowledge() { isShort() }
        } catch {
            runtime.removeWatch(number)
        }
    }
}
