import EventLoop
import HTTPCore
import Logging
import PinfoldConfiguration
import PinfoldTLS
import Trust

// Verifies the server of an inspected tunnel, under the configuration that is in force when
// everything needed for that has arrived.
extension InspectedTunnel {
    /// What is recorded about a session when its handshake has ended.
    struct SessionNote {
        let ledger: InspectionLedger
        let sessionID: [UInt8]
        /// When its proof expires, in seconds since 1970.
        let end: Int64
    }

    /// The current basis for verifying the tunnel.
    struct Standing {
        let entryIndex: Int?
        let tls13: TLS13TunnelMode
    }

    /// What the current configuration says about the tunnel; `nil` if it has changed since the
    /// server was connected to, and the tunnel would now be refused or not be inspected.
    func standing() -> Standing? {
        let current = environment.policy
        let entry = current.entry(host: authority.host, port: authority.port)
        let rule = settings(under: current)
        guard let tls13 = current.configuration.inspection(entry: entry, by: rule) else {
            return nil
        }
        if current !== policy {
            let target = current.target(
                host: authority.host, port: authority.port, by: .tunnel, rule)
            guard target.refusal == nil,
                current.configuration.access.connectPorts.contains(authority.port),
                current.destinationRules.decide(endpoint.address, host: target.match) == .allowed
            else { return nil }
            policy = current
        }
        return Standing(entryIndex: entry, tls13: tls13)
    }

    /// Verifies a server by its flight, like a connection of the gateway itself.
    func verify(_ proof: ServerProof) -> Bool {
        guard let standing = standing() else { return fail(.gateway(.superseded), .internalError) }
        if requiresTLS13(standing) {
            return fail(.tlsFailed(.versionRefused), .protocolVersion)
        }
        let entry = standing.entryIndex
        let context = policy.tls(entryIndex: entry)
        let server = EvaluatedServer(
            authority, policy, entryIndex: entry, at: endpoint, for: clientNetwork)
        let shown = ServerTimestamps(handshake: proof.timestamps, status: proof.staple)
        switch context.verify(
            chain: proof.chain, host: authority.host, staple: proof.staple, timestamps: shown)
        {
        case .refused(let failure):
            environment.countRefused(server, failure) { ShownChain(proof.chain, context) }
            environment.keepChain(proof.chain, server, nil, failure, for: clientNetwork)
            return fail(.tlsFailed(.trust(failure)), .accessDenied)
        case .trusted(let facts):
            do throws(ServerProofError) {
                try proof.verifyPossession()
            } catch {
                logUnproved(error, entry)
                return fail(.tlsFailed(.unauthenticated), .accessDenied)
            }
            let leaf = proof.chain.first.flatMap { try? CertificateInspection(certificate: $0) }
            environment.countTrusted(server, facts, certificateEnd: leaf?.notAfter) {
                ShownChain(proof.chain, context)
            }
            environment.keepChain(proof.chain, server, facts, for: clientNetwork)
            environment.observe(server, facts) { ShownChain(proof.chain, context) }
            session = SessionNote(
                ledger: policy.inspections, sessionID: proof.sessionID,
                end: facts.expires ?? .max)
            release(.verified, ending: HandshakeEnding())
            return true
        }
    }

    /// If only TLS 1.3 is allowed, that applies to the tunnel's own version, too. The default
    /// minimum is not a requirement: the client of a tunnel chooses its version itself.
    private func requiresTLS13(_ standing: Standing) -> Bool {
        let configuration = policy.configuration
        let tls = standing.entryIndex.map { configuration.hosts.entries[$0].tls }
        return (tls ?? configuration.tls).minimum == .tls13
    }

    // MARK: Sessions

    /// Whether the session being resumed began in a tunnel that was verified.
    ///
    /// - Parameter ticket: the ticket that the server issues for the next resumption; empty if
    ///   none.
    func resume(by ticket: [UInt8]) -> Bool {
        guard let standing = standing() else { return fail(.gateway(.superseded), .internalError) }
        if requiresTLS13(standing) {
            return fail(.tlsFailed(.versionRefused), .protocolVersion)
        }
        let ledger = policy.inspections
        guard let hello,
            // With a ticket, the identifier is chosen by the client (RFC 5077 §3.4).
            let offered = inspected(hello.ticket.isEmpty ? hello.sessionID : hello.ticket),
            let end = ledger.knows(offered, at: environment.wallSeconds)
        else { return fail(.tunnel(.sessionUnknown), .handshakeFailure) }
        session = SessionNote(ledger: ledger, sessionID: [], end: end)
        release(.resumed, ending: HandshakeEnding(resumedWith: ticket))
        return true
    }

    /// The handshake has ended: records what it may be resumed by.
    func note(_ session: SessionNote, ticket: [UInt8]) {
        let now = environment.wallSeconds
        for name in [session.sessionID, ticket] {
            guard let inspected = inspected(name) else { continue }
            session.ledger.note(inspected, until: session.end, at: now)
        }
    }

    private func inspected(_ name: [UInt8]) -> InspectedSession? {
        guard let clientNetwork, !name.isEmpty, let digest = SHA256Digest(hashing: name.span)
        else { return nil }
        return InspectedSession(client: clientNetwork, authority: authority, digest: digest)
    }

    // MARK: Reports

    /// Logs that a server presented a trusted certificate without proving that it has its key.
    private func logUnproved(_ error: ServerProofError, _ entry: Int?) {
        environment.shared.logger.warning(
            "server refused",
            metadata: [
                "entry": "\(environment.shared.labels.name(host: policy.route(entryIndex: entry)))",
                "host": "\(authority.host)", "port": "\(authority.port)",
                "server": "\(endpoint)", "reason": "\(Reason.tls(.unauthenticated).token)",
                "detail": "\(error)",
            ])
    }
}

extension ServerProofError: CustomStringConvertible {
    /// A sentence for the log.
    public var description: String {
        switch self {
        case .unusable(let what): what
        case .wrongSignature: "its key exchange is not signed with its certificate's key"
        }
    }
}
