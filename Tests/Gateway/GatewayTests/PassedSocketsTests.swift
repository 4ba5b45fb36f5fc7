import CLinux
import EngineTestSupport
import EventLoop
import HTTPCore
import PinfoldConfiguration
import TestSupport
import Testing

@testable import Gateway
@testable import PinfoldEngine

/// An address of loopback that no other test uses.
private let host = "127.77.3.5"

/// Sockets as a service manager passes them, and what was taken of them; closed at the end.
private final class Manager {
    private(set) var passed: [PassedSocket] = []
    private var opened: [Int32] = []

    /// Opens `count` sockets on one port, all with a name.
    func listen(_ name: String, count: Int = 1) throws {
        var endpoint = Endpoint(address: try #require(IPAddress(host)), port: 0)
        for _ in 0..<count {
            let descriptor = try Sockets.listen(on: endpoint)
            endpoint = try #require(Sockets.localEndpoint(descriptor))
            passed.append(
                PassedSocket(
                    name: name, descriptor: descriptor, socket: Sockets.inherited(descriptor)))
        }
    }

    /// Opens a Unix socket.
    func listen(_ name: String, at path: String) throws {
        let (descriptor, _) = try UnixSockets.listen(at: UnixSocketPath(path: path))
        passed.append(
            PassedSocket(name: name, descriptor: descriptor, socket: Sockets.inherited(descriptor)))
    }

    func paths(_ name: String) -> [String] {
        passed.filter { $0.name == name }.compactMap(\.unixPath)
    }

    func endpoints(_ name: String) -> [Endpoint] {
        passed.filter { $0.name == name }.compactMap(\.endpoint)
            .reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    /// A configuration with a listener of each name.
    func configuration(_ names: [String], admin: String? = nil) throws -> ConfigurationSnapshot {
        var configuration = try testConfiguration()
        configuration.listeners = names.map { name in
            var listener = ListenerConfiguration(
                name: "of-" + name, address: Endpoint(address: .loopbackV4, port: 0),
                kind: .forward)
            listener.passed = PassedAddress(
                name: name, endpoints: endpoints(name), unixPaths: paths(name))
            return listener
        }
        configuration.admin.address = .network(Endpoint(address: .loopbackV4, port: 0))
        configuration.admin.passed = admin.map {
            PassedAddress(name: $0, endpoints: endpoints($0), unixPaths: paths($0))
        }
        return configuration
    }

    /// What each worker gets for a name, without the administration's.
    func open(
        _ sockets: ListenerSockets, _ configuration: ConfigurationSnapshot
    ) throws -> [[ListenerSocket]] {
        let perWorker = try sockets.open(configuration)
        opened += perWorker.joined().map(\.descriptor).filter { $0 >= 0 }
        return perWorker
    }

    deinit {
        for descriptor in opened + passed.map(\.descriptor) { Descriptors.close(descriptor) }
    }
}

extension [ListenerSocket] {
    fileprivate func passed(as name: String) -> [ListenerSocket] {
        filter { $0.passedAs == name }
    }
}

@Suite("Sockets from the service manager", .serialized) struct PassedSocketsTests {
    @Test(
        arguments: [
            // As many as workers, or a multiple: each worker has its own.
            (1, 1, false, [1]), (2, 2, false, [1, 1]), (4, 2, false, [2, 2]),
            // Otherwise all accept from all.
            (1, 2, true, [1, 1]), (3, 2, true, [3, 3]), (2, 3, true, [2, 2, 2]),
        ])
    func `workers share the sockets of a name`(
        count: Int, workers: Int, isShared: Bool, each: [Int]
    ) throws {
        let manager = Manager()
        try manager.listen("web", count: count)
        let sockets = ListenerSockets(
            workers: workers, routes: RouteLabels(), passed: manager.passed)
        let perWorker = try manager.open(sockets, try manager.configuration(["web"]))
        #expect(perWorker.map { $0.passed(as: "web").count } == each)
        let all = perWorker.joined().filter { $0.passedAs == "web" }
        #expect(all.allSatisfy { $0.isShared == isShared && $0.name == "of-web" })
        #expect(all.allSatisfy { [$0.endpoint] == manager.endpoints("web") })
        // Each has a descriptor of its own, of the sockets that were passed, and all are used.
        #expect(Set(all.map(\.descriptor)).count == all.count)
        let inodes = Set(manager.passed.compactMap { ListeningSockets.inode(of: $0.descriptor) })
        #expect(Set(all.compactMap { ListeningSockets.inode(of: $0.descriptor) }) == inodes)
        if isShared { return }
        let own = perWorker.map { sockets in
            Set(
                sockets.passed(as: "web").compactMap {
                    ListeningSockets.inode(of: $0.descriptor)
                })
        }
        #expect(own.reduce(0) { $0 + $1.count } == inodes.count, "no socket is of two workers")
    }

    @Test(arguments: [1, 3])
    func `all workers accept from a Unix socket, beside those of the network`(
        workers: Int
    ) throws {
        let folder = TemporaryFolder()
        let manager = Manager()
        try manager.listen("web")
        try manager.listen("web", at: folder.path + "/a.sock")
        try manager.listen("web", at: folder.path + "/b.sock")
        let sockets = ListenerSockets(
            workers: workers, routes: RouteLabels(), passed: manager.passed)
        let asked = try manager.configuration(["web"])
        #expect(asked.listeners[0].hasUnixSocket && asked.listeners[0].isLoopback)
        let perWorker = try manager.open(sockets, asked)
        for sockets in perWorker {
            let all = sockets.passed(as: "web")
            #expect(
                all.map(\.path) == [nil, folder.path + "/a.sock", folder.path + "/b.sock"])
            #expect(all.dropFirst().allSatisfy { $0.endpoint == .unnamed })
            #expect(all.allSatisfy { $0.isShared == (workers > 1) && $0.descriptor >= 0 })
        }
        let again = try manager.open(sockets, asked)
        #expect(again.joined().filter { $0.passedAs != nil }.allSatisfy { $0.descriptor == -1 })
        #expect(perWorker[0].filter { $0.path != nil }.map(\.address).count == 2)
    }

    @Test func `the administration's socket is the first worker's alone`() throws {
        let manager = Manager()
        try manager.listen("web")
        try manager.listen("adm")
        let sockets = ListenerSockets(workers: 3, routes: RouteLabels(), passed: manager.passed)
        let perWorker = try manager.open(
            sockets, try manager.configuration(["web"], admin: "adm"))
        #expect(perWorker.map { $0.passed(as: "adm").count } == [1, 0, 0])
        let admin = try #require(perWorker[0].passed(as: "adm").first)
        #expect(admin.isAdmin && !admin.isShared)
    }

    @Test func `a reload keeps them, also for a listener that is renamed`() throws {
        let manager = Manager()
        try manager.listen("web")
        let sockets = ListenerSockets(workers: 2, routes: RouteLabels(), passed: manager.passed)
        var asked = try manager.configuration(["web"])
        _ = try manager.open(sockets, asked)
        asked.listeners[0].name = "renamed"
        let again = try manager.open(sockets, asked)
        #expect(again.allSatisfy { $0.passed(as: "web").map(\.descriptor) == [-1] })
        #expect(again.allSatisfy { $0.passed(as: "web").map(\.name) == ["renamed"] })
    }

    @Test func `what a reload no longer names can be named by a later one`() throws {
        let manager = Manager()
        for name in ["web", "other"] { try manager.listen(name) }
        let sockets = ListenerSockets(workers: 2, routes: RouteLabels(), passed: manager.passed)
        let both = try manager.configuration(["web", "other"])
        _ = try manager.open(sockets, both)
        _ = try manager.open(sockets, try manager.configuration(["web"]))
        let back = try manager.open(sockets, both)
        #expect(back.allSatisfy { $0.passed(as: "web").map(\.descriptor) == [-1] })
        #expect(back.allSatisfy { ($0.passed(as: "other").first?.descriptor ?? -1) >= 0 })
    }

    @Test func `unused ones are closed at the start, once`() throws {
        let manager = Manager()
        for name in ["web", "extra"] { try manager.listen(name) }
        // Copies, which are closed here, and not by what opened them.
        let copies = try manager.passed.map { one in
            var one = one
            one.descriptor = try Sockets.duplicate(ofListening: one.descriptor)
            return one
        }
        defer { Descriptors.close(copies[0].descriptor) }
        let sockets = ListenerSockets(workers: 1, routes: RouteLabels(), passed: copies)
        let configuration = try manager.configuration(["web"])
        #expect(sockets.closeUnused(by: configuration).map(\.name) == ["extra"])
        #expect(sockets.closeUnused(by: configuration).isEmpty)
    }

    @Test func `a socket for both families is also an address of IPv4`() throws {
        let passed = [
            PassedSocket(
                name: "web", descriptor: -1,
                socket: .listening(
                    Endpoint(address: .v6(0, 0), port: 8080), isDualStack: true)),
            PassedSocket(
                name: "web", descriptor: -1,
                socket: .listening(
                    Endpoint(address: .v6(0, 0), port: 8081), isDualStack: false)),
        ]
        let sockets = ListenerSockets(workers: 1, routes: RouteLabels(), passed: passed)
        #expect(sockets.endpointsOfIPv4 == [Endpoint(address: .v4(0), port: 8080)])
    }
}
