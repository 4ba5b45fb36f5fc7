import EventLoop
import HTTPCore
import PinfoldEngine
import ProxyProtocols

/// A client's connection that speaks SOCKS 5, until its tunnel begins.
///
/// What the client says is decided by ``SOCKSHandshake``; what exchanges answer becomes one code. A
/// password is proved by an exchange as well, before there is a destination.
final class SOCKSConnection: TunnelClientConnection {
    /// The ingress of a client that has proved who it is; `nil` for any other.
    private(set) var provenIngress: Ingress?
    var handshake: SOCKSHandshake
    var input: Buffer?

    override var isIdle: Bool {
        phase == .listening && handshake.heldBytes == 0 && input?.isEmpty ?? true
    }

    override init(
        worker: Worker, transport: Transport, ingress: Ingress, peer: Endpoint,
        account: ClientAccount?
    ) {
        handshake = SOCKSHandshake(needsPassword: !ingress.methods.isEmpty)
        super.init(
            worker: worker, transport: transport, ingress: ingress, peer: peer, account: account)
    }

    override func listen() -> Bool { negotiate() }

    override func listeningTimedOut() {
        worker.note(SOCKSRefusalReason.timeout, from: peer, on: ingress)
        close()
    }

    override func answer() {
        guard phase == .proving else {
            queue(SOCKSReply(refusing: exchange?.remarks.fault).bytes)
            phase = .answering
            return
        }
        let identity = status == 200 ? exchange?.identity : nil
        provenIngress = identity.map { ingress.of($0) }
        queue(handshake.judged(identity != nil))
        if identity == nil { phase = .answering }
    }

    override func goesOn() -> Bool {
        guard phase == .proving, provenIngress != nil else { return false }
        phase = .listening
        awaitClient()
        drive()
        return true
    }

    override func beginsRelay() -> (leftover: Buffer?, pending: OutputQueue) {
        queue(SOCKSReply.succeeded.bytes)
        let (leftover, pending) = (input, output)
        input = nil
        output = OutputQueue()
        return (leftover, pending)
    }

    override func startLingering() {
        input = nil
        super.startLingering()
    }

    override func leave(closing: Bool) {
        input = nil
        super.leave(closing: closing)
    }
}

extension SOCKSReply {
    /// The code for a request that is refused, or fails, for this reason.
    init(refusing fault: ExchangeError?) {
        self =
            switch fault {
            case .connectFailed(.networkUnreachable): .networkUnreachable
            default: Self.code(of: fault?.reason)
            }
    }

    private static func code(of reason: Reason?) -> SOCKSReply {
        switch reason {
        case .access, .authentication, .tunnel, .purge, .trust, .profile, .revocation:
            .notAllowed
        case .name, .server(.destinationUnreachable), .server(.connectTimeout): .hostUnreachable
        case .server(.connectionRefused): .connectionRefused
        case .gateway, .request, .fields, .response, .tls, .server, .proxy, .transformation, nil:
            .generalFailure
        }
    }
}
