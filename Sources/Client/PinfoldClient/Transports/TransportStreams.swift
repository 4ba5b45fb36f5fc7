import EventLoop
import HTTPCore
import PinfoldEngine
import Trust

/// Gives the exchanges of a session streams that its transport answers, in place of a pool of
/// connections.
final class TransportStreams: UpstreamSource {
    private let transport: any SessionTransport
    private let configuration: SessionConfiguration
    private unowned let runtime: RuntimeLoop
    /// In place of a server's address.
    private let endpoint: Endpoint
    /// There are no connections to limit.
    private let limit = SharedLimit()

    init(
        _ transport: any SessionTransport, _ configuration: SessionConfiguration,
        _ endpoint: Endpoint, on runtime: RuntimeLoop
    ) {
        (self.transport, self.configuration) = (transport, configuration)
        self.endpoint = endpoint
        self.runtime = runtime
    }

    func acquire(_ origin: Origin, for consumer: any UpstreamConsumer, fresh: Bool) {
        if origin.isSecure, let error = distrust(of: origin) {
            return consumer.upstreamFailed(StreamError(.tlsFailed(.trust(error))))
        }
        consumer.upstreamReady(
            runtime.addTransportStream { number in
                TransportStream(
                    number, of: transport, in: self, for: consumer, at: origin, endpoint,
                    on: runtime)
            })
    }

    /// Ends all streams without notifying anyone, as the environment ends its connections.
    func close() { runtime.cancelTransportStreams(of: self) }

    func abandon(_ origin: Origin, _ consumer: any UpstreamConsumer) {}

    func limit(of origin: Origin) -> SharedLimit { limit }

    /// Why a server is not trusted, or `nil` if it is.
    private func distrust(of origin: Origin) -> TrustError? {
        let security = configuration.securityPolicy(for: origin.host, port: Int(origin.port))
        guard security.mode != .none,
            let presented = transport.pins(
                presentedBy: origin.host, port: Int(origin.port))
        else { return nil }
        let isPinned = presented.contains { text in
            (try? CertificatePin(text)).map { security.pins.contains($0) } ?? false
        }
        guard !isPinned else { return nil }
        let chain = presented.map { ChainPin(pin: $0, subject: "presented by the transport") }
        return TrustError(
            .noPinMatches(expected: security.pins.map(\.text), chain: chain),
            pinsetIndex: 0, pinset: "session")
    }
}

extension CertificatePin {
    /// The pin for people.
    fileprivate var text: String {
        switch pin {
        case .keyDigest(let digest): digest.keyPinText
        case .certificateFingerprint(let digest): digest.fingerprintText
        case .certificate: "a certificate"
        case .publicKey: "a public key"
        }
    }
}
