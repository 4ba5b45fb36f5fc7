import Clocks
import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldResolver
import PinfoldTLS
import ProxyProtocols
import Trust

/// Why a server's certificates could not be obtained.
package enum ServerProbeError: Error, CustomStringConvertible {
    /// There are no resources for it.
    case noResolver(Resolver.StartError)
    case noLoop(Errno)
    case context(TLSContextError)
    case notResolved(BoundAuthority, ResolveError)
    /// None of the addresses could be connected to; of the last one.
    case notConnected(Endpoint, Errno)
    case timeout(BoundAuthority)
    /// The handshake ended before the server sent its certificate.
    case noCertificate(BoundAuthority, TLSError)
    /// The connection failed in another way.
    case failed(BoundAuthority, ExchangeError)

    package var description: String {
        switch self {
        case .noResolver(let error): "names cannot be resolved: \(error)"
        case .noLoop(let error): "connections cannot be made: \(error)"
        case .context(let error): "\(error)"
        case .notResolved(let peer, let failure):
            "\(peer.host) cannot be resolved (\(failure.rawValue))"
        case .notConnected(let endpoint, let error): "cannot connect to \(endpoint): \(error)"
        case .timeout(let peer): "\(peer) sent no certificate in time"
        case .noCertificate(let peer, let error): "\(peer) sent no certificate: \(error)"
        case .failed(let peer, let error): "\(peer): \(error.explanation)"
        }
    }

    /// Why the connection to `peer` failed.
    init(_ failure: StreamError, _ peer: BoundAuthority) {
        switch failure.error {
        case .nameNotResolved(let error): self = .notResolved(peer, error)
        case .tlsFailed(let error): self = .noCertificate(peer, error)
        case .tlsTimeout: self = .timeout(peer)
        case .connectTimeout where failure.attempts?.lastFailure == nil:
            self = .notResolved(peer, .timeout)
        default:
            guard let last = failure.attempts?.lastFailure else {
                self = .failed(peer, failure.error)
                return
            }
            self = .notConnected(last.endpoint, last.error)
        }
    }
}

/// The certificates that a server presents, and the result of verifying them.
package struct ServerPresentation {
    package let endpoint: Endpoint
    /// The certificates in DER, the leaf first, as sent.
    package let certificates: [[UInt8]]
    /// The negotiated version; `nil` if the handshake failed.
    package let version: TLSVersion?
    /// Why the handshake failed, which includes untrusted certificates; `nil` if it succeeded.
    package let failure: TLSError?
    /// The facts established by verification; `nil` if the handshake failed.
    package let facts: TrustFacts?
}

