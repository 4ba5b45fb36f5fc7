import Clocks
import EventLoop
import HTTPCore
import PinfoldResolver
import PinfoldTLS
import RedisProtocol
import Synchronization

/// The connection to the engine, or to a Sentinel, with TLS if that is used:
///
///     closed ─► asking ─► resolving ─► connecting ─► securing ─► open
///       ▲         └───────────┴────────────┴─────────────┴─────────┤
///       └──────────────────────────────────────────────────────────┘
///
/// Sentinels are asked first if they know where the engine is. How long it may take is its owner's
/// business, who closes it.
final class ServerSocket: EventHandler {
    private enum State {
        case closed
        /// Sentinels are asked.
        case asking
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
    private let resolver: Resolver?
    private let mailbox: Mailbox<LevelMessage>
    /// Who says where the engine is, and by what that is verified.
    private var finder: (MasterFinder, tls: TLSClientContext?)?
    /// Where it leads; `nil` before Sentinels have said so.
    private(set) var place: ServerPlace?
    /// Whom they have named; `nil` if nobody is asked.
    private var master: RedisNode?
    /// How often one after the other they have named another one since it was opened.
    private var contradictions = 0
    private var onEvent: (Event) -> Void = { _ in }
    private var state = State.closed
    /// Distinguishes an attempt from all others, whose addresses may arrive later.
    private var attempt = ServerSocket.nextAttempt()
    /// Addresses that were tried: another attempt begins with another one.
    private var tried = 0
    /// When it was opened, and for how long it was open.
    private var openedAt: Int64 = 0
    private var openMilliseconds: Int64 = 0
    /// Whether anything was read since it was opened.
    private var hasRead = false
    /// Whether TLS has to write before it can read.
    private var readAwaitsWriting = false

    private static let attempts = Atomic<UInt64>(0)

    /// How long a server answers at least that was a master, in milliseconds: a replica, and one
    /// that is stopped, are given up before.
    private static let useMilliseconds: Int64 = 2500
    /// How long a name or TLS may take before it is said which it was: less than its owner waits.
    private static let stepMilliseconds: Int64 = 800

    /// How often Sentinels are asked whether the master is still one, in milliseconds: one that was
    /// replaced without being down goes on as before, for ten seconds and more, with all that have
    /// a connection to it.
    private static let checkMilliseconds: Int64 = 1000
    /// How often they must name another one: one of them may be late.
    private static let contradictionLimit = 2

    /// A connection to the engine.
    convenience init(
        _ server: SharedLevelOptions.Server, resolver: Resolver?, on loop: EventLoop,
        mailbox: Mailbox<LevelMessage>
    ) {
        self.init(resolver: resolver, on: loop, mailbox: mailbox)
        switch server {
        case .unix(let path): place = .unix(path: path)
        case .tcp(let host, let port, let tls): place = .tcp(host: host, port: port, tls: tls)
        case .sentinels(let sentinels, let tls):
            let finder = MasterFinder(sentinels, resolver: resolver, on: loop, mailbox: mailbox)
            self.finder = (finder, tls)
        // Its nodes say where each connection leads.
        case .cluster: break
        }
    }

    /// A connection that leads where ``open(_:)`` says.
    init(resolver: Resolver?, on loop: EventLoop, mailbox: Mailbox<LevelMessage>) {
        self.resolver = resolver
        self.loop = loop
        self.mailbox = mailbox
    }

    /// - Parameter onEvent: called for what happens, never by a call of this object.
    func start(onEvent: @escaping (Event) -> Void) { self.onEvent = onEvent }

    private static func nextAttempt() -> UInt64 {
        attempts.wrappingAdd(1, ordering: .relaxed).newValue
    }

    // MARK: Opening

    func open() {
        close()
        guard let (finder, tls) = finder else {
            if let place { connect(to: place) }
            return
        }
        state = .asking
        let wasOfUse = openMilliseconds >= Self.useMilliseconds
        openMilliseconds = 0
        finder.find(lastWasOfUse: wasOfUse) { [unowned self] outcome in
            switch outcome {
            case .master(let node):
                let place = ServerPlace.tcp(host: node.host, port: node.port, tls: tls)
                (self.place, master) = (place, node)
                connect(to: place)
            case .none(let reason, let detail):
                state = .closed
                tell(.failed(reason, detail))
            }
        }
    }

    /// Opens a connection that leads elsewhere than the last one.
    func open(_ place: ServerPlace) {
        close()
        self.place = place
        connect(to: place)
    }

    private func connect(to place: ServerPlace) {
        switch place {
        case .unix(let path): connect(toUnixSocket: path)
        case .tcp(let host, _, _): resolve(host)
        }
    }

    private func opened(_ descriptor: Int32, _ tls: TLSClientConnection?) {
        state = .open(descriptor, tls)
        openedAt = Clock.monotonicMilliseconds()
        hasRead = false
        readAwaitsWriting = false
        contradictions = 0
        if finder != nil { loop.setDeadline(self, after: Self.checkMilliseconds) }
        tell(.opened)
    }

