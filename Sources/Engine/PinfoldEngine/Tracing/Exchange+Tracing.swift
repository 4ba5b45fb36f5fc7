import HTTPCore

/// The place of an exchange in a trace (W3C Trace Context).
package struct ExchangeTrace: Sendable, Equatable {
    package let id: TraceID
    /// The exchange's own span.
    package let span: UInt64
    /// The span that it was asked for in; 0 if it is the first of its trace.
    package let parent: UInt64
    /// Whether its spans are recorded.
    package let isSampled: Bool

    package init(id: TraceID, span: UInt64, parent: UInt64, isSampled: Bool) {
        self.id = id
        self.span = span
        self.parent = parent
        self.isSampled = isSampled
    }
}

// Which trace an exchange belongs to. That is found out before the cache is asked if servers are
// told it, otherwise at the end, when the exchange is shown: nothing in between asks for it.
extension Exchange {
    /// The trace that the exchange belongs to, which is determined once; `nil` if there is none, or
    /// none that anybody else knows of.
    package func joinTrace() -> ExchangeTrace? {
        if let trace { return trace }
        let settings = environment.tracing
        var parent: TraceParent?
        if settings.propagation != .off, request.length > 0 {
            parent = withRequestHead { request.traceParent(in: $0) }
        }
        let joined: ExchangeTrace
        if let parent {
            joined = ExchangeTrace(
                id: parent.trace, span: environment.traceNumbers.span(), parent: parent.span,
                isSampled: parent.isSampled)
        } else {
            guard settings.propagation == .begin || settings.exportsSpans else { return nil }
            let id = environment.traceNumbers.trace()
            let isSampled = settings.samples(id)
            guard isSampled || settings.propagation == .begin else { return nil }
            joined = ExchangeTrace(
                id: id, span: environment.traceNumbers.span(), parent: 0, isSampled: isSampled)
        }
        trace = joined
        return joined
    }

    /// Ends the client's fields at this hop, if the server is told something else: before the cache
    /// is asked, and once more when the request is sent, for the configuration may have changed. A
    /// request of the gateway's own has only what the one that caused it has left.
    func endClientsTrace() {
        let begins = environment.tracing.propagation == .begin
        let isCounted = ingress?.isCounted ?? false
        guard isCounted || !begins else { return }
        // It is read from them.
        let trace = begins ? joinTrace() : nil
        let head = requestHead
        request.endTrace(
            in: head.octets, keepingState: trace.map { $0.parent != 0 } ?? false)
    }

    /// What takes the place of the client's fields, which it ends; `nil` for nothing. A request of
    /// the gateway's own has no span: it is sent in that of the exchange that caused it.
    func makeTraceParent() -> TraceParent? {
        endClientsTrace()
        guard environment.tracing.propagation == .begin else { return nil }
        let place = ingress?.isCounted ?? false ? joinTrace() : trace
        return place.map { TraceParent(trace: $0.id, span: $0.span, isSampled: $0.isSampled) }
    }

    /// Belongs where the exchange belongs that has caused it, as far as that is known.
    func joinTrace(of other: Exchange) { trace = other.trace }
}
