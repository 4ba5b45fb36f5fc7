import Activity
import EventLoop
import HTTPCore
import Logging
import Metrics
import Pinning
import TLS

// What is reported: to the operational log, and to the states of hosts.
extension Environment {
    /// Notes what a connection attempt tells of an origin's reachability.
    package func note(_ origin: Origin, _ fault: ExchangeFault?) {
        note(origin.reachability, fault)
    }

    /// Notes what a connection attempt tells of a configured host's reachability; `fault` is nil
    /// when it was connected to.
    package func note(_ host: HostReachability?, _ fault: ExchangeFault?) {
        guard let host else { return }
        let event = fault.map(\.reachabilityEvidence) ?? .responseReceived
        if let event { note(host, event) }
    }

    package func note(_ host: HostReachability, _ event: ReachabilityEvent) {
        guard let change = host.note(event) else { return }
        shared.logger.notice(
            "reachability changed",
            metadata: [
                "host": "\(host.host)", "from": "\(change.from.label)", "to": "\(change.to.label)",
            ])
    }

    /// Counts the pin evaluations of a handshake with a trusted server, and notes when its
    /// certificates end. A resumed session counts as the handshake that made it.
    func countTrusted(_ origin: Origin, _ tls: TLSClientConnection) {
        if let end = tls.certificateEnd {
            metrics.noteCertificate(host: origin.route, notAfter: end)
        }
        guard let facts = tls.facts else { return }
        if let end = facts.chainExpires { metrics.noteChain(host: origin.route, notAfter: end) }
        let pinsets = origin.policy.pinsets(entryIndex: origin.entryIndex)
        for (pinset, outcome) in zip(pinsets, facts.outcomes) {
            switch outcome {
            case .passed(let matches):
                metrics.recordPinEvaluation(pinset: pinset, result: .passed)
                for pin in matches.indexes { metrics.recordPinMatch(pinset: pinset, pin: pin) }
            case .reported(let failure):
                metrics.recordPinEvaluation(pinset: pinset, result: .reported)
                report(failure, origin)
            }
        }
    }

    /// Tells of a server that a pinset would have refused if it were enforced.
    private func report(_ failure: TrustFailure, _ origin: Origin) {
        let subject = PinReports.Subject(
            pinset: failure.pinset ?? "", host: origin.key.host, port: origin.key.port)
        guard let silent = shared.pinReports.note(subject, now: loop.monotonicNow / 1000)
        else { return }
        var metadata = metadata(of: origin, failure)
        metadata["silent_before"] = "\(silent)"
        shared.logger.warning("server passed by a report-only pinset", metadata: metadata)
    }

    private func metadata(of origin: Origin, _ failure: TrustFailure) -> Logger.Metadata {
        [
            "entry": "\(shared.labels.name(host: origin.route))",
            "host": "\(origin.key.host)", "port": "\(origin.key.port)",
            "reason": "\(Reason(failure).token)", "detail": "\(failure)",
        ]
    }

    package func countHandshakeFailure(_ error: TLSError, _ origin: Origin) {
        guard case .trust(let failure) = error else {
            switch error {
            case .truncated, .transport: metrics.add(.tlsHandshakesClosed)
            default: metrics.add(.tlsHandshakesProtocolError)
            }
            return
        }
        let result = PinResult(failure)
        metrics.add(result == .noPinMatched ? .tlsHandshakesPinMismatch : .tlsHandshakesUntrusted)
        let pinsets = origin.policy.pinsets(entryIndex: origin.entryIndex)
        if let failed = failure.pinsetIndex, pinsets.indices.contains(failed) {
            metrics.recordPinEvaluation(pinset: pinsets[failed], result: result)
        }
        shared.logger.warning("server refused", metadata: metadata(of: origin, failure))
    }

    /// Writes why an exchange was answered by the gateway.
    package func log(_ fault: ExchangeFault, of exchange: Exchange) {
        guard shared.logger.logLevel <= .info else { return }
        var metadata: Logger.Metadata = [
            "id": "\(exchange.idText)", "status": "\(fault.status)",
            "reason": "\(fault.reason.token)",
            "detail": "\(fault.explanation)",
        ]
        if let peer = exchange.peer { metadata["client"] = "\(peer)" }
        metadata["entry"] = "\(shared.labels.name(host: exchange.hostLabel))"
        if let ingress = exchange.ingress { metadata["listener"] = "\(ingress.name)" }
        if let origin = exchange.origin {
            metadata["host"] = "\(String(decoding: origin.authority, as: UTF8.self))"
        }
        shared.logger.info("request not served", metadata: metadata)
    }
}

extension PinResult {
    /// The result that a refusal counts as.
    package init(_ failure: TrustFailure) {
        switch failure.reason {
        case .noPinMatches: self = .noPinMatched
        case .chain(.hostMismatch): self = .hostNameMismatch
        case .chain: self = .untrustedChain
        case .pinsetWithoutPins, .invalidPolicy: self = .policyRefused
        case .pinsetExpired: self = .expired
        }
    }
}
