import Clocks
import EventLoop
import HTTPCore
import PinfoldResolver
import PinfoldTLS
import RedisProtocol

/// The addresses of an engine; empty if its name has none.
struct ServerAddresses: Sendable, Equatable {
    var addresses: [IPAddress]
    /// Why there are none.
    var problem = ""
}

/// The connection to the engine, with TLS if that is used:
///
///     closed ─► resolving ─► connecting ─► securing ─► open
///       ▲           └────────────┴────────────┴─────────┤
///       └───────────────────────────────────────────────┘
///
/// How long it may take is its owner's business, who closes it.
final class ServerSocket: EventHandler {
    private enum State {
        case closed
        case resolving
        case connecting(Int32, rest: ArraySlice<IPAddress>)
        case securing(Int32, TLSClientConnection)
        case open(Int32, TLSClientConnection?)
    }

    /// What happened.
    enum Event {
        case opened
        /// It may be read, or written, without waiting.
        case ready(Readiness)
        case failed(SharedLevelReason, String)
    }

    /// How a transfer ended.
    enum Transfer {
        case bytes(Int)
        case wouldBlock
        /// The engine has ended it.
        case ended
        case failed(SharedLevelReason, String)
    }

    private let loop: EventLoop
    private let server: SharedLevelOptions.Server
    private let resolver: Resolver?
    private let mailbox: Mailbox<LevelMessage>
    private var onEvent: (Event) -> Void = { _ in }
    private var state = State.closed
    /// Distinguishes an attempt from earlier ones, whose addresses may arrive later.
    private var attempt: UInt64 = 0
    /// Addresses that were tried: another attempt begins with another one.
    private var tried = 0

    init(
        _ server: SharedLevelOptions.Server, resolver: Resolver?, on loop: EventLoop,
        mailbox: Mailbox<LevelMessage>
    ) {
        self.server = server
        self.resolver = resolver
        self.loop = loop
        self.mailbox = mailbox
    }

    /// - Parameter onEvent: called for what happens, never by a call of this object.
    func start(onEvent: @escaping (Event) -> Void) { self.onEvent = onEvent }

    // MARK: Opening

    func open() {
        close()
        attempt += 1
        switch server {
        case .unix(let path): connect(toUnixSocket: path)
        case .tcp(let host, _, _): resolve(host)
        }
    }

    /// Says what happened after this turn: whoever has called is not called back.
    private func tell(_ event: Event) {
        let attempt = attempt
        loop.afterTurn { [self] in if attempt == self.attempt { onEvent(event) } }
    }

    private func connect(toUnixSocket path: String) {
        do throws(Errno) {
            let descriptor = try UnixSockets.connectAtOnce(to: path)
            try register(descriptor)
            state = .open(descriptor, nil)
            tell(.opened)
        } catch {
            tell(.failed(.unreachable, "\(path): \(error)"))
        }
    }

    private func register(_ descriptor: Int32) throws(Errno) {
        do throws(Errno) {
            try loop.add(self, descriptor: descriptor)
        } catch {
            Descriptors.close(descriptor)
            throw error
        }
    }

    private func resolve(_ host: String) {
        state = .resolving
        let bytes = Array(host.utf8)
        if let address = IPAddress(literal: bytes.span) {
            return connect(ServerAddresses(addresses: [address]))
        }
        guard let resolver else {
            let isLocal = host.lowercased() == "localhost"
            return connect(
                ServerAddresses(
                    addresses: isLocal ? [.loopbackV4, .loopbackV6] : [],
                    problem: "there is no resolver"))
        }
        let (mailbox, attempt) = (mailbox, attempt)
        resolver.resolve(name: host) { result in
            let addresses =
                switch result {
                case .resolved(let answer): ServerAddresses(addresses: answer.addresses)
                case .failed(let error):
                    ServerAddresses(addresses: [], problem: error.rawValue)
                }
            mailbox.post(.resolved(addresses, attempt: attempt))
        }
    }

    /// The name was looked up.
    func resolved(_ found: ServerAddresses, attempt: UInt64) {
        guard case .resolving = state, attempt == self.attempt else { return }
        connect(found)
    }

    private func connect(_ found: ServerAddresses) {
        guard !found.addresses.isEmpty else {
            state = .closed
            return tell(.failed(.unreachable, "its name has no address: \(found.problem)"))
        }
        let first = tried % found.addresses.count
        let rotated = found.addresses[first...] + found.addresses[..<first]
        connect(toNextOf: rotated[...], Errno.hostUnreachable)
    }