/// Connects to a server as the gateway would, for the command line, and reads its certificates. It
/// blocks for a bounded time.
package struct ServerProbe {
    private let context: TLSClientContext
    private let milliseconds: Int64

    /// A probe of a server whose certificates are returned even if they are not trusted.
    ///
    /// - Parameters:
    ///   - roots: the anchors by which it is judged; no pins are.
    ///   - milliseconds: the time limit for everything.
    package init(roots: PinfoldTLS.TrustRoots, milliseconds: Int64) throws(ServerProbeError) {
        var settings = TLSClientSettings()
        settings.keepsPresented = true
        do throws(TLSContextError) {
            context = try TLSClientContext(settings, roots: roots)
        } catch {
            throw .context(error)
        }
        self.milliseconds = milliseconds
    }

    /// A probe by an existing context, whose policy decides the verdict; the certificates are
    /// returned only if its settings keep them.
    package init(context: TLSClientContext, milliseconds: Int64) {
        self.context = context
        self.milliseconds = milliseconds
    }

    /// Shakes hands with a server.
    ///
    /// - Parameters:
    ///   - host: a name in lower case, or an address without brackets.
    ///   - addresses: the addresses to connect to; `nil` for those that the name has.
    ///   - policy: the policy whose ways lead to it; `nil` for a direct connection.
    ///   - rule: the ways that a rule names; empty for those of the host.
    ///   - header: the form of the PROXY header that it gets, of a connection of the gateway's own.
    ///   - timeline: where it is noted what is done, also if it fails.
    package func look(
        at host: String, port: UInt16, addresses: [IPAddress]? = nil,
        under policy: PolicySnapshot? = nil, by rule: [WayName] = [],
        telling header: UpstreamProxyProtocol = .none,
        noting timeline: ConnectionTimeline = ConnectionTimeline()
    ) throws(ServerProbeError) -> ServerPresentation {
        let peer = BoundAuthority(host: host, port: port)
        let resolver = try Self.resolver()
        defer { resolver.close() }
        let environment = try Self.environment(resolver)
        defer {
            environment.closeConnections()
            environment.close()
        }
        let ways = policy.flatMap { policy in
            policy.ways(to: peer, by: rule).map { ($0, policy) }
        }
        switch find(peer, addresses, by: ways, telling: header, noting: timeline, in: environment) {
        case nil: throw .timeout(peer)
        case .failed(let failure): throw ServerProbeError(failure, peer)
        case .trusted(let tls, let endpoint):
            return ServerPresentation(
                endpoint: endpoint, certificates: tls.presented, version: tls.version,
                failure: nil, facts: tls.facts)
        case .refused(let error, let tls, let endpoint):
            // A server that is not trusted has sent a certificate.
            var isVerdict = false
            if case .trust = error { isVerdict = true }
            guard isVerdict || !tls.presented.isEmpty else { throw .noCertificate(peer, error) }
            return ServerPresentation(
                endpoint: endpoint, certificates: tls.presented, version: nil, failure: error,
                facts: tls.facts)
        }
    }

    /// Connects to a server without shaking hands, as for requests in clear text. Nothing is sent.
    ///
    /// - Parameters:
    ///   - addresses: the addresses to connect to; `nil` for those that the name has.
    ///   - milliseconds: the time limit.
    ///   - timeline: where it is noted what is done, also if it fails.
    /// - Returns: the address and port that it was connected to.
    package static func reach(
        _ host: String, port: UInt16, addresses: [IPAddress]?, milliseconds: Int64,
        noting timeline: ConnectionTimeline
    ) throws(ServerProbeError) -> Endpoint {
        let peer = BoundAuthority(host: host, port: port)
        let resolver = try Self.resolver()
        defer { resolver.close() }
        let environment = try Self.environment(resolver)
        defer {
            environment.closeConnections()
            environment.close()
        }
        var result: Result<EstablishedConnection, StreamError>?
        let connection = WayConnection(
            environment: environment,
            subject: WayConnection.Subject(
                authority: peer, policy: environment.policy, match: .init(),
                stepMilliseconds: milliseconds, addresses: addresses),
            by: nil, timeline: timeline
        ) { result = $0 }
        connection.start()
        // Its own deadline ends it.
        while result == nil {
            environment.loop.turn(waitingAtMost: Int32(clamping: milliseconds))
        }
        timeline.finish(at: Clock.monotonicMicroseconds())
        switch result {
        case nil: throw .timeout(peer)
        case .failure(let failure): throw ServerProbeError(failure, peer)
        case .success(let made):
            made.transport.close()
            return made.endpoint
        }
    }

    private static func resolver() throws(ServerProbeError) -> Resolver {
        do throws(Resolver.StartError) {
            return try Resolver()
        } catch {
            throw .noResolver(error)
        }
    }

    private static func environment(_ resolver: Resolver) throws(ServerProbeError) -> Environment {
        let policy: PolicySnapshot
        do throws(TLSContextError) {
            policy = try PolicySnapshot(forOwnConnections: .init())
        } catch {
            throw .context(error)
        }
        do throws(Errno) {
            return try Environment(
                standaloneOn: try EventLoop(), resolver: resolver, policy: policy)
        } catch {
            throw .noLoop(error)
        }
    }

    /// Runs the environment's loop until something has been found out, or the time is over.
    private func find(
        _ peer: BoundAuthority, _ addresses: [IPAddress]?,
        by ways: (list: WayList, policy: PolicySnapshot)?, telling header: UpstreamProxyProtocol,
        noting timeline: ConnectionTimeline, in environment: Environment
    ) -> HandshakeProbe.Finding? {
        var finding: HandshakeProbe.Finding?
        let probe = HandshakeProbe(
            environment: environment,
            subject: HandshakeProbe.Subject(
                authority: peer, addresses: addresses, context: context,
                header: ProxyHeader.Version(header), ways: ways, timeline: timeline,
                stepMilliseconds: milliseconds)
        ) { finding = $0 }
        let end = Clock.monotonicMilliseconds() + milliseconds
        probe.start()
        // Until it is connected, its own deadline tells what it waits for.
        while finding == nil, !probe.isConnected || Clock.monotonicMilliseconds() < end {
            let remaining = max(1, end - Clock.monotonicMilliseconds())
            environment.loop.turn(waitingAtMost: Int32(clamping: remaining))
        }
        probe.cancel()
        timeline.finish(at: Clock.monotonicMicroseconds())
        return finding
    }
}
