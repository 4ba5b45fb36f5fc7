import EventLoop
import HTTPCore
import PinfoldTLS
import ProxyProtocols

/// Requests a tunnel to a server from a proxy, by CONNECT (RFC 9110 §9.3.6) or by SOCKS5
/// (``SOCKS5ClientHandshake``), over a new connection to the proxy.
///
///     securing ──► asking ──► ended
///        └──────────┴───────────▲
///
/// Securing is TLS with the proxy itself, if it uses that: with its own name, by its own host entry
/// (a gateway's parent) or the roots in force, without the server's pinsets. One deadline applies
/// to both steps.
final class ProxyTunnel: EventHandler {
    /// What is requested, and of which proxy.
    struct Subject {
        /// The server.
        let authority: BoundAuthority
        let proxy: UpstreamProxy
        let policy: PolicySnapshot
        /// The address that a SOCKS5 proxy is asked for; `nil` for the name.
        var address: IPAddress?
        /// The lines of Via that go with CONNECT, by which loops of gateways end.
        var via: [UInt8] = []
        /// Whether the server may speak first, so that its data may follow the answer at once.
        var takesEarlyData = false
    }

    /// The opened tunnel. The descriptor belongs to the caller.
    struct Opened {
        /// The session with the proxy that carries the tunnel; `nil` if the socket does.
        let session: TLSClientConnection?
        /// What the server has sent already; `nil` if nothing.
        var leftover: Buffer?
    }

    private enum State {
        case securing
        /// CONNECT has been queued.
        case asking
        /// The handshake of SOCKS5 has begun.
        case shakingHands(SOCKS5ClientHandshake)
        case ended
    }

    /// The most interim responses that a proxy may send.
    private static let interimLimit = 8

    let environment: Environment
    private let subject: Subject
    private var proxy: UpstreamProxy { subject.proxy }
    private var transport: Transport
    /// Called once, after `start` has returned; in case of a failure, after the connection has been
    /// closed. Not called after `cancel`.
    private var completion: ((Result<Opened, ExchangeError>) -> Void)?
    private var state = State.securing
    private var output = OutputQueue()
    private var input: Buffer?
    private var parser: ResponseHeadParser
    private var head = ResponseHead()
    private var interimHeads = 0
    private var budget = TurnBudget()

    /// - Parameter connection: the connection to the proxy, which belongs to the tunnel until it is
    ///   opened.
    init(
        environment: Environment, subject: Subject, connection: Transport,
        completion: @escaping (Result<Opened, ExchangeError>) -> Void
    ) {
        self.environment = environment
        self.subject = subject
        self.completion = completion
        transport = connection
        parser = ResponseHeadParser(limits: subject.policy.headLimits)
    }

    /// Starts; the loop keeps the tunnel alive until it ends.
    func start(timeoutMilliseconds: Int64) {
        do throws(Errno) {
            try environment.loop.add(self, descriptor: transport.descriptor)
        } catch {
            return environment.loop.afterTurn { self.fail(.connectFailed(error)) }
        }
        environment.loop.setDeadline(self, after: timeoutMilliseconds)
        do throws(TLSError) {
            try prepare()
        } catch {
            return environment.loop.afterTurn { self.fail(.proxy(.tlsFailed(error))) }
        }
        environment.loop.requeue(self)
    }

    private func prepare() throws(TLSError) {
        guard proxy.isSecure else { return ask() }
        let entry = proxy.entryIndex(under: subject.policy)
        let tls = try TLSClientConnection(
            context: subject.policy.tls(entryIndex: entry), fileDescriptor: transport.descriptor,
            host: proxy.host, port: proxy.port, now: environment.wallSeconds,
            // CONNECT is sent in HTTP/1.1.
            offer: .http1)
        transport = Transport(descriptor: transport.descriptor, tls: tls)
    }

    /// The tunnel is no longer needed.
    func cancel() {
        guard !isOver else { return }
        end()
        transport.close()
    }

    private var isOver: Bool { if case .ended = state { true } else { false } }
    private var isSecuring: Bool { if case .securing = state { true } else { false } }

    // MARK: Events

    override func ready(_ readiness: Readiness) { continueRequest() }

    override func continueWork() { continueRequest() }

    override func deadlineReached() { fail(.proxy(.timeout)) }

    private func continueRequest() {
        budget.renew(environment.loop)
        if isSecuring { performHandshake() }
        guard !isSecuring, !isOver else { return }
        // If it cannot be sent, what the proxy sent before it closed is still read.
        _ = transport.flush(&output, on: environment.loop, spending: &budget)
        while !isOver, read() {}
    }

    private func performHandshake() {
        guard let tls = transport.tls as? TLSClientConnection else { return }
        switch tls.handshake() {
        case .wantRead, .wantWrite: return
        case .wantIdentity:
            // No client certificate is used with a proxy.
            tls.answer(nil)
            performHandshake()
        case .turnIsOver: environment.loop.requeue(self)
        case .complete:
            environment.metrics.countHandshake(with: tls)
            environment.countTrusted(evaluatedServer, tls)
            ask()
        case .failed(let error):
            environment.countHandshakeFailure(error, evaluatedServer, tls)
            fail(.proxy(.tlsFailed(error)))
        }
    }

    private var evaluatedServer: EvaluatedServer {
        EvaluatedServer(
            proxy.authority, subject.policy, entryIndex: proxy.entryIndex(under: subject.policy))
    }

    // MARK: The request

