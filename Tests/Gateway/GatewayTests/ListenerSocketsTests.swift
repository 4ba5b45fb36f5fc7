import CLinux
import EngineTestSupport
import EventLoop
import HTTPCore
import PinfoldConfiguration
import TestSupport
import Testing

@testable import Gateway
@testable import PinfoldEngine

/// Loopback addresses that no other test uses, so that ports of other tests do not matter.
private let host = "127.77.3.4"

/// What a reload configures: names and ports, the administration's last.
private func configured(
    _ listeners: [(String, UInt16)], admin: UInt16 = 0
) throws -> ConfigurationSnapshot {
    let address = IPAddress(host)
    var configuration = try testConfiguration()
    configuration.listeners = try listeners.map { name, port in
        ListenerConfiguration(
            name: name, address: Endpoint(address: try #require(address), port: port),
            kind: .forward)
    }
    configuration.admin.address = .network(
        Endpoint(address: try #require(address), port: admin))
    return configuration
}

/// The sockets that were opened; closed at the end.
private final class Opened {
    let sockets: ListenerSockets
    private var descriptors: [Int32] = []

    init(workers: Int = 2) { sockets = ListenerSockets(workers: workers, routes: RouteLabels()) }

    func open(_ configuration: ConfigurationSnapshot) throws -> [[ListenerSocket]] {
        let perWorker = try sockets.open(configuration)
        descriptors += perWorker.joined().map(\.descriptor).filter { $0 >= 0 }
        return perWorker
    }

    func close(_ sockets: [ListenerSocket]) {
        for socket in sockets where socket.descriptor >= 0 {
            Descriptors.close(socket.descriptor)
            descriptors.removeAll { $0 == socket.descriptor }
        }
    }

    deinit { for descriptor in descriptors { Descriptors.close(descriptor) } }
}

/// Waits until an address is free. A program that another test starts holds copies of all
/// descriptors for a moment, between fork and exec, so a closed socket may still be there; one that
/// was left open stays, and is an issue.
private func expectFree(
    _ endpoint: Endpoint, sourceLocation: SourceLocation = #_sourceLocation
) {
    eventually("\(endpoint) is not free", sourceLocation: sourceLocation) {
        (try? Sockets.checkFree(endpoint)) != nil
    }
}

extension [ListenerSocket] {
    fileprivate subscript(name: String) -> ListenerSocket? { first { $0.name == name } }
}

@Suite("The sockets of listeners", .serialized) struct ListenerSocketsTests {
    @Test func `every worker gets a socket on the same port`() throws {
        let opened = Opened(workers: 3)
        let perWorker = try opened.open(try configured([("proxy", 0), ("other", 0)]))
        #expect(perWorker.count == 3)
        for name in ["proxy", "other"] {
            let sockets = try perWorker.map { try #require($0[name]) }
            let port = sockets[0].endpoint.port
            #expect(port != 0)
            #expect(sockets.allSatisfy { $0.endpoint == sockets[0].endpoint })
            #expect(Set(sockets.map(\.descriptor)).count == 3)
            for socket in sockets {
                #expect(Sockets.localEndpoint(socket.descriptor) == socket.endpoint)
            }
        }
        #expect(perWorker[0]["proxy"]?.endpoint != perWorker[0]["other"]?.endpoint)
    }

    @Test func `the administration is the first worker's alone`() throws {
        let opened = Opened(workers: 3)
        let perWorker = try opened.open(try configured([("proxy", 0)]))
        #expect(perWorker.map { $0["admin"] != nil } == [true, false, false])
        guard case .admin = try #require(perWorker[0]["admin"]).role else {
            Issue.record("not the administration's role")
            return
        }
    }

    @Test func `roles, names and indexes are the configuration's`() throws {
        let routes = RouteLabels()
        let sockets = ListenerSockets(workers: 1, routes: routes)
        var asked = try configured([("proxy", 0), ("payments", 0)])
        asked.listeners[1].kind = .reverse(
            UpstreamOrigin(scheme: .https, host: "api.test", port: 8443))
        let opened = try sockets.open(asked)[0]
        defer { for socket in opened { Descriptors.close(socket.descriptor) } }
        #expect(opened.map(\.name) == ["proxy", "payments", "admin"])
        #expect(
            opened.prefix(2).map { routes.listenerSnapshot[$0.label] } == ["proxy", "payments"])
        guard case .forward = opened[0].role,
            case .reverse(let upstream) = opened[1].role,
            upstream == ReverseUpstream(host: "api.test", port: 8443, isSecure: true)
        else {
            Issue.record("other roles")
            return
        }
    }

    @Test func `a reload keeps the ports that the system chose`() throws {
        let opened = Opened()
        let asked = try configured([("proxy", 0), ("other", 0)])
        let first = try opened.open(asked)
        for _ in 0..<3 {
            let again = try opened.open(asked)
            for (before, after) in zip(first, again) {
                #expect(after.map(\.name) == before.map(\.name))
                #expect(after.map(\.endpoint) == before.map(\.endpoint))
                // Each worker already has its socket.
                #expect(after.allSatisfy { $0.descriptor == -1 })
            }
        }
    }

    @Test func `a reload opens only what is new`() throws {
        let opened = Opened()
        let first = try opened.open(try configured([("proxy", 0)]))
        let next = try opened.open(try configured([("added", 0), ("proxy", 0)]))
        for (before, after) in zip(first, next) {
            #expect(after["proxy"]?.descriptor == -1)
            #expect(after["proxy"]?.endpoint == before["proxy"]?.endpoint)
            #expect(try #require(after["added"]).descriptor >= 0)
            #expect(after["proxy"]?.label == before["proxy"]?.label)
        }
    }

    @Test func `a listener that is renamed keeps its sockets when its port is written`() throws {
        let opened = Opened()
        let chosen = try opened.open(try configured([("proxy", 0)]))
        let port = try #require(chosen[0]["proxy"]).endpoint.port
        for sockets in chosen { opened.close(sockets) }
        opened.sockets.close()
        expectFree(Endpoint(address: try #require(IPAddress(host)), port: port))
        let fixed = Opened()
        let first = try fixed.open(try configured([("proxy", port)]))
        #expect(first.allSatisfy { ($0["proxy"]?.descriptor ?? -1) >= 0 })
        let renamed = try fixed.open(try configured([("clients", port)]))
        #expect(renamed.allSatisfy { $0["clients"]?.descriptor == -1 })
    }

    @Test func `a listener that was removed is opened again when it returns`() throws {
        let opened = Opened()
        let first = try opened.open(try configured([("proxy", 0), ("other", 0)]))
        _ = try opened.open(try configured([("proxy", 0)]))
        // The workers close sockets that are not passed to them.
        for sockets in first { opened.close(sockets.filter { $0.name == "other" }) }
        let back = try opened.open(try configured([("proxy", 0), ("other", 0)]))
        #expect(back.allSatisfy { ($0["other"]?.descriptor ?? -1) >= 0 })
        #expect(back.allSatisfy { $0["proxy"]?.descriptor == -1 })
    }

    @Test func `the administration's address becomes a listener's on all workers`() throws {
        let opened = Opened(workers: 3)
        let first = try opened.open(try configured([("proxy", 0)]))
        let port = try #require(first[0]["admin"]).endpoint.port
        for sockets in first { opened.close(sockets) }
        opened.sockets.close()
        expectFree(Endpoint(address: try #require(IPAddress(host)), port: port))
        let fixed = Opened(workers: 3)
        _ = try fixed.open(try configured([("proxy", 0)], admin: port))
        let moved = try fixed.open(try configured([("proxy", 0), ("taken", port)]))
        let taken = try moved.map { try #require($0["taken"]) }
        // The first worker keeps the socket that it has; the others had none.
        #expect(taken[0].descriptor == -1)
        #expect(taken[1...].allSatisfy { $0.descriptor >= 0 })
        #expect(taken.allSatisfy { $0.endpoint.port == port })
        let again = try fixed.open(try configured([("proxy", 0), ("taken", port)]))
        #expect(again.allSatisfy { $0["taken"]?.descriptor == -1 })
    }

    @Test(arguments: [1, 2])
    func `a listener named like the administration is not confused with it`(workers: Int) throws {
        let opened = Opened(workers: workers)
        let asked = try configured([("admin", 0)])
        let first = try opened.open(asked)
        let again = try opened.open(asked)
        #expect(again[0].map(\.endpoint) == first[0].map(\.endpoint))
        #expect(Set(again[0].map(\.endpoint)).count == 2)
    }

    @Test func `an address in use is an error and leaves nothing open`() throws {
        let held = try Sockets.listen(
            on: Endpoint(address: try #require(IPAddress(host)), port: 0))
        defer { Descriptors.close(held) }
        let taken = try #require(Sockets.localEndpoint(held))
        let opened = Opened()
        let first = try opened.open(try configured([("proxy", 0)]))
        // Release it, so that a leak shows: a socket left on it would keep it occupied.
        let spare = try opened.open(try configured([("proxy", 0), ("spare", 0)]))
        let free = try #require(spare[0]["spare"]).endpoint
        for sockets in spare {
            opened.close(sockets.filter { $0.name == "spare" })
        }
        _ = try opened.open(try configured([("proxy", 0)]))
        expectFree(free)
        let asked = try configured([("proxy", 0), ("new", free.port), ("late", taken.port)])
        do throws(ListenError) {
            _ = try opened.sockets.open(asked)
            Issue.record("opened although the address is in use")
        } catch {
            #expect(error.listener == "late")
            #expect(error.address == .network(taken))
            #expect(error.cause == .network(Errno(code: EADDRINUSE)))
            #expect(
                error.description
                    == "cannot listen on \(taken) for listener late: "
                    + "Address already in use (errno 98)")
        }
        // Nothing from the failed reload is listening.
        expectFree(free)
        // And what was open before is still known.
        let again = try opened.open(try configured([("proxy", 0)]))
        #expect(again[0]["proxy"]?.descriptor == -1)
        #expect(again[0]["proxy"]?.endpoint == first[0]["proxy"]?.endpoint)
    }

    @Test func `the administration's address in use leaves nothing open either`() throws {
        let held = try Sockets.listen(
            on: Endpoint(address: try #require(IPAddress(host)), port: 0))
        defer { Descriptors.close(held) }
        let taken = try #require(Sockets.localEndpoint(held))
        let chosen = Opened(workers: 1)
        let spare = try chosen.open(try configured([("spare", 0)]))
        let free = try #require(spare[0]["spare"]).endpoint
        chosen.close(spare[0])
        chosen.sockets.close()
        expectFree(free)
        let sockets = ListenerSockets(workers: 2, routes: RouteLabels())
        #expect(throws: ListenError.self) {
            _ = try sockets.open(try configured([("spare", free.port)], admin: taken.port))
        }
        expectFree(free)
    }

    // MARK: The administration's Unix socket

    private func configuration(
        admin path: String, mode: UInt32 = UnixSocketPath.defaultMode, _ port: UInt16 = 0
    ) throws -> ConfigurationSnapshot {
        var asked = try configured([("proxy", port)])
        asked.admin.address = .unix(UnixSocketPath(path: path, mode: mode))
        return asked
    }

    private func mode(of path: String) -> mode_t? {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : nil
    }

    @Test func `a Unix socket is opened once, and removed at the end`() throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/a.sock"
        let opened = Opened()
        let first = try opened.open(try configuration(admin: path))
        let admin = try #require(first[0].last)
        #expect(admin.isAdmin && admin.path == path && admin.descriptor >= 0)
        #expect(admin.address == "unix:" + path)
        #expect(first[1].allSatisfy { !$0.isAdmin })
        let again = try opened.open(try configuration(admin: path, mode: 0o640))
        #expect(again[0].last?.descriptor == -1)
        #expect(mode(of: path) == 0o640)
        opened.sockets.removeFiles()
        #expect(mode(of: path) == nil)
    }

    @Test func `one that moves leaves nothing behind, unless the reload fails`() throws {
        let folder = TemporaryFolder()
        let (former, next) = (folder.path + "/a.sock", folder.path + "/b.sock")
        let held = try Sockets.listen(
            on: Endpoint(address: try #require(IPAddress(host)), port: 0))
        defer { Descriptors.close(held) }
        let taken = try #require(Sockets.localEndpoint(held)).port
        let opened = Opened()
        _ = try opened.open(try configuration(admin: former))
        #expect(throws: ListenError.self) {
            _ = try opened.open(try configuration(admin: next, taken))
        }
        #expect(throws: ListenError.self) {
            _ = try opened.open(try configuration(admin: folder.path + "/none/a.sock"))
        }
        #expect(mode(of: former) != nil)
        #expect(mode(of: next) == nil)
        _ = try opened.open(try configuration(admin: next))
        #expect(mode(of: former) == nil)
        #expect(mode(of: next) != nil)
        _ = try opened.open(try configured([("proxy", 0)]))
        #expect(mode(of: next) == nil)
    }

    @Test func `a successor that was given the socket keeps its file`() throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/a.sock"
        let opened = Opened()
        _ = try opened.open(try configuration(admin: path))
        opened.sockets.leavesFiles = true
        opened.sockets.removeFiles()
        #expect(mode(of: path) != nil)
    }
}
