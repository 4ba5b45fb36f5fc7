import Clocks
import EventLoop
import HTTPCore
import PinfoldTLS

/// Asks a proxy for a tunnel to an origin (RFC 9110 §9.3.6), over a connection to the proxy that
/// has just been made.
///
///     securing ──► asking ──► ended
///        └──────────┴───────────▲
///
/// Securing is TLS with the proxy itself, if it is reached so: under its own name and the roots in
/// force, with no pinset of the origin. One deadline is for both.
final class ProxyTunnel: EventHandler {
    /// What is there once the proxy has agreed. The descriptor is the caller's.
    struct Opened {
        /// The session with the proxy that carries the tunnel; nil: the socket does.
        let session: TLSClientConnection?
        let microseconds: Int64
    }

    private enum State { case securing, asking, ended }

    /// Interim responses that a proxy may send.
    private static let interimLimit = 8

    let environment: Environment
    private let origin: Origin
    private let proxy: UpstreamProxy
    private var transport: Transport
    /// Called once, later than `start`; the connection is closed before if it is told a failure.
    /// Not after `cancel`.
    private var completion: ((Result<Opened, ExchangeError>) -> Void)?
    private var state = State.securing
    private var output = OutputQueue()
    private var input: Buffer?
    private var parser: ResponseHeadParser
    private var head = ResponseHead()
    private var interimHeads = 0
    private var budget = TurnBudget()
    private let started = Clock.monotonicMicroseconds()

    /// - Parameter connection: to the proxy; the tunnel's from now on until it is opened.
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

    /// Begins; the loop keeps the tunnel alive until it ends.
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
            host: proxy.host, port: proxy.port, now: environment.wallSeconds)
        transport = Transport(descriptor: transport.descriptor, tls: tls)
    }

    /// Nobody wants the tunnel any more.
    func cancel() {
        guard state != .ended else { return }
        end()
        transport.close()
    }

    // MARK: Events

    override func ready(_ readiness: Readiness) { goOn() }

    override func continueWork() { goOn() }

    override func deadlineReached() { fail(.proxy(.timeout)) }

    private func goOn() {
        budget.renew(environment.loop)
        if state == .securing { shakeHands() }
        guard state == .asking else { return }
        // Where it cannot be sent, what the proxy has said before it went is still read.
        _ = transport.flush(&output, on: environment.loop, spending: &budget)
        while state == .asking, read() {}
    }

    private func shakeHands() {
        guard let tls = transport.tls as? TLSClientConnection else { return }
        switch tls.handshake() {
        case .wantRead, .wantWrite: return
        case .wantIdentity:
            // Nobody is asked what a proxy is to be shown.
            tls.answer(nil)
            shakeHands()
        case .turnIsOver: environment.loop.requeue(self)
        case .complete:
            environment.metrics.add(tls.isResumed ? .tlsHandshakesResumed : .tlsHandshakesFull)
            environment.countTrusted(judged, tls)
            ask()
        case .failed(let error):
            environment.countHandshakeFailure(error, judged, tls)
            fail(.proxy(.tlsFailed(error)))
        }
    }

    private var judged: JudgedServer {
        JudgedServer(proxy.authority, origin.policy, entryIndex: nil)
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

    /// Reads once; false: there is nothing more now, or nothing more is to be read.
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

    /// Reads the heads that are there whole; false: one of them was the answer.
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

    /// The length of a head as it was received, and its bytes as they were parsed; nil: it has not
    /// come whole.
    private func readHead(
        _ bytes: UnsafeRawBufferPointer
    ) throws(WireError) -> (length: Int, bytes: [UInt8])? {
        let context = ResponseContext(method: .connect, mendsLines: false)
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

    /// - Parameter hasMore: something follows the head. It would be the server's, whom nobody has
    ///   asked yet: whatever framing fields say, a tunnel has no content (RFC 9110 §9.3.6).
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
