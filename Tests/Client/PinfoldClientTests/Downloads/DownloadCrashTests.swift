import CLinux
import HTTPTypes
import TestSupport
import Testing

@testable import PinfoldClient

@Suite("A download whose process ends")
struct DownloadCrashTests {
    private let folder = TemporaryFolder()

    @Test func `is resumed in another process after kill -9`() async throws {
        let content = RangedContent(count: 2_000_000)
        try await withServer { connection, request in
            if content.answer(
                connection, request, atMost: request.field("range") == nil ? 1_500_000 : nil)
            {
                return true
            }
            connection.waitForEnd()
            return false
        } _: { server, runtime in
            let (url, path) = ("\(server.url)/a", folder.file("a.bin"))
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [
                    url = url as String, path = path as String
                ] in
                let session = try SessionManager(configuration: .patient)
                var options = DownloadOptions.resuming
                let progress = TransferProgress()
                options.request.progress = progress
                let task = Task { [options] in
                    try await session.download(
                        try HTTPRequest(.get, url), to: .path(path), options: options)
                }
                for await value in progress.updates() where value.received >= 1_500_000 {
                    kill(getpid(), SIGKILL)
                }
                _ = try await task.value
            }
            let there = try #require(folder.bytes(of: "a.bin.part"))
            #expect(there.count >= 1_000_000)
            #expect(Array(content.bytes[..<there.count]) == there)
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let response = try await session.download(
                try HTTPRequest(.get, url), to: folder.destination, options: .resuming)
            #expect(response.resumedBytes == Int64(there.count))
            #expect(server.requests.last?.field("range") == "bytes=\(there.count)-")
            #expect(folder.bytes(of: "a.bin") == content.bytes)
            #expect(folder.names == ["a.bin"])
        }
    }

    @Test func `reports that there is no space, and is resumed when there is`() async throws {
        let content = RangedContent(count: 2_000_000)
        try await withServer {
            content.answer($0, $1)
        } _: { server, runtime in
            let (url, path) = ("\(server.url)/a", folder.file("a.bin"))
            // A limit of the process stands in for a full disk.
            await #expect(processExitsWith: .exitCode(17)) {
                [
                    url = url as String, path = path as String
                ] in
                // SIG_IGN, which is a cast in C.
                signal(SIGXFSZ, unsafeBitCast(1, to: __sighandler_t.self))
                var limit = rlimit(rlim_cur: 1_000_000, rlim_max: 1_000_000)
                setrlimit(Int32(RLIMIT_FSIZE.rawValue), &limit)
                let session = try SessionManager(configuration: .patient)
                let error = await failure {
                    _ = try await session.download(try HTTPRequest(.get, url), to: .path(path))
                }
                guard case .noSpace(let problem) = error?.downloadReason else { exit(1) }
                let isRight =
                    problem.operation == .write && problem.path == path + ".part"
                    && error?.reason == .fileFailed
                    && error?.resumeData?.receivedBytes == 1_000_000
                exit(isRight ? 17 : 2)
            }
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let response = try await session.download(
                try HTTPRequest(.get, url), to: folder.destination, options: .resuming)
            #expect(response.resumedBytes == 1_000_000)
            #expect(folder.bytes(of: "a.bin") == content.bytes)
        }
    }
}
