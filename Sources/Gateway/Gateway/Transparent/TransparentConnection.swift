import EventLoop
import HTTPCore
import PinfoldEngine
import PinfoldTLS

/// A connection that the system has led here on its way to somewhere else, until it is known what
/// its client speaks.
///
/// The client's first bytes are looked at and left in the socket, so that whoever serves the
/// connection finds it as it was made. Of HTTP that is another object, to which it is handed over;
/// of everything else, and at once at a port of `serverFirst`, it is a tunnel. A client that speaks
/// TLS is told of a refusal by an alert; others, who would take anything for the server's, by the
/// end of the connection.
final class TransparentConnection: TunnelClientConnection {
    /// Where the connection was going; set when it starts.
    private(set) var destination = Endpoint.unnamed
    /// Whether something of the client has arrived.
    var hasSpoken = false
    /// Whether what has arrived may be of a protocol in which the client now awaits an answer.
    var mayAwaitAnswer = false
    /// Whether the client has said nothing more for a while.
    private(set) var isSilent = false
    /// When the client is given up, in the loop's milliseconds.
    private(set) var givesUpAt: Int64 = 0
    /// The version for an alert to a client that speaks TLS; `nil` for any other.
    var alertVersion: UInt16?

    /// Whether the client has begun nothing. What it has begun to say is unfinished input, although
    /// it is still in the socket.
    override var isIdle: Bool { phase == .listening && !hasSpoken }

    override func awaitClient() {
        givesUpAt = loop.now + worker.policy.configuration.timeouts.headMilliseconds
        super.awaitClient()
    }

    override func start() {
        super.start()
        if let refusal = findDestination() { return refuse(refusal) }
        if worker.policy.serverFirstPorts(ofListener: ingress.name).contains(destination.port) {
            worker.metrics.add(.transparentServerFirst)
            open(to: nil, .other)
        }
    }

    /// Finds out where the connection was going, or why that is nowhere.
    private func findDestination() -> TransparentRefusalReason? {
        guard case .transparent(let source) = ingress.speaks else { return .direct(destination) }
        do throws(Errno) {
            switch source {
            case .redirect: destination = try Sockets.destinationBeforeRedirect(descriptor)
            case .tproxy: destination = try Sockets.destinationByTransparentSocket(descriptor)
            }
        } catch {
            return .unknownDestination(error)
        }
        let own = environment.shared.ownListeners.withLock { $0 }
        if own.contains(destination.address, port: destination.port)
            || OwnListeners([ingress.endpoint])
                .contains(destination.address, port: destination.port)
        {
            return .direct(destination)
        }
        return ownConnection
    }

    /// The refusal of a connection that this process has begun itself. Another worker may not have
    /// noted yet that it has, but has when it sends something.
    var ownConnection: TransparentRefusalReason? {
        environment.shared.ownConnections.contain(from: peer, to: destination)
            ? .ownConnection(destination) : nil
    }

    /// Says what the client speaks, which all its exchanges are told.
    func speaks(_ opening: OriginalDestination.Opening) {
        ingress = ingress.of(OriginalDestination(destination, opening: opening))
    }

    /// Closes a connection of which there is no request.
    func refuse(_ refusal: TransparentRefusalReason) {
        guard !isClosed else { return }
        worker.note(refusal, from: peer, on: ingress)
        close()
    }

    // MARK: What is different from other tunnels

    override func listen() -> Bool { lookAtInput() }

    override func listeningTimedOut() {
        guard mayAwaitAnswer else { return refuse(hasSpoken ? .timeout : .silent) }
        // More may have arrived in this turn.
        isSilent = true
        inputReadiness = .ready
        drive()
    }

    override var lingersAfterAnswer: Bool { alertVersion != nil }

    override func answer() {
        phase = .answering
        guard let version = alertVersion else { return }
        let alert = TLSAlert(refusing: exchange?.remarks.fault)
        // A fatal one, in clear text, as before any key is agreed on (RFC 8446 §6).
        queue([21, UInt8(version >> 8), UInt8(version & 0xFF), 0, 2, 2, alert.code])
    }
}

extension TLSAlert {
    /// What a client is told whose tunnel is refused, or fails, for this reason.
    fileprivate init(refusing fault: ExchangeError?) {
        self =
            switch fault?.reason {
            case .access, .authentication, .tunnel, .purge: .accessDenied
            case .name: .unrecognizedName
            case .trust, .profile, .revocation, .tls: .handshakeFailure
            case .gateway, .request, .fields, .response, .server, .proxy, .transformation, nil:
                .internalError
            }
    }
}
