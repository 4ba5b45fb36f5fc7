import EventLoop
import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

@Suite("Tasks on the thread of a loop", .timeLimit(.minutes(30)))
struct LoopExecutorTests {
    /// Whether the calling thread runs a loop, as a task may not ask across a suspension.
    private nonisolated static func isOnLoop() -> Bool { EventLoop.current != nil }

    private static func respond(_ connection: TestConnection, _ request: TestRequest) -> Bool {
        connection.respond("200 OK", [], request.path)
        return true
    }

    @Test func `run there, before and after a request`() async throws {
        try await withServer(Self.respond) { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            #expect(!Self.isOnLoop())
            try await withTaskExecutorPreference(runtime.taskExecutor) {
                #expect(Self.isOnLoop())
                for number in 0..<3 {
                    let request = try HTTPRequest(.get, "\(server.url)/\(number)")
                    let text = try await session.data(for: request).text
                    #expect(text == "/\(number)")
                    #expect(Self.isOnLoop())
                }
                let streamed = try await session.response(
                    for: try HTTPRequest(.get, "\(server.url)/streamed"))
                let content = try await streamed.content.collect(atMost: 100)
                #expect(content == Array("/streamed".utf8))
                #expect(Self.isOnLoop())
            }
            #expect(!Self.isOnLoop())
            #expect(await runtime.transferCount == 0)
            #expect(server.connections == 1)
        }
    }

    @Test func `take turns with those of other threads`() async throws {
        try await withServer(Self.respond) { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.maximumRequestsPerOrigin = 8
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<64 {
                    let executor = number.isMultiple(of: 2) ? runtime.taskExecutor : nil
                    group.addTask(executorPreference: executor) {
                        for step in 0..<20 {
                            let path = "/\(number)/\(step)"
                            let request = try HTTPRequest(.get, server.url + path)
                            let text = try await session.data(for: request).text
                            #expect(text == path)
                            #expect(Self.isOnLoop() == (executor != nil))
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(await runtime.transferCount == 0)
        }
    }

    @Test func `are cancelled by other threads at any time`() async throws {
        try await withServer(Self.respond) { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, server.url)
            for round in 0..<200 {
                let task = Task<[UInt8], any Error>(executorPreference: runtime.taskExecutor) {
                    try await session.data(for: request).content
                }
                for _ in 0..<(round % 20) { await Task.yield() }
                task.cancel()
                switch await task.result {
                case .success(let content): #expect(content == Array("/".utf8))
                case .failure(let error): #expect((error as? ClientError)?.reason == .cancelled)
                }
            }
            #expect(await runtime.transferCount == 0)
        }
    }

    /// What the loop's thread cancels may not have begun there.
    @Test func `cancel those of other threads at any time`() async throws {
        try await withServer { connection, _ in
            connection.waitForEnd()
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, server.url)
            for round in 0..<300 {
                let cancelling = Task(executorPreference: runtime.taskExecutor) {
                    while session.tasks.isEmpty { await Task.yield() }
                    for _ in 0..<(round % 8) { await Task.yield() }
                    for task in session.tasks { task.cancel() }
                }
                let error = await failure { _ = try await session.data(for: request) }
                #expect(error?.reason == .cancelled)
                await cancelling.value
                #expect(await runtime.transferCount == 0)
            }
        }
    }

    @Test func `do not keep others from theirs`() async throws {
        try await withServer(Self.respond) { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, server.url)
            let busy = (0..<4).map { _ in
                Task(executorPreference: runtime.taskExecutor) {
                    while !Task.isCancelled { await Task.yield() }
                }
            }
            // From another thread, and beside them.
            let text = try await session.data(for: request).text
            #expect(text == "/")
            try await withTaskExecutorPreference(runtime.taskExecutor) {
                let text = try await session.data(for: request).text
                #expect(text == "/")
            }
            for task in busy {
                task.cancel()
                await task.value
            }
        }
    }

    @Test func `continue elsewhere when the runtime is closed`() async throws {
        let gate = try AnswerGate()
        try await withServer { connection, _ in
            connection.wait(at: gate)
            return false
        } _: { server, _ in
            let runtime = try ClientRuntime()
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, server.url)
            let tasks = (0..<8).map { _ in
                Task(executorPreference: runtime.taskExecutor) {
                    do throws(ClientError) {
                        _ = try await session.data(for: request)
                        return (reason: ClientError.Reason?.none, isOnLoop: Self.isOnLoop())
                    } catch {
                        await Task.yield()
                        return (error.reason, Self.isOnLoop())
                    }
                }
            }
            await gate.arrival()
            runtime.close()
            for task in tasks {
                let end = await task.value
                #expect(end.reason == .sessionInvalidated)
                #expect(!end.isOnLoop)
            }
            let late = Task(executorPreference: runtime.taskExecutor) { Self.isOnLoop() }
            #expect(await late.value == false)
            gate.open()
        }
    }

    @MainActor
    private static func isOnLoopOfMainActor() -> Bool { EventLoop.current != nil }

    @Test func `leave actors where they are`() async throws {
        try await withServer(Self.respond) { _, runtime in
            await withTaskExecutorPreference(runtime.taskExecutor) {
                #expect(await !Self.isOnLoopOfMainActor())
                #expect(Self.isOnLoop())
            }
        }
    }
}
