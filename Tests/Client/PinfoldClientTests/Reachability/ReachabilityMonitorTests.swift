import CLinux
import EventLoop
import HTTPCore
import Locking
import Testing

@testable import PinfoldClient

/// Routes set by a test, instead of the kernel's.
private final class ScriptedRoutes: Sendable {
    struct State: Sendable {
        var status = NetworkStatus.notReachable
        var statusOfInternet = NetworkStatus.notReachable
        /// The errors of the next calls.
        var changeErrors: [NetlinkError] = []
        var statusErrors: [NetlinkError] = []
    }

    private let descriptor: Int32
    private let state = Locked(State())

    init() throws { descriptor = try Descriptors.event() }

    deinit { Descriptors.close(descriptor) }

    /// Changes the routes, and reports the change.
    func change(_ body: (inout State) -> Void) {
        state.withLock { body(&$0) }
        Descriptors.signal(descriptor)
    }

    var source: RouteSource {
        RouteSource(
            descriptor: descriptor,
            takeChanges: { [self] () throws(NetlinkError) in
                let error = state.withLock { $0.changeErrors.popLast() }
                // As with an error of the kernel, there is still something to read.
                if let error { throw error }
                Descriptors.drain(descriptor)
                return true
            },
            status: { [self] (_) throws(NetlinkError) in
                let (error, status) = state.withLock { ($0.statusErrors.popLast(), $0.status) }
                if let error { throw error }
                return status
            },
            statusOfInternet: { [self] () throws(NetlinkError) in
                state.withLock { $0.statusOfInternet }
            })
    }
}

/// A monitor of scripted routes, and its reports.
private struct Watched {
    let routes: ScriptedRoutes
    let monitor: ReachabilityMonitor
    private let reports: AsyncStream<NetworkStatus>

    init(_ target: ReachabilityTarget, on runtime: ClientRuntime) throws {
        let routes = try ScriptedRoutes()
        self.routes = routes
        let source = routes.source
        monitor = ReachabilityMonitor(target, runtime, .serial) {
            () throws(NetlinkError) in source
        }
        let (reports, continuation) = AsyncStream.makeStream(of: NetworkStatus.self)
        self.reports = reports
        monitor.onChange = { continuation.yield($0) }
    }

    /// The next report.
    func next() async -> NetworkStatus? {
        var iterator = reports.makeAsyncIterator()
        return await iterator.next()
    }
}

/// Runs a test with a runtime.
func withRuntime(_ body: (ClientRuntime) async throws -> Void) async throws {
    let runtime = try ClientRuntime()
    defer { runtime.close() }
    try await body(runtime)
}

@Suite("Reachability")
struct ReachabilityMonitorTests {
    @Test func `is unknown before the first report, which comes later`() async throws {
        try await withRuntime { runtime in
            let watched = try Watched(.internet, on: runtime)
            #expect(watched.monitor.status == .unknown)
            #expect(watched.monitor.status.code == -1)
            let isHeld = Locked(true)
            runtime.post(.work { _ in while isHeld.withLock({ $0 }) { sched_yield() } })
            try watched.monitor.start()
            #expect(watched.monitor.status == .unknown)
            isHeld.withLock { $0 = false }
            #expect(await watched.next() == .notReachable)
            #expect(watched.monitor.status.code == 0)
        }
    }

    @Test(arguments: [
        (NetworkStatus.notReachable, 0), (.reachable(.cellular), 1), (.reachable(.wifi), 2),
        (.reachable(.ethernet), 2), (.reachable(.loopback), 2), (.reachable(.other), 2),
    ])
    func `reports the kind of interface`(status: NetworkStatus, code: Int) async throws {
        try await withRuntime { runtime in
            let watched = try Watched(.internet, on: runtime)
            watched.routes.change { $0.statusOfInternet = status }
            try watched.monitor.start()
            #expect(await watched.next() == status)
            #expect(watched.monitor.status.code == code)
            #expect(watched.monitor.isReachable == (code > 0))
        }
    }

    @Test func `reports each change once`() async throws {
        try await withRuntime { runtime in
            let watched = try Watched(.address(.loopbackV4), on: runtime)
            try watched.monitor.start()
            #expect(await watched.next() == .notReachable)
            // A report without a difference is not a change.
            watched.routes.change { _ in }
            watched.routes.change { $0.status = .reachable(.wifi) }
            #expect(await watched.next() == .reachable(.wifi))
            watched.routes.change { $0.status = .reachable(.ethernet) }
            #expect(await watched.next() == .reachable(.ethernet))
            watched.routes.change { $0.status = .notReachable }
            #expect(await watched.next() == .notReachable)
        }
    }

    @Test func `sets the property, then calls back, then notifies`() async throws {
        try await withRuntime { runtime in
            let watched = try Watched(.internet, on: runtime)
            let order = Locked<[String]>([])
            let monitor = watched.monitor
            monitor.onChange = { [unowned monitor] status in
                order.withLock { $0 += ["\(monitor.status == status)", "called"] }
            }
            let followed = Task {
                for await status in monitor.updates() where status != .unknown {
                    order.withLock { $0.append("notified") }
                    return status
                }
                return .unknown
            }
            watched.routes.change { $0.statusOfInternet = .reachable(.ethernet) }
            try monitor.start()
            #expect(await followed.value == .reachable(.ethernet))
            #expect(order.withLock { $0 } == ["true", "called", "notified"])
        }
    }

