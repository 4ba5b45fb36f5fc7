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

// Which trace an exchange belongs to. That is found out when the server has to be told, or at the
// end, when the exchange is shown: nothing in between asks for it.
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

    /// The configuration decides what the server is told: ends the client's fields at this hop, and
    /// returns what takes their place. A request of the gateway's own has no span. It goes on with
    /// what the client said whose request has caused it.
    func makeTraceParent() -> TraceParent? {
        let begins = environment.tracing.propagation == .begin
        guard ingress?.isCounted ?? false else {
            if !begins { endTrace(keepingState: false) }
            return nil
        }
        let trace = begins ? joinTrace() : nil
        endTrace(keepingState: trace.map { $0.parent != 0 } ?? false)
        return trace.map {
            TraceParent(trace: $0.id, span: $0.span, isSampled: $0.isSampled)
        }
    }

    private func endTrace(keepingState: Bool) {
        let head = requestHead
        request.endTrace(in: head.octets, keepingState: keepingState)
    }
}
