import Clocks
import HTTPCore
import PinfoldConfiguration
import PinfoldEngine
import PinfoldMetrics

// What the worker does for its exchanges: it makes the record of each one that has ended, and
// passes it to whoever shows exchanges.
extension Worker: EnvironmentHost {
    package func exchangeEnded(
        _ exchange: Exchange, _ counted: ExchangeRecord, _ phases: PhaseTimes
    ) {
        guard let peer = exchange.intake.peer else { return }
        if watchesFlows { stopUnlessWatched() }
        // Before anything is made for it: refusals must stay cheap, however many there are.
        let isHeld = holds(exchange, of: peer.address, hasFailed: counted.failure != nil)
        let share =
            shared.accessLog == nil ? 0 : logging.share(of: counted, exchange.report.id)
        guard isHeld || share > 0 || spans != nil else { return }
        let trace = exchange.joinTrace()
        let isRecorded = spans != nil && trace?.isSampled ?? false
        guard isRecorded || isHeld || share > 0 else { return }
        var record = FlowRecord(client: peer, counted: counted, phases: phases)
        let notes = fill(&record, from: exchange)
        if share < AccessLogSampling.whole { record.sampleMillionths = UInt32(share) }
        record.trace = trace
        if isRecorded {
            record.beganMicroseconds =
                Clock.wallMicroseconds() - Int64(clamping: counted.durationMicroseconds)
        }
        let ingress = exchange.intake.ingress
        let extra = isHeld ? HeldFlow.Extra(of: exchange) : nil
        if isHeld { record.pins = exchange.pinVerdict }
        // What the client sent, not what the rules of a route made of it.
        if let head = exchange.clientHead {
            let texts = FlowTexts(head)
            if share > 0 { log(record, of: exchange, head.bytes.span, texts, notes) }
            return pass(record, head.bytes.span, texts, ingress?.session, notes, extra)
        }
        let texts = FlowTexts(exchange.request)
        exchange.withRequestHead {
            if share > 0 { log(record, of: exchange, $0, texts, notes) }
            pass(record, $0, texts, ingress?.session, notes, extra)
        }
    }

    package func interest(in exchange: Exchange) -> ExchangeInterest {
        guard watchesFlows else { return .undecided }
        let isShown =
            shared.recordings.isActive
            || exchange.intake.peer.map { isRoom(for: $0.address) } ?? false
        return isShown ? .shown : logging.needsResponseHeads ? .logged : .none
    }

    /// Whether one more exchange of a client is held while somebody looks, which is counted.
    private func isRoom(for client: IPAddress) -> Bool {
        heldWatched.takes(IPNetwork(client: client), at: loop.monotonicNow)
    }

    /// Whether an exchange that has ended is held. Recordings are of all exchanges.
    @inline(__always)
    private func holds(_ exchange: Exchange, of client: IPAddress, hasFailed: Bool) -> Bool {
        guard watchesFlows || hasFailed else { return false }
        if watchesFlows {
            switch exchange.report.interest {
            case .shown: return true
            case .undecided:
                if shared.recordings.isActive || isRoom(for: client) { return true }
            case .none, .logged: if shared.recordings.isActive { return true }
            }
        }
        if hasFailed, heldFailures.takes(IPNetwork(client: client), at: loop.monotonicNow) {
            return true
        }
        if watchesFlows { metrics.add(.flowsLeftOut, 1) }
        return false
    }

    /// Writes a line of the access log.
    private func log(
        _ record: FlowRecord, of exchange: Exchange, _ head: Span<UInt8>, _ texts: FlowTexts,
        _ notes: FlowNotes
    ) {
        guard let log = shared.accessLog, index < log.producers.count else { return }
        var notes = notes
        if let fields = logging.fields {
            notes.fields = fields.collect(
                head, exchange.remarks.responseHead,
                isAnswerCut: exchange.remarks.isResponseHeadCut)
        }
        log.producers[index].log(
            record, head: head, texts: texts, session: exchange.intake.ingress?.session,
            notes: notes)
    }

    /// Passes a record to whoever else shows exchanges.
    /// - Parameters:
    ///   - head: the bytes of the request's head, valid during the call.
    ///   - texts: where the texts are in it.
    ///   - extra: what only the ring holds, and recordings; `nil` if it does not hold the exchange.
    private func pass(
        _ record: FlowRecord, _ head: Span<UInt8>, _ texts: FlowTexts, _ session: ClientSession?,
        _ notes: FlowNotes, _ extra: HeldFlow.Extra?
    ) {
        if record.beganMicroseconds != 0 {
            spans?.record(record, head: head, texts: texts, session: session, notes: notes)
        }
        if let extra {
            shared.flows.hold(
                HeldFlow(
                    record, head: head, texts: texts, session: session, notes: notes,
                    extra: extra))
            if shared.recordings.isActive {
                shared.recordings.add(
                    HeldFlow(
                        record, head: head, texts: texts, session: session, notes: notes,
                        extra: extra, limits: .ofRecording), extra.contents)
            }
        }
    }

