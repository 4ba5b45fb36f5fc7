import EventLoop
import HTTPCore

/// Looks for a stream to a server by its ways, one after the other, on behalf of a consumer, which
/// then has it.
///
///     checking ──► waiting (in the pool, for a connection by this way) ──► ended
///         ▲           │
///         └───────────┘  the next way
final class WaySearch: UpstreamConsumer {
    private let pool: UpstreamPool
    /// The origin as it is found for requests.
    private let origin: Origin
    /// Whether a rule has named the ways.
    private let isByRule: Bool
    private let consumer: any UpstreamConsumer
    private let fresh: Bool
    private var order: WayOrder
    /// The origin by the current way.
    private var current: Origin?
    private var check: AddressCheck?
    private var way = Way.direct
    var response = ResponseHead()

    init(
        _ pool: UpstreamPool, _ origin: Origin, by ways: WayList,
        for consumer: any UpstreamConsumer,
        fresh: Bool
    ) {
        self.pool = pool
        self.origin = origin.base
        isByRule = origin.key.ruleWays != nil
        self.consumer = consumer
        self.fresh = fresh
        order = WayOrder(ways)
    }

    /// Tries the next way; false if there is none.
    func proceed() -> Bool {
        guard let next = order.next() else { return false }
        way = next
        consumer.upstreamGoes(by: way.proxy)
        guard let proxy = way.proxy else {
            if let path = origin.key.unixPath { consumer.upstreamGoes(toUnixSocket: path) }
            go(to: origin)
            return true
        }
        let found = pool.environment.origins.origin(
            of: origin, through: proxy.passing(consumer.passage.credentials),
            tunnelsClearText: consumer.switchRequest.isForAnother)
        // In a tunnel, the addresses are checked when it is opened.
        if found.carrier != nil, origin.isSubjectToRules, proxy.needsAddresses(isRestricted: true) {
            checkAddresses(proxy, then: found)
        } else {
            go(to: found)
        }
        return true
    }

    private func go(to found: Origin) {
        // There may have been a reload since the last step.
        guard found.policy.trustGeneration == pool.environment.policy.trustGeneration else {
            return upstreamFailed(StreamError(.gateway(.superseded)))
        }
        current = found
        if found.key.proxyHeader == nil {
            pool.acquireByWay(found, for: self, fresh: fresh)
        } else {
            pool.acquirePrivately(found, for: self, fresh: fresh)
        }
    }

    /// A proxy that forwards requests may have any addresses for the name of each of them.
    private func checkAddresses(_ proxy: UpstreamProxy, then found: Origin) {
        let check = AddressCheck(
            environment: pool.environment, host: origin.key.host, client: clientNetwork,
            check: DestinationCheck(
                rules: origin.policy.destinationRules, match: origin.match, port: origin.key.port),
            choice: .proxy
        ) { [self] result in
            let timeline = self.check?.timeline
            self.check = nil
            switch result {
            case .success:
                consumer.upstreamTook(timeline)
                go(to: found)
                tellIfItWaits()
            case .failure(let fault):
                guard case .nameNotResolved = fault, !fault.isOwn else {
                    return upstreamFailed(StreamError(fault, by: timeline))
                }
                pool.environment.parentFailed(proxy, .nameUnchecked(fault))
                upstreamFailed(StreamError(.proxy(.nameUnchecked(fault)), by: timeline))
            }
        }
        self.check = check
        check.start(timeoutMilliseconds: origin.timeouts.connectMilliseconds)
    }

    /// The consumer no longer waits.
    func abandon() {
        check?.cancel()
        check = nil
        if let current { pool.abandonByWay(current, self) }
    }

    /// What is being done at the moment; `nil` if it waits for a place.
    var timeline: ConnectionTimeline? {
        check?.timeline ?? current.flatMap { pool.timelineByWay($0, self) }
    }

    func leads(to origin: Origin) -> Bool { self.origin === origin }

    /// Whether rules have named the ways, or may name others now.
    var dependsOnRules: Bool { isByRule || origin.mayBeRuled }

    /// It has become pointless: the consumer has to find its origin again.
    func end() {
        abandon()
        pool.ended(self, of: consumer)
        consumer.upstreamFailed(StreamError(.gateway(.superseded)))
    }

    // MARK: The result

    func upstreamReady(_ upstream: any UpstreamStream) {
        pool.ended(self, of: consumer)
        way.proxy?.standing?.count(.requests)
        upstream.setConsumer(consumer)
        consumer.upstreamReady(upstream)
    }

    func upstreamFailed(_ failure: StreamError) {
        current = nil
        if order.goesOn(after: failure.error) {
            pool.environment.trace(
                "the next way",
                ["host": "\(origin.key.host)", "after": "\(failure.error.reason.token)"])
            consumer.upstreamTook(failure.timeline)
            if proceed() { return tellIfItWaits() }
        }
        pool.ended(self, of: consumer)
        consumer.upstreamFailed(failure)
    }

    // MARK: What the consumer is like

    var mayBeRepeated: Bool { consumer.mayBeRepeated }
    var takesLargeParts: Bool { consumer.takesLargeParts }
    var switchRequest: SwitchRequest { consumer.switchRequest }
    var speaksOnlyHTTP1: Bool { consumer.speaksOnlyHTTP1 }
    var clientNetwork: IPNetwork? { consumer.clientNetwork }
    var passage: Passage { consumer.passage }
    var clientEnds: ClientEnds? { consumer.clientEnds }

    private func tellIfItWaits() {
        if pool.searches[ObjectIdentifier(consumer)] === self { consumer.upstreamWaits() }
    }

    // It has no stream.

    func upstreamHead(_ head: UnsafeRawBufferPointer) {}

    func upstreamHeadWithoutBody() {}

    func upstreamBody(_ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool) -> Bool { true }

    func upstreamEnded(trailers: TrailerSection?) {}

    func upstreamDrained() {}
}
