import Activity
import Clocks
import EngineTestSupport
import EventLoop
import Logging
import PinfoldMetrics
import Testing

@testable import PinfoldEngine

@Suite("An environment's clock")
struct EnvironmentClockTests {
    @Test func `uses one reading of the clock for everything in a turn`() throws {
        let loop = try EventLoop()
        let environment = try Self.environment(on: loop)
        defer { environment.close() }
        var latest: Int64 = 0
        for _ in 0..<3 {
            // The first call in a turn reads the clock.
            let first = environment.turnMicroseconds()
            #expect(first > latest)
            Self.pass(first)
            #expect(environment.turnMicroseconds() == first)
            latest = environment.readClock()
            #expect(latest > first)
            Self.pass(latest)
            #expect(environment.turnMicroseconds() == latest)
            loop.turn(waitingAtMost: 0)
        }
    }

    /// The machine's clocks, of which the thread loses 30 ms after each reading.
    private final class Interrupted {
        var milliseconds: Int64 = 1000
        static let wallOffset: Int64 = 1_700_000_000_000

        func read() -> Int64 {
            defer { milliseconds += 30 }
            return milliseconds
        }
    }

    @Test func `is never ahead, however long it takes to read it`() throws {
        let time = Interrupted()
        let loop = try EventLoop(
            time: TimeSource(
                monotonicMilliseconds: { time.read() },
                wallMilliseconds: { time.read() + Interrupted.wallOffset }))
        let environment = try Self.environment(on: loop)
        defer { environment.close() }
        for _ in 0..<200 {
            let shown = environment.wallMilliseconds
            #expect(shown <= time.milliseconds + Interrupted.wallOffset)
            #expect(shown > time.milliseconds + Interrupted.wallOffset - 200)
            loop.turn(waitingAtMost: 0)
        }
    }

    private static func environment(on loop: EventLoop) throws -> Environment {
        let resolver = try ScriptedResolver { 0 }
        let shared = SharedEnvironment(
            mailboxes: [try Mailbox<EngineMessage>()], resolver: resolver.resolver, store: nil,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, labels: RouteLabels(),
            activity: ActivityMonitor(delays: ActivityDelays()))
        return Environment(
            index: 0, loop: loop, policy: try testPolicy(), shared: shared,
            metrics: WorkerMetrics(
                dimensions: MetricsDimensions(reasons: Reason.tokens.count)))
    }

    /// Returns once the clock shows another microsecond, so that another reading would differ.
    private static func pass(_ microseconds: Int64) {
        while Clock.monotonicMicroseconds() == microseconds {}
    }
}
