import Activity
import CLinux
import EventLoop
import HTTPCore
import PinfoldMetrics
import TestSupport

@testable import CacheStore
@testable import PinfoldEngine

/// How a client's request ended.
enum SimulatedEnding: Int, CaseIterable {
    case complete, ownReply, cut, clientWent, switched, givenServer
}

/// An environment, or two, with scripted clients before it and scripted servers behind it, driven
/// by one seed: real exchanges, real loops, a real store, resolver, connecting and relays; the
/// time, the disk's rows, the answers to lookups and the far ends of sockets are the world's own.
/// In some worlds the process ends now and then, and another one begins with what is on disk.
///
/// A step is one thing that happens: a client sends, takes, goes away or times out, a server
/// answers or fails, a stream is handed out, the disk reads or writes, a name is resolved, a
/// connection is made, bytes pass through a tunnel, the time goes on, a deadline comes, a
/// configuration is loaded. After each one the invariants are looked at (`SimulatedWorld+Checks`).
final class SimulatedWorld {
    /// The time of a world, and its loop's.
    final class Time: @unchecked Sendable {
        var monotonic: Int64 = 1_000_000
        static let wallOffset: Int64 = 1_800_000_000_000
    }

    let seed: UInt64
    /// What its clients and servers speak.
    let carriers: SimulatedCarriers
    var random: SeededRandom
    private let time = Time()
    /// One for each worker. Messages between workers arrive when the loop of their receiver turns.
    let loops: [EventLoop]
    let options: CacheStoreOptions
    let names: ScriptedResolver
    let links: [UpstreamsLink]
    let metrics = WorkerMetrics(dimensions: MetricsDimensions(reasons: Reason.tokens.count))
    /// What ends with the process.
    var process: SimulatedProcess
    /// Decides about restarts, apart from everything else: the worlds of known seeds stay the same.
    var fate: SeededRandom
    /// The step of the next restart.
    var restartsAt = Int.max
    /// How often the process has ended, with and without notice.
    var restarts = (killed: 0, ended: 0)
    private let accounts = ClientAccounts()
    let account: ClientAccount?
    let peer: Endpoint
    let ingresses: [Ingress]
    var urls: [SimulatedURL] = []
    private(set) var clients: [ScriptedClient] = []
    private(set) var upstreams: ScriptedUpstreams!
    /// Whether responses are translated on their way.
    let isRuled: Bool
    /// Whether requests are limited by rates.
    let isRated: Bool
    /// Whatever has counted requests for rates, in this process.
    var rateAccounts: [ObjectIdentifier: RateAccount] = [:]
    let work = SimulatedWork()
    var policies: [PolicySnapshot] {
        SimulationPolicies.all(isRuled: isRuled, isRated: isRated)
    }
    var disk: ScriptedDisk?
    var resolver: ScriptedResolver { names }
    let sockets: ScriptedSockets
    /// The names of servers, and what CONNECT names.
    private(set) var servers: [String: SimulatedName] = [:]
    private(set) var destinations: [SimulatedName] = []
    var tunnels: [SimulatedTunnel] = []
    /// The far end of a server's connection that is being handed over.
    var serverEnd: Int32 = -1

    private let quota: Int
    private var requests: [SimulatedRequest] = []
    private var byID: [UInt64: SimulatedRequest] = [:]
    private(set) var representations: [Representation] = []
    /// Every exchange object that was seen.
    var exchanges: [WeakExchange] = []
    private(set) var stepNumber = 0
    /// How often each worker has loaded another configuration.
    var reloads: [Int]
    /// Nothing new begins and nothing fails any more: everything that has begun must end.
    private(set) var isSettling = false
    private(set) var violation: String?
    /// How often exchanges of different workers were seen to meet, after a step.
    var meetings = [Int](repeating: 0, count: SimulatedMeeting.allCases.count)
    private(set) var journal = Journal()
    /// How often an exchange was seen in each state after a step.
    var seen = [Int](repeating: 0, count: SimulatedState.allCases.count)
    private(set) var translations = [Int](
        repeating: 0, count: SimulatedTranslation.allCases.count)
    private(set) var endings = [Int](repeating: 0, count: SimulatedEnding.allCases.count)

    struct WeakExchange {
        weak var exchange: Exchange?
    }

