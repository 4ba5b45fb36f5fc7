import CLinux
import Foundation
import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

/// The stage at which a task is cancelled.
enum CancelledStage: CaseIterable, Sendable {
    case queued, connecting, sending, awaitingHead, inContent, inRedirectHook, inChallengeHook
    case waitingToRetry, suspendedBefore, suspendedInContent

    /// The number of connections that are kept for other requests, because the last response is
    /// complete. A connection that is being established is completed, if the connect timeout
    /// allows.
    func keptConnections(_ rounds: Int) -> Int {
        switch self {
        case .inRedirectHook, .inChallengeHook, .waitingToRetry: 1
        case .connecting, .suspendedBefore: rounds
        default: 0
        }
    }
}

/// How a task is cancelled.
enum CancellingWay: CaseIterable, Sendable {
    case caller, handle, progress, session, invalidation
}

/// How a task is started.
private enum Beginning: CaseIterable {
    case data, response, completion
}

/// A task that was started.
private struct BegunTask: Sendable {
    let handle: TaskHandle
    let progress: TransferProgress
    /// Cancels the task as its caller would.
    let cancel: @Sendable () -> Void
    /// Its error, or `nil` if it succeeded.
    let outcome: @Sendable () async -> ClientError?
}

/// What is checked after tasks have been cancelled.
private final class Traces: Sendable {
    private struct Held { weak var handle: TaskHandle? }

    private let handles = Locked<[Held]>([])
    /// The number of completion handler calls, and how many are expected.
    let calls = Locked<(made: Int, expected: Int)>((0, 0))

    func follow(_ handle: TaskHandle) {
        handles.withLock { $0.append(Held(handle: handle)) }
    }

    /// The number of tasks that are still in memory, even if only for a timer.
    var tasks: Int { handles.withLock { $0.count { $0.handle != nil } } }
}

/// Runs tasks only while it is told to.
private final class HeldExecutor: TaskExecutor {
    private let jobs = Locked<[UnownedJob]>([])

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
    }

    /// Runs its tasks until all of them wait or have ended.
    func run() {
        while let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
            job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }
}

extension ClientRuntime {
    /// The number of descriptors and deadlines on the loop.
    fileprivate var handlerCount: Int {
        get async {
            await withCheckedContinuation { continuation in
                post(.work { continuation.resume(returning: $0.loop.handlers.count) })
            }
        }
    }
}

@Suite("A task that is cancelled", .serialized)
struct CancellationTests {
    /// Per stage and way; a stage has a thousand.
    private static let rounds = 1000 / CancellingWay.allCases.count

    private let traces = Traces()
    /// The number of hooks called.
    private let asked = Locked(0)

    private static let answer: TestServer.Answer = { connection, request in
        switch request.path {
        case "/content":
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
        case "/whole": connection.respond("200 OK", [], "whole")
        case "/redirect": connection.respond("302 Found", ["Location: /whole"])
        case "/challenge":
            connection.respond("401 Who", ["WWW-Authenticate: Basic realm=\"here\""])
        case "/retry": connection.respond("503 No", ["Retry-After: 3600"])
        default: break
        }
        guard request.path == "/" || request.path == "/content" else { return true }
        connection.waitForEnd()
        return false
    }

    private func session(
        on runtime: ClientRuntime, perOrigin: Int = 1
    ) throws -> SessionManager {
        var configuration = SessionConfiguration.patient
        configuration.securityPolicy = try TestAuthority.policy()
        configuration.maximumRequestsPerOrigin = perOrigin
        configuration.challenges = { [asked] _ in
            asked.withLock { $0 += 1 }
            try? await Task.sleep(for: .seconds(3600))
            return .performDefaultHandling
        }
        return try SessionManager(configuration: configuration, runtime: runtime)
    }

    // MARK: At each stage

    @Test(arguments: CancelledStage.allCases, CancellingWay.allCases)
    func `leaves nothing behind, at any stage`(
        stage: CancelledStage, way: CancellingWay
    ) async throws {
        try await withServer(Self.answer) { server, runtime in
            let handlers = await runtime.handlerCount
            let sessions = way == .invalidation ? Self.rounds : 1
            for _ in 0..<sessions {
                let session = try session(on: runtime)
                // Occupies the only slot, if that is the stage.
                var blocker: BegunTask?
                if stage == .queued {
                    let seen = server.requests.count
                    blocker = try await begin(
                        .data, HTTPRequest(.get, server.url), nil, RequestOptions(), session)
                    while server.requests.count == seen { await Task.yield() }
                }
                for round in 0..<(Self.rounds / sessions) {
                    try await cancelOne(round, stage, way, session, server)
                }
                let (others, kept) = (blocker == nil ? 0 : 1, stage.keptConnections(Self.rounds))
                if way != .invalidation {
                    #expect(session.tasks.count == others)
                    await expect(others, connections: others + kept, server, runtime)
                }
                session.invalidate(cancelling: true)
                _ = await blocker?.outcome()
                #expect(session.tasks.isEmpty)
            }
            await expectNothing(server, runtime, handlers)
        }
    }

