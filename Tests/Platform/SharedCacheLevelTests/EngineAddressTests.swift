import CacheStore
import CacheTestSupport
import HTTPCore
import PinfoldResolver
import SharedCacheLevel
import TestSupport
import Testing

/// The ways to an engine in clear text.
@Suite("An engine's address", .serialized)
struct EngineAddressTests {
    /// Where no DNS server is.
    private let closed = ClosedPort(.udp)

    private func server(_ host: String, _ port: UInt16) -> SharedLevelOptions.Server {
        .tcp(host: host, port: port, tls: nil)
    }

    /// A resolver that knows only what a file says.
    private func resolver(_ folder: TemporaryFolder, _ hosts: String) throws -> Resolver {
        try folder.write(hosts, to: "hosts")
        var options = ResolverOptions()
        options.hostsPath = folder.file("hosts")
        options.servers = .list([Endpoint(address: .loopbackV4, port: closed.number)])
        options.hostsCheckMilliseconds = 0
        options.failureTTLSeconds = 0
        options.defaultNegativeTTLSeconds = 0
        return try Resolver(options: options)
    }

    /// What a level says that cannot use an address.
    private func detail(_ options: SharedLevelOptions) throws -> String {
        let level = try SharedLevel(options)
        level.begin(EngineProcess.duties)
        defer { level.close() }
        #expect(eventually { level.figures().reason == .unreachable }, "\(level.figures())")
        #expect(level.state == .off)
        return level.figures().detail
    }

    @Test(arguments: ["127.0.0.1", "::1"])
    func `may be one of IPv4 or IPv6`(_ host: String) throws {
        let place = try LoopbackPlace.drawn(host)
        let engine = try EngineProcess(["--bind", place.host, "--port", "\(place.port)"])
        let (store, _) = try engine.gateway(memoryBytes: 0) { $0.server = server(host, place.port) }
        store.put("http://a/", body(400_000))
        #expect(store.foundBodies("http://a/") == [body(400_000)])
        store.close()
        engine.end()
        var options = try engine.options()
        options.server = server(host, place.port)
        let detail = try detail(options)
        #expect(detail.contains("Connection refused"), "\(detail)")
        #expect(detail.contains("\(place.port)"), "\(detail)")
    }

    @Test func `may be a name with several, of which some refuse`() throws {
        let place = try LoopbackPlace.drawn()
        let engine = try EngineProcess(["--bind", place.host, "--port", "\(place.port)"])
        let folder = TemporaryFolder()
        let resolver = try resolver(
            folder,
            """
            ::1 engine.test
            127.0.0.1 engine.test
            \(place.host) engine.test

            """)
        let (store, level) = try engine.gateway(memoryBytes: 0) {
            $0.resolver = resolver
            $0.server = server("engine.test", place.port)
        }
        store.put("http://a/", body(10))
        #expect(store.foundBodies("http://a/") == [body(10)])
        #expect(level.figures().connections == 1)
        // The one that has answered is the first the next time, and the others are tried again.
        engine.end()
        #expect(eventually { level.state == .off })
        try engine.start()
        #expect(eventually { level.state == .ready })
        store.close()
        resolver.close()
    }

    @Test func `may be a name that is known later`() throws {
        let place = try LoopbackPlace.drawn()
        let engine = try EngineProcess(["--bind", place.host, "--port", "\(place.port)"])
        let folder = TemporaryFolder()
        let resolver = try resolver(folder, "127.0.0.1 other.test\n")
        var options = try engine.options()
        options.resolver = resolver
        options.server = server("engine.test", place.port)
        let level = try SharedLevel(options)
        level.begin(EngineProcess.duties)
        #expect(eventually { level.figures().reason == .unreachable })
        #expect(
            level.figures().detail.contains("engine.test:\(place.port): it has no address"),
            "\(level.figures().detail)")
        try folder.write("\(place.host) engine.test\n", to: "hosts")
        #expect(eventually { level.state == .ready }, "\(level.figures())")
        level.close()
        resolver.close()
    }

    @Test func `may be the path of a socket, which is one or not`() throws {
        let folder = TemporaryFolder()
        let engine = try EngineProcess()
        var options = try engine.options()
        options.server = .unix(path: folder.file("missing"))
        #expect(try detail(options) == folder.file("missing") + ": there is no such socket")
        try folder.write("", to: "file")
        options.server = .unix(path: folder.file("file"))
        #expect(try detail(options) == folder.file("file") + ": it is not a socket")
        options.server = .unix(path: folder.file("file/s"))
        #expect(try detail(options).contains("Not a directory"))
        let path = engine.path
        engine.end()
        options.server = .unix(path: path)
        #expect(try detail(options) == path + ": nobody listens at the socket")
    }
}
