import Glibc
import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

/// Timers that are fired by a test.
private final class ManualTimers: Sendable {
    struct Pending: Sendable {
        let milliseconds: Int64
        let fire: @Sendable () -> Void
    }

    private let pending = Locked<[Int: Pending]>([:])
    private let count = Locked(0)
    /// The milliseconds of each timer that is started.
    let started: AsyncStream<Int64>
    private let whenStarted: AsyncStream<Int64>.Continuation

    init() { (started, whenStarted) = AsyncStream.makeStream(of: Int64.self) }

    var start: ActivityIndicator.Timer {
        { [self] milliseconds, fire in
            let number = count.withLock { count in
                count += 1
                return count
            }
            pending.withLock { $0[number] = Pending(milliseconds: milliseconds, fire: fire) }
            whenStarted.yield(milliseconds)
            return { [self] in _ = pending.withLock { $0.removeValue(forKey: number) } }
        }
    }

    /// The delays of the running timers.
    var running: [Int64] { pending.withLock { $0.values.map(\.milliseconds) } }

    /// Fires the running timer.
    func fire() {
        let timer = pending.withLock { pending -> Pending? in
            defer { pending = [:] }
            return pending.count == 1 ? pending.first?.value : nil
        }
        timer?.fire()
    }
}

@Suite("The activity indicator")
struct ActivityIndicatorTests {
    private let timers = ManualTimers()
    private let indicator: ActivityIndicator
    private let changes = Locked<[Bool]>([])
    private let visibility: AsyncStream<Bool>

    init() {
        indicator = ActivityIndicator(
            .seconds(1), .milliseconds(170), .serial, timer: timers.start)
        let (visibility, continuation) = AsyncStream.makeStream(of: Bool.self)
        self.visibility = visibility
        indicator.onChange = { [changes] isVisible in
            changes.withLock { $0.append(isVisible) }
            continuation.yield(isVisible)
        }
    }

    /// The next published change.
    private func next() async -> Bool? {
        var iterator = visibility.makeAsyncIterator()
        return await iterator.next()
    }

    @Test func `is disabled by default`() {
        #expect(!ActivityIndicator.shared.isEnabled)
        #expect(!indicator.isEnabled)
        indicator.increment()
        #expect(timers.running.isEmpty)
        #expect(indicator.count == 1)
        #expect(!indicator.isVisible)
    }

    @Test func `shows after a second, and hides after 170 milliseconds`() async {
        indicator.isEnabled = true
        indicator.increment()
        #expect(timers.running == [1000])
        #expect(!indicator.isVisible)
        timers.fire()
        #expect(indicator.isVisible)
        #expect(await next() == true)
        indicator.decrement()
        #expect(timers.running == [170])
        #expect(indicator.isVisible)
        timers.fire()
        #expect(!indicator.isVisible)
        #expect(await next() == false)
    }

    @Test func `shows nothing that has ended before the delay`() {
        indicator.isEnabled = true
        indicator.increment()
        indicator.decrement()
        #expect(timers.running == [1000])
        timers.fire()
        #expect(!indicator.isVisible)
        #expect(timers.running.isEmpty)
    }

    @Test func `stays if something begins before it is hidden`() {
        indicator.isEnabled = true
        indicator.increment()
        timers.fire()
        indicator.decrement()
        indicator.increment()
        #expect(timers.running.isEmpty)
        #expect(indicator.isVisible)
    }

    @Test func `shows and hides once for two that overlap`() async {
        indicator.isEnabled = true
        indicator.increment()
        timers.fire()
        indicator.increment()
        indicator.decrement()
        #expect(indicator.isVisible)
        indicator.decrement()
        timers.fire()
        #expect(await next() == true)
        #expect(await next() == false)
        #expect(changes.withLock { $0 } == [true, false])
    }

    @Test func `never counts below zero`() {
        indicator.decrement()
        #expect(indicator.count == 0)
        indicator.increment()
        #expect(indicator.count == 1)
    }

    @Test func `is reset when it is disabled`() async {
        indicator.isEnabled = true
        indicator.increment()
        timers.fire()
        #expect(await next() == true)
        indicator.isEnabled = false
        #expect(!indicator.isVisible)
        #expect(await next() == false)
        // It has continued to count.
        indicator.isEnabled = true
        #expect(timers.running == [1000])
        indicator.isEnabled = false
        #expect(timers.running.isEmpty)
    }

    @Test func `reports to its followers`() async {
        indicator.isEnabled = true
        var updates = indicator.updates().makeAsyncIterator()
        #expect(await updates.next() == false)
        indicator.increment()
        timers.fire()
        #expect(await updates.next() == true)
        indicator.decrement()
        timers.fire()
        #expect(await updates.next() == false)
    }

    @Test func `waits by the clock by default`() async {
        let indicator = ActivityIndicator(
            activationDelay: .milliseconds(1), completionDelay: .milliseconds(1))
        indicator.isEnabled = true
        indicator.increment()
        #expect(await indicator.updates().contains(true))
        indicator.decrement()
        #expect(await indicator.updates().contains(false))
    }

    @Test func `counts tasks of sessions, however many requests they make`() async throws {
        let gate = try AnswerGate()
        indicator.isEnabled = true
        try await withServer { connection, request in
            guard request.path != "/first" else {
                connection.respond("302 Found", ["Location: /"])
                return true
            }
            connection.wait(at: gate)
            connection.respond("200 OK", [], request.path)
            return true
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.activityIndicator = indicator
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let request = try HTTPRequest(.get, "\(server.url)/first")
            var options = RequestOptions()
            options.redirects = .follow { [indicator] proposal in
                // Between two requests, which have both ended or not begun.
                while indicator.count != 1 { await Task.yield() }
                return proposal.next
            }
            let task = Task { [options] in
                try await session.data(for: request, options: options)
            }
            await gate.arrival()
            #expect(indicator.count == 1)
            timers.fire()
            #expect(await next() == true)
            let handle = try #require(session.tasks.first)
            handle.suspend()
            while indicator.count != 0 { await Task.yield() }
            handle.resume()
            while indicator.count != 1 { await Task.yield() }
            gate.open()
            _ = try await task.value
            while indicator.count != 0 { await Task.yield() }
            #expect(timers.running == [170])
            timers.fire()
            #expect(await next() == false)
        }
    }
}
