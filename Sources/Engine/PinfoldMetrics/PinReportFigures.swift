/// Reports of pin failures.
package struct PinReportFigures: Sendable, Equatable {
    /// What became of failures and their reports since the start: label values of `result`, in the
    /// order in which they are listed.
    package var results: [(label: String, total: UInt64)] = []
    /// Reports that wait for their delivery.
    package var waiting: UInt64 = 0
    /// Their bytes.
    package var waitingBytes: UInt64 = 0

    /// Figures at rest, to be filled in.
    package init() {}

    package static func == (left: PinReportFigures, right: PinReportFigures) -> Bool {
        left.waiting == right.waiting && left.waitingBytes == right.waitingBytes
            && left.results.elementsEqual(right.results, by: ==)
    }
}

extension ExpositionWriter {
    /// What became of pin failures that are to be reported, and what waits.
    mutating func writePinReports(_ figures: PinReportFigures) {
        family(
            "pinfold_pin_reports", .counter,
            help: "Pin failures to report (pinsets.*.reportTo) and their reports, by result.")
        for (label, total) in figures.results { sample(LabelText("result", label), total) }
        family(
            "pinfold_pin_reports_waiting", .gauge,
            help: "Reports of pin failures that wait for their delivery.")
        sample(figures.waiting)
        family(
            "pinfold_pin_reports_waiting_bytes", .gauge,
            help: "Bytes of the reports that wait for their delivery.", unit: "bytes")
        sample(figures.waitingBytes)
    }
}