    /// Whether all exchanges are reported without anybody who looks.
    var needsRecords: Bool { shared.accessLog != nil || spans != nil }

    /// The access log has lines of other exchanges, or with other fields. Without a log in the
    /// configuration, the one that there is goes on as before until a restart.
    func followLogging() {
        guard shared.accessLog != nil, let access = policy.configuration.log.access else { return }
        logging = LoggingChoice(access)
        environment.keepsResponseHeads = watchesFlows || logging.needsResponseHeads
    }

    /// Somebody looks at exchanges: from now on those that are served are reported, too.
    func watchFlows() {
        watchesFlows = true
        environment.reportsExchanges = true
        environment.keepsResponseHeads = true
    }

    /// Reports only what is needed without anybody who looks, once nobody has for a while.
    private func stopUnlessWatched() {
        guard !shared.flows.isWatched(at: loop.monotonicNow) else { return }
        watchesFlows = false
        environment.keepsResponseHeads = logging.needsResponseHeads
        environment.reportsExchanges = needsRecords
    }

    /// An exchange that is under way, as it is now; `nil` if it is over.
    /// - Parameters:
    ///   - counted: what is counted of it until now.
    ///   - phases: what it has spent its time on until now.
    func flow(
        of exchange: Exchange, _ counted: ExchangeRecord, _ phases: PhaseTimes
    ) -> HeldFlow? {
        guard let peer = exchange.intake.peer else { return nil }
        var record = FlowRecord(client: peer, counted: counted, phases: phases)
        let notes = fill(&record, from: exchange)
        let session = exchange.intake.ingress?.session
        let extra = HeldFlow.Extra(of: exchange)
        if let head = exchange.clientHead {
            return HeldFlow(
                record, head: head.bytes.span, texts: FlowTexts(head), session: session,
                notes: notes, extra: extra)
        }
        let texts = FlowTexts(exchange.request)
        return exchange.withRequestHead {
            HeldFlow(
                record, head: $0, texts: texts, session: session, notes: notes, extra: extra)
        }
    }

    /// Fills in what is not counted. Returns the texts that are not in the head.
    private func fill(_ record: inout FlowRecord, from exchange: Exchange) -> FlowNotes {
        let milliseconds = Int64(clamping: record.counted.durationMicroseconds / 1000)
        record.timeMilliseconds = environment.wallMilliseconds - milliseconds
        record.exchange = exchange.report.id
        let ingress = exchange.intake.ingress
        record.version = exchange.request.length > 0 ? exchange.request.version : nil
        record.forwarded = exchange.reasonForwarded
        if record.counted.failure != nil { record.spoken = ingress?.spoken }
        record.upstreamVersion = exchange.report.serverCarrier?.version
        record.upstreamTLS = exchange.report.serverTLS
        record.clientTLS = ingress?.session?.version
        if case .bound = ingress?.role { record.isIntercepted = true }
        if let tunnel = exchange.tunnel {
            record.spoken = ingress?.spoken
            if tunnel.isIntercepted { record.isIntercepted = true }
            record.interceptionPass = tunnel.interceptionPass
            record.inspection = tunnel.inspection
        }
        if let endpoint = exchange.lastServer { record.setUpstream(endpoint) }
        record.isReused = exchange.report.reusedConnection
        let remarks = exchange.remarks
        var notes = FlowNotes(
            steps: remarks.transformed?.text ?? [], rule: remarks.rule ?? [],
            reported: remarks.reportedRules, user: exchange.identity?.userBytes ?? [],
            way: exchange.wayBytes)
        if ingress?.original != nil { addDestination(of: exchange, to: &record, &notes) }
        return notes
    }
}

extension Worker {
    /// Adds what is known of where a client of a transparent listener was going.
    private func addDestination(
        of exchange: Exchange, to record: inout FlowRecord, _ notes: inout FlowNotes
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

extension FlowTexts {
    fileprivate init(_ head: ClientHead) {
        self.init(
            method: head.method, target: head.target, authority: head.authority,
            userAgent: head.userAgent, referer: head.referer)
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
            method: request.methodRange, target: request.target, authority: request.authority,
            userAgent: request.fields.first(.userAgent)?.value ?? ByteRange(),
            referer: request.fields.first(.referer)?.value ?? ByteRange())
    }
}
