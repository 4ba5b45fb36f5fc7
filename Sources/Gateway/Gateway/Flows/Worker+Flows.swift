import HTTPCore
import PinfoldEngine
import PinfoldMetrics

// What the worker does for its exchanges: it writes them to the access log.
extension Worker: EnvironmentHost {
    package func exchangeEnded(_ exchange: Exchange, _ reported: ExchangeRecord) {
        if let log = shared.accessLog { write(exchange, reported, to: log) }
    }

    /// Passes an exchange's line to the access log.
    private func write(_ exchange: Exchange, _ reported: ExchangeRecord, to log: AccessLog) {
        guard let peer = exchange.intake.peer, index < log.producers.count else { return }
        var record = AccessLogRecord(client: peer)
        let milliseconds = Int64(clamping: reported.durationMicroseconds / 1000)
        record.timeMilliseconds = environment.wallMilliseconds - milliseconds
        record.exchange = exchange.report.id
        let ingress = exchange.intake.ingress
        record.listener = ingress?.label ?? .other
        record.host = exchange.report.hostLabel
        record.status = exchange.report.status
        record.version = exchange.request.length > 0 ? exchange.request.version : nil
        record.cache = exchange.report.cacheResult
        record.forwarded = exchange.reasonForwarded
        record.notStored = exchange.notStoredReason
        record.reason = exchange.remarks.fault.map { UInt16(clamping: $0.reason.index) }
        if record.reason != nil { record.spoken = ingress?.spoken }
        // As in every web server's log: content, without heads and framing.
        record.requestBytes = reported.requestBytes
        record.responseBytes = reported.responseBytes
        record.durationMicroseconds = reported.durationMicroseconds
        record.upstreamVersion = exchange.report.serverCarrier?.version
        record.upstreamTLS = exchange.report.serverTLS
        let session = ingress?.session
        record.clientTLS = session?.version
        if case .bound = exchange.intake.ingress?.role { record.isIntercepted = true }
        if let tunnel = exchange.tunnel {
            record.spoken = ingress?.spoken
            if tunnel.isIntercepted { record.isIntercepted = true }
            record.interceptionPass = tunnel.interceptionPass
            record.inspection = tunnel.inspection
        }
        if let endpoint = exchange.remarks.failedAttempts?.last ?? exchange.report.server {
            record.setUpstream(endpoint)
        }
        let remarks = exchange.remarks
        var notes = AccessLogNotes(
            steps: remarks.transformed?.text ?? [], rule: remarks.rule ?? [],
            reported: remarks.reportedRules, user: exchange.identity?.userBytes ?? [],
            way: exchange.wayBytes)
        if ingress?.original != nil { addDestination(of: exchange, to: &record, &notes) }
        // What the client sent, not what the rules of a route made of it.
        if let head = exchange.clientHead {
            log.producers[index].log(
                record, head: head.bytes.span, texts: AccessLogTexts(head), session: session,
                notes: notes)
            return
        }
        let texts = AccessLogTexts(exchange.request)
        exchange.withRequestHead {
            log.producers[index].log(
                record, head: $0, texts: texts, session: session, notes: notes)
        }
    }
}

extension Worker {
    /// Adds what is known of where a client of a transparent listener was going.
    private func addDestination(
        of exchange: Exchange, to record: inout AccessLogRecord, _ notes: inout AccessLogNotes
    ) {
        notes.authority = exchange.transparentAuthority ?? []
        guard let original = exchange.foreignOriginal else { return }
        record.originalAddress = original.address
        record.originalPort = original.port
    }
}

extension Ingress {
    /// What its client speaks in place of HTTP.
    fileprivate var spoken: SpokenProtocol? {
        switch speaks {
        case .http: nil
        case .socks5: .socks5
        case .transparent:
            switch original?.opening {
            case .http, nil: nil
            case .tls: .tls
            case .other: .tcp
            }
        }
    }
}

extension AccessLogTexts {
    fileprivate init(_ head: ClientHead) {
        self.init(
            method: head.method, target: head.target, userAgent: head.userAgent,
            referer: head.referer)
    }

    /// The logged texts of a head; nothing of one that could not be parsed.
    fileprivate init(_ request: borrowing RequestHead) {
        guard request.length > 0 else {
            self.init(
                method: ByteRange(), target: ByteRange(), userAgent: ByteRange(),
                referer: ByteRange())
            return
        }
        self.init(
            method: request.methodRange, target: request.target,
            userAgent: request.fields.first(.userAgent)?.value ?? ByteRange(),
            referer: request.fields.first(.referer)?.value ?? ByteRange())
    }
}
