import Configuration
import PinReporting

extension PolicySnapshot {
    /// Where pin failures are reported to. Servers that take reports are judged by `tls` alone: no
    /// pinset applies to them, so that a pin that is wrong cannot keep its own report back.
    package var reporting: PinReporter.Settings {
        var destinations: [String: ReportDestination] = [:]
        for entry in configuration.pinsets {
            if let destination = entry.reportTo { destinations[entry.pinset.name] = destination }
        }
        return PinReporter.Settings(
            destinations: destinations, context: tls(entryIndex: nil))
    }
}
