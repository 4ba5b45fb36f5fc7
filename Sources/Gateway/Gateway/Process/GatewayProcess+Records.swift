import PinfoldConfiguration
import PinfoldEngine
import PinfoldResolver

// Where exchanges are recorded: the access log and the spans.
extension GatewayProcess {
    func makeAccessLog() throws -> AccessLog? {
        guard let access = configuration.log.access else { return nil }
        return try AccessLog(
            path: access.path, format: access.format == .json ? .json : .combined,
            fields: access.fields, workers: workerCount, labels: accessLogLabels
        ) { [logger] event in
            logger.warning("access log", metadata: ["event": "\(event)"])
        }
    }

    var accessLogLabels: AccessLogLabels {
        AccessLogLabels(
            listeners: labels.listenerSnapshot, hosts: labels.snapshot,
            reasons: Reason.tokens)
    }

    /// What sends spans, as soon as a configuration has a collector.
    func makeSpanExporter(
        _ policy: PolicySnapshot, _ resolver: Resolver
    ) throws(SpanExporter.StartError) -> SpanExporter {
        let exporter = SpanExporter(
            workers: workerCount, version: published.version, resolver: resolver,
            onEvent: { [logger] in logger.log($0) })
        try exporter.prepare(for: policy.spanSettings(accessLogLabels))
        return exporter
    }
}
