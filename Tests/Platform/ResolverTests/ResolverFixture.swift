import CLinux
import HTTPCore
import Locking
import Synchronization
import TestSupport
import Testing

@testable import PinfoldResolver

/// A clock that stands still until it is advanced.
final class ManualClock: Sendable {
    private let time = Atomic<Int64>(1_000_000)

    var now: Int64 { time.load(ordering: .relaxed) }

    func advance(milliseconds: Int64) {
        time.add(milliseconds, ordering: .relaxed)
    }
}

/// A resolver that asks the test's servers, with its own hosts file and clock.
struct ResolverFixture {
    let resolver: Resolver
    let clock = ManualClock()
    let folder: TemporaryFolder
    /// The servers, which end when they are released.
    private let kept: [DNSServer]

    init(
        servers: [DNSServer], hosts: String = "", change: (inout ResolverOptions) -> Void = { _ in }
    ) throws {
        try self.init(
            servers: .list(servers.map(\.endpoint)), keeping: servers, hosts: hosts,
            change: change)
    }

    init(
        servers: ResolverOptions.Servers, keeping kept: [DNSServer] = [], hosts: String = "",
        change: (inout ResolverOptions) -> Void = { _ in }
    ) throws {
        self.kept = kept
        folder = TemporaryFolder()
        try folder.write(hosts, to: "hosts")
        var options = ResolverOptions()
        options.servers = servers
        options.hostsPath = folder.path + "/hosts"
        // Longer than any test: between two steps of one, all the others may run.
        options.timeoutMilliseconds = 3_600_000
        options.clock = { [clock] in clock.now }
        change(&options)
        resolver = try Resolver(options: options)
    }

    func resolve(_ name: String) async -> ResolveResult {
        await resolver.answer(to: name)
    }

    func cached(_ name: String) -> ResolveResult? {
        resolver.cached(name: name, nowMilliseconds: clock.now)
    }
}

extension Resolver {
    /// `resolve` for a caller that can wait.
    func answer(to name: String) async -> ResolveResult {
        await withCheckedContinuation { continuation in
            resolve(name: name) { continuation.resume(returning: $0) }
        }
    }
}

extension ResolveResult {
    /// The addresses as text, or `nil` for a failure.
    var addresses: [String]? {
        switch self {
        case .resolved(let answer): answer.addresses.map(\.description)
        case .failed: nil
        }
    }

    /// The answer, or `nil` for a failure.
    var answer: ResolvedAnswer? {
        switch self {
        case .resolved(let answer): answer
        case .failed: nil
        }
    }
}

/// Values from callbacks, to be awaited.
final class Inbox<Value: Sendable>: Sendable {
    private struct State: Sendable {
        var values: [Value] = []
        var waiter: (count: Int, continuation: CheckedContinuation<[Value], Never>)?
    }

    private let state = Locked(State())

    var values: [Value] { state.withLock { $0.values } }

    func put(_ value: Value) {
        let ready = state.withLock {
            state -> (CheckedContinuation<[Value], Never>, [Value])? in
            state.values.append(value)
            guard let waiter = state.waiter, state.values.count >= waiter.count else { return nil }
            state.waiter = nil
            return (waiter.continuation, state.values)
        }
        if let (continuation, values) = ready { continuation.resume(returning: values) }
    }

    /// Returns when this many values have arrived.
    func wait(for count: Int) async -> [Value] {
        await withCheckedContinuation { continuation in
            let values = state.withLock { state -> [Value]? in
                guard state.values.count < count else { return state.values }
                state.waiter = (count, continuation)
                return nil
            }
            if let values { continuation.resume(returning: values) }
        }
    }
}
