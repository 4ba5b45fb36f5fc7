import EventLoop
import HTTPCore
import PinfoldMetrics

/// Connects to the destination of a tunnel by its ways, one after the other: the connection is the
/// tunnel's own, and not the pool's.
final class WayConnection: TunnelOpening {
    /// What is connected to.
    struct Subject {
        let authority: BoundAuthority
        let policy: PolicySnapshot
        /// Which patterns of the rules match the host.
        let match: DestinationRules.HostMatch
        let stepMilliseconds: Int64
        var client: IPNetwork?
        /// What is sent along to a parent.
        var passage = Passage()
        /// Whether the server may speak first.
        var takesEarlyData = false
        /// The addresses to connect to directly; `nil` for those that the name has.
        var addresses: [IPAddress]?
        /// Which addresses may be connected to; `nil` allows all.
        var rules: DestinationRules?
    }

    private let environment: Environment
    private let subject: Subject
    private var order: WayOrder
    /// What is done for all ways.
    let timeline: ConnectionTimeline
    private var step: (any TunnelOpening)?
    /// Called once, after `start` has returned; not after `cancel`.
    private var completion: ((Result<EstablishedConnection, StreamError>) -> Void)?
    /// The parent that was tried last; `nil` for none.
    private(set) var parent: UpstreamProxy?

    /// - Parameters:
    ///   - ways: `nil` for a direct connection.
    ///   - timeline: where it notes what it is doing.
    init(
        environment: Environment, subject: Subject, by ways: WayList?,
        timeline: ConnectionTimeline = ConnectionTimeline(),
        completion: @escaping (Result<EstablishedConnection, StreamError>) -> Void
    ) {
        self.environment = environment
        self.timeline = timeline
        self.subject = subject
        order = ways.map { WayOrder($0) } ?? WayOrder([.direct]) { _ in false }
        self.completion = completion
    }

    /// Starts; what it waits for keeps it alive until it ends.
    func start() { if !proceed() { failLater() } }

    private func failLater() {
        environment.loop.afterTurn { [self] in
            end(.failure(StreamError(.noWay)))
        }
    }

    func phases(now: Int64) -> PhaseTimes { timeline.phases(now: now) }

    var tried: Endpoint? { timeline.tried }

    func cancel() {
        completion = nil
        step?.cancel()
        step = nil
    }

    private func proceed() -> Bool {
        guard let way = order.next() else { return false }
        parent = way.proxy
        switch way {
        case .direct: connect()
        case .proxy(let proxy): connect(through: proxy.passing(subject.passage.credentials))
        }
        return true
    }

    private func connect() {
        let operation = ConnectOperation(
            environment: environment, host: subject.authority.host, port: subject.authority.port,
            client: subject.client, rules: subject.rules, hostMatch: subject.match,
            addresses: subject.addresses, timeline: timeline
        ) { [self] result in ended(result) }
        step = operation
        operation.start(timeoutMilliseconds: subject.stepMilliseconds)
    }

    private func connect(through proxy: UpstreamProxy) {
        let connection = ProxiedConnection(
            environment: environment,
            subject: ProxiedConnection.Subject(
                tunnel: ProxyTunnel.Subject(
                    authority: subject.authority, proxy: proxy, policy: subject.policy,
                    via: subject.passage.via, takesEarlyData: subject.takesEarlyData),
                client: subject.client, rules: subject.rules, match: subject.match,
                stepMilliseconds: subject.stepMilliseconds),
            timeline: timeline
        ) { [self] result in
            ended(
                result.map { opened in
                    proxy.standing?.count(.requests)
                    return EstablishedConnection(
                        transport: Transport(
                            descriptor: opened.connection.transport.descriptor,
                            tls: opened.tunnel.session),
                        endpoint: opened.connection.endpoint, parent: proxy,
                        leftover: opened.tunnel.leftover)
                })
        }
        step = connection
        connection.start()
    }

    private func ended(_ result: Result<EstablishedConnection, StreamError>) {
        step = nil
        if case .failure(let failure) = result, order.goesOn(after: failure.error), proceed() {
            return
        }
        end(result)
    }

    private func end(_ result: Result<EstablishedConnection, StreamError>) {
        let completion = completion
        self.completion = nil
        completion?(result)
    }
}
