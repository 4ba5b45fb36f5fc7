import Activity
import EventLoop
import HTTPCore
import Logging
import PinfoldMetrics
import PinfoldTLS
import Trust

// Reports to the operational log, and to the states of hosts.
extension Environment {
    /// Records what a connection attempt shows about the reachability of a configured host's
    /// server.
    ///
    /// - Parameters:
    ///   - fault: why the attempt failed; `nil` if it succeeded.
    ///   - client: the client for which it was made.
    func note(
        _ server: ServerReachability?, _ fault: ExchangeError?, for client: IPNetwork?
    ) {
        guard let server else { return }
        let event = fault.map(\.reachabilityEvidence) ?? .responseReceived
        if let event { note(server, event, for: client, because: fault) }
    }

    /// The same for any evidence.
    /// - Parameter fault: the failure that shows it; `nil` if it is none, or not known.
    package func note(
        _ server: ServerReachability, _ event: ReachabilityEvent, for client: IPNetwork?,
        because fault: ExchangeError? = nil
    ) {
        guard let change = server.note(event, for: client) else { return }
        server.entry.keep(change, of: server.host, at: wallMilliseconds)
        var metadata: Logger.Metadata = [
            "host": "\(server.host)", "entry": "\(server.entry.label)",
            "from": "\(change.from.label)", "to": "\(change.to.label)",
        ]
        if change.to == .notReachable, let fault {
            metadata["reason"] = "\(fault.reason.token)"
        }
        shared.logger.notice("reachability changed", metadata: metadata)
    }

    /// A bug in the program: a connection was passed an event that is impossible in its phase.
    /// Debug builds trap; otherwise it is logged and counted, and the caller ends the connection.
    @inline(never)
    package func reportIllegal(
        _ event: HTTP1Connection.Event, on connection: HTTP1Connection
    ) {
        metrics.add(.illegalTransitions)
        shared.logger.critical(
            "an event is impossible in the connection's phase; please report this",
            metadata: [
                "role": "\(connection.role)", "phase": "\(connection.phase)", "event": "\(event)",
            ])
        assert(!trapsOnIllegalEvents, "\(event) in \(connection.phase)")
    }

    /// Counts the pin evaluations of a handshake with a trusted server, and records when its
    /// certificates expire. A resumed session counts like the handshake that created it.
    func countTrusted(_ server: EvaluatedServer, _ tls: TLSClientConnection) {
        countTrusted(server, tls.facts, certificateEnd: tls.certificateEnd) {
            ShownChain(of: tls)
        }
        keepChain(of: tls, server)
        // A resumed session shows no chain: its handshake was a full one.
        if server.isObserved, !tls.isResumed, let facts = tls.facts {
            observe(server, facts) { ShownChain(allOf: tls) }
        }
        // A connection may be kept for days; what its server presented is no longer needed.
        tls.forgetPresented()
    }

    /// - Parameters:
    ///   - certificateEnd: when the server's own certificate expires, in seconds since 1970.
    ///   - shown: the chain that the server presented; evaluated only if a pinset's failure is
    ///     reported.
    func countTrusted(
        _ server: EvaluatedServer, _ facts: TrustFacts?, certificateEnd: Int64?,
        shown: () -> ShownChain
    ) {
        if let certificateEnd {
            metrics.noteCertificate(
                host: server.route, notAfter: certificateEnd, at: wallSeconds)
        }
        guard let facts else { return }
        if let end = facts.chainExpires {
            metrics.noteChain(host: server.route, notAfter: end, at: wallSeconds)
        }
        for (position, outcome) in facts.outcomes.enumerated()
        where server.pinsets.indices.contains(position) {
            let pinset = server.pinsets[position]
            switch outcome {
            case .passed(let matches):
                metrics.recordPinEvaluation(pinset: pinset, result: .passed)
                let counts = server.pinCounts(at: position)
                for pin in matches.indexes { counts[pin].add(to: .matched) }
            case .reported(let failure):
                metrics.recordPinEvaluation(pinset: pinset, result: .reported)
                report(failure, server)
                reportPinFailure(failure, server, isEnforced: false, shown)
            }
        }
    }