    private func cancelOne(
        _ round: Int, _ stage: CancelledStage, _ way: CancellingWay, _ session: SessionManager,
        _ server: TestServer
    ) async throws {
        let (requests, connections) = (server.requests.count, server.connections)
        let (asked, others) = (asked.withLock { $0 }, session.tasks.map(\.identifier))
        let beginning = Beginning.allCases[round % Beginning.allCases.count]
        let (request, content, options) = try request(stage, beginning, server)
        let task = try #require(
            try await begin(beginning, request, content, options, session))
        func wait(until isThere: () -> Bool) async {
            while !isThere() { await Task.yield() }
        }
        switch stage {
        case .queued: while await session.runtime.transferCount < 2 { await Task.yield() }
        case .suspendedBefore: task.handle.suspend()
        case .connecting: await wait { server.connections > connections }
        case .sending: await wait { task.progress.value.sent > 0 }
        case .awaitingHead: await wait { server.requests.count > requests }
        case .inContent: await wait { task.progress.value.received > 0 }
        case .inRedirectHook, .inChallengeHook:
            await wait { self.asked.withLock { $0 } > asked }
        case .waitingToRetry: await wait { task.handle.isWaiting }
        case .suspendedInContent:
            await wait { task.progress.value.received > 0 }
            task.handle.suspend()
        }
        end(task, way, session, sparing: others)
        let error = await task.outcome()
        #expect(error?.reason == (way == .invalidation ? .sessionInvalidated : .cancelled))
        #expect(task.handle.state == .completed)
        #expect(task.progress.value.isFinished)
    }

    private func end(
        _ task: BegunTask, _ way: CancellingWay, _ session: SessionManager,
        sparing others: [TaskIdentifier]
    ) {
        switch way {
        case .caller: task.cancel()
        case .handle: task.handle.cancel()
        case .progress: task.progress.cancel()
        case .session:
            for task in session.tasks where !others.contains(task.identifier) { task.cancel() }
        case .invalidation: session.invalidate(cancelling: true)
        }
    }

    /// A request that gets as far as a stage, and no further.
    private func request(
        _ stage: CancelledStage, _ beginning: Beginning, _ server: TestServer
    ) throws -> (HTTPRequest, RequestContent?, RequestOptions) {
        let url =
            switch stage {
            case .connecting: "https" + server.url.dropFirst(4)
            case .inContent, .suspendedInContent: server.url + "/content"
            case .inRedirectHook: server.url + "/redirect"
            case .inChallengeHook: server.url + "/challenge"
            case .waitingToRetry: server.url + "/retry"
            case .queued, .sending, .awaitingHead, .suspendedBefore: server.url
            }
        var options = RequestOptions()
        options.retries = RetryPolicy(
            maximumRetryAfterMilliseconds: .max, maximumElapsedMilliseconds: .max)
        options.redirects = .follow { [asked] proposal in
            asked.withLock { $0 += 1 }
            try? await Task.sleep(for: .seconds(3600))
            return proposal.next
        }
        let progress = TransferProgress()
        // One with a completion handler is suspended later, by its handle.
        if stage == .suspendedBefore, beginning != .completion { progress.pause() }
        options.progress = progress
        guard stage == .sending else { return (try HTTPRequest(.get, url), nil, options) }
        let endless = AsyncStream<[UInt8]> { [UInt8](repeating: 1, count: 1 << 16) }
        return (try HTTPRequest(.put, url), .stream(endless), options)
    }

    /// `nil` if it ended before it was noticed.
    private func begin(
        _ beginning: Beginning, _ request: HTTPRequest, _ content: RequestContent?,
        _ options: RequestOptions, _ session: SessionManager
    ) async throws -> BegunTask? {
        var options = options
        let progress = options.progress ?? TransferProgress()
        options.progress = progress
        if beginning == .completion {
            let (results, tell) = AsyncStream.makeStream(of: ClientError?.self)
            let task = session.dataTask(for: request, content: content, options: options) {
                [traces] result in
                traces.calls.withLock { $0.made += 1 }
                let error =
                    if case .failure(let error) = result { error } else { nil as ClientError? }
                tell.yield(error)
            }
            traces.follow(task.handle)
            traces.calls.withLock { $0.expected += 1 }
            task.resume()
            return BegunTask(handle: task.handle, progress: progress) {
                task.cancel()
            } outcome: {
                await results.first { _ in true } ?? nil
            }
        }
        let others = Set(session.tasks.map(\.identifier))
        let isOver = Locked(false)
        let task = Task { [options] in
            defer { isOver.withLock { $0 = true } }
            return await failure {
                if beginning == .data {
                    _ = try await session.data(for: request, content: content, options: options)
                } else {
                    let response = try await session.response(
                        for: request, content: content, options: options)
                    for try await _ in response.content {}
                }
            }
        }
        var handle: TaskHandle?
        while handle == nil, !isOver.withLock({ $0 }) {
            await Task.yield()
            handle = session.tasks.first { !others.contains($0.identifier) }
        }
        guard let handle else { return nil }
        traces.follow(handle)
        return BegunTask(handle: handle, progress: progress) {
            task.cancel()
        } outcome: {
            await task.value
        }
    }

    // MARK: At any time

    private static let paths = ["/whole", "/redirect", "/challenge", "/retry", "/content"]

    @Test(arguments: CancellingWay.allCases.dropLast())
    func `leaves nothing behind, at any time`(way: CancellingWay) async throws {
        try await withServer(Self.answer) { server, runtime in
            let handlers = await runtime.handlerCount
            let session = try session(on: runtime, perOrigin: 2)
            for round in 0..<(2 * Self.rounds) {
                let beginning = Beginning.allCases[round % Beginning.allCases.count]
                var (_, _, options) = try request(.queued, beginning, server)
                options.redirects = round.isMultiple(of: 2) ? nil : options.redirects
                let path = Self.paths[round % Self.paths.count]
                let begun = try await begin(
                    beginning, HTTPRequest(.get, server.url + path), nil, options, session)
                guard let task = begun else { continue }
                for _ in 0..<(round % 67) { await Task.yield() }
                // From several threads at once, and from the loop's own.
                await withTaskGroup(of: Void.self) { group in
                    group.addTask { task.handle.suspend() }
                    group.addTask { task.handle.resume() }
                    group.addTask { task.handle.cancel() }
                    group.addTask { end(task, way, session, sparing: []) }
                }
                let error = await task.outcome()
                #expect(error == nil || error?.reason == .cancelled)
                #expect(task.handle.state == .completed)
            }
            #expect(session.tasks.isEmpty)
            #expect(await runtime.transferCount == 0)
            session.invalidate(cancelling: true)
            await expectNothing(server, runtime, handlers)
        }
    }

    // MARK: Before it notices

    @Test(arguments: [CancellingWay.handle, .progress, .session])
    func `ends even if it is suspended before it notices`(way: CancellingWay) async throws {
        let gate = try AnswerGate()
        try await withServer { connection, _ in
            connection.wait(at: gate)
            connection.respond()
            return true
        } _: { server, runtime in
            let session = try session(on: runtime)
            let (executor, progress) = (HeldExecutor(), TransferProgress())
            let error = Locked<ClientError?>(nil)
            var options = RequestOptions()
            options.progress = progress
            let request = try HTTPRequest(.get, server.url)
            let task = Task(executorPreference: executor) { [options] in
                let found = await failure {
                    _ = try await session.data(for: request, options: options)
                }
                error.withLock { $0 = found }
            }
            // As far as it can get without the response, all of which arrives then.
            executor.run()
            let handle = try #require(session.tasks.first)
            gate.open()
            while await runtime.transferCount > 0 { await Task.yield() }
            // The turn of the loop in which the task was resumed is over.
            _ = await runtime.transferCount
            let begun = BegunTask(
                handle: handle, progress: progress, cancel: task.cancel, outcome: { nil })
            end(begun, way, session, sparing: [])
            handle.suspend()
            executor.run()
            #expect(error.withLock { $0 }?.reason == .cancelled)
            #expect(handle.state == .completed)
            // Ends it anyway.
            task.cancel()
            executor.run()
            await task.value
        }
    }

    // MARK: Cleanup

    /// Checks repeatedly, within reason, until what was cancelled has been released.
    private func turns(_ runtime: ClientRuntime, until isDone: () async -> Bool) async {
        for _ in 0..<100_000 {
            if await isDone() { return }
            _ = await runtime.transferCount
            await Task.yield()
        }
    }

    private func expect(
        _ transfers: Int, connections: Int, _ server: TestServer, _ runtime: ClientRuntime
    ) async {
        // What is cancelled has ended before the loop counts.
        #expect(await runtime.transferCount == transfers)
        await turns(runtime) { server.openClients <= connections }
        #expect(server.openClients <= connections)
    }

    private func expectNothing(
        _ server: TestServer, _ runtime: ClientRuntime, _ handlers: Int
    ) async {
        await expect(0, connections: 0, server, runtime)
        await turns(runtime) { await runtime.handlerCount <= handlers }
        #expect(await runtime.handlerCount == handlers)
        await turns(runtime) { traces.tasks == 0 }
        #expect(traces.tasks == 0)
        let calls = traces.calls.withLock { $0 }
        #expect(calls.made == calls.expected)
    }
}

extension TestServer {
    /// The number of this process's descriptors that are connected to it.
    fileprivate var openClients: Int {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return names.count { name in
            guard let descriptor = Int32(name) else { return false }
            var address = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let code = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    getpeername(descriptor, $0, &length)
                }
            }
            return code == 0 && address.sin_family == sa_family_t(AF_INET)
                && UInt16(bigEndian: address.sin_port) == endpoint.port
        }
    }
}
