/// Reports of pin failures.
public struct PinReportMetrics: Sendable, Equatable {
    /// The results for failures and their reports since the start: values of the label `result`, in
    /// the order in which they are listed.
    public var results: [(label: String, total: UInt64)] = []
    /// Reports waiting for delivery.
    public var waiting: UInt64 = 0
    /// Their bytes.
    public var waitingBytes: UInt64 = 0

    /// Metrics at zero, to be filled in.
    public init() {}

    public static func == (left: PinReportMetrics, right: PinReportMetrics) -> Bool {
        left.waiting == right.waiting && left.waitingBytes == right.waitingBytes
            && left.results.elementsEqual(right.results, by: ==)
    }
}

extension ExpositionWriter {
    /// The results for pin failures to report, and what is waiting.
    mutating func writePinReports(_ metrics: PinReportMetrics) {
        family(
            "pinfold_pin_reports", .counter,
            help: "Pin failures to report (pinsets.*.reportTo) and their reports, by result.")
        for (label, total) in metrics.results { sample(LabelText("result", label), total) }
        family(
            "pinfold_pin_reports_waiting", .gauge,
            help: "Reports of pin failures that are waiting for delivery.")
        sample(metrics.waiting)
        family(
            "pinfold_pin_reports_waiting_bytes", .gauge,
            help: "Bytes of the reports that are waiting for delivery.", unit: "bytes")
        sample(metrics.waitingBytes)
    }
}
