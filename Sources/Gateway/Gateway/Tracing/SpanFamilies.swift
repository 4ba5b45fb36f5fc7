import PinfoldMetrics

extension ServiceMetrics {
    private typealias Sample = ServiceFamily.Sample

    /// What has become of spans.
    mutating func addSpans(_ spans: SpanStatistics) {
        add(
            .counter, "pinfold_trace_spans", "Spans of exchanges (tracing.otlp), by result.",
            [
                Sample(LabelText("result=\"exported\""), spans.exported),
                Sample(LabelText("result=\"failed\""), spans.failed),
                Sample(LabelText("result=\"rejected\""), spans.rejected),
            ])
        add(
            .counter, "pinfold_trace_export_retries",
            "Attempts to send spans that failed and are repeated.", spans.retries)
        add(
            .counter, "pinfold_trace_dropped_exchanges",
            "Sampled exchanges without spans because the queue was full.", spans.droppedExchanges)
    }
}