    private func connect(toNextOf addresses: ArraySlice<IPAddress>, _ last: Errno) {
        guard case .tcp(_, let port, _) = server else { return }
        var (rest, last) = (addresses, last)
        while let address = rest.popFirst() {
            tried += 1
            do throws(Errno) {
                let descriptor = try Sockets.connect(to: Endpoint(address: address, port: port))
                try register(descriptor)
                state = .connecting(descriptor, rest: rest)
                return
            } catch {
                last = error
            }
        }
        state = .closed
        tell(.failed(.unreachable, "\(last)"))
    }

    private func connected(_ descriptor: Int32, _ rest: ArraySlice<IPAddress>) {
        if let error = Sockets.connectionError(descriptor) {
            drop(descriptor)
            return connect(toNextOf: rest, error)
        }
        tried -= 1
        guard case .tcp(let host, let port, let context?) = server else {
            state = .open(descriptor, nil)
            return tell(.opened)
        }
        do throws(TLSError) {
            let tls = try TLSClientConnection(
                context: context, fileDescriptor: descriptor, host: host, port: port,
                now: Clock.wallSeconds())
            state = .securing(descriptor, tls)
            shakeHands(tls, descriptor)
        } catch {
            drop(descriptor)
            state = .closed
            tell(.failed(.tls, "\(error)"))
        }
    }

    private func shakeHands(_ tls: TLSClientConnection, _ descriptor: Int32) {
        switch tls.handshake() {
        case .wantRead, .wantWrite: break
        case .turnIsOver: loop.requeue(self)
        case .wantIdentity:
            // There is nobody to ask for a certificate.
            tls.answer(nil)
            loop.requeue(self)
        case .complete:
            state = .open(descriptor, tls)
            tell(.opened)
        case .failed(let error):
            close()
            tell(.failed(.tls, "\(error)"))
        }
    }

    // MARK: Events

    override func ready(_ readiness: Readiness) {
        switch state {
        case .closed, .resolving: break
        case .connecting(let descriptor, let rest):
            if readiness.mayWrite { connected(descriptor, rest) }
        case .securing(let descriptor, let tls): shakeHands(tls, descriptor)
        case .open: onEvent(.ready(readiness))
        }
    }

    override func continueWork() {
        switch state {
        case .closed, .resolving, .connecting: break
        case .securing(let descriptor, let tls): shakeHands(tls, descriptor)
        case .open: onEvent(.ready([.readable, .writable]))
        }
    }

    /// There is more to read, in another turn.
    func readLater() { loop.requeue(self) }

    // MARK: Transfers

    func read(into memory: UnsafeMutableRawBufferPointer) -> Transfer {
        guard case .open(let descriptor, let tls) = state else { return .ended }
        guard let tls else {
            switch Transfers.read(descriptor, into: memory) {
            case .bytes(let count): return .bytes(count)
            case .wouldBlock: return .wouldBlock
            case .endOfStream: return .ended
            case .failed(let error): return .failed(.unreachable, "\(error)")
            }
        }
        switch tls.read(into: memory) {
        case .bytes(let count, _): return .bytes(count)
        case .wantRead, .wantWrite: return .wouldBlock
        case .turnIsOver:
            loop.requeue(self)
            return .wouldBlock
        case .endOfStream, .truncated: return .ended
        case .failed: return .failed(.tls, tls.failure.map { "\($0)" } ?? "TLS failed")
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> Transfer {
        guard case .open(let descriptor, let tls) = state else { return .ended }
        guard let tls else {
            switch Transfers.write(descriptor, bytes) {
            case .bytes(let count): return .bytes(count)
            case .wouldBlock: return .wouldBlock
            case .endOfStream: return .ended
            case .failed(let error): return .failed(.unreachable, "\(error)")
            }
        }
        switch tls.write(bytes) {
        case .bytes(let count): return .bytes(count)
        case .wantRead, .wantWrite: return .wouldBlock
        // Why is known once it has been read to its end, which ends it.
        case .failed: return tls.failure.map { .failed(.tls, "\($0)") } ?? .wouldBlock
        }
    }

    // MARK: The end

    func close() {
        // What was to be told of this attempt is not.
        attempt += 1
        switch state {
        case .closed, .resolving: break
        case .connecting(let descriptor, _), .securing(let descriptor, _):
            drop(descriptor)
        case .open(let descriptor, let tls):
            if let tls { _ = tls.shutdown() }
            drop(descriptor)
        }
        state = .closed
    }

    private func drop(_ descriptor: Int32) {
        loop.remove(self)
        Descriptors.close(descriptor)
    }
}