    private func ask() {
        guard proxy.scheme.isHTTP else { return greet() }
        let target = "\(subject.authority)"
        var head = Array("CONNECT \(target) HTTP/1.1\r\nHost: \(target)\r\n".utf8)
        head += proxy.authorizationLine("CONNECT", target)
        head += subject.via
        head += [0x0D, 0x0A]
        queue(head)
        state = .asking
    }

    private func greet() {
        let (host, port) = (subject.authority.host, subject.authority.port)
        let address = subject.address ?? IPAddress(literal: host.utf8.span)
        let target = address.map { SOCKSDestination.Host.address($0) } ?? .name(Array(host.utf8))
        let handshake = SOCKS5ClientHandshake(
            to: SOCKSDestination(target, port: port), as: proxy.socksCredentials)
        queue(handshake.greeting)
        state = .shakingHands(handshake)
    }

    private func queue(_ bytes: [UInt8]) {
        let buffer = environment.loop.buffers.holding(bytes)
        environment.metrics.add(.upstreamBytesSent, UInt64(buffer.count))
        output.append(buffer.readable, owner: buffer)
    }

    // MARK: The answer

    /// Reads once; returns false if nothing more can or should be read now.
    private func read() -> Bool {
        guard !budget.isSpent else {
            environment.loop.requeue(self)
            return false
        }
        let room = environment.loop.buffers.makeRoom(in: &input)
        switch transport.read(into: room, spending: &budget) {
        case .bytes(let count, _):
            input?.end += count
            environment.metrics.add(.upstreamBytesReceived, UInt64(count))
            return input.map { take($0) } ?? false
        case .wouldBlock: return false
        case .turnIsOver:
            environment.loop.requeue(self)
            return false
        case .endOfStream, .truncated: fail(.proxy(.closed))
        case .failed(.tls(let error)): fail(.proxy(.tlsFailed(error)))
        case .failed: fail(.proxy(.closed))
        }
        return false
    }

    private func take(_ input: Buffer) -> Bool {
        if case .shakingHands(let handshake) = state { return shakeHands(handshake, input) }
        return readHeads(input)
    }

    /// Continues the handshake of SOCKS5; returns false if it has ended.
    private func shakeHands(_ handshake: SOCKS5ClientHandshake, _ input: Buffer) -> Bool {
        var handshake = handshake
        do throws(SOCKS5Error) {
            while !input.isEmpty {
                let (action, consumed) = try handshake.receive(input.readable.octets)
                input.start += consumed
                switch action {
                case .wait: break
                case .send(let bytes):
                    queue(bytes)
                    _ = transport.flush(&output, on: environment.loop, spending: &budget)
                case .opened:
                    opened(hasMore: !input.isEmpty)
                    return false
                }
            }
            state = .shakingHands(handshake)
            return true
        } catch {
            fail(.proxy(.socks(error)))
            return false
        }
    }

    /// Reads the complete heads; returns false if one of them was the answer.
    private func readHeads(_ input: Buffer) -> Bool {
        do throws(WireError) {
            while !input.isEmpty {
                guard let (length, bytes) = try readHead(input.readable) else { return true }
                input.start += length
                guard head.isInterim else {
                    answered(bytes, hasMore: !input.isEmpty)
                    return false
                }
                interimHeads += 1
                guard interimHeads <= Self.interimLimit else {
                    fail(.proxy(.tooManyInterim))
                    return false
                }
            }
            return true
        } catch {
            fail(.proxy(.badAnswer(error)))
            return false
        }
    }

    /// The length of a head as received, and its bytes as parsed; `nil` if it is incomplete.
    private func readHead(
        _ bytes: UnsafeRawBufferPointer
    ) throws(WireError) -> (length: Int, bytes: [UInt8])? {
        let context = ResponseContext(method: .connect, repairsLines: false)
        switch try parser.parse(bytes.octets, answering: context, into: &head) {
        case .needMore: return nil
        case .complete(let length): return (length, Array(bytes[..<length]))
        case .bareLines(let length):
            let rewritten = try parser.parseRewritten(
                UnsafeRawBufferPointer(rebasing: bytes[..<length]), answering: context,
                into: &head, buffers: environment.loop.buffers)
            return (length, Array(rewritten.readable))
        }
    }

    /// - Parameter hasMore: whether data follows the head. It would be from the server, to which
    ///   nothing has been sent yet: whatever framing fields say, a tunnel has no content (RFC 9110
    ///   §9.3.6).
    private func answered(_ bytes: [UInt8], hasMore: Bool) {
        guard head.status / 100 == 2 else {
            let answer = bytes.withUnsafeBytes { ProxyAnswer(head, in: $0) }
            return fail(.proxy(answer.status == 508 ? .loop : .refused(answer)))
        }
        opened(hasMore: hasMore)
    }

    private func opened(hasMore: Bool) {
        guard !hasMore || subject.takesEarlyData else { return fail(.proxy(.spokeUnasked)) }
        let completion = completion
        let opened = Opened(
            session: transport.tls as? TLSClientConnection,
            leftover: hasMore ? input.take() : nil)
        end()
        completion?(.success(opened))
    }

    // MARK: The end

    private func fail(_ fault: ExchangeError) {
        guard !isOver else { return }
        let completion = completion
        end()
        transport.close()
        completion?(.failure(fault))
    }

    private func end() {
        state = .ended
        completion = nil
        output.discard()
        Buffer.release(&input)
        environment.loop.remove(self, keepingOpen: transport.descriptor)
    }
}