    /// - Parameters:
    ///   - quota: requests that its clients make.
    ///   - carriers: what its clients and servers speak.
    init(seed: UInt64, quota: Int, carriers: SimulatedCarriers) throws {
        self.carriers = carriers
        self.seed = seed
        self.quota = quota
        random = SeededRandom(seed: seed)
        fate = SeededRandom(seed: ~seed)
        isRuled = seed % 3 == 1
        isRated = seed % 7 == 6
        let time = time
        let source = TimeSource(
            monotonicMilliseconds: { time.monotonic },
            wallMilliseconds: { time.monotonic + Time.wallOffset })
        loops = try (0..<Self.workers(of: seed)).map { _ in
            try EventLoop(eventsPerTurn: 16, time: source)
        }
        reloads = loops.map { _ in 0 }
        links = loops.map { _ in UpstreamsLink() }
        options = Self.storeOptions(&random)
        names = try ScriptedResolver { time.monotonic }
        let policies = SimulationPolicies.all(isRuled: isRuled, isRated: isRated)
        let address = try Self.endpoint("127.0.0.1:1")
        peer = address
        account = accounts.open(address.address, limit: 10)
        ingresses = Self.makeIngresses(address)
        sockets = ScriptedSockets()
        process = try SimulatedProcess(
            seed, loops, options, policies[random.below(policies.count)], names.resolver, work,
            metrics, links, sockets)
        upstreams = ScriptedUpstreams(self)
        for link in links { link.target = upstreams }
        sockets.world = self
        names.world = self
        if options.diskBytes > 0 { disk = ScriptedDisk(self, process.store) }
        makeNames()
        work.world = self
        work.isShort = random.chance(40)
        try process.start()
        planRestart()
        makeURLs()
        for index in 0..<(2 + random.below(7)) {
            clients.append(ScriptedClient(self, index: index, account: account))
        }
    }

    private struct EndpointError: Error {}

    private static func endpoint(_ text: String) throws -> Endpoint {
        guard let endpoint = Endpoint(text) else { throw EndpointError() }
        return endpoint
    }

    /// The store's limits: from one that never needs the disk to one that keeps nothing in memory.
    private static func storeOptions(_ random: inout SeededRandom) -> CacheStoreOptions {
        var options = CacheStoreOptions()
        options.memoryShards = 1
        options.memoryFileBytes = random.chance(30) ? 512 : 32 << 10
        options.memoryFiles = random.chance(20) ? 1 : 4096
        options.diskBytes = random.chance(25) ? 0 : 1 << 30
        options.memoryBytes = 64 << 20
        guard options.diskBytes > 0 else { return options }
        options.memoryBytes = random.pick([64 << 20, 16 << 10, 0])
        options.batchMilliseconds = 0
        options.wholeBodyBytes = random.pick([1 << 20, 1000, 300])
        options.inlineBodyBytes = random.pick([64 << 10, 200])
        options.chunkBytes = random.pick([64 << 10, 256])
        options.queueBytes = random.chance(20) ? 4000 : 32 << 20
        options.gatheringBytes = random.chance(20) ? 4000 : 32 << 20
        options.pendingReads = random.chance(10) ? 1 : 4096
        return options
    }

    private func makeNames() {
        for host in ["a.test", "b.test", "r.test"] {
            servers[host] = SimulatedName(host, &random)
        }
        for index in 0..<3 { destinations.append(SimulatedName.destination(index, &random)) }
        for name in Array(servers.values) + destinations { resolver.add(name) }
    }

    /// The time, in milliseconds.
    var now: Int64 { time.monotonic }

    // MARK: What there is to ask for

    private static func makeIngresses(_ endpoint: Endpoint) -> [Ingress] {
        let roles: [Ingress.Role] = [
            .forward, .forward, .bound(BoundAuthority(host: "b.test", port: 443)),
            .reverse(ReverseUpstream(host: "r.test", port: 80, isSecure: false)),
        ]
        return roles.map { Ingress(name: "test", label: .other, endpoint: endpoint, role: $0) }
    }

    private func makeURLs() {
        var keys = SimulatedKeys()
        for index in 0..<(1 + random.below(4)) {
            let (host, ingresses) = random.pick([
                ("a.test", [0]), ("b.test", [1, 2]), ("r.test", [0, 3]),
            ])
            urls.append(
                SimulatedURL(
                    host: host, path: keys.path(host: host, index: index), ingresses: ingresses))
        }
    }

    /// What a request line names.
    func ingressTarget(_ ingress: Int, _ url: SimulatedURL) -> String {
        switch ingress {
        case 0: "http://\(url.host)\(url.path)"
        case 1: "https://\(url.host)\(url.path)"
        default: url.path
        }
    }

    func makeRepresentation(
        of url: Int, status: Int, isPrivate: Bool, variant: Int
    ) -> Representation {
        let made = Representation(
            self, number: representations.count, url: url, status: status, isPrivate: isPrivate,
            variant: variant)
        representations.append(made)
        return made
    }

    // MARK: Who is who

    func noteExchange(_ exchange: Exchange) {
        seen[SimulatedState(exchange.state.step).rawValue] += 1
        if !exchanges.contains(where: { $0.exchange === exchange }) {
            exchanges.append(WeakExchange(exchange: exchange))
        }
    }

    func noteBegun(_ id: UInt64, _ request: SimulatedRequest) { byID[id] = request }

    /// The request of a client's exchange; nil in the background.
    func request(of exchange: Exchange) -> SimulatedRequest? {
        exchange.client == nil ? nil : byID[exchange.report.id]
    }

    /// The request that a server knows by its number.
    func request(numbered number: Int) -> SimulatedRequest? {
        requests.indices.contains(number) ? requests[number] : nil
    }

    func number(of exchange: Exchange) -> Int { request(of: exchange)?.number ?? -1 }

    // MARK: What happens

    func note(_ what: StaticString, _ who: Int, _ detail: Int) { journal.note(what, who, detail) }

