import CLinux
import EventLoop
import HTTPCore

@testable import PinfoldEngine

/// The source of streams of a simulated world: it hands them out immediately, later or never, and
/// knows which exchanges wait and which have one.
final class ScriptedUpstreams: UpstreamSource {
    final class Wait {
        let origin: Origin
        let consumer: Exchange
        let fresh: Bool
        /// The connection that is made for it; `nil` if it gets a stream without one.
        var operation: ConnectOperation?

        init(_ origin: Origin, _ consumer: Exchange, fresh: Bool) {
            self.origin = origin
            self.consumer = consumer
            self.fresh = fresh
        }
    }

    unowned let world: SimulatedWorld
    private(set) var waits: [Wait] = []
    private(set) var streams: [ScriptedStream] = []
    private var refused: Exchange?
    private var limits: [(key: Origin.Key, limit: SharedLimit)] = []

    init(_ world: SimulatedWorld) { self.world = world }

    /// No permits are taken.
    var limitsAreFree: Bool {
        limits.allSatisfy { $0.limit.uploads.load(ordering: .relaxed) == 0 }
    }

    func limit(of origin: Origin) -> SharedLimit {
        if let known = limits.first(where: { $0.key == origin.key }) { return known.limit }
        let made = SharedLimit()
        limits.append((origin.key, made))
        return made
    }

    func acquire(_ origin: Origin, for consumer: any UpstreamConsumer, fresh: Bool) {
        guard let exchange = consumer as? Exchange else { return world.fail("not an exchange") }
        world.noteExchange(exchange)
        world.note("wants a stream", 0, world.number(of: exchange))
        if waits.contains(where: { $0.consumer === exchange }) {
            world.fail("an exchange waits twice")
        }
        if streams.contains(where: { $0.exchange === exchange }) {
            world.fail("an exchange that has a stream wants another")
        }
        if origin.policy.trustGeneration != exchange.environment.policy.trustGeneration {
            world.fail("a stream is wanted under a policy that is not in force")
        }
        let wait = Wait(origin, exchange, fresh: fresh)
        switch world.isSettling ? 0 : world.random.below(100) {
        case 0..<45: handOut(wait, at: world.peer)
        case 45..<50: refuse(exchange, StreamError(connectFault()))
        case 50..<65:
            waits.append(wait)
            connect(wait)
        default: waits.append(wait)
        }
    }

    /// Makes a connection for a waiter, as the pool does.
    private func connect(_ wait: Wait) {
        let (origin, key) = (wait.origin, wait.origin.key)
        let operation = ConnectOperation(
            environment: wait.consumer.environment, host: key.host, port: key.port,
            client: wait.consumer.clientNetwork,
            rules: key.isFixed ? nil : origin.policy.destinationRules, hostMatch: origin.match
        ) { [unowned self, unowned wait] result in connected(wait, result) }
        wait.operation = operation
        operation.start(timeoutMilliseconds: origin.timeouts.connectMilliseconds)
    }

    private func connected(
        _ wait: Wait, _ result: Result<EstablishedConnection, StreamError>
    ) {
        guard let index = waits.firstIndex(where: { $0 === wait }) else {
            return world.fail("a connection is made for nobody")
        }
        waits.remove(at: index)
        switch result {
        case .failure(let failure): refuse(wait.consumer, failure)
        case .success(let made):
            // What is sent to the server goes to its stream.
            made.transport.close()
            let far = world.sockets.takeLatest()
            if far >= 0 { close(far) }
            handOut(wait, at: made.endpoint)
        }
    }

    func abandon(_ origin: Origin, _ consumer: any UpstreamConsumer) {
        guard let index = waits.firstIndex(where: { $0.consumer === consumer }) else {
            if refused !== consumer { world.fail("who does not wait gives up its wait") }
            refused = nil
            return
        }
        waits.remove(at: index).operation?.cancel()
    }

    /// Answers one waiter; returns false if there is none.
    func step() -> Bool {
        let free = waits.indices.filter { waits[$0].operation == nil }
        guard !free.isEmpty else { return false }
        let wait = waits.remove(at: world.random.pick(free))
        if world.isSettling || world.random.chance(75) {
            handOut(wait, at: world.peer)
        } else {
            refuse(wait.consumer, StreamError(connectFault()))
        }
        return true
    }

    /// Advances one stream; returns false if none can advance.
    func stepStream() -> Bool {
        guard !streams.isEmpty else { return false }
        let first = world.random.below(streams.count)
        for offset in streams.indices {
            let stream = streams[(first + offset) % streams.count]
            if stream.canGoOn {
                stream.drive()
                return true
            }
        }
        return false
    }

    private func handOut(_ wait: Wait, at endpoint: Endpoint) {
        let isConnected = wait.operation != nil
        let stream = ScriptedStream(
            self, for: wait.consumer,
            wasReused: !isConnected && !wait.fresh && world.random.chance(50), at: endpoint)
        streams.append(stream)
        world.note("stream for", stream.wasReused ? 1 : 0, stream.number)
        wait.consumer.upstreamReady(stream)
    }

    private func connectFault() -> ExchangeError {
        switch world.random.below(6) {
        case 0: .connectFailed(.connectionRefused)
        case 1: .connectTimeout
        case 2: .gateway(.tooManyPending)
        case 3: .nameNotResolved(.nxdomain)
        case 4: .gateway(.descriptorsExhausted)
        default: .tlsFailed(.truncated)
        }
    }

    /// A worker has another policy: waiters under one with different trust find their origin again.
    func supersede() {
        func isOutdated(_ wait: Wait) -> Bool {
            wait.origin.policy.trustGeneration
                != wait.consumer.environment.policy.trustGeneration
        }
        let outdated = waits.filter(isOutdated)
        waits.removeAll(where: isOutdated)
        for wait in outdated {
            wait.operation?.cancel()
            refuse(wait.consumer, StreamError(.gateway(.superseded)))
        }
    }

    /// A consumer that is notified that there is no stream gives up its wait, which has already
    /// ended.
    private func refuse(_ exchange: Exchange, _ failure: StreamError) {
        world.note("no stream for", 0, world.number(of: exchange))
        refused = exchange
        exchange.upstreamFailed(failure)
        refused = nil
    }

    func forget(_ stream: ScriptedStream) { streams.removeAll { $0 === stream } }
}
