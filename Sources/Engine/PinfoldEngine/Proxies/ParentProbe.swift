import EventLoop
import HTTPCore
import PinfoldTLS
import ProxyProtocols

/// Asks a parent something that it must answer itself, over a connection of its own: an HTTP proxy
/// `OPTIONS *`, whose answer may be any, a SOCKS5 proxy which method of authentication it wants.
/// With TLS, the handshake comes first, with the same verdict as for requests.
///
///     connecting ──► securing ──► asking ──► ended
///         └─────────────┴────────────┴───────▲
///
/// A parent that accepts connections and says nothing is down, although it can be connected to.
final class ParentProbe: EventHandler {
    private enum State { case connecting, securing, asking, ended }

    /// How many milliseconds it may take to connect, and again to answer.
    static let stepMilliseconds: Int64 = 5_000

    let environment: Environment
    private let proxy: UpstreamProxy
    private let policy: PolicySnapshot
    private var state = State.connecting
    private var connecting: ConnectOperation?
    private var transport: Transport?
    private var output = OutputQueue()
    private var budget = TurnBudget()
    /// Called once, after `start` has returned; not after `cancel`.
    private var completion: ((_ hasAnswered: Bool) -> Void)?

    init(
        environment: Environment, proxy: UpstreamProxy, policy: PolicySnapshot,
        completion: @escaping (_ hasAnswered: Bool) -> Void
    ) {
        self.environment = environment
        self.proxy = proxy
        self.policy = policy
        self.completion = completion
    }

    func start() {
        let operation = ConnectOperation(
            environment: environment, host: proxy.host, port: proxy.port, client: nil, rules: nil,
            hostMatch: DestinationRules.HostMatch(), isParent: true
        ) { [self] result in
            connecting = nil
            switch result {
            case .success(let made): connected(made)
            case .failure: end(hasAnswered: false)
            }
        }
        connecting = operation
        operation.start(timeoutMilliseconds: Self.stepMilliseconds)
    }

    func cancel() {
        completion = nil
        connecting?.cancel()
        connecting = nil
        end(hasAnswered: false)
    }

    private func connected(_ made: EstablishedConnection) {
        let descriptor = made.transport.descriptor
        do throws(Errno) {
            try environment.loop.add(self, descriptor: descriptor)
        } catch {
            made.transport.close()
            return end(hasAnswered: false)
        }
        transport = made.transport
        environment.loop.setDeadline(self, after: Self.stepMilliseconds)
        guard proxy.isSecure else { return ask() }
        do throws(TLSError) {
            let tls = try TLSClientConnection(
                context: policy.tls(entryIndex: proxy.entryIndex(under: policy)),
                fileDescriptor: descriptor, host: proxy.host, port: proxy.port,
                now: environment.wallSeconds, offer: .http1)
            transport = Transport(descriptor: descriptor, tls: tls)
        } catch {
            return end(hasAnswered: false)
        }
        state = .securing
        proceed()
    }

    // MARK: Events

    override func ready(_ readiness: Readiness) { proceed() }

    override func continueWork() { proceed() }

    override func deadlineReached() { end(hasAnswered: false) }

    private func proceed() {
        budget.renew(environment.loop)
        if state == .securing { shakeHands() }
        guard state == .asking, let transport else { return }
        _ = transport.flush(&output, on: environment.loop, spending: &budget)
        let scratch = environment.loop.buffers.takeSmall()
        switch transport.read(into: scratch.writable, spending: &budget) {
        case .bytes(let count, _):
            scratch.end = count
            end(hasAnswered: isAnswer(scratch.readable))
        case .wouldBlock: return
        case .turnIsOver: environment.loop.requeue(self)
        case .endOfStream, .truncated, .failed: end(hasAnswered: false)
        }
    }

    private func shakeHands() {
        guard let tls = transport?.tls as? TLSClientConnection else { return }
        switch tls.handshake() {
        case .wantRead, .wantWrite: return
        case .wantIdentity:
            tls.answer(nil)
            shakeHands()
        case .turnIsOver: environment.loop.requeue(self)
        case .complete: ask()
        case .failed: end(hasAnswered: false)
        }
    }

    private func ask() {
        let buffer = environment.loop.buffers.holding(question)
        output.append(buffer.readable, owner: buffer)
        state = .asking
        environment.loop.requeue(self)
    }

    private var question: [UInt8] {
        guard proxy.scheme.isHTTP else {
            return SOCKS5ClientHandshake(
                to: SOCKSDestination(.name(Array("probe.invalid".utf8)), port: 1),
                as: proxy.socksCredentials
            ).greeting
        }
        // Max-Forwards: it is not to be forwarded (RFC 9110 §7.6.2).
        var head = Array(
            "OPTIONS * HTTP/1.1\r\nHost: \(proxy.authority)\r\nMax-Forwards: 0\r\n".utf8)
        head += proxy.authorizationLine("OPTIONS", "*")
        return head + Array("Connection: close\r\n\r\n".utf8)
    }

    /// Whether the first bytes are those of the protocol.
    private func isAnswer(_ bytes: UnsafeRawBufferPointer) -> Bool {
        proxy.scheme.isHTTP
            ? bytes.starts(with: Array("HTTP/1.".utf8).prefix(bytes.count)) : bytes.first == 5
    }

    // MARK: The end

    private func end(hasAnswered: Bool) {
        state = .ended
        if let transport {
            self.transport = nil
            output.discard()
            environment.loop.remove(self)
            transport.close()
        }
        let completion = completion
        self.completion = nil
        completion?(hasAnswered)
    }
}

extension ParentProbe: EnvironmentPart {
    func closeWithEnvironment() { cancel() }
}
