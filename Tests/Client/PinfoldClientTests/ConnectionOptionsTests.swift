import CLinux
import EventLoop
import HTTPCore
import HTTPTypes
import Locking
import PinfoldEngine
import PinfoldResolver
import TestSupport
import Testing
import Threads

@testable import PinfoldClient

private struct Names: HostResolver {
    struct LookupError: Error {}

    let names: [String: [String]]
    let asked = Locked<[String]>([])

    func addresses(of host: String, port: Int) async throws -> [String] {
        asked.withLock { $0.append("\(host):\(port)") }
        guard let found = names[host] else { throw LookupError() }
        return found
    }
}

@Suite("Where a session connects")
struct ConnectionOptionsTests {
    private static let answer: TestServer.Answer = { connection, request in
        connection.respond("200 OK", [], request.field("host") ?? "none")
        return true
    }

    private func get(
        _ url: String, _ runtime: ClientRuntime,
        _ configure: (inout ConnectionOptions) throws -> Void
    ) async throws -> DataResponse {
        var configuration = SessionConfiguration.patient
        try configure(&configuration.connections)
        let session = try SessionManager(configuration: configuration, runtime: runtime)
        return try await session.data(for: try HTTPRequest(.get, url))
    }

    @Test func `is at the addresses of a host, and the request is for its name`() async throws {
        try await withServer(Self.answer) { server, runtime in
            let port = Int(server.endpoint.port)
            let url = "http://Api.test:\(port)/"
            for only in [nil, port] {
                let response = try await get(url, runtime) {
                    try $0.resolve("api.TEST", port: only, to: ["127.0.0.1"])
                }
                #expect(response.text == "api.test:\(port)")
                #expect(response.metrics.transactions[0].server == "\(server.endpoint)")
            }
            // The port's own addresses come first, and another port's do not count.
            let own = try await get(url, runtime) {
                try $0.resolve("api.test", to: [])
                try $0.resolve("api.test", port: port, to: ["127.0.0.1"])
            }
            #expect(own.text == "api.test:\(port)")
            let none = await failure {
                _ = try await get(url, runtime) {
                    try $0.resolve("api.test", to: [])
                    try $0.resolve("api.test", port: 1, to: ["127.0.0.1"])
                }
            }
            #expect(none?.reason == .nameNotResolved)
            // An address as well.
            let address = try await get("http://[2001:DB8:0::1]:\(port)/", runtime) {
                try $0.resolve("2001:db8::1", to: ["127.0.0.1"])
            }
            #expect(address.head.status.code == 200)
            // What is said of every host counts for those that are not named.
            let every = try await get(url, runtime) {
                try $0.resolve("*", to: [])
                try $0.resolve("*", port: port, to: ["127.0.0.1"])
                try $0.resolve("b.test", to: [])
            }
            #expect(every.text == "api.test:\(port)")
        }
    }

    @Test func `is found by a resolver of the caller's, unless it is an address`() async throws {
        try await withServer(Self.answer) { server, runtime in
            let port = server.endpoint.port
            let names = Names(
                names: ["a.test": ["127.0.0.1"], "empty.test": [], "bad.test": ["x"]])
            for (host, isFound) in [
                ("a.test", true), ("empty.test", false), ("bad.test", false),
                ("unknown.test", false), ("127.0.0.1", true),
            ] {
                let error = await failure {
                    _ = try await get("http://\(host):\(port)/", runtime) { $0.resolver = names }
                }
                #expect(error?.reason == (isFound ? nil : .nameNotResolved), "\(host)")
            }
            let asked = names.asked.withLock { $0 }
            let hosts = ["a.test", "empty.test", "bad.test", "unknown.test"]
            #expect(asked == hosts.map { "\($0):\(port)" })
        }
    }

    /// Never answers, and tells when it is asked and when it is cancelled.
    private struct SilentNames: HostResolver {
        let asked: AsyncStream<Void>.Continuation
        let ended: AsyncStream<Void>.Continuation

        func addresses(of host: String, port: Int) async throws -> [String] {
            asked.yield()
            for await _ in AsyncStream<Void>.makeStream().stream {}
            ended.yield()
            return []
        }
    }

    @Test(.timeLimit(.minutes(30)), arguments: [false, true])
    func `is no longer asked of a resolver when nobody waits for the answer`(
        isClosed: Bool
    ) async throws {
        let (asked, whenAsked) = AsyncStream.makeStream(of: Void.self)
        let (ended, whenEnded) = AsyncStream.makeStream(of: Void.self)
        let runtime = try ClientRuntime()
        defer { runtime.close() }
        var configuration = SessionConfiguration.patient
        configuration.connections.resolver = SilentNames(asked: whenAsked, ended: whenEnded)
        if !isClosed { configuration.connectTimeout = .milliseconds(1) }
        let session = try SessionManager(configuration: configuration, runtime: runtime)
        let task = Task {
            await failure {
                _ = try await session.data(for: try HTTPRequest(.get, "http://a.test/"))
            }
        }
        var requests = asked.makeAsyncIterator()
        _ = await requests.next()
        if isClosed { session.invalidate(cancelling: true) }
        var ends = ended.makeAsyncIterator()
        _ = await ends.next()
        #expect(await task.value?.reason == (isClosed ? .sessionInvalidated : .timedOut))
    }

