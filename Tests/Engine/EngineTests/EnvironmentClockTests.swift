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
        let resolver = try ScriptedResolver { 0 }
        let shared = SharedEnvironment(
            mailboxes: [try Mailbox<EngineMessage>()], resolver: resolver.resolver, store: nil,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, labels: RouteLabels(),
            activity: ActivityMonitor(delays: ActivityDelays()))
        let environment = Environment(
            index: 0, loop: loop, policy: try testPolicy(), shared: shared,
            metrics: WorkerMetrics(
                dimensions: MetricsDimensions(reasons: Reason.tokens.count)))
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

    /// Returns once the clock shows another microsecond, so that another reading would differ.
    private static func pass(_ microseconds: Int64) {
        while Clock.monotonicMicroseconds() == microseconds {}
    }
}
