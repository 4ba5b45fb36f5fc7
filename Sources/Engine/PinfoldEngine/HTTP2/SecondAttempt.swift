import EventLoop

/// Makes another connection if one on which all who wait count is slow: it may never answer, and
/// who comes after would wait for the timeout of whoever came first.
///
/// It is like the second address of connection racing (RFC 8305 §5), and as patient.
final class SecondAttempt: EventHandler, EnvironmentPart {
    /// After how long another one is made.
    static let milliseconds: Int64 = 250

    let environment: Environment
    private let pool: UpstreamPool
    private let origin: Origin

    /// Fails if the loop takes no more handlers.
    init?(_ pool: UpstreamPool, _ origin: Origin) {
        self.pool = pool
        environment = pool.environment
        self.origin = origin
        super.init()
        do throws(Errno) {
            try environment.loop.add(self)
        } catch {
            return nil
        }
        wait()
    }

    private func wait() { environment.loop.setDeadline(self, after: Self.milliseconds) }

    override func deadlineReached() {
        pool.isLate(origin) ? wait() : close()
    }

    private func close() {
        origin.http2.secondAttempt = nil
        environment.loop.remove(self)
    }

    func closeWithEnvironment() { close() }
}
