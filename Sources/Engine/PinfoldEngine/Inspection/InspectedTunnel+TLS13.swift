import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldTLS
import Trust

// TLS 1.3 in an inspected tunnel, where the proof of the server's identity is encrypted.
extension InspectedTunnel {
    /// Proceeds without being able to verify the server's own flight.
    func handleTLS13() -> Bool {
        guard let standing = standing() else { return fail(.gateway(.superseded), .internalError) }
        switch standing.tls13 {
        case .refuse: return fail(.tunnel(.tls13Refused), .protocolVersion)
        case .probe: return probe(standing.entryIndex)
        case .intercept: return interceptInstead()
        }
    }

    // MARK: Probing

    /// Verifies another connection to the same address.
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
        let milliseconds = policy.timeouts(entryIndex: entry).connectMilliseconds
        go(to: .probing, within: (parent == nil ? 2 : 4) * milliseconds)
        let judged = EvaluatedServer(
            authority, policy, entryIndex: entry, at: endpoint, for: clientNetwork)
        let probe = HandshakeProbe(
            environment: environment,
            subject: HandshakeProbe.Subject(
                authority: authority, addresses: [endpoint.address],
                context: policy.probeTLS(entryIndex: entry),
                applicationProtocols: hello.applicationProtocols, client: clientNetwork,
                rules: policy.destinationRules,
                match: policy.destinationMatch(host: authority.host, port: authority.port),
                // The other connection goes by the same way, to be likely to meet the same server.
                ways: parent.map { (WayList([.proxy($0)]), policy) }, passage: passage,
                stepMilliseconds: milliseconds)
        ) { [weak self, environment] finding in
            switch finding {
            case .trusted(let tls, _):
                environment.metrics.countHandshake(with: tls)
                environment.countTrusted(judged, tls)
                let trust = ProbedTrust(
                    readsEncryptedHello: tls.peerReadsEncryptedHello, expires: tls.facts?.expires)
                self?.probed(probed, ledger, trust)
            case .refused(let error, let tls, _):
                environment.countHandshakeFailure(error, judged, tls)
                self?.probeFailed(.tlsFailed(error))
            case .failed(let failure): self?.probeFailed(failure.error)
            }
        }
        opening = probe
        probe.start()
        return false
    }

    private func probed(
        _ server: ProbedServer, _ ledger: InspectionLedger, _ trust: ProbedTrust
    ) {
        guard step == .probing else { return }
        opening = nil
        ledger.note(trust, of: server, for: clientNetwork, at: environment.loop.monotonicNow)
        // There may have been a reload meanwhile: the result must be valid under it.
        guard ledger === environment.policy.inspections else {
            _ = handleTLS13()
            return
        }
        if trusted(trust) { proceed() }
    }

    private func probeFailed(_ error: ExchangeError) {
        guard step == .probing else { return }
        opening = nil
        refuse(error, .accessDenied)
    }

    /// The server at the address is the right one. An encrypted ClientHello might still ask it for
    /// a different one, but not if it cannot decrypt any: then the client's is GREASE, or has no
    /// effect.
    private func trusted(_ trust: ProbedTrust) -> Bool {
        if hello?.encryptedHello != ClientHello.EncryptedHello.none, trust.readsEncryptedHello {
            return fail(.tunnel(.encryptedHello), .accessDenied)
        }
        do throws(TLSWireError) {
            retry = try flight?.retry(readsEncryptedHello: trust.readsEncryptedHello)
        } catch {
            return fail(.tlsFailed(TLSError(error)), .handshakeFailure)
        }
        release(.probed, ending: nil)
        return true
    }

    // MARK: A second ClientHello

    /// Reads the second ClientHello, which the server has asked for. It is passed to the server if
    /// it differs from the first only as requested. Then reads the server's answer.
    func readSecondClientHello() -> Bool {
        guard retry?.isAgreed == false else { return readHelloRetryAnswer() }
        guard let input, input.count > seen else {
            return readClient() != nil || readHelloRetryAnswer()
        }
        let fresh = UnsafeRawBufferPointer(rebasing: input.readable[seen...])
        do throws(TLSWireError) {
            switch try retry?.takeFromClient(fresh) {
            case .agrees(let count):
                sendCopy(bytes: seen + count)
                input.start += seen + count
                seen = 0
                if input.isEmpty { self.input = nil }
                go(to: .retrying, within: policy.timeouts(for: authority).connectMilliseconds)
            // The server need not get an alert: closing its connection has the same effect.
            case .leaves: close(nil)
            case nil: seen += fresh.count
            }
            return step == .retrying
        } catch {
            switch error {
            case .changedName: return fail(.tunnel(.nameMismatch), .unrecognizedName)
            case .changed: return fail(.tunnelHello(error), .illegalParameter)
            default: return fail(.tunnelHello(error), .handshakeFailure)
            }
        }
    }

    /// Reads what the server sends around the second ClientHello, and passes it to the client.
    private func readHelloRetryAnswer() -> Bool {
        guard let buffer = readServer() else { return false }
        do throws(TLSWireError) {
            let answer = try retry?.takeFromServer(buffer.readable)
            if case .alert(let code) = answer { return fail(alert: code) }
            output.append(buffer.readable, owner: buffer)
            if answer == .encrypted {
                go(to: .finishing, within: policy.timeouts.headMilliseconds)
            }
            return true
        } catch {
            return fail(.tlsFailed(TLSError(error)), .handshakeFailure)
        }
    }

    // MARK: Interception

    /// Speaks TLS with the client in the server's name, after verifying the server as for a
    /// request.
    private func interceptInstead() -> Bool {
        dropServer()
        held = []
        guard let name = ReferenceIdentifier(authority.host) else {
            return fail(.access(.interceptionImpossible), .unrecognizedName)
        }
        let rule = settings(under: policy)
        guard policy.interception(for: authority, by: rule) != nil, !isGivenUp,
            let origin = environment.origin(ofTunnelTo: authority, for: request, policy)
        else { return fail(.tunnel(.tls13Refused), .protocolVersion) }
        if let refusal = origin.refusal { return fail(refusal, .accessDenied) }
        go(
            to: .verifying,
            within: origin.timeouts.connectionWaitMilliseconds + origin.waysMilliseconds)
        let verification = OriginVerification(
            environment: environment, origin: origin, client: clientNetwork, passage: passage
        ) { [weak self] result in
            guard let self, step == .verifying else { return }
            opening = nil
            switch result {
            case .success(let verified):
                // What the client is shown may have changed without a change to trust.
                let policy = environment.policy
                let rule = settings(under: policy)
                guard let interception = policy.interception(for: authority, by: rule) else {
                    return refuse(.gateway(.superseded), .internalError)
                }
                intercept(interception, name, verified)
            case .failure(let failure): refuse(failure.error, .handshakeFailure)
            }
        }
        opening = verification
        verification.start()
        return false
    }

    /// Whether the client keeps rejecting the certificates that it would be shown.
    private var isGivenUp: Bool {
        guard let clientNetwork,
            let interception = policy.interception(
                for: authority, by: settings(under: policy))
        else { return false }
        return interception.rejections.isGivenUp(
            clientNetwork, host: authority.host, at: environment.loop.monotonicNow)
    }
}
