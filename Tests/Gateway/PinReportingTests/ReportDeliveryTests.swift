import CLinux
import EngineTestSupport
import EventLoop
import Locking
import PinfoldTLS
import TestSupport
import Testing
import Threads

@testable import PinReporting

@Suite("The loop of the reporter's thread")
struct ReporterLoopTests {
    private let wakes: Mailbox<Void>
    private let loop: ReporterLoop

    init() throws {
        wakes = try Mailbox()
        loop = try ReporterLoop(wokenBy: wakes)
    }

    private var now: Int64 { ReporterCore.nanoseconds(after: 0) / 1_000_000 }

    /// Whether it stops long before its end.
    private func stopsEarly() -> Bool {
        let end = now + 10_000
        loop.run(until: end)
        return now < end
    }

    @Test func `stops for something else to do, whenever that was said`() {
        wakes.post(())
        #expect(stopsEarly())
        loop.wake()
        #expect(stopsEarly())
        wakes.post(())
        // It finds the message.
        loop.turn()
        #expect(stopsEarly())
    }

    @Test func `stops once for that`() {
        wakes.post(())
        #expect(stopsEarly())
        let end = now + 20
        loop.run(until: end)
        #expect(now >= end)
    }
}

@Suite("A delivery under way")
struct ReportDeliveryTests {
    /// What the reporter's thread and the test tell each other.
    private struct Course {
        /// The thread is held before it keeps the reports.
        var isHeld = false
        var mayGoOn = false
        /// How many reports were still to be kept when the first one was delivered.
        var leftAtDelivery: Int?
    }

    /// Keeping a report waits for the disk.
    @Test func `does not wait until all new reports are kept`() throws {
        let folder = TemporaryFolder()
        let server = try ScriptedServer()
        let policy = policy("payments", port: server.port)
        let settings = PinReporter.Settings(
            policies: ["payments": policy], pins: [:],
            context: try TLSClientContext(roots: try TrustRoots([])))
        let course = Monitor(Course())
        let cores = Locked<ReporterCore?>(nil)
        let core = ReporterCore(settings: settings, wakes: try Mailbox()) { event in
            switch event {
            case .full:
                course.withLock { $0.isHeld = true }
                course.broadcast()
                course.wait { $0.mayGoOn ? .done(()) : .signal }
            case .delivered:
                let left = cores.withLock { $0?.state.withLock { $0.unkept } }
                course.withLock { $0.leftAtDelivery = left }
                course.broadcast()
            default: break
            }
        }
        cores.withLock { $0 = core }
        let resolver = try silentResolver()
        defer { resolver.close() }
        _ = core.state.withLock { $0.accept(report(host: "first")) }
        nonisolated(unsafe) let loop = try ReporterLoop(wokenBy: core.wakes)
        let path = folder.file("reports")
        let thread = try Thread(name: "reports") {
            ReportDelivery(core: core, loop: loop, folder: path, resolver: resolver, use: nil)
                .run()
        }
        let peer = try server.nextPeer()
        for _ in 0..<20_000 where !peer.read().hasSuffix("}") { usleep(1000) }

        core.state.withLock { state in
            for number in 0..<8 { _ = state.accept(report(host: "h\(number)")) }
            // Said before any report is kept.
            state.refused = 1
        }
        core.wakes.post(())
        course.wait { $0.isHeld ? .done(()) : .signal }
        peer.send("HTTP/1.1 204 No Content\r\n\r\n")
        course.withLock { $0.mayGoOn = true }
        course.broadcast()
        let left = course.wait { $0.leftAtDelivery.map { .done($0) } ?? .signal }
        #expect(left == 7)

        core.state.withLock { $0.isEnding = true }
        core.wakes.post(())
        thread.join()
        cores.withLock { $0 = nil }
    }
}