    /// Asks Sentinels whether it still leads to the master.
    private func check() {
        finder?.0.find(lastWasOfUse: true) { [unowned self] outcome in
            guard case .open = state else { return }
            switch outcome {
            case .none: break
            case .master(master): contradictions = 0
            case .master(let other):
                contradictions += 1
                guard contradictions < Self.contradictionLimit else {
                    let problem = "\(name): the Sentinels now name \(other)"
                    close()
                    return tell(.failed(.unreachable, problem))
                }
            }
            loop.setDeadline(self, after: Self.checkMilliseconds)
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
            opened(descriptor, nil)
        } catch {
            tell(.failed(.unreachable, "\(path): \(ServerPlace.problem(error, at: path))"))
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
        do throws(Errno) { try loop.add(self) } catch {
            return connect(ServerAddresses(addresses: [], problem: "\(error)"))
        }
        loop.setDeadline(self, after: Self.stepMilliseconds)
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
        guard attempt == self.attempt else {
            finder?.0.resolved(found, attempt: attempt)
            return
        }
        guard case .resolving = state else { return }
        loop.remove(self)
        connect(found)
    }

    private func connect(_ found: ServerAddresses) {
        guard !found.addresses.isEmpty else {
            state = .closed
            return tell(.failed(.unreachable, "\(name): it has no address: \(found.problem)"))
        }
        let first = tried % found.addresses.count
        let rotated = found.addresses[first...] + found.addresses[..<first]
        connect(toNextOf: rotated[...], Errno.hostUnreachable)
    }

    /// Whether it is open with TLS.
    var isSecured: Bool { if case .open(_, .some) = state { true } else { false } }

    /// The server, for people.
    private var name: String { place.map { "\($0)" } ?? "" }

    private func connect(toNextOf addresses: ArraySlice<IPAddress>, _ last: Errno) {
        guard case .tcp(_, let port, _) = place else { return }
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
        tell(.failed(.unreachable, "\(name): \(last)"))
    }

    private func connected(_ descriptor: Int32, _ rest: ArraySlice<IPAddress>) {
        if let error = Sockets.connectionError(descriptor) {
            drop(descriptor)
            return connect(toNextOf: rest, error)
        }
        guard case .tcp(let host, let port, let context?) = place else {
            tried -= 1
            return opened(descriptor, nil)
        }
        do throws(TLSError) {
            let tls = try TLSClientConnection(
                context: context, fileDescriptor: descriptor, host: host, port: port,
                now: Clock.wallSeconds())
            state = .securing(descriptor, tls)
            loop.setDeadline(self, after: Self.stepMilliseconds)
            shakeHands(tls, descriptor)
        } catch {
            drop(descriptor)
            state = .closed
            tell(.failed(.tls, "\(name): \(error)"))
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
            loop.setDeadline(self, after: nil)
            // Another attempt begins with an address whose server has shown who it is.
            tried -= 1
            opened(descriptor, tls)
        case .failed(let error):
            close()
            tell(.failed(SharedLevelReason(error), "\(name): \(error)"))
        }
    }

    override func deadlineReached() {
        let problem: String
        switch state {
        case .closed, .asking, .connecting: return
        case .open: return check()
        case .resolving: problem = "its name was not resolved in time"
        case .securing:
            problem =
                "it did not answer the beginning of TLS in time: it is stopped, or its port is "
                + "one of clear text"
        }
        close()
        tell(.failed(.connectTimeout, "\(name): \(problem)"))
    }

    // MARK: Events

    override func ready(_ readiness: Readiness) {
        switch state {
        case .closed, .asking, .resolving: break
        case .connecting(let descriptor, let rest):
            if readiness.mayWrite { connected(descriptor, rest) }
        case .securing(let descriptor, let tls): shakeHands(tls, descriptor)
        case .open:
            let mayRead = readiness.mayRead || readAwaitsWriting && readiness.mayWrite
            onEvent(.ready(mayRead ? readiness.union(.readable) : readiness))
        }
    }

    override func continueWork() {
        switch state {
        case .closed, .asking, .resolving, .connecting: break
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
            case .bytes(let count):
                if !hasRead, ClearText.isTLS(memory[..<count]) {
                    return .failed(.tls, "the server answers by TLS, which is not configured")
                }
                hasRead = true
                return .bytes(count)
            case .wouldBlock: return .wouldBlock
            case .endOfStream: return hasRead ? .ended : .failed(.closedByServer, ClearText.unread)
            case .failed(.connectionReset) where !hasRead:
                return .failed(.closedByServer, ClearText.unread)
            case .failed(let error): return .failed(.unreachable, "\(error)")
            }
        }
        readAwaitsWriting = false
        switch tls.read(into: memory) {
        case .bytes(let count, _): return .bytes(count)
        case .wantRead: return .wouldBlock
        case .wantWrite:
            readAwaitsWriting = true
            return .wouldBlock
        case .turnIsOver:
            loop.requeue(self)
            return .wouldBlock
        case .endOfStream, .truncated: return .ended
        case .failed: return failed(tls)
        }
    }

    private func failed(_ tls: TLSConnection) -> Transfer {
        guard let error = tls.failure else { return .failed(.tls, "TLS failed") }
        return .failed(SharedLevelReason(error), "\(error)")
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
        case .failed where tls.failure == nil:
            // Why is known once it has been read to its end: no edge need come for that.
            loop.requeue(self)
            return .wouldBlock
        case .failed: return failed(tls)
        }
    }

    // MARK: The end

    func close() {
        // What was to be told of this attempt is not.
        attempt = Self.nextAttempt()
        switch state {
        case .closed: break
        case .asking: finder?.0.stop()
        case .resolving: loop.remove(self)
        case .connecting(let descriptor, _), .securing(let descriptor, _):
            drop(descriptor)
        case .open(let descriptor, let tls):
            openMilliseconds = Clock.monotonicMilliseconds() - openedAt
            finder?.0.stop()
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
