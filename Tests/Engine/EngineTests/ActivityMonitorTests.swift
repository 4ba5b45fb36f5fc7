import Activity
import EventLoop
import Testing
import Threads

@testable import PinfoldEngine

private let delays = ActivityDelays(activationMilliseconds: 100, completionMilliseconds: 50)

/// Runs `body` on so many threads, each with its number, beside `meanwhile`; joins them all.
private func withThreads(
    _ count: Int, _ body: @escaping @Sendable (Int) -> Void, meanwhile: () throws -> Void
) throws {
    guard count > 0 else { return try meanwhile() }
    let thread = try Thread(name: "test-\(count - 1)") { body(count - 1) }
    try withThreads(count - 1, body, meanwhile: meanwhile)
    thread.join()
}

@Suite("The monitor of activity")
struct ActivityMonitorTests {
    private let monitor = ActivityMonitor(delays: delays)

    /// The actions requested of the timer's owner.
    private func observe() -> [ActivityActions] {
        var actions: [ActivityActions] = []
        monitor.observe { if $0 != .none { actions.append($0) } }
        return actions
    }

    @Test func `an exchange that lasts is shown and hidden after its end`() {
        #expect(monitor.needsUpdate)
        monitor.begin()
        #expect(observe() == [ActivityActions(timer: .start(milliseconds: 100))])
        #expect(monitor.snapshot.state == .delayingStart)
        #expect(monitor.timerFired() == ActivityActions(visibilityChanged: true))
        #expect(monitor.snapshot.state == .active)
        monitor.end()
        #expect(observe() == [ActivityActions(timer: .start(milliseconds: 50))])
        #expect(monitor.snapshot.state == .delayingEnd)
        #expect(monitor.timerFired() == ActivityActions(visibilityChanged: false))
        #expect(monitor.snapshot.state == .notActive)
    }

    @Test func `an exchange that ended before the update still starts the delay`() {
        monitor.begin()
        monitor.end()
        #expect(observe() == [ActivityActions(timer: .start(milliseconds: 100))])
        #expect(monitor.snapshot.count == 0)
        // Nothing is left when the delay is over: nothing was shown.
        #expect(monitor.timerFired() == .none)
        #expect(monitor.snapshot.state == .notActive)
    }

    @Test func `an exchange that ended untold before the timer is not shown`() {
        monitor.begin()
        _ = observe()
        monitor.end()
        // No update is needed in this state; the timer reads the number itself.
        #expect(!monitor.needsUpdate)
        #expect(monitor.timerFired() == .none)
        #expect(monitor.snapshot.state == .notActive)
    }

    @Test func `another exchange within the end's delay cancels it`() {
        monitor.begin()
        _ = observe()
        _ = monitor.timerFired()
        monitor.end()
        _ = observe()
        monitor.begin()
        #expect(observe() == [ActivityActions(timer: .cancel)])
        #expect(monitor.snapshot.state == .active)
    }

    @Test func `a short exchange within the end's delay restarts the delay`() {
        monitor.begin()
        _ = observe()
        _ = monitor.timerFired()
        monitor.end()
        _ = observe()
        monitor.begin()
        monitor.end()
        #expect(
            observe() == [
                ActivityActions(timer: .cancel),
                ActivityActions(timer: .start(milliseconds: 50)),
            ])
        #expect(monitor.snapshot.state == .delayingEnd)
    }

    @Test func `a timer that fires late finds what began meanwhile`() {
        monitor.begin()
        _ = observe()
        _ = monitor.timerFired()
        monitor.end()
        _ = observe()
        monitor.begin()
        // Not updated yet when the timer fires: it stays visible.
        let actions = monitor.timerFired()
        #expect(actions.visibilityChanged == nil)
        #expect(monitor.snapshot.state == .active)
    }

    @Test func `it needs an update only in some states`() {
        #expect(monitor.needsUpdate)
        monitor.begin()
        _ = observe()
        #expect(monitor.snapshot.state == .delayingStart)
        #expect(!monitor.needsUpdate)
        _ = monitor.timerFired()
        #expect(monitor.snapshot.state == .active)
        // Busy: one exchange more or less needs no update, the end of the last one does.
        #expect(!monitor.needsUpdate)
        monitor.begin()
        #expect(!monitor.needsUpdate)
        monitor.end()
        #expect(!monitor.needsUpdate)
        monitor.end()
        #expect(monitor.needsUpdate)
        _ = observe()
        #expect(monitor.snapshot.state == .delayingEnd)
        #expect(monitor.needsUpdate)
    }

    @Test func `exchanges of all threads are counted`() throws {
        let (monitor, done) = (monitor, try Mailbox<Int>())
        let loop = try EventLoop()
        var finished = 0
        let receiver = MailboxReceiver(done) { [unowned loop] _ in
            finished += 1
            if finished == 4 { loop.stop() }
        }
        try loop.add(receiver, descriptor: receiver.descriptor, trigger: .levelReadable)
        try withThreads(4) { thread in
            for _ in 0..<5000 {
                monitor.begin()
                monitor.end()
            }
            monitor.begin()
            done.post(thread)
        } meanwhile: {
            loop.run()
        }
        _ = observe()
        #expect(monitor.snapshot.count == 4)
    }
}
