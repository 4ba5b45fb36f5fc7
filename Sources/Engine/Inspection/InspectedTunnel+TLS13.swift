import CertificateAuthority
import EventLoop
import HTTPCore
import PinfoldConfiguration
import TLS
import TLSWire

// TLS 1.3 in an inspected tunnel: what proves who the server is goes by encrypted.
extension InspectedTunnel {
    /// What is done instead of judging the server's own flight.
    func meetEncryption() -> Bool {
        guard let standing = standing() else { return fail(.superseded, .internalError) }
        switch standing.tls13 {
        case .refuse: return fail(.tunnel(.tls13Refused), .protocolVersion)
        case .probe: return probe(standing.entryIndex)
        case .intercept: return interceptInstead()
        }
    }

    // MARK: Probing

    /// Verifies another connection to the very address of this one.
    private func probe(_ entry: Int?) -> Bool {
        guard let hello else { return false }
        let probed = ProbedServer(
            endpoint: endpoint, authority: authority,
            applicationProtocols: hello.applicationProtocols)
        let ledger = policy.inspections
        if let trust = ledger.probe(
            of: probed, at: environment.loop.monotonicNow, wall: environment.wallSeconds)
        {
            return trusted(trust)
        }
        go(to: .probing, within: 2 * policy.timeouts(entryIndex: entry).connectMilliseconds)
        let probe = TunnelProbe(
            environment: environment, server: probed, policy: policy, entryIndex: entry,
            client: clientNetwork
        ) { [weak self] result in
            guard let self, step == .probing else { return }
            opened = nil
            switch result {
            case .success(let trust):
                ledger.note(trust, of: probed, at: environment.loop.monotonicNow)
                // A reload may have come meanwhile: what was found is judged by it, or not used.
                guard ledger === environment.policy.inspections else {
                    _ = meetEncryption()
                    return
                }
                if trusted(trust) { proceed() }
            case .failure(let fault):
                refuse(fault, .accessDenied)
            }
        }
        opened = probe
        probe.start()
        return false
    }

    /// The server at the address is who it is to be. An encrypted ClientHello may still ask it for
    /// another: not if it can read none, and the client's is GREASE, or comes to nothing.
    private func trusted(_ trust: ProbedTrust) -> Bool {
        if hello?.encryptedHello != ClientHello.EncryptedHello.none, trust.readsEncryptedHello {
            return fail(.tunnel(.encryptedHello), .accessDenied)
        }
        release(.probed, ending: nil)
        return true
    }

    // MARK: Interception

    /// Speaks TLS with the client in the server's name, which is verified first as for a request.
    private func interceptInstead() -> Bool {
        dropServer()
        held = []
        guard let name = ReferenceIdentifier(authority.host) else {
            return fail(.interceptionImpossible, .unrecognizedName)
        }
        guard policy.interception(for: authority) != nil, !isGivenUp,
            let origin = environment.origins.origin(
                host: authority.host.utf8.span, port: authority.port, scheme: .https,
                policy: policy)
        else { return fail(.tunnel(.tls13Refused), .protocolVersion) }
        if let refusal = origin.refusal { return fail(refusal, .accessDenied) }
        go(to: .verifying, within: origin.timeouts.connectionWaitMilliseconds)
        let verification = OriginVerification(
            environment: environment, origin: origin, client: clientNetwork
        ) { [weak self] result in
            guard let self, step == .verifying else { return }
            opened = nil
            switch result {
            case .success(let verified):
                // What the client is shown may have changed, without a change to trust.
                guard let interception = environment.policy.interception(for: authority) else {
                    return refuse(.superseded, .internalError)
                }
                intercept(interception, name, verified)
            case .failure(let fault): refuse(fault, .handshakeFailure)
            }
        }
        opened = verification
        verification.start()
        return false
    }

    /// Whether the client keeps rejecting the certificates that it would be shown.
    private var isGivenUp: Bool {
        guard let clientNetwork, let interception = policy.interception(for: authority) else {
            return false
        }
        return interception.rejections.isGivenUp(
            clientNetwork, host: authority.host, at: environment.loop.monotonicNow)
    }
}