    func ended(_ ending: SimulatedEnding) { endings[ending.rawValue] += 1 }

    func count(_ translation: SimulatedTranslation) { translations[translation.rawValue] += 1 }

    /// Something impossible was observed.
    func fail(_ what: String) {
        guard violation == nil else { return }
        violation = what
    }

    /// Plays the world to its end.
    func run() {
        while violation == nil, requests.count < quota, stepNumber < quota * 200 {
            step()
            if stepNumber >= restartsAt { restart() }
        }
        settle()
        if violation == nil { checkEnd() }
    }

    func beginNext(on client: ScriptedClient) {
        guard client.isIdle, requests.count < quota, !isSettling, !process.isEnding,
            violation == nil
        else { return }
        let request = SimulatedRequest(self, number: requests.count)
        request.began = stepNumber
        request.worker = client.worker
        judge(request, by: process.environments[client.worker].policy)
        requests.append(request)
        client.begin(request)
    }

    private func judge(_ request: SimulatedRequest, by policy: PolicySnapshot) {
        request.reloads = reloads[request.worker]
        request.trust = policy.trust
        request.tunnelMilliseconds = policy.timeouts.tunnelMilliseconds
    }

    private func step() {
        stepNumber += 1
        switch random.below(isRuled ? 160 : 145) {
        case 145..<160: _ = work.step()
        case 100..<115: disk?.step()
        case 115..<135: if random.chance(50) { resolver.step() } else { sockets.step() }
        case 135..<145: if !tunnels.isEmpty { tunnels[random.below(tunnels.count)].step() }
        case 0..<45:
            let client = clients[random.below(clients.count)]
            if client.isIdle { beginNext(on: client) } else { _ = client.step() }
        case 45..<72: if !upstreams.stepStream() { turn(0) }
        case 72..<80: if !upstreams.step() { turn(0) }
        case 80..<93: turn(Int64(random.below(20)))
        case 93..<95: for _ in 0...random.below(4) { turn(Int64(random.below(1000))) }
        case 95: if random.chance(40) { reload() }
        default: reachDeadline()
        }
        checkStep()
    }

    /// What the others do while a thread of the disk is at work, at times.
    func goOnMeanwhile() {
        guard !isSettling, violation == nil, random.chance(20) else { return }
        for _ in 0...random.below(random.pick([4, 40])) { step() }
    }

    private func turn(_ milliseconds: Int64) {
        time.monotonic += milliseconds
        loops[pickWorker()].turn(waitingAtMost: 0)
    }

    /// All workers have their turn.
    func turnAll(_ milliseconds: Int64) {
        time.monotonic += milliseconds
        for loop in loops { loop.turn(waitingAtMost: 0) }
    }

    private func pickWorker() -> Int { loops.count > 1 ? random.below(loops.count) : 0 }

    /// A worker loads a configuration; another one may do so much later.
    private func reload() {
        let policy = random.pick(policies)
        note("reload", 0, Int(policy.generation))
        let worker = pickWorker()
        reloads[worker] += 1
        process.environments[worker].adopt(policy)
        upstreams.supersede()
        // Whoever waits for their turn is judged again.
        for client in clients where client.worker == worker {
            guard case .delayed? = client.exchange?.state.step, let request = client.request else {
                continue
            }
            judge(request, by: policy)
        }
    }

    /// A deadline comes before its time.
    private func reachDeadline() {
        guard !exchanges.isEmpty else { return }
        let first = random.below(exchanges.count)
        for offset in exchanges.indices {
            guard let exchange = exchanges[(first + offset) % exchanges.count].exchange,
                exchange.token != .none, exchange.deadline != .max
            else { continue }
            note("deadline of", 0, number(of: exchange))
            exchange.environment.loop.setDeadline(exchange, after: nil)
            return exchange.deadlineReached()
        }
    }

    private var haveAllEnded: Bool {
        exchanges.allSatisfy { held in
            guard let exchange = held.exchange else { return true }
            if case .ended = exchange.state.step { return true }
            return false
        }
    }

    /// Lets everything come to its end.
    private func settle() {
        isSettling = true
        for _ in 0..<3000 {
            guard violation == nil else { return }
            stepNumber += 1
            for client in clients { _ = client.step() }
            while upstreams.step() {}
            _ = upstreams.stepStream()
            disk?.settle()
            while resolver.step() {}
            while work.step() {}
            sockets.step()
            for tunnel in tunnels { tunnel.step() }
            turnAll(5)
            checkStep()
            if clients.allSatisfy(\.isIdle), upstreams.waits.isEmpty, upstreams.streams.isEmpty,
                tunnels.isEmpty
            {
                // What was put off.
                for _ in 0..<3 { turnAll(1) }
                disk?.settle()
                turnAll(1)
                disk?.settle()
                if clients.allSatisfy(\.isIdle), upstreams.streams.isEmpty, haveAllEnded { return }
            }
        }
        let open = exchanges.compactMap(\.exchange).map {
            "\(number(of: $0)) is \($0.state.name), \($0.collapsing.role)"
        }
        fail("it does not come to an end: \(open), \(upstreams.streams.count) streams")
    }
}
