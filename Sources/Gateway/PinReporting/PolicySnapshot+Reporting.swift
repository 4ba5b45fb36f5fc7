import PinfoldConfiguration
import PinfoldEngine
import PinfoldTLS
import Trust

extension PolicySnapshot {
    /// Where pin failures are reported to. The servers that receive reports are verified by `tls`
    /// alone: no pinset applies to them, so that a wrong pin cannot block its own report.
    package var reporting: PinReporter.Settings {
        var policies: [String: ReportPolicy] = [:]
        for entry in configuration.pinsets {
            policies[entry.pinset.name] = ReportPolicy(entry)
        }
        policies[ReportPolicy.observedName] = ReportPolicy(configuration.pinObservation)
        var pins: [String: [String]] = [:]
        for entry in configuration.pinsets where entry.pinset.mode != .none {
            pins[entry.pinset.name] = entry.pinset.distinguishedPins
        }
        return PinReporter.Settings(
            policies: policies, pins: pins, context: tls(entryIndex: nil))
    }
}
