import PinObserving
import PinReporting
import PinfoldConfiguration
import PinfoldEngine
import PinfoldResolver
import Threads

// Where exchanges are recorded: the access log and the spans; and servers, by their keys.
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

    /// What remembers the keys of servers, as soon as a configuration asks for it.
    func makePinObserver(_ reporter: PinReporter) throws(Thread.StartError) -> PinObserver {
        let observer = PinObserver(
            path: configuration.cache.observedPinsFile, workers: workerCount
        ) { [logger] event in
            logger.log(event)
            if case .newKey(let new) = event { reporter.report(new) }
        }
        if configuration.observesAnyPins { try observer.start() }
        return observer
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
