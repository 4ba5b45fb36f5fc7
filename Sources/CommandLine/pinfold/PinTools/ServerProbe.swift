import CLinux
import Clocks
import EventLoop
import HTTPCore
import Locking
import PinfoldResolver
import PinfoldTLS
import Trust

/// Why a server's certificates could not be obtained.
package enum ServerProbeError: Error, CustomStringConvertible {
    case noResolver(Resolver.StartError)
    case notResolved(PeerAddress, ResolveError)
    /// None of the addresses could be connected to; of the last one.
    case notConnected(Endpoint, Errno)
    case timeout(PeerAddress)
    /// The handshake ended before the server sent its certificate.
    case noCertificate(PeerAddress, TLSError)
    case context(TLSContextError)

    package var description: String {
        switch self {
        case .noResolver(let error): "names cannot be resolved: \(error)"
        case .notResolved(let peer, let failure):
            "\(peer.host) cannot be resolved (\(failure.rawValue))"
        case .notConnected(let endpoint, let error): "cannot connect to \(endpoint): \(error)"
        case .timeout(let peer): "\(peer) sent no certificate in time"
        case .noCertificate(let peer, let error): "\(peer) sent no certificate: \(error)"
        case .context(let error): "\(error)"
        }
    }
}

/// The certificates that a server presents, and the result of verifying them.
package struct ServerPresentation: Sendable {
    package var peer: PeerAddress
    package var endpoint: Endpoint
    /// The certificates in DER, leaf first, as sent.
    package var certificates: [[UInt8]]
    /// The negotiated version, or `nil` if the handshake failed.
    package var version: TLSVersion?
    /// Why the handshake failed, which includes untrusted certificates, or `nil` if it succeeded.
    package var failure: TLSError?
    /// The facts established by verification, or `nil` if the handshake failed.
    package var facts: TrustFacts?
}

/// Connects to a server with the gateway's own code and reads its certificates. Blocks for a
/// bounded time.
package struct ServerProbe {
    private let context: TLSClientContext
    private let deadline: Int64

    /// - Parameters:
    ///   - policy: The policy to verify the server with. Its certificates are returned even if
    ///     verification fails.
    ///   - milliseconds: The time limit for everything.
    package init(
        policy: PinningPolicy = PinningPolicy(), roots: TrustRoots,
        minimumVersion: TLSVersion = .tls12, milliseconds: Int64
    ) throws(ServerProbeError) {
        var settings = TLSClientSettings()
        settings.policy = policy
        settings.minimumVersion = minimumVersion
        settings.keepsPresented = true
        do {
            context = try TLSClientContext(settings, roots: roots)
        } catch {
            throw .context(error)
        }
        deadline = Clock.monotonicMicroseconds() / 1000 + milliseconds
    }

    /// Uses an existing context. Its policy decides the verdict; the certificates are returned only
    /// if its settings keep them.
    package init(context: TLSClientContext, milliseconds: Int64) {
        self.context = context
        deadline = Clock.monotonicMicroseconds() / 1000 + milliseconds
    }

    private var remaining: Int64 { max(0, deadline - Clock.monotonicMicroseconds() / 1000) }

    /// Connects to the first of the server's addresses that answers.
    package func look(at peer: PeerAddress) throws(ServerProbeError) -> ServerPresentation {
        try look(at: peer, addresses: try resolve(peer))
    }

    /// Connects to the first of these addresses that answers.
    package func look(
        at peer: PeerAddress, addresses: [IPAddress]
    ) throws(ServerProbeError) -> ServerPresentation {
        var last = ServerProbeError.timeout(peer)
        for (index, address) in addresses.enumerated() {
            let endpoint = Endpoint(address: address, port: peer.port)
            // Each address gets a share of the time, so that a silent one does not use it all.
            let share = remaining / Int64(addresses.count - index)
            do throws(ServerProbeError) {
                let descriptor = try connect(endpoint, milliseconds: share)
                defer { Descriptors.close(descriptor) }
                return try performHandshake(descriptor, endpoint, peer)
            } catch {
                // An answer is more informative than the silence of other addresses.
                if case .noCertificate = error { throw error }
                last = error
            }
        }
        throw last
    }

    private func resolve(_ peer: PeerAddress) throws(ServerProbeError) -> [IPAddress] {
        let resolver: Resolver
        do {
            resolver = try Resolver()
        } catch {
            throw .noResolver(error)
        }
        defer { resolver.close() }
        let answer = Monitor<ResolveResult?>(nil)
        resolver.resolve(name: peer.host) { result in
            answer.withLock { $0 = result }
            answer.signal()
        }
        let end = (Clock.monotonicMicroseconds() + remaining * 1000) * 1000
        let result: ResolveResult? = answer.wait { result in
            if let result { return .done(result) }
            return Clock.monotonicMicroseconds() * 1000 >= end ? .done(nil) : .until(end)
        }
        switch result {
        case .resolved(let answer): return answer.addresses
        case .failed(let failure): throw .notResolved(peer, failure)
        case nil: throw .notResolved(peer, .timeout)
        }
    }

    private func connect(
        _ endpoint: Endpoint, milliseconds: Int64
    ) throws(ServerProbeError) -> Int32 {
        let descriptor: Int32
        do {
            descriptor = try Sockets.connect(to: endpoint)
        } catch {
            throw .notConnected(endpoint, error)
        }
        let isReady = wait(descriptor, Int16(POLLOUT), milliseconds: milliseconds)
        let error = isReady ? Sockets.connectionError(descriptor) : Errno.timedOut
        if let error {
            Descriptors.close(descriptor)
            throw .notConnected(endpoint, error)
        }
        return descriptor
    }

    private func performHandshake(
        _ descriptor: Int32, _ endpoint: Endpoint, _ peer: PeerAddress
    ) throws(ServerProbeError) -> ServerPresentation {
        let tls: TLSClientConnection
        do {
            tls = try TLSClientConnection(
                context: context, fileDescriptor: descriptor, host: peer.host, port: peer.port,
                now: Clock.coarseWallSeconds())
        } catch {
            throw .noCertificate(peer, error)
        }
        var failure: TLSError?
        handshake: while true {
            switch tls.handshake() {
            case .complete: break handshake
            case .failed(let error):
                // A server that is not trusted has sent a certificate.
                var isVerdict = false
                if case .trust = error { isVerdict = true }
                guard isVerdict || !tls.presented.isEmpty else {
                    throw .noCertificate(peer, error)
                }
                failure = error
                break handshake
            case .turnIsOver: guard remaining > 0 else { throw .timeout(peer) }
            case .wantRead, .wantIdentity:
                guard wait(descriptor, Int16(POLLIN), milliseconds: remaining) else {
                    throw .timeout(peer)
                }
            case .wantWrite:
                guard wait(descriptor, Int16(POLLOUT), milliseconds: remaining) else {
                    throw .timeout(peer)
                }
            }
        }
        return ServerPresentation(
            peer: peer, endpoint: endpoint, certificates: tls.presented,
            version: failure == nil ? tls.version : nil, failure: failure, facts: tls.facts)
    }

    private func wait(_ descriptor: Int32, _ events: Int16, milliseconds: Int64) -> Bool {
        let end = Clock.monotonicMicroseconds() / 1000 + milliseconds
        while true {
            var state = pollfd(fd: descriptor, events: events, revents: 0)
            let remainingTime = max(0, end - Clock.monotonicMicroseconds() / 1000)
            let count = poll(&state, 1, Int32(clamping: remainingTime))
            if count > 0 { return true }
            guard count < 0, __errno_location().pointee == EINTR else { return false }
        }
    }
}
