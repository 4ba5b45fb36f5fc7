import Clocks
import EventLoop
import HTTPCore
import PinfoldTLS

/// Opens a tunnel to a server through a proxy: finds out whether the server's addresses are
/// allowed where that matters, connects to the proxy, and asks it.
///
///     checking ──► connecting ──► asking ──► ended
///                      ▲             │
///                      └─────────────┘  with SOCKS5, the next address of the server
///
/// What happens is noted in the proxy's standing, if it is a gateway's parent.
final class ProxiedConnection: TunnelOpening {
    /// What is asked for.
    struct Subject {
        var tunnel: ProxyTunnel.Subject
        /// The client in whose share of the lookups it counts; `nil` if for none in particular.
        var client: IPNetwork?
        /// Which addresses of the server may be connected to; `nil` allows all.
        var rules: DestinationRules?
        var match = DestinationRules.HostMatch()
        /// How many milliseconds each step may take.
        let stepMilliseconds: Int64
    }

    /// The opened tunnel.
    struct Opened {
        /// Its transport is the socket; the address is that of the proxy.
        let connection: EstablishedConnection
        let tunnel: ProxyTunnel.Opened
    }

    /// The most addresses of a server that a SOCKS5 proxy is asked for.
    private static let addressLimit = 4

    private let environment: Environment
    private var subject: Subject
    /// Where it notes what it is doing.
    private let timeline: ConnectionTimeline
    private var proxy: UpstreamProxy { subject.tunnel.proxy }
    /// Called once, after `start` has returned; not after `cancel`.
    private var completion: ((Result<Opened, StreamError>) -> Void)?
    /// What it waits for.
    private var step: (any TunnelOpening)?
    /// The addresses of the server that have not been asked for.
    private var addresses: [IPAddress] = []

    init(
        environment: Environment, subject: Subject, timeline: ConnectionTimeline,
        completion: @escaping (Result<Opened, StreamError>) -> Void
    ) {
        self.environment = environment
        self.subject = subject
        self.timeline = timeline
        self.completion = completion
    }

    /// Starts; what it waits for keeps it alive until it ends.
    func start() {
        let authority = subject.tunnel.authority
        guard proxy.needsAddresses(isRestricted: subject.rules != nil) else { return connect() }
        let check = AddressCheck(
            environment: environment, host: authority.host, client: subject.client,
            check: DestinationCheck(
                rules: subject.rules, match: subject.match, port: authority.port),
            choice: proxy.scheme == .socks5 ? .gateway : .proxy, timeline: timeline
        ) { [self] result in
            step = nil
            switch result {
            case .success(let found):
                if proxy.scheme == .socks5 {
                    addresses = Array(found.prefix(Self.addressLimit))
                    subject.tunnel.address = addresses.removeFirst()
                }
                connect()
            case .failure(let fault): checkFailed(fault)
            }
        }
        step = check
        check.start(timeoutMilliseconds: subject.stepMilliseconds)
    }

    /// A proxy that is sent an address does not resolve the name: then it has no address, as
    /// without a proxy.
    private func checkFailed(_ fault: ExchangeError) {
        guard case .nameNotResolved = fault, !fault.isOwn, proxy.scheme != .socks5 else {
            return end(.failure(StreamError(fault)))
        }
        end(.failure(StreamError(.proxy(.nameUnchecked(fault)))), noting: .nameUnchecked(fault))
    }

    func cancel() {
        completion = nil
        step?.cancel()
        step = nil
    }

    private func connect() {
        // The operator has named the proxy: no rules apply to its addresses.
        let operation = ConnectOperation(
            environment: environment, host: proxy.host, port: proxy.port, client: subject.client,
            rules: nil, hostMatch: DestinationRules.HostMatch(), isParent: proxy.standing != nil,
            timeline: timeline
        ) { [self] result in
            step = nil
            switch result {
            case .success(let made): ask(over: made)
            case .failure(var failure):
                failure.error = ExchangeError(onTheWayToProxy: failure.error)
                fail(failure)
            }
        }
        step = operation
        operation.start(timeoutMilliseconds: subject.stepMilliseconds)
    }

    private func ask(over made: EstablishedConnection) {
        timeline.enter(.tunnel, at: Clock.monotonicMicroseconds())
        let tunnel = ProxyTunnel(
            environment: environment, subject: subject.tunnel, connection: made.transport
        ) { [self] result in
            step = nil
            switch result {
            case .success(let opened):
                environment.parentAnswered(proxy)
                end(.success(Opened(connection: made, tunnel: opened)))
            case .failure(let fault):
                if case .proxy(.socks(.refused(let refusal))) = fault, !refusal.isByRule,
                    !addresses.isEmpty
                {
                    subject.tunnel.address = addresses.removeFirst()
                    return connect()
                }
                fail(StreamError(fault, FailedAttempts(connectedTo: made.endpoint)))
            }
        }
        step = tunnel
        tunnel.start(timeoutMilliseconds: subject.stepMilliseconds)
    }

    private func fail(_ failure: StreamError) {
        if case .proxy(let error) = failure.error {
            end(.failure(failure), noting: error)
        } else {
            end(.failure(failure))
        }
    }

    private func end(_ result: Result<Opened, StreamError>, noting error: ProxyError? = nil) {
        if let error { environment.parentFailed(proxy, error) }
        timeline.finish(at: Clock.monotonicMicroseconds())
        let completion = completion
        self.completion = nil
        completion?(result.mapError { StreamError($0.error, $0.attempts, by: timeline) })
    }
}

extension ProxyTunnel: TunnelOpening {}

extension Environment {
    /// A parent has answered, or been connected to.
    func parentAnswered(_ proxy: UpstreamProxy) {
        guard let standing = proxy.standing else { return }
        standing.count(.connections)
        if standing.answered(at: loop.monotonicNow) { logChange(of: standing) }
    }

    /// A request could not be sent through a parent.
    func parentFailed(_ proxy: UpstreamProxy, _ error: ProxyError) {
        guard let standing = proxy.standing else { return }
        if standing.failed(error, at: loop.monotonicNow) { logChange(of: standing, error) }
    }

    /// Logs that a parent is up again, or down.
    func logChange(of standing: ParentStanding, _ error: ProxyError? = nil) {
        var metadata: [String: String] = [
            "parent": standing.name, "url": standing.parent.url,
        ]
        if let error {
            metadata["reason"] = error.reason.entry.token
            metadata["error"] = error.detail ?? error.reason.entry.meaning
        }
        if standing.isDown {
            shared.logger.warning(
                "a parent proxy is down: other ways are used",
                metadata: metadata.mapValues { "\($0)" })
        } else {
            shared.logger.info(
                "a parent proxy is up again", metadata: metadata.mapValues { "\($0)" })
        }
    }
}
