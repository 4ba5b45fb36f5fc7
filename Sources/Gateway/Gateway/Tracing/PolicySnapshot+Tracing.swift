import PinfoldEngine

extension PolicySnapshot {
    /// Where spans go; `nil` for nowhere. The collector is verified by `tls` alone, as the servers
    /// that receive reports are.
    func spanSettings(_ labels: AccessLogLabels) -> SpanExporter.Settings? {
        configuration.tracing.otlp.map {
            SpanExporter.Settings(
                destination: $0, context: tls(entryIndex: nil), labels: labels)
        }
    }
}
