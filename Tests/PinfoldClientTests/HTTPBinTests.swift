import CLinux
import Cookies
import HTTPTypes
import Testing

@testable import PinfoldClient

/// httpbin under gunicorn, from the environment that `deploy/venv` makes.
final class HTTPBin: Sendable {
    /// Nil where there is no such environment: the tests are then skipped.
    static let program: String? = {
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let path = "/\(root)/.build-venv/bin/python"
        return access(path, X_OK) == 0 ? path : nil
    }()

    let url: String
    private let process: pid_t
    private nonisolated(unsafe) let output: UnsafeMutablePointer<FILE>

    /// Returns when it listens.
    init() throws {
        let program = try #require(Self.program)
        // This thread may be deaf to the signal that ends it.
        let script = """
            import signal, sys
            from gunicorn.app.wsgiapp import run
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            sys.argv[1:] = "--bind 127.0.0.1:0 --threads 4 --no-control-socket httpbin:app".split()
            run()
            """
        let command = "echo $$; exec '\(program)' -c '\(script)' 2>&1"
        let output = try #require(popen(command, "r"))
        self.output = output
        process = try #require(Self.line(of: output).flatMap { pid_t($0) })
        var found: String?
        while found == nil, let line = Self.line(of: output) {
            guard let start = line.firstRange(of: "Listening at: ") else { continue }
            found = line[start.upperBound...].split(separator: " ").first.map(String.init)
        }
        url = try #require(found, "gunicorn did not start")
    }

    private static func line(of file: UnsafeMutablePointer<FILE>) -> String? {
        var bytes = [CChar](repeating: 0, count: 4096)
        guard fgets(&bytes, Int32(bytes.count), file) != nil else { return nil }
        return bytes.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
            .split(whereSeparator: \.isNewline).first.map(String.init) ?? ""
    }

    /// Ends it, and waits for its end.
    func close() {
        kill(process, SIGTERM)
        while Self.line(of: output) != nil {}
        pclose(output)
    }
}

@Suite("httpbin, asked by a session", .enabled(if: HTTPBin.program != nil), .serialized)
struct HTTPBinTests {
    private func ask(
        _ user: Credential?, _ body: (SessionManager, String) async throws -> Void
    ) async throws {
        let server = try HTTPBin()
        let runtime = try ClientRuntime()
        defer {
            runtime.close()
            server.close()
        }
        let hook: ChallengeHook = { _ in
            user.map { .useCredential($0) } ?? .performDefaultHandling
        }
        let session = try SessionManager(
            configuration: .patient(challenges: hook), runtime: runtime)
        try await body(session, server.url)
    }

    @Test func `takes Basic and Digest credentials`() async throws {
        try await ask(Credential(user: "user", password: "secret")) { session, url in
            /// Of each response, the last one the task's.
            func statuses(_ path: String) async throws -> [Int?] {
                try await session.data(for: try HTTPRequest(.get, url + path)).metrics
                    .transactions.map(\.status)
            }
            let first = try await statuses("/basic-auth/user/secret")
            #expect(first == [401, 200])
            #expect(try await statuses("/basic-auth/user/secret") == [200])
            #expect(try await statuses("/basic-auth/user/wrong") == [401])
            for algorithm in ["MD5", "SHA-256"] {
                for protection in ["auth", "auth-int"] {
                    let path = "/digest-auth/\(protection)/user/secret/\(algorithm)"
                    #expect(try await statuses(path).last == 200, "\(path)")
                }
            }
            // Each nonce is good for one request, and a cookie counts them.
            for _ in 0..<3 {
                let path = "/digest-auth/auth/user/secret/MD5/1"
                #expect(try await statuses(path).last == 200)
            }
        }
    }

    @Test func `refuses wrong Digest credentials`() async throws {
        try await ask(Credential(user: "user", password: "wrong")) { session, url in
            let request = try HTTPRequest(.get, "\(url)/digest-auth/auth/user/pass/MD5")
            let response = try await session.data(for: request)
            #expect(response.metrics.transactions.map(\.status) == [401, 401])
        }
    }

    @Test func `does not ask for hidden Basic credentials`() async throws {
        try await ask(Credential(user: "user", password: "pass")) { session, url in
            let request = try HTTPRequest(.get, "\(url)/hidden-basic-auth/user/pass")
            #expect(try await session.data(for: request).head.status.code == 404)
        }
    }

    @Test func `sets cookies, and removes them`() async throws {
        try await ask(nil) { session, url in
            func text(_ path: String) async throws -> String {
                let response = try await session.data(for: try HTTPRequest(.get, url + path))
                return response.text.filter { !$0.isWhitespace }
            }
            let first = try await text("/cookies/set?a=1&b=2")
            #expect(first == #"{"cookies":{"a":"1","b":"2"}}"#)
            #expect(try await text("/cookies") == #"{"cookies":{"a":"1","b":"2"}}"#)
            #expect(try await text("/cookies/delete?a") == #"{"cookies":{"b":"2"}}"#)
        }
    }
}