    @Test func `begins again with each start, and reports again`() async throws {
        try await withRuntime { runtime in
            let watched = try Watched(.internet, on: runtime)
            for _ in 0..<3 {
                try watched.monitor.start()
                #expect(watched.monitor.isMonitoring)
                #expect(await watched.next() == .notReachable)
            }
        }
    }

    @Test func `reports nothing once it is stopped`() async throws {
        try await withRuntime { runtime in
            let watched = try Watched(.internet, on: runtime)
            try watched.monitor.start()
            #expect(await watched.next() == .notReachable)
            watched.monitor.stop()
            #expect(!watched.monitor.isMonitoring)
            watched.routes.change { $0.statusOfInternet = .reachable(.ethernet) }
            // What follows the change on the loop has been done when this returns.
            await withCheckedContinuation { done in
                runtime.post(.work { $0.loop.afterTurn { done.resume() } })
            }
            #expect(watched.monitor.status == .notReachable)
            try watched.monitor.start()
            #expect(await watched.next() == .reachable(.ethernet))
        }
    }

    @Test func `continues if the kernel fails to answer for a while`() async throws {
        try await withRuntime { runtime in
            let watched = try Watched(.address(.loopbackV4), on: runtime)
            watched.routes.change {
                $0.statusErrors = [.system(EMFILE)]
                $0.changeErrors = [.system(ENOMEM)]
                $0.status = .reachable(.ethernet)
            }
            try watched.monitor.start()
            #expect(await watched.next() == .reachable(.ethernet))
            watched.routes.change { $0.status = .notReachable }
            #expect(await watched.next() == .notReachable)
        }
    }

    @Test func `finds loopback by the kernel's routes`() async throws {
        try await withRuntime { runtime in
            let monitors = [
                try ReachabilityMonitor(address: "127.0.0.1", runtime: runtime),
                ReachabilityMonitor(host: "127.0.0.1", runtime: runtime),
                ReachabilityMonitor(host: "localhost", runtime: runtime),
            ]
            for monitor in monitors {
                try monitor.start()
                let found = await monitor.updates().first { $0 != .unknown }
                #expect(found == .reachable(.loopback))
            }
        }
    }

    @Test func `finds no route to a host without an address`() async throws {
        try await withRuntime { runtime in
            let monitor = ReachabilityMonitor(host: "no name", runtime: runtime)
            try monitor.start()
            #expect(await monitor.updates().first { $0 != .unknown } == .notReachable)
        }
    }

    @Test func `reports the Internet's status with the shared monitor`() async throws {
        let monitor = ReachabilityMonitor.shared
        try monitor.start()
        #expect(await monitor.updates().contains { $0 != .unknown })
        monitor.stop()
    }

    @Test(arguments: ["", "localhost", "[::1]", "127.1"])
    func `rejects text that is not an address`(text: String) {
        #expect { try ReachabilityMonitor(address: text) } throws: {
            ($0 as? ClientError)?.reason == .invalidRequest
        }
    }

    @Test func `ends with its runtime`() async throws {
        let runtime = try ClientRuntime()
        let watched = try Watched(.internet, on: runtime)
        try watched.monitor.start()
        let updates = watched.monitor.updates()
        runtime.close()
        // To the end.
        for await _ in updates {}
        #expect(!watched.monitor.isMonitoring)
        #expect { try watched.monitor.start() } throws: {
            ($0 as? ClientError)?.reason == .sessionInvalidated
        }
    }

    @Test func `ends when it is released, and stays while it is followed`() async throws {
        try await withRuntime { runtime in
            var watched: Watched? = try Watched(.internet, on: runtime)
            weak let monitor = watched?.monitor
            try monitor?.start()
            let updates = watched?.monitor.updates()
            watched = nil
            var iterator = updates?.makeAsyncIterator()
            #expect(await iterator?.next() == .unknown)
            #expect(await iterator?.next() == .notReachable)
            #expect(monitor != nil)
        }
    }

    @Test(.enabled(if: NetworkNamespace.isAllowed, "this process may make no network namespaces"))
    func `notices immediately that a route is lost or found`() async throws {
        let seen = await NetworkNamespace.run { () -> Result<[NetworkStatus], any Error> in
            Result {
                let runtime = try ClientRuntime()
                defer { runtime.close() }
                let reports = Monitor<[NetworkStatus]>([])
                let monitor = try ReachabilityMonitor(address: "127.0.0.1", runtime: runtime)
                monitor.onChange = { status in
                    reports.withLock { $0.append(status) }
                    reports.signal()
                }
                try monitor.start()
                for (count, up) in [(1, true), (2, false), (3, true)] {
                    reports.wait { $0.count >= count ? .done(()) : .signal }
                    guard NetworkNamespace.setLoopback(up: up) else {
                        throw NetlinkError.system(__errno_location().pointee)
                    }
                }
                return reports.wait { $0.count >= 4 ? .done($0) : .signal }
            }
        }
        let found = try #require(seen).get()
        #expect(
            found == [
                .notReachable, .reachable(.loopback), .notReachable, .reachable(.loopback),
            ])
    }
}
