import EventLoop
import HTTPCore
import PinfoldTLS

/// Verifies the server at one address with a separate connection, which carries no data: it is
/// closed after the handshake.
///
/// It always makes a full TLS 1.3 handshake, like the tunnel that waits for it, and offers the same
/// ALPN protocols as the tunnel's client.
final class TunnelProbe: EventHandler, TunnelOpening {
    private let environment: Environment
    private let server: ProbedServer
    private let policy: PolicySnapshot
    private let entryIndex: Int?
    private let clientNetwork: IPNetwork?
    private var completion: ((Result<ProbedTrust, ExchangeError>) -> Void)?
    private var connecting: ConnectOperation?
    private var transport: Transport?

    /// - Parameters:
    ///   - server: the address, and the server expected there.
    ///   - policy: the policy by which it is verified.
    ///   - completion: called once, after `start()` has returned; not after `cancel()`.
    init(
        environment: Environment, server: ProbedServer, policy: PolicySnapshot, entryIndex: Int?,
        client: IPNetwork?, completion: @escaping (Result<ProbedTrust, ExchangeError>) -> Void
    ) {
        self.environment = environment
        self.server = server
        self.policy = policy
        self.entryIndex = entryIndex
        clientNetwork = client
        self.completion = completion
    }

    func start() {
        let authority = server.authority
        let operation = ConnectOperation(
            environment: environment, host: "\(server.endpoint.address)",
            port: server.endpoint.port, client: clientNetwork, rules: policy.destinationRules,
            // As for the tunnel: by its name.
            hostMatch: policy.destinationMatch(host: authority.host, port: authority.port)
        ) { [self] result in
            connecting = nil
            switch result {
            case .success(let made): connected(made)
            case .failure(let failure): end(.failure(failure.error))
            }
        }
        connecting = operation
        operation.start(
            timeoutMilliseconds: policy.timeouts(entryIndex: entryIndex).connectMilliseconds)
    }

    func cancel() {
        guard completion != nil else { return }
        completion = nil
        connecting?.cancel()
        connecting = nil
        drop()
    }

    private func connected(_ made: EstablishedConnection) {
        guard completion != nil, made.endpoint == server.endpoint else {
            made.transport.close()
            return end(.failure(.connectFailed(.connectionReset)))
        }
        let descriptor = made.transport.descriptor
        do throws(TLSError) {
            let tls = try TLSClientConnection(
                context: policy.probeTLS(entryIndex: entryIndex), fileDescriptor: descriptor,
                host: server.authority.host, port: server.authority.port,
                now: environment.wallSeconds)
            tls.offer(applicationProtocols: server.applicationProtocols)
            transport = Transport(descriptor: descriptor, tls: tls)
        } catch {
            made.transport.close()
            return end(.failure(.tlsFailed(error)))
        }
        do throws(Errno) {
            try environment.loop.add(self, descriptor: descriptor)
        } catch {
            return end(.failure(.connectFailed(error)))
        }
        environment.loop.setDeadline(
            self, after: policy.timeouts(entryIndex: entryIndex).connectMilliseconds)
        performHandshake()
    }

    override func ready(_ readiness: Readiness) { performHandshake() }

    override func continueWork() { performHandshake() }

    override func deadlineReached() {
        environment.metrics.add(.tlsHandshakesTimeout)
        end(.failure(.tlsTimeout))
    }

    private func performHandshake() {
        guard completion != nil, let tls = transport?.tls as? TLSClientConnection else { return }
        switch tls.handshake() {
        case .wantRead, .wantWrite, .wantIdentity: return
        case .turnIsOver: environment.loop.requeue(self)
        case .complete:
            environment.metrics.add(.tlsHandshakesFull)
            environment.countTrusted(evaluatedServer, tls)
            end(
                .success(
                    ProbedTrust(
                        readsEncryptedHello: tls.peerReadsEncryptedHello,
                        expires: tls.facts?.expires)))
        case .failed(let error):
            environment.countHandshakeFailure(error, evaluatedServer, tls)
            end(.failure(.tlsFailed(error)))
        }
    }

    private var evaluatedServer: EvaluatedServer {
        EvaluatedServer(
            server.authority, policy, entryIndex: entryIndex, at: server.endpoint)
    }

    private func drop() {
        guard let transport else { return }
        self.transport = nil
        if case .some = transport.tls, transport.version != nil { _ = transport.finishSending() }
        environment.loop.remove(self)
        transport.close()
    }

    private func end(_ result: Result<ProbedTrust, ExchangeError>) {
        drop()
        let completion = completion
        self.completion = nil
        completion?(result)
    }
}
