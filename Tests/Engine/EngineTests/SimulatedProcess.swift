import Activity
import EventLoop
import HTTPCore
import Logging
import PinfoldMetrics
import PinfoldResolver

@testable import CacheStore
@testable import PinfoldEngine

/// How exchanges of different workers meet, to be counted.
enum SimulatedMeeting: Int, CaseIterable {
    case followsRemotely, gaveUpRemotely, storesClaimed, isFollowedRemotely
}

/// What ends with a process: a store in memory, and an environment for each worker.
struct SimulatedProcess {
    let store: CacheStore
    let environments: [Environment]
    /// Nothing new begins.
    var isEnding = false

    init(
        _ seed: UInt64, _ loops: [EventLoop], _ options: CacheStoreOptions,
        _ policy: PolicySnapshot, _ resolver: Resolver, _ work: SimulatedWork,
        _ metrics: WorkerMetrics, _ links: [UpstreamsLink], _ sockets: ScriptedSockets
    ) throws {
        let logger = Logger(label: "simulation") { _ in
            CriticalLog { print("SIMULATION: seed \(seed): \($0)") }
        }
        let store = CacheStore(withoutThreads: options) { _ in }
        let shared = SharedEnvironment(
            mailboxes: try loops.map { _ in try Mailbox<EngineMessage>() }, resolver: resolver,
            store: store, logger: logger, labels: RouteLabels(),
            activity: ActivityMonitor(delays: ActivityDelays()),
            transformationWork: TransformationWork { [work] in work.take($0) })
        let own = Endpoint(address: SimulatedAddress.own.address, port: SimulatedTarget.port)
        shared.ownListeners.withLock { $0 = OwnListeners([own]) }
        self.store = store
        environments = loops.indices.map { index in
            Environment(
                index: index, loop: loops[index], policy: policy, shared: shared,
                metrics: metrics, upstreams: links[index], sockets: sockets)
        }
    }

    func start() throws { for environment in environments { try environment.start() } }

    func close() { for environment in environments { environment.close() } }
}

// Restarts.
extension SimulatedWorld {
    /// How many workers the world of a seed has.
    static func workers(of seed: UInt64) -> Int { [1, 2].contains(seed % 5) ? 2 : 1 }

    /// Whether its process ends before the world does.
    private var hasRestarts: Bool { [2, 3].contains(seed % 5) }

    func planRestart() {
        if hasRestarts { restartsAt = stepNumber + 20 + fate.below(500) }
    }

    /// The process ends: with notice, and then it writes what is queued for the disk, or without.
    /// Another one begins with what is on disk.
    func restart() {
        // While a thread of the disk is at work, that goes on in the midst of it.
        guard disk?.isBusy != true, violation == nil else { return }
        let isKilled = fate.chance(50)
        note(isKilled ? "killed" : "ended", 0, 0)
        process.isEnding = true
        endExchanges()
        checkEndOfProcess()
        guard violation == nil else { return }
        if !isKilled { disk?.settle() }
        // What is not on disk is not undone either: an invalidation may be lost with the process.
        if disk?.end() == true { for url in urls.indices { urls[url].invalidated = -1 } }
        if isKilled { restarts.killed += 1 } else { restarts.ended += 1 }
        weak let environment = process.environments.last
        process.close()
        do {
            process = try SimulatedProcess(
                seed, loops, options, fate.pick(policies), names.resolver, work, metrics, links,
                sockets)
            if let disk { self.disk = ScriptedDisk(self, process.store, following: disk) }
            try process.start()
        } catch {
            fail("no process: \(error)")
        }
        rateAccounts = [:]
        for worker in reloads.indices { reloads[worker] += 1 }
        if environment != nil { fail("the environment of a process that has ended is kept") }
        if exchanges.contains(where: { $0.exchange != nil }) {
            fail("an exchange of a process that has ended is kept")
        }
        exchanges = []
        planRestart()
    }

    /// Ends whatever is in progress.
    private func endExchanges() {
        for tunnel in tunnels where !tunnel.isClosed { tunnel.cutOff() }
        for client in clients where !client.isIdle { client.goAway() }
        // What was put off may begin something in the background.
        var quietTurns = 0
        while quietTurns < 4 {
            quietTurns += 1
            for case let exchange? in exchanges.map(\.exchange) {
                if case .ended = exchange.state.step { continue }
                exchange.cutOff()
                quietTurns = 0
            }
            turnAll(0)
        }
        tunnels = []
        sockets.step()
    }
}

/// The environment is made before the world that its streams come from.
final class UpstreamsLink: UpstreamSource {
    weak var target: ScriptedUpstreams?

    func acquire(_ origin: Origin, for consumer: any UpstreamConsumer, fresh: Bool) {
        target?.acquire(origin, for: consumer, fresh: fresh)
    }

    func abandon(_ origin: Origin, _ consumer: any UpstreamConsumer) {
        target?.abandon(origin, consumer)
    }

    func limit(of origin: Origin) -> SharedLimit { target?.limit(of: origin) ?? SharedLimit() }
}
