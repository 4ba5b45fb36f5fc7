import EventLoop
public import ImageCache

/// Whether a cache hears of memory running short.
public enum MemoryPressureState: Sendable, Hashable {
    /// It does, from there.
    case watched(MemoryPressureSource.Origin)
    /// It does not: the kernel lets this process use none of these, each with its error number.
    case unavailable([Refusal])
    /// It did, and does no more: the source has failed, or the runtime is closed.
    case ended

    /// A source that cannot be used.
    public struct Refusal: Sendable, Hashable {
        /// Where it would have told.
        public let origin: MemoryPressureSource.Origin
        /// The system's error number.
        public let code: Int32
    }
}

/// What tells of memory running short.
struct PressureSource: Sendable {
    let origin: MemoryPressureSource.Origin
    /// Has something out of the ordinary when there may be pressure.
    let descriptor: Int32
    /// Whether it is so.
    let acknowledge: @Sendable () throws(MemoryPressureError) -> Bool
}

/// Watches for memory running short on a runtime's loop.
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
        // An error alone: what the file was about is gone.
        guard readiness.contains(.urgent) else { return runtime.removeWatch(number) }
        do throws(MemoryPressureError) {
            if try source.acknowledge() { isShort() }
        } catch {
            runtime.removeWatch(number)
        }
    }
}