    /// Answers one request on a Unix socket, and returns it.
    private func withUnixServer(
        _ body: (String) async throws -> Void
    ) async throws -> String {
        let folder = TemporaryFolder()
        let path = folder.path + "/socket"
        let listening = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(listening) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let isBound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listening, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
        try #require(isBound && listen(listening, 1) == 0)
        let seen = Locked("")
        let thread = try Thread(name: "unix-server") {
            let accepted = accept(listening, nil, nil)
            defer { close(accepted) }
            var text = ""
            var buffer = [UInt8](repeating: 0, count: 4096)
            while !text.contains("\r\n\r\n") {
                let count = recv(accepted, &buffer, buffer.count, 0)
                guard count > 0 else { return }
                text += String(decoding: buffer[..<count], as: UTF8.self)
            }
            seen.withLock { [text] in $0 = text }
            let response = Array("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nunix".utf8)
            _ = send(accepted, response, response.count, Int32(MSG_NOSIGNAL))
            // Until the client has gone.
            _ = recv(accepted, &buffer, buffer.count, 0)
        }
        defer {
            _ = shutdown(listening, Int32(SHUT_RDWR))
            thread.join()
        }
        try await body(path)
        return seen.withLock { $0 }
    }

    @Test(arguments: [false, true])
    func `is a Unix socket, of a host or of all`(isForAll: Bool) async throws {
        let seen = try await withUnixServer { path in
            let runtime = try ClientRuntime()
            defer { runtime.close() }
            let response = try await get("http://docker.test/info", runtime) { options in
                if isForAll {
                    try options.connect(toUnixSocket: path)
                } else {
                    try options.connect("docker.test", toUnixSocket: path)
                }
            }
            #expect(response.text == "unix")
            #expect(response.metrics.transactions[0].server == "unix:\(path)")
        }
        #expect(seen.hasPrefix("GET /info HTTP/1.1\r\n"))
        #expect(seen.contains("Host: docker.test\r\n"))
    }

    @Test(arguments: ["100::1", "100::0:1", "rebound.test"])
    func `is no socket of another host, whatever a URL or a resolver says`(
        host: String
    ) async throws {
        let folder = TemporaryFolder()
        let runtime = try ClientRuntime()
        defer { runtime.close() }
        let error = await failure {
            _ = try await get("http://\(host.contains(":") ? "[\(host)]" : host)/", runtime) {
                try $0.connect("docker.test", toUnixSocket: folder.path + "/none")
                $0.resolver = Names(names: ["rebound.test": ["100::1"]])
            }
        }
        // An attempt to connect to the socket, or to anything, would have another reason.
        #expect(error?.reason == .nameNotResolved)
    }

    @Test func `has an address for a socket that only its own host gets`() async throws {
        var options = ConnectionOptions()
        try options.connect("docker.test", toUnixSocket: "/a")
        try options.connect("other.test", port: 80, toUnixSocket: "/b")
        let places = try #require(SessionPlaces(options))
        let address = try #require(places.sockets.first { $0.value == "/a" }?.key)
        #expect(places.sockets.count == 2)
        #expect(SessionPlaces(options)?.sockets[address] == nil)
        func answer(_ host: String) -> [IPAddress]? {
            guard case .addresses(let found) = places.lookUp(host: host, port: 80, later: { _ in })
            else { return nil }
            return found
        }
        #expect(answer("docker.test") == [address])
        #expect(answer("\(address)") == [])
        #expect(answer("unknown.test") == nil)
        #expect(answer("2001:db8::1") == nil)

        options.resolver = Names(names: ["a.test": ["100::1", "192.0.2.1", "\(address)"]])
        let resolving = try #require(SessionPlaces(options))
        let result = await withCheckedContinuation { continuation in
            _ = resolving.lookUp(host: "a.test", port: 80) { continuation.resume(returning: $0) }
        }
        guard case .resolved(let found) = result else {
            Issue.record("\(result)")
            return
        }
        #expect(found.addresses == [.v4(0xC000_0201)])
    }

    @Test func `cannot be reached if there is no socket`() async throws {
        let folder = TemporaryFolder()
        let runtime = try ClientRuntime()
        defer { runtime.close() }
        let error = await failure {
            _ = try await get("http://a.test/", runtime) {
                try $0.connect(toUnixSocket: folder.path + "/none")
            }
        }
        #expect(error?.reason == .cannotConnect)
    }

    @Test func `is reached from a local address, if it exists`() async throws {
        try await withServer(Self.answer) { server, runtime in
            let response = try await get(server.url, runtime) {
                try $0.connect(from: ["127.0.0.2", "::1"])
            }
            #expect(response.head.status.code == 200)
            let error = await failure {
                _ = try await get(server.url, runtime) {
                    try $0.connect(from: ["192.0.2.1"])
                }
            }
            #expect(error?.reason == .cannotConnect)
            let interface = await failure {
                _ = try await get(server.url, runtime) { try $0.connect(interface: "none-such") }
            }
            #expect(interface?.reason == .cannotConnect)
        }
    }

    @Test func `is not given in a form that is not valid`() {
        let wrong: [(inout ConnectionOptions) throws -> Void] = [
            { try $0.resolve("a.test", to: ["x"]) }, { try $0.resolve("", to: []) },
            { try $0.resolve("a.test/x", to: []) }, { try $0.resolve("a.test:80", to: []) },
            { try $0.resolve("a.test", port: 0, to: []) },
            { try $0.resolve("a.test", port: 70_000, to: []) },
            { try $0.connect(toUnixSocket: "relative") },
            { try $0.connect(toUnixSocket: "/" + String(repeating: "a", count: 107)) },
            { try $0.connect("a b", toUnixSocket: "/x") },
            { try $0.connect(from: ["127.0.0.1", "127.0.0.2"]) },
            { try $0.connect(from: ["localhost"]) },
            { try $0.connect(interface: "") },
            { try $0.connect(interface: "a name that is too long") },
        ]
        for (index, change) in wrong.enumerated() {
            var options = ConnectionOptions()
            let error = #expect(throws: ClientError.self, "\(index)") { try change(&options) }
            #expect(error?.reason == .invalidConfiguration, "\(index)")
        }
    }
}