    /// Tells of a server that a pinset would have refused if it were enforced.
    private func report(_ failure: TrustError, _ server: EvaluatedServer) {
        guard let entry = server.pinset(of: failure) else { return }
        let subject = PinReports.Subject(
            pinset: entry.pinset, host: server.host, port: server.port)
        guard let silent = shared.pinReports.note(subject, now: loop.monotonicNow / 1000)
        else { return }
        var metadata = metadata(of: server, failure)
        metadata["silent_before"] = "\(silent)"
        shared.logger.warning("server accepted by a report-only pinset", metadata: metadata)
    }

    private func metadata(of server: EvaluatedServer, _ failure: TrustError) -> Logger.Metadata {
        var metadata: Logger.Metadata = [
            "entry": "\(shared.labels.name(host: server.route))",
            "host": "\(server.host)", "port": "\(server.port)",
            "reason": "\(Reason(failure).token)", "detail": "\(failure)",
        ]
        if let endpoint = server.endpoint { metadata["server"] = "\(endpoint)" }
        return metadata
    }

    /// Counts a handshake of the gateway's own that failed.
    func countHandshakeFailure(
        _ error: TLSError, _ server: EvaluatedServer, _ tls: TLSClientConnection
    ) {
        guard case .trust(let failure) = error else {
            switch error {
            case .truncated, .transport: metrics.add(.tlsHandshakesClosed)
            default: metrics.add(.tlsHandshakesProtocolError)
            }
            return
        }
        let result = PinResult(failure)
        metrics.add(result == .noPinMatched ? .tlsHandshakesPinMismatch : .tlsHandshakesUntrusted)
        countRefused(server, failure) { ShownChain(of: tls) }
        keepChain(of: tls, server, failure)
    }

    /// Counts and reports a server that is not trusted.
    ///
    /// - Parameter shown: the chain that the server presented.
    func countRefused(
        _ server: EvaluatedServer, _ failure: TrustError, shown: () -> ShownChain
    ) {
        let chain = shown()
        if let leaf = chain.certificates.first,
            let end = (try? CertificateInspection(certificate: leaf))?.notAfter
        {
            metrics.noteCertificate(host: server.route, notAfter: end, at: wallSeconds)
        }
        let pinsets = server.pinsets
        if let failed = failure.pinsetIndex, pinsets.indices.contains(failed) {
            metrics.recordPinEvaluation(pinset: pinsets[failed], result: PinResult(failure))
        }
        shared.logger.warning("server refused", metadata: metadata(of: server, failure))
        reportPinFailure(failure, server, isEnforced: true) { chain }
    }

    /// Logs why the gateway answered an exchange itself.
    package func log(_ fault: ExchangeError, of exchange: Exchange) {
        guard shared.logger.logLevel <= .info else { return }
        var metadata: Logger.Metadata = [
            "id": "\(exchange.idText)", "status": "\(fault.status)",
            "reason": "\(fault.reason.token)",
            "detail": "\(fault.explanation)",
        ]
        if let peer = exchange.peer { metadata["client"] = "\(String(peer.clientText))" }
        metadata["entry"] = "\(shared.labels.name(host: exchange.report.hostLabel))"
        if let ingress = exchange.ingress { metadata["listener"] = "\(ingress.name)" }
        if let server = exchange.serverText { metadata["host"] = "\(server)" }
        if let address = exchange.addressText(ofTried: false) { metadata["server"] = "\(address)" }
        shared.logger.info("request not served", metadata: metadata)
    }
}

extension WorkerMetrics {
    /// Counts a handshake with a server that ended well.
    func countHandshake(with tls: TLSClientConnection) {
        add(tls.isResumed ? .tlsHandshakesResumed : .tlsHandshakesFull)
        switch tls.carrier {
        case .http1: add(.tlsHandshakesHTTP1)
        case .http2: add(.tlsHandshakesHTTP2)
        }
    }
}

extension PinResult {
    /// The result that a refusal counts as.
    package init(_ failure: TrustError) {
        switch failure.reason {
        case .noPinMatches: self = .noPinMatched
        case .chain(.hostMismatch): self = .hostNameMismatch
        case .chain: self = .untrustedChain
        case .pinsetWithoutPins, .invalidPolicy: self = .policyRefused
        case .pinsetExpired: self = .expired
        // Not a pinset's failure; the servers of hosts with pinsets can be refused for it, too.
        case .transparency: self = .untrustedChain
        }
    }
}
