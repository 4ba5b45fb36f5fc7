import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

/// Runs handlers only once it is opened.
private final class Gate: Sendable {
    private let (stream, continuation) = AsyncStream.makeStream(of: Void.self)

    func open() { continuation.finish() }

    var execution: CallbackExecution {
        .custom { [stream] handler in
            for await _ in stream {}
            handler()
        }
    }
}

@Suite("The callbacks of a session that wait", .timeLimit(.minutes(30)))
struct CallbackQueueTests {
    @Test func `are no more than a maximum of events, and all completion handlers`() async {
        let gate = Gate()
        let queue = CallbackQueue(gate.execution, maximumWaiting: 10)
        let (lines, tell) = AsyncStream.makeStream(of: String.self)
        for number in 0..<100 { queue.offer { tell.yield("event \(number) after \($0)") } }
        for number in 0..<20 { queue.run { tell.yield("handler \(number)") } }
        queue.offer { _ in tell.yield("none") }
        queue.run { tell.finish() }
        gate.open()
        let seen = await lines.reduce(into: [String]()) { $0.append($1) }
        #expect(
            seen == (0..<10).map { "event \($0) after 0" } + (0..<20).map { "handler \($0)" })
        // There is room again, and those that are missing are told of.
        let later = await withCheckedContinuation { continuation in
            queue.run { queue.offer { continuation.resume(returning: $0) } }
        }
        #expect(later == 91)
    }

    /// Counts what it is told.
    private final class Counts: EventMonitor {
        let (told, missing) = (Locked(0), Locked(0))

        func request(_ task: TaskIdentifier, _ event: RequestEvent) { told.withLock { $0 += 1 } }
        func session(_ event: SessionEvent) { told.withLock { $0 += 1 } }
        func missed(_ events: Int) { missing.withLock { $0 += events } }
    }

    @Test func `leave out events of a session, of which monitors get the number`() async throws {
        let (gate, counts) = (Gate(), Counts())
        let registry = TaskRegistry(
            CallbackQueue(gate.execution, maximumWaiting: 100), nil, nil, monitors: [counts]
        ) {}
        let request = try HTTPRequest(.get, "http://a.test/")
        for _ in 0..<1000 { registry.report(.next(), .adapted(request, from: request)) }
        gate.open()
        var posted = 0
        while counts.missing.withLock({ $0 }) == 0 {
            registry.post(.downloadMoved(.next(), to: "/a"))
            posted += 1
            await Task.yield()
        }
        #expect(counts.told.withLock { $0 } >= 100)
        #expect(counts.missing.withLock { $0 } >= 900)
        #expect(counts.missing.withLock { $0 } <= 900 + posted)
    }

    @Test func `keep the latest of the changes of a value`() async {
        let gate = Gate()
        let feed = ChangeFeed(0, gate.execution)
        let (values, tell) = AsyncStream.makeStream(of: Int.self)
        feed.handler = { value in
            tell.yield(value)
            if value == 5000 { tell.finish() }
        }
        for value in 1...5000 { feed.publish(value) }
        gate.open()
        let seen = await values.reduce(into: [Int]()) { $0.append($1) }
        #expect(seen == Array(1...1024) + [5000])
    }
}
