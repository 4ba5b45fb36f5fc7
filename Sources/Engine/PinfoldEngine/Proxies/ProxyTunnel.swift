import Clocks
import EventLoop
import HTTPCore
import PinfoldTLS

/// Requests a tunnel to an origin from a proxy (RFC 9110 §9.3.6), over a new connection to the
/// proxy.
///
///     securing ──► asking ──► ended
///        └──────────┴───────────▲
///
/// Securing is TLS with the proxy itself, if it uses that: with its own name and the roots in
/// force, without the origin's pinsets. One deadline applies to both steps.
final class ProxyTunnel: EventHandler {
    /// The opened tunnel. The descriptor belongs to the caller.
    struct Opened {
        /// The session with the proxy that carries the tunnel; `nil` if the socket does.
        let session: TLSClientConnection?
        let microseconds: Int64
    }

    private enum State { case securing, asking, ended }

    /// The most interim responses that a proxy may send.
    private static let interimLimit = 8

    let environment: Environment
    private let origin: Origin
    private let proxy: UpstreamProxy
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
    private let started = Clock.monotonicMicroseconds()

    /// - Parameter connection: the connection to the proxy, which belongs to the tunnel until it is
    ///   opened.
    init(
        environment: Environment, origin: Origin, proxy: UpstreamProxy, connection: Transport,
        completion: @escaping (Result<Opened, ExchangeError>) -> Void
    ) {
        self.environment = environment
        self.origin = origin
        self.proxy = proxy
        self.completion = completion
        transport = connection
        parser = ResponseHeadParser(limits: origin.policy.headLimits)
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
        let tls = try TLSClientConnection(
            context: origin.policy.tls(entryIndex: nil), fileDescriptor: transport.descriptor,
            host: proxy.host, port: proxy.port, now: environment.wallSeconds,
            // CONNECT is sent in HTTP/1.1.
            offer: .http1)
        transport = Transport(descriptor: transport.descriptor, tls: tls)
    }

    /// The tunnel is no longer needed.
    func cancel() {
        guard state != .ended else { return }
        end()
        transport.close()
    }

    // MARK: Events

    override func ready(_ readiness: Readiness) { continueRequest() }

    override func continueWork() { continueRequest() }

    override func deadlineReached() { fail(.proxy(.timeout)) }

    private func continueRequest() {
        budget.renew(environment.loop)
        if state == .securing { performHandshake() }
        guard state == .asking else { return }
        // If it cannot be sent, what the proxy sent before it closed is still read.
        _ = transport.flush(&output, on: environment.loop, spending: &budget)
        while state == .asking, read() {}
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
        EvaluatedServer(proxy.authority, origin.policy, entryIndex: nil)
    }

    // MARK: The request

    private func ask() {
        let target = "\(BoundAuthority(host: origin.key.host, port: origin.key.port))"
        var head = Array("CONNECT \(target) HTTP/1.1\r\nHost: \(target)\r\n".utf8)
        head += proxy.authorizationLine("CONNECT", target)
        head += [0x0D, 0x0A]
        let buffer = environment.loop.buffers.holding(head)
        environment.metrics.add(.upstreamBytesSent, UInt64(buffer.count))
        output.append(buffer.readable, owner: buffer)
        state = .asking
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
            return input.map { readHeads($0) } ?? false
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
            return fail(.proxy(.refused(answer)))
        }
        guard !hasMore else { return fail(.proxy(.spokeUnasked)) }
        let completion = completion
        let opened = Opened(
            session: transport.tls as? TLSClientConnection,
            microseconds: max(0, Clock.monotonicMicroseconds() - started))
        end()
        completion?(.success(opened))
    }

    // MARK: The end

    private func fail(_ fault: ExchangeError) {
        guard state != .ended else { return }
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
