import CLinux
import HTTPTypes
import Locking
import TestSupport
import Testing

@testable import PinfoldClient

/// The behaviour of AFNetworking's tasks that no other suite covers.
@Suite("A task in place of AFNetworking's")
struct ListedTaskTests {
    @Test func `reports its response, its error and its metrics at its end`() async throws {
        try await withServer { connection, request in
            guard request.path != "/cut" else { return false }
            connection.respond("404 Not Found", [], "no")
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let events = session.events()
            let missing = try HTTPRequest(.get, "\(server.url)/missing")
            _ = try await session.data(for: missing)
            let error = await failure {
                _ = try await session.data(for: try HTTPRequest(.get, "\(server.url)/cut"))
            }
            session.invalidate()
            var ends: [TaskCompletion] = []
            for await event in events {
                if case .didComplete(let completion) = event { ends.append(completion) }
            }
            #expect(ends.map { $0.response?.status.code } == [404, nil])
            #expect(ends.map { $0.error?.reason } == [nil, error?.reason])
            #expect(ends.first?.request.path == missing.path)
            let made = try #require(ends.first?.metrics.transactions.first)
            #expect(made.status == 404)
            #expect(made.connect != nil)
            #expect(made.total > .zero)
        }
    }

    @Test func `is paused, resumed and cancelled by its progress`() async throws {
        try await withServer { connection, request in
            if request.path == "/held" { connection.waitForEnd() }
            connection.respond("200 OK", [], "hello")
            return request.path != "/held"
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let (results, continuation) = AsyncStream.makeStream(of: String.self)
            func begin(_ path: String) throws -> SessionTask<DataResponse> {
                let request = try HTTPRequest(.get, server.url + path)
                let task = session.dataTask(for: request) { result in
                    switch result {
                    case .success(let response): continuation.yield(response.text)
                    case .failure(let error): continuation.yield(error.reason.rawValue)
                    }
                }
                task.progress.pause()
                task.resume()
                #expect(task.progress.isPaused)
                #expect(task.state == .suspended)
                return task
            }
            let task = try begin("/")
            #expect(server.requests.isEmpty)
            task.progress.resume()
            #expect(await results.first { _ in true } == "hello")
            let held = try begin("/held")
            held.progress.resume()
            held.progress.cancel()
            #expect(await results.first { _ in true } == "cancelled")
            #expect(held.state == .completed)
        }
    }

    @Test func `that downloads reports if its file could not be moved`() async throws {
        let folder = TemporaryFolder()
        try await withServer { connection, _ in
            // The destination has been checked by now.
            folder.write(Array("theirs".utf8), to: "a.bin")
            connection.respond("200 OK", [], "ours")
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let events = session.events()
            let error = await failure {
                _ = try await session.download(
                    try HTTPRequest(.get, server.url), to: folder.destination)
            }
            #expect(
                (error?.underlying as? DownloadError)?.reason
                    == .destinationExists(folder.file("a.bin")))
            session.invalidate()
            var moves: [String] = []
            for await event in events {
                switch event {
                case .downloadMoved(_, let path): moves.append("moved \(path)")
                case .downloadFailedToMove(_, let path, let error):
                    moves.append("\(error.reason.rawValue) \(path)")
                default: break
                }
            }
            #expect(moves == ["fileFailed \(folder.file("a.bin"))"])
            #expect(folder.bytes(of: "a.bin") == Array("theirs".utf8))
        }
    }
}
