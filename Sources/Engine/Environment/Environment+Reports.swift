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

    /// Counts a handshake's pin evaluations: all passed, or one did not.
    package func countPins(_ origin: Origin, failure: TrustFailure?) {
        for (position, pinset) in origin.policy.pinsets(entryIndex: origin.entryIndex).enumerated()
        {
            if let failure, let failed = failure.pinsetIndex, failed != position { continue }
            metrics.recordPinEvaluation(pinset: pinset, result: PinResult(failure))
        }
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
        countPins(origin, failure: failure)
        shared.logger.warning(
            "server refused",
            metadata: [
                "entry": "\(shared.labels.name(host: origin.route))",
                "host": "\(origin.key.host)", "port": "\(origin.key.port)",
                "reason": "\(Reason.trust(TrustReason(failure)).token)", "detail": "\(failure)",
            ])
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
    /// The result that a refusal, or none, counts as.
    package init(_ failure: TrustFailure?) {
        switch failure?.reason {
        case nil: self = .passed
        case .noPinMatches: self = .noPinMatched
        case .chain(.hostMismatch): self = .hostNameMismatch
        case .chain: self = .untrustedChain
        case .pinsetWithoutPins, .invalidPolicy: self = .policyRefused
        }
    }
}
